"""Rows and labels that come apart, and the same learned from by a loop that knows nothing of batches."""

from __future__ import annotations

import json
import math
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from onlinevi.data import open_stream
from onlinevi.runs import Job, Rejected, Settings, Stopper, Wait
from onlinevi.runs.begin import first_job
from onlinevi.runs.late import Merge

Record = dict[str, Any]


def two_streams(seed: int, count: int = 80) -> tuple[list[Record], list[Record]]:
    """Rows whose labels come late, early, twice, never, or for nobody, in times that now and then go back; all in units of a
    second, and whole, so that many fall together."""
    rng, rows, labels = np.random.default_rng(seed), [], []
    for number in range(count):
        time, x = int(number * 2 + rng.integers(-6, 3)), rng.standard_normal(2).round(3).tolist()
        key = f"k{number if rng.random() < 0.9 else number - int(rng.integers(1, 9))}"
        rows.append({"id": key, "at": time, "a": x[0], "b": x[1]})
        label = "yes" if x[0] + rng.standard_normal() > 0.0 else "no"
        times = time + rng.integers(-10, 40, int(rng.choice([0, 1, 1, 1, 2])))
        labels += [{"id": key, "at": at, "y": label} for at in times.tolist()]
    labels += [{"id": f"nobody{number}", "at": int(rng.integers(0, 2 * count)), "y": "no"} for number in range(count // 10)]
    order = np.argsort([label["at"] + rng.integers(0, 4) for label in labels], kind="stable")
    return rows, [labels[place] for place in order]


def write(path: Path, records: list[Record]) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def learned(
    settings: Settings, rows: str, labels: str, sizes: tuple[int, int] = (8192, 8192), bad: str = "skip"
) -> tuple[Job, list[tuple[int, Any, float]]]:
    """What is learned where the two are read in batches of these sizes, and what was said of each row."""
    rejected, said = Rejected(bad), []

    def on_rows(rows: Any, forecast: Any, loss: Any, parts: Any = None) -> None:
        names = (*job.class_names, None) if job.class_names else None
        guesses = [names[code] for code in forecast.guess] if names else forecast.mean.tolist()
        said.extend(zip(rows.rows.tolist(), guesses, forecast.prediction.tolist(), strict=True))

    with ExitStack() as opened:
        of_rows, of_labels = (
            opened.enter_context(open_stream(source, batch_rows=size, bad=policy))
            for source, size, policy in zip((rows, labels), sizes, (rejected, rejected.beside), strict=True)
        )
        job, _ = first_job(settings, of_rows, rejected, of_labels)
        job.on_rows = on_rows
        for _ in job.timed(Merge(job, of_rows, of_labels).turns(Stopper().waiting)):
            pass
        job.finish()
    return job, said


def in_order(rows: list[Record], labels: list[Record]) -> list[tuple[float, int, Record]]:
    """Both by the latest time of each so far, rows first."""
    events = []
    for kind, records in enumerate((rows, labels)):
        latest = -math.inf
        for record in records:
            latest = max(latest, record["at"])
            events.append((latest, kind, record))
    return sorted(events, key=lambda event: event[:2])


def by_hand(job: Job, rows: list[Record], labels: list[Record], wait: Wait) -> tuple[Any, Counter[str], list[float]]:
    """The state, what became of all, and what was said of each row: one event after the other, by the rules as told."""
    learner, state = job.learner, None
    waiting: list[tuple[str, float, int, Any]] = []
    early: list[tuple[str, float, int, float]] = []
    gone: list[tuple[str, float, int, str]] = []
    counts, came, now, said = Counter[str](), 0, -math.inf, []
    codes = {"no": -1.0, "yes": 1.0}

    def learn(x: Any, y: float) -> None:
        nonlocal state
        state, _ = learner.update_many(state, x, np.array([y]))

    def too_old(time: float, since: int, counted: bool) -> bool:
        if counted:
            return wait.rows is not None and came - since >= wait.rows
        return wait.seconds is not None and now > time + wait.seconds

    def let_go(counted: bool) -> None:
        while waiting and too_old(*waiting[0][1:3], counted):
            key, _, _, x = waiting.pop(0)
            if wait.otherwise is not None:
                learn(x, codes[wait.otherwise])
            counts["left_out" if wait.otherwise is None else "otherwise"] += 1
            gone[:] = [one for one in gone if one[0] != key]
            gone.append((key, now, came, "late"))
        while early and too_old(*early[0][1:3], counted):
            early.pop(0)
            counts["orphans"] += 1
        while gone and too_old(*gone[0][1:3], counted):
            gone.pop(0)

    def settle(key: str, became: str) -> None:
        gone[:] = [one for one in gone if one[0] != key]
        gone.append((key, now, came, became))
        del gone[: -wait.most]

    for time, kind, record in in_order(rows, labels):
        now, key = time, record["id"]
        let_go(counted=False)
        held = next((place for place, one in enumerate(waiting) if one[0] == key), None)
        known = next((place for place, one in enumerate(early) if one[0] == key), None)
        became = next((one[3] for one in gone if one[0] == key), None)
        if kind == 0:
            x = np.array([[record["a"], record["b"]]])
            state = learner.init(2) if state is None else state
            said.append(float(learner.forecast(state, x).prediction[0]))
            let_go(counted=True)
            held = next((place for place, one in enumerate(waiting) if one[0] == key), None)
            known = next((place for place, one in enumerate(early) if one[0] == key), None)
            if held is not None:
                counts["repeated"] += 1
            elif known is not None:
                learn(x, early.pop(known)[3])
                counts.update(["early", "labelled"])
                settle(key, "labelled")
            else:
                waiting.append((key, now, came, x))
                gone[:] = [one for one in gone if one[0] != key]
                if len(waiting) > wait.most:
                    counts["crowded"] += 1
                    settle(waiting.pop(0)[0], "late")
            came += 1
        elif held is not None:
            learn(waiting.pop(held)[3], codes[record["y"]])
            counts["labelled"] += 1
            settle(key, "labelled")
        elif known is not None or became == "labelled":
            counts["duplicates"] += 1
        elif became == "late":
            counts["too_late"] += 1
        else:
            early.append((key, now, came, codes[record["y"]]))
            if len(early) > wait.most:
                early.pop(0)
                counts["orphans"] += 1
    return state, counts, said
