"""Streams that played no part in choosing the default's settings: small ones that scikit-learn and River bring along."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from study_streams import SEED, Stream, Task, peer_package

A_COUNT = 20.0
"""Diabetes has no counts; its measure of progression in units of this, rounded, stands for them."""


def _bundled(dataset: str, name: str, task: Task, label: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Stream:
    """A data set of scikit-learn, permuted; ``label`` makes the labels from the features and the target."""
    settings = {"scaled": False} if dataset == "diabetes" else {}
    data = getattr(peer_package("sklearn.datasets"), f"load_{dataset}")(**settings)
    order = np.random.default_rng(SEED).permutation(len(data.target))
    X, y = data.data[order], label(data.data, data.target)[order].astype(np.float64)
    return Stream(name, task, X, y, y, f"scikit-learn's {dataset}, permuted with seed {SEED}")


def _without(column: int, stream: Stream) -> Stream:
    """One column from the others."""
    X, y = np.delete(stream.X, column, axis=1), stream.X[:, column].copy()
    return Stream(stream.name, stream.task, X, y, y, stream.note)


def _river_classes(dataset: str, name: str) -> Stream:
    rows = list(getattr(peer_package("river.datasets"), dataset)())
    X = np.array([list(features.values()) for features, _ in rows], dtype=np.float64)
    y = np.where([label for _, label in rows], 1.0, -1.0)
    return Stream(name, "classification", X, y, y, f"River's {dataset}, in its order")


def _is(value: int, X: np.ndarray, target: np.ndarray) -> np.ndarray:
    return np.where(target == value, 1.0, -1.0)


def _odd(X: np.ndarray, target: np.ndarray) -> np.ndarray:
    return np.where(target % 2 == 1, 1.0, -1.0)


def _itself(X: np.ndarray, target: np.ndarray) -> np.ndarray:
    return target


def _counted(X: np.ndarray, target: np.ndarray) -> np.ndarray:
    return np.round(target / A_COUNT)


HELD_OUT: dict[str, Callable[[], Stream]] = {
    "digits-odd": partial(_bundled, "digits", "digits-odd", "classification", _odd),
    "digits-nine": partial(_bundled, "digits", "digits-nine", "classification", partial(_is, 9)),
    "wine-class": partial(_bundled, "wine", "wine-class", "classification", partial(_is, 1)),
    "iris-class": partial(_bundled, "iris", "iris-class", "classification", partial(_is, 1)),
    "phishing": partial(_river_classes, "Phishing", "phishing"),
    "bananas": partial(_river_classes, "Bananas", "bananas"),
    "diabetes": partial(_bundled, "diabetes", "diabetes", "regression", _itself),
    "wine-alcohol": lambda: _without(0, _bundled("wine", "wine-alcohol", "regression", _itself)),
    "digits-number": partial(_bundled, "digits", "digits-number", "regression", _itself),
    "iris-width": lambda: _without(3, _bundled("iris", "iris-width", "regression", _itself)),
    "diabetes-quantile": partial(_bundled, "diabetes", "diabetes-quantile", "quantile", _itself),
    "digits-quantile": partial(_bundled, "digits", "digits-quantile", "quantile", _itself),
    "diabetes-counts": partial(_bundled, "diabetes", "diabetes-counts", "counts", _counted),
}
