"""The calculator: the theorems at the numbers one knows ahead."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

import onlinevi as ovi
from onlinevi.bounds import Bound
from onlinevi.guarantees.bounds.calculator import RULES, Setting, calculate

SETTING = Setting(count=10_000, dim=5, loss=ovi.Hinge(), distance=2.0, prior_std=0.5)


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_gets_its_bounds(rule: str) -> None:
    entries = calculate(SETTING, rule, loss_bound=3.0)
    assert entries
    for entry in entries:
        assert entry.bound.valid
        assert entry.bound.value > 0.0


@pytest.mark.parametrize("rule", ["sva", "svb", "oga-el"])
def test_the_best_rate_is_not_beaten_by_others(rule: str) -> None:
    best = calculate(SETTING, rule)[1].bound.value
    for rate in (1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0):
        assert calculate(SETTING, rule, rate=rate)[0].bound.value >= best * (1 - 1e-12)


@pytest.mark.parametrize(("rule", "rate"), [("sva", 0.01), ("svb", 1.0), ("oga-el", 0.01)])
def test_informative_from_is_the_first_length_that_is(rule: str, rate: float) -> None:
    def at(count: int) -> Bound:
        return calculate(Setting(count, 5, ovi.Hinge(), distance=2.0, prior_std=0.5), rule, rate=rate)[0].bound

    first = calculate(SETTING, rule, rate=rate)[0].informative_from
    assert first is not None
    assert not at(first).vacuous
    assert at(first - 1).vacuous


def test_a_ridge_brings_the_logarithmic_bound() -> None:
    entries = calculate(Setting(10_000, 5, ovi.Hinge(ridge=0.5)), "svb")
    regrets = [entry.bound.name for entry in entries if not entry.bound.name.endswith("risk")]
    assert regrets == ["SVB, convex", "SVB, convex", "SVB, strongly convex", "SVB, adaptive"]


@pytest.mark.parametrize(("rule", "risks"), [("sva", 2), ("svb", 2), ("ewa", 2), ("oga-el", 0)])
def test_a_risk_is_its_regret_an_event_and_as_soon_of_use(rule: str, risks: int) -> None:
    setting = Setting(10_000, 5, ovi.Hinge(ridge=0.1), distance=2.0, prior_std=0.5, reach=2.0)
    entries = {entry.bound.name: entry for entry in calculate(setting, rule, loss_bound=3.0)}
    found = [name for name in entries if name.endswith(", excess risk")]
    assert len(found) == risks
    for name in found if rule != "ewa" else ():
        risk, regret = entries[name], entries[name.removesuffix(", excess risk")]
        assert risk.bound.value == pytest.approx(regret.bound.value / 10_000)
        assert (risk.informative_from, risk.rate) == (regret.informative_from, regret.rate)


def test_the_comparator_s_divergence_is_that_of_the_family() -> None:
    import numpy as np

    family = ovi.MeanField(prior_std=0.5)
    u = np.full(5, 2.0 / math.sqrt(5.0))
    assert SETTING.kl(10_000) == pytest.approx(family.kl(ovi.Belief(u, np.full(5, 0.5 / 100.0))))


def test_a_prior_s_mass_is_left_out_where_it_has_none_to_compute() -> None:
    for setting in (Setting(100, 2, ovi.Squared()), Setting(100, 2, ovi.Hinge(), distance=3.0, reach=2.0)):
        assert [entry.bound.name for entry in calculate(setting, "ewa", loss_bound=3.0)] == ["EWA", "EWA, excess risk"]


def test_what_cannot_be_computed_is_refused() -> None:
    with pytest.raises(ValueError, match=r"bounds\.lipschitz"):
        calculate(Setting(100, 2, ovi.Squared()), "sva")
    with pytest.raises(ValueError, match="needs one of ewa"):
        calculate(SETTING, "adam")
    with pytest.raises(ValueError, match="loss_bound"):
        calculate(SETTING, "ewa")


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({"count": 0}, "count=0, the number of events: needs a whole number from 1"),
        ({"dim": -3}, "dim=-3, the number of features: needs a whole number from 1"),
        ({"prior_std": 0.0}, "prior_std=0.0: needs a finite number > 0"),
        ({"row_norm": math.inf}, "row_norm=inf: needs a finite number > 0"),
        ({"distance": math.nan}, "distance=nan: needs a finite number ≥ 0"),
        ({"reach": -1.0}, "reach=-1.0: needs a finite number > 0"),
        ({"radius": 0.0}, "radius=0.0: needs a finite number > 0"),
    ],
)
def test_a_setting_that_no_stream_has_is_refused(known: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        replace(SETTING, **known)
