"""What another policy would have earned: against sums by hand, and what a log must not be."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from onlinevi.bandit import Bandit, Decision, Greedy, Uniform, Wait, replay, value
from onlinevi.bandit.evidence import Bet, lower_bounds
from onlinevi.bandit.off_policy import REACHES, Table

RNG = np.random.default_rng(0)
ARMS = "a", "b", "c"


def logged(count: int, seed: int = 0, **changes: Any) -> list[Decision]:
    """Three arms, chosen with 0.2, 0.3 and 0.5; b pays 0.9 where x > 0, the others 0.3; expectations are right."""
    rng, rows = np.random.default_rng(seed), []
    chances = np.array([0.2, 0.3, 0.5])
    for number in range(count):
        x = rng.standard_normal()
        means = np.array([0.3, 0.9 if x > 0.0 else 0.1, 0.3])
        arm = rng.choice(3, p=chances)
        own = Decision(
            number, number, ARMS[arm], chances[arm], float(rng.random() < means[arm]), True, ARMS, chances, means, [x]
        )
        rows.append(own._replace(**changes))
    return rows


def best(one: Decision) -> str:
    return "b" if one.context[0] > 0.0 else "a"


def test_without_probabilities_it_is_the_weighted_average_and_the_bet_on_it() -> None:
    log = logged(300, probabilities=np.empty(0), expected=np.empty(0))
    found = value(log, "b", confidence=0.9)
    weights = np.array([(one.arm == "b") / one.propensity for one in log])
    rewards = np.array([one.reward for one in log])
    assert found.estimate == pytest.approx(weights @ rewards / weights.sum())
    assert found.lower == pytest.approx(lower_bounds([Bet(weights * rewards, 0.0)], 0.05, [300])[0] / 300)
    assert found.upper == pytest.approx(1.0 - lower_bounds([Bet(weights * (1.0 - rewards), 0.0)], 0.05, [300])[0] / 300)
    assert math.isnan(found.covered)
    assert found.effective == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert found.earned == pytest.approx(rewards.mean())


def test_expectations_correct_each_term_and_leave_its_mean_as_it_is() -> None:
    """Over the arm that is drawn, exactly: the mean of each term is the policy's reward, of what the log ever does."""

    logs = RNG.dirichlet(np.full(3, 0.1), 400)
    asked, rewards, expected = RNG.dirichlet(np.ones(3), 400), RNG.random((400, 3)), RNG.random((400, 3))
    rewards[:200], expected[:200] = np.round(rewards[:200]), np.round(expected[:200])
    logs[::4, 0], logs[::4, 1] = 0.0, logs[::4, 1] + logs[::4, 0]
    for gain in (False, True):
        for mirrored in (False, True):
            means = np.zeros((1 + len(REACHES), 400))
            for arm in range(3):
                chosen = np.full(400, arm)
                table = Table(rewards[:, arm], np.zeros(400, dtype=bool), chosen, logs, asked, expected, complete=True)
                for place, bet in enumerate(table.side(mirrored=mirrored).bets(gain=gain)):
                    drawn = logs[:, arm] > 0.0
                    assert (bet.terms[drawn] >= -bet.reach - 1e-12).all()
                    means[place] += np.where(drawn, logs[:, arm] * bet.terms, 0.0)
            own = 1.0 - rewards if mirrored else rewards
            truth = (asked * own * (logs > 0.0)).sum(axis=1) - gain * (logs * own).sum(axis=1)
            assert means == pytest.approx(np.tile(truth, (1 + len(REACHES), 1)), abs=1e-9)


def test_expectations_make_it_narrow_where_they_are_right() -> None:
    log = logged(2000)
    for one in log:  # the rewards are what was expected: nothing is left to chance but the arm
        log[one.number] = one._replace(reward=float(one.expected[ARMS.index(one.arm)]))
    known, blind = value(log, best), value([one._replace(expected=np.empty(0)) for one in log], best)
    truth = float(np.mean([one.expected[ARMS.index(best(one))] for one in log]))
    assert known.lower <= truth <= known.upper
    assert known.upper - known.lower < 0.8 * (blind.upper - blind.lower)
    assert known.estimate == pytest.approx(truth)


