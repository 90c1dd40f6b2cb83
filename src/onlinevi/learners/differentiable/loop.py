"""The loop of ``engine.one_pass`` for a model, compiled by JAX: one event, a block of events, and predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeAlias

import jax
import numpy as np
from jax import numpy as jnp

from onlinevi.beliefs import Family, FullBelief, named_rows
from onlinevi.engine import (
    ADAPTIVE_POWER,
    SETTING,
    SUM,
    Belief,
    Expected,
    Gradient,
    Prior,
    Rates,
    Real,
    Slopes,
    Totals,
    Vector,
    adaptive_rate,
    rate_at,
    rates_against_prior,
)
from onlinevi.learners.differentiable import covariance
from onlinevi.learners.differentiable.gradients import Cost, Linearised, MonteCarlo, Predictor
from onlinevi.learners.differentiable.weights import Layout, Model, ModelPlan
from onlinevi.losses import Loss
from onlinevi.rules import Rule

Pace: TypeAlias = Callable[[Real], Rates]
"""The rates of a step, once the square of its gradient is known."""

LARGEST_BATCH = 512
"""How many rows are predicted at once, at most."""


@dataclass(frozen=True)
class Parts:
    """What the loop is compiled for; all else it reads as data."""

    model: Model
    layout: Layout
    loss: type[Loss]
    rule: type[Rule]
    family: type[Family]
    belief_size: int
    gradient: MonteCarlo | Linearised
    average: bool
    ball: bool
    """Whether means and stds are scaled back to balls."""
    floored: bool
    """Whether means move with the std that a floor has kept."""

    @staticmethod
    def of(plan: ModelPlan) -> Parts:
        # At a point there is nothing to draw: the tangent gives the gradient itself.
        gradient = plan.gradient if plan.family.gaussian else Linearised()
        kinds = type(plan.loss), type(plan.rule), type(plan.family)
        features = plan.features
        return Parts(plan.model, plan.layout, *kinds, plan.sizes[1], gradient, plan.average, features.ball, features.floored)

    def predictor(self, x: Real) -> Predictor:
        return lambda flat: self.model(self.layout.params(flat), x)

    def inside(self, vector: Real, low: Real, high: Real, radius: Real) -> Real:
        """The nearest point of the box, or of the ball of this radius."""
        vector = jnp.clip(vector, low, high)
        if not self.ball:
            return vector
        length = jnp.linalg.norm(vector)
        return jnp.where(length > radius, vector * (radius / length), vector)


class Running(NamedTuple):
    """A packed state in its parts, in their order; those that a run does not keep are empty."""

    head: Real
    mean: Real
    scale: Real
    """What spreads the belief: the std of each weight, or the factor C of a full covariance."""
    mean_total: Real
    scale_total: Real
    drift: Real

    @staticmethod
    def of(parts: Parts, array: Real) -> Running:
        dim, scale = parts.layout.size, parts.belief_size - parts.layout.size
        sizes = len(SUM), dim, scale, dim, scale * parts.rule.keeps_std_total, dim * parts.average
        running = Running(*jnp.split(array, np.cumsum(sizes)[:-1]))
        return running._replace(scale=covariance.unpack(running.scale, dim)) if parts.family.correlated else running

    def packed(self) -> Real:
        return jnp.concatenate([covariance.pack(part) if part.ndim > 1 else part for part in self])

    @property
    def belief(self) -> Belief:
        return Belief(self.mean, self.scale if self.scale.size else jnp.zeros_like(self.mean))

    @property
    def full_belief(self) -> FullBelief:
        return FullBelief(self.mean, self.scale)

    def key(self, seed: Real) -> Any:
        """The random key goes by the number of the next event: how a stream is cut into blocks changes no draw."""
        return jax.random.fold_in(jax.random.key(seed), self.head[SUM.count].astype(jnp.uint32))


class Settings(NamedTuple):
    """What a plan sets, as data: changing it compiles nothing."""

    seed: Real
    settings: Real
    prior_and_box: Real
    parameters: Real


class Outcome(NamedTuple):
    """One event as a belief sees it, weight and ridge included, and what the rule makes of the belief."""

    prediction: Real
    spread: Real
    paid: Real
    expected: Real
    product: Real
    magnitude: Real
    """|⟨gradient, mean⟩| without the ridge: the part of the product that may be below 0."""
    gradient_square: Real
    size: Real
    """‖(mean, scale)‖² before the step, which a ridge costs."""
    mean: Real
    """Before the box."""
    scale: Real
    mean_total: Real
    scale_total: Real


def one_event(parts: Parts, set_to: Settings, running: Running, x: Real, y: Real, weight: Real) -> tuple[Running, Real]:
    """Decide, see the row, pay, update. Returns what is recorded of it too."""
    settings, box = set_to.settings, named_rows(set_to.prior_and_box)

    def cost(a: Real, v: Real) -> Expected:
        return parts.loss.expected(y, a, v, *set_to.parameters)

    t = running.head[SUM.count] + 1.0

    def pace(gradient_square: Real) -> Rates:
        """The rates of a step whose gradient has this square."""
        scale, power, when = settings[SETTING.step_scale], settings[SETTING.step_power], t + settings[SETTING.lead]
        adaptive = adaptive_rate(scale, running.head[SUM.gradient_square] + gradient_square)
        step = jnp.where(power == ADAPTIVE_POWER, adaptive, rate_at(scale, power, when))
        prior = rate_at(settings[SETTING.prior_scale], settings[SETTING.prior_power], when)
        return rates_against_prior(step, prior, settings[SETTING.per_variance] > 0.0)

    play_event = correlated_event if parts.family.correlated else independent_event
    outcome = play_event(parts, set_to, running, parts.predictor(x), cost, weight, pace)
    sums = {
        SUM.count: 1.0,
        SUM.weight: weight,
        SUM.weight_square: weight * weight,
        SUM.loss: outcome.paid,
        SUM.expected: outcome.expected,
        SUM.product: outcome.product,
        SUM.gradient_square: outcome.gradient_square,
        SUM.square: jnp.where(settings[SETTING.ridge] > 0.0, outcome.size, 0.0),
        SUM.sloped: 0.0,
        SUM.slope_square: 0.0,
        SUM.magnitude: outcome.magnitude,
        SUM.largest_square: jnp.maximum(outcome.gradient_square - running.head[SUM.largest_square], 0.0),
    }
    head = running.head + jnp.stack([sums[place] for place in range(len(SUM))])
    mean = parts.inside(outcome.mean, box.mean_low, box.mean_high, settings[SETTING.mean_radius])
    drift = running.drift + t * (mean - running.mean) if parts.average else running.drift
    after = Running(head, mean, outcome.scale, outcome.mean_total, outcome.scale_total, drift)
    return after, jnp.stack([outcome.prediction, outcome.spread, outcome.paid])


def independent_event(
    parts: Parts, set_to: Settings, running: Running, predictor: Predictor, cost: Cost, weight: Real, pace: Pace
) -> Outcome:
    """The outcome of an event where the weights are independent, or at a point."""
    box, belief = named_rows(set_to.prior_and_box), running.belief
    view = parts.gradient.view(predictor, cost, belief, running.key(set_to.seed))
    pull = weight * set_to.settings[SETTING.ridge]
    means = jnp.square(belief.mean).sum()
    size = means + jnp.square(belief.std).sum()
    gradient = Gradient(weight * view.gradient.mean + pull * belief.mean, weight * view.gradient.curvature + pull)
    std_gradient = gradient.curvature * belief.std
    mean_total = running.mean_total + gradient.mean
    std_total = running.scale_total + std_gradient if parts.rule.keeps_std_total else running.scale_total
    prior = Prior(box.prior_mean, box.prior_std)
    square = (jnp.square(gradient.mean) + jnp.square(std_gradient)).sum()
    rates = pace(square)
    new = parts.rule.new_belief(belief, gradient, Totals(mean_total, std_total), rates, prior)
    std = parts.inside(new.std, box.std_low, box.std_high, set_to.settings[SETTING.std_radius])
    moved = parts.rule.with_kept_std(std, belief, gradient, rates, prior) if parts.floored else new
    return Outcome(
        view.prediction,
        view.spread,
        paid=weight * cost(view.prediction, 0.0).value + 0.5 * pull * means,
        expected=weight * view.value + 0.5 * pull * size,
        product=(gradient.mean * belief.mean + std_gradient * belief.std).sum(),
        magnitude=jnp.abs((weight * view.gradient.mean * belief.mean).sum()),
        gradient_square=square,
        size=size,
        mean=moved.mean,
        scale=std if parts.family.gaussian else running.scale,
        mean_total=mean_total,
        scale_total=std_total,
    )


def correlated_event(
    parts: Parts, set_to: Settings, running: Running, predictor: Predictor, cost: Cost, weight: Real, pace: Pace
) -> Outcome:
    """The outcome of an event under a full covariance; there is no ridge then."""
    law = covariance.law_of(predictor, running.full_belief)
    loss = cost(law.prediction, law.spread)
    slopes = Slopes(weight * loss.slope, weight * loss.curvature)
    gradient = slopes.slope * law.tangent
    square = covariance.gradient_square(law, slopes)
    new = covariance.by_prediction(parts.rule, running.full_belief, law, slopes, pace(square))
    return Outcome(
        law.prediction,
        law.spread,
        paid=weight * cost(law.prediction, 0.0).value,
        expected=weight * loss.value,
        product=(gradient * running.mean).sum() + slopes.curvature * jnp.square(law.spread),
        magnitude=jnp.abs((gradient * running.mean).sum()),
        gradient_square=square,
        size=0.0,
        mean=new.mean,
        scale=new.factor,
        mean_total=running.mean_total + gradient,
        scale_total=running.scale_total,
    )


@partial(jax.jit, static_argnums=0)
def one_block(
    parts: Parts, set_to: Settings, array: Real, rows: Real, labels: Real, weights: Real, count: Real
) -> tuple[Real, Real, Real]:
    """The first ``count`` rows, up to one whose step is not finite. Returns how many were used, the state, the record.

    A loop with a count rather than a scan: one piece of machine code for every count, hence the same bits for every split.
    """

    def go_on(carry: Any) -> Any:
        i, finite, *_ = carry
        return finite & (i < count)

    def body(carry: Any) -> Any:
        i, _, running, record = carry
        after, event = one_event(parts, set_to, running, rows[i], labels[i], weights[i])
        # A sum is finite only where every term is. A bad step is not taken: the state stays as that row found it.
        finite = jnp.isfinite(sum(part.sum() for part in after) + event.sum())
        kept = jax.tree.map(lambda new, old: jnp.where(finite, new, old), after, running)
        return i + finite, finite, kept, record.at[i].set(event)

    start = jnp.asarray(0), jnp.asarray(True), Running.of(parts, array), jnp.zeros((len(labels), 3))
    used, _, running, record = jax.lax.while_loop(go_on, body, start)
    return used, running.packed(), record


@partial(jax.jit, static_argnums=0)
def predict_rows(parts: Parts, seed: Real, array: Real, rows: Real) -> Any:
    """(prediction, spread) of each row, as an update would record them."""
    running = Running.of(parts, array)
    key = running.key(seed)

    def predict_row(x: Real) -> tuple[Real, Real]:
        if parts.family.correlated:
            law = covariance.law_of(parts.predictor(x), running.full_belief)
            return law.prediction, law.spread
        return parts.gradient.predict(parts.predictor(x), running.belief, key)

    return jax.lax.map(predict_row, rows, batch_size=min(LARGEST_BATCH, len(rows)))


def play(
    plan: ModelPlan, array: Vector, rows: Vector, labels: Vector, weights: Vector, size: int
) -> tuple[int, Vector, Vector]:
    """``one_block`` in 64 bits, over at most ``size`` rows; filled up to that many, so that it is compiled once."""
    count = len(labels)
    filled, data = np.zeros((size, rows.shape[1])), np.zeros((2, size))
    filled[:count], data[0, :count], data[1, :count] = rows, labels, weights
    set_to = Settings(plan.seed, plan.settings, plan.prior_and_box, plan.parameters)
    with jax.enable_x64(True):
        used, after, record = one_block(Parts.of(plan), set_to, array, filled, *data, count)
        return int(used), np.asarray(after), np.asarray(record)


def predict(plan: ModelPlan, array: Vector, rows: Vector) -> tuple[Vector, Vector]:
    """``predict_rows`` in 64 bits."""
    with jax.enable_x64(True):
        prediction, spread = predict_rows(Parts.of(plan), plan.seed, array, rows)
        return np.asarray(prediction), np.asarray(spread)


@lru_cache(maxsize=256)
def check_model(model: Model, layout: Layout, features: int) -> None:
    """Refuse a model that does not take such rows, before anything is compiled."""
    try:
        with jax.enable_x64(True):
            weights, row = (jax.ShapeDtypeStruct((size,), float) for size in (layout.size, features))
            shape = np.shape(jax.eval_shape(lambda flat, x: model(layout.params(flat), x), weights, row))
    except (TypeError, ValueError, LookupError) as error:
        raise ValueError(f"the model refuses a row of {features} features with weights {layout.shapes}: {error}") from error
    if shape != ():
        raise ValueError(f"the model predicts an array of shape {shape}: needs one number a row")
