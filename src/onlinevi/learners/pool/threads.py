"""Threads for work that does not depend on each other; compiled kernels let go of the interpreter, so they run at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple


class Threads(NamedTuple):
    """A number of threads, and how they call a function for each of several things."""

    number: int
    each: Callable[[Callable[[Any], int], Iterable[Any]], Iterable[int]]


ALONE = Threads(1, map)


@contextmanager
def running_threads(threads: int) -> Iterator[Threads]:
    """Keep so many threads while the block runs: none is left behind, whatever ends it."""
    if type(threads) is not int or threads < 1:
        raise ValueError(f"threads={threads!r}: needs a number of threads, 1 or more; try 2")
    if threads == 1:
        yield ALONE
    else:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(threads, thread_name_prefix="onlinevi") as pool:
            yield Threads(threads, pool.map)
