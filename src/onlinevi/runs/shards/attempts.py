"""Calls, one a shard, on any executor: each is made until it is done, or has failed often enough to be named."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

from onlinevi.engine import Engine, engine_in_use, using_engine
from onlinevi.runs.shards.with_dask import sturdy

ATTEMPTS = 3
"""After so many failed ones a shard is bad."""
NO_RETRY = (ValueError, TypeError, LookupError, ImportError, NotImplementedError, FileNotFoundError)
"""Errors that another attempt would meet again."""
PRELOADED = ["onlinevi.runs"]


class Outcome(NamedTuple):
    """What came of a call."""

    content: Any
    """None where it failed."""
    error: str = ""
    """Why it failed."""
    again: bool = False
    """Whether another attempt may do better."""
    seconds: float = 0.0
    worker: str = ""
    """The process that did it, as host:number."""


class Done(NamedTuple):
    """The last outcome of a shard, and how often it was tried."""

    outcome: Outcome
    attempts: int


@dataclass(frozen=True)
class Call:
    """What a worker does, on the engine of the process that asks for it. It raises nothing: an outcome always comes back."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    engine: Engine

    def __call__(self) -> Outcome:
        begun, worker = time.monotonic(), f"{socket.gethostname()}:{os.getpid()}"
        try:
            with using_engine(self.engine):
                content = self.function(*self.arguments)
        except Exception as failure:
            error, again = str(failure) or type(failure).__name__, not isinstance(failure, NO_RETRY)
            return Outcome(None, error, again, time.monotonic() - begun, worker)
        return Outcome(content, seconds=time.monotonic() - begun, worker=worker)


def call(function: Callable[..., Any], *arguments: Any) -> Call:
    """The call of a function with these arguments."""
    return Call(function, arguments, engine_in_use())


class Crew:
    """An executor, replaced where its workers died with it. Use it in a ``with``.

    ``executor`` is an executor, a function that makes one, or None for ``workers`` processes on this machine. Of one that was
    given as it is, nothing is replaced or shut down.
    """

    def __init__(
        self,
        executor: Executor | Callable[[], Executor] | None = None,
        *,
        workers: int | None = None,
        attempts: int = ATTEMPTS,
        waiting: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        if workers is not None and workers < 1:
            raise ValueError(f"workers={workers}: needs at least one")
        if attempts < 1:
            raise ValueError(f"attempts={attempts}: needs at least one")
        self._workers = workers
        self._given = sturdy(executor) if isinstance(executor, Executor) else None
        self._make = self._processes if executor is None or isinstance(executor, Executor) else executor
        self._attempts, self._waiting = attempts, waiting
        self._executor: Executor | None = self._given

    def _processes(self) -> Executor:
        methods = multiprocessing.get_all_start_methods()
        context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
        if context.get_start_method() == "forkserver":
            context.set_forkserver_preload(PRELOADED)
        return ProcessPoolExecutor(self._workers or os.cpu_count(), context, _begin)

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._given is None and self._executor is not None:
            _end(self._executor, at_once=kind is not None)

    def _at_once(self) -> int:
        """How many calls are under way at most: what waits in a dead worker is under suspicion too."""
        known = self._workers or getattr(self._executor, "_max_workers", None) or getattr(self._executor, "threads", None)
        return known or 1 << 30

    def run(self, calls: Mapping[str, Call]) -> Iterator[tuple[str, Done]]:
        """Each shard's name and what came of it, as they come."""
        queue, suspects, tried, fatal = deque(calls), deque[str](), dict.fromkeys(calls, 0), dict.fromkeys(calls, 0)
        running: dict[Future[Outcome], str] = {}
        if self._executor is None and calls:
            self._executor = self._make()
        at_once, alone = self._at_once(), False
        try:
            while queue or suspects or running:
                lost: list[str] = []
                alone = alone and bool(running)
                while (waits := suspects or queue) and len(running) < (1 if suspects else at_once) and not (lost or alone):
                    alone = waits is suspects
                    name = waits.popleft()
                    tried[name] += 1
                    try:
                        running[self._submit(calls[name])] = name
                    except BrokenExecutor:
                        lost = [name]
                if not lost:
                    with self._waiting():
                        ended, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in ended:
                        name = running.pop(future)
                        outcome = _outcome(name, future)
                        fatal[name] += outcome is not None and outcome.again
                        if outcome is None:
                            lost.append(name)
                        elif outcome.again and fatal[name] < self._attempts:
                            queue.append(name)
                        else:
                            yield name, Done(outcome, tried[name])
                if lost:
                    yield from self._broken(lost, running, suspects, tried, fatal)
        finally:
            for future in running:
                future.cancel()

    def _broken(
        self,
        lost: list[str],
        running: dict[Future[Outcome], str],
        suspects: deque[str],
        tried: dict[str, int],
        fatal: dict[str, int],
    ) -> Iterator[tuple[str, Done]]:
        """A worker died, and took the executor with it. Who was alone is to blame; of several, each is tried alone."""
        for future, name in list(running.items()):
            outcome = _outcome(name, future)
            if outcome is None or outcome.again:
                lost.append(name)
            else:
                yield name, Done(outcome, tried[name])
        running.clear()
        if self._given is not None:
            raise RuntimeError(
                f"the executor is broken, as a worker died, and with it {', '.join(sorted(lost))}: give a function that makes "
                "an executor, and it is made anew; what is finished is kept where a folder was named"
            )
        assert self._executor is not None
        _end(self._executor, at_once=True)
        self._executor = None
        for name in lost:
            fatal[name] += len(lost) == 1
            if fatal[name] < self._attempts:
                suspects.append(name)
            else:
                yield name, Done(Outcome(None, f"its worker died {fatal[name]} times: killed, or out of memory"), tried[name])

    def _submit(self, one: Call) -> Future[Outcome]:
        if self._executor is None:
            self._executor = self._make()
        return self._executor.submit(one)


def _outcome(name: str, future: Future[Outcome]) -> Outcome | None:
    """What a future has brought; None where its worker died, and the executor with it."""
    try:
        return future.result()
    except BrokenExecutor:
        return None
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise TypeError(
            f"{name} cannot be sent to a worker ({error}): give files, arrays, or functions that a module has by their names"
        ) from error
    except Exception as error:  # of the executor itself, such as a cluster that lost the worker
        return Outcome(None, f"{type(error).__name__}: {error}", again=True)


def _begin() -> None:
    """In a worker: Ctrl-C is for the process that asks, which ends its workers; without it they end by themselves."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)


def _end(executor: Executor, *, at_once: bool) -> None:
    processes = list((getattr(executor, "_processes", None) or {}).values())
    executor.shutdown(wait=not at_once, cancel_futures=True)
    if at_once:
        for process in processes:
            process.kill()
