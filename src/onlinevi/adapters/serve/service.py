"""What the service does for each call, apart from HTTP: predict, learn, tell of a model, go back, make and archive."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from onlinevi.adapters.serve.folder import Folder
from onlinevi.adapters.serve.history import Answer, Asked, History
from onlinevi.adapters.serve.keeper import Keeper, Overloaded, Published
from onlinevi.adapters.serve.lines import as_line
from onlinevi.adapters.serve.requests import Refused, Rows
from onlinevi.runs import certified, metrics_by_name, pack_job, summarise, to_plain, weights

PREDICTING = 2
"""Threads that predict."""
MOST_PREDICTING = 256
"""Calls that wait for one of them."""
AT_ONCE = 0.003
"""Seconds of a processor: a row that takes less is predicted where calls are answered, which wait for it."""
T = TypeVar("T")
STATUS = {"learned": 200, "known": 200, "refused": 422, "unknown": 404, "conflict": 409}
"""The status of a call by what became of its one event."""


class Turn:
    """Work of calls that learn, done one after another: who predicts gets between, and waits for one of them at most."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def __call__(self, work: Callable[[], T]) -> T:
        async with self._lock:
            await asyncio.sleep(0)  # whatever came meanwhile goes first
            return work()


class Service:
    """A folder of models, and the threads that predict."""

    def __init__(self, folder: Folder, imported: Collection[str] = ()) -> None:
        self.folder, self.imported = folder, imported
        self.started = time.time()
        self.turn = Turn()
        self._threads = ThreadPoolExecutor(PREDICTING, thread_name_prefix="predicts")
        self._predicting = 0

    async def predict(self, keeper: Keeper, rows: Rows) -> dict[str, Any]:
        """What is said of rows; those with an id are kept for their labels."""
        if self._predicting >= MOST_PREDICTING:
            raise Overloaded(f"{self._predicting} calls wait to be predicted: try again in a moment")
        self._predicting += 1
        counts, began = keeper.counts, time.perf_counter()
        try:
            if counts.predicts_at_once and rows.single and not rows.explain:
                number, said, refused = _predict(keeper, rows)  # to change threads twice would take longer
            else:
                number, said, refused = await asyncio.get_running_loop().run_in_executor(self._threads, _predict, keeper, rows)
        finally:
            self._predicting -= 1
        counts.predicted += 1
        counts.predict_seconds.append(time.perf_counter() - began)
        if refused and rows.single:
            raise Refused(422, *refused[0])
        for row, (reason, column) in refused.items():
            said[row] = {"error": reason, "place": column}
        kept = [(k, id_) for k, id_ in enumerate(rows.ids) if id_ is not None and k not in refused]
        if kept:
            answers = await asyncio.wrap_future(keeper.wait([(id_, as_line(rows.rows[k])) for k, id_ in kept]))
            for (k, _), answer in zip(kept, answers, strict=True):
                if answer.status == "conflict":
                    if rows.single:
                        raise Refused(409, answer.reason, "id")
                    said[k]["error"] = answer.reason
        for one, id_ in zip(said, rows.ids, strict=True):
            if id_ is not None:
                one["id"] = id_
        return {"events": number, **(said[0] if rows.single else {"predictions": said})}

    async def learn(self, keeper: Keeper, asked: list[Asked], single: bool) -> tuple[int, dict[str, Any]]:
        """Learn events, when they are on disk: the status, and what became of each."""
        began = time.perf_counter()
        answers: list[Answer] = await asyncio.wrap_future(keeper.learn(asked))
        keeper.counts.learn_seconds.append(time.perf_counter() - began)
        told = await self.turn(lambda: [_told(one, answer) for one, answer in zip(asked, answers, strict=True)])
        if single:
            return STATUS[answers[0].status], told[0]
        codes = {STATUS[answer.status] for answer in answers}
        status = 200 if 200 in codes else min(codes)
        return status, {"learned": sum(answer.status == "learned" for answer in answers), "events": told}

    # --- about a model

    def about(self, keeper: Keeper) -> dict[str, Any]:
        """A model in a few facts."""
        published = keeper.published
        facts = {
            "name": keeper.name,
            "ready": keeper.failure is None,
            "target": keeper.target,
            "events": published.number,
            "events_a_second": keeper.counts.events_a_second,
            "queued": keeper.queued,
        }
        if keeper.failure is not None:
            return facts | {"failure": keeper.failure}
        if published.job is None:
            return facts | {"task": None, "columns": []}
        job = published.job
        return facts | {
            "task": job.kind,
            "classes": list(job.class_names),
            "columns": list(job.schema.kinds),
            "count": published.count,
            "average_loss": published.average_loss,
        }

    async def ask(self, keeper: Keeper, name: str) -> Any:
        """What is worked out between two groups: ``certificate``, ``weights``, ``metrics``, ``info`` or ``checkpoint``."""
        return await asyncio.wrap_future(keeper.ask(lambda history: _of_history(history, name)))

    async def snapshots(self, keeper: Keeper) -> list[dict[str, Any]]:
        """The versions that lie on disk, and the present one."""
        return await asyncio.wrap_future(keeper.ask(_snapshots))

    async def roll_back(self, keeper: Keeper, number: int, dry_run: bool) -> dict[str, Any]:
        """Go back to what was known behind an event, and tell what is lost by it; or tell it only."""
        try:
            return await asyncio.wrap_future(keeper.ask(lambda history: _roll_back(history, number, dry_run)))
        except ValueError as error:
            raise Refused(422, str(error), "to") from None

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)
        self.folder.close()


