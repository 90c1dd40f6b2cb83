"""One event of 54 features, predicted and learned, through River's interface: ours against River's logistic regression.

    python benchmarks/river_events.py [--rounds 60]

Microseconds an event, the best of many short rounds in turns; scaling is part of ours. Ratios are within one run.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from timing import interleaved, machine, save

import onlinevi as ovi
from onlinevi.river import OnlineVIClassifier

EVENTS, FEATURES = 400, 54


def events() -> list[tuple[dict[str, float], bool]]:
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((EVENTS, FEATURES)), rng.standard_normal(FEATURES)
    labels = X @ weights / np.sqrt(FEATURES) + rng.logistic(size=EVENTS) > 0
    rows = [{f"feature {j}": x for j, x in enumerate(row)} for row in X.tolist()]
    return list(zip(rows, labels.tolist(), strict=True))


def models() -> dict[str, Callable[[], object]]:
    from river.linear_model import LogisticRegression
    from river.preprocessing import StandardScaler

    return {
        "River LogisticRegression": LogisticRegression,
        "River StandardScaler | LogisticRegression": lambda: StandardScaler() | LogisticRegression(),
        "OnlineVIClassifier()": OnlineVIClassifier,
        "OnlineVIClassifier(rule=Implicit())": lambda: OnlineVIClassifier(rule=ovi.Implicit()),
        "OnlineVIClassifier(family=FullCovariance())": lambda: OnlineVIClassifier(family=ovi.FullCovariance()),
    }


def job(model: object, stream: list[tuple[dict[str, float], bool]]) -> Callable[[], None]:
    def run() -> None:
        predict, learn = model.predict_proba_one, model.learn_one  # type: ignore[attr-defined]
        for x, y in stream:
            predict(x)
            learn(x, y)

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60)
    stream = events()
    seconds = interleaved({name: job(make(), stream) for name, make in models().items()}, parser.parse_args().rounds)
    bare, scaled = list(seconds.values())[:2]
    print(f"{'µs an event':<46} {'':>6} {'bare ÷ it':>10} {'scaled ÷ it':>12}")
    for name, value in seconds.items():
        print(f"{name:<46} {1e6 * value / EVENTS:6.1f} {bare / value:10.2f} {scaled / value:12.2f}")
    micro = {name: round(1e6 * value / EVENTS, 2) for name, value in seconds.items()}
    print(save("river_events", {"machine": machine("river", "numba"), "microseconds": micro}))


if __name__ == "__main__":
    main()
