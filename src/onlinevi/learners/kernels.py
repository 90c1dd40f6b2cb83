"""The loop made ready for one choice of loss, family and rule."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from onlinevi.beliefs import Family
from onlinevi.engine import Function, Kernel, compose, holes, layout, one_pass, reading
from onlinevi.losses import Loss
from onlinevi.rules import Rule


class Features(NamedTuple):
    """What is compiled in beside the parts: as data, each would slow the loop of those who do not use it."""

    per_coordinate: bool = False
    """Priors or boxes that differ between coordinates."""
    forgets: bool = False
    robust: bool = False
    adaptive: bool = False
    """Rates from the gradients seen."""
    per_variance: bool = False
    """Rates that divide by the variance."""
    missing: bool = False
    """NaN in a row is a missing value."""
    single: bool = False
    """Vectors and rows in float32."""


PLAIN = Features()

COORDINATES = (
    holes.moments,
    holes.variance_after,
    holes.squares,
    holes.advance,
    holes.forget,
    holes.blur,
    holes.value,
    holes.at,
)
"""The holes that loop over coordinates, or are called from such loops."""


@cache
def kernel(
    loss: type[Loss],
    family: type[Family],
    rule: type[Rule],
    features: Features = PLAIN,
    *,
    sparse: bool = False,
    loop: Function = one_pass,
) -> Kernel:
    """``one_pass``, or a loop that calls it, compiled for one choice of parts; what a setting can express is no part."""
    kinds: Any = loss, family, rule
    beside = sparse and family.columns is not Family.columns
    read = reading.SPARSE if sparse else reading.DENSE
    parts: dict[Function, Function | Kernel] = {
        holes.expected: loss.expected,
        holes.valid_label: loss.valid_label,
        holes.rests: reading.never_rests if family.gaussian or features.missing else loss.rests,
        holes.views: family.views,
        holes.columns: family.columns,
        holes.laid_out: layout.side_by_side if beside else layout.in_order,
        holes.returned: layout.put_back if beside else layout.stay,
        holes.moments: family.moments,
        holes.squares: family.squares,
        holes.variance_after: family.variance_after,
        holes.advance: family.advance_for(rule, sparse=sparse),
        holes.forget: family.forget if features.forgets else reading.forget_nothing,
        holes.settle: rule.settle,
        holes.new_belief: rule.new_belief,
        holes.keeps_std_total: reading.yes if rule.keeps_std_total else reading.no,
        holes.bounded: reading.yes if features.robust else reading.no,
        holes.by_gradients: reading.yes if features.adaptive else reading.no,
        holes.per_variance: reading.yes if features.per_variance else reading.no,
        holes.has_gentle_steps: reading.yes if rule.gentle > 0.0 and family.gaussian and not family.correlated else reading.no,
        holes.filled: reading.no if sparse else reading.yes,
        holes.event_at: read.event,
        holes.ask_ahead: read.ahead,
        holes.halves: read.halves,
        holes.value: read.present if features.missing else read.value,
        holes.lacks: read.lacks,
        holes.blur: family.missing_variance if features.missing else reading.none_missing,
        holes.held: reading.missing_means if features.missing else reading.none_missing,
        holes.position: read.position,
        holes.expect: family.expect if sparse else Family.expect,
        holes.at: reading.one_each if features.per_coordinate else reading.same_everywhere,
        holes.as_numbers: reading.floats if features.single else reading.doubles,
        holes.number: reading.single if features.single else reading.double,
        holes.in_floats: reading.yes if features.single else reading.no,
    }
    if loop is not one_pass:
        parts[one_pass] = kernel(*kinds, features, sparse=sparse)
    return compose(loop, parts, COORDINATES if features.single else ())
