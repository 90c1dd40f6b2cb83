"""The one table of theorems: which speaks of which rule at which rate, and what a rule of one's own can do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest
from helpers.catalogue import LOSSES, name, stream

import onlinevi as ovi
from onlinevi import bounds
from onlinevi.engine import Belief
from onlinevi.guarantees import Setting, calculate
from onlinevi.guarantees.bounds import everywhere
from onlinevi.guarantees.bounds.comparison import Comparison
from onlinevi.guarantees.bounds.setting import Candidate
from onlinevi.guarantees.bounds.table import THEOREMS, theorem_of
from onlinevi.learners import Plan

U = Belief(np.zeros(2), np.full(2, 0.5))


@dataclass(frozen=True)
class MySVB(ovi.SVB):
    """A rule made from another, which may step otherwise."""


class Ten(bounds.Theorem):
    name, rules, rates, rates_in_words = "my-svb", (MySVB,), (ovi.PaperSVB,), "PaperSVB(K)"

    def before_data(self, run: Comparison, lipschitz: float) -> bounds.Bound:
        return bounds.Bound("ten", {"all": 10.0 * lipschitz * run.count})

    def after_data(self, run: Comparison) -> bounds.Bound:
        return bounds.Bound("ten", {"all": run.state.gradient_square})

    def everywhere(self, plan: Plan, lipschitz: float) -> Callable[[int], float] | None:
        return lambda count: 10.0 * lipschitz * count

    def candidates(self, setting: Setting, rate: float | None, loss_bound: float | None) -> list[Candidate]:
        return [(lambda n: bounds.Bound("ten", {"all": 10.0 * n}), "rate 1")]


@pytest.fixture
def known() -> Iterator[None]:
    bounds.register(Ten())
    yield
    THEOREMS.pop(0)


def run(rule: ovi.Rule) -> ovi.Trace:
    X, y = stream(ovi.Hinge(), count=10, dim=2)
    return ovi.learn(X, y, loss=ovi.Hinge(), rule=rule)


@pytest.mark.parametrize(
    ("rule", "theorem"),
    [
        (ovi.SVA(), "ConstantSVA"),
        (ovi.SVA(0.1), "ConstantSVA"),
        (ovi.SVA(ovi.PerSqrt(1.0)), "PerSqrtSVA"),
        (ovi.SVA(ovi.PerStep(1.0)), "ScheduledSVA"),
        (ovi.SVA(ovi.Adaptive()), "AdaptiveSVA"),
        (ovi.SVB(), "ConvexSVB"),
        (ovi.SVB(ovi.StronglyConvex(1.0)), "StronglyConvexSVB"),
        (ovi.SVB(ovi.Adaptive()), "AdaptiveSVB"),
        (ovi.SVB(0.1), None),
        (ovi.OGA(), "ConstantOGAEL"),
        (ovi.OGAEL(), "ConstantOGAEL"),
        (ovi.OGAEL(ovi.PerSqrt(1.0)), "PerSqrtOGAEL"),
        (ovi.OGAEL(ovi.PerStep(1.0)), None),
        (ovi.OGA(ovi.Adaptive()), "AdaptiveOGAEL"),
        (ovi.NGVI(), None),
        (ovi.NGVI(floor=0.1), "FloorNGVI"),
        (ovi.NGVI(ovi.PerHorizon(1.0), floor=0.1), "FloorNGVI"),
        (ovi.NGVI(ovi.PerSqrt(1.0), floor=0.1), None),
        (ovi.NGVI(1.0, 10.0, floor=0.1), None),
        (ovi.NGVI(ovi.PaperSVB(1.0), parameters="scale"), "ConvexScaleNGVI"),
        (ovi.NGVI(ovi.PaperSVB(1.0), 9.0, parameters="scale"), "ConvexScaleNGVI"),
        (ovi.NGVI(ovi.PaperSVB(1.0), ovi.PerSqrt(9.0), parameters="scale"), None),
        (ovi.NGVI(1.0, parameters="scale"), None),
        (ovi.Implicit(), None),
        (MySVB(), None),
    ],
    ids=name,
)
def test_which_theorem_speaks_of_a_rule(rule: ovi.Rule, theorem: str | None) -> None:
    found = theorem_of(rule)
    assert (None if found is None else type(found).__name__) == theorem


def test_a_rule_of_one_s_own_has_none_and_is_told_what_to_do() -> None:
    with pytest.raises(ValueError, match=r"MySVB.*no bound for it.*certificate\(\) holds.*bounds\.register"):
        bounds.before_data(run(MySVB()), U, lipschitz=1.0)
    with pytest.raises(ValueError, match=r"needs one of ewa, oga-el, sva, svb, ngvi$"):
        calculate(Setting(10, 2, ovi.Hinge()), "my-svb")


@pytest.mark.usefixtures("known")
def test_a_theorem_of_one_s_own_is_asked_wherever_those_of_the_paper_are() -> None:
    trace = run(MySVB())
    assert bounds.before_data(trace, U, lipschitz=2.0).value == 200.0
    assert bounds.after_data(trace, U).value == trace.state.gradient_square
    total = everywhere(trace.state.plan, lipschitz=2.0)
    assert total is not None
    assert total(7) == 140.0
    (entry,) = calculate(Setting(10, 2, ovi.Hinge()), "my-svb")
    assert (entry.bound.value, entry.rate, entry.informative_from) == (100.0, "rate 1", None)
    with pytest.raises(ValueError, match=r"MySVB has a bound for the rates PaperSVB\(K\)"):
        bounds.before_data(run(MySVB(0.1)), U, lipschitz=1.0)


def test_a_pool_is_no_run_of_one_rule() -> None:
    X, y = stream(ovi.Hinge(), count=10, dim=2)
    with pytest.raises(TypeError, match="not of a pool"):
        bounds.before_data(ovi.auto(X, y, loss=ovi.Hinge()), U, lipschitz=1.0)


def test_nothing_is_promised_of_runs_that_the_theorems_do_not_speak_of() -> None:
    plan = run(ovi.SVB()).state.plan
    assert everywhere(plan, lipschitz=1.0) is not None
    for other in (
        replace(plan, rule=ovi.NGVI()),
        replace(plan, discount=0.9),
        replace(plan, loss=ovi.Hinge(robust=5.0)),
        replace(plan, family=ovi.MeanField(box=None)),
    ):
        assert everywhere(other, lipschitz=1.0) is None


@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_what_a_loss_says_of_itself_is_so(loss: ovi.Loss) -> None:
    _, y = stream(loss, count=200, dim=2)
    rng = np.random.default_rng(0)
    a, v = rng.uniform(-3.0, 3.0, 200), rng.uniform(0.0, 2.0, 200)
    inside = loss(y, a, v)
    assert not loss.nonnegative or (loss(y, a).value >= 0.0).all()
    assert not loss.quadratic or np.array_equal(loss(y, a).value, np.square(y - a))
    if loss.steepest_at_corners:
        corners = [loss(y, end, wide) for end in (-3.0, 3.0) for wide in (0.0, 2.0)]
        assert (np.abs(inside.slope) <= np.max([np.abs(corner.slope) for corner in corners], axis=0)).all()
        assert (inside.curvature <= np.max([corner.curvature for corner in corners], axis=0)).all()


def test_the_squared_loss_is_quadratic_and_that_of_counts_may_be_below_zero() -> None:
    assert [type(loss).__name__ for loss in LOSSES if loss.quadratic] == ["Squared"]
    assert float(ovi.Poisson()(9.0, 2.0).value) < 0.0
    assert not ovi.Poisson().nonnegative
