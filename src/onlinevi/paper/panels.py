"""The six panels of the paper's Figure 1: which data, how prepared, with which loss (section 5.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from onlinevi.data import catalogue as datasets
from onlinevi.engine import Vector
from onlinevi.losses import Hinge, Loss, Squared

Scaling: TypeAlias = Literal["row", "standard-row", "minmax-row", "none"]
SCALINGS: tuple[Scaling, ...] = get_args(Scaling)


@dataclass(frozen=True)
class Panel:
    """One data set of the figure."""

    name: str
    title: str
    loss: Loss
    network: bool = False
    """Predicts with one hidden layer; its loss is not convex, and a constant feature stands in for biases."""
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


def prepared(panel: Panel, seed: int, scaling: Scaling) -> Stream:
    """The data in the file's order: features scaled, regression targets brought to [0, 1] by their range."""
    data = datasets.load(panel.name, seed=seed)
    X, y = data.X, data.y
    if not panel.drawn:
        X = scaled(X, scaling)
    if panel.loss.target == "numbers":
        y = (y - y.min()) / np.ptp(y)
    if panel.network:
        X = np.column_stack([X, np.ones(len(X))])
    return Stream(X, y)


def ordered(panel: Panel, stream: Stream, seed: int) -> Stream:
    """The data in the order of this seed."""
    if panel.drawn:
        return stream
    order = np.random.default_rng(seed).permutation(len(stream.y))
    return Stream(stream.X[order], stream.y[order])


def scaled(X: Vector, scaling: Scaling) -> Vector:
    """Rows of length 1 (needs no look-ahead, and makes hinge and absolute loss 1-Lipschitz), after columns if asked."""
    if scaling == "none":
        return X
    if scaling == "standard-row":
        X = (X - X.mean(axis=0)) / _or_one(X.std(axis=0))
    if scaling == "minmax-row":
        X = (X - X.min(axis=0)) / _or_one(np.ptp(X, axis=0))
    return np.asarray(X / _or_one(np.linalg.norm(X, axis=1))[:, None])


def _or_one(scale: Vector) -> Vector:
    """A column that never changes, or a row of zeros, stays as it is."""
    return np.where(scale > 0.0, scale, 1.0)
