"""What is measured of the service, as Prometheus reads it: events, refusals, latencies, queues, loss, certified regret."""

from __future__ import annotations

import time
from collections.abc import Iterator, MutableMapping
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from onlinevi.adapters.measures import TOLD, figures
from onlinevi.adapters.serve.folder import Folder
from onlinevi.adapters.serve.keeper import Keeper, Overloaded, Unavailable

BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Seconds."""
PATIENCE = 2.0
"""Seconds that a figure which the writer knows is waited for; without it there are the others."""


class Measures:
    """Counters and histograms of calls, and what is read off the models when it is asked for."""

    def __init__(self, folder: Folder) -> None:
        self._registry = CollectorRegistry(auto_describe=True)
        named = ["method", "route"]
        self._seconds = Histogram(
            "onlinevi_request_seconds", "Seconds from a request to its answer", named, buckets=BUCKETS, registry=self._registry
        )
        self._answers = Counter("onlinevi_answers", "Answers by their status", [*named, "status"], registry=self._registry)
        self._registry.register(_OfModels(folder))

    def answered(self, scope: MutableMapping[str, Any], status: int, seconds: float) -> None:
        """Count an answer. Routes are those of the interface, so that no request makes a name of its own."""
        route = getattr(scope.get("route"), "path", "none")
        method = scope["method"] if scope["method"] in ("GET", "POST", "DELETE") else "other"
        self._answers.labels(method, route, str(status)).inc()
        if route != "/models/{model}/live":  # which goes on for as long as somebody looks
            self._seconds.labels(method, route).observe(seconds)

    def exposition(self) -> bytes:
        """All of it in Prometheus' text format."""
        return bytes(generate_latest(self._registry))


class _OfModels:
    """Figures of each model at the moment that they are asked for."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def describe(self) -> Iterator[Metric]:
        return iter(())

    def collect(self) -> Iterator[Metric]:
        models = list(self._folder.models.values())
        asked = {keeper: _asked(keeper) for keeper in models}
        said = CounterMetricFamily(
            "onlinevi_events", "Events since the start, by what became of them", labels=["model", "status"]
        )
        purged = CounterMetricFamily("onlinevi_purged", "Rows that waited too long for their labels", labels=["model"])
        commits = CounterMetricFamily("onlinevi_commits", "Groups of events written together", labels=["model"])
        seconds = CounterMetricFamily("onlinevi_commit_seconds", "Seconds spent to write and learn them", labels=["model"])
        gauges = {
            name: GaugeMetricFamily(f"onlinevi_{name}", text, labels=["model"])
            for name, text in (
                ("ready", "1 where a model is served, 0 where its files are damaged"),
                ("journal_events", "Events in the journal"),
                ("queued_rows", "Rows that wait to be written"),
                *TOLD.items(),
                ("snapshot_age_seconds", "Since the newest snapshot"),
            )
        }
        for keeper in models:
            own, counts, published = [keeper.name], keeper.counts, keeper.published
            for status, count in dict(counts.statuses).items():
                said.add_metric([*own, status], count)
            purged.add_metric(own, counts.purged)
            commits.add_metric(own, counts.commits)
            seconds.add_metric(own, counts.commit_seconds)
            gauges["ready"].add_metric(own, float(keeper.failure is None))
            gauges["journal_events"].add_metric(own, published.number)
            gauges["queued_rows"].add_metric(own, keeper.queued)
            if counts.snapshot_at:
                gauges["snapshot_age_seconds"].add_metric(own, time.time() - counts.snapshot_at)
            job = published.job
            if job is None or published.average_loss is None:
                continue
            found = figures(job, published.average_loss, published.hit_rate or 0.0)
            for name, value in found.items():
                gauges[name].add_metric(own, value)
            if "coverage" not in found and (coverage := _answer(asked[keeper])) is not None:
                gauges["coverage"].add_metric(own, coverage)
        yield from (said, purged, commits, seconds, *gauges.values())


def _asked(keeper: Keeper) -> Future[float | None] | None:
    """How often sets of classes had what came, which the writer knows."""
    job = keeper.published.job
    if job is None or job.kind != "classes":
        return None
    with suppress(Overloaded, Unavailable):
        return keeper.ask(lambda history: None if history.job is None else history.job.metrics.coverage)
    return None


def _answer(asked: Future[float | None] | None) -> float | None:
    """What the writer said, where it had the time."""
    with suppress(TimeoutError, CancelledError, Unavailable):
        return None if asked is None else asked.result(PATIENCE)
    return None
