"""Beyond the paper: explicit against implicit steps, and mean field against full against low-rank covariances.

    python experiments/beyond.py [--quick] [--seeds 5] [--data toy breast …] [--out out/beyond]

Every method plays the paper's six data sets in three scalings, in random orders of the rows. Prints tables in Markdown, and
writes beyond.json and beyond.png. California is predicted linearly; of Cover Type each order's first 100,000 rows are played.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import onlinevi as ovi
from onlinevi.runs.charts import STYLE, blank

TITLES = ["Toy", "Breast Cancer", "Pima", "Cover Type", "Boston", "California"]
DATA = dict(zip(["toy", "breast", "pima", "cover", "boston", "california"], TITLES, strict=True))
LOSSES = {name: ovi.Squared() if name in ("boston", "california") else ovi.Hinge() for name in DATA}
SCALINGS = {"rows": "rows of length 1", "standard": "columns standardised", "raw": "raw features"}
Methods = dict[str, tuple[ovi.Rule, ovi.Family]]
METHODS: Methods = {
    "OGA": (ovi.OGA(), ovi.Point()),
    "Implicit, point": (ovi.Implicit(ovi.PerHorizon(1.0)), ovi.Point()),  # at OGA's rate: only the kind of step differs
    "SVB": (ovi.SVB(), ovi.MeanField()),
    "NGVI": (ovi.NGVI(), ovi.MeanField()),
    "Implicit": (ovi.Implicit(), ovi.MeanField()),
    "NGVI, low rank": (ovi.NGVI(), ovi.LowRank(rank=5)),
    "Implicit, low rank": (ovi.Implicit(), ovi.LowRank(rank=5)),
    "SVB, full": (ovi.SVB(ovi.PerSqrt(1.0)), ovi.FullCovariance()),
    "NGVI, full": (ovi.NGVI(), ovi.FullCovariance()),
    "Implicit, full": (ovi.Implicit(), ovi.FullCovariance()),
}
RANKS: Methods = {f"rank {rank}": (ovi.Implicit(), ovi.LowRank(rank=rank)) for rank in (1, 2, 5, 10)}
RANKS = {"mean field": METHODS["Implicit"], **RANKS, "full": METHODS["Implicit, full"]}
RANKED = ("breast", "boston", "cover")  # all have more features than the ranks tried
MARKS = {"rows": ("#1f77b4", "o", -0.27), "standard": ("#d9730d", "s", 0.0), "raw": ("#555555", "^", 0.27)}
MOST_ROWS, QUICK_ROWS = 100_000, 500
HIGHEST = 2.0  # losses above it are written, not drawn: beside 10⁸ all others would look alike


class Run(NamedTuple):
    """One method over one order of one data set in one scaling."""

    data: str
    scaling: str
    method: str
    seed: int
    average_loss: float | None = None
    spread: float | None = None  # the mean over the stream of the prediction's std
    overflowed_at: int | None = None  # a row: then there is no loss


def stream(name: str, scaling: str) -> tuple[np.ndarray, np.ndarray]:
    """Features and labels in the file's order; as in the paper's panels, regression targets lie in [0, 1]."""
    data = ovi.datasets.load(name)
    X, y = scaled(data.X, scaling), data.y
    if isinstance(LOSSES[name], ovi.Squared):
        y = (y - y.min()) / np.ptp(y)
    return (np.column_stack([X, np.ones(len(X))]) if name == "california" else X), y  # the ninth feature the paper counts


def scaled(X: np.ndarray, scaling: str) -> np.ndarray:
    """A column that never changes, or a row of zeros, is divided by 1."""
    sizes = {"rows": (0.0, np.linalg.norm(X, axis=1)[:, None]), "standard": (X.mean(0), X.std(0)), "raw": (0.0, 1.0)}
    zero, size = sizes[scaling]
    return np.asarray((X - zero) / np.where(size > 0.0, size, 1.0))


def study(data: Iterable[str], scalings: Iterable[str], methods: Methods, seeds: int, most: int) -> Iterator[Run]:
    for name in data:
        for scaling in scalings:
            all_X, all_y = stream(name, scaling)
            for seed in range(seeds):
                order = np.random.default_rng(seed).permutation(len(all_y))[:most]
                X, y = all_X[order], all_y[order]
                for method, (rule, family) in methods.items():
                    tell(f"{name}, {scaling}, order {seed}, {method}")
                    try:
                        trace = ovi.learn(X, y, loss=LOSSES[name], rule=rule, family=family, average=False)
                        found = {"average_loss": float(trace.average_loss[-1]), "spread": float(trace.spread.mean())}
                    except ovi.BadRow as error:
                        found = {"overflowed_at": error.row}
                    yield Run(name, scaling, method, seed, **found)


def hindsight(data: Iterable[str]) -> Iterator[Run]:
    """The best fixed weights in the box, of all rows: no order changes them."""
    for name in data:
        for scaling in SCALINGS:
            tell(f"{name}, {scaling}, hindsight")
            yield Run(name, scaling, "*hindsight*", 0, ovi.hindsight(*stream(name, scaling), loss=LOSSES[name]).value)


def tell(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def values(runs: Sequence[Run], data: str, scaling: str, method: str, what: str = "average_loss") -> list[float | None]:
    return [getattr(run, what) for run in runs if (run.data, run.scaling, run.method) == (data, scaling, method)]


def cell(found: Sequence[float | None]) -> str:
    """The mean over the orders and, if there are several, the range; an overflow is said."""
    kept = [value for value in found if value is not None]
    text = [f"{np.mean(kept):.3g}"] if kept else []
    text += [f"({min(kept):.3g}–{max(kept):.3g})"] if len(kept) > 1 else []
    return " ".join([*text, f"diverges {len(found) - len(kept)}/{len(found)}"] if len(kept) < len(found) else text) or "–"


def table(runs: Sequence[Run], methods: Iterable[str], columns: dict[str, tuple[str, str, str]]) -> str:
    """Methods down; a column is a data set, a scaling and what to show of a run."""
    text = ["| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for method in methods:
        cells = [cell(values(runs, name, scaling, method, what)) for name, scaling, what in columns.values()]
        text.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(text)


def report(runs: Sequence[Run], data: Sequence[str]) -> Iterator[str]:
    for scaling, title in SCALINGS.items():
        columns = {DATA[name]: (name, scaling, "average_loss") for name in data}
        yield f"### Final average loss, {title}\n\n{table(runs, [*METHODS, '*hindsight*'], columns)}\n"
    kinds = {"loss": "average_loss", "std": "spread"}
    columns = {f"{DATA[name]}: {kind}": (name, "standard", kinds[kind]) for name in RANKED for kind in kinds}
    yield f"### Implicit steps, columns standardised: loss and std of the prediction\n\n{table(runs, RANKS, columns)}\n"


def draw(runs: Sequence[Run], data: Sequence[str], path: Path) -> None:
    """A panel a data set: methods across, a mark for the mean over the orders, a bar for their range."""
    from matplotlib import rc_context

    across, down = min(3, len(data)), -(-len(data) // 3)
    with rc_context(STYLE):
        figure = blank(4.6 * across, 2.9 * down + 1.8)
        grid = figure.subplots(down, across, squeeze=False, sharex=True).ravel()
    for axes, name in zip(grid, data, strict=False):
        shown = [loss for scaling in SCALINGS for loss in panel(axes, runs, name, scaling)]
        if not shown:
            continue
        axes.set_yscale("log", subs=[2, 3, 4, 6])
        axes.set_ylim(0.9 * min(shown), max(shown) * (max(shown) / min(shown)) ** 0.3)  # room for what is written above
        axes.yaxis.set(major_formatter="{x:g}", minor_formatter="{x:g}")
        axes.set_title(f"{DATA[name]}, {type(LOSSES[name]).__name__.lower()} loss", loc="left", fontweight="bold")
        axes.set_xticks(range(len(METHODS)), METHODS, rotation=90)
    grid[0].plot([], [], "k--", linewidth=1.0, label="best in hindsight")
    figure.legend(*grid[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
    figure.supylabel("final average loss (written where it is above 2)", fontsize=10)
    figure.savefig(path, dpi=130)


def panel(axes: Any, runs: Sequence[Run], name: str, scaling: str) -> Iterator[float]:
    """Draws one scaling; yields the losses that the axis must show."""
    colour, marker, offset = MARKS[scaling]
    axes.plot([], [], marker, color=colour, label=SCALINGS[scaling])
    for place, found in enumerate(values(runs, name, scaling, method) for method in METHODS):
        losses = [np.inf if loss is None else loss for loss in found]
        if losses and np.mean(losses) > HIGHEST:
            text = f"{np.mean(losses):.2g}".replace("e+0", "e").replace("e+", "e").replace("inf", "diverges")
            above = axes.get_xaxis_transform()
            axes.text(place + offset, 0.98, text, color=colour, size=8, transform=above, rotation=90, ha="center", va="top")
        elif losses:
            axes.vlines(place + offset, min(losses), max(losses), color=colour, linewidth=1.5)
            axes.plot(place + offset, np.mean(losses), marker, color=colour, markersize=5)
            yield from (min(losses), max(losses))
    for best in values(runs, name, scaling, "*hindsight*"):
        axes.axhline(best, color=colour, linewidth=1.0, linestyle="--", zorder=1)
        yield best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"the first {QUICK_ROWS} rows of one order, no hindsight")
    parser.add_argument("--seeds", type=int, default=5, help="how many orders of the rows")
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--out", type=Path, default=Path("out/beyond"))
    options = parser.parse_args()
    seeds, most = (1, QUICK_ROWS) if options.quick else (options.seeds, MOST_ROWS)
    runs: list[Run] = []
    try:
        runs.extend([] if options.quick else hindsight(options.data))
        runs.extend(study(options.data, SCALINGS, METHODS, seeds, most))
        runs.extend(study([name for name in RANKED if name in options.data], ["standard"], RANKS, seeds, most))
    except KeyboardInterrupt:
        print("\nStopped: this is what was done.", file=sys.stderr)
    print(*report(runs, options.data), sep="\n")
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "beyond.json").write_text(json.dumps([run._asdict() for run in runs], indent=1))
    draw(runs, options.data, options.out / "beyond.png")


if __name__ == "__main__":
    main()
