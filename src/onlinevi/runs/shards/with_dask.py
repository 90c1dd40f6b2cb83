"""Dask: its collections as shards, its clusters as executors. Dask itself is imported when one of them is given."""

from __future__ import annotations

import pickle
from concurrent.futures import Executor, Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from onlinevi.runs.shards.sources import Shard

MISSING = 'Dask is missing: pip install "onlinevi[dask]"'


@dataclass(frozen=True)
class Partition(Shard):
    """A partition of a collection, or of X and of y: made where it is asked for, in that process alone."""

    parts: bytes = field(repr=False)
    """What makes it, pickled with functions of all kinds."""
    records: bool = False
    """Whether it is a list of records of a Bag."""

    def content(self) -> Any:
        import dask

        made = dask.compute(*pickle.loads(self.parts), scheduler="synchronous")
        if self.records:
            found = list(made[0])
            return iter(_as_matrix(found)) if found and isinstance(found[0], tuple) else found
        return made[0] if len(made) == 1 else made


def _as_matrix(events: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Events (x, y) as one block."""
    rows, labels = zip(*events, strict=True)
    return [(list(rows), list(labels))]


def partitions_of(given: Any) -> tuple[Shard, ...]:
    """One shard a partition of a DataFrame or a Bag, or a block of rows of Arrays (X, y)."""
    try:
        import cloudpickle
        from dask import optimize
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(MISSING) from error
    together = given if isinstance(given, tuple) else (given,)
    if any(not hasattr(one, "to_delayed") for one in together):
        raise TypeError("this Dask collection has no partitions: give a DataFrame, a Bag, or Arrays (X, y)")
    parts = [_rows_of(one, together[0]) for one in together]
    digits = len(str(len(parts[0]) - 1))
    found = []
    for number, each in enumerate(zip(*parts, strict=True)):
        if any(_is_future(value) for one in optimize(*each) for value in one.__dask_graph__().values()):
            raise ValueError("this collection was persisted on a cluster: give it as it was before, or write it to Parquet")
        records = hasattr(together[0], "foldby")  # a Bag
        found.append(Partition(f"partition {number:0{digits}d}", cloudpickle.dumps(optimize(*each)), records))
    return tuple(found)


def _rows_of(collection: Any, first: Any) -> list[Any]:
    """The delayed partitions; of an array those of its rows, cut as those of the first are."""
    if not hasattr(collection, "rechunk"):
        return list(collection.to_delayed())
    rows = first.chunks[0]
    if any(size != size for size in rows):
        raise ValueError("the Arrays have chunks of unknown size: call compute_chunk_sizes() first")
    whole = (rows, *((size,) for size in collection.shape[1:]))
    return list(collection.rechunk(whole).to_delayed().ravel())


def _is_future(value: Any) -> bool:
    return type(value).__name__ == "Future" and type(value).__module__.startswith("distributed")


def dask_cluster(address: str) -> tuple[Executor, Any]:
    """An executor on the cluster of this scheduler, and the client to close behind it."""
    try:
        from distributed import Client
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(MISSING) from error
    client = Client(address, timeout="10s")
    return client.get_executor(), client


class OfClient(Executor):
    """A cluster as an executor whose futures always come to an end.

    Those of ``Client.get_executor()`` wait for ever where a worker dies while its result is fetched.
    """

    def __init__(self, client: Any, settings: dict[str, Any]) -> None:
        self._client, self._settings = client, settings

    def submit(self, fn: Any, /, *args: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        task = self._client.submit(fn, *args, **named, **self._settings)
        future.add_done_callback(lambda own: task.cancel() if own.cancelled() else None)
        task.add_done_callback(lambda done: _pass_on(done, future))
        return future

    @property
    def threads(self) -> int:
        """How many calls it runs at once."""
        return sum(self._client.nthreads().values())


def _pass_on(task: Any, future: Future[Any]) -> None:
    """What a task has brought, or why it has brought nothing; called in a thread of its own."""
    with suppress(InvalidStateError):  # cancelled since
        try:
            future.set_result(task.result())
        except InvalidStateError:
            raise
        except BaseException as error:
            future.set_exception(error)


def sturdy(executor: Executor) -> Executor:
    """The executor, that of a Dask client in another form."""
    client, settings = getattr(executor, "_client", None), getattr(executor, "_kwargs", {})
    return OfClient(client, {"pure": False} | settings) if hasattr(client, "nthreads") else executor
