"""The loop composed for one choice of loss, family and rule: what fills its holes, and what makes it fast."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

from onlinevi.beliefs import Family
from onlinevi.engine import Function, Kernel, compose, holes, layout, one_pass, reading, speedups
from onlinevi.engine.speedups import Speedup
from onlinevi.losses import Loss, quick_expected
from onlinevi.rules import NGVI, OGAEL, SVA, SVB, Implicit, Rule, ScaleNGVI


class Features(NamedTuple):
    """What is compiled in beside the parts: as data, each would slow the loop of those who do not use it."""

    per_coordinate: bool = False
    """Priors or boxes that differ between coordinates."""
    forgets: bool = False
    lazy: bool = False
    """Coordinates forget when a row stores them."""
    robust: bool = False
    adaptive: bool = False
    """Rates from the gradients seen."""
    per_variance: bool = False
    """Rates that divide by the variance."""
    missing: bool = False
    """NaN in a row is a missing value."""
    single: bool = False
    """Vectors and rows in float32."""
    ball: bool = False
    """Means and stds are scaled back to balls behind every step."""
    floored: bool = False
    """Stds with a floor, and means that move with the std that is kept."""


PLAIN = Features()

SPEEDUPS: dict[Function, Speedup] = {
    OGAEL.new_belief: Speedup(limit=math.inf),
    SVA.new_belief: Speedup(limit=math.inf),
    SVB.new_belief: Speedup(speedups.SHRINKING, speedups.small_svb_step),
    ScaleNGVI.new_belief: Speedup(speedups.SHRINKING, speedups.small_svb_step),
    NGVI.new_belief: Speedup(speedups.ROOTED, speedups.small_ngvi_step, vectorise_sparse=True),
    Implicit.new_belief: Speedup(speedups.ROOTED, speedups.small_implicit_step, vectorise_sparse=True),
}
"""By the step that is sped up: a rule made from one of these that has a step of its own has no speed-up."""


def speedup_of(rule: type[Rule]) -> Speedup:
    """What the loop may do faster for this rule; nothing, where nothing is known of its step."""
    return SPEEDUPS.get(rule.new_belief, Speedup())


COORDINATES = (
    holes.moments,
    holes.variance_after,
    holes.squares,
    holes.advance,
    holes.forget,
    holes.catch_up,
    holes.missing_variance,
    holes.value,
    holes.setting_at,
)
"""The holes that loop over coordinates, or are called from such loops: in float32 their constants are float32 too."""


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
    """``one_pass``, or a loop that calls it, composed of these parts; what a setting can express is no part."""
    kinds: Any = loss, family, rule
    parts: dict[Function, Function | Kernel] = {
        **_loss_parts(loss, family, features),
        **_rule_parts(rule, family, features),
        **_family_parts(family, rule, features, sparse=sparse),
        **_reading_parts(family, features, sparse=sparse),
    }
    if loop is not one_pass:
        parts[one_pass] = kernel(*kinds, features, sparse=sparse)
    return compose(loop, parts, COORDINATES if features.single else ())


def _loss_parts(loss: type[Loss], family: type[Family], features: Features) -> dict[Function, Function]:
    knows_flat = not (family.gaussian or features.missing)  # under a spread the loss must be computed to know
    return {
        holes.expected: quick_expected(loss),
        holes.valid_label: loss.valid_label,
        holes.odds: reading.even_odds if loss.odds is None else loss.odds,
        holes.is_flat: loss.is_flat if knows_flat else reading.never_flat,
        holes.is_quadratic: reading.answer(loss.quadratic),
        holes.is_robust: reading.answer(features.robust),
    }


def _rule_parts(rule: type[Rule], family: type[Family], features: Features) -> dict[Function, Function]:
    speedup = speedup_of(rule)
    return {
        holes.new_belief: rule.new_belief,
        holes.with_kept_std: rule.with_kept_std,
        holes.small_step: speedup.small_step or rule.new_belief,
        holes.has_small_steps: reading.answer(speedup.limit > 0.0 and family.gaussian and not family.correlated),
        holes.slopes_after_step: rule.slopes_after_step,
        holes.keeps_std_total: reading.answer(rule.keeps_std_total),
        holes.rate_is_adaptive: reading.answer(features.adaptive),
        holes.per_variance: reading.answer(features.per_variance),
    }


def _family_parts(family: type[Family], rule: type[Rule], features: Features, *, sparse: bool) -> dict[Function, Function]:
    advance = family.advance_for(rule)
    if sparse and family.advance_vectorised and speedup_of(rule).vectorise_sparse and not rule.keeps_std_total:
        advance = family.advance_vectorised
    step = family.coordinate_step(floored=features.floored)
    return {
        **({} if step is None else {holes.move_coordinate: step}),
        holes.views: family.views,
        holes.moments: family.moments,
        holes.missing_variance: family.missing_variance if features.missing else reading.none_missing,
        holes.variance_after: family.variance_after,
        holes.is_one_hyperbola: reading.answer(family.correlated),
        holes.squares: family.squares,
        holes.may_explode: reading.answer(family.correlated),
        holes.advance: advance,
        holes.forget: family.forget if features.forgets else reading.forget_nothing,
        holes.late_forgetting: layout.late_forgetting if features.lazy else reading.never_late,
        holes.catch_up: family.catch_up if features.lazy else reading.nothing_to_catch_up,
        holes.put_back: family.put_back if features.lazy else reading.nothing_to_put_back,
        holes.into_ball: family.into_ball if features.ball else reading.nowhere,
        holes.prefetch_row: family.prefetch_row if sparse else Family.prefetch_row,
    }


def _reading_parts(family: type[Family], features: Features, *, sparse: bool) -> dict[Function, Function]:
    read = reading.SPARSE if sparse else reading.DENSE
    parts: dict[Function, Function] = {
        holes.event_at: read.event,
        holes.position: read.position,
        holes.value: read.present if features.missing else read.value,
        holes.is_missing: read.is_missing,
        holes.missing_mean_square: reading.missing_mean_squares if features.missing else reading.none_missing,
        holes.split_tail: read.split_tail,
        holes.prefetch_next: read.prefetch_next,
        holes.is_dense: reading.answer(not sparse),
        holes.setting_at: reading.one_each if features.per_coordinate else reading.same_everywhere,
        holes.interleave: layout.as_packed,
        holes.restore: layout.restore_nothing,
        holes.as_numbers: reading.floats if features.single else reading.doubles,
        holes.cast: reading.single if features.single else reading.double,
        holes.in_float32: reading.answer(features.single),
    }
    if sparse and family.interleaved_views:
        parts[holes.interleaved_views] = family.interleaved_views
        parts[holes.interleave], parts[holes.restore] = layout.interleaved, layout.restore_interleaved
    return parts
