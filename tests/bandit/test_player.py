"""The game: what is chosen, learned, waited for and kept, against exact Bayes and by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onlinevi as ovi
from onlinevi.bandit import Bandit, Decision, Disjoint, Greedy, Shared, Thompson, Uniform, UpperBound, Wait

NOISE, WIDE = 0.3, 1.5
GAUSSIAN = ovi.Linear(ovi.Squared(), ovi.Implicit(rate=0.5 / NOISE**2), ovi.FullCovariance(prior_std=WIDE, box=None))
"""Exact Bayes for rewards with this noise."""
BINARY = ovi.Linear(ovi.Logistic(), ovi.Implicit(), ovi.MeanField(box=None))


def posterior(X: np.ndarray, y: np.ndarray, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Of a linear Gaussian model, by its normal equations."""
    precision = np.eye(dim) / WIDE**2 + X.T @ X / NOISE**2
    return np.linalg.solve(precision, X.T @ y / NOISE**2), np.linalg.inv(precision)


def played(bandit: Bandit, rounds: int, seed: int = 0, pays: Any = None) -> list[tuple[Any, Any, float]]:
    """Contexts, choices and rewards of so many rounds."""
    rng, seen = np.random.default_rng(seed), []
    for _ in range(rounds):
        x = rng.standard_normal(3)
        choice = bandit.choose(x, now=0.0)
        value = float(x[bandit.arms.index(choice.arm) % 3] > 0.0) if pays is None else pays(x, choice.arm, rng)
        bandit.reward(choice.id, value, now=0.0)
        seen.append((x, choice, value))
    return seen


def number(x: np.ndarray, arm: Any, rng: np.random.Generator) -> float:
    return float(x[{"a": 0, "b": 1, "c": 2}[arm]] + NOISE * rng.standard_normal())


def test_each_arm_has_the_exact_posterior_of_its_own_rewards() -> None:
    bandit = Bandit("abc", GAUSSIAN, policy=Thompson(widen=1.0), seed=2)
    seen = played(bandit, 60, pays=number)
    x = np.array([0.3, -1.0, 0.5])
    law = []
    for arm in "abc":
        own = [(row, value) for row, choice, value in seen if choice.arm == arm]
        mean, covariance = posterior(np.array([row for row, _ in own]), np.array([value for _, value in own]), 3)
        assert bandit.state_of(arm).mean == pytest.approx(mean, abs=1e-9)
        assert bandit.state_of(arm).belief.covariance == pytest.approx(covariance, abs=1e-9)
        law.append((mean @ x, math.sqrt(x @ covariance @ x)))
    means, stds = np.array(law).T
    scores = means + stds * np.random.default_rng(0).standard_normal((200_000, 3))
    brute = np.bincount(scores.argmax(axis=1), minlength=3) / 200_000
    choice = bandit.choose(x)
    assert choice.probabilities == pytest.approx(brute, abs=0.005)
    assert choice.expected == pytest.approx(means, abs=1e-9)


def test_shared_weights_have_the_exact_joint_law() -> None:
    """Of four arms with two features each."""
    rng = np.random.default_rng(1)
    bandit, rows, values = Bandit(range(4), Shared(GAUSSIAN)), [], []
    for _ in range(15):
        context = rng.standard_normal((4, 2))
        choice = bandit.choose(context)
        rows.append(context[choice.arm])
        values.append(rows[-1] @ [0.5, -1.0] + NOISE * rng.standard_normal())
        bandit.reward(choice.id, values[-1])
    mean, covariance = posterior(np.array(rows), np.array(values), 2)
    context = rng.standard_normal((4, 2))
    law = bandit.play.model.law({None: bandit.state_of(0)}, context, range(4))
    assert law.mean == pytest.approx(context @ mean, abs=1e-8)
    assert law.covariance == pytest.approx(context @ covariance @ context.T, abs=1e-8)


