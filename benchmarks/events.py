"""One event at a time, 54 features, logistic loss: how long a prediction and an update take, call by call.

    python benchmarks/events.py [--tiny]

Microseconds, the median and the 99th percentile of the calls in the best round, reading the clock included. Rows are in the
form each package takes them, made beforehand. ``river_events.py`` has more of River's interface.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from made import COVER_DIM, unit_rows
from reference import RULES
from section import Size, left_out, main

import onlinevi as ovi
from onlinevi.learners import buffer_for

EVENTS = 1_000
ROUNDS = 3
"""Rounds for each one of a pass's: they are short."""


class Subject(NamedTuple):
    """Somebody who predicts and learns, and the events as they are handed over."""

    events: list[tuple[Any, Any]]
    predict: Callable[[Any], object]
    update: Callable[[Any, Any], object]


def measure(size: Size) -> dict[str, Any]:
    X, y = unit_rows(max(100, size.rows(EVENTS)), COVER_DIM)
    subjects = _own(X, y)
    absent = left_out("River", "scikit-learn", "Vowpal Wabbit", "bayesianbandits")
    if "River" not in absent:
        subjects |= _river(X, y)
    if "scikit-learn" not in absent:
        subjects |= _scikit_learn(X, y)
    if "Vowpal Wabbit" not in absent:
        subjects["VW"] = _vowpal(X, y)
    if "bayesianbandits" not in absent and "scikit-learn" not in absent:
        subjects["bayesianbandits BayesianGLM"] = _bandits(X, y)
    return {"dim": COVER_DIM, "events": len(y), "µs": latencies(subjects, ROUNDS * size.rounds), "left out": absent}


def latencies(subjects: dict[str, Subject], rounds: int) -> dict[str, dict[str, float]]:
    """Of each call, in turns: the round with the lowest median counts."""
    found: dict[str, dict[str, float]] = {name: {} for name in subjects}
    for turn in range(rounds + 1):
        for name, subject in subjects.items():
            predicting, updating = [], []
            for x, y in subject.events:
                start = time.perf_counter_ns()
                subject.predict(x)
                middle = time.perf_counter_ns()
                subject.update(x, y)
                updating.append(time.perf_counter_ns() - middle)
                predicting.append(middle - start)
            if turn:
                _keep_best(found[name], "predict", predicting)
                _keep_best(found[name], "update", updating)
    return found


def _keep_best(found: dict[str, float], what: str, calls: list[int]) -> None:
    middle, high = (round(float(value) / 1e3, 3) for value in np.percentile(calls, (50, 99)))
    if middle < found.get(f"{what} p50", float("inf")):
        found[f"{what} p50"], found[f"{what} p99"] = middle, high


def stateful(learner: Any, state: Any, events: list[tuple[Any, Any]], predict: str = "predict") -> Subject:
    """A learner of ours, whose states are values: the last one is kept."""
    say = getattr(learner, predict)

    def update(x: Any, y: Any) -> None:
        nonlocal state
        state, _ = learner.update(state, x, y)

    return Subject(events, lambda x: say(state, x), update)


def _own(X: np.ndarray, y: np.ndarray) -> dict[str, Subject]:
    events, dim = list(zip(X, y.tolist(), strict=True)), X.shape[1]
    subjects = {}
    for name, (rule, _, _) in (RULES | {"Implicit": (ovi.Implicit(), "", 0.0)}).items():
        learner = ovi.Linear(loss=ovi.Logistic(), rule=rule)
        subjects[f"Linear, {name}"] = stateful(learner, learner.init(dim, len(y)), events)
    auto = ovi.Auto(loss=ovi.Logistic())
    subjects["Auto"] = stateful(auto, auto.init(dim), events, "forecast")
    return subjects | {
        f"Auto, {effort}, in place": in_place(ovi.Auto(effort=effort), events) for effort in ("light", "default")
    }


def in_place(learner: Any, events: list[tuple[Any, Any]]) -> Subject:
    """A learner of ours in a buffer, which changes one state; an event says beside its values that all are there."""
    buffer = buffer_for(learner, learner.init(len(events[0][0])))
    return Subject([(np.stack([x, np.zeros(len(x))]), y) for x, y in events], buffer.probability, buffer.learn)


def _river(X: np.ndarray, y: np.ndarray) -> dict[str, Subject]:
    from rivals import dicts
    from river.linear_model import LogisticRegression

    from onlinevi.river import OnlineVIClassifier

    events = list(zip(dicts(X), (y > 0).tolist(), strict=True))
    ours, theirs = OnlineVIClassifier(rule=ovi.NGVI()), LogisticRegression()
    return {
        "onlinevi.river OnlineVIClassifier(rule=NGVI())": Subject(events, ours.predict_proba_one, ours.learn_one),
        "River LogisticRegression": Subject(events, theirs.predict_proba_one, theirs.learn_one),
    }


def _scikit_learn(X: np.ndarray, y: np.ndarray) -> dict[str, Subject]:
    from rivals import CLASSES, sgd

    from onlinevi.sklearn import OnlineVIClassifier

    events = [(X[i : i + 1], y[i : i + 1]) for i in range(len(y))]
    models = {"onlinevi.sklearn OnlineVIClassifier": OnlineVIClassifier(), "scikit-learn SGDClassifier": sgd("log_loss")}
    for model in models.values():
        model.partial_fit(*events[0], classes=CLASSES)
    return {name: Subject(events, model.predict_proba, model.partial_fit) for name, model in models.items()}


def _vowpal(X: np.ndarray, y: np.ndarray) -> Subject:
    from vowpal import bits, lines, workspace

    model = workspace(bits(X.shape[1]), loss="logistic")
    events = [(model.parse(line), None) for line in lines(X, y)]
    return Subject(events, model.predict, lambda example, _: model.learn(example))


def _bandits(X: np.ndarray, y: np.ndarray) -> Subject:
    from bayesianbandits import BayesianGLM

    model = BayesianGLM(link="logit")
    events = [(X[i : i + 1], (y[i : i + 1] > 0).astype(float)) for i in range(len(y))]
    model.partial_fit(*events[0])
    return Subject(events, model.predict, model.partial_fit)


if __name__ == "__main__":
    main("events", __doc__, measure)
