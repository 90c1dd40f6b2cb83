"""What the loop asks of its parts.

Each function here is a hole: the loop and the families call it by this name, and ``kernel.compose`` puts the function of the
chosen loss, rule or family in its place before anything runs. Called as they stand the holes refuse.
"""

from __future__ import annotations

from typing import Any, NoReturn

from onlinevi.engine.types import Belief, Event, Expected, Gradient, Moments, Prior, Rates, Real, Slopes, StepInputs, Totals


def _hole(name: str) -> NoReturn:
    raise TypeError(f"{name} is a hole of the compiled loop: compose a kernel first")


# --- A loss gives what a prediction costs.


def expected(y: Real, a: Real, v: Real, *parameters: Real) -> Expected:
    """The loss returns (E, ∂E/∂a, ∂²E/∂a²) under a prediction N(a, v²)."""
    _hole("expected")


def valid_label(y: Real, *parameters: Real) -> Real:
    """The loss says whether it is defined at this label."""
    _hole("valid_label")


def is_flat(y: Real, a: Real, *parameters: Real) -> Real:
    """The loss says whether it is known to be (0, 0, 0) at the prediction a, before it is computed. It may always say no."""
    _hole("is_flat")


def odds(a: Real, v: Real, *parameters: Real) -> tuple[Real, Real]:
    """The loss returns (P(+1), P(−1)) at a prediction N(a, v²): given by losses that know probabilities of classes."""
    _hole("odds")


# --- A rule gives the step.


def new_belief(belief: Belief, gradient: Gradient, totals: Totals, rates: Rates, prior: Prior) -> Belief:
    """The rule returns one coordinate's new belief; ``totals`` include this event."""
    _hole("new_belief")


def with_kept_std(std: Real, belief: Belief, gradient: Gradient, rates: Rates, prior: Prior) -> Belief:
    """The rule returns the belief behind a step whose std the box has kept at ``std``: asked of rules with a floor."""
    _hole("with_kept_std")


def small_step(belief: Belief, gradient: Gradient, totals: Totals, rates: Rates, prior: Prior) -> Belief:
    """The same step where it is known to be small, by a cheaper formula (``speedups``)."""
    _hole("small_step")


def has_small_steps() -> bool:
    """The rule has such a formula, and the family makes use of it."""
    _hole("has_small_steps")


def slopes_after_step(
    views: Any, rows: Any, event: Event, y: Real, law: Moments, seen: Slopes, weight: Real, rates: Rates, parameters: Any
) -> Slopes:
    """The rule returns the slopes that its step follows: those seen before it, or those that will be true after it."""
    _hole("slopes_after_step")


def keeps_std_total() -> bool:
    """The rule reads ``totals.std``, so the state keeps it; ``totals.mean`` is summed for every rule."""
    _hole("keeps_std_total")


def rate_is_adaptive() -> bool:
    """The rate falls with the gradients seen, rather than with time."""
    _hole("rate_is_adaptive")


def per_variance() -> bool:
    """The rate divides by the variance: ``Rates.per_variance``, known before the loop."""
    _hole("per_variance")


# --- A family gives the belief: how it lies in an array, what it predicts, how a step reaches it.


def views(belief: Any, totals: Any, dim: int) -> Any:
    """The family returns the vectors inside a packed belief and its gradient totals: the mean first, work space last."""
    _hole("views")


def moments(views: Any, rows: Any, event: Event) -> Moments:
    """The family returns the law of the prediction at a row."""
    _hole("moments")


def missing_variance(views: Any, rows: Any, event: Event) -> Real:
    """The family returns Σ E[θ_j²] over the row's missing values: what they add to the variance. ``moments`` calls it last."""
    _hole("missing_variance")


def variance_after(views: Any, rows: Any, event: Event, law: Moments, growth: Real) -> tuple[Real, Real]:
    """The family returns the prediction's variance V once growth·xxᵀ has been added to the precision, and −dV/dgrowth."""
    _hole("variance_after")


def is_one_hyperbola() -> bool:
    """Of growth, V is a hyperbola: that which touches it anywhere is V."""
    _hole("is_one_hyperbola")


def squares(views: Any) -> tuple[Real, Real]:
    """The family returns E‖θ‖² split as (‖mean‖², the rest): what a ridge costs."""
    _hole("squares")