def _predict(keeper: Keeper, rows: Rows) -> tuple[int, list[dict[str, Any]], dict[int, tuple[str, str | None]]]:
    """What is said of rows. How long one takes by itself tells where the next one is predicted."""
    began = time.thread_time()
    found = keeper.predict(rows.rows, rows.explain)
    if rows.single and not rows.explain:
        keeper.counts.predicts_at_once = time.thread_time() - began < AT_ONCE
    return found


def columns_known(published: Published, target: str) -> Collection[str] | None:
    """The columns of a model; None before its first event, when any are taken."""
    if published.job is None:
        return None
    job = published.job
    return (job.schema.kinds.keys() - {target}) | ({job.settings.weight} if job.settings.weight else set())


def _told(asked: Asked, answer: Answer) -> dict[str, Any]:
    told: dict[str, Any] = {"status": answer.status, "event": answer.number}
    if asked.id is not None:
        told["id"] = asked.id
    if answer.said is not None:
        told |= answer.said
    if answer.reason:
        told |= {"error": answer.reason, "place": answer.column}
    return told


def _of_history(history: History, name: str) -> Any:
    job = history.job
    if job is None or job.state is None:
        raise Refused(409, "the model has learned nothing yet: send events to learn first")
    if name == "checkpoint":
        return pack_job(job)
    if name == "certificate":
        return certified(job)._asdict()
    if name == "weights":
        return {"weights": weights(job)}
    if name == "info":
        return summarise(job)
    return to_plain(metrics_by_name(job) | {"certified_regret": certified(job).regret})


def _snapshots(history: History) -> list[dict[str, Any]]:
    return [{"events": number} for number in history.snapshots] + (
        [{"events": history.number, "now": True}] if history.number not in history.snapshots else []
    )


def _roll_back(history: History, number: int, dry_run: bool) -> dict[str, Any]:
    before = history.number
    if not 0 <= number <= before:
        raise ValueError(f"to={number}: there are events 0 to {before:,}")
    ids = history.journal.ids_behind(number, 20)
    lost = {"from": before, "to": number, "taken_back": before - number, "ids": ids, "done": not dry_run}
    if not dry_run:
        history.roll_back(number)
    return lost


def event(name: str, document: Any) -> bytes:
    """A server-sent event."""
    return f"event: {name}\ndata: {json.dumps(document, ensure_ascii=False, allow_nan=False)}\n\n".encode()
