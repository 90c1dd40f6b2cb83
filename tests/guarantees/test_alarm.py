"""The alarm: its evidence is an e-process, it does not ring where nothing has become worse, and it rings where it has."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.stats import binom

import onlinevi as ovi
from onlinevi.guarantees.alarm import BLOCK, AlarmState, log_evidence

DELTA = 0.05


@pytest.mark.parametrize("share", [0.0, 0.03, 0.2, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("rows", [(0, 40), (30, 30), (150, 25), (400, 12)])
def test_evidence_has_mean_1_at_most_whatever_the_share(share: float, rows: tuple[int, int]) -> None:
    """By the exact law of both counts, where the share has grown by just the tolerance: nothing is simulated."""
    tolerance = 0.02
    before, after = np.arange(rows[0] + 1), np.arange(rows[1] + 1)
    counts = [np.full(len(before), number) for number in rows]
    evidence = [log_evidence(before, counts[0], np.full(len(before), k), counts[1], tolerance) for k in after]
    chances = np.outer(binom.pmf(after, rows[1], min(share + tolerance, 1.0)), binom.pmf(before, rows[0], share))
    assert float((chances * np.exp(np.array(evidence))).sum()) <= 1.0 + 1e-12


def test_evidence_is_the_least_over_the_share_or_less() -> None:
    """Against the product at each of many shares, from its definition."""
    down, up = -(0.5 ** np.arange(11.0)), 2.0 ** np.arange(-2.0, 3.0)
    for ks, ns, kt, nt in ((220, 1000, 90, 200), (20_000, 100_000, 120, 300), (0, 500, 30, 100), (5, 10, 20, 20)):
        least = math.inf
        for m in np.linspace(0.0, 0.999, 4000):
            old = np.logaddexp.reduce(ks * down - ns * np.log1p(m * np.expm1(down))) - math.log(11.0)
            new = np.logaddexp.reduce(kt * up - nt * np.log1p(min(m + 0.02, 1.0) * np.expm1(up))) - math.log(5.0)
            least = min(least, np.logaddexp(math.log(0.5), old - math.log(2.0)) + new)
        found = log_evidence([ks], [ns], [kt], [nt], 0.02)[0]
        assert least - 1.5 <= found <= least + 1e-9


def test_it_rings_on_no_stationary_stream() -> None:
    alarm, rng = ovi.Alarm(DELTA), np.random.default_rng(0)
    rang = sum(bool(alarm.over(rng.exponential(size=20_000))) for _ in range(60))
    assert rang <= 3  # P(more) < 0.35 % where each has the chance 0.05 - and far less here, as bounds are not tight


def test_nor_while_something_is_learned_or_wobbles_within_the_tolerance() -> None:
    """Losses that shrink as 1/√t, and shares that go up and down by the tolerance."""
    alarm, rng, times = ovi.Alarm(DELTA), np.random.default_rng(1), np.arange(1, 20_001)
    for _ in range(20):
        assert not alarm.over(rng.exponential(size=len(times)) * (0.2 + 3.0 / np.sqrt(times)))
    for period in (100, 1000, 10_000):
        wobble = 1.0 + 0.04 * np.sin(2.0 * math.pi * times / period)  # of the scale: the share moves by 0.013
        assert not alarm.over(rng.exponential(size=len(times)) * wobble)


@pytest.mark.parametrize("before", [1000, 6000, 30_000])
def test_it_rings_soon_where_losses_double(before: int) -> None:
    for seed in range(5):
        losses = np.random.default_rng(seed).exponential(np.repeat([1.0, 2.0], [before, 1000]))
        rang = ovi.Alarm(0.01).over(losses)[0]
        assert before < rang.at <= before + 500
        assert abs(rang.since - before) <= 150
        assert rang.before < 0.25 < 0.32 < rang.after
        assert rang.evidence >= 1.0


@pytest.mark.parametrize("wrong", [0.05, 0.25, 0.4])
def test_it_hears_of_guesses_that_are_wrong_or_not_however_many_are(wrong: float) -> None:
    """The quantile of losses of 0 and 1 is 1, above which nothing is, where more than a fifth are wrong."""
    for seed in range(5):
        losses = np.random.default_rng(seed).random(6000) < np.repeat([wrong, wrong + 0.3], 3000)
        rang = ovi.Alarm(0.01).over(losses)
        assert len(rang) == 1
        assert 3000 < rang[0].at <= 3400
        assert rang[0].level == 0.0
    assert not any(ovi.Alarm(0.01).over(np.random.default_rng(seed).random(10_000) < wrong) for seed in range(10))


def test_after_an_alarm_it_begins_anew() -> None:
    losses = np.random.default_rng(0).exponential(np.repeat([1.0, 4.0, 1.0, 4.0], 3000))
    rang = ovi.Alarm(0.01).over(losses)
    assert [one.since // 3000 for one in rang] == [1, 3]
    assert sum(ovi.Alarm(0.01).spent(number) for number in range(100_000)) == pytest.approx(0.01, rel=1e-4)


def test_any_split_rings_at_the_same_events() -> None:
    rng, alarm = np.random.default_rng(0), ovi.Alarm(0.01)
    losses = rng.exponential(np.repeat([1.0, 3.0, 9.0], 2000))
    whole, want = alarm.update_many(alarm.init(), losses)
    assert len(want) == 2
    for cuts in ([7, 2050, 2100], np.unique(rng.integers(1, 6000, 60)).tolist(), range(1, 6000, BLOCK)):
        state, found = alarm.init(), []
        for part in np.split(losses, list(cuts)):
            state, rang = alarm.update_many(AlarmState.from_json(json.loads(json.dumps(state.to_json()))), part)
            found += rang
        assert found == want
        assert state.to_json() == whole.to_json()


def test_states_are_values() -> None:
    losses, alarm = np.random.default_rng(0).exponential(np.repeat([1.0, 3.0], [3000, 500])), ovi.Alarm(0.01)
    state, _ = alarm.update_many(alarm.init(), losses[:3000])
    known = json.dumps(state.to_json())
    assert alarm.update_many(state, losses[3000:])[1] == alarm.update_many(state, losses[3000:])[1] != []
    assert json.dumps(state.to_json()) == known


def test_what_cannot_be_is_refused() -> None:
    for settings in ({"delta": 0.0}, {"delta": 1.5}, {"tolerance": -0.1}, {"share": 1.0}):
        with pytest.raises(ValueError, match=r"needs a share|lies strictly between"):
            ovi.Alarm(**settings)
    with pytest.raises(ValueError, match="not finite"):
        ovi.Alarm().over([1.0, math.nan])
