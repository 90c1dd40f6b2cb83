"""Whether probabilities of several classes get better by being set right once more: three ways, each pooled with leaving them.

    python experiments/recalibrate_classes.py [--rows 20000] [--effort default] [STREAM …]

prints the table of docs/choosing.md. What the default says of each row, before its label, is bent by what came of the rows
before: by a temperature (p^τ, seven τ), by a softmax regression on log p (one slope, an intercept a class), or class by class
along the spline that ``Recalibrate`` has for two. Bayes' rule weighs each against the probabilities as they are, with a share
of 1e-4. ECE is that of the guess in ten bins, in points of a hundred.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np

import onlinevi as ovi

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))

TEMPERATURES = (0.5, 0.63, 0.8, 1.0, 1.25, 1.6, 2.0)
SHARE, PRIOR_STD, DISCOUNT = 1e-4, 0.3, 0.9995
LEAST = 1e-12


def normalised(p: np.ndarray) -> np.ndarray:
    kept = np.maximum(p, LEAST)
    return kept / kept.sum(axis=-1, keepdims=True)


def pooled(experts: list[np.ndarray], codes: np.ndarray) -> np.ndarray:
    """Bayes' rule over what several say of each row, with a share of the weight that moves on."""
    every, rows = np.stack(experts), np.arange(len(codes))
    weights, found = np.full(len(experts), 1.0 / len(experts)), np.empty_like(experts[0])
    likelihood = every[:, rows, codes]
    for t in range(len(codes)):
        found[t] = weights @ every[:, t]
        weights = weights * likelihood[:, t]
        weights = (1.0 - SHARE) * weights / weights.sum() + SHARE / len(weights)
    return found


def by_temperature(p: np.ndarray, codes: np.ndarray) -> np.ndarray:
    return pooled([normalised(p**temperature) for temperature in TEMPERATURES], codes)


def by_regression(p: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """A Gaussian belief about slope and intercepts, by extended Kalman steps that forget."""
    classes, logs = p.shape[1], np.log(p)
    mean, covariance = np.zeros(classes + 1), PRIOR_STD**2 * np.eye(classes + 1)
    mean[0], bent = 1.0, np.empty_like(p)
    for t, code in enumerate(codes):
        design = np.column_stack([logs[t] - logs[t].max(), np.eye(classes)])
        scores = design @ mean
        said = np.exp(scores - scores.max())
        bent[t] = said = said / said.sum()
        covariance /= DISCOUNT
        curvature = np.diag(said) - np.outer(said, said)
        gain = covariance @ design.T
        step = np.linalg.solve(np.eye(classes) + curvature @ (design @ gain), np.column_stack([curvature @ gain.T]))
        covariance = covariance - gain @ step
        covariance = np.minimum(0.5 * (covariance + covariance.T), PRIOR_STD**2)
        mean = mean + covariance @ design.T @ ((np.arange(classes) == code) - said)
    return pooled([p, normalised(bent)], codes)


def by_splines(p: np.ndarray, codes: np.ndarray) -> np.ndarray:
    leaf = ovi.Linear(ovi.Logistic(), ovi.Implicit(), ovi.FullCovariance(box=None))
    curve = ovi.Recalibrate(ovi.Pool([leaf], rate=1.0, pool="probability"))
    bent = np.empty_like(p)
    for code in range(p.shape[1]):
        scores = np.log(p[:, code]) - np.log(np.maximum(1.0 - p[:, code], LEAST))
        features = curve._features(scores)
        y = np.where(codes == code, 1.0, -1.0)
        bent[:, code] = curve.second.update_many(curve.second.init(features.shape[1]), features, y)[1].probability
    return pooled([p, normalised(bent)], codes)


WAYS = {"as it is": lambda p, codes: p, "temperature": by_temperature, "regression": by_regression, "splines": by_splines}


def scores(p: np.ndarray, codes: np.ndarray) -> tuple[float, float]:
    """Log loss, and the calibration error of the guess."""
    rows = np.arange(len(codes))
    guess, chance = p.argmax(axis=1), p.max(axis=1)
    bins = np.minimum((chance * 10).astype(int), 9)
    gaps = [abs(chance[bins == k].sum() - (guess == codes)[bins == k].sum()) for k in range(10)]
    return float(-np.log(p[rows, codes]).mean()), sum(gaps) / len(codes)


def said_of(X: np.ndarray, codes: np.ndarray, classes: int, effort: str) -> np.ndarray:
    """What the default says of each row before its label."""
    learner = ovi.Auto(ovi.Logistic(), effort=effort, known=classes)  # type: ignore[arg-type]
    return normalised(learner.update_many(learner.init(X.shape[1]), X, codes.astype(float))[1].probability)


def compared(p: np.ndarray, codes: np.ndarray) -> dict[str, tuple[float, float]]:
    return {name: scores(way(p, codes), codes) for name, way in WAYS.items()}


def streams(names: Iterable[str]) -> Iterable[tuple[str, str, np.ndarray, np.ndarray, int]]:
    from bent_streams import BENT, BENT_HELD_OUT

    for name, make in BENT.items():
        if names and name not in names:
            continue
        try:
            stream = make()
        except (ImportError, OSError) as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
            continue
        if stream.task == "classes":
            part = "held out" if name in BENT_HELD_OUT else "development"
            yield name, part, np.asarray(stream.X, dtype=float), stream.y.astype(int), stream.classes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("streams", nargs="*")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--effort", default="default")
    given = parser.parse_args()
    print("| stream | | classes | " + " | ".join(f"{name}: log loss, ECE" for name in WAYS) + " |")
    print("|" + "---|" * (3 + len(WAYS)))
    for name, part, X, codes, classes in streams(given.streams):
        X, codes = X[: given.rows], codes[: given.rows]
        found = compared(said_of(X, codes, classes, given.effort), codes)
        cells = " | ".join(f"{loss:.4f}, {100.0 * error:.2f}" for loss, error in found.values())
        print(f"| {name} | {part} | {classes} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
