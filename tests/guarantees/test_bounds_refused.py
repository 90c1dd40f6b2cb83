"""A theorem is refused where an assumption of it fails, and the message says which."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from helpers.catalogue import name, stream

import onlinevi as ovi
from onlinevi import bounds
from onlinevi.engine.types import Belief, Expected, Real


@dataclass(frozen=True)
class Bumpy(ovi.Loss):
    convex = False

    @staticmethod
    def expected(y: Real, a: Real, v: Real) -> Expected:
        return Expected(0.0 * a, 0.0 * a, 0.0 * a)


@dataclass(frozen=True)
class Unknown(ovi.Loss):
    """A loss of one's own that tells no Lipschitz constant."""

    @staticmethod
    def expected(y: Real, a: Real, v: Real) -> Expected:
        return Expected(a * a + v * v, 2.0 * a, 2.0 + 0.0 * a)


def one_run(rule: ovi.Rule, loss: ovi.Loss | None = None, family: ovi.Family | None = None) -> ovi.Trace:
    X, y = stream(ovi.Hinge(), count=10, dim=2)
    return ovi.learn(X, y, loss=loss or ovi.Hinge(), rule=rule, family=family)


INSIDE = Belief(np.zeros(2), np.full(2, 0.5))


@pytest.mark.parametrize(
    ("run", "comparator", "match"),
    [
        (lambda: one_run(ovi.SVA(), Bumpy()), INSIDE, "not convex"),
        (lambda: one_run(ovi.SVA()), Belief(np.array([0.0, 21.0]), INSIDE.std), "outside of the domain: coordinate 1"),
        (lambda: one_run(ovi.SVA()), Belief(INSIDE.mean, np.array([1.5, 0.5])), "outside of the domain: coordinate 0"),
        (lambda: one_run(ovi.SVA()), Belief(INSIDE.mean, np.zeros(2)), "a std of 0"),
        (lambda: one_run(ovi.SVB(0.1)), INSIDE, r"SVB has a bound for the rates PaperSVB\(K\)"),
        (lambda: one_run(ovi.SVB(ovi.StronglyConvex(1.0)), ovi.Hinge(ridge=0.5)), INSIDE, "1.0-strongly convex"),
        (lambda: one_run(ovi.SVB(), family=ovi.MeanField(box=ovi.Box(std=(0.1, 1.0)))), INSIDE, "shrink to 0"),
        (lambda: one_run(ovi.SVB(), family=ovi.MeanField(box=None)), INSIDE, "bounded domain"),
        (lambda: one_run(ovi.OGAEL(ovi.PerSqrt(1.0))), INSIDE, "a rate that does not change"),
        (lambda: one_run(ovi.NGVI()), INSIDE, r"NGVI has a bound for the rates that do not change, with floor="),
        (lambda: one_run(ovi.NGVI(1.0, 2.0, floor=0.1)), INSIDE, "and no prior term"),
        (lambda: one_run(ovi.NGVI(floor=0.1), family=ovi.MeanField(box=None)), INSIDE, "bounded domain"),
        (lambda: one_run(ovi.NGVI(0.1, parameters="scale")), INSIDE, r"ScaleNGVI has a bound for the rates PaperSVB\(K\)"),
        (
            lambda: one_run(
                ovi.NGVI(ovi.PaperSVB(1.0), parameters="scale"), family=ovi.MeanField(box=ovi.Box(std=(0.0, 2.0)))
            ),
            INSIDE,
            "at or below the prior's",
        ),
        (lambda: one_run(ovi.Implicit()), INSIDE, "no bound for it"),
        (lambda: ovi.Linear(ovi.Hinge(), ovi.SVB()).init(2), INSIDE, "the run is empty"),
    ],
)
def test_a_run_that_no_theorem_speaks_of(run, comparator: Belief, match: str) -> None:  # type: ignore[no-untyped-def]
    for bound in (lambda r: bounds.before_data(r, comparator, lipschitz=9.0), lambda r: bounds.after_data(r, comparator)):
        with pytest.raises(ValueError, match=match):
            bound(run())


