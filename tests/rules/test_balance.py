"""The two ways to the balance of an implicit step, as plain functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.catalogue import LOSSES, labels, name
from helpers.oracles import evaluate

import onlinevi as ovi
from onlinevi.engine.types import Expected, Slopes
from onlinevi.rules import balance
from onlinevi.rules.balance import Problem

NOWHERE: Any = (None, None, None)
"""No rows, no event, no law: the shares of the variance stand for them."""


def parts_of(loss: ovi.Loss, monkeypatch: pytest.MonkeyPatch) -> None:
    def expected(y: float, a: float, v: float, *parameters: float) -> Expected:
        return evaluate(loss, y, a, v)

    def variance_after(shares: np.ndarray, rows: None, event: None, law: None, growth: float) -> tuple[float, float]:
        parts = shares / (1.0 + growth * shares)
        return float(parts.sum()), float(np.square(parts).sum())

    monkeypatch.setattr(balance, "expected", expected)
    monkeypatch.setattr(balance, "variance_after", variance_after)
    monkeypatch.setattr(balance, "in_float32", lambda: False)
    monkeypatch.setattr(balance, "cast", float)


@pytest.mark.parametrize("share", [0.0, 0.3, 100.0], ids="missing={}".format)
@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_the_fast_way_and_the_sure_way_agree(loss: ovi.Loss, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    parts_of(loss, monkeypatch)
    sure, rng, gave_up = balance.bracketed, np.random.default_rng(11), 0

    def counted(*arguments: Any) -> Any:
        nonlocal gave_up
        gave_up += 1
        return sure(*arguments)

    monkeypatch.setattr(balance, "bracketed", counted)
    for _ in range(12):
        shares = 10.0 ** rng.uniform(-4.0, 2.0, 3)
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
    if share == 0.0:  # much that is missing makes all of them easy
        assert (gave_up > 0) == (not isinstance(loss, ovi.Squared)), "the problems must try both"


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
