"""What the compiled loop asks of its parts.

Each function here is a hole: the loop and the families call it by this name, and ``_jit.compose`` puts the chosen loss's,
family's or rule's function in its place before anything is compiled. Called as they stand they refuse.
"""

from __future__ import annotations

from typing import Any, NoReturn

from onlinevi.engine.types import Belief, Event, Expected, Gradient, Moments, Prior, Rates, Real, Slopes, Totals, Turn


def _hole(name: str) -> NoReturn:
    raise TypeError(f"{name} is a hole of the compiled loop: compose a kernel first")


# --- a loss gives


def expected(y: Real, a: Real, v: Real, *parameters: Real) -> Expected:
    """(E, ∂E/∂a, ∂²E/∂a²) of the loss under a prediction N(a, v²)."""
    _hole("expected")


def valid_label(y: Real, *parameters: Real) -> Real:
    """Whether the loss is defined at this label."""
    _hole("valid_label")


def odds(a: Real, v: Real, *parameters: Real) -> tuple[Real, Real]:
    """(P(+1), P(−1)) under a prediction N(a, v²), for a loss that knows probabilities."""
    _hole("odds")


def rests(y: Real, a: Real, *parameters: Real) -> Real:
    """Whether the loss at the prediction a is known to be (0, 0, 0)."""
    _hole("rests")


# --- a rule gives


def new_belief(belief: Belief, gradient: Gradient, totals: Totals, rates: Rates, prior: Prior) -> Belief:
    """One coordinate's new belief; ``totals`` include this event."""
    _hole("new_belief")


def keeps_std_total() -> bool:
    """Whether the rule reads ``totals.std``; ``totals.mean`` is summed for every rule."""
    _hole("keeps_std_total")


def by_gradients() -> bool:
    """Whether the rate falls with the gradients seen, rather than with time."""
    _hole("by_gradients")


def per_variance() -> bool:
    """Whether the rate divides by the variance: ``Rates.per_variance``, known before the loop."""
    _hole("per_variance")


def has_gentle_steps() -> bool:
    """Whether small steps have a loop of their own."""
    _hole("has_gentle_steps")


def settle(
    views: Any, rows: Any, event: Event, y: Real, law: Moments, seen: Slopes, weight: Real, rates: Rates, parameters: Any
) -> Slopes:
    """The slopes that the step follows: those seen before it, or those that will be true after it."""
    _hole("settle")


# --- a family gives


def views(belief: Any, totals: Any, dim: int) -> Any:
    """The vectors inside a packed belief and its gradient totals, the mean first; room to work in behind them."""
    _hole("views")


def columns(table: Any) -> Any:
    """The same vectors as columns of a table that has a line for each coordinate."""
    _hole("columns")


def moments(views: Any, rows: Any, event: Event) -> Moments:
    """The law of the prediction at a row."""
    _hole("moments")


def variance_after(views: Any, rows: Any, event: Event, law: Moments, growth: Real) -> tuple[Real, Real]:
    """The prediction's variance V once growth·xxᵀ has been added to the precision, and −dV/dgrowth."""
    _hole("variance_after")


def blur(views: Any, rows: Any, event: Event) -> Real:
    """Σ E[θ_j²] over the row's missing values: what they add to the prediction's variance. Called by ``moments``, last."""
    _hole("blur")


def held(mean: Any, rows: Any, event: Event) -> Real:
    """The part of ``blur`` that is the square of means, which does not shrink as more is known."""
    _hole("held")


def expect(views: Any, rows: Any, event: Event) -> None:
    """Ask memory for the coordinates that a sparse row touches, which may lie far apart, ahead of its turn."""
    _hole("expect")


def squares(views: Any) -> tuple[Real, Real]:
    """E‖θ‖² split as (‖mean‖², the rest): what a ridge costs."""
    _hole("squares")


def advance(views: Any, rows: Any, event: Event, turn: Turn, frame: Any) -> None:
    """Sum the gradients seen, and apply the rule with the slopes taken to the coordinates that the row touches, in place."""
    _hole("advance")


def forget(views: Any, frame: Any, discount: Real, count: Real) -> None:
    """Move the belief towards the prior after an event, the ``count``-th, in place; nothing where nothing is forgotten."""
    _hole("forget")


# --- the kind of numbers, of rows and of settings gives


def as_numbers(state: Any) -> Any:
    """A packed state as numbers of the type of its vectors: itself, or twice as many floats."""
    _hole("as_numbers")


def number(x: Real) -> Real:
    """x in that type. A loop over coordinates runs in it, where no double comes in."""
    _hole("number")


def in_floats() -> bool:
    """Whether that type is float32."""
    _hole("in_floats")


def laid_out(packed: Any, rows: Any, sizes: Any) -> Any:
    """Where the vectors lie during a pass."""
    _hole("laid_out")


def returned(packed: Any, copy: Any) -> None:
    """To the state what a pass has changed elsewhere."""
    _hole("returned")


def event_at(rows: Any, i: int) -> Event:
    """Row i."""
    _hole("event_at")


def ask_ahead(rows: Any, event: Event) -> None:
    """Ask memory for the values of the row behind this one."""
    _hole("ask_ahead")


def halves(event: Event) -> tuple[Event, Event]:
    """A row in two: the values that fill vectors, and the few behind them."""
    _hole("halves")


def value(rows: Any, event: Event, k: int) -> Real:
    """The row's value at k, within its span."""
    _hole("value")


def lacks(rows: Any, event: Event, k: int) -> bool:
    """Whether the row's value at k is missing; ``value`` gives 0 then."""
    _hole("lacks")


def bounded() -> bool:
    """Whether the influence of an event is bounded."""
    _hole("bounded")


def filled() -> bool:
    """Whether rows hold every coordinate. Where a ridge or a prior term moves them all, they do."""
    _hole("filled")


def position(rows: Any, k: int) -> int:
    """The coordinate that the value at k belongs to."""
    _hole("position")


def at(setting: Any, j: int) -> Real:
    """A prior's or a box's value at coordinate j: one for all, or one each."""
    _hole("at")
