"""Shards side by side: two processes against one, what Dask costs a shard, what merging costs, and the bytes of a round.

    python benchmarks/shards.py [--tiny]

Rows are made where they are learned from, so that both processes are busy with learning. Pools are started before all turns.
"""

from __future__ import annotations

from concurrent.futures import Executor, ProcessPoolExecutor
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_context
from typing import Any

import numpy as np
from made import unit_rows
from section import Size, main
from timing import interleaved

import onlinevi as ovi
from onlinevi.learners import pack, unpack

DIM, ROWS, SHARDS = 54, 60_000, 8
SMALL, MERGED = 200, 1_000
FAMILIES = {"mean field": ovi.MeanField(box=None), "full": ovi.FullCovariance(box=None), "low rank": ovi.LowRank(box=None)}


def learner(family: ovi.Family) -> ovi.Linear:
    return ovi.Linear(ovi.Logistic(), ovi.Implicit(), family, average=False)


def made(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows of a shard, made by the worker."""
    return unit_rows(rows, DIM)


def measure(size: Size) -> dict[str, Any]:
    busy = [partial(made, size.rows(ROWS))] * SHARDS
    small = [partial(made, 30)] * max(8, int(size.share * SMALL))
    full, light = learner(FAMILIES["full"]), learner(FAMILIES["mean field"])
    context = get_context("forkserver")
    with ProcessPoolExecutor(1, context) as one, ProcessPoolExecutor(2, context) as two:
        turns = {
            "one process": partial(ovi.learn_shards, full, busy, one),
            "two processes": partial(ovi.learn_shards, full, busy, two),
            "small shards, two processes": partial(ovi.learn_shards, light, small, two),
        }
        times = _with_dask(turns, light, small, size)
    found: dict[str, Any] = {
        "seconds": {name: round(seconds, 4) for name, seconds in times.items()},
        "two processes, times as fast": round(times["one process"] / times["two processes"], 2),
        "milliseconds a small shard": {
            name.removeprefix("small shards, "): round(1e3 * seconds / len(small), 2)
            for name, seconds in times.items()
            if name.startswith("small")
        },
    }
    return found | {"merge": _merge(size), "bytes a state": _bytes()}


def _with_dask(turns: dict[str, Any], light: ovi.Linear, small: list[Any], size: Size) -> dict[str, float]:
    """The times of all, those of Dask too where it is installed."""
    if find_spec("distributed") is None:
        return interleaved(turns, min(size.rounds, 5))
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        executor: Executor = client.get_executor(pure=False)
        turns["small shards, Dask"] = partial(ovi.learn_shards, light, small, executor)
        return interleaved(turns, min(size.rounds, 5))


def _merge(size: Size) -> dict[str, float]:
    """Seconds to put together and to merge so many states of a full covariance."""
    full = learner(FAMILIES["full"])
    X, y = unit_rows(200, DIM)
    state, _ = full.update_many(full.init(DIM), X, y)
    contents = [pack(full, state)] * max(8, int(size.share * MERGED))
    states = [unpack(content).state for content in contents]
    times = interleaved({"unpack": lambda: [unpack(one) for one in contents], "merge": lambda: full.merge(states)}, 3)
    return {"states": float(len(states))} | {name: round(seconds, 4) for name, seconds in times.items()}


def _bytes() -> dict[str, dict[int, int]]:
    """What a shard sends in a round, by the number of columns."""
    return {
        name: {dim: len(pack(learner(family), learner(family).init(dim))) for dim in (DIM, 1_000)}
        for name, family in FAMILIES.items()
    }


if __name__ == "__main__":
    main("shards", __doc__, measure)