def test_the_joint_law_is_that_of_prepared_rows() -> None:
    learner = ovi.Prepare(ovi.Inputs(), GAUSSIAN)
    bandit, rng = Bandit("abc", Shared(learner)), np.random.default_rng(4)
    for _ in range(10):
        choice = bandit.choose(context := rng.standard_normal((3, 2)) * [1e3, 1.0])
        bandit.reward(choice.id, float(context["abc".index(choice.arm)][1]))
    state = bandit.state_of("a")
    law = bandit.play.model.law({None: state}, context, "abc")
    prepared = learner.inputs.apply(state.moments, context)
    assert law.covariance == pytest.approx(prepared @ state.inner.belief.covariance @ prepared.T, abs=1e-9)


@pytest.mark.parametrize("family", [ovi.MeanField(box=None), ovi.LowRank(rank=1)], ids=repr)
def test_every_family_has_a_joint_law(family: ovi.Family) -> None:
    bandit = Bandit("abc", Shared(ovi.Linear(ovi.Logistic(), ovi.Implicit(), family)))
    rng = np.random.default_rng(0)
    for _ in range(10):
        choice = bandit.choose({arm: rng.standard_normal(4) for arm in "abc"})
        bandit.reward(choice.id, choice.arm == "b")
    context = rng.standard_normal((3, 4))
    state = bandit.state_of("a")
    law = bandit.play.model.law({None: state}, context, "abc")
    draws = family.sample(state.belief, rng, 40_000) @ context.T
    assert law.covariance == pytest.approx(np.cov(draws.T), abs=0.05 * law.std.max() ** 2)
    assert np.sqrt(np.diag(law.covariance)) == pytest.approx(law.std)


def test_a_pool_with_shared_weights_has_the_law_of_its_mixture() -> None:
    pool = ovi.Pool([GAUSSIAN, ovi.Linear(ovi.Squared(), ovi.Implicit(0.1), ovi.FullCovariance(prior_std=0.2))], rate=1.0)
    bandit, rng = Bandit("ab", Shared(pool)), np.random.default_rng(3)
    for _ in range(12):
        context = rng.standard_normal((2, 3))
        choice = bandit.choose(context)
        bandit.reward(choice.id, float(context["ab".index(choice.arm)].sum()))
    law = bandit.play.model.law({None: bandit.state_of("a")}, context, "ab")
    values = np.linalg.eigvalsh(law.covariance)
    assert values.min() > -1e-12
    assert np.sqrt(np.diag(law.covariance)) == pytest.approx(law.std)


@pytest.mark.parametrize(
    "policy", [Thompson(), Thompson(explore=0.2), UpperBound(0.5), Greedy(explore=0.3), Uniform()], ids=repr
)
def test_arms_are_chosen_as_often_as_their_propensity_says(policy: Any) -> None:
    bandit = Bandit("abc", GAUSSIAN, policy=policy, seed=5)
    played(bandit, 12, pays=number)
    x, counts = np.array([0.2, 0.1, 0.15]), dict.fromkeys("abc", 0)
    for _ in range(600):  # nothing is learned in between: the same law each time
        choice = bandit.choose(x)
        counts[choice.arm] += 1
        assert choice.probabilities.sum() == pytest.approx(1.0)
        assert choice.propensity == choice.probabilities["abc".index(choice.arm)] > 0.0
    shares = np.array(list(counts.values())) / 600
    assert np.abs(shares - choice.probabilities).max() < 4.0 * math.sqrt(0.25 / 600)


def test_it_learns_what_pays() -> None:
    right = [choice.arm == "abc"[int(np.argmax(x))] for x, choice, _ in played(Bandit("abc", GAUSSIAN), 150, pays=number)]
    assert np.mean(right[50:]) > 0.8
    chance = np.mean([c.arm == "abc"[int(x.argmax())] for x, c, _ in played(Bandit("abc", GAUSSIAN, policy=Uniform()), 150)])
    assert chance < 0.5


