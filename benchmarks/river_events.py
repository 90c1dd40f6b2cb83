"""One event, predicted and learned, through River's interface: ours against River's logistic regression and forest.

    python benchmarks/river_events.py [--tiny]

Microseconds an event, the best of many short rounds in turns; scaling is part of ours. Ratios are within one run. Single rules
have events of 54 features; the default, which costs more with each feature, of 5 and 20 too, and several classes of 20.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from section import Size, left_out, main
from timing import interleaved

import onlinevi as ovi

EVENTS, FEATURES, ROUNDS = 400, 54, 9
DIMS = 5, 20, 54
"""For the default."""
CLASSES = 3, 10
"""With the second of these."""


def events(features: int = FEATURES, classes: int = 2) -> list[tuple[dict[str, float], Any]]:
    rng = np.random.default_rng(0)
    if classes == 2:
        X, weights = rng.standard_normal((EVENTS, features)), rng.standard_normal(features)
        labels = X @ weights / np.sqrt(features) + rng.logistic(size=EVENTS) > 0
    else:
        X, weights = rng.standard_normal((EVENTS, features)), rng.standard_normal((features, classes))
        labels = (X @ weights / np.sqrt(features) + rng.gumbel(size=(EVENTS, classes))).argmax(axis=1)
    rows = [{f"feature {j}": x for j, x in enumerate(row)} for row in X.tolist()]
    return list(zip(rows, labels.tolist(), strict=True))


def models() -> dict[str, Callable[[], object]]:
    from river.linear_model import LogisticRegression

    from onlinevi.river import OnlineVIClassifier

    return {
        "River LogisticRegression": LogisticRegression,
        SCALED: scaled,
        "OnlineVIClassifier(rule=NGVI())": lambda: OnlineVIClassifier(rule=ovi.NGVI()),
        "OnlineVIClassifier(rule=Implicit())": lambda: OnlineVIClassifier(rule=ovi.Implicit()),
        "OnlineVIClassifier(rule=NGVI(), family=FullCovariance())": lambda: OnlineVIClassifier(
            rule=ovi.NGVI(), family=ovi.FullCovariance()
        ),
    }


def of_any_dim() -> dict[str, Callable[[], object]]:
    """The default, and whom it is measured against."""
    from river.forest import ARFClassifier

    from onlinevi.river import OnlineVIClassifier

    return {
        SCALED: scaled,
        "River ARF, 10 trees": lambda: ARFClassifier(seed=0),
        "OnlineVIClassifier()": OnlineVIClassifier,
        'OnlineVIClassifier(effort="light")': lambda: OnlineVIClassifier(effort="light"),
    }


def of_any_classes() -> dict[str, Callable[[], object]]:
    """The default, and what tells classes apart one by one."""
    from onlinevi.river import OnlineVIClassifier

    return {
        "OnlineVIClassifier()": OnlineVIClassifier,
        'effort="light"': lambda: OnlineVIClassifier(effort="light"),
        'classes_by="one-vs-rest"': lambda: OnlineVIClassifier(classes_by="one-vs-rest"),
        'classes_by="one-vs-rest", effort="light"': lambda: OnlineVIClassifier(classes_by="one-vs-rest", effort="light"),
    }


SCALED = "River StandardScaler | LogisticRegression"


def scaled() -> object:
    from river.linear_model import LogisticRegression
    from river.preprocessing import StandardScaler

    return StandardScaler() | LogisticRegression()


def job(model: object, stream: list[tuple[dict[str, float], Any]]) -> Callable[[], None]:
    def run() -> None:
        predict, learn = model.predict_proba_one, model.learn_one  # type: ignore[attr-defined]
        for x, y in stream:
            predict(x)
            learn(x, y)

    return run


def measure(size: Size) -> dict[str, Any]:
    if absent := left_out("River"):
        return {"left out": absent}
    found = {str(dim): microseconds(of_any_dim(), events(dim), 2 * size.rounds) for dim in DIMS}
    several = {str(number): microseconds(of_any_classes(), events(DIMS[1], number), size.rounds) for number in CLASSES}
    return {
        "µs an event": microseconds(models(), events(), ROUNDS * size.rounds),
        "the default": found,
        "several classes": several,
    }


def microseconds(
    models: dict[str, Callable[[], object]], stream: list[tuple[dict[str, float], Any]], rounds: int
) -> dict[str, float]:
    """An event of each; the models go on learning from one round to the next."""
    seconds = interleaved({name: job(make(), stream) for name, make in models.items()}, rounds, time.process_time)
    return {name: round(1e6 * value / len(stream), 2) for name, value in seconds.items()}


if __name__ == "__main__":
    main("river_events", __doc__, measure)