def test_the_ways_to_say_a_policy_agree() -> None:
    log = logged(400)
    by_arm = value(log, best)
    others = [
        lambda one: {best(one): 1.0},
        lambda one: [float(arm == best(one)) for arm in one.arms],
        lambda one: np.array([float(arm == best(one)) for arm in one.arms]),
        lambda one: np.str_(best(one)),
    ]
    for policy in others:
        assert value(log, policy) == by_arm
    alone = value(log, lambda one: float(one.arm == best(one)))
    bare = value([one._replace(probabilities=np.empty(0), expected=np.empty(0)) for one in log], best)
    assert (alone.lower, alone.upper, alone.estimate) == (bare.lower, bare.upper, bare.estimate)
    assert value(log, lambda one: one.arm == best(one)) == value(log, lambda one: float(one.arm == best(one)))


def test_numbers_of_arms_are_arms_and_no_probabilities() -> None:
    arms = tuple(range(3))
    log = [one._replace(arm=ARMS.index(one.arm), arms=arms) for one in logged(50)]
    assert value(log, lambda one: np.int64(1)) == value(log, 1)


def test_the_logs_own_policy_earns_what_it_earned() -> None:
    found = value(logged(500))
    assert found.estimate == pytest.approx(found.earned, abs=0.03)  # the expectations of other arms have a part in it
    assert found.effective == pytest.approx(500.0)
    assert found.gain.lower <= 0.0 <= found.gain.upper
    assert found.gain.upper - found.gain.lower < found.upper - found.lower


def test_the_gain_of_a_better_policy_is_seen() -> None:
    found = value(logged(3000), best)
    assert 0.0 < found.gain.lower < 0.6 - 0.38 + 0.1
    assert value(logged(3000), lambda one: "c" if one.context[0] > 0.0 else "b").gain.upper < 0.0


def test_rewards_of_any_range() -> None:
    plain = value(logged(300), best)
    log = [one._replace(reward=50.0 * one.reward - 20.0, expected=50.0 * one.expected - 20.0) for one in logged(300)]
    wide = value(log, best, bounds=(-20.0, 30.0))
    assert (wide.estimate, wide.lower, wide.upper) == pytest.approx(
        [50.0 * x - 20.0 for x in (plain.estimate, plain.lower, plain.upper)]
    )
    assert wide.gain == pytest.approx([50.0 * x for x in plain.gain])
    with pytest.raises(ValueError, match=r"decision 0 has the reward .*, outside of bounds=\(0\.0, 1\.0\)"):
        value(log[:1], best)


def test_missing_rewards_widen_it_whatever_they_were() -> None:
    whole = logged(1000)
    lost = [one._replace(reward=None, told=False) if one.number % 10 == 0 else one for one in whole]
    known, unsure = value(whole, best), value(lost, best)
    assert unsure.missing == 100
    for fill in (0.0, 1.0):
        filled = value([one._replace(reward=fill) if one.reward is None else one for one in lost], best)
        assert unsure.lower <= filled.lower
        assert filled.upper <= unsure.upper
        assert unsure.gain.lower <= filled.gain.lower + 1e-12
        assert filled.gain.upper <= unsure.gain.upper + 1e-12
    assert unsure.upper - unsure.lower > known.upper - known.lower
    nothing = value([one._replace(reward=None) for one in whole], best)
    assert math.isnan(nothing.earned)
    assert (nothing.lower, nothing.upper) == (0.0, 1.0)


def test_decisions_that_are_still_waited_for_end_the_log() -> None:
    """Clicks come at once, and none only after the wait: rows that are settled early were chosen by their outcome."""
    rows: list[Decision] = []
    bandit = Bandit(ARMS, policy=Uniform(), wait=Wait(events=50, default=0.0), log=rows.append)
    for number in range(400):
        choice = bandit.choose([1.0], now=0.0)
        if number % 4 == 0:
            bandit.reward(choice.id, 1, now=0.0)
    found = value(rows)
    waiting = min(bandit.waiting)
    assert found.count == waiting
    assert found.left_out == len(rows) - waiting == 12
    assert found.earned == pytest.approx(0.25, abs=0.01)
    assert value(reversed(rows)) == found, "in any order"


