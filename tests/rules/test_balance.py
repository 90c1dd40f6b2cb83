"""The two ways to the balance of an implicit step, as plain functions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.catalogue import LOSSES, labels, name
from helpers.oracles import evaluate

import onlinevi as ovi
from onlinevi.engine import kernel
from onlinevi.engine.types import Expected, Slopes
from onlinevi.learners.default import recipe
from onlinevi.rules import balance
from onlinevi.rules.balance import Problem

NOWHERE: Any = (None, None, None)
"""No rows, no event, no law: the shares of the variance stand for them."""


def parts_of(loss: ovi.Loss, monkeypatch: pytest.MonkeyPatch, *, one_share: bool = False) -> None:
    def expected(y: float, a: float, v: float, *parameters: float) -> Expected:
        return evaluate(loss, y, a, v)

    def variance_after(shares: np.ndarray, rows: None, event: None, law: None, growth: float) -> tuple[float, float]:
        parts = shares / (1.0 + growth * shares)
        return float(parts.sum()), float(np.square(parts).sum())

    monkeypatch.setattr(balance, "expected", expected)
    monkeypatch.setattr(balance, "variance_after", variance_after)
    monkeypatch.setattr(balance, "in_float32", lambda: False)
    monkeypatch.setattr(balance, "is_one_hyperbola", lambda: one_share)
    monkeypatch.setattr(balance, "is_quadratic", lambda: loss.quadratic)
    monkeypatch.setattr(balance, "cast", float)


@pytest.mark.parametrize("number", [3, 1], ids="shares={}".format)
@pytest.mark.parametrize("share", [0.0, 0.3, 100.0], ids="missing={}".format)
@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_the_fast_way_and_the_sure_way_agree(
    loss: ovi.Loss, share: float, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts_of(loss, monkeypatch, one_share=number == 1)
    sure, rng, gave_up = balance.bracketed, np.random.default_rng(11), 0

    def counted(*arguments: Any) -> Any:
        nonlocal gave_up
        gave_up += 1
        return sure(*arguments)

    monkeypatch.setattr(balance, "bracketed", counted)
    for _ in range(12):
        shares = 10.0 ** rng.uniform(-4.0, 2.0, number)
        shares *= min(1.0, 50.0 / shares.sum())
        start, y, rate = rng.standard_normal(), labels(loss, rng, 1)[0], 10.0 ** rng.uniform(-2.0, 3.0)
        most, missing = shares.sum(), share * min(shares.sum(), 10.0)
        problem = Problem(y, start, rate, rate * most, most, missing)
        seen = evaluate(loss, y, start, np.sqrt(most + missing))
        with np.errstate(all="ignore"):  # what is not finite sends the fast way to the sure one
            fast = balance.balanced(problem, shares, *NOWHERE, Slopes(seen.slope, seen.curvature), loss.parameters)
            slow = sure(problem, shares, *NOWHERE, loss.parameters)
        assert fast.prediction == pytest.approx(slow.prediction, rel=1e-9, abs=1e-9 * np.sqrt(most + missing))
        assert 1.0 + fast.growth * most == pytest.approx(1.0 + slow.growth * most, rel=1e-9)
        assert fast.slope == pytest.approx(slow.slope, rel=1e-9, abs=1e-12)
    assert gave_up <= 1 or isinstance(loss, ovi.Poisson), "whose e2 spans twenty magnitudes here"


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if not loss.quadratic], ids=name)
def test_where_the_fast_way_gives_up_the_sure_way_takes_over(loss: ovi.Loss, monkeypatch: pytest.MonkeyPatch) -> None:
    parts_of(loss, monkeypatch)
    monkeypatch.setattr(balance, "MODEL_STEPS", 2)
    shares, rng = np.array([0.3, 2.0, 5.0]), np.random.default_rng(13)
    start, y, most = rng.standard_normal(), labels(loss, rng, 1)[0], shares.sum()
    problem, seen = Problem(y, start, 1.5, 1.5 * most, most, 0.0), evaluate(loss, y, start, np.sqrt(most))
    with np.errstate(all="ignore"):
        fast = balance.balanced(problem, shares, *NOWHERE, Slopes(seen.slope, seen.curvature), loss.parameters)
        assert fast == balance.bracketed(problem, shares, *NOWHERE, loss.parameters)


ENOUGH = {ovi.Squared: 3.0, ovi.Hinge: 8.7, ovi.Logistic: 8.6, ovi.Absolute: 7.5, ovi.Pinball: 8.2, ovi.Poisson: 11.2}
"""How many evaluations an event may take on average, the two of the loop among them."""


@pytest.mark.usefixtures("all_in_python")
@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_no_learner_of_the_default_needs_many_evaluations(loss: ovi.Loss, monkeypatch: pytest.MonkeyPatch) -> None:
    """However wide its prior and however soon it forgets: what is learned of e2 in one step serves the next."""
    calls, quick_loss = 0, kernel.quick_loss

    def counted(*versions: Any) -> Any:
        inner = quick_loss(*versions)

        def expected(*arguments: Any) -> Expected:
            nonlocal calls
            calls += 1
            return inner(*arguments)

        return expected

    monkeypatch.setattr(kernel, "quick_loss", counted)
    again = type("Again", (type(loss),), {})(*loss.parameters)  # of a class for which no loop is composed yet
    rng, dim, most = np.random.default_rng(14), 6, []
    X = rng.standard_normal((40, dim))
    X[:, 0], signal = 1.0, X @ rng.standard_normal(dim)
    y = np.sign(signal + rng.logistic(size=40))
    if loss.target != "classes":
        y = rng.poisson(np.exp(np.minimum(signal, 3.0))) if loss.target == "counts" else signal + rng.standard_normal(40)
    chosen = recipe.Chosen(ovi.Poisson() if loss.target == "counts" else ovi.Logistic(), "light")
    for learner in recipe.linear(chosen, dim):
        if learner.discount in (1.0, 0.95):
            one, calls = replace(learner, loss=again), 0
            one.update_many(one.init(dim), X, y)
            most.append(calls / 40)
    assert min(most) >= 3.0, "evaluations are counted"
    assert max(most) <= ENOUGH[type(loss)]


@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_the_sure_way_takes_a_bounded_number_of_evaluations(loss: ovi.Loss, monkeypatch: pytest.MonkeyPatch) -> None:
    parts_of(loss, monkeypatch)
    evaluations, plain, rng = 0, balance.expected, np.random.default_rng(12)

    def counted(*arguments: Any) -> Expected:
        nonlocal evaluations
        evaluations += 1
        return plain(*arguments)

    monkeypatch.setattr(balance, "expected", counted)
    for _ in range(15):
        most, evaluations = 10.0 ** rng.uniform(-16.0, 2.0), 0
        start, y, rate = rng.standard_normal(), labels(loss, rng, 1)[0], 10.0 ** rng.uniform(-4.0, 4.0)
        problem = Problem(y, start, rate, rate * most, most, 0.0)
        with np.errstate(all="ignore"):
            found = balance.bracketed(problem, np.array([most]), *NOWHERE, loss.parameters)
        assert np.isfinite(found).all()
        assert evaluations < 1000
