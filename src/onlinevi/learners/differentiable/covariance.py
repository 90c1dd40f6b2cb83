"""A row and a rule's step on a full covariance Σ = CᵀC, in O(d²): ``beliefs.full_steps`` for a model's tangent, by JAX.

The tangent J = ∂f/∂θ at the mean takes the place of a row. C' = R·C with R upper triangular, whose rows need sums over
those below them: cumulative sums from the last row up, no product of matrices.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np
from jax import numpy as jnp

from onlinevi.beliefs import FullBelief
from onlinevi.engine import Belief, Gradient, Prior, Rates, Real, Slopes, Totals
from onlinevi.learners.differentiable.gradients import Predictor
from onlinevi.rules import Rule


class Law(NamedTuple):
    """What a belief says of one row, with the model replaced by its tangent at the mean."""

    prediction: Real
    spread: Real
    tangent: Real
    whitened: Real
    """w = C·J: the tangent where the belief is standard normal, so that the spread is ‖w‖."""


def law_of(predictor: Predictor, belief: FullBelief) -> Law:
    prediction, tangent = jax.value_and_grad(predictor)(belief.mean)
    whitened = belief.factor @ tangent
    return Law(prediction, jnp.sqrt(jnp.square(whitened).sum()), tangent, whitened)


def gradient_square(law: Law, slopes: Slopes) -> Real:
    """‖∂E/∂mean‖² + ‖∂E/∂C‖², where ∂E/∂C_kj = e2·w_k·J_j for j ≥ k."""
    from_here_on = jax.lax.cumsum(jnp.square(law.tangent), reverse=True)
    spread_square = (jnp.square(law.whitened) * from_here_on).sum()
    return jnp.square(slopes.slope) * from_here_on[0] + jnp.square(slopes.curvature * jnp.sqrt(spread_square))


def by_prediction(rule: type[Rule], belief: FullBelief, law: Law, slopes: Slopes, rates: Rates) -> FullBelief:
    """The rule moves the law of the prediction; given the prediction, all else stays as it was.

    Then P' = P + growth·JJᵀ, and R is the factor of I − k·wwᵀ, written in the sums of w² from below, which only add.
    """
    mean, factor = belief
    spread_out = law.spread > 0.0  # elsewhere nothing moves, and nothing is divided by 0
    spread = jnp.where(spread_out, law.spread, 1.0)
    gradient = Gradient(slopes.slope, slopes.curvature)
    new = rule.new_belief(Belief(0.0, spread), gradient, Totals(0.0, 0.0), rates, Prior(0.0, 1.0))
    shrunk, variance = new.std / spread, spread * spread
    growth = jnp.where(spread_out, (1.0 - shrunk) * (1.0 + shrunk) / (shrunk * shrunk) / variance, 0.0)
    shift = jnp.where(spread_out, new.mean / variance, 0.0)

    w = law.whitened
    above = 1.0 + growth * jax.lax.cumsum(w * w, reverse=True)
    below = jnp.append(above[1:], 1.0)
    kept = jnp.sqrt(below / above)
    sums = jax.lax.cumsum(w[:, None] * factor, reverse=True)
    sums_below = jnp.concatenate([sums[1:], jnp.zeros_like(sums[:1])])
    lean = -growth * w / below * kept
    return FullBelief(mean + shift * sums[0], kept[:, None] * factor + lean[:, None] * sums_below)  # sums[0] is Σ·J


def unpack(triangle: Real, dim: int) -> Real:
    """C from its upper triangle, row by row."""
    places = jnp.zeros(dim * dim).at[_places(dim)]
    return places.set(triangle, indices_are_sorted=True, unique_indices=True).reshape(dim, dim)


def pack(factor: Real) -> Real:
    return factor.ravel()[_places(len(factor))]


def _places(dim: int) -> Real:
    return np.ravel_multi_index(np.triu_indices(dim), (dim, dim))