def test_a_policy_that_the_log_never_follows_is_not_known() -> None:
    log = [one._replace(probabilities=np.array([0.0, 0.4, 0.6])) for one in logged(200) if one.arm != "a"]
    log = [one._replace(number=n, propensity={"b": 0.4, "c": 0.6}[one.arm]) for n, one in enumerate(log)]
    found = value(log, "a")
    assert (found.lower, found.upper) == (0.0, 1.0)
    assert found.covered == 0.0
    assert found.effective == 0.0
    blind = value([one._replace(probabilities=np.empty(0)) for one in log], "a")
    assert math.isnan(blind.estimate)
    half = value(log, lambda one: {"a": 0.5, "b": 0.5})
    assert half.covered == pytest.approx(0.5)
    assert half.upper - half.lower > 0.5


def test_another_bandit_is_a_policy() -> None:
    X = RNG.standard_normal((600, 2))
    y = (X[:, 0] > 0.0).astype(int)
    rows: list[Decision] = []
    replay(Bandit([0, 1], policy=Uniform(), log=rows.append), X[:400], y[:400])
    taught = Bandit([0, 1], policy=Greedy(explore=0.0))
    replay(taught, X[400:], y[400:])
    before = taught.probabilities(X[0])
    found = value(rows, lambda one: taught.probabilities(one.context, among=one.arms))
    assert found.lower > 0.7
    assert taught.probabilities(X[0]) == before


def test_probabilities_that_no_float_divides() -> None:
    log = [one._replace(propensity=5e-324, probabilities=np.empty(0)) for one in logged(30)]
    found = value(log, "b")
    assert 0.0 <= found.lower <= found.estimate <= found.upper <= 1.0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"propensity": 0.0}, "needs a probability above 0"),
        ({"propensity": math.nan}, "needs a probability above 0"),
        ({"propensity": 1.5}, "needs a probability above 0"),
        ({"propensity": 0.77}, "its probabilities say another"),
        ({"arm": "z"}, "none of its arms"),
        ({"probabilities": np.array([0.2, 0.3, 0.9])}, "add up to 1"),
        ({"reward": 1.5}, "outside of bounds"),
        ({"reward": math.nan}, "outside of bounds"),
        ({"number": 0}, "the decision 0 twice"),
    ],
)
def test_logs_are_refused(change: dict[str, Any], says: str) -> None:
    log = logged(3)
    log[1] = log[1]._replace(**change)
    with pytest.raises(ValueError, match=says):
        value(log, "b")


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        (([], "b"), ValueError, "the log is empty"),
        ((logged(3), "z"), ValueError, "none of the arms of the log"),
        ((logged(3), 1.5), TypeError, "needs an arm, or a function"),
        ((logged(3), lambda one: "z"), ValueError, "chose 'z' for decision 0"),
        ((logged(3), lambda one: [0.5, 0.5]), ValueError, "needs one of its arms"),
        ((logged(3), lambda one: {"a": 0.5}), ValueError, "add up to 1"),
        ((logged(3), lambda one: 1.5), ValueError, "needs one of its arms"),
        ((logged(3), lambda one: None), ValueError, "the policy said None"),
        (([1, 2], "b"), TypeError, "the log holds 1"),
    ],
)
def test_calls_are_refused(arguments: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        value(*arguments)


@pytest.mark.parametrize(
    "settings", [{"bounds": (1.0, 0.0)}, {"bounds": 3.0}, {"confidence": 1.0}, {"bounds": (0.0, math.inf)}]
)
def test_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="needs"):
        value(logged(3), "b", **settings)


def test_it_says_itself_in_a_line() -> None:
    assert str(value(logged(300), best)).startswith("0.")
    assert "with 95% confidence; 300 decisions" in str(value(logged(300), best))


def test_probabilities_that_are_not_those_by_which_it_was_drawn_are_seen() -> None:
    log = [one._replace(probabilities=np.empty(0), propensity=0.02) for one in logged(400)]
    found = value(log, "c")
    assert 1.0 >= found.lower > found.upper >= 0.0
    assert "can hardly be true" in str(found)
    repeated = [one._replace(number=number) for number, one in enumerate(logged(100, reward=1.0) * 60)]
    assert value(repeated, "b").upper <= 1.0
    assert value(repeated, "b").lower <= 1.0
