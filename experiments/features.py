"""Feature maps on streams whose boundaries or surfaces bend: what each is worth, and what an event costs.

``python experiments/features.py`` prints the table of docs/features.md, ``--scales`` what the scale of Fourier features does,
``--families`` what covariances are worth, ``--cost`` the processor time of each map alone. River's Bananas needs river; the
other streams are made.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

import onlinevi as ovi

Stream = tuple[np.ndarray, np.ndarray]

MAPS: dict[str, ovi.FeatureMap | None] = {
    "columns alone": None,
    "`Splines()`": ovi.Splines(),
    "`Products()`": ovi.Products(),
    "`Fourier()`": ovi.Fourier(),
    "`Relu()`": ovi.Relu(),
    "`Trees()`": ovi.Trees(),
    "`Beside` of the first three": ovi.Beside((ovi.Splines(), ovi.Products(), ovi.Fourier())),
}


def bananas() -> Stream:
    """River's Bananas, 5,300 rows of 2 columns: two bent clouds."""
    from river.datasets import Bananas

    rows = [(list(x.values()), label) for x, label in Bananas()]
    return np.array([x for x, _ in rows], dtype=float), np.where([label for _, label in rows], 1.0, -1.0)


def ring(count: int = 5_000) -> Stream:
    """Inside or outside of a ring in two of five columns, one label in twenty turned over."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((count, 5))
    far = (X[:, :2] ** 2).sum(axis=1)
    return X, np.where((far > 0.6) & (far < 3.0), 1.0, -1.0) * np.where(rng.random(count) < 0.05, -1.0, 1.0)


def friedman(count: int = 5_000) -> Stream:
    """Friedman's surface of ten columns, five of which matter, noise of std 1."""
    rng = np.random.default_rng(1)
    X = rng.random((count, 10))
    y = 10.0 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20.0 * (X[:, 2] - 0.5) ** 2 + 10.0 * X[:, 3] + 5.0 * X[:, 4]
    return X, y + rng.standard_normal(count)


def planes(count: int = 5_000) -> Stream:
    """Breiman's two planes, told apart by the sign of the first of ten columns, noise of std 1."""
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.choice([-1.0, 1.0], count), rng.choice([-1.0, 0.0, 1.0], (count, 9))])
    up, down = 3.0 + X[:, 1:4] @ [3.0, 2.0, 1.0], -3.0 + X[:, 4:7] @ [3.0, 2.0, 1.0]
    return X, np.where(X[:, 0] > 0.0, up, down) + rng.standard_normal(count)


STREAMS: dict[str, tuple[Callable[[], Stream], ovi.Loss]] = {
    "Bananas, wrong": (bananas, ovi.Logistic()),
    "ring, wrong": (ring, ovi.Logistic()),
    "Friedman, RMSE": (friedman, ovi.Squared()),
    "planes, RMSE": (planes, ovi.Squared()),
}


def learner_for(loss: ovi.Loss, one: ovi.FeatureMap | None) -> ovi.Learner:
    """Implicit steps on a full covariance: half the squared loss is the logarithm of a normal density."""
    numbers = loss.target == "numbers"
    family = ovi.FullCovariance(prior_std=4.0 if numbers else 1.0, box=None)
    leaf = ovi.Linear(loss, ovi.Implicit(rate=0.5 if numbers else 1.0), family, average=False)
    return ovi.Prepare(ovi.Inputs(), leaf if one is None else ovi.Expand(one, leaf))


def played(X: np.ndarray, y: np.ndarray, loss: ovi.Loss, one: ovi.FeatureMap | None) -> tuple[float, float]:
    """The part of wrong guesses, or the root mean squared error, of predictions before their labels; and µs an event."""
    learner = learner_for(loss, one)
    learner.update_many(learner.init(X.shape[1]), X[:20], y[:20])  # compiled, and the map drawn
    begun = time.process_time()
    _, trace = learner.update_many(learner.init(X.shape[1]), X, y)
    spent = 1e6 * (time.process_time() - begun) / len(y)
    if loss.target == "classes":
        return float(np.mean((trace.prediction > 0.0) != (y > 0.0))), spent
    return float(np.sqrt(np.mean((trace.prediction - y) ** 2))), spent


def show(maps: dict[str, ovi.FeatureMap | None]) -> None:
    """A row for each map, a column for each stream."""
    streams = {name: (*make(), loss) for name, (make, loss) in STREAMS.items()}
    print("| | " + " | ".join(f"{name} | µs" for name in streams) + " |")
    print("|---" * (1 + 2 * len(streams)) + "|")
    for name, one in maps.items():
        cells = [played(X, y, loss, one) for X, y, loss in streams.values()]
        texts = [
            f"{100.0 * score:.1f} %" if "wrong" in stream else f"{score:.2f}"
            for stream, (score, _) in zip(streams, cells, strict=True)
        ]
        print(f"| {name} | " + " | ".join(f"{text} | {cell[1]:.1f}" for text, cell in zip(texts, cells, strict=True)) + " |")


def show_families() -> None:
    """The average logistic loss on Bananas, and µs an event."""
    X, y = bananas()
    print(
        "| Bananas, average loss | `MeanField` | µs | `LowRank` | µs | `FullCovariance` | µs |\n|---|---|---|---|---|---|---|"
    )
    for one in (ovi.Fourier(), ovi.Trees()):
        cells = []
        for family in (ovi.MeanField(box=None), ovi.LowRank(box=None), ovi.FullCovariance(box=None)):
            learner = ovi.Prepare(
                ovi.Inputs(), ovi.Expand(one, ovi.Linear(ovi.Logistic(), ovi.Implicit(), family, average=False))
            )
            learner.update_many(learner.init(2), X[:20], y[:20])
            begun = time.process_time()
            state, _ = learner.update_many(learner.init(2), X, y, record="none")
            cells.append(f"{state.average_loss:.3f} | {1e6 * (time.process_time() - begun) / len(y):.1f}")
        print(f"| `{type(one).__name__}()` | " + " | ".join(cells) + " |")


def show_cost(rows: int = 600, rounds: int = 9) -> None:
    """The processor time of a map alone, a row in a block: the least of some rounds."""
    print("| µs an event | d = 5 | d = 54 |\n|---|---|---|")
    for name, one in {**MAPS, "`Products(buckets=256)`": ovi.Products(buckets=256)}.items():
        if one is None:
            continue
        cells = []
        for dim in (5, 54):
            Z, spent = np.column_stack([np.ones(rows), np.random.default_rng(0).standard_normal((rows, dim))]), []
            space = ovi.Expand(one, learner_for(ovi.Squared(), None)).space(dim + 1, dim + 1)
            for _ in range(rounds):
                begun = time.process_time()
                space.of(Z)
                spent.append(time.process_time() - begun)
            cells.append(f"{1e6 * min(spent) / len(Z):.2f}")
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scales", action="store_true")
    parser.add_argument("--families", action="store_true")
    parser.add_argument("--cost", action="store_true")
    asked = parser.parse_args()
    if asked.cost:
        show_cost()
    elif asked.families:
        show_families()
    elif asked.scales:
        scales: tuple[float | tuple[float, ...], ...] = (0.5, 1.0, 2.0, (0.5, 1.0), (0.5, 1.0, 2.0), (1.0, 3.0))
        show({f"`scale={own}`": replace(ovi.Fourier(), scale=own) for own in scales})
    else:
        show(MAPS)
