"""How answers are scored, by task: means over the stream, against the labels that are right; lower is better."""

from __future__ import annotations

import math

import numpy as np
from peers import Scored
from scipy import special
from study_streams import QUANTILE_LEVEL, Stream

HEADLINE = {
    "classification": "log_loss",
    "regression": "mse",
    "quantile": "pinball",
    "counts": "deviance",
    "classes": "log_loss",
}
"""The score that a task is compared by."""

LEAST_PROBABILITY = 1e-15
BINS = 10
"""Of probabilities, for their calibration: of two classes that of the second, of more that of the likeliest."""
LEAST_RATE = 1e-12
SMOOTHED = 0.01
"""How much of the uniform probabilities is mixed in for the second log loss, which does not judge by what was said to be 0."""


def score(stream: Stream, scored: Scored) -> dict[str, float]:
    """All scores of a task; one that is not finite is left out. Who was stopped for being slow is scored up to there."""
    rows = scored.finished if scored.note.startswith("too_slow") else len(stream.y)
    y, prediction = stream.clean[:rows], scored.prediction[:rows]
    with np.errstate(all="ignore"):  # a peer's answers may overflow when squared: then it has no score
        scores = _TASKS[stream.task](y, prediction, scored)
        if scored.lower is not None and scored.upper is not None:
            scores |= intervals(y, scored.lower[:rows], scored.upper[:rows])
    return {name: value for name, value in scores.items() if math.isfinite(value)}


def log_loss(y: np.ndarray, probability: np.ndarray) -> float:
    """Of P(+1); a probability nearer to 0 or 1 than 1e-15 counts as that, since one sure mistake would be infinite."""
    kept = np.clip(probability, LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY)
    return float(np.mean(-np.log(np.where(y > 0, kept, 1.0 - kept))))


def log_loss_of_classes(y: np.ndarray, probability: np.ndarray) -> float:
    """The same of several classes, whose probabilities are the columns."""
    said = probability[np.arange(len(y)), y.astype(np.intp)]
    return float(np.mean(-np.log(np.clip(said, LEAST_PROBABILITY, 1.0))))


def calibration_error(happened: np.ndarray, probability: np.ndarray) -> float:
    """Mean |probability − share that happened| over ten bins, weighted by rows."""
    places = np.minimum((probability * BINS).astype(int), BINS - 1)
    gaps = np.bincount(places, probability - happened, BINS)
    return float(np.abs(gaps).sum() / len(probability))


def _of_guess(y: np.ndarray, probability: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of several classes: whether the likeliest came, and how likely it was said to be."""
    return (probability.argmax(axis=1) == y).astype(float), probability.max(axis=1)


def _smoothed(probability: np.ndarray) -> np.ndarray:
    classes = probability.shape[1] if probability.ndim == 2 else 2
    return (1.0 - SMOOTHED) * probability + SMOOTHED / classes


def pinball(y: np.ndarray, quantile: np.ndarray) -> float:
    gap = y - quantile
    return float(np.mean(np.maximum(QUANTILE_LEVEL * gap, (QUANTILE_LEVEL - 1.0) * gap)))


def deviance(y: np.ndarray, rate: np.ndarray) -> float:
    """Twice the Poisson log likelihood lost against rates equal to the counts: 0 at best, so that ratios mean something."""
    kept = np.maximum(rate, LEAST_RATE)
    return float(np.mean(2.0 * (special.xlogy(y, y / kept) - y + kept)))


def intervals(y: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> dict[str, float]:
    """The share of labels inside, and the median width: a mean would tell of the first few rows alone."""
    return {"coverage": float(np.mean((lower <= y) & (y <= upper))), "width": float(np.median(upper - lower))}


_TASKS = {
    "classification": lambda y, prediction, scored: {
        "log_loss": log_loss(y, scored.probability[: len(y)]),
        "smoothed": log_loss(y, _smoothed(scored.probability[: len(y)])),
        "ece": calibration_error((y > 0).astype(float), scored.probability[: len(y)]),
        "error": float(np.mean(prediction != y)),
    },
    "classes": lambda y, prediction, scored: {
        "log_loss": log_loss_of_classes(y, scored.probability[: len(y)]),
        "smoothed": log_loss_of_classes(y, _smoothed(scored.probability[: len(y)])),
        "ece": calibration_error(*_of_guess(y, scored.probability[: len(y)])),
        "error": float(np.mean(prediction != y)),
    },
    "regression": lambda y, prediction, scored: {"mse": float(np.mean(np.square(prediction - y)))},
    "quantile": lambda y, prediction, scored: {"pinball": pinball(y, prediction), "below": float(np.mean(y <= prediction))},
    "counts": lambda y, prediction, scored: {"deviance": deviance(y, prediction)},
}
