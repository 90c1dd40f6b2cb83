"""Others who learn a linear rule from rows, as jobs to be timed: scikit-learn, River, and a loop in numpy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from timing import Work

CLASSES = [-1.0, 1.0]


def sgd(loss: str = "hinge") -> Any:
    """scikit-learn's SGD as plain as it can be: constant rate, no penalty, no intercept, no shuffling."""
    from sklearn.linear_model import SGDClassifier

    plain = {"penalty": None, "fit_intercept": False, "shuffle": False, "learning_rate": "constant", "eta0": 0.01}
    return SGDClassifier(loss=loss, **plain)


def sgd_pass(X: Any, y: np.ndarray) -> Work:
    """``partial_fit`` in one call."""
    return Work(len(y), lambda: sgd().partial_fit(X, y, classes=CLASSES))


def sgd_calls(X: Any, y: np.ndarray) -> Work:
    """``partial_fit`` row by row."""

    def run() -> None:
        model = sgd()
        for i in range(len(y)):
            model.partial_fit(X[i : i + 1], y[i : i + 1], classes=CLASSES)

    return Work(len(y), run)


def dicts(X: Any) -> list[dict[int, float]]:
    """Rows as River takes them: what is stored, by column."""
    if not sparse.issparse(X):
        return [dict(enumerate(row)) for row in X.tolist()]
    ends = X.indptr
    pairs = (slice(ends[i], ends[i + 1]) for i in range(X.shape[0]))
    return [dict(zip(X.indices[own].tolist(), X.data[own].tolist(), strict=True)) for own in pairs]


def river_pass(X: Any, y: np.ndarray, *, scaled: bool = False) -> Work:
    """River's logistic regression, ``predict_one`` and ``learn_one``; the dicts are made beforehand."""
    from river.linear_model import LogisticRegression
    from river.preprocessing import StandardScaler

    stream = list(zip(dicts(X), (y > 0).tolist(), strict=True))

    def run() -> None:
        model = StandardScaler() | LogisticRegression() if scaled else LogisticRegression()
        for x, label in stream:
            model.predict_one(x)
            model.learn_one(x, label)

    return Work(len(y), run)


def forest_for(X: Any, y: np.ndarray, longest: float, clock: Callable[[], float]) -> tuple[int, float]:
    """River's adaptive random forest of ten trees, once, in the same way: the rows that it got done, and their seconds."""
    from river.forest import ARFClassifier

    model, rows, seconds = ARFClassifier(seed=0), 0, 0.0
    stream = list(zip(dicts(X), (y > 0).tolist(), strict=True))
    start = clock()
    for x, label in stream:
        model.predict_proba_one(x)
        model.learn_one(x, label)
        rows, seconds = rows + 1, clock() - start
        if seconds > longest:
            break
    return rows, seconds


def numpy_pass(X: np.ndarray, y: np.ndarray) -> Work:
    """SVB with the hinge loss, a row at a time in numpy."""
    return Work(len(y), lambda: numpy_svb(X, y))


def numpy_svb(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    mean, std = np.zeros(X.shape[1]), np.ones(X.shape[1])
    for i, (x, label) in enumerate(zip(X, y.tolist(), strict=True)):
        v = math.sqrt(np.square(std * x).sum())
        r = (1.0 - label * (mean @ x)) / v
        rate = 1.0 / math.sqrt(i + 1.0)
        u = 0.5 * rate * 0.3989422804014327 * math.exp(-0.5 * r * r) / v * x * x
        mean = np.clip(mean + rate * label * 0.5 * math.erfc(-r * math.sqrt(0.5)) * x, -20.0, 20.0)
        std = np.clip(std / (np.sqrt(1.0 + u * u) + u), 0.0, 1.0)
    return mean