@pytest.mark.parametrize("rule", [ovi.SVB(), ovi.SVA(ovi.PerSqrt(1.0))], ids=name)
def test_a_falling_rate_needs_more_than_the_sum(rule: ovi.Rule) -> None:
    trace = one_run(rule)
    with pytest.raises(ValueError, match="keeps the plain sum"):
        bounds.after_data(trace, INSIDE)
    with pytest.raises(ValueError, match="more than it allows"):
        bounds.after_data(trace, INSIDE, lipschitz=1e-3)
    with pytest.raises(ValueError, match="this run has 10 events"):
        bounds.after_data(trace, INSIDE, gradient_squares=np.ones(10))


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: bounds.ewa(rate=1.0, count=10, loss_bound=math.inf, kl=1.0), "loss_bound=inf"),
        (lambda: bounds.ewa(rate=0.0, count=10, loss_bound=1.0, kl=1.0), "rate=0.0"),
        (lambda: bounds.ewa(rate=1.0, count=0, loss_bound=1.0, kl=1.0), "at least 1"),
        (lambda: bounds.sva(rate=1.0, count=1, lipschitz=1.0, kl=math.inf), "kl=inf"),
        (lambda: bounds.sva(rate=1.0, count=1, lipschitz=math.nan, kl=1.0), "lipschitz=nan"),
        (lambda: bounds.ewa_excess_risk(count=5, dim=5, loss_bound=1.0), "more events than dimensions"),
        (lambda: bounds.ewa_excess_risk(count=50, dim=5, loss_bound=1.0, rate=1.0), "this theorem is for the rate"),
        (
            lambda: bounds.svb_convex(step=1.0, count=5, lipschitz=1.0, domain=bounds.ball_domain(1, 1, 2), printed=True),
            "the printed theorem is for the step",
        ),
        (
            lambda: bounds.online_to_batch_confident(average_loss=2.0, count=5, loss_bound=1.0, failure=0.1),
            r"losses in \[0, 1.0\]",
        ),
        (
            lambda: bounds.online_to_batch_confident(average_loss=0.5, count=5, loss_bound=1.0, failure=0.0),
            "strictly between 0 and 1",
        ),
        (lambda: bounds.sva_schedule(rates=[1.0, 2.0], gradient_squares=[1.0, 1.0], kl=1.0), "never grow"),
        (lambda: bounds.sva_schedule(rates=[1.0], gradient_squares=[1.0, 1.0], kl=1.0), "one of each an event"),
        (lambda: bounds.svb_strongly_convex_observed(gradient_squares=[], strong_convexity=1.0), "at least one event"),
        (lambda: bounds.lipschitz([[1.0]], [1.0], loss=Bumpy()), "not convex"),
        (lambda: bounds.lipschitz([[1.0]], [1.0], loss=ovi.Squared(), family=ovi.MeanField(box=None)), "bounded domain"),
        (
            lambda: bounds.lipschitz([[1.0]], [1.0], loss=ovi.Hinge(ridge=1.0), family=ovi.MeanField(box=None)),
            "bounded domain",
        ),
        (lambda: bounds.lipschitz([[1.0]], [1.0], loss=Unknown()), "no Lipschitz constant"),
        (lambda: bounds.lipschitz(np.zeros((0, 1)), [], loss=ovi.Hinge()), "at least one of each"),
        (lambda: bounds.largest_loss([[1.0]], [9.0], loss=ovi.Poisson()), "below 0"),
        (lambda: bounds.largest_loss([[1.0]], [1.0], loss=ovi.Hinge(), family=ovi.MeanField(box=None)), "bounded domain"),
    ],
)
def test_an_assumption_that_fails(call, match: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=match):
        call()
