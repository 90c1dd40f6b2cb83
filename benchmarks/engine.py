"""The compiled loop against C, against a kernel fused by hand, and against a plain matrix product.

    python benchmarks/engine.py [--quick] [--dims 54]

Every row is a ratio within one interleaved run, best of 7. The C reference is compiled here when a compiler is there.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numba
import numpy as np
from scipy import sparse
from timing import interleaved, machine, save

import onlinevi as ovi
from onlinevi._jit import OPTIONS

RULES = {
    "OGA": (ovi.OGA(0.01), "oga", 0.01),
    "OGA-EL": (ovi.OGAEL(0.01), "oga_el", 0.01),
    "SVA": (ovi.SVA(0.01), "sva", 0.01),
    "SVB": (ovi.SVB(), "svb", 1.0),
    "NGVI": (ovi.NGVI(), "ngvi", 1.0),
}
C_FLAGS = ["-O3", "-march=native", "-ffast-math", "-shared", "-fPIC"]
SHAPES = {2: 1_000_000, 54: 581_012, 1_000: 30_000, 10_000: 3_000}


def data(rows: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of length 1 with labels that a linear rule can mostly tell: like Cover Type's, normalised."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, dim))
    X /= np.linalg.norm(X, axis=1)[:, None]
    y = np.where(X @ rng.standard_normal(dim) + 0.5 * rng.standard_normal(rows) > 0, 1.0, -1.0)
    return X, y


def pass_of(
    X: object, y: np.ndarray, rule: ovi.Rule, family: ovi.Family | None = None, dtype: str = "float64"
) -> Callable[[], object]:
    return lambda: ovi.learn(X, y, loss=ovi.Hinge(), rule=rule, family=family, record="none", average=False, dtype=dtype)


def compile_c() -> ctypes.CDLL | None:
    """The C reference as a library, or None where there is no compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None
    library = Path(tempfile.mkdtemp()) / "reference.so"
    source = Path(__file__).with_name("reference.c")
    subprocess.run([compiler, *C_FLAGS, str(source), "-o", str(library), "-lm"], check=True)
    return ctypes.CDLL(str(library))


def c_pass(library: ctypes.CDLL, function: str, scale: float, X: np.ndarray, y: np.ndarray) -> Callable[[], np.ndarray]:
    def run() -> np.ndarray:
        dim = X.shape[1]
        box, sums = np.array([-20.0, 20.0, 0.0, 1.0]), np.zeros(4)
        belief = np.stack([np.zeros(dim), np.ones(dim), np.zeros(dim), np.zeros(dim)])
        arrays = [X, y, box, *belief, sums]
        pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in arrays]
        shape = (ctypes.c_long(len(y)), ctypes.c_long(dim), ctypes.c_double(scale))
        getattr(library, function)(*pointers[:2], *shape, *pointers[2:])
        return np.concatenate([belief[0], sums[:1]])

    return run


@numba.njit(**OPTIONS)
def fused_svb(X, y, mean, std, total, sums):  # type: ignore[no-untyped-def]
    """SVB with the hinge loss in one piece, no parts, no settings: what composition is measured against."""
    for i in range(len(y)):
        a = variance = row_square = spread_square = 0.0
        for j in range(X.shape[1]):
            x = X[i, j]
            spread = std[j] * x
            a += mean[j] * x
            variance += spread * spread
            row_square += x * x
            spread_square += (spread * x) * (spread * x)
        v, margin = math.sqrt(variance), 1.0 - y[i] * a
        r = margin / v
        active, density = 0.5 * math.erfc(-r * 0.7071067811865476), 0.3989422804014327 * math.exp(-0.5 * r * r)
        slope, curvature = -y[i] * active, density / v
        sums[0] += max(margin, 0.0)
        sums[1] += margin * active + v * density
        sums[2] += slope * a + curvature * variance
        sums[3] += slope * slope * row_square + curvature * curvature * spread_square
        if not math.isfinite(a + variance + sums[1] + sums[2] + sums[3]):
            return
        rate = 1.0 / math.sqrt(i + 1.0)
        for j in range(X.shape[1]):
            x = X[i, j]
            g, u = slope * x, 0.5 * rate * curvature * x * x
            total[j] += g
            mean[j] = min(max(mean[j] - rate * g, -20.0), 20.0)
            std[j] = min(max(std[j] / (math.sqrt(1.0 + u * u) + u), 0.0), 1.0)


