"""What another policy would have earned on the decisions of a log: an estimate, and an interval that holds at all times."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from onlinevi.bandit.arms import Arm, is_name
from onlinevi.bandit.evidence import LARGEST, Bet, lower_bounds
from onlinevi.bandit.log import Decision, decisions_of
from onlinevi.engine import Vector

Says: TypeAlias = "Arm | float | Mapping[Arm, float] | Sequence[float] | Vector"
Asked: TypeAlias = "Arm | Callable[[Decision], Says] | None"
"""A policy: an arm, or what says of a decision an arm, the probabilities of arms, or that of the arm which was chosen."""
REACHES = 1.0, 4.0, 16.0
"""By how much at most an expectation corrects a term: more takes more variance away, and costs more of the bound."""
TOLERANCE = 1e-6
"""By how much probabilities may fail to add up to 1."""


class Interval(NamedTuple):
    """From lower to upper."""

    lower: float
    upper: float


@dataclass(frozen=True)
class Value:
    """What a policy would have earned a decision, on average over those of the log."""

    estimate: float
    """The best guess; where there are missing rewards, as if these were like the others."""
    lower: float
    upper: float
    """Between which it lies, whatever the contexts and rewards, with probability ``confidence`` at all times at once.

    If lower is above upper, the arms can hardly have been drawn by the probabilities that were logged.
    """
    gain: Interval
    """By how much it is more than what the log's own policy was to earn; an interval by itself."""
    earned: float
    """The average of the rewards in the log."""
    confidence: float
    count: int
    """Decisions that were used."""
    missing: int
    """Those among them that have no reward: the interval holds whatever it was."""
    left_out: int
    """Decisions behind the first number that is not in the log: what is still waited for would be chosen by its outcome."""
    effective: float
    """As many decisions of the policy's own would tell as much: (Σw)²/Σw² of its importance weights."""
    covered: float
    """Which part of the policy's choices the log could have made; NaN where the log has no probabilities of all arms."""

    def __str__(self) -> str:
        said = f"{self.estimate:.4g}, between {self.lower:.4g} and {self.upper:.4g} with {self.confidence:.0%} confidence"
        if self.lower > self.upper:
            said += " (an empty interval: the log's probabilities can hardly be true)"
        return f"{said}; {self.count:,} decisions, worth {self.effective:,.0f} of its own, earned {self.earned:.4g}"


def value(log: Any, policy: Asked = None, *, bounds: tuple[float, float] = (0.0, 1.0), confidence: float = 0.95) -> Value:
    """What a policy would have earned on the decisions of a log, by what was chosen with which probability.

    ``log`` is the decisions of a ``Bandit``, or a file or a table of such (``read_log``). ``policy`` is an arm; or a function
    of a ``Decision`` that says an arm, probabilities of arms (a mapping, or in the order of ``decision.arms``), or the
    probability of the arm that was chosen alone; None is the log's own policy. It may have learned from earlier decisions,
    from none of those it is asked about. Rewards lie within ``bounds``.

    The interval holds for the average over just these decisions, and for its mean if they come from one law, at all times at
    once: look as often as you like, stop when you like. It assumes that arms were drawn by the probabilities that were
    logged, and nothing of contexts and rewards; docs/bandits.md has the proof.

    >>> from onlinevi.bandit import Bandit, Uniform, value
    >>> rows = []
    >>> bandit = Bandit(["red", "blue"], policy=Uniform(), log=rows.append)
    >>> for number in range(400):
    ...     choice = bandit.choose([number % 2])
    ...     bandit.reward(choice.id, int((choice.arm == "red") == (number % 2 == 0)))
    >>> found = value(rows, lambda decision: "red" if decision.context[0] == 0.0 else "blue")
    >>> round(found.estimate, 1), found.lower > 0.6, value(rows, "red").upper < 0.8
    (1.0, True, True)
    """
    low, high = _checked_bounds(bounds)
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence={confidence!r}: needs a probability between 0 and 1; try 0.95")
    decisions, left_out = _unbroken(decisions_of(log))
    table = Table.of(decisions, policy, low, high)
    alpha, times = 0.5 * (1.0 - confidence), [len(decisions)]

    def bound(side: Side, *, gain: bool) -> float:
        return float(lower_bounds(side.bets(gain=gain), alpha, times)[0]) / len(decisions)

    worst, best = table.side(), table.side(mirrored=True)
    lower, upper = (min(max(end, 0.0), 1.0) for end in (bound(worst, gain=False), 1.0 - bound(best, gain=False)))
    gain = Interval(max(bound(worst, gain=True), -1.0) * (high - low), min(-bound(best, gain=True), 1.0) * (high - low))
    told = table.reward[~table.missing]
    square = float(np.square(table.weight).sum())
    return Value(
        estimate=low + (high - low) * min(max(table.estimate(), lower), upper),
        lower=low + (high - low) * lower,
        upper=low + (high - low) * upper,
        gain=gain,
        earned=low + (high - low) * float(told.mean()) if len(told) else math.nan,
        confidence=confidence,
        count=len(decisions),
        missing=int(table.missing.sum()),
        left_out=left_out,
        effective=float(table.weight.sum()) ** 2 / square if square else 0.0,
        covered=table.covered,
    )


