"""Bounds of sums of conditional means: their inequality, their inversion, and logs that are made to break them."""

from __future__ import annotations

import math
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onlinevi.bandit import evidence
from onlinevi.bandit.evidence import COSTS, LARGEST, RATES, Bet, log_evidence, lower_bounds

STUDY = runpy.run_path(str(Path(__file__).parents[2] / "experiments" / "adversary_values.py"))
LOGS, ROWS = 60, 200


def test_the_inequality_that_all_rests_on() -> None:
    """exp(λξ − ψ(λ)ξ²) ≤ 1 + λξ for ξ ≥ −1, and equal there."""
    xi = np.concatenate([-1.0 + np.geomspace(1e-12, 1.0, 2000), np.geomspace(1e-9, 1e6, 4000)])[:, np.newaxis]
    assert (RATES * xi - COSTS * xi**2 <= np.log1p(RATES * xi) + 1e-12).all()
    assert np.log1p(-RATES) == pytest.approx(-RATES - COSTS)


@pytest.mark.parametrize("law", [(1.0, 0.0), (0.01, 99.0), (0.3, 2.0)])
def test_what_is_won_has_a_mean_of_one_at_most(law: tuple[float, float]) -> None:
    """Exactly, over all outcomes of three terms of two values each; the second one's law depends on the first."""
    chance, high = law
    total = 0.0
    for outcome in np.ndindex(2, 2, 2):
        weight, terms, means = 1.0, [], []
        for place, up in enumerate(outcome):
            own = chance if place == 0 or not outcome[0] else 0.5 * chance
            weight *= own if up else 1.0 - own
            terms.append(high if up else 0.0)
            means.append(own * high)
        total += weight * math.exp(log_evidence([Bet(np.array(terms), 0.0)], np.cumsum(means))[-1])
    assert total <= 1.0 + 1e-12


def bets(rng: np.random.Generator, count: int) -> list[Bet]:
    terms = rng.exponential(1.0, count)
    return [Bet(terms, 0.0), Bet(terms + rng.uniform(-1.0, 1.0, count), 1.0)]


def test_a_bound_is_where_the_evidence_suffices() -> None:
    rng = np.random.default_rng(0)
    both, times = bets(rng, 400), [1, 2, 50, 400]
    found = lower_bounds(both, 0.05, times)
    for time, bound in zip(times, found, strict=True):
        targets = np.full(400, bound)
        assert log_evidence(both, targets)[time - 1] == pytest.approx(math.log(20.0), abs=1e-9)
        assert lower_bounds([Bet(b.terms[:time], b.reach) for b in both], 0.05, [time])[0] == bound


def test_terms_beyond_all_numbers_say_nothing_and_break_nothing() -> None:
    huge = np.array([1e300, 0.5, 1e308])
    assert (lower_bounds([Bet(huge, 0.0)], 0.05, [1, 2, 3]) < LARGEST).all()
    assert not np.isnan(log_evidence([Bet(huge, 0.0)], np.ones(3))).any()


@pytest.mark.parametrize("name", [*STUDY["ADVERSARIES"], STUDY["OF_LAW"]])
def test_adversaries_break_no_more_than_they_may(name: str) -> None:
    tables, truth, own = STUDY["made"](name, LOGS, ROWS, 0)
    broken = np.array([STUDY["most"](*one) for one in zip(tables, truth, own, strict=True)]) >= 1.0 / STUDY["ALPHA"]
    allowed = STUDY["ALPHA"] * LOGS + 3.0 * math.sqrt(STUDY["ALPHA"] * LOGS)
    assert broken.sum(axis=0).max() <= allowed


def test_the_adversaries_would_find_a_bound_that_is_too_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "COSTS", 0.1 * COSTS)
    tables, truth, own = STUDY["made"]("steady", LOGS, 2 * ROWS, 0)
    found: Any = np.array([STUDY["most"](*one) for one in zip(tables, truth, own, strict=True)])
    assert (found >= 1.0 / STUDY["ALPHA"]).any(axis=1).mean() > 0.2
