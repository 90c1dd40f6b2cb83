"""How time and memory grow: with events, features, stored values, rates, and threads.

    python benchmarks/growth.py [--tiny]

SVB with the hinge loss, mean field. An exponent is the slope of log time over log size, by least squares over the large half
of the sizes: 1 is linear. Peak memory is that of a child that makes its rows block by block as it goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from children import python
from made import COVER_DIM, thin_rows, unit_rows
from section import CORES, Size, main
from timing import caches, cores, interleaved, pinned

import onlinevi as ovi
from onlinevi.ewa import AdaHedge, Aggregate, over_rates

BLOCK = 100_000
EVENTS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
FEATURES = (2, 5, 10, 20, 54, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
STORED, WIDTH = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000), 10_000
RATES = (1, 2, 4, 8, 16, 32)
VALUES = 4_000_000
"""Values of all rows together, where the width varies: 32 MB, so that every width reads the same amount."""
PEAKS_EVENTS, PEAKS_FEATURES = (10_000, 100_000, 1_000_000, 10_000_000), (1_000, 10_000, 100_000)

Seconds = dict[int, float]

CHILD = """
import sys, numpy as np, onlinevi as ovi
events, dim = int(sys.argv[1]), int(sys.argv[2])
learner = ovi.Linear(loss=ovi.Hinge(), rule=ovi.SVB())
rng, state = np.random.default_rng(0), learner.init(dim, events)
rows = max(1, min(10_000, 500_000 // dim))
for first in range(0, events, rows):
    X = rng.random((min(rows, events - first), dim))
    state, _ = learner.update_many(state, X, np.where(X[:, 0] > 0.5, 1.0, -1.0), record="none")
assert state.count == events
"""


def measure(size: Size) -> dict[str, Any]:
    found: dict[str, Any] = {"caches": caches()}
    for name, curve in (("events", events), ("features", features), ("stored values", stored)):
        seconds = curve(size)
        found[name] = {"seconds": seconds, "exponent": exponent(seconds)}
    found["rates"] = rates(size)
    found["threads"] = threads(size)
    found["peak MB"] = peaks(size)
    return found


def exponent(seconds: Mapping[int, float]) -> float:
    """The slope of log time over log size, over the large half."""
    sizes = np.log(sorted(seconds))
    large = sizes >= 0.5 * (sizes[0] + sizes[-1])
    times = np.log([seconds[key] for key in sorted(seconds)])
    return round(float(np.polyfit(sizes[large], times[large], 1)[0]), 3)


def _learner(**settings: Any) -> ovi.Linear:
    return ovi.Linear(loss=ovi.Hinge(), rule=ovi.SVB(), average=False, **settings)


def _timed(jobs: Mapping[int, Callable[[], object]], rounds: int) -> Seconds:
    best = interleaved({str(key): job for key, job in jobs.items()}, rounds)
    return {key: best[str(key)] for key in jobs}


def events(size: Size) -> Seconds:
    """The whole time of so many events; many of them are one block of 43 MB, again and again."""
    X, y = unit_rows(size.rows(BLOCK), COVER_DIM)
    learner = _learner()

    def go(count: int) -> None:
        state = learner.init(COVER_DIM, count)
        for first in range(0, count, len(y)):
            part = slice(0, min(len(y), count - first))
            state, _ = learner.update_many(state, X[part], y[part], record="none")

    return _timed({count: partial(go, count) for count in _sizes(EVENTS, size)}, size.rounds)


def _sizes(sizes: Iterable[int], size: Size) -> list[int]:
    """Those of a tiny run keep their order and stay different."""
    return [max(2 + place, int(count * size.share)) for place, count in enumerate(sizes)]


def features(size: Size) -> Seconds:
    """The time of a row, by its width."""

    def row(dim: int) -> Callable[[], object]:
        X, y = unit_rows(max(8, size.rows(VALUES) // dim), dim)
        counts[dim] = len(y)
        state = _learner().init(dim, len(y))
        return partial(_learner().update_many, state, X, y, record="none")

    counts: dict[int, int] = {}
    seconds = _timed({dim: row(dim) for dim in (FEATURES[:6] if size.tiny else FEATURES)}, size.rounds)
    return {dim: value / counts[dim] for dim, value in seconds.items()}


def stored(size: Size) -> Seconds:
    """The time of a sparse row of 10,000 columns, by its stored values."""

    def row(count: int) -> Callable[[], object]:
        X, y = thin_rows(max(8, min(size.rows(VALUES) // count, 200_000)), WIDTH, count)
        counts[count] = len(y)
        state = _learner().init(WIDTH, len(y))
        return partial(_learner().update_many, state, X, y, record="none")

    counts: dict[int, int] = {}
    seconds = _timed({count: row(count) for count in (STORED[:4] if size.tiny else STORED)}, size.rounds)
    return {count: value / counts[count] for count, value in seconds.items()}


def rates(size: Size) -> dict[str, Any]:
    """Learners of many rates pooled, as multiples of one by itself, on one core and on two."""
    X, y = unit_rows(size.rows(BLOCK), COVER_DIM)
    one = partial(ovi.learn, X, y, loss=ovi.Hinge(), rule=ovi.SVB(), record="none", average=False)
    found: dict[str, Any] = {}
    allowed = cores()
    for count in (1, min(CORES, len(allowed))):
        pools = {
            number: Aggregate(over_rates(_learner(), 0.01, 10.0, count=number), rate=AdaHedge())
            for number in RATES[1 : 3 if size.tiny else None]
        }
        with pinned(count):
            jobs: dict[int, Callable[[], object]] = {1: one} | {
                number: partial(pool.run, X, y, threads=count) for number, pool in pools.items()
            }
            seconds = _timed(jobs, size.rounds)
        found[f"{count} cores" if count > 1 else "1 core"] = {n: round(value / seconds[1], 3) for n, value in seconds.items()}
    return found


def threads(size: Size) -> dict[str, float]:
    """Two runs that share nothing, one after the other and in two threads: the second is so much faster."""
    X, y = unit_rows(size.rows(5 * BLOCK), COVER_DIM)
    run = partial(ovi.learn, X, y, loss=ovi.Hinge(), rule=ovi.SVB(), record="none", average=False)
    with ThreadPoolExecutor(CORES) as pool:

        def together() -> None:
            for done in [pool.submit(run) for _ in range(CORES)]:
                done.result()

        def in_turn() -> None:
            for _ in range(CORES):
                run()

        seconds = interleaved({"in turn": in_turn, "together": together}, size.rounds)
    return {"threads": CORES, "cores": len(cores()), "times as fast": round(seconds["in turn"] / seconds["together"], 3)}


def peaks(size: Size) -> dict[str, Seconds]:
    """The most memory that a process had."""
    python(CHILD, 1, 1)  # compiles, if nobody has
    few, wide = _sizes(PEAKS_EVENTS, size), (PEAKS_FEATURES[:1] if size.tiny else PEAKS_FEATURES)
    return {
        "events": {count: round(python(CHILD, count, COVER_DIM).peak_mb, 1) for count in few},
        "features": {dim: round(python(CHILD, 1_000, dim).peak_mb, 1) for dim in wide},
    }


if __name__ == "__main__":
    main("growth", __doc__, measure)