def test_the_same_seed_makes_the_same_choices() -> None:
    arms = [[choice.arm for _, choice, _ in played(Bandit("abc", BINARY, seed=seed), 40)] for seed in (1, 1, 2)]
    assert arms[0] == arms[1] != arms[2]


def test_rewards_may_come_in_any_order_and_each_arm_learns_in_the_order_they_come() -> None:
    bandit = Bandit("ab", BINARY, seed=1)
    x = [np.array([1.0, k]) for k in range(6)]
    arms = [bandit.choose(row, id=f"n{k}").arm for k, row in enumerate(x)]
    order = [3, 0, 5, 1, 4, 2]
    for k in order:
        bandit.reward(f"n{k}", k % 2)
    for arm in set(arms):
        state = BINARY.init(2)
        for k in order:
            if arms[k] == arm:
                state, _ = BINARY.update(state, x[k], 2.0 * (k % 2) - 1.0)
        assert bandit.state_of(arm) == state
    assert bandit.waiting == ()


def test_what_never_comes_is_learned_as_the_default() -> None:
    log: list[Decision] = []
    bandit = Bandit("a", BINARY, wait=Wait(events=2, default=0.0), log=log.append)
    for k in range(5):
        bandit.choose([1.0, k], id=k)
    assert bandit.waiting == (3, 4), "two wait, three are over"
    assert [(one.id, one.reward, one.told) for one in log] == [(0, 0.0, False), (1, 0.0, False), (2, 0.0, False)]
    state = BINARY.init(2)
    for k in range(3):
        state, _ = BINARY.update(state, [1.0, k], -1.0)
    assert bandit.state_of("a") == state
    assert bandit.tallies["a"] == (5, 3, 0.0)
    with pytest.raises(LookupError, match=r"waited too long, and 0\.0 was taken"):
        bandit.reward(1, 1)
    assert bandit.state_of("a") == state


def test_a_wait_in_seconds_and_none_learned() -> None:
    log: list[Decision] = []
    bandit = Bandit("a", BINARY, wait=Wait(seconds=10.0), log=log.append)
    bandit.choose([1.0], id="old", now=0.0)
    bandit.choose([1.0], id="new", now=5.0)
    bandit.reward("new", 1, now=9.9)
    bandit.settle(now=9.99)
    assert bandit.waiting == ("old",)
    bandit.settle(now=10.0)
    assert bandit.waiting == ()
    assert [(one.id, one.reward, one.told) for one in log] == [("new", 1.0, True), ("old", None, False)]
    assert bandit.state_of("a").count == 1
    with pytest.raises(LookupError, match="learned nothing"):
        bandit.reward("old", 1, now=10.0)


def test_memory_is_bounded() -> None:
    bandit = Bandit("ab", BINARY, wait=Wait(events=5))
    for k in range(40):
        bandit.choose([1.0], id=k)
    assert len(bandit.waiting) == 5
    assert len(bandit._waiting.settled) == 5
    with pytest.raises(LookupError, match="no decision has this id, or one from long ago"):
        bandit.reward(3, 1)


def untouched(bandit: Bandit, act: Any, error: type[Exception], says: str, tmp: Path) -> None:
    """What is refused changes nothing: the files before and after are the same bytes."""
    bandit.save(tmp / "before.ovi")
    with pytest.raises(error, match=says):
        act(bandit)
    bandit.save(tmp / "after.ovi")
    assert (tmp / "before.ovi").read_bytes() == (tmp / "after.ovi").read_bytes()


