"""The six panels of the paper's Figure 1: which data, how prepared, with which loss (section 5.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from onlinevi.data import catalogue as datasets
from onlinevi.engine import Vector
from onlinevi.learners import Inputs
from onlinevi.losses import Hinge, Loss, Squared

Scaling: TypeAlias = Literal["standard-row", "running-row", "row", "minmax-row", "none"]
SCALINGS: tuple[Scaling, ...] = get_args(Scaling)

WARM_UP = 30
"""How many labels teach their first moments, where moments run: their rows are not paid for."""


@dataclass(frozen=True)
class Panel:
    """One data set of the figure."""

    name: str
    title: str
    loss: Loss
    network: bool = False
    """Predicts with one hidden layer; its loss is not convex."""
    drawn: bool = False
    """Drawn anew for each seed, in the order of the stream, and never scaled."""


PANELS = {
    panel.name: panel
    for panel in (
        Panel("toy", "Toy", Hinge(), drawn=True),
        Panel("breast", "Breast Cancer", Hinge()),
        Panel("pima", "Pima", Hinge()),
        Panel("cover", "Cover Type", Hinge()),
        Panel("boston", "Boston Housing", Squared()),
        Panel("california", "California Housing (network)", Squared(), network=True),
    )
}


@dataclass(frozen=True, eq=False)
class Stream:
    """The rows and labels of one run, in order."""

    X: Vector
    y: Vector


def loaded(panel: Panel, seed: int) -> Stream:
    """The data as they are, in the file's order."""
    data = datasets.load(panel.name, seed=seed)
    return Stream(data.X, data.y)


def ordered(panel: Panel, stream: Stream, seed: int) -> Stream:
    """The data in the order of this seed."""
    if panel.drawn:
        return stream
    order = np.random.default_rng(seed).permutation(len(stream.y))
    return Stream(stream.X[order], stream.y[order])


def prepared(panel: Panel, stream: Stream, scaling: Scaling, *, constant: bool = False) -> Stream:
    """The data with their features and regression targets scaled, and a ``constant`` column last where asked.

    Running moments follow the order of the stream; with every other scaling it does not matter which is done first.
    """
    X, y = stream.X, stream.y
    if not panel.drawn:
        X = scaled(X, scaling)
    if panel.loss.target == "numbers":
        y = scaled_targets(y, scaling, by_range=panel.network)
        X = X[len(X) - len(y) :]
    if constant:
        X = np.column_stack([X, np.ones(len(X))])
    return Stream(X, y)


def scaled(X: Vector, scaling: Scaling) -> Vector:
    """Rows of length 1 (which makes hinge and absolute loss 1-Lipschitz), after columns if asked.

    Columns are standardised by their moments in the whole file, which looks ahead, or by those of the rows so far.
    """
    if scaling == "none":
        return X
    if scaling == "running-row":
        running = Inputs(squash=None, intercept=False, unit_rows=True)
        return np.asarray(running.update_many(running.init(X.shape[1]), X)[1])
    if scaling == "standard-row":
        X = (X - X.mean(axis=0)) / _or_one(X.std(axis=0))
    if scaling == "minmax-row":
        X = (X - X.min(axis=0)) / _or_one(np.ptp(X, axis=0))
    return np.asarray(X / _or_one(np.linalg.norm(X, axis=1))[:, None])


def scaled_targets(y: Vector, scaling: Scaling, *, by_range: bool) -> Vector:
    """Centred where columns are standardised, and divided by their std or range; else brought to [0, 1].

    Where moments run, they are those of the labels before each, and the first ``WARM_UP`` labels are gone.
    """
    if scaling == "standard-row":
        return np.asarray((y - y.mean()) / (np.ptp(y) if by_range else y.std()))
    if scaling != "running-row":
        return np.asarray((y - y.min()) / np.ptp(y))
    far = y - y[0]  # so that squares lose no digits
    count = np.arange(1.0, len(y) + 1.0)
    mean = np.cumsum(far) / count
    std = np.sqrt(np.maximum(np.cumsum(far * far) / count - mean * mean, 0.0))
    width = np.maximum.accumulate(y) - np.minimum.accumulate(y) if by_range else std
    known = slice(WARM_UP - 1, -1)
    return np.asarray((far[WARM_UP:] - mean[known]) / width[known])


def _or_one(scale: Vector) -> Vector:
    """A column that never changes, or a row of zeros, stays as it is."""
    return np.where(scale > 0.0, scale, 1.0)
