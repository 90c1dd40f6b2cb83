"""What rates from the gradients seen cost or gain beside tuned ones: progressive log loss, features standardised online.

    python experiments/adaptive_rates.py

Breast cancer and Pima over five orders, electricity in its own. "Best" is the least of ten rates,
chosen in hindsight for each order.
"""

from __future__ import annotations

import numpy as np

import onlinevi as ovi
from onlinevi import datasets

CONSTANTS = 10.0 ** np.arange(-2.0, 3.0, 0.5)
RULES = [ovi.OGA, ovi.OGAEL, ovi.SVA, ovi.SVB]


def standardised(X: np.ndarray) -> np.ndarray:
    """Each row by the means and stds of the rows up to it, within ±5, and an intercept."""
    seen = np.arange(1, len(X) + 1)[:, None]
    mean = np.cumsum(X, axis=0) / seen
    variance = np.cumsum(np.square(X), axis=0) / seen - np.square(mean)
    scaled = (X - mean) / np.sqrt(np.where(variance > 1e-12, variance, np.inf))
    return np.hstack([np.clip(scaled, -5.0, 5.0), np.ones((len(X), 1))])


def loss_of(rule: ovi.Rule, X: np.ndarray, y: np.ndarray) -> float:
    return ovi.learn(X, y, loss=ovi.Logistic(), rule=rule, record="none").state.average_loss


def columns(rule: type[ovi.Rule], X: np.ndarray, y: np.ndarray) -> list[float]:
    time = ovi.PaperSVB if rule is ovi.SVB else ovi.PerHorizon
    return [
        loss_of(rule(ovi.Adaptive()), X, y),
        loss_of(rule(ovi.Adaptive(1.0)), X, y),
        min(loss_of(rule(ovi.Adaptive(c)), X, y) for c in CONSTANTS),
        loss_of(rule(time(1.0)), X, y),
        min(loss_of(rule(time(c)), X, y) for c in CONSTANTS),
    ]


def main() -> None:
    print("| data | rule | Adaptive() | Adaptive(1) | best Adaptive(c) | the paper's rate | best c of its form |")
    print("|---|---|---|---|---|---|---|")
    for name in ("breast", "pima", "electricity"):
        data = datasets.load(name)
        X, y = np.asarray(data.X, dtype=float), np.asarray(data.y, dtype=float)
        orders = [np.random.default_rng(seed).permutation(len(y)) for seed in range(5)]
        orders = [np.arange(len(y))] if name == "electricity" else orders
        for rule in RULES:
            losses = np.mean([columns(rule, standardised(X[order]), y[order]) for order in orders], axis=0)
            print(f"| {name} | {rule.__name__} | " + " | ".join(f"{value:.3f}" for value in losses) + " |")


if __name__ == "__main__":
    main()