@pytest.mark.parametrize(
    ("act", "error", "says"),
    [
        (lambda b: b.choose([1.0, 2.0], id="w"), ValueError, "waits for its reward already"),
        (lambda b: b.choose([1.0, 2.0], id="done"), ValueError, "was used by an earlier decision, which has its reward"),
        (lambda b: b.choose([1.0, 2.0], id=1.5), TypeError, "needs text, or a whole number"),
        (lambda b: b.choose([1.0, 2.0], id=True), TypeError, "needs text, or a whole number"),
        (lambda b: b.choose([1.0]), ValueError, "has 1 values an arm, those before had 2"),
        (lambda b: b.choose([[1.0, 2.0]]), ValueError, r"shape \(1, 2\): needs one row"),
        (lambda b: b.choose(["x", "y"]), ValueError, "needs numbers"),
        (lambda b: b.choose([]), ValueError, "0 values"),
        (lambda b: b.choose([math.nan, 1.0]), ValueError, "not finite"),
        (lambda b: b.choose([1e300, 1.0]), ValueError, "not finite"),
        (lambda b: b.choose([1.0, 2.0], among=["z"]), LookupError, "none of the arms"),
        (lambda b: b.choose([1.0, 2.0], among=[]), ValueError, "at least one arm"),
        (lambda b: b.choose([1.0, 2.0], among=["a", "a"]), ValueError, "each once"),
        (lambda b: b.reward("never", 1), LookupError, "no decision has this id"),
        (lambda b: b.reward(["w"], 1), LookupError, "no decision has this id"),
        (lambda b: b.reward("done", 1), LookupError, "its decision has its reward"),
        (lambda b: b.reward("w", 0.5), ValueError, "needs 0 or 1"),
        (lambda b: b.reward("w", None), ValueError, "needs 0 or 1"),
        (lambda b: b.reward("w", math.nan), ValueError, "needs 0 or 1"),
        (lambda b: b.join("a"), ValueError, "one of the arms already"),
        (lambda b: b.join(1.5), TypeError, "needs text, or a whole number"),
        (lambda b: b.leave("z"), LookupError, "none of the arms"),
    ],
)
def test_what_is_refused_loses_nothing(act: Any, error: type[Exception], says: str, tmp_path: Path) -> None:
    bandit = Bandit(["a", "b"], BINARY)
    bandit.choose([0.0, 1.0], id="w", now=0.0)
    bandit.choose([0.0, 1.0], id="done", now=0.0)
    bandit.reward("done", 1, now=0.0)
    untouched(bandit, act, error, says, tmp_path)
    bandit.reward("w", 1)


def test_numbers_need_finite_rewards() -> None:
    bandit = Bandit("a", GAUSSIAN)
    bandit.choose([1.0], id=0)
    for value in (math.inf, "much", 1e300):
        with pytest.raises(ValueError, match="reward="):
            bandit.reward(0, value)
    bandit.reward(0, 2.5)
    assert bandit.average_reward == 2.5


def test_a_default_that_no_learner_takes_is_not_in_the_way() -> None:
    bandit = Bandit("a", GAUSSIAN, wait=Wait(events=1, default=1e200))
    bandit.choose([1e140], id=0)
    bandit.choose([1.0], id=1)
    assert bandit.state_of("a") is None
    assert bandit.waiting == (1,)


def test_arms_join_and_leave() -> None:
    bandit = Bandit(["a", "b"], BINARY, policy=Uniform(), seed=3)
    ids = [bandit.choose([1.0, 0.0]).id for _ in range(20)]
    late = next(one for one in bandit._waiting if one.arm == "b")
    bandit.leave("b")
    assert (bandit.arms, bandit.resting) == (("a",), ("b",))
    assert {bandit.choose([1.0, 0.0]).arm for _ in range(10)} == {"a"}
    bandit.reward(late.id, 1)
    assert bandit.state_of("b").count == 1, "what it had waited for is learned"
    bandit.join("c")
    assert {bandit.choose([1.0, 0.0]).arm for _ in range(30)} == {"a", "c"}
    bandit.join("b")
    assert bandit.arms == ("a", "c", "b")
    assert bandit.state_of("b").count == 1, "it has not forgotten"
    assert {bandit.choose([1.0, 0.0], among=["b", "c"]).arm for _ in range(30)} == {"b", "c"}
    with pytest.raises(ValueError, match="is the last one"):
        Bandit(["only"], BINARY).leave("only")
    assert len(ids) == 20


