"""Data whose rewards are all known: what is earned, and what fixed policies would have."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import onlinevi as ovi
from onlinevi.bandit import Bandit, Greedy, Shared, Uniform, Wait, replay
from onlinevi.bandit.arms import BINARY

NUMBERS = ovi.Linear(ovi.Squared(), ovi.Implicit(), ovi.FullCovariance(box=None))
RNG = np.random.default_rng(0)
X = RNG.standard_normal((120, 2))
CLASSES = np.argmax(X @ RNG.standard_normal((2, 3)), axis=1)


def test_it_is_the_game_by_hand() -> None:
    played = replay(Bandit(range(3), BINARY, seed=4), X, CLASSES, delay=3)
    bandit, earned, late = Bandit(range(3), BINARY, seed=4), [], []
    for x, label in zip(X, CLASSES.tolist(), strict=True):
        choice = bandit.choose(x)
        earned.append(float(choice.arm == label))
        late.append((choice.id, earned[-1]))
        if len(late) > 3:
            bandit.reward(*late.pop(0))
    assert played.earned.tolist() == earned
    assert played.average == np.mean(earned)


def test_all_rewards_are_told_in_the_end() -> None:
    bandit = Bandit(range(3), policy=Uniform())
    replay(bandit, X, CLASSES, delay=50)
    assert bandit.waiting == ()
    assert sum(tally.rewarded for tally in bandit.tallies.values()) == len(X)


def test_the_best_arm_and_a_linear_policy_that_is_always_right() -> None:
    played = replay(Bandit(range(3), policy=Greedy()), X, CLASSES)
    counts = np.bincount(CLASSES, minlength=3)
    assert played.best_arm == (counts.argmax(), counts.max() / len(X))
    assert played.best_linear > 0.98
    assert played.regret_to_linear == pytest.approx(len(X) * (played.best_linear - played.average))
    assert played.regret_to_arm == pytest.approx(counts.max() - played.earned.sum())


@pytest.mark.parametrize("shift", [0.0, -5.0])
def test_the_linear_policy_is_about_the_best_of_all(shift: float) -> None:
    """Two arms and one column: a threshold, so that all linear policies can be tried."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((80, 1))
    rewards = np.column_stack([rng.random(80), rng.random(80) + 0.5 * np.tanh(x[:, 0])]) + shift
    played = replay(Bandit([0, 1], policy=Uniform(), model=NUMBERS), x, rewards=rewards)
    cuts = [-np.inf, *np.sort(x[:, 0]).tolist()]
    every = [
        float(np.where((x[:, 0] > cut) == up, rewards[:, 1], rewards[:, 0]).mean()) for cut, up in product(cuts, (True, False))
    ]
    assert played.best_arm[1] <= played.best_linear + 0.02
    assert max(every) - 0.03 <= played.best_linear <= max(every) + 1e-12


def test_rows_for_each_arm() -> None:
    tensor = RNG.standard_normal((150, 4, 3))
    labels = np.argmax(tensor @ [1.0, -1.0, 0.5], axis=1)
    played = replay(Bandit(range(4), Shared(BINARY)), tensor, labels)
    assert played.best_linear > 0.97
    assert played.average > 0.5
    assert 0.0 < played.propensity.min() <= played.propensity.max() <= 1.0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"y": CLASSES + 1}, "y has the class 3, which is none of the arms"),
        ({"y": CLASSES[:5]}, "rewards have the shape"),
        ({}, "one of them"),
        ({"y": CLASSES, "rewards": np.zeros((120, 3))}, "one of them"),
        ({"rewards": np.zeros((120, 2))}, "3 arms wide"),
        ({"y": CLASSES, "delay": -1}, "delay=-1"),
        ({"y": CLASSES, "delay": 5}, "below that of Wait, 5"),
    ],
)
def test_what_does_not_fit_is_refused(arguments: dict[str, Any], says: str) -> None:
    bandit = Bandit(range(3), policy=Uniform(), wait=Wait(events=5))
    with pytest.raises(ValueError, match=says):
        replay(bandit, X, **arguments)
    assert bandit.count == 0


def test_no_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one row"):
        replay(Bandit(range(3)), np.empty((0, 2)), [])