def dense(quick: bool, dims: list[int]) -> list[dict[str, object]]:
    library = compile_c()
    table = []
    for dim in dims:
        X, y = data(SHAPES[dim] // 10 if quick else SHAPES[dim], dim)
        jobs: dict[str, Callable[[], object]] = {"X @ w": partial(np.matmul, X, np.ones(dim))}
        for name, (rule, function, scale) in RULES.items():
            jobs[name] = pass_of(X, y, rule)
            if library is not None:
                jobs[f"{name} in C"] = c_pass(library, function, scale, X, y)
                ours = ovi.learn(X, y, loss=ovi.Hinge(), rule=rule, record="none", average=False)
                theirs = c_pass(library, function, scale, X, y)()
                close = np.allclose([*ours.mean, ours.state.loss], theirs, rtol=1e-5, atol=1e-5)
                assert close, f"{name} at d = {dim}: C computes something else"
        seconds = interleaved(jobs)
        for name in RULES:
            row: dict[str, object] = {"d": dim, "rule": name, "ns a row": round(1e9 * seconds[name] / len(y), 1)}
            row["÷ C"] = round(seconds[name] / seconds[f"{name} in C"], 3) if library is not None else None
            row["÷ X @ w"] = round(seconds[name] / seconds["X @ w"], 2)
            table.append(row)
    return table


def composition(quick: bool) -> dict[str, float]:
    X, y = data(60_000 if quick else 581_012, 54)

    def fused() -> None:
        fused_svb(X, y, np.zeros(54), np.ones(54), np.zeros(54), np.zeros(4))

    jobs = {"composed": pass_of(X, y, ovi.SVB()), "fused": fused}
    jobs["with average and record"] = lambda: ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.SVB())
    seconds = interleaved(jobs)
    return {
        f"{name} ÷ fused by hand": round(value / seconds["fused"], 3) for name, value in seconds.items() if name != "fused"
    }


