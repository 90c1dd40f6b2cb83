"""Data in which every reward is known, played as if only that of the chosen arm were, and what fixed policies earn on it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from onlinevi.bandit.arms import Arm
from onlinevi.bandit.player import Bandit
from onlinevi.engine import Vector

RIDGE = 1e-6
"""For each weight of a linear policy, beside the average over the decisions: keeps the searches from running off."""
ROUNDS = 200
"""Steps of each search."""


@dataclass(frozen=True, eq=False)
class Replay:
    """What was earned, beside what the rewards of all arms allow."""

    X: Vector
    rewards: Vector
    """Of each decision those of all arms, in their order."""
    arms: tuple[Arm, ...]
    earned: Vector
    """Of each decision the reward of the arm that was chosen."""
    chosen: tuple[Arm, ...]
    propensity: Vector

    @property
    def average(self) -> float:
        """The average reward."""
        return float(self.earned.mean())

    @cached_property
    def best_arm(self) -> tuple[Arm, float]:
        """The arm that is the best one to choose always, and its average reward."""
        averages = self.rewards.mean(axis=0)
        return self.arms[int(averages.argmax())], float(averages.max())

    @cached_property
    def best_linear(self) -> float:
        """The average reward of a linear policy that was fitted with all rewards known.

        It chooses the arm of the largest ⟨w_arm, x⟩, or ⟨w, x_arm⟩ where arms have rows of their own. To find the best one is
        hard in general: this is the better one of two searches, and the best may earn more.
        """
        return float(np.mean(self.rewards[np.arange(len(self.X)), _linear_policy(self.X, self.rewards)]))

    @property
    def regret_to_arm(self) -> float:
        """How much more the best arm would have earned in all; below 0, less."""
        return len(self.earned) * (self.best_arm[1] - self.average)

    @property
    def regret_to_linear(self) -> float:
        """The same of the linear policy."""
        return len(self.earned) * (self.best_linear - self.average)

    def __repr__(self) -> str:
        arm, best = self.best_arm
        return f"Replay({len(self.earned):,} decisions, average={self.average:.4g}, always {arm!r}: {best:.4g})"


def replay(bandit: Bandit, X: Any, y: Any = None, *, rewards: Any = None, delay: int = 0) -> Replay:
    """Play data whose rewards are all known: the bandit is told that of the arm it chose, ``delay`` decisions later.

    ``y`` are classes, and an arm is a guess of the class: right is 1, wrong 0. Or ``rewards`` has a row for each row of X, and
    a column for each of the arms. X has a row for each decision, or a matrix, where arms have rows of their own.

    >>> import numpy as np
    >>> from onlinevi.bandit import Bandit, replay
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> played = replay(Bandit([0, 1]), X, (X[:, 0] > 0.0).astype(int))
    >>> played.average > 0.9, played.best_linear > 0.99, played.best_arm[1] < 0.6
    (True, True, True)
    """
    X, table = _known(bandit, X, y, rewards)
    if type(delay) is not int or not 0 <= delay < bandit.play.wait.events:
        raise ValueError(
            f"delay={delay!r}: needs a number of decisions from 0 to below that of Wait, {bandit.play.wait.events}"
        )
    places = {arm: place for place, arm in enumerate(bandit.arms)}
    late: deque[tuple[Any, float]] = deque()
    earned, propensity, chosen = np.empty(len(X)), np.empty(len(X)), []
    for row, (context, own) in enumerate(zip(X, table, strict=True)):
        choice = bandit.choose(context, now=0.0)
        earned[row], propensity[row] = own[places[choice.arm]], choice.propensity
        chosen.append(choice.arm)
        late.append((choice.id, earned[row]))
        if len(late) > delay:
            bandit.reward(*late.popleft(), now=0.0)
    for id, value in late:  # noqa: A001
        bandit.reward(id, value, now=0.0)
    return Replay(X, table, bandit.arms, earned, tuple(chosen), propensity)


def _known(bandit: Bandit, X: Any, y: Any, rewards: Any) -> tuple[Vector, Vector]:
    """Contexts as an array, and the rewards of all arms."""
    X = np.asarray(X, dtype=float)
    if X.ndim not in (2, 3) or not len(X):
        raise ValueError(f"X has the shape {X.shape}: needs at least one row, or a matrix a decision")
    if (y is None) == (rewards is None):
        raise ValueError("needs y, the class of each row, or rewards, those of all arms; one of them")
    if y is not None:
        labels = np.asarray(y).tolist()
        odd = set(labels) - set(bandit.arms)
        if odd:
            raise ValueError(
                f"y has the class {min(odd, key=str)!r}, which is none of the arms: {', '.join(map(repr, bandit.arms))}"
            )
        rewards = [[float(label == arm) for arm in bandit.arms] for label in labels]
    table = np.asarray(rewards, dtype=float)
    if table.shape != (len(X), len(bandit.arms)):
        raise ValueError(
            f"rewards have the shape {table.shape}: need a row for each of {len(X)}, {len(bandit.arms)} arms wide"
        )
    return X, table


def _linear_policy(X: Vector, rewards: Vector) -> Vector:
    """The place of the arm that a linear policy chooses at each row.

    First a softmax is fitted to the rewards as weights of its logarithms, which is convex; from there it climbs to the reward
    that it earns itself.
    """
    from scipy.optimize import minimize

    flat = X.reshape(-1, X.shape[-1])
    scale = flat.std(axis=0)
    Z = (X - flat.mean(axis=0)) / np.where(scale > 0.0, scale, 1.0)
    alike = X.ndim == 2
    Z = np.concatenate([np.ones((*Z.shape[:-1], 1)), Z], axis=-1) if alike else Z
    gains = rewards - rewards.min(axis=1, keepdims=True)

    def scores(weights: Vector) -> Vector:
        return np.asarray(Z @ weights.reshape(Z.shape[1], -1) if alike else Z @ weights)

    def fit(slope: Callable[[Vector, Vector], tuple[float, Vector]], start: Vector) -> Vector:
        def cost(weights: Vector) -> tuple[float, Vector]:
            z = scores(weights)
            logs = z - np.logaddexp.reduce(z, axis=1)[:, np.newaxis]
            value, by_score = slope(logs, np.exp(logs))
            back = Z.T @ by_score if alike else np.einsum("tkd,tk->d", Z, by_score)
            return value / len(Z) + 0.5 * RIDGE * float(weights @ weights), back.ravel() / len(Z) + RIDGE * weights

        return np.asarray(minimize(cost, start, jac=True, method="L-BFGS-B", options={"maxiter": ROUNDS}).x)

    def by_logarithms(logs: Vector, shares: Vector) -> tuple[float, Vector]:
        return -float((gains * logs).sum()), shares * gains.sum(axis=1)[:, np.newaxis] - gains

    def by_reward(logs: Vector, shares: Vector) -> tuple[float, Vector]:
        own = (shares * gains).sum(axis=1)
        return -float(own.sum()), -shares * (gains - own[:, np.newaxis])

    first = fit(by_logarithms, np.zeros(Z.shape[-1] * (rewards.shape[1] if alike else 1)))
    found = [scores(weights).argmax(axis=1) for weights in (first, fit(by_reward, first))]
    return max(found, key=lambda places: float(gains[np.arange(len(gains)), places].sum()))
