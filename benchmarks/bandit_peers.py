"""Bandits of other packages, each as its users would start it: documented defaults, one decision at a time.

All get columns that are standardised by the moments so far, and a one where they add none, which is not timed. Vowpal Wabbit,
which scales by itself, plays with and without, and has its lines of text made beforehand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from study_streams import peer_package

import onlinevi as ovi
from onlinevi.bandit import BINARY_MODEL, Bandit, Greedy, Policy, Thompson, Uniform, UpperBound


class Player(Protocol):
    """``contexts`` makes rows in the package's own form, untimed; ``choose`` says the place of an arm."""

    def contexts(self, X: np.ndarray) -> list[Any]: ...

    def choose(self, context: Any) -> int: ...

    def learn(self, context: Any, arm: int, reward: float) -> None: ...


class Ours:
    """Contexts as they are."""

    def __init__(self, arms: int, seed: int, policy: Policy, model: Any = BINARY_MODEL) -> None:
        self.bandit = Bandit(range(arms), model, policy=policy, seed=seed)

    def contexts(self, X: np.ndarray) -> list[Any]:
        return list(X)

    def choose(self, context: np.ndarray) -> int:
        choice = self.bandit.choose(context)
        self._id = choice.id
        return int(choice.arm)

    def learn(self, context: np.ndarray, arm: int, reward: float) -> None:
        self.bandit.reward(self._id, reward)


class Scaled:
    """Rows by the moments so far, their own included, with a one."""

    def contexts(self, X: np.ndarray) -> list[Any]:
        inputs = ovi.Inputs(squash=None)
        return list(inputs.update_many(inputs.init(X.shape[1]), X)[1][:, np.newaxis])


class MABWiser(Scaled):
    """Wants a fit before it predicts: the first decision of each arm is made in turn."""

    def __init__(self, arms: int, seed: int, policy: str) -> None:
        package = peer_package("mabwiser.mab")
        self.arms, self.begun = arms, 0
        self.model = package.MAB(list(range(arms)), getattr(package.LearningPolicy, policy)(), seed=seed)

    def choose(self, context: np.ndarray) -> int:
        if self.begun < self.arms:
            return self.begun
        return int(self.model.predict(context))

    def learn(self, context: np.ndarray, arm: int, reward: float) -> None:
        fit = self.model.partial_fit if self.begun else self.model.fit
        fit([arm], [reward], context)
        self.begun += 1


class BayesianBandits(Scaled):
    """Thompson sampling with the learner of its README, or its logistic one."""

    def __init__(self, arms: int, seed: int, learner: str) -> None:
        package = peer_package("bayesianbandits")
        own = [package.Arm(arm, learner=getattr(package, learner)()) for arm in range(arms)]
        self.agent = package.ContextualAgent(own, package.ThompsonSampling(), random_seed=seed)

    def choose(self, context: np.ndarray) -> int:
        return int(self.agent.pull(context)[0])

    def learn(self, context: np.ndarray, arm: int, reward: float) -> None:
        self.agent.update(context, np.array([reward]))


class ContextualBandits(Scaled):
    """Its linear policies, which learn row by row. Its Thompson sampling is to draw scores: where it draws coefficients, which
    is its default, it chooses at random for ever when it learns one row at a time."""

    def __init__(self, arms: int, seed: int, policy: str, **settings: object) -> None:
        self.model = getattr(peer_package("contextualbandits.online"), policy)(
            arms, fit_intercept=False, random_state=seed + 1, **settings
        )

    def choose(self, context: np.ndarray) -> int:
        return int(self.model.predict(context)[0])

    def learn(self, context: np.ndarray, arm: int, reward: float) -> None:
        self.model.partial_fit(context, np.array([arm]), np.array([reward]))


class VowpalWabbit(Scaled):
    """``--cb_explore_adf``, with a weight for each pair of an arm and a column (``-q sa``)."""

    def __init__(self, arms: int, seed: int, options: str, *, scaled: bool = True) -> None:
        self.scaled, package = scaled, peer_package("vowpalwabbit")
        self.model = package.Workspace(f"--cb_explore_adf -q sa --quiet --random_seed {seed} {options}".strip())
        self.rng = np.random.default_rng(seed)
        self.arms = [f"|a {arm}" for arm in range(arms)]

    def contexts(self, X: np.ndarray) -> list[Any]:
        rows = super().contexts(X) if self.scaled else list(X[:, np.newaxis])
        return [
            f"shared |s {' '.join(f'{j}:{x:.6g}' for j, x in enumerate(row) if x)}" for (row,) in map(np.ndarray.tolist, rows)
        ]

    def choose(self, context: str) -> int:
        chances = np.array(self.model.predict("\n".join([context, *self.arms])))
        arm = int(np.searchsorted(np.cumsum(chances), self.rng.random() * chances.sum(), side="right"))
        self.chance = chances[arm]
        return arm

    def learn(self, context: str, arm: int, reward: float) -> None:
        lines = [context, *self.arms]
        lines[1 + arm] = f"{arm}:{-reward}:{self.chance} {self.arms[arm]}"
        self.model.learn("\n".join(lines))


Make = Callable[[int, int], Player]


def _ours(policy: Policy) -> Make:
    return lambda arms, seed: Ours(arms, seed, policy)


def _theirs(kind: Callable[..., Player], setting: str, **others: object) -> Make:
    return lambda arms, seed: kind(arms, seed, setting, **others)


PLAYERS: dict[str, Make] = {
    "onlinevi, `Thompson()`, the default": _ours(Thompson()),
    "onlinevi, `Greedy(explore=0)`": _ours(Greedy(explore=0.0)),
    "onlinevi, `UpperBound()`": _ours(UpperBound()),
    "VW `--cb_explore_adf`": _theirs(VowpalWabbit, ""),
    "VW `--cb_explore_adf`, columns as they are": _theirs(VowpalWabbit, "", scaled=False),
    "VW `--cb_explore_adf --squarecb`": _theirs(VowpalWabbit, "--squarecb"),
    "VW `--cb_explore_adf --bag 5`": _theirs(VowpalWabbit, "--bag 5"),
    "MABWiser, LinTS": _theirs(MABWiser, "LinTS"),
    "MABWiser, LinUCB": _theirs(MABWiser, "LinUCB"),
    "bayesianbandits, NormalInverseGammaRegressor": _theirs(BayesianBandits, "NormalInverseGammaRegressor"),
    "bayesianbandits, BayesianGLM": _theirs(BayesianBandits, "BayesianGLM"),
    'contextualbandits, LinTS, `sample_from="ci"`': _theirs(ContextualBandits, "LinTS", sample_from="ci"),
    "contextualbandits, LinUCB": _theirs(ContextualBandits, "LinUCB"),
    "at random": _ours(Uniform()),
}
PACKAGES = {
    "VW": "vowpalwabbit",
    "MABWiser": "mabwiser",
    "bayesianbandits": "bayesianbandits",
    "contextualbandits": "contextualbandits",
}
