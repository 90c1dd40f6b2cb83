"""Streams of several classes, random and adversarial, and what is claimed of them: for the tests, and for the full attack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp

import onlinevi as ovi

Vector = NDArray[np.float64]
KINDS = ("gumbel", "noise", "sorted", "switching", "least likely", "most likely", "huge", "one class")


def losses(X: Any, y: Any, weights: Any) -> Vector:
    """log Σ e^z − z_y of a matrix of weights, a row a class, at each row; classes without a line are impossible."""
    return shares(X, y, weights)[0]


def shares(X: Any, y: Any, weights: Any) -> tuple[Vector, Vector]:
    """These losses, and the probabilities of the classes; scipy's logsumexp is right, and ten times as slow."""
    scores = X @ np.asarray(weights).T
    scores = scores - scores.max(axis=1, keepdims=True)
    total = np.exp(scores).sum(axis=1, keepdims=True)
    return np.log(total[:, 0]) - scores[np.arange(len(y)), y], np.exp(scores) / total


def bound(a: Vector, v: Vector, alpha: Vector) -> float:
    """Knowles and Minka's on E[log Σ e^z], z ~ N(a, diag v²), as it is printed."""
    return float(0.5 * np.sum(alpha**2 * v**2) + logsumexp(a + 0.5 * (1.0 - 2.0 * alpha) * v**2))


def expected(a: Vector, v: Vector, nodes: int = 40) -> float:
    """E[log Σ e^z] by the product of Gauss and Hermite's rules: for three classes or so."""
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    grid = np.stack(np.meshgrid(*[points] * len(a), indexing="ij"), axis=-1).reshape(-1, len(a))
    mass = np.prod(np.stack(np.meshgrid(*[weights] * len(a), indexing="ij"), axis=-1).reshape(-1, len(a)), axis=1)
    return float(mass @ logsumexp(a + v * grid, axis=1) / mass.sum())


@dataclass(frozen=True)
class Trial:
    """A stream that was played, and how near some fixed weights come to what is certified against them."""

    kind: str
    state: ovi.learners.SoftmaxState
    X: Vector
    y: Vector
    weights: Vector
    margin: float
    """The least of certified − true regret over all weights: below 0 beyond rounding, the certificate is broken."""
    size: float
    """What rounding is to be measured by."""
    nearest: Vector
    """The weights where it is the least."""


def learner_of(rng: np.random.Generator, classes: int) -> ovi.Softmax:
    """Any belief, prior, memory, classes that are known or join."""
    std = float(rng.choice([0.1, 1.0, 4.0, 30.0]))
    family = ovi.MeanField(prior_std=std, box=None) if rng.random() < 0.4 else ovi.FullCovariance(prior_std=std, box=None)
    shared = isinstance(family, ovi.FullCovariance) and rng.random() < 0.5
    grows = bool(rng.random() < 0.5)
    known = int(rng.choice([0, classes])) if grows else classes
    return ovi.Softmax(known, family, shared=shared, discount=float(rng.choice([1.0, 1.0, 0.99, 0.8])), grows=grows)


def trial(seed: int, most: int = 60) -> Trial:
    """One stream of a kind that the seed says, played by a learner that it says, and its certificate attacked."""
    rng = np.random.default_rng(seed)
    kind, count = KINDS[seed % len(KINDS)], int(rng.integers(1, most))
    dim, classes = int(rng.integers(1, 5)), int(rng.integers(2, 6))
    X = rng.standard_normal((count, dim)) * (10.0 ** rng.uniform(-1.0, 3.0) if kind == "huge" else 1.0)
    true = 2.0 * rng.standard_normal((classes, dim))
    y = (X @ true.T + rng.gumbel(size=(count, classes))).argmax(axis=1)
    if kind == "noise":
        y = rng.integers(0, classes, count)
    elif kind == "sorted":
        y = np.sort(y)
    elif kind == "switching":
        y = np.where(np.arange(count) < count // 2, y, (y + 1) % classes)
    elif kind == "one class":
        y = np.full(count, int(rng.integers(0, classes)))
    weights = rng.choice([0.1, 1.0, 5.0], count) if rng.random() < 0.3 else np.ones(count)
    learner = learner_of(rng, classes)
    state = learner.init(dim)
    if kind.endswith("likely"):
        for t in range(count):
            said = learner.forecast(state, X[t]).probability
            if len(said) == classes:
                y[t] = said.argmin() if kind.startswith("least") else said.argmax()
            state, _ = learner.update(state, X[t], float(y[t]), float(weights[t]))
    else:
        state, _ = learner.update_many(state, X, y, weights=weights, record="none")
    return attacked(kind, state, X, y, weights)


def attacked(kind: str, state: ovi.learners.SoftmaxState, X: Vector, y: Any, weights: Vector) -> Trial:
    """certified(u) − regret(u) is a sum of losses above their tangents, convex in u: its minimum is searched for."""
    live, shape = ovi.certificate(state), state.mean.shape

    def gap(flat: Vector) -> tuple[float, Vector]:
        u = flat.reshape(shape)
        paid, chances = shares(X, y, u)
        chances[np.arange(len(y)), y] -= 1.0
        value = float(weights @ paid) + float(state.gradient @ flat)
        return value, ((weights[:, None] * chances).T @ X).ravel() + state.gradient

    best = minimize(gap, state.mean.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 60, "maxfun": 150})
    candidates = [best.x, state.mean.ravel(), np.zeros(state.mean.size)]
    margins = [float(live.against(u)) - (state.loss - float(weights @ losses(X, y, u.reshape(shape)))) for u in candidates]
    place = int(np.argmin(margins))
    size = abs(state.loss) + abs(state.product) + float(weights @ losses(X, y, candidates[place].reshape(shape)))
    return Trial(kind, state, X, y, weights, margins[place], size, candidates[place].reshape(shape))