def advance(views: Any, rows: Any, event: Event, inputs: StepInputs, prior_and_box: Any) -> None:
    """The family sums the gradients seen, and applies the rule with the slopes taken to the row's coordinates, in place."""
    _hole("advance")


def move_coordinate(now: Belief, totals: Totals, x: Real, inputs: StepInputs, box: Any, j: int) -> tuple[Belief, Totals]:
    """A family of independent coordinates returns one of them behind an event, in the box, and its sums with it."""
    _hole("move_coordinate")


def forget(views: Any, prior_and_box: Any, discount: Real, count: Real) -> None:
    """The family moves the belief towards the prior after the ``count``-th event, in place; without a discount it stays."""
    _hole("forget")


def into_ball(views: Any, settings: Any) -> None:
    """The family scales means and stds back to their balls, in place; where it has none they stay."""
    _hole("into_ball")


def prefetch_row(views: Any, rows: Any, event: Event) -> None:
    """The family asks memory, ahead of time, for the coordinates that a sparse row touches. For speed alone."""
    _hole("prefetch_row")


def interleaved_views(table: Any) -> Any:
    """The family returns ``views`` as columns of a table that has a line for each coordinate. For speed alone."""
    _hole("interleaved_views")


# --- The kind of rows, of settings and of numbers gives how all of these are read (``reading``, ``layout``).


def event_at(rows: Any, i: int) -> Event:
    """Row i of the block."""
    _hole("event_at")


def position(rows: Any, k: int) -> int:
    """The coordinate that the value at k belongs to."""
    _hole("position")


def value(rows: Any, event: Event, k: int) -> Real:
    """The row's value at k, within its span; 0 where it is missing."""
    _hole("value")


def is_missing(rows: Any, event: Event, k: int) -> bool:
    """The row's value at k is missing."""
    _hole("is_missing")


def missing_mean_square(mean: Any, rows: Any, event: Event) -> Real:
    """The part of ``missing_variance`` that is the square of means, which does not shrink as more is known."""
    _hole("missing_mean_square")


def split_tail(event: Event) -> tuple[Event, Event]:
    """A row in two parts: the values that fill vectors, and the few behind them."""
    _hole("split_tail")


def prefetch_next(rows: Any, event: Event) -> None:
    """Asks memory for the values of the row behind this one."""
    _hole("prefetch_next")


def is_dense() -> bool:
    """Rows hold every coordinate. Where a ridge or a prior term moves all of them, they do."""
    _hole("is_dense")


def may_explode() -> bool:
    """Whether steps can widen the belief without end, as those over correlated coordinates can."""
    _hole("may_explode")


def is_robust() -> bool:
    """The influence of an event on a step is bounded."""
    _hole("is_robust")


def is_quadratic() -> bool:
    """The loss is (y − z)²: e1 is a line, and e2 a constant."""
    _hole("is_quadratic")


def setting_at(setting: Any, j: int) -> Real:
    """A prior's or a box's value at coordinate j: one for all, or one each."""
    _hole("setting_at")


def late_forgetting(packed: Any, sizes: Any) -> tuple[Any, Any]:
    """Where lies which events each coordinate has forgotten by, and room for what it was before a row."""
    _hole("late_forgetting")


def catch_up(views: Any, rows: Any, event: Event, late: Any, prior_and_box: Any, decay: Real, count: Real) -> None:
    """Brings the coordinates that a row stores to where forgetting after each of ``count`` events would have them."""
    _hole("catch_up")


def put_back(views: Any, rows: Any, event: Event, late: Any) -> None:
    """Undoes it, for a row that is refused."""
    _hole("put_back")


def interleave(packed: Any, rows: Any, sizes: Any) -> Any:
    """The vectors of a state as a pass works on them: as they are packed, or a copy with a line for each coordinate."""
    _hole("interleave")


def restore(packed: Any, copy: Any) -> None:
    """Brings back to the state what a pass has changed in that copy."""
    _hole("restore")


def as_numbers(state: Any) -> Any:
    """A packed state as numbers of the type of its vectors: itself, or twice as many floats."""
    _hole("as_numbers")


def cast(x: Real) -> Real:
    """x in that type. The loop gives the families nothing else, so that no double widens a loop over coordinates."""
    _hole("cast")


def in_float32() -> bool:
    """That type is float32."""
    _hole("in_float32")
