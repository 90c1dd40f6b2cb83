"""All experiments of the paper, over several threads, and what is written of them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from onlinevi.data import DataUnavailable
from onlinevi.paper.claims import Claim, judge
from onlinevi.paper.experiments import (
    RULES,
    BestWeights,
    Experiment,
    Outcome,
    OutcomeFolder,
    best_in_hindsight,
    run_experiment,
    source_digest,
)
from onlinevi.paper.figures import draw
from onlinevi.paper.panels import PANELS, Scaling, Stream, loaded
from onlinevi.paper.readings import READINGS, Reading
from onlinevi.paper.sheets import GUARANTEED, ExactPosterior, Guarantee, exact_posterior, guarantee
from onlinevi.paper.tables import write

Progress: TypeAlias = Callable[[float], None]
"""Told the share of a piece of work that is done; it may raise, to stop it."""


BestOf: TypeAlias = Mapping[tuple[str, int], Future[BestWeights]]
"""The best fixed weights of a data set drawn with a seed, once they are found."""


class Watcher(Protocol):
    """Who is told how far the work is, from several threads."""

    def plan(self, total: int) -> None: ...
    def progress(self, name: str, share: float) -> None: ...


class Silent:
    """A watcher that shows nothing."""

    def plan(self, total: int) -> None: ...
    def progress(self, name: str, share: float) -> None: ...


@dataclass(frozen=True)
class Reproduction:
    """The outcomes of all runs, the verdicts, and the files that were written."""

    runs: list[Outcome]
    claims: list[Claim]
    beside: dict[Reading, list[Outcome]]
    """The runs of the other readings of the settings."""
    missing: dict[str, str]
    paths: list[Path]
    seconds: float


def reproduce(
    out: Path | str = "out",
    *,
    data: Sequence[str] | None = None,
    rules: Sequence[str] | None = None,
    seeds: int = 5,
    scaling: Scaling = "standard-row",
    network: str = "width-5",
    beside: int = 2,
    jobs: int | None = None,
    watch: Watcher | None = None,
) -> Reproduction:
    """Repeat the paper's experiments, and write the figure, the table, the results and a verdict on each claim.

    ``data`` and ``rules`` choose among the panels and rules, by default all. ``scaling`` and ``network`` say how the settings
    that the paper leaves open are read; the other readings (``READINGS``) are run too, the slow network with ``beside``
    of the orders, and shown in one table; ``beside=0`` leaves them out. A data set that cannot be had is left out and said in
    the results, unless it was named. Finished runs are kept in out/runs, so a second call goes on after the first; the
    numbers are the same bits whatever ``jobs``, the number of threads.
    """
    start, out = time.perf_counter(), Path(out)
    names, rule_names = _known(data, PANELS, "data"), _known(rules, RULES, "rules")
    reading = Reading(scaling, network)
    if seeds < 1:
        raise ValueError(f"seeds={seeds}: needs at least one")
    if beside < 0:
        raise ValueError(f"beside={beside}: needs 0, for no other reading, or more")
    _require("matplotlib", "threadpoolctl", *(["jax"] if "california" in names else []))
    missing = _missing(names, named=data is not None)
    names = [name for name in names if name not in missing]
    threads, folder, watch = jobs or os.cpu_count() or 1, OutcomeFolder(out / "runs"), watch or Silent()
    main = _Work(folder, reading, threads, watch, dict.fromkeys(names, seeds), rule_names, sheets=True)
    # The toy data are never scaled: the other readings share their runs.
    orders = {name: min(seeds, beside) if PANELS[name].network else seeds for name in names if not PANELS[name].drawn}
    others = [other for other in READINGS if other != reading] if orders and beside else []
    works = {other: _Work(folder, other, threads, watch, orders, rule_names, sheets=False) for other in others}
    watch.plan(sum(work.size for work in (main, *works.values())))
    with _one_thread_each():
        runs, exact, guarantees = main.all()
        drawn = [run for run in runs if PANELS[run.data].drawn]
        found = {other: drawn + work.all()[0] for other, work in works.items()}
    claims = judge(runs)
    extra = {
        "source": source_digest(),
        "exact_posterior": asdict(exact) if exact else None,
        "guarantees": [asdict(each) for each in guarantees],
    }
    paths = write(reading, runs, claims, found, missing, extra, out) + (draw(runs, exact, guarantees, out) if runs else [])
    return Reproduction(runs, claims, found, missing, paths, time.perf_counter() - start)


def _missing(names: Sequence[str], *, named: bool) -> dict[str, str]:
    """The data sets that cannot be had, and why."""
    missing = {}
    for name in names:
        try:
            loaded(PANELS[name], 0)
        except DataUnavailable as error:
            if named:
                raise
            missing[name] = str(error)
    return missing


def _one_thread_each() -> AbstractContextManager[Any]:
    """The pieces of work share the cores; a matrix product or an optimiser that did too would wait for the others."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1, user_api="blas")  # type: ignore[no-any-return]


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
    """The runs of one reading, over several threads: the compiled loops release Python's lock."""

    def __init__(
        self,
        folder: OutcomeFolder,
        reading: Reading,
        threads: int,
        watch: Watcher,
        orders: Mapping[str, int],
        rules: Sequence[str],
        *,
        sheets: bool,
    ) -> None:
        self.folder, self.reading, self.threads, self.watch = folder, reading, threads, watch
        self._plain: dict[tuple[str, int], Stream] = {}
        self._ordered: dict[tuple[str, int], Stream] = {}
        self._lock, self._stopped = threading.Lock(), threading.Event()
        self._asked = [
            Experiment(name, rule, seed, reading.scaling, reading.model_of(PANELS[name]))
            for name, seeds in orders.items()
            for seed in range(seeds)
            for rule in rules
        ]
        self._lines = list(dict.fromkeys(self._line_of(each.data, each.seed) for each in self._asked))
        convex = [name for name in orders if not PANELS[name].network]
        self._watched = [(name, rule) for name in convex for rule in GUARANTEED if rule in rules] if sheets else []
        self._with_exact = sheets and "toy" in orders

    @property
    def size(self) -> int:
        """How many pieces of work there are."""
        return len(self._asked) + len(self._lines) + len(self._watched) + self._with_exact

    def all(self) -> tuple[list[Outcome], ExactPosterior | None, list[Guarantee]]:
        """Every run, in a fixed order; what else the figures show."""
        # The network's runs are the longest: they begin first, so that no thread is left alone with them at the end.
        longest_first = sorted(self._asked, key=lambda experiment: not experiment.panel.network)
        scaling, model_of = self.reading.scaling, self.reading.model_of
        with ThreadPoolExecutor(self.threads) as pool:

            def submit(kind: type[Any], name: str, make: Callable[..., Any], *arguments: Any) -> Future[Any]:
                return pool.submit(self._kept, kind, name, make, *arguments)

            try:
                # First in, first out: a run that waits for its line waits for something already begun.
                best = {(data, seed): submit(BestWeights, f"line-{data}-{seed}-{scaling}-{model_of(PANELS[data])}",
                                             self._best, data, seed)
                        for data, seed in self._lines}  # fmt: skip
                found = {each: submit(Outcome, str(each), self._run, each, best) for each in longest_first}
                exact = submit(ExactPosterior, "exact-toy", self._exact) if self._with_exact else None
                sheet = [submit(Guarantee, f"guarantee-{data}-{rule}-{scaling}", self._guarantee, data, rule, best)
                         for data, rule in self._watched]  # fmt: skip
                runs = [found[each].result() for each in self._asked]
                return runs, exact.result() if exact else None, [each.result() for each in sheet]
            except BaseException:
                self._stopped.set()
                pool.shutdown(cancel_futures=True)
                raise
            finally:
                self._plain.clear()  # the next reading needs the memory
                self._ordered.clear()

    def _line_of(self, name: str, seed: int) -> tuple[str, int]:
        """Of whose events a run's line is: where seeds only order the same events, of the first's."""
        return name, seed if self.reading.streams_differ(PANELS[name]) else 0

    def _progress(self, name: str, share: float) -> None:
        if self._stopped.is_set():
            raise CancelledError
        self.watch.progress(name, min(share, 0.99))  # done is when it is kept

    def _kept(self, kind: type[Any], name: str, make: Callable[..., Any], *arguments: Any) -> Any:
        """What was kept under this name, or what is made now and kept."""
        value = self.folder.load(name, kind)
        if value is None:
            self._progress(name, 0.0)
            value = make(partial(self._progress, name), *arguments)
            self.folder.save(name, value)
        self.watch.progress(name, 1.0)
        return value

    def _best(self, progress: Progress, name: str, seed: int) -> BestWeights:
        panel = PANELS[name]
        stream = self._stream(name, seed, in_order=self.reading.streams_differ(panel))
        return best_in_hindsight(panel, self.reading.model_of(panel), stream, progress)

    def _run(self, progress: Progress, experiment: Experiment, best: BestOf) -> Outcome:
        weights = best[self._line_of(experiment.data, experiment.seed)].result()
        return run_experiment(experiment, self._stream(experiment.data, experiment.seed, in_order=True), weights, progress)

    def _guarantee(self, progress: Progress, name: str, rule: str, best: BestOf) -> Guarantee:
        return guarantee(PANELS[name], rule, self._stream(name, 0, in_order=True), best[name, 0].result())

    def _exact(self, progress: Progress) -> ExactPosterior:
        return exact_posterior(PANELS["toy"], self._stream("toy", 0, in_order=True))

    def _stream(self, name: str, seed: int, *, in_order: bool) -> Stream:
        """The data of a panel in the file's order, or in that of a seed; of the latter, one for each thread is kept."""
        panel = PANELS[name]
        plain = (name, seed if panel.drawn else 0)
        with self._lock:
            if plain not in self._plain:
                self._plain[plain] = self.reading.in_file_order(panel, seed)
            if not in_order:
                return self._plain[plain]
            if (name, seed) not in self._ordered:
                while len(self._ordered) >= self.threads:
                    self._ordered.pop(next(iter(self._ordered)))
                self._ordered[name, seed] = self.reading.in_order(panel, self._plain[plain], seed)
            return self._ordered[name, seed]