@pytest.mark.parametrize(
    "model", [BINARY, ovi.Prepare(ovi.Inputs(), GAUSSIAN), Shared(BINARY)], ids=["leaf", "prepare", "shared"]
)
@pytest.mark.parametrize("policy", [Thompson(explore=0.1), UpperBound(), Greedy()], ids=["thompson", "ucb", "greedy"])
def test_it_goes_on_from_a_file_to_the_bit(model: Any, policy: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    contexts = rng.standard_normal((40, 2, 3))

    def step(bandit: Bandit, k: int) -> tuple[Any, ...]:
        if k == 7:
            bandit.leave("y")
            bandit.join(3)
        context = contexts[k] if isinstance(model, Shared) else contexts[k, 0]
        choice = bandit.choose(context, id=f"id {k}", now=float(k))
        if k % 3 and k > 4:
            bandit.reward(f"id {k - 4}", k % 2, now=float(k))
        return choice.arm, choice.propensity, choice.probabilities.tolist(), choice.expected.tolist()

    def new() -> Bandit:
        return Bandit(["x", "y"], model, policy=policy, wait=Wait(events=9, seconds=30.0, default=1.0), seed=11)

    whole, parted = new(), new()
    expected = [step(whole, k) for k in range(40)]
    found = []
    for k in range(40):
        if k in (0, 6, 8, 20, 33):
            parted.save(tmp_path / "bandit.ovi", extra={"k": k})
            parted = Bandit.load(tmp_path / "bandit.ovi")
        found.append(step(parted, k))
    assert found == expected
    whole.save(tmp_path / "whole.ovi")
    parted.save(tmp_path / "parted.ovi")
    assert (tmp_path / "whole.ovi").read_bytes() == (tmp_path / "parted.ovi").read_bytes()


def test_other_files_are_refused(tmp_path: Path) -> None:
    ovi.save(tmp_path / "model.ovi", BINARY, BINARY.init(2))
    with pytest.raises(ovi.checkpoint.CheckpointError, match="it holds a Linear, no bandit"):
        Bandit.load(tmp_path / "model.ovi")
    Bandit("ab", BINARY).save(tmp_path / "bandit.ovi")
    content = bytearray((tmp_path / "bandit.ovi").read_bytes())
    content[200] ^= 1
    (tmp_path / "bandit.ovi").write_bytes(bytes(content))
    with pytest.raises(ovi.checkpoint.CheckpointError):
        Bandit.load(tmp_path / "bandit.ovi")


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: Bandit([]), ValueError, "arms is empty"),
        (lambda: Bandit(["a", "a"]), ValueError, "one of the arms already"),
        (lambda: Bandit("ab", ovi.OneVsRest(BINARY, 3)), TypeError, "several classes"),
        (lambda: Disjoint("learner"), TypeError, "needs a learner"),
        (lambda: Bandit("ab", policy="thompson"), TypeError, "needs a policy"),
        (lambda: Bandit("ab", wait=5), TypeError, "needs a Wait"),
        (lambda: Bandit("ab", wait=Wait(default=0.5)), ValueError, "needs 0 or 1"),
        (lambda: Wait(events=0), ValueError, "at least 1"),
        (lambda: Wait(seconds=0.0), ValueError, "time > 0"),
        (lambda: Wait(default=math.nan), ValueError, "finite reward"),
        (lambda: Bandit("ab", Shared(BINARY)).choose([1.0, 2.0]), ValueError, "a row of features for each of 2 arms"),
        (lambda: Bandit("ab", Shared(BINARY)).choose({"a": [1.0]}), ValueError, "no row for the arm 'b'"),
    ],
)
def test_settings_are_refused(make: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        make()


def test_the_default_learner_serves_too() -> None:
    seen = played(Bandit("ab", ovi.Auto(ovi.Squared(), effort="light")), 4)
    assert all(np.isfinite(choice.expected).all() for _, choice, _ in seen)
