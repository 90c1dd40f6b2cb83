"""Section 5 of the paper, made to run: ``onlinevi reproduce``."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from onlinevi.data import DataUnavailable
from onlinevi.paper.claims import Claim, judge
from onlinevi.paper.exact import ExactPosterior, exact_posterior
from onlinevi.paper.figure import draw
from onlinevi.paper.guarantees import SHOWN, Guarantee, guarantee
from onlinevi.paper.panels import PANELS, SCALINGS, Scaling, Stream, ordered, prepared
from onlinevi.paper.report import write
from onlinevi.paper.runs import RULES, Job, Line, Run, Store, best_in_hindsight, run, source_digest

__all__ = ["PANELS", "RULES", "SCALINGS", "Reproduction", "Watcher", "reproduce"]


Progress: TypeAlias = Callable[[float], None]
"""Told the share of a piece of work that is done; it may raise, to stop it."""


class Watcher(Protocol):
    """Hears how far the work is; from several threads."""

    def plan(self, total: int) -> None: ...
    def progress(self, name: str, share: float) -> None: ...


class Silent:
    """Shows nothing."""

    def plan(self, total: int) -> None: ...
    def progress(self, name: str, share: float) -> None: ...


@dataclass(frozen=True)
class Reproduction:
    """All runs, the verdicts, and the files that were written."""

    runs: list[Run]
    claims: list[Claim]
    missing: dict[str, str]
    paths: list[Path]
    seconds: float


def reproduce(
    out: Path | str = "out",
    *,
    data: Sequence[str] | None = None,
    rules: Sequence[str] | None = None,
    seeds: int = 5,
    scaling: Scaling = "row",
    jobs: int | None = None,
    watch: Watcher | None = None,
) -> Reproduction:
    """Repeat the paper's experiments, and write the figure, the table, the results and a verdict on each claim.

    ``data`` and ``rules`` choose among the panels and rules, by default all. A data set that cannot be had is left out and
    said in the results, unless it was named. Finished runs are kept in out/runs, so a second call goes on after the first;
    the numbers are the same bits whatever ``jobs``, the number of threads.
    """
    start, out = time.perf_counter(), Path(out)
    names, rule_names = _known(data, PANELS, "data"), _known(rules, RULES, "rules")
    if scaling not in SCALINGS:
        raise ValueError(f"scaling={scaling!r}: needs one of {', '.join(SCALINGS)}")
    if seeds < 1:
        raise ValueError(f"seeds={seeds}: needs at least one")
    _require("matplotlib", *(["jax"] if "california" in names else []))
    work = _Work(Store(out / "runs"), scaling, jobs or os.cpu_count() or 1, watch or Silent())
    missing = work.find(names, named=data is not None)
    runs, exact, guarantees = work.all([name for name in names if name not in missing], rule_names, seeds)
    claims = judge(runs)
    extra = {
        "source": source_digest(),
        "exact_posterior": asdict(exact) if exact else None,
        "guarantees": [asdict(each) for each in guarantees],
    }
    paths = write(runs, claims, missing, extra, out) + (draw(runs, exact, guarantees, out) if runs else [])
    return Reproduction(runs, claims, missing, paths, time.perf_counter() - start)


def _require(*modules: str) -> None:
    """Say what is missing before hours of work, not after."""
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        raise ImportError(f"the paper's experiments need {' and '.join(missing)}: pip install 'onlinevi[paper]'")


def _known(chosen: Sequence[str] | None, known: dict[str, Any], what: str) -> list[str]:
    for name in chosen or ():
        if name not in known:
            raise ValueError(f"{what}: no {name!r}; there are {', '.join(known)}")
    return [name for name in known if chosen is None or name in chosen]


class _Work:
    """The runs of one call, over several threads: the compiled loops release Python's lock."""

    def __init__(self, store: Store, scaling: Scaling, threads: int, watch: Watcher) -> None:
        self.store, self.scaling, self.threads, self.watch = store, scaling, threads, watch
        self._plain: dict[tuple[str, int], Stream] = {}
        self._ordered: dict[tuple[str, int], Stream] = {}
        self._lock, self._stopped = threading.Lock(), threading.Event()

    def find(self, names: Sequence[str], *, named: bool) -> dict[str, str]:
        """Load every data set; those that cannot be had, and why."""
        missing = {}
        for name in names:
            try:
                self._stream(name, 0, in_order=False)
            except DataUnavailable as error:
                if named:
                    raise
                missing[name] = str(error)
        return missing

    def all(self, names: list[str], rules: list[str], seeds: int) -> tuple[list[Run], ExactPosterior | None, list[Guarantee]]:
        """Every run of these data sets and rules, in a fixed order; what else the figures show."""
        jobs = [Job(name, rule, seed, self.scaling) for name in names for seed in range(seeds) for rule in rules]
        # The network's runs are the longest: they begin first, so that no thread is left alone with them at the end.
        longest_first = sorted(jobs, key=lambda job: not job.panel.network)
        drawn = {name: seeds if PANELS[name].drawn else 1 for name in names}
        lines = [(name, seed) for name, count in drawn.items() for seed in range(count)]
        watched = [(name, rule) for name in names if not PANELS[name].network for rule in SHOWN if rule in rules]
        self.watch.plan(len(jobs) + len(lines) + len(watched) + ("toy" in names))
        with ThreadPoolExecutor(self.threads) as pool:
            try:
                # First in, first out: a run that waits for its line waits for something already begun.
                line = {key: pool.submit(self._kept, Line, f"line-{key[0]}-{key[1]}-{self.scaling}", partial(self._line, *key))
                        for key in lines}  # fmt: skip
                found = {job: pool.submit(self._kept, Run, str(job), partial(self._run, job, line)) for job in longest_first}
                exact = pool.submit(self._kept, ExactPosterior, "exact-toy", self._exact) if "toy" in names else None
                sheet = [pool.submit(self._kept, Guarantee, f"guarantee-{name}-{rule}-{self.scaling}",
                                     partial(self._guarantee, name, rule, line)) for name, rule in watched]  # fmt: skip
                runs = [found[job].result() for job in jobs]
                return runs, exact.result() if exact else None, [each.result() for each in sheet]
            except BaseException:
                self._stopped.set()
                pool.shutdown(cancel_futures=True)
                raise

    def _progress(self, name: str, share: float) -> None:
        if self._stopped.is_set():
            raise CancelledError
        self.watch.progress(name, min(share, 0.99))  # done is when it is kept

    def _kept(self, kind: type[Any], name: str, make: Any) -> Any:
        value = self.store.load(name, kind)
        if value is None:
            self._progress(name, 0.0)
            value = make(partial(self._progress, name))
            self.store.save(name, value)
        self.watch.progress(name, 1.0)
        return value

    def _line(self, name: str, seed: int, progress: Progress) -> Line:
        return best_in_hindsight(PANELS[name], self._stream(name, seed, in_order=False), progress)

    def _run(self, job: Job, lines: dict[tuple[str, int], Future[Line]], progress: Progress) -> Run:
        line = lines[job.data, job.seed if job.panel.drawn else 0].result()
        stream = self._stream(job.data, job.seed, in_order=True)
        return run(job, stream, line, progress)

    def _guarantee(self, name: str, rule: str, lines: dict[tuple[str, int], Future[Line]], progress: Progress) -> Guarantee:
        return guarantee(PANELS[name], rule, self._stream(name, 0, in_order=True), lines[name, 0].result())

    def _exact(self, progress: Progress) -> ExactPosterior:
        return exact_posterior(PANELS["toy"], self._stream("toy", 0, in_order=True))

    def _stream(self, name: str, seed: int, *, in_order: bool) -> Stream:
        """The data of a panel in the file's order, or in that of a seed; of the latter, one for each thread is kept."""
        panel = PANELS[name]
        plain = (name, seed if panel.drawn else 0)
        with self._lock:
            if plain not in self._plain:
                self._plain[plain] = prepared(panel, seed, self.scaling)
            if not in_order:
                return self._plain[plain]
            if (name, seed) not in self._ordered:
                while len(self._ordered) >= self.threads:
                    self._ordered.pop(next(iter(self._ordered)))
                self._ordered[name, seed] = ordered(panel, self._plain[plain], seed)
            return self._ordered[name, seed]
