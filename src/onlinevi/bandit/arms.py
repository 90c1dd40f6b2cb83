"""What is learned of the arms: a belief for each, or one for all of them, whose rows tell the arms apart."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from onlinevi.bandit.chances import Law
from onlinevi.bandit.contexts import Context, Names, row_of, rows_of
from onlinevi.bandit.joint import root_of
from onlinevi.beliefs import FullCovariance
from onlinevi.engine import Vector
from onlinevi.learners import BadRow, Inputs, InputState, Learner, Linear, Storable, predict_each
from onlinevi.losses import Logistic
from onlinevi.rules import Implicit

Arm: TypeAlias = str | int
Key: TypeAlias = Arm | None
"""Whose state it is: an arm's, or None for that of all."""

BINARY = Linear(Logistic(), Implicit(), FullCovariance(box=None), average=False)
"""Learns rewards of 0 and 1."""


@dataclass(frozen=True)
class Arms(Storable, ABC):
    """A learner of rewards, and which of its states answers for which arm.

    ``inputs`` brings contexts to one scale by the moments of all contexts so far, whether they have a reward or not. None
    gives them to the learner as they are, which may be a ``Prepare`` and then sees those that have a reward.
    """

    learner: Learner[Any]
    inputs: Inputs | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.learner, Learner):
            raise TypeError(f"learner={self.learner!r}: needs a learner, such as ovi.Linear(ovi.Logistic(), ovi.Implicit())")
        if self.learner.several:
            raise TypeError(f"{type(self.learner).__name__} tells several classes apart: a reward is one number, or 0 or 1")
        if not isinstance(self.inputs, Inputs | None):
            raise TypeError(f"inputs={self.inputs!r}: needs ovi.Inputs(), or None for contexts as they are")
        if self.inputs is not None and self.inputs.fixed:
            raise ValueError("inputs with fixed=True: moments of contexts come with the contexts; leave fixed out")

    @property
    def binary(self) -> bool:
        """Whether a reward is 0 or 1."""
        return self.learner.loss.target == "classes"

    def label(self, reward: Any) -> float:
        """A reward as the loss takes it."""
        try:
            value = float(reward)
        except (TypeError, ValueError):
            value = np.nan
        if self.binary and value not in (0.0, 1.0):
            raise ValueError(f"reward={reward!r}: needs 0 or 1, as {type(self.learner.loss).__name__} has it")
        if not np.isfinite(value):
            raise ValueError(f"reward={reward!r}: needs a finite number")
        return 2.0 * value - 1.0 if self.binary else value

    def learned(self, state: Any, row: Vector, reward: Any) -> Any:
        """The state after a reward; refused where the learner takes it not."""
        label = self.label(reward)
        try:
            return self.learner.update(state, row, label)[0]
        except BadRow as bad:
            raise ValueError(f"reward={reward!r}: {bad.reason}") from bad

    def init(self, dim: int) -> Any:
        """The state before the first reward, for contexts of so many columns."""
        return self.learner.init(dim if self.inputs is None else self.inputs.dim_out(dim))

    def prepared(self, moments: InputState | None, rows: Vector) -> Vector:
        """Rows as the learner has them now; nothing changes."""
        return rows if self.inputs is None or moments is None else np.asarray(self.inputs.apply(moments, rows))

    def seen(self, moments: InputState | None, rows: Vector) -> tuple[InputState | None, Vector]:
        """The moments with the rows of one more context, and the rows as the learner has them."""
        if self.inputs is None:
            return None, rows
        before = InputState.start(rows.shape[1]) if moments is None else moments
        after, prepared = self.inputs.update_many(before, rows)
        return after, prepared if len(rows) == 1 else self.prepared(after, rows)  # rows of one context, by the same moments

    def expected(self, law: Law) -> Vector:
        """What each arm is expected to bring: the mean reward, a probability where it is 0 or 1."""
        loss = self.learner.loss
        if self.binary:
            return np.asarray(loss.probability_of_score(loss.score(law.mean, law.std), law.std), dtype=float)
        return np.asarray(loss.label_law(law.mean, 0.0, np.square(law.std)).mean, dtype=float)

    @abstractmethod
    def key(self, arm: Arm) -> Key:
        """Which state answers for an arm."""

    @abstractmethod
    def context(self, given: Any, arms: Sequence[Arm], names: Names) -> Context:
        """A context as a matrix of numbers: a row for all arms, or one for each."""

    @abstractmethod
    def shown(self, context: Context, arms: Sequence[Arm]) -> Any:
        """A context as logs have it: the row, or a mapping from arms to rows."""

    @abstractmethod
    def law(self, states: Mapping[Key, Any], rows: Vector, arms: Sequence[Arm]) -> Law:
        """What is believed of the scores of these arms at prepared rows."""


@dataclass(frozen=True)
class Disjoint(Arms):
    """A state of the learner for each arm: a context is one row, the same for all arms, and arms learn apart."""

    def key(self, arm: Arm) -> Key:
        return arm

    def context(self, given: Any, arms: Sequence[Arm], names: Names) -> Context:
        found = row_of(given, names)
        if found.rows.ndim != 1:
            raise ValueError(
                f"the context has the shape {found.rows.shape}: needs one row of numbers, which all arms see; where each arm "
                "has a row of its own, Shared(learner)"
            )
        return found._replace(rows=found.rows[np.newaxis])

    def shown(self, context: Context, arms: Sequence[Arm]) -> Any:
        return context.shown(0)

    def law(self, states: Mapping[Key, Any], rows: Vector, arms: Sequence[Arm]) -> Law:
        return Law(*predict_each(self.learner, [states[arm] for arm in arms], rows), columns=rows.shape[1])


@dataclass(frozen=True)
class Shared(Arms):
    """One state for all arms: a context has a row for each arm, its features, and what is learned of one tells of the others.

    The context is a matrix or a table in the order of the arms, or a mapping from arms to rows.
    """

    def key(self, arm: Arm) -> Key:
        return None

    def context(self, given: Any, arms: Sequence[Arm], names: Names) -> Context:
        found = rows_of(given, arms, names)
        if found.rows.ndim != 2 or len(found.rows) != len(arms):
            raise ValueError(
                f"the context has the shape {found.rows.shape}: needs a row of features for each of {len(arms)} arms"
            )
        return found

    def shown(self, context: Context, arms: Sequence[Arm]) -> Any:
        return {arm: context.shown(place) for place, arm in enumerate(arms)}

    def law(self, states: Mapping[Key, Any], rows: Vector, arms: Sequence[Arm]) -> Law:
        mean, std = self.learner.predict(states[None], rows)
        return Law(mean, std, root_of(states[None], rows, std), rows.shape[1])


def is_name(given: object) -> bool:
    """Whether it can stand for an arm or a decision, in files too; True and False are no numbers here."""
    return type(given) in (str, int)


def plain_name(given: Any) -> Any:
    """A name as Python has it, where numpy or pandas have one."""
    return given.item() if isinstance(given, np.integer | np.str_) else given
