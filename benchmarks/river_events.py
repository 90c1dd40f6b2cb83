"""One event of 54 features, predicted and learned, through River's interface: ours against River's logistic regression.

    python benchmarks/river_events.py [--tiny]

Microseconds an event, the best of many short rounds in turns; scaling is part of ours. Ratios are within one run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from section import Size, left_out, main
from timing import interleaved

import onlinevi as ovi

EVENTS, FEATURES, ROUNDS = 400, 54, 9


def events() -> list[tuple[dict[str, float], bool]]:
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((EVENTS, FEATURES)), rng.standard_normal(FEATURES)
    labels = X @ weights / np.sqrt(FEATURES) + rng.logistic(size=EVENTS) > 0
    rows = [{f"feature {j}": x for j, x in enumerate(row)} for row in X.tolist()]
    return list(zip(rows, labels.tolist(), strict=True))


def models() -> dict[str, Callable[[], object]]:
    from river.linear_model import LogisticRegression
    from river.preprocessing import StandardScaler

    from onlinevi.river import OnlineVIClassifier

    return {
        "River LogisticRegression": LogisticRegression,
        "River StandardScaler | LogisticRegression": lambda: StandardScaler() | LogisticRegression(),
        "OnlineVIClassifier()": OnlineVIClassifier,
        "OnlineVIClassifier(rule=NGVI())": lambda: OnlineVIClassifier(rule=ovi.NGVI()),
        "OnlineVIClassifier(rule=Implicit())": lambda: OnlineVIClassifier(rule=ovi.Implicit()),
        "OnlineVIClassifier(rule=NGVI(), family=FullCovariance())": lambda: OnlineVIClassifier(
            rule=ovi.NGVI(), family=ovi.FullCovariance()
        ),
    }


def job(model: object, stream: list[tuple[dict[str, float], bool]]) -> Callable[[], None]:
    def run() -> None:
        predict, learn = model.predict_proba_one, model.learn_one  # type: ignore[attr-defined]
        for x, y in stream:
            predict(x)
            learn(x, y)

    return run


def measure(size: Size) -> dict[str, Any]:
    if absent := left_out("River"):
        return {"left out": absent}
    stream = events()
    seconds = interleaved({name: job(make(), stream) for name, make in models().items()}, ROUNDS * size.rounds)
    return {"µs an event": {name: round(1e6 * value / EVENTS, 2) for name, value in seconds.items()}}


if __name__ == "__main__":
    main("river_events", __doc__, measure)
