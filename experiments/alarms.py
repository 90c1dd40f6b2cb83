"""Alarms against River's drift detectors: false alarms where nothing changes, and delays where something does.

``python experiments/alarms.py`` writes the tables of docs/alarms.md anew, in some five minutes. Streams are of losses:
exponential ones, whose scale changes; wrong guesses, 0 or 1; the log losses of logistic regressions that are still learning;
and those of ``ovi.auto``. Nothing changes in ``--streams`` of each kind for ``--rows`` rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from coupling import written
from river import drift

import onlinevi as ovi

PAGE = Path(__file__).parents[1] / "docs" / "alarms.md"
DELTA = 0.01
CHANGE, BEHIND = 5000, 5000
CHUNK = 250
"""Streams that are drawn together."""
DRIFTS = 20
"""Streams that change, of each kind."""


def exponential(rng: np.random.Generator, scale: np.ndarray) -> np.ndarray:
    return rng.exponential(scale)


def wrong(rng: np.random.Generator, scale: np.ndarray) -> np.ndarray:
    """Guesses that are wrong in 15 % of the rows, at a scale of 1."""
    return (rng.random(scale.shape) < 0.15 * scale).astype(float)


def learning(rng: np.random.Generator, scale: np.ndarray) -> np.ndarray:
    """Log losses of logistic regressions of five features, learned by steps of 1/√t from 0."""
    streams, rows = scale.shape
    weights, learned, losses = rng.standard_normal((streams, 5)), np.zeros((streams, 5)), np.empty((streams, rows))
    for t in range(rows):
        X = rng.standard_normal((streams, 5))
        y = np.where((X * weights).sum(axis=1) + rng.logistic(size=streams) > 0.0, 1.0, -1.0)
        margin = y * (X * learned).sum(axis=1)
        losses[:, t] = np.logaddexp(0.0, -margin)
        learned += (y / ((1.0 + np.exp(margin)) * np.sqrt(t + 1.0)))[:, None] * X
    return losses


def automatic(rng: np.random.Generator, scale: np.ndarray) -> np.ndarray:
    """The losses of ``ovi.auto`` on classes that two of five features tell apart in part."""
    streams, rows = scale.shape
    losses = np.empty((streams, rows))
    for one in range(streams):
        X = rng.standard_normal((rows, 5))
        y = np.where(X[:, 0] - X[:, 1] + rng.logistic(size=rows) > 0.0, 1.0, -1.0)
        losses[one] = ovi.auto(X, y, loss=ovi.Logistic(), effort="light").loss
    return losses


KINDS = {"exponential": exponential, "wrong guesses": wrong, "learning": learning, "ovi.auto": automatic}
CALLED = {"learning": "of logistic regressions from their first row", "ovi.auto": "of `ovi.auto`, light, from its first row"}
FEWER = {"learning": 10, "ovi.auto": 40}
"""How many times fewer streams of a kind there are: they take longer."""


def ours(losses: np.ndarray) -> list[int]:
    return [one.at for one in ovi.Alarm(DELTA).over(losses)]


def rivers(make: Callable[[], Any]) -> Callable[[np.ndarray], list[int]]:
    def over(losses: np.ndarray) -> list[int]:
        detector, rang = make(), []
        for t, loss in enumerate(losses.tolist(), start=1):
            detector.update(loss)
            if detector.drift_detected:
                rang.append(t)
        return rang

    return over


DETECTORS = {
    f"`ovi.Alarm({DELTA})`": ours,
    "ADWIN": rivers(drift.ADWIN),
    "Page-Hinkley": rivers(drift.PageHinkley),
    "KSWIN": rivers(lambda: drift.KSWIN(seed=0)),
}
"""River's at their defaults."""
SLOW, OF_SLOW = "KSWIN", 3
"""It takes some hundred times as long, and has so many streams only."""


def false_alarms(streams: int, rows: int, theirs: int) -> Iterator[str]:
    """A line of the table for each kind of streams on which nothing changes: how many have an alarm."""
    for kind, draw in KINDS.items():
        cells = []
        for name, over in DETECTORS.items():
            number = streams // FEWER.get(kind, 1) if over is ours else OF_SLOW if name == SLOW else min(theirs, streams)
            rang = 0
            for first in range(0, number, CHUNK):
                many = draw(np.random.default_rng(first), np.ones((min(CHUNK, number - first), rows)))
                rang += sum(bool(over(one)) for one in many)
            cells.append(f"{rang:,} of {number:,}")
        yield f"| {CALLED.get(kind, kind)} | {' | '.join(cells)} |"


def delays() -> Iterator[str]:
    """A line of the table for each change: the median delay, how many streams had an alarm before, and how many had none."""
    for kind in ("exponential", "wrong guesses"):
        for what, factor, over_rows in (("×1.5", 1.5, 1), ("×2", 2.0, 1), ("×3", 3.0, 1), ("×2 in 2,000 rows", 2.0, 2000)):
            rise = 1.0 + (factor - 1.0) * np.minimum(np.arange(1, BEHIND + 1) / over_rows, 1.0)
            scale, cells = np.concatenate([np.ones(CHANGE), rise]), []
            for name, over in DETECTORS.items():
                number = OF_SLOW if name == SLOW else DRIFTS
                rang = [over(KINDS[kind](np.random.default_rng(seed), scale[None])[0]) for seed in range(number)]
                first = [next((t - CHANGE for t in one if t > CHANGE), None) for one in rang]
                delay = [one for one in first if one is not None]
                early, missed = sum(any(t <= CHANGE for t in one) for one in rang), number - len(delay)
                told = f"{np.median(delay):,.0f} ({early})" if delay else f"– ({early})"
                cells.append(f"{told}, {missed} missed" if missed else told)
            yield f"| {kind} {what} | {' | '.join(cells)} |"


def table(first: str, lines: Iterable[str]) -> str:
    head = [f"| {first} | {' | '.join(DETECTORS)} |", "| --- |" + " --- |" * len(DETECTORS)]
    return "\n".join([*head, *lines]) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=10_000, help="on which the alarm may not ring")
    parser.add_argument("--theirs", type=int, default=20, help="of them, those that River's detectors have")
    parser.add_argument("--rows", type=int, default=10_000)
    given = parser.parse_args()
    written(PAGE, "delays", table("losses, change", delays()))
    written(PAGE, "false", table("losses", false_alarms(given.streams, given.rows, given.theirs)))