def _checked_bounds(bounds: Any) -> tuple[float, float]:
    try:
        low, high = map(float, bounds)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (math.isfinite(high - low) and low < high):
        raise ValueError(f"bounds={bounds!r}: needs the least and the largest reward there can be, such as (0.0, 1.0)")
    return low, high


def _unbroken(log: Iterable[Decision]) -> tuple[list[Decision], int]:
    """The decisions by their numbers, up to the first number that is not there; and how many are behind it.

    What is settled late is settled in an order that its outcome may have a part in.
    """
    decisions = sorted(log, key=lambda one: one.number)
    if not decisions:
        raise ValueError("the log is empty: needs at least one decision")
    for place, (one, after) in enumerate(pairwise(decisions), start=1):
        if after.number == one.number:
            raise ValueError(f"the log has the decision {one.number} twice: needs each once")
        if after.number > one.number + 1:
            return decisions[:place], len(decisions) - place
    return decisions, 0


@dataclass
class Table:
    """A log as arrays: a row a decision, rewards between 0 and 1."""

    reward: Vector
    """0 where there is none."""
    missing: Any
    place: Any
    """Of the arm that was chosen, among the columns of what follows."""
    logged: Vector
    """The probability of each arm; 0 behind the last. Where only that of the chosen one is known, it is the one column."""
    asked: Vector
    """What the policy gives to each."""
    expected: Vector
    """The reward that was expected of each, or the average of those before it."""
    complete: bool
    """Whether all probabilities are known."""

    @classmethod
    def of(cls, decisions: Sequence[Decision], policy: Asked, low: float, high: float) -> Table:
        for one in decisions:
            _check(one)
        said = list(map(_asking(policy, decisions), decisions))
        complete = all(len(one.probabilities) and not each.alone for one, each in zip(decisions, said, strict=True))
        width = max(len(one.arms) for one in decisions) if complete else 1
        missing = np.array([one.reward is None for one in decisions])
        reward = np.array([low if one.reward is None else one.reward for one in decisions])
        reward = (reward - low) / (high - low)
        for one, share in zip(decisions, reward.tolist(), strict=True):
            if not 0.0 <= share <= 1.0:
                raise ValueError(f"decision {one.number} has the reward {one.reward!r}, outside of bounds=({low}, {high})")
        place, logged, asked = np.zeros(len(decisions), dtype=int), *np.zeros((2, len(decisions), width))
        known = np.cumsum(~missing) - ~missing
        average = np.divide(np.cumsum(reward) - reward, known, out=np.full(len(reward), 0.5), where=known > 0)
        expected = np.repeat(average[:, np.newaxis], width, axis=1)
        for row, (one, each) in enumerate(zip(decisions, said, strict=True)):
            chosen = one.arms.index(one.arm)
            if complete:
                place[row] = chosen
                logged[row, : len(one.arms)], asked[row, : len(one.arms)] = one.probabilities, each.chances
                if len(one.expected):
                    expected[row, : len(one.arms)] = (one.expected - low) / (high - low)
            else:
                logged[row], asked[row] = one.propensity, each.chances[chosen]
        # A learner's numbers may be outside of the bounds, and before its first reward anything.
        expected = np.clip(np.where(np.isfinite(expected), expected, 0.5), 0.0, 1.0)
        return cls(reward, missing, place, logged, asked, expected, complete)

    @property
    def rows(self) -> Any:
        return np.arange(len(self.reward))

    @property
    def weight(self) -> Vector:
        """By how much more often the policy chooses what was chosen."""
        return np.asarray(self.ratios[self.rows, self.place])

    @property
    def ratios(self) -> Vector:
        """The same of each arm, 0 of those that could not be chosen."""
        with np.errstate(over="ignore"):
            found = np.divide(self.asked, self.logged, out=np.zeros_like(self.asked), where=self.logged > 0.0)
        return np.minimum(found, LARGEST)

    @property
    def covered(self) -> float:
        return float((self.asked * (self.logged > 0.0)).sum(axis=1).mean()) if self.complete else math.nan

    def side(self, *, mirrored: bool = False) -> Side:
        """What is bet on for a lower bound; mirrored, by what is short of the largest reward, for an upper one."""
        reward, expected = (1.0 - self.reward, 1.0 - self.expected) if mirrored else (self.reward, self.expected)
        return Side(self, np.where(self.missing, 0.0, reward), expected)

    def estimate(self) -> float:
        """Doubly robust where all probabilities are known, else the average by importance; NaN where nothing tells."""
        weight, known = self.weight, ~self.missing
        total = float(weight[known].sum())
        average = float(weight[known] @ self.reward[known]) / total if total > 0.0 else math.nan
        if not self.complete:
            return average
        reward = np.where(known, self.reward, 0.5 if math.isnan(average) else average)
        told = (self.asked * self.expected * (self.logged > 0.0)).sum(axis=1)
        return float((weight * (reward - self.expected[self.rows, self.place]) + told).mean())


