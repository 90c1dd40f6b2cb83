"""Compiled once, kept on disk, and never stale."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import onlinevi as ovi
from onlinevi.engine import kernel as module
from onlinevi.engine import ns
from onlinevi.engine.kernel import _Filler, compose
from onlinevi.engine.loop import not_finite
from onlinevi.learners.kernels import kernel as kernel_of

pytestmark = pytest.mark.compiled

PACKAGE = Path(ovi.__file__).parent
LOOP = """
from onlinevi.engine.holes import expected, new_belief
from onlinevi.engine.types import Belief, Gradient, Prior, Rates, Totals

def three_steps(y):
    mean = 0.0
    for _ in range(3):
        gradient = Gradient(expected(y, mean, 0.0).slope, 0.0)
        mean = new_belief(Belief(mean, 0.0), gradient, Totals(0.0, 0.0), Rates(0.25, 0.0, False), Prior(0.0, 1.0)).mean
    return mean
"""
SCRIPT = """
import onlinevi as ovi
from onlinevi.engine import compose, holes
from short_loop import three_steps
kernel = compose(three_steps, {holes.expected: ovi.Squared.expected, holes.new_belief: ovi.OGA.new_belief})
result = kernel(1.0)
"""
SMALL_SCRIPT = """
import numpy as np
from onlinevi.engine.kernel import compose
from onlinevi.engine.loop import not_finite
kernel = compose(not_finite, {})
result = kernel(np.array([1.0, np.nan]))
"""
"""A function in the file of the loop, which is cached where the loop is."""
REPORT = """
stats = kernel.run.stats
print(result, sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


def run(folder: Path, script: str = SCRIPT, **environment: str) -> list[float]:
    """Run it in a process of its own, with the copy of the package in this folder: (result, cache hits, cache misses)."""
    clean = {"PATH": "", "PYTHONPATH": str(folder), "HOME": str(folder / "home"), **environment}
    done = subprocess.run([sys.executable, "-c", script + REPORT], env=clean, capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(PACKAGE, tmp_path / "onlinevi", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "short_loop.py").write_text(LOOP)
    return tmp_path


def test_a_second_process_compiles_nothing_and_an_edit_is_seen(copy: Path) -> None:
    assert run(copy) == [0.875, 0, 1]
    assert run(copy) == [0.875, 1, 0]

    rule, loss = copy / "onlinevi" / "rules" / "oga.py", copy / "onlinevi" / "losses" / "squared.py"
    for file, before, after in (
        (rule, "belief.mean - rates.step", "belief.mean - 2.0 * rates.step"),
        (loss, "-2.0 * gap", "-0.5 * gap"),
    ):
        text = file.read_text()
        assert before in text
        file.write_text(text.replace(before, after))
    assert run(copy) == [1.0 - 0.75**3, 0, 1], "edits in a rule and in a loss, which are not in the loop's own file"


def test_an_edit_in_a_helper_or_a_constant_is_seen() -> None:
    from onlinevi.losses import normal

    def digest() -> bytes:
        return _Filler("compiled", {}).fill(ovi.Hinge.expected)[1]

    before = digest()
    assert digest() == before
    module._closed.clear()
    original = normal.INV_SQRT_2PI
    hinge = ovi.Hinge.expected.__globals__
    try:
        hinge["INV_SQRT_2PI"] = 0.5
        assert digest() != before
    finally:
        hinge["INV_SQRT_2PI"] = original
    assert digest() == before
    parts = ovi.Hinge, ovi.Point, ovi.OGA
    assert kernel_of(*parts) is kernel_of(*parts)


def test_a_package_that_cannot_be_written_caches_in_the_users_directory(copy: Path) -> None:
    (copy / "onlinevi" / "engine" / "__pycache__").write_text("a file where the cache directory would be")
    cache = copy / "cache"
    assert run(copy, SMALL_SCRIPT, XDG_CACHE_HOME=str(cache)) == [1, 0, 1]
    assert list(cache.rglob("*.nbi"))
    assert run(copy, SMALL_SCRIPT, XDG_CACHE_HOME=str(cache)) == [1, 1, 0]


def test_where_nothing_can_be_written_it_still_runs(copy: Path) -> None:
    (copy / "onlinevi" / "engine" / "__pycache__").write_text("a file where the cache directory would be")
    (copy / "nowhere").write_text("a file where a home would be")
    nowhere = str(copy / "nowhere")
    assert run(copy, SMALL_SCRIPT, XDG_CACHE_HOME=nowhere, HOME=nowhere)[0] == 1


def test_a_damaged_cache_is_compiled_anew_and_mended(copy: Path) -> None:
    assert run(copy, SMALL_SCRIPT) == [1, 0, 1]
    for ending in ("*.nbi", "*.nbc"):
        for file in (copy / "onlinevi").rglob(ending):
            file.write_bytes(file.read_bytes()[:-20] + b"damaged")
        assert run(copy, SMALL_SCRIPT) == [1, 0, 1]
    assert run(copy, SMALL_SCRIPT) == [1, 1, 0]


def test_a_full_disk_costs_the_next_process_some_time(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.core.caching import IndexDataCacheFile

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(IndexDataCacheFile, "save", full)
    kernel = compose(not_finite, {})
    assert kernel(np.array([1.0, np.nan])) == 1


class Broken(ovi.Loss):
    @staticmethod
    def expected(y, a, v):  # type: ignore[no-untyped-def]
        return y.no_such_method(), a, v


def test_a_part_that_does_not_compile_is_named_by_file_and_line() -> None:
    with pytest.raises(Exception, match=r"test_kernel\.py\", line \d+"):
        ovi.learn(np.ones((1, 1)), [1.0], loss=Broken(), rule=ovi.SVB())


def exponentials(x: np.ndarray, out: np.ndarray) -> None:
    for k in range(len(x)):
        out[k] = ns.exp(x[k])


def test_the_compiled_exponential_is_exact_and_hides_no_nan() -> None:
    x = np.concatenate([np.linspace(-708.0, 709.0, 100_001), np.random.default_rng(0).standard_normal(10_000), [5e-324, -0.0]])
    found = np.empty_like(x)
    compose(exponentials, {})(x, found)
    np.testing.assert_allclose(found, np.exp(x), rtol=5e-16, atol=0.0)
    edges = np.array([np.nan, np.inf, 709.1, -708.1, -np.inf])
    compose(exponentials, {})(edges, found)
    np.testing.assert_array_equal(found[:5], [np.nan, np.inf, np.inf, 0.0, 0.0])


def sum_in_vectors(x: np.ndarray) -> float:
    total = 0.0
    for k in range(len(x)):
        total += x[k]
    return total


def sum_one_by_one(x: np.ndarray) -> float:
    total = 0.0
    for k in range(len(x)):
        ns.one_by_one()
        total += x[k]
    return total


def test_a_loop_can_be_kept_from_reading_vectors() -> None:
    """Seen by the order of summation: 1 is lost beside 1e16, unless another lane of a vector adds it."""
    x = np.tile([1e16, 1.0, -1e16, 1.0], 50)
    assert compose(sum_one_by_one, {})(x) == sum_one_by_one(x) == 1.0
    assert compose(sum_in_vectors, {})(x) > 50.0


def turned_round(x: np.ndarray) -> None:
    held = ns.scratch(x)
    for k in range(ns.SCRATCH):
        held[k] = x[k]
    for k in range(ns.SCRATCH):
        x[k] = held[ns.SCRATCH - 1 - k]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_loop_can_hold_a_few_numbers_beside_its_arrays(dtype: type) -> None:
    x = np.arange(ns.SCRATCH, dtype=dtype)
    compose(turned_round, {})(x)
    np.testing.assert_array_equal(x, np.arange(ns.SCRATCH)[::-1])
    with pytest.raises(TypeError, match="compiled loops"):
        turned_round(x)


def test_the_size_of_scratch_is_part_of_a_kernels_name(monkeypatch: pytest.MonkeyPatch) -> None:
    before = module.translator_identity()
    monkeypatch.setattr(ns, "SCRATCH", ns.SCRATCH // 2)
    assert module.translator_identity() != before


def hole(x: float) -> float:
    raise TypeError


def doubled(x: float) -> float:
    return 2.0 * x


def tripled(x: float) -> float:
    return 3.0 * x


def one_more(x: float) -> float:
    return hole(x) + 1.0


def test_a_kernel_can_be_a_part_of_another_and_is_part_of_its_name() -> None:
    twice, thrice = (compose(one_more, {hole: compose(inner, {})}) for inner in (doubled, tripled))
    assert (twice(5.0), thrice(5.0)) == (11.0, 16.0)
    assert twice.run.__qualname__ != thrice.run.__qualname__, "the cache on disk must tell them apart"
