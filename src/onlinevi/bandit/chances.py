"""What is believed of the arms' scores, and how likely each arm is the best of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlinevi.engine import Vector, compose, ns

FAR = 8.0
"""So many stds from its mean nothing of a Gaussian is left."""
PIECE = 2.0
"""How long a piece of the integral is, in stds of the narrowest arm that matters there."""
NODES, WEIGHTS = np.polynomial.legendre.leggauss(6)
"""Of each piece."""
SQRT_TAU, SQRT_HALF = float(np.sqrt(2.0 * np.pi)), float(np.sqrt(0.5))


class Law(NamedTuple):
    """The law of the arms' scores at a context: Gaussian, each on the scale of the loss."""

    mean: Vector
    std: Vector
    root: Vector | None = None
    """Where arms share weights, R with the covariance R·Rᵀ; None where each has its own, and scores are independent."""
    columns: int = 1
    """Of the rows that were asked about, as the learner has them."""

    @property
    def covariance(self) -> Vector:
        """Of the scores."""
        return np.diag(np.square(self.std)) if self.root is None else np.asarray(self.root @ self.root.T)

    def widened(self, factor: float) -> Law:
        """The law with stds that are so many times as large."""
        return self._replace(std=factor * self.std, root=None if self.root is None else factor * self.root)

    def draws(self, rng: np.random.Generator, count: int) -> Vector:
        """So many draws of all scores, as rows."""
        if self.root is None:
            return self.mean + self.std * rng.standard_normal((count, len(self.mean)))
        return np.asarray(self.mean + rng.standard_normal((count, self.root.shape[1])) @ self.root.T)


def shared_by_ties(best: Vector) -> Vector:
    """1 divided evenly among the places that are marked."""
    return best / np.count_nonzero(best)


def chance_of_best(mean: Vector, std: Vector) -> Vector:
    """The probability that each of independent Gaussians is the largest: ∫ f_a(s) Π_{b≠a} F_b(s) ds, by quadrature.

    Those without a spread that tie for the best of such share its chance.

    >>> import numpy as np
    >>> chance_of_best(np.array([0.0, 0.0, 1.0]), np.array([1.0, 1.0, 1.0])).round(4).tolist()
    [0.1831, 0.1831, 0.6337]
    """
    spread = std > 0.0
    fixed = float(mean[~spread].max(initial=-np.inf))
    low = max(float((mean - FAR * std).max()), fixed)
    able = spread & (mean + FAR * std > low)  # the others come second but once in 10¹⁵
    result = np.zeros(len(mean))
    a, v = mean[able], std[able]
    if fixed > -np.inf:
        certain = ~spread & (mean == fixed)
        result[certain] = shared_by_ties(certain)[certain] * below(fixed - a, v).prod()
    elif len(a) == 2:
        first = float(below(a[0] - a[1], np.hypot(v[0], v[1])))
        result[able] = first, 1.0 - first
        return result
    if len(a):
        found = np.zeros(len(a))
        _integrate.run(a, v, low, float((a + FAR * v).max()), NODES, WEIGHTS, np.empty((3, len(a))), found)
        result[able] = found
    # A spread that is nothing beside its mean leaves no room to integrate over: the largest mean is the largest.
    return result / result.sum() if result.any() else shared_by_ties(mean == mean.max())


def below(gap: Any, std: Any) -> Any:
    """The probability that a Gaussian is below what lies so far above its mean."""
    return 0.5 * (1.0 + ns.erf(SQRT_HALF * gap / std))


def integrate(mean: Any, std: Any, low: float, high: float, nodes: Any, weights: Any, work: Any, found: Any) -> None:
    """Adds ∫ f_a Π_{b≠a} F_b from low to high to what is found, in pieces as short as the narrowest arm nearby needs."""
    count, start, length = len(mean), low, 1.0
    while start < high and start + length > start:
        finest = 0.0
        for k in range(count):
            finest = max(finest, 1.0 / max(std[k], abs(start - mean[k]) / FAR))
        length = min(PIECE / finest, high - start)
        for i in range(len(nodes)):
            point, product = start + 0.5 * length * (1.0 + nodes[i]), 0.5 * length * weights[i]
            for k in range(count):
                gap = point - mean[k]
                work[0, k], work[1, k] = product, below(gap, std[k])
                work[2, k] = ns.exp(-0.5 * (gap / std[k]) ** 2) / (SQRT_TAU * std[k])
                product *= work[1, k]
            product = 1.0
            for k in range(count - 1, -1, -1):
                found[k] += work[0, k] * product * work[2, k]
                product *= work[1, k]
        start += length


_integrate = compose(integrate, {})


def share_of_best(draws: Vector) -> Vector:
    """In which share of the draws each arm was the largest; ties share."""
    best = draws == draws.max(axis=1, keepdims=True)
    return np.asarray((best / best.sum(axis=1, keepdims=True)).mean(axis=0))