@dataclass
class Side:
    """Rewards from one end."""

    table: Table
    reward: Vector
    """0 where it is missing: nothing is lost that is not there."""
    expected: Vector

    def bets(self, *, gain: bool) -> list[Bet]:
        """Without expectations, and where all probabilities are known with them, cut off at each reach.

        For the gain what was earned is taken from each term.
        """
        table, weight = self.table, self.table.weight
        own = np.where(table.missing & (weight < 1.0), 1.0, self.reward) if gain else np.zeros(len(weight))
        paid = weight * np.where(table.missing & gain, own, self.reward)
        guess = 0.0 if gain else 0.5
        bets = [Bet(paid - own, float(gain), guess)]
        if not table.complete:
            return bets
        for reach in REACHES:
            cut = np.minimum(table.ratios * self.expected, reach)
            if gain:
                cut = cut - self.expected
            known = (table.logged * cut).sum(axis=1)
            bets.append(Bet(paid - own - cut[table.rows, table.place] + known, reach + gain, guess))
        return bets


def _check(one: Decision) -> None:
    """Refuse a decision by which nothing can be weighed."""
    if not 0.0 < one.propensity <= 1.0 + TOLERANCE:
        raise ValueError(f"decision {one.number} has the propensity {one.propensity!r}: needs a probability above 0")
    if one.arm not in one.arms:
        raise ValueError(f"decision {one.number} chose {one.arm!r}, which is none of its arms")
    chances = np.asarray(one.probabilities, dtype=float)
    if len(chances) and not (chances.min() >= 0.0 and abs(chances.sum() - 1.0) <= TOLERANCE):
        raise ValueError(f"decision {one.number} has the probabilities {chances.tolist()}: need to be ≥ 0 and to add up to 1")
    if len(chances) and not math.isclose(chances[one.arms.index(one.arm)], one.propensity, rel_tol=TOLERANCE):
        raise ValueError(f"decision {one.number} has the propensity {one.propensity}, its probabilities say another")


class _Said(NamedTuple):
    """What a policy says of a decision."""

    chances: Vector
    """The probability of each arm."""
    alone: bool = False
    """Whether that of the chosen arm is all that was said; the others are 0 here."""


def _asking(policy: Asked, decisions: Sequence[Decision]) -> Callable[[Decision], _Said]:
    """The policy as what is asked about a decision."""
    if policy is None:
        return lambda one: _Said(one.probabilities) if len(one.probabilities) else _Said(_only(one.arm, one) * one.propensity)
    if callable(policy):
        return lambda one: _said(policy(one), one)
    if not is_name(policy):
        raise TypeError(f"policy={policy!r}: needs an arm, or a function of a decision")
    if not any(policy in one.arms for one in decisions):
        raise ValueError(f"policy={policy!r} is none of the arms of the log")
    return lambda one: _Said(_only(policy, one))


def _only(arm: Any, one: Decision) -> Vector:
    return np.array([float(arm == other) for other in one.arms])


def _said(said: Any, one: Decision) -> _Said:
    """What a policy has said of a decision, if it means something."""
    if isinstance(said, np.integer | np.str_):
        said = said.item()
    if is_name(said):
        if len(one.probabilities) and said not in one.arms:
            raise ValueError(f"the policy chose {said!r} for decision {one.number}, whose arms are {list(one.arms)}")
        return _Said(_only(said, one))
    alone, partly = np.ndim(said) == 0 and not isinstance(said, Mapping), not len(one.probabilities)
    try:
        if isinstance(said, Mapping):
            chances = np.array([float(said.get(arm, 0.0)) for arm in one.arms])
        else:
            chances = _only(one.arm, one) * float(said) if alone else np.array(said, dtype=float)
    except (TypeError, ValueError):
        chances = np.empty(0)
    total = float(chances.sum())
    adds_up = total <= 1.0 + TOLERANCE and (alone or partly or total >= 1.0 - TOLERANCE)
    if chances.shape != (len(one.arms),) or not ((chances >= 0.0).all() and adds_up):
        raise ValueError(
            f"the policy said {said!r} for decision {one.number}: needs one of its arms {list(one.arms)}, a probability for "
            "each that add up to 1, or that of the arm which was chosen"
        )
    return _Said(chances, alone)
