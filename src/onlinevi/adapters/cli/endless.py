"""A run for those who look on while it goes on: figures for Prometheus, and results written anew at checkpoints."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from onlinevi.adapters.cli.outcome import write_results
from onlinevi.adapters.measures import TOLD, figures
from onlinevi.runs import Job, results_of

HOST = "127.0.0.1"
FIRST, SHARE = 5.0, 20.0
"""Results are written anew from so many seconds on, and then not before so many times as long as that took last."""


class Rewriter:
    """The run's files for people: written behind a checkpoint, or as soon behind it as that does not take much of the time."""

    def __init__(self, out: Path) -> None:
        self._out, self._next, self._due = out, time.monotonic() + FIRST, False

    def saved(self, job: Job) -> None:
        """There is a checkpoint."""
        self._due = True

    def __call__(self, job: Job, stream: Any = None) -> None:
        """Behind each batch, and while nothing comes."""
        begun = time.monotonic()
        if not self._due or begun < self._next or not job.metrics.count:
            return
        write_results(self._out, results_of(job, "running").to_json())
        now = time.monotonic()
        self._due, self._next = False, now + SHARE * (now - begun)


class Published(NamedTuple):
    """A run as it was behind a batch."""

    job: Job
    """Of which state, schema and settings stay as they are."""
    events: int
    average_loss: float
    hit_rate: float
    bad_rows: int
    waiting: dict[str, int]
    became: dict[str, int]
    """What became of rows and labels that came apart."""


class Exporter:
    """The figures of a run on a port of this machine. Use it in a ``with``."""

    def __init__(self, port: int) -> None:
        try:
            from prometheus_client import CollectorRegistry, start_http_server
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError('--metrics-port needs prometheus-client: pip install "onlinevi[serve]"') from error
        registry = CollectorRegistry()
        self._published: Published | None = None
        registry.register(self)
        try:
            self._server, self._thread = start_http_server(port, HOST, registry)
        except (OSError, OverflowError) as error:
            raise ValueError(f"--metrics-port {port}: cannot be had ({error}): another, or 0 for a free one") from error
        self.address = f"http://{HOST}:{self._server.server_port}/metrics"

    def publish(self, job: Job) -> None:
        """What is known behind a batch."""
        metrics, late = job.metrics, job.late
        waiting = {} if late is None else {"rows": len(late.rows), "labels": len(late.labels)}
        became = {} if late is None or late.wait is None else asdict(late.counts)
        facts = metrics.count, metrics.average_loss, metrics.hit_rate, job.rejected.count
        self._published = Published(copy.copy(job), *facts, waiting, became)

    def collect(self) -> Iterator[Any]:
        """The figures, as Prometheus asks for them."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        known = self._published
        if known is None:
            return
        yield CounterMetricFamily("onlinevi_events", "Events that were predicted and learned from", value=known.events)
        yield CounterMetricFamily("onlinevi_bad_rows", "Rows that could not be used", value=known.bad_rows)
        if known.became:
            late = CounterMetricFamily("onlinevi_late", "Rows and labels that came apart, by their fate", labels=["what"])
            for what, count in known.became.items():
                late.add_metric([what], count)
            yield late
        if known.waiting:
            waiting = GaugeMetricFamily("onlinevi_waiting", "Rows without a label, and labels without a row", labels=["what"])
            for what, count in known.waiting.items():
                waiting.add_metric([what], count)
            yield waiting
        if known.events:
            for name, value in figures(known.job, known.average_loss, known.hit_rate).items():
                yield GaugeMetricFamily(f"onlinevi_{name}", TOLD[name], value=value)

    def __enter__(self) -> Exporter:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
