"""The live page: one for all models, and the stream of server-sent events that keeps it up to date."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from fastapi import FastAPI
from fastapi.responses import Response

from onlinevi.adapters.serve.history import History
from onlinevi.adapters.serve.keeper import Keeper, Overloaded, Unavailable
from onlinevi.adapters.serve.service import Service, event
from onlinevi.engine import Vector
from onlinevi.runs import (
    RegretCurve,
    Results,
    charts_script,
    headline,
    page_style,
    parts_of,
    plotly_script,
    results_of,
    to_plain,
)

EVERY = 1.0
"""Seconds between two looks at a model."""
FEWEST_POINTS = 3
"""Of a curve: fewer show nothing."""
ALIVE = 15.0
"""Seconds after which a word is sent where nothing changed, so that a broken connection is known."""


class Looks:
    """What pages show of each model: worked out once, however many look."""

    def __init__(self, service: Service) -> None:
        self._service, self._looks = service, WeakKeyDictionary[Keeper, _Look]()

    async def stream(self, keeper: Keeper) -> AsyncIterator[bytes]:
        """What a page shows of a model, each time that it has changed, until the service is about to end."""
        look, service = self._looks.setdefault(keeper, _Look()), self._service
        listed, said, sent_at = None, None, 0.0
        while not service.folder.stopping and service.folder.models.get(keeper.name) is keeper:
            models = [service.about(one) for one in service.folder.models.values()]
            if models != listed:
                yield event("models", to_plain(models))
                listed, sent_at = models, time.monotonic()
            counts = keeper.counts
            mark = keeper.published.number, keeper.failure, counts.answered, counts.predicted, counts.events_a_second
            if mark != said:
                yield await look.at(mark, keeper)
                said, sent_at = mark, time.monotonic()
            elif time.monotonic() - sent_at > ALIVE:
                yield event("alive", {})
                sent_at = time.monotonic()
            await asyncio.sleep(EVERY)


class _Look:
    """The last look at a model."""

    def __init__(self) -> None:
        self._mark: Any = None
        self._seen, self._lock = b"", asyncio.Lock()

    async def at(self, mark: Any, keeper: Keeper) -> bytes:
        """What is to be sent to whoever has not seen this yet."""
        async with self._lock:
            if mark != self._mark:
                shown = await _shown(keeper)
                self._seen = await asyncio.to_thread(lambda: event("model", to_plain(shown)))
                self._mark = mark
            return self._seen


async def _shown(keeper: Keeper) -> dict[str, Any]:
    """What a page shows of a model: the charts of a report, and what has happened last."""
    counts = keeper.counts
    shown = {
        "name": keeper.name,
        "target": keeper.target,
        "failure": keeper.failure,
        "number": keeper.published.number,
        "queued": keeper.queued,
        "recent": list(counts.recent)[::-1],
        "refused": list(counts.refused)[::-1],
        "statuses": dict(counts.statuses),
        "events_a_second": counts.events_a_second,
        "learn_ms": _milliseconds(counts.learn_seconds),
        "predict_ms": _milliseconds(counts.predict_seconds),
    }
    if keeper.failure is None and keeper.published.job is not None:
        with suppress(Overloaded, Unavailable):  # it shows the rest
            results, course = await asyncio.wrap_future(keeper.ask(_known))
            if results is not None:
                shown |= await asyncio.to_thread(parts_of, _with_course(results, course))
                shown["sentences"] = [*headline(results), *filter(None, [results.certificate])]
    return shown


def _milliseconds(times: Collection[float]) -> list[float] | None:
    """Of calls: half of them took no longer than the first, 99 in 100 no longer than the second."""
    return [1e3 * float(part) for part in np.quantile(list(times), [0.5, 0.99])] if times else None


def _known(history: History) -> tuple[Results | None, Vector]:
    """What the model knows of itself between two groups, None where it was taken back to its beginning meanwhile; and what was
    certain of its regret on the way."""
    job = history.job
    return None if job is None or job.state is None else results_of(job), history.course.table


def _with_course(results: Results, course: Vector) -> Results:
    """With a curve of what was certain of the regret, where a run keeps none: of more than one rule."""
    if len(course) < FEWEST_POINTS or (results.regret is not None and results.regret.certified is not None):
        return results
    return replace(results, regret=RegretCurve(course[:, 0].tolist(), course[:, 1].tolist()))


def add_page(api: FastAPI) -> None:
    """The page and what it loads; it asks for everything else, with a token where one is needed."""
    for path, name, kind in (
        ("/", "live.html", "text/html"),
        ("/assets/live.js", "live.js", "text/javascript"),
        ("/assets/page.css", "live.css", "text/css"),
    ):
        api.get(path, include_in_schema=False)(_asset(name, kind))
    api.get("/assets/charts.js", include_in_schema=False)(_script(charts_script))
    api.get("/assets/plotly.js", include_in_schema=False)(_script(plotly_script))


def _asset(name: str, kind: str) -> Callable[[], Awaitable[Response]]:
    async def asset() -> Response:
        return Response(_content(name), media_type=kind)

    return asset


@cache
def _content(name: str) -> str:
    own = (files("onlinevi.adapters.serve") / name).read_text(encoding="utf-8")
    return page_style() + own if name == "live.css" else own


def _script(source: Callable[[], str]) -> Callable[[], Awaitable[Response]]:
    content = cache(source)

    async def script() -> Response:
        return Response(content(), media_type="text/javascript")

    return script
