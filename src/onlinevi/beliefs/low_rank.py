"""Gaussian beliefs whose precision is diagonal plus low rank, P = diag(u) + WWᵀ: what they are.

How a row and a rule act on them is in ``low_rank_steps.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from onlinevi.beliefs import forgetting, low_rank_steps
from onlinevi.beliefs.correlated import Correlated
from onlinevi.engine import Geometry, Vector


class LowRankBelief(NamedTuple):
    """N(mean, P⁻¹), P = diag(u) + WWᵀ."""

    mean: Vector
    diagonal: Vector
    """u."""
    factor: Vector
    """W, coordinates × rank."""

    @property
    def std(self) -> Vector:
        """The std of each coordinate by itself."""
        basis, stretch = _directions(self)
        squared = np.square(basis)
        outside = np.maximum(1.0 - squared.sum(axis=1), 0.0)
        return np.asarray(np.sqrt((outside + squared @ (1.0 / stretch)) / self.diagonal))

    @property
    def covariance(self) -> Vector:
        """Σ = P⁻¹ as a d × d matrix: for small d."""
        half = _shrunk(self, np.diag(1.0 / np.sqrt(self.diagonal)), 0.5)
        return np.asarray(half @ half.T)


class LowRankNatural(NamedTuple):
    """λ = (Pm, −P/2), P = diag(u) + WWᵀ held as u and W."""

    first: Vector
    diagonal: Vector
    factor: Vector


@dataclass(frozen=True)
class LowRank(Correlated):
    """A Gaussian whose precision is diag(u) + WWᵀ with ``rank`` columns in W, from the prior on. A step costs O(d·rank²).

    An event adds growth·xxᵀ to the precision: a new column √growth·x of W. Of [W, √growth·x] the ``rank`` strongest singular
    directions stay, and the square of the one that goes is added to u, so that the diagonal of P is exact. This is the
    diagonal LO-FI filter (Chang, Durán-Martín, Shestopaloff, Jones and Murphy 2023, "Low-rank extended Kalman filtering for
    online learning of neural networks from streaming data"); L-RVGA (Lambert, Bonnabel and Bach 2022) fits a factor of the
    same form by expectation-maximisation. Law: while no more than ``rank`` directions were seen it equals ``FullCovariance``.

    The box holds the means only. A rank above the number of coordinates is that number.
    """

    name: ClassVar[str] = "low-rank"

    rank: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.rank, bool) or self.rank != int(self.rank) or self.rank < 1:
            raise ValueError(f"rank={self.rank!r}: needs a whole number ≥ 1; for independent coordinates use MeanField()")
        object.__setattr__(self, "rank", int(self.rank))
        if not all(1e-150 < std < 1e150 for std in np.atleast_1d(self.prior_std)):
            raise ValueError(f"prior_std={self.prior_std!r}: 1/prior_std² must be a float; rescale the features")

    def check_rule(self, rule: Any) -> None:
        if rule.geometry is not Geometry.PREDICTION:
            raise ValueError(
                f"{type(rule).__name__} moves the entries of a triangular factor of the covariance, which a low-rank "
                "precision has not: use NGVI() or Implicit(), or FullCovariance()"
            )

    def belief_size(self, dim: int) -> int:
        return dim * (2 + self._columns(dim))

    def _columns(self, dim: int) -> int:
        return min(self.rank, dim)

    def init(self, dim: int) -> LowRankBelief:  # type: ignore[override]
        diagonal = np.full(dim, 1.0 / np.square(self.prior_std))
        return LowRankBelief(np.full(dim, self.prior_mean), diagonal, np.zeros((dim, self._columns(dim))))

    def pack(self, belief: LowRankBelief) -> Vector:  # type: ignore[override]
        return np.concatenate([belief.mean, belief.diagonal, belief.factor.T.ravel()])

    def unpack(self, packed: Vector, dim: int) -> LowRankBelief:  # type: ignore[override]
        return LowRankBelief(packed[:dim], packed[dim : 2 * dim], packed[2 * dim :].reshape(-1, dim).T)

    def predict(self, belief: LowRankBelief, x: Any) -> tuple[Any, Any]:  # type: ignore[override]
        if not hasattr(x, "multiply"):
            return x @ belief.mean, np.square(_shrunk(belief, x / np.sqrt(belief.diagonal), 0.5)).sum(axis=-1)
        # Sparse rows stay sparse: what lies outside of W's span is a difference, exact to 1e-16 of the prior's variance.
        basis, stretch = _directions(belief)
        inside = np.square(x @ (basis / np.sqrt(belief.diagonal)[:, np.newaxis]))
        outside = x.multiply(x) @ (1.0 / belief.diagonal) - inside.sum(axis=-1)
        return x @ belief.mean, np.maximum(outside, 0.0) + inside @ (1.0 / stretch)

    def kl(self, belief: LowRankBelief, other: LowRankBelief | None = None) -> float:
        """KL(belief‖other), by default to the prior."""
        other = other or self.init(len(belief.mean))
        stretch, other_stretch = _directions(belief)[1], _directions(other)[1]
        # tr(P'Σ) − d = tr((P' − P)Σ), part by part.
        excess = np.sum((other.diagonal - belief.diagonal) * np.square(belief.std))
        excess += np.square(_shrunk(belief, other.factor.T / np.sqrt(belief.diagonal), 0.5)).sum() - np.sum(
            1.0 - 1.0 / stretch
        )
        shift = belief.mean - other.mean
        distance = np.sum(other.diagonal * np.square(shift)) + np.square(shift @ other.factor).sum()
        logs = np.log(belief.diagonal / other.diagonal).sum() + np.log(stretch).sum() - np.log(other_stretch).sum()
        return float(0.5 * (excess + distance + logs))

    def sample(self, belief: LowRankBelief, rng: np.random.Generator, count: int | None = None) -> Vector:
        """One draw of the weights, or ``count`` of them as rows."""
        noise = rng.standard_normal(belief.mean.shape if count is None else (count, *belief.mean.shape))
        return np.asarray(belief.mean + _shrunk(belief, noise, 0.5) / np.sqrt(belief.diagonal))

    def natural(self, belief: LowRankBelief) -> LowRankNatural:
        """λ of a belief."""
        first = belief.diagonal * belief.mean + belief.factor @ (belief.mean @ belief.factor)
        return LowRankNatural(first, np.array(belief.diagonal), np.array(belief.factor))

    def from_natural(self, natural: LowRankNatural) -> LowRankBelief:
        """The belief of λ. The mean is exact; columns beyond the rank go to the diagonal, the weakest directions first."""
        if not (natural.diagonal > 0.0).all():
            raise ValueError("no belief of this family has these natural parameters: the diagonal must be above 0 everywhere")
        whole, root = LowRankBelief(*natural), np.sqrt(natural.diagonal)
        mean = _shrunk(whole, natural.first / root, 1.0) / root
        return _compressed(whole._replace(mean=mean), self._columns(len(mean)))

    def expectation(self, belief: LowRankBelief) -> Any:
        """Refused: E[θθᵀ] is neither diagonal plus low rank in P nor of a size to hold."""
        raise TypeError("a low-rank precision has no low-rank expectation parameters: E[θθᵀ] is d × d; use FullCovariance()")

    def merge(self, beliefs: Sequence[LowRankBelief], start: LowRankBelief | None = None) -> LowRankBelief:
        """One belief from those of shards that started from this prior: prior + Σ (shard − prior), in natural parameters.

        The mean is that of the sum. Its precision has the columns of all shards; those beyond the rank go to the diagonal.
        ``start`` is what they started from, where it was not the prior; all but one of its copies are taken out again.
        """
        if not beliefs:
            raise ValueError("nothing to merge: give one belief a shard")
        origin = self.natural(self.init(len(beliefs[0].mean)) if start is None else start)
        shards = [self.natural(belief) for belief in beliefs]
        first = origin.first + sum(shard.first - origin.first for shard in shards)
        diagonal = origin.diagonal + sum(shard.diagonal - origin.diagonal for shard in shards)
        columns = np.hstack([shard.factor for shard in shards])
        if not origin.factor.any() or len(shards) == 1:
            return self.from_natural(LowRankNatural(first, diagonal, columns))
        signs = np.concatenate([np.ones(columns.shape[1]), np.full(origin.factor.shape[1], 1.0 - len(shards))])
        return self._of_signed(first, diagonal, np.hstack([columns, origin.factor]), signs)

    def _of_signed(self, first: Vector, diagonal: Vector, columns: Vector, signs: Vector) -> LowRankBelief:
        """The belief of the precision diag + Σ sign·column·columnᵀ. Directions that are below 0 go to the diagonal too."""
        if not (diagonal > 0.0).all():
            raise ValueError("no belief of this family is the sum of these: their diagonals fall below 0; merge in one round")
        root = np.sqrt(diagonal)[:, np.newaxis]
        basis, coordinates = np.linalg.qr(columns / root)
        strength, turn = np.linalg.eigh((coordinates * signs) @ coordinates.T)
        directions = basis @ turn
        if not (strength > -1.0).all():
            raise ValueError("no Gaussian is the sum of these beliefs: its precision falls below 0; merge in one round")
        scaled = first / root[:, 0]
        mean = (scaled - directions @ ((strength / (1.0 + strength)) * (scaled @ directions))) / root[:, 0]
        taken = np.square(root * directions) @ np.minimum(strength, 0.0)
        if not (diagonal + taken > 0.0).all():
            raise ValueError("no belief of this family is the sum of these: their diagonals fall below 0; merge in one round")
        factor = root * directions * np.sqrt(np.maximum(strength, 0.0))
        return _compressed(LowRankBelief(mean, diagonal + taken, factor), self._columns(len(mean)))

    # --- parts of the compiled loop

    views = staticmethod(low_rank_steps.views)
    moments = staticmethod(low_rank_steps.moments)
    missing_variance = staticmethod(low_rank_steps.variance_of_missing)
    squares = staticmethod(low_rank_steps.squares)
    advance = staticmethod(low_rank_steps.by_prediction)
    forget = staticmethod(forgetting.low_rank)


def _directions(belief: LowRankBelief) -> tuple[Vector, Vector]:
    """(E, 1 + s²): where z = √u·θ is known better than u alone says, and by how much. Its precision is I + E·diag(s²)·Eᵀ."""
    basis, singular, _ = np.linalg.svd(belief.factor / np.sqrt(belief.diagonal)[:, np.newaxis], full_matrices=False)
    return basis, 1.0 + np.square(singular)


def _shrunk(belief: LowRankBelief, rows: Vector, power: float) -> Vector:
    """rows·(I + E·diag(s²)·Eᵀ)^−power. What W spans is taken out first: I − (…) would cancel where s is large."""
    basis, stretch = _directions(belief)
    inside = rows @ basis
    return np.asarray(rows - inside @ basis.T + (inside / stretch**power) @ basis.T)


def _compressed(belief: LowRankBelief, columns: int) -> LowRankBelief:
    """The strongest orthogonal directions of W; the squares of the others on the diagonal, so that P's stays exact."""
    basis, singular, _ = np.linalg.svd(belief.factor, full_matrices=False)
    factor = basis * singular
    diagonal = belief.diagonal + np.square(factor[:, columns:]).sum(axis=1)
    kept = np.zeros((len(diagonal), columns))
    kept[:, : factor.shape[1]] = factor[:, :columns]
    return LowRankBelief(belief.mean, diagonal, kept)
