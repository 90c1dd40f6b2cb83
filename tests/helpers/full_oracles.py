"""Full covariances in dense matrices: slow and certain ways to a belief, and the problems and rules that tests share."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from helpers.catalogue import labels
from helpers.oracles import evaluate
from scipy.optimize import minimize

import onlinevi as ovi
from onlinevi.beliefs.full import FullBelief

LOSSES = [ovi.Squared(), ovi.Hinge(), ovi.Poisson()]
FREE = ovi.FullCovariance(box=None)
RULES = [ovi.SVA(0.1), ovi.SVB(ovi.PerSqrt(0.3)), ovi.NGVI(step=0.7), ovi.OGAEL(0.1), ovi.Implicit(0.8)]
CONDITIONING = [ovi.NGVI(step=0.7), ovi.Implicit(0.8)]
"""Rules that add a multiple of xxᵀ to the precision."""
UNEQUAL = ovi.FullCovariance([0.3, -0.5], [0.5, 1.7], box=None)
"""A prior of its own for each coordinate."""


def random_belief(seed: int, dim: int = 3) -> FullBelief:
    rng = np.random.default_rng(seed)
    factor = np.triu(rng.standard_normal((dim, dim)), 1) + np.diag(rng.random(dim) + 0.3)
    return FullBelief(rng.standard_normal(dim), factor)


def dense_kl(mean: np.ndarray, covariance: np.ndarray, other: np.ndarray, other_covariance: np.ndarray) -> float:
    precision, shift = np.linalg.inv(other_covariance), mean - other
    logs = np.linalg.slogdet(other_covariance)[1] - np.linalg.slogdet(covariance)[1]
    return 0.5 * float(shift @ precision @ shift + np.trace(precision @ covariance) + logs - len(mean))


def divergence_from(other: FullBelief) -> Callable[[FullBelief], float]:
    """KL(·‖other), with what it takes of the other computed once."""
    precision, volume = np.linalg.inv(other.covariance), 2.0 * np.log(np.diag(other.factor)).sum()

    def divergence(q: FullBelief) -> float:
        shift, own = q.mean - other.mean, q.factor.T @ q.factor
        logs = volume - 2.0 * np.log(np.diag(q.factor)).sum()
        return 0.5 * float(shift @ precision @ shift + (precision * own).sum() + logs - len(shift))

    return divergence


def flat(mean: np.ndarray, factor: np.ndarray) -> np.ndarray:
    return np.concatenate([mean, factor[np.triu_indices(len(mean))]])


def unflat(point: np.ndarray, dim: int) -> FullBelief:
    factor = np.zeros((dim, dim))
    factor[np.triu_indices(dim)] = point[dim:]
    return FullBelief(point[:dim], factor)


def expected_loss(loss: ovi.Loss, x: np.ndarray, y: float, point: np.ndarray) -> float:
    """E_q[loss], ridge included, from its definition in (mean, C)."""
    belief = unflat(point, len(x))
    own = evaluate(loss, y, belief.mean @ x, np.linalg.norm(belief.factor @ x)).value
    return own + 0.5 * loss.ridge * float(point @ point)


def gradient(function: Callable[[np.ndarray], float], point: np.ndarray, size: float = 1e-3) -> np.ndarray:
    """By central differences whose first two errors cancel."""

    def slope(direction: np.ndarray) -> float:
        difference = [
            (function(point + h * direction) - function(point - h * direction)) / (2.0 * h) for h in (size, 2 * size, 4 * size)
        ]
        return (64.0 * difference[0] - 20.0 * difference[1] + difference[2]) / 45.0

    return np.array([slope(direction) for direction in np.eye(len(point))])


def argmin(objective: Callable[[FullBelief], float], start: FullBelief) -> FullBelief:
    """A generic optimiser over the mean, the logs of C's diagonal, and the rest of C."""
    dim = len(start.mean)
    diagonal = dim + np.flatnonzero(np.equal(*np.triu_indices(dim)))

    def belief(point: np.ndarray) -> FullBelief:
        entries = point.copy()
        entries[diagonal] = np.exp(point[diagonal])
        return unflat(entries, dim)

    point = flat(start.mean, start.factor)
    point[diagonal] = np.log(point[diagonal])
    for _ in range(2):
        wanted = partial(gradient, lambda p: objective(belief(p)))
        point = minimize(lambda p: objective(belief(p)), point, jac=wanted, method="BFGS", options={"gtol": 1e-11}).x
    return belief(point)


def assert_same(got: FullBelief, want: FullBelief, tolerance: float = 1e-7) -> None:
    np.testing.assert_allclose(got.mean, want.mean, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(got.factor, want.factor, rtol=tolerance, atol=tolerance)


def beliefs(learner: ovi.Linear, X: np.ndarray, y: np.ndarray) -> list[FullBelief]:
    """Before the first event, and after each."""
    state = learner.init(X.shape[1], len(y))
    found = [state.belief]
    for row, label in zip(X, y, strict=True):
        state, _ = learner.update(state, row, float(label))
        found.append(state.belief)
    return found


def gradients(loss: ovi.Loss, X: np.ndarray, y: np.ndarray, before: list[FullBelief]) -> np.ndarray:
    """Of each expected loss at the belief before it, in (mean, C), by differences."""
    return np.array(
        [gradient(partial(expected_loss, loss, x, label), flat(*q)) for x, label, q in zip(X, y, before, strict=True)]
    )


def events(loss: ovi.Loss, dim: int = 2, count: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    return 0.7 * rng.standard_normal((count, dim)), labels(loss, rng, count)


def bayes(X: np.ndarray, y: np.ndarray, step: float, prior_mean: np.ndarray, prior_std: np.ndarray) -> tuple:
    precision = np.diag(prior_std**-2.0) + 2.0 * step * X.T @ X
    return np.linalg.solve(precision, prior_mean / prior_std**2 + 2.0 * step * X.T @ y), np.linalg.inv(precision)