def beyond(quick: bool) -> dict[str, float]:
    """The implicit step and the covariances, as multiples of SVB's mean-field pass at d = 54."""
    X, y = data(20_000 if quick else 200_000, 54)
    full = {"NGVI": ovi.NGVI(), "SVB": ovi.SVB(), "SVA": ovi.SVA(0.01), "OGA-EL": ovi.OGAEL(0.01), "Implicit": ovi.Implicit()}
    jobs = {"SVB": pass_of(X, y, ovi.SVB()), "Implicit, mean field": pass_of(X, y, ovi.Implicit())}
    jobs["Implicit, point"] = pass_of(X, y, ovi.Implicit(), ovi.Point())
    few = slice(0, len(y) // 10)
    jobs |= {f"{name}, full": pass_of(X[few], y[few], rule, ovi.FullCovariance()) for name, rule in full.items()}
    jobs["Implicit, rank 10"] = pass_of(X[few], y[few], ovi.Implicit(), ovi.LowRank(rank=10))
    seconds = interleaved(jobs)
    each = {name: value / len(y) * (10 if "full" in name or "rank" in name else 1) for name, value in seconds.items()}
    return {f"{name} ÷ SVB, mean field": round(value / each["SVB"], 2) for name, value in each.items() if name != "SVB"}


def sparsity(quick: bool) -> dict[str, float]:
    """Per row, at 1% density. Ten times the rows where they are sparse: the same work in memory, and time to measure."""
    rows, dim = (300 if quick else 3_000), 10_000
    rng = np.random.default_rng(0)
    thin = sparse.random(10 * rows, dim, density=0.01, format="csr", random_state=0)
    full, y = thin[:rows].toarray(), np.where(rng.random(10 * rows) < 0.5, 1.0, -1.0)
    found = {}
    for name, (rule, _, _) in RULES.items():
        seconds = interleaved({"dense": pass_of(full, y[:rows], rule), "sparse": pass_of(thin, y, rule)})
        found[f"{name}: dense ÷ sparse, a row"] = round(10 * seconds["dense"] / seconds["sparse"], 1)
    return found


def precision(quick: bool) -> dict[str, float]:
    """A pass in float32 over float32 rows, as a share of one in doubles over doubles."""
    found = {}
    for dim in (1_000, 10_000):
        X, y = data(SHAPES[dim] // (30 if quick else 3), dim)
        narrow = X.astype(np.float32)
        for name, rule in [*((name, rule) for name, (rule, _, _) in RULES.items()), ("Implicit", ovi.Implicit())]:
            jobs = {"float64": pass_of(X, y, rule), "float32": pass_of(narrow, y, rule, dtype="float32")}
            seconds = interleaved(jobs, rounds=21)
            found[f"{name}: float32 ÷ float64, d = {dim:,}"] = round(seconds["float32"] / seconds["float64"], 2)
    return found


def one_event() -> dict[str, float]:
    X, y = data(1_000, 54)
    found = {}
    for name, (rule, _, _) in RULES.items():
        learner = ovi.Linear(loss=ovi.Hinge(), rule=rule)
        start = learner.init(54)

        def events(learner: ovi.Linear = learner, state: ovi.State = start) -> None:
            for x, label in zip(X, y, strict=True):
                state, _ = learner.update(state, x, label)

        found[f"{name}: µs an update"] = round(1e6 * interleaved({"update": events})["update"] / len(y), 2)
    return found


def start_up() -> dict[str, float]:
    """Import, and the first result, in a process of its own: with an empty cache, then with a full one."""
    script = (
        "import time; t = time.perf_counter(); import onlinevi as o; a = time.perf_counter() - t\n"
        "o.learn([[1.0, 2.0]], [1.0], loss=o.Hinge(), rule=o.SVB()); print(a, time.perf_counter() - t - a)"
    )
    found = {}
    with tempfile.TemporaryDirectory() as cache:
        for name in ("cold", "warm"):
            best = [math.inf, math.inf]
            for _ in range(1 if name == "cold" else 5):
                environment = {"NUMBA_CACHE_DIR": cache, "PATH": ""}
                done = subprocess.run(
                    [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
                )
                best = [min(old, float(new)) for old, new in zip(best, done.stdout.split(), strict=True)]
            found[f"import, {name} (s)"], found[f"first result, {name} (s)"] = (round(value, 2) for value in best)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("--dims", type=int, nargs="+", choices=list(SHAPES), default=list(SHAPES), help="numbers of features")
    quick, dims = (options := parser.parse_args()).quick, options.dims
    started = time.perf_counter()
    facts = machine("numpy", "numba", "scipy")
    print(*(f"{key}: {value}" for key, value in facts.items()), f"C: gcc {' '.join(C_FLAGS[:3])}", sep="\n")
    table = dense(quick, dims)
    print("\n| d | rule | ns a row | ÷ C | ÷ X @ w |\n|---|---|---|---|---|")
    for row in table:
        print("|", " | ".join(str(value) for value in row.values()), "|")
    results: dict[str, object] = {"machine": facts, "dense": table}
    for name, measured in (
        ("composition", composition(quick)),
        ("beyond", beyond(quick)),
        ("sparse", sparsity(quick)),
        ("precision", precision(quick)),
        ("one event", one_event()),
        ("start", start_up()),
    ):
        results[name] = measured
        print(f"\n{name}", *(f"  {key}: {value}" for key, value in measured.items()), sep="\n")
    print(f"\n{time.perf_counter() - started:.0f} s in all; saved to {save('engine', results)}")


if __name__ == "__main__":
    main()
