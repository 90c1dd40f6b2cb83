"""One experiment of section 5.2: a rule over a stream. Finished ones are kept as files; an interrupted call goes on there."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from onlinevi.data import replace_text
from onlinevi.engine import Vector
from onlinevi.guarantees import hindsight
from onlinevi.learners import learn
from onlinevi.paper.network import NETWORKS, offline, online, predictions
from onlinevi.paper.panels import PANELS, Panel, Scaling, Stream
from onlinevi.paper.readings import LINEAR
from onlinevi.rules import NGVI, OGA, OGAEL, SVA, SVB, Rule

RULES: dict[str, Rule] = {"OGA": OGA(), "OGA-EL": OGAEL(), "SVA": SVA(), "SVB": SVB(), "NGVI": NGVI()}
"""By the names of the paper's legend, each with the paper's rate."""

CURVE_POINTS = 1000


@dataclass(frozen=True)
class Experiment:
    """One rule on one data set, in the order of one seed, in one reading of the settings."""

    data: str
    rule: str
    seed: int
    scaling: Scaling
    model: str
    """"linear", or the name of a network."""

    @property
    def panel(self) -> Panel:
        return PANELS[self.data]

    def __str__(self) -> str:
        return f"{self.data}-{self.rule}-{self.seed}-{self.scaling}-{self.model}"


@dataclass(frozen=True)
class BestWeights:
    """The best fixed weights in hindsight, the line of a panel: their average loss, and how far below it the truth may be."""

    value: float
    gap: float | None
    """None: the best that several offline trainings found, not certified."""
    weights: list[float]
    model: str = LINEAR

    def averages(self, panel: Panel, stream: Stream) -> Vector:
        """The average loss of these weights over the first t events, for every t."""
        weights = np.array(self.weights)
        linear = self.model == LINEAR
        predicted = stream.X @ weights if linear else predictions(NETWORKS[self.model], weights, stream)
        return np.cumsum(panel.loss(stream.y, predicted).value) / np.arange(1, len(stream.y) + 1)


@dataclass(frozen=True)
class Outcome:
    """What an experiment left: its numbers, and its curves at up to 1000 times."""

    data: str
    rule: str
    seed: int
    scaling: str
    model: str
    T: int
    d: int
    average_loss: float
    hindsight: float
    hindsight_gap: float | None
    trivial: float
    """The average loss of who learns nothing from the features: predicts 0, or in the network's panel the best constant."""
    seconds: float
    steps: list[int]
    curve: list[float]
    """A_t, the average loss so far."""
    regret: list[float]
    """A_t less the average loss, over the same events, of the weights that are best at T."""


def run_experiment(experiment: Experiment, stream: Stream, best: BestWeights, progress: Callable[[float], None]) -> Outcome:
    """Learn from the stream once; ``progress`` is told the share that is done."""
    start = time.perf_counter()
    if experiment.panel.network:
        averages = online(NETWORKS[experiment.model], RULES[experiment.rule], stream, experiment.seed, progress)
    else:
        averages = learn(
            stream.X, stream.y, loss=experiment.panel.loss, rule=RULES[experiment.rule], average=False
        ).average_loss
    seconds = time.perf_counter() - start
    T, d = stream.X.shape
    steps = thinned(T)
    at = np.array(steps) - 1
    curve, regret = averages[at], (averages - best.averages(experiment.panel, stream))[at]
    constant = stream.y.mean() if experiment.panel.network else 0.0
    trivial = float(experiment.panel.loss(stream.y, constant).value.mean())
    return Outcome(**asdict(experiment), T=T, d=d, average_loss=float(curve[-1]), hindsight=best.value, hindsight_gap=best.gap,
               trivial=trivial, seconds=seconds, steps=steps, curve=curve.tolist(), regret=regret.tolist())  # fmt: skip


def best_in_hindsight(panel: Panel, model: str, stream: Stream, progress: Callable[[float], None]) -> BestWeights:
    """The best fixed weights of a panel, certified where the loss is convex."""
    if panel.network:
        value, weights = offline(NETWORKS[model], stream, progress)
        return BestWeights(value, None, weights.tolist(), model)
    best = hindsight(stream.X, stream.y, loss=panel.loss, box=20.0)
    return BestWeights(best.value, best.gap, best.mean.tolist())


def thinned(count: int, most: int = CURVE_POINTS) -> list[int]:
    """Up to ``most`` times from 1 to ``count``, dense where a curve bends: evenly spaced on a logarithmic axis."""
    return [int(t) for t in np.unique(np.geomspace(1, count, most).round().astype(int))]


class OutcomeFolder:
    """A folder of finished work. A file counts only if it was made by this very source."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def load(self, name: str, kind: type[Any]) -> Any | None:
        try:
            kept = json.loads((self.folder / f"{name}.json").read_text())
            return kind(**kept["value"]) if kept["source"] == source_digest() else None
        except (OSError, ValueError, KeyError, TypeError):
            return None  # absent, or cut short: it is run again

    def save(self, name: str, value: Any) -> None:
        replace_text(self.folder / f"{name}.json", json.dumps({"source": source_digest(), "value": asdict(value)}))


@cache
def source_digest() -> str:
    """A digest of all the package's files: results of an older source are not mixed with those of a newer one."""
    files = sorted(Path(__file__).parents[1].rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
