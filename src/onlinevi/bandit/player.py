"""A bandit: it chooses an arm at each context, and learns from the reward of that arm alone, whenever it comes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from onlinevi import learners
from onlinevi.bandit.arms import BINARY, Arm, Arms, Disjoint, Key, is_name, plain_name
from onlinevi.bandit.chances import Law
from onlinevi.bandit.contexts import Context, Names
from onlinevi.bandit.log import Decision
from onlinevi.bandit.policies import Policy, Thompson
from onlinevi.bandit.waiting import Id, Pending, Wait, Waiting
from onlinevi.engine import Vector
from onlinevi.learners import CheckpointError, Described, Inputs, InputState, Learner, Storable, Stored

BINARY_MODEL = Disjoint(BINARY, Inputs())
"""An arm has a belief of its own; contexts may have any units, or no columns."""


class Choice(NamedTuple):
    """An arm that was chosen."""

    id: Id
    """What its reward is to be told with."""
    arm: Arm
    propensity: float
    """The probability by which it was chosen."""
    arms: tuple[Arm, ...]
    """Those it was chosen from."""
    probabilities: Vector
    """By which each of them was."""
    expected: Vector
    """What each was expected to bring."""


@dataclass(frozen=True)
class Play(Storable):
    """What is fixed about a bandit, and files hold: what learns, how it chooses, how long it waits."""

    model: Arms
    policy: Policy
    wait: Wait

    def describe(self, state: Bandit) -> Described:
        pending, keys = list(state._waiting), list(state._states)
        facts = {
            "arms": list(state.arms),
            "resting": list(state.resting),
            "keys": keys,
            "dim": state._dim,
            "names": list(state._names),
            "count": state.count,
            "tallies": [[arm, *tally] for arm, tally in state._tallies.items()],
            "settled": [list(one) for one in state._waiting.settled],
            "pending": [[one.number, one.id, one.arm, one.time, list(one.arms), len(one.rows)] for one in pending],
            "random": state._rng.bit_generator.state,
        }
        arrays = {
            name: np.concatenate([np.empty(0), *(getattr(one, name).ravel() for one in pending)])
            for name in ("probabilities", "expected", "rows")
        }
        parts: dict[str, Any] = {f"states/{place}": (self.model.learner, state._states[key]) for place, key in enumerate(keys)}
        if state._moments is not None and state._dim:  # of no columns there are none
            parts["inputs"] = self.model.inputs, state._moments
        return Described(facts, arrays, parts)

    def restore(self, stored: Stored) -> Bandit:
        facts = stored.facts
        bandit = Bandit([*facts["arms"], *facts["resting"]], self.model, policy=self.policy, wait=self.wait)
        for arm in facts["resting"]:
            bandit.leave(arm)
        bandit.count, bandit._dim, bandit._names = facts["count"], facts["dim"], tuple(facts["names"])
        bandit._rng.bit_generator.state = facts["random"]
        bandit._tallies = {arm: Tally(*tally) for arm, *tally in facts["tallies"]}
        if bandit._dim is not None:
            bandit._prior = self.model.init(bandit._dim)
            if self.model.inputs is not None and bandit._dim:
                bandit._moments = stored.part("inputs", self.model.inputs)
        for place, key in enumerate(facts["keys"]):
            bandit._states[key] = stored.part(f"states/{place}", self.model.learner)
        for id, became in facts["settled"]:
            bandit._waiting.remember(id, became)
        held = {name: np.empty(stored.length(name)) for name in ("probabilities", "expected", "rows")}
        for name, vector in held.items():
            stored.fill(name, vector)
        seen, rows_seen = 0, 0
        for number, id, arm, at, arms, rows in facts["pending"]:
            own = slice(seen, seen + len(arms))
            context = held["rows"][rows_seen : rows_seen + rows * bandit._dim].reshape(rows, bandit._dim)
            parts = held["probabilities"][own], held["expected"][own], context
            bandit._waiting.add(Pending(number, id, arm, at, tuple(arms), *parts))
            seen, rows_seen = seen + len(arms), rows_seen + context.size
        if (seen, rows_seen) != (len(held["probabilities"]), len(held["rows"])):
            raise CheckpointError("what waits for rewards is not as long as it says: take a backup")
        return bandit


class Tally(NamedTuple):
    """Of an arm: how often it was chosen, how many rewards were learned, and their sum."""

    chosen: int = 0
    rewarded: int = 0
    total: float = 0.0


class Bandit:
    """Chooses one of several arms at each context, and learns from the rewards of those that it chose.

    ``model`` learns the rewards: a learner, of which each arm has a state, or ``Shared(learner)``, where each arm has features
    of its own. Without one rewards are 0 or 1, and contexts rows of numbers of any unit. ``policy`` chooses; ``wait`` says
    what happens to decisions whose reward is late, or never comes. The same ``seed`` makes the same choices. ``log`` is called
    with each ``Decision`` that waits no more.

    >>> import numpy as np, onlinevi as ovi
    >>> bandit = ovi.bandit.Bandit(["red", "blue"], seed=1)
    >>> rng = np.random.default_rng(0)
    >>> for number in range(300):
    ...     x = rng.standard_normal(2)
    ...     choice = bandit.choose(x, id=f"visit {number}")
    ...     bandit.reward(choice.id, int((choice.arm == "red") == (x[0] > 0.0)))
    >>> bandit.choose([2.0, 0.0]).arm, bandit.choose([-2.0, 0.0]).arm, bandit.average_reward > 0.85
    ('red', 'blue', True)
    """

    def __init__(
        self,
        arms: Iterable[Arm],
        model: Learner[Any] | Arms = BINARY_MODEL,
        *,
        policy: Policy | None = None,
        wait: Wait | None = None,
        seed: int = 0,
        log: Callable[[Decision], object] | None = None,
    ) -> None:
        model = model if isinstance(model, Arms) else Disjoint(model)
        self.play = Play(model, Thompson() if policy is None else policy, Wait() if wait is None else wait)
        if not isinstance(self.play.policy, Policy):
            raise TypeError(f"policy={policy!r}: needs a policy, such as Thompson() or UpperBound()")
        if not isinstance(self.play.wait, Wait):
            raise TypeError(f"wait={wait!r}: needs a Wait, such as Wait(events=1000, default=0.0)")
        if self.play.wait.default is not None:
            model.label(self.play.wait.default)
        self.log = log
        self.count = 0
        """How many decisions it has made."""
        self._rng = np.random.Generator(np.random.PCG64(seed))
        self._waiting = Waiting(self.play.wait)
        self._states: dict[Key, Any] = {}
        self._prior: Any = None
        self._moments: InputState | None = None
        self._dim: int | None = None
        self._names: Names = ()
        self._tallies: dict[Arm, Tally] = {}
        self._active: dict[Arm, None] = {}
        for arm in arms:
            self.join(arm)
        if not self._active:
            raise ValueError("arms is empty: needs at least one to choose from")

    # --- the arms

    @property
    def arms(self) -> tuple[Arm, ...]:
        """Those to choose from."""
        return tuple(self._active)

    @property
    def resting(self) -> tuple[Arm, ...]:
        """Those that have left, whose state is kept."""
        return tuple(arm for arm in self._tallies if arm not in self._active)

    def join(self, arm: Arm) -> None:
        """A new arm, at the prior; or one that has left, with what it knew."""
        arm = plain_name(arm)
        if not is_name(arm):
            raise TypeError(f"arm={arm!r}: needs text, or a whole number")
        if arm in self._active:
            raise ValueError(f"arm={arm!r} is one of the arms already")
        self._active[arm] = None
        self._tallies.setdefault(arm, Tally())

    def leave(self, arm: Arm) -> None:
        """Choose it no more. Rewards that it still waits for are learned, and it may join again."""
        self._check_arm(arm)
        if len(self._active) == 1:
            raise ValueError(f"arm={arm!r} is the last one: something has to be chosen")
        del self._active[arm]

    def _check_arm(self, arm: Any) -> None:
        if arm not in self._active:
            raise LookupError(f"arm={arm!r} is none of the arms: {', '.join(map(repr, self._active))}")

    # --- the game

    def choose(
        self, context: Any, id: Id | None = None, *, among: Sequence[Arm] | None = None, now: float | None = None
    ) -> Choice:
        """Choose an arm. Its reward is told later, with this id; without one the number of the decision serves.

        ``among`` are the arms that may be chosen this time, all of them by default. ``now`` is the time in seconds, by the
        clock unless given.
        """
        id = self.count if id is None else plain_name(id)
        self._waiting.check_new(id)
        arms = self._among(among)
        context = self.play.model.context(context, arms, self._names)
        at = _clock(now)
        self.settle(at)
        moments, prior, law = self._believed(context, arms)
        self._expire(self.count, at)  # makes room; behind what may refuse the context
        probabilities = self.play.policy.probabilities(law, self._rng)
        arm = arms[_drawn(probabilities, self._rng.random())]
        expected = self.play.model.expected(law)
        for said in (probabilities, expected, context.rows):  # what is learned and logged later is what was said here
            said.setflags(write=False)
        self._dim, self._names, self._prior, self._moments = context.rows.shape[1], context.names, prior, moments
        pending = Pending(self.count, id, arm, at, arms, probabilities, expected, context.rows)
        self._waiting.add(pending)
        self._tally(arm, chosen=1)
        self.count += 1
        return Choice(id, arm, pending.propensity, arms, probabilities, expected)

    def reward(self, id: Id, value: Any, *, now: float | None = None) -> None:
        """Tell what a decision has earned; its arm learns. What is refused changes nothing, and may be told again."""
        self.settle(now)
        pending = self._waiting.at(plain_name(id))
        state = self._learned(pending, value)
        self._settle(pending, float(value), state, told=True)

    def probabilities(self, context: Any, *, among: Sequence[Arm] | None = None) -> dict[Arm, float]:
        """By which each arm would be chosen now. Changes nothing: as a policy it can be asked what it would have earned."""
        arms = self._among(among)
        _, _, law = self._believed(self.play.model.context(context, arms, self._names), arms)
        said = self.play.policy.probabilities(law, deepcopy(self._rng))
        return dict(zip(arms, said.tolist(), strict=True))

    def settle(self, now: float | None = None) -> None:
        """Settle what has waited long enough; ``choose`` and ``reward`` do so by themselves."""
        self._expire(self.count - 1, _clock(now))

    def _among(self, among: Sequence[Arm] | None) -> tuple[Arm, ...]:
        arms = self.arms if among is None else tuple(map(plain_name, among))
        for arm in arms:
            self._check_arm(arm)
        if len(set(arms)) < max(len(arms), 1):
            raise ValueError(f"among={list(arms)!r}: needs at least one arm, each once")
        return arms

    def _believed(self, context: Context, arms: Sequence[Arm]) -> tuple[InputState | None, Any, Law]:
        """The moments with this context, the state before the first event, and the law of the scores."""
        model, dim = self.play.model, context.rows.shape[1]
        if self._dim is not None and dim != self._dim:
            raise ValueError(f"the context has {dim} values an arm, those before had {self._dim}")
        prior = model.init(dim) if self._dim is None else self._prior
        moments, rows = model.seen(self._moments, context.rows)
        states = {model.key(arm): prior for arm in arms} | self._states
        return moments, prior, model.law(states, rows, arms)

    def _expire(self, number: int, now: float) -> None:
        for pending in self._waiting.overdue(number, now):
            default = self.play.wait.default
            try:
                state = None if default is None else self._learned(pending, default)
            except ValueError:  # of its row: it must not be in the way of all later ones
                default = state = None
            self._settle(pending, default, state, told=False)

    def _learned(self, pending: Pending, value: Any) -> Any:
        """The state of its arm after a reward."""
        model = self.play.model
        row = model.prepared(self._moments, pending.row[np.newaxis])[0]
        return model.learned(self._states.get(model.key(pending.arm), self._prior), row, value)

    def _settle(self, pending: Pending, value: float | None, state: Any, *, told: bool) -> None:
        """Write it down first: where that fails, nothing has changed."""
        one = pending
        if self.log is not None:
            context = self.play.model.shown(Context(one.rows, self._names), one.arms)
            said = one.arms, one.probabilities, one.expected, context
            self.log(Decision(one.number, one.id, one.arm, one.propensity, value, told, *said))
        if value is not None:
            self._states[self.play.model.key(one.arm)] = state
            self._tally(one.arm, rewarded=1, total=value)
        became = "has its reward" if told else f"has waited too long, and {value!r} was taken for its reward"
        self._waiting.settle(one.id, "has waited too long, and learned nothing" if value is None else became)

    def _tally(self, arm: Arm, chosen: int = 0, rewarded: int = 0, total: float = 0.0) -> None:
        own = self._tallies[arm]
        self._tallies[arm] = Tally(own.chosen + chosen, own.rewarded + rewarded, own.total + total)

    # --- what is known

    @property
    def waiting(self) -> tuple[Id, ...]:
        """The ids of the decisions that wait for a reward, the oldest first."""
        return tuple(one.id for one in self._waiting)

    @property
    def tallies(self) -> dict[Arm, Tally]:
        """Of each arm, those that rest among them: how often it was chosen, and what it has earned."""
        return dict(self._tallies)

    @property
    def average_reward(self) -> float:
        """Of the rewards so far, those by default among them; NaN before the first."""
        rewarded = sum(tally.rewarded for tally in self._tallies.values())
        return sum(tally.total for tally in self._tallies.values()) / rewarded if rewarded else float("nan")

    def state_of(self, arm: Arm) -> Any:
        """What the learner knows of an arm; of all, where they share weights. None before the first reward."""
        return self._states.get(self.play.model.key(arm))

    def __repr__(self) -> str:
        policy = type(self.play.policy).__name__
        return (
            f"Bandit(arms={len(self._active)}, policy={policy}, count={self.count}, average_reward={self.average_reward:.4g})"
        )

    # --- files

    def save(self, path: Any, *, extra: Any = None) -> None:
        """Write it to one file, what waits among it: it goes on later with the same bits."""
        learners.save(path, self.play, self, extra=extra)

    @classmethod
    def load(cls, path: Any, *, log: Callable[[Decision], object] | None = None) -> Self:
        """Read what ``save`` wrote."""
        saved = learners.load(path)
        if not isinstance(saved.learner, Play):
            raise CheckpointError(f"{Path(path)}: it holds a {type(saved.learner).__name__}, no bandit; ovi.load reads it")
        bandit: Self = saved.state
        bandit.log = log
        return bandit


def _clock(now: float | None) -> float:
    """The time in seconds."""
    at = time.time() if now is None else float(now)
    if not math.isfinite(at):
        raise ValueError(f"now={now!r}: needs a time in seconds")
    return at


def _drawn(probabilities: Vector, share: float) -> int:
    """The place where this share of the way through the probabilities lies, never one that has none."""
    sums = np.cumsum(probabilities)
    return min(int(np.searchsorted(sums, share * sums[-1], side="right")), int(np.flatnonzero(probabilities)[-1]))
