"""Gaussian beliefs with a full covariance Σ = CᵀC, C upper triangular: what they are.

How the rules act on them is in ``full_steps.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlinevi.beliefs import forgetting, full_steps
from onlinevi.beliefs.correlated import Correlated
from onlinevi.engine import Vector


class FullBelief(NamedTuple):
    """N(mean, CᵀC)."""

    mean: Vector
    factor: Vector
    """C, upper triangular."""

    @property
    def covariance(self) -> Vector:
        return np.asarray(self.factor.T @ self.factor)

    @property
    def std(self) -> Vector:
        """The std of each coordinate by itself."""
        return np.asarray(np.sqrt(np.square(self.factor).sum(axis=0)))


class FullNatural(NamedTuple):
    """λ = (Pm, −P/2), P = Σ⁻¹."""

    first: Vector
    second: Vector


class FullExpectation(NamedTuple):
    """μ = (E[θ], E[θθᵀ])."""

    first: Vector
    second: Vector


@dataclass(frozen=True)
class FullCovariance(Correlated):
    """A Gaussian with all covariances, from the prior N(prior_mean, prior_std²) on. A step costs O(d²).

    The box holds the means only: the domain of a covariance has no bounds here.
    """

    name: ClassVar[str] = "full"

    def belief_size(self, dim: int) -> int:
        return dim + dim * (dim + 1) // 2

    def init(self, dim: int) -> FullBelief:  # type: ignore[override]
        return FullBelief(np.full(dim, self.prior_mean), np.diag(np.full(dim, self.prior_std)))

    def pack(self, belief: FullBelief) -> Vector:  # type: ignore[override]
        return np.concatenate([belief.mean, belief.factor[_upper(len(belief.mean))]])

    def unpack(self, packed: Vector, dim: int) -> FullBelief:  # type: ignore[override]
        factor = np.zeros((dim, dim))
        factor[_upper(dim)] = packed[dim:]
        factor.setflags(write=False)
        return FullBelief(packed[:dim], factor)

    def from_covariance(self, mean: Vector, covariance: Vector) -> FullBelief:
        """The belief N(mean, covariance)."""
        try:
            factor = np.linalg.cholesky(covariance).T
        except np.linalg.LinAlgError as error:
            raise ValueError("the covariance is not positive definite: no Gaussian has it") from error
        return FullBelief(np.array(mean, dtype=float), np.ascontiguousarray(factor))

    def predict(self, belief: FullBelief, x: Any) -> tuple[Any, Any]:  # type: ignore[override]
        return x @ belief.mean, np.square(x @ belief.factor.T).sum(axis=-1)

    def kl(self, belief: FullBelief, other: FullBelief | None = None) -> float:
        """KL(belief‖other), by default to the prior; infinite where either is flat in a direction."""
        other = other or self.init(len(belief.mean))
        if not np.diag(other.factor).all():
            return np.inf
        with np.errstate(divide="ignore"):
            ratio = _solve(belief.factor, other.factor)
            shift = _solve((belief.mean - other.mean)[np.newaxis], other.factor)
            logs = np.log(np.abs(np.diag(belief.factor))) - np.log(np.abs(np.diag(other.factor)))
            return float(0.5 * (np.square(ratio).sum() + np.square(shift).sum() - len(belief.mean)) - logs.sum())

    def sample(self, belief: FullBelief, rng: np.random.Generator, count: int | None = None) -> Vector:
        """One draw of the weights, or ``count`` of them as rows."""
        shape = belief.mean.shape if count is None else (count, *belief.mean.shape)
        return np.asarray(belief.mean + rng.standard_normal(shape) @ belief.factor)

    def natural(self, belief: FullBelief) -> FullNatural:
        """λ of a belief whose covariance has an inverse."""
        if not np.diag(belief.factor).all():
            raise ValueError(
                "the covariance is singular: it has no natural parameters; use NGVI or Implicit, which keep it regular"
            )
        inverse = _solve(np.eye(len(belief.mean)), belief.factor)
        precision = inverse @ inverse.T
        return FullNatural(precision @ belief.mean, -0.5 * precision)

    def from_natural(self, natural: FullNatural) -> FullBelief:
        """The belief of λ; the second part must be negative definite."""
        try:
            # P = UUᵀ with U upper triangular makes C = U⁻¹: a Cholesky factor of P in reversed order.
            reverse = np.linalg.cholesky(-2.0 * natural.second[::-1, ::-1])[::-1, ::-1]
        except np.linalg.LinAlgError as error:
            raise ValueError("no Gaussian has these natural parameters: −2·second must be positive definite") from error
        factor = np.triu(_solve(np.eye(len(natural.first)), reverse))
        return FullBelief(factor.T @ (factor @ natural.first), factor)

    def merge_forgetful(self, beliefs: Sequence[FullBelief]) -> FullBelief:
        """Coordinates forget by turns, so that a shard may know a little less than the prior in some direction; with many
        shards that adds up to less than nothing. All together are held to know no less than the prior, in any direction."""
        prior = self.natural(self.init(len(beliefs[0].mean)))
        shards = [self.natural(belief) for belief in beliefs]
        first = prior.first + sum(shard.first - prior.first for shard in shards)
        second = prior.second + sum(shard.second - prior.second for shard in shards)
        root = np.linalg.cholesky(-2.0 * prior.second)
        strength, turn = np.linalg.eigh(_solve(_solve(-2.0 * second, root.T).T, root.T))
        frame = root @ turn
        return self.from_natural(FullNatural(first, -0.5 * (frame * np.maximum(strength, 1.0)) @ frame.T))

    def expectation(self, belief: FullBelief) -> FullExpectation:
        """μ of a belief."""
        return FullExpectation(np.array(belief.mean), belief.covariance + np.outer(belief.mean, belief.mean))

    def from_expectation(self, expectation: FullExpectation) -> FullBelief:
        """The belief of μ. Variances that are small beside the squared means have lost digits in E[θθᵀ]."""
        return self.from_covariance(expectation.first, expectation.second - np.outer(expectation.first, expectation.first))

    # --- parts of the compiled loop

    views = staticmethod(full_steps.views)
    moments = staticmethod(full_steps.moments)
    missing_variance = staticmethod(full_steps.variance_of_missing)
    squares = staticmethod(full_steps.squares)
    forget = staticmethod(forgetting.full)

    @classmethod
    def advance_for(cls, rule: Any) -> Callable[..., None]:
        return full_steps.BY_GEOMETRY[rule.geometry]


@lru_cache(maxsize=16)
def _upper(dim: int) -> tuple[Any, ...]:
    """Where the packed entries of a factor lie in it."""
    return np.triu_indices(dim)


def _solve(rows: Vector, factor: NDArray[np.floating]) -> Vector:
    """rows·factor⁻¹, factor upper triangular."""
    from scipy.linalg import solve_triangular

    return np.asarray(solve_triangular(factor, rows.T, trans="T").T)
