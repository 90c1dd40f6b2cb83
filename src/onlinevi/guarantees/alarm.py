"""An alarm that rings when large losses have become more frequent, with false alarms ≤ δ over a stream without end.

Let B_t say whether the loss of event t is above a level that was fixed before, and μ_t = P(B_t = 1 | all before t). The null
is about averages of μ alone: over the stretch behind a moment it is above that over the stretch before it by at most a
tolerance. Nothing is assumed of the rows or of the learner, which may learn, forget, and depend on all that came.
docs/alarms.md has the proof, and what it costs.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from itertools import compress
from typing import Any, ClassVar, NamedTuple

import numpy as np

from onlinevi.engine import Vector
from onlinevi.guarantees.risk import check_delta

BLOCK = 50
"""Events between two looks."""
FIRST = 200
"""Events before the first test; each later one begins when there are twice as many."""
LIFE = 4
"""A test ends when there are so many times as many events as when it began: two are at work at a time."""
MOST_LOSSES = 1000
"""The level of a test is taken of at most so many losses."""
AGES = 3
"""Starts are kept at ages that grow by about a factor 1 + 2^−3: an older one is dropped, which only loses evidence."""
LOOK_CLOSER = 3.5
"""Evidence is computed where so many stds more large losses came than the tolerance allows, first of four blocks, then of the
stretch: elsewhere there is little of it."""
DOWN, UP = -(0.5 ** np.arange(11.0)), 2.0 ** np.arange(-2.0, 3.0)
"""Changes of log-odds that are bet on: of the stretch before, downwards, beside no bet at all; of that behind, upwards."""
CELLS = 96
"""Into how many cells what the share before may have been is cut; in each, the evidence is bounded from below."""


class Rang(NamedTuple):
    """That an alarm has rung, and why."""

    at: int
    """Behind how many events it rang."""
    since: int
    """Behind how many of them large losses became more frequent, as far as the evidence tells."""
    level: float
    """What was a large loss."""
    before: float
    """The share of large losses before."""
    after: float
    """And since."""
    evidence: float
    """By how much the evidence exceeds what was needed, as a factor; 1 or more."""


@dataclass(frozen=True)
class Alarm:
    """Rings when losses above their (1 − share) quantile come more often than before, by more than ``tolerance``.

    As long as they do not, it never rings, over a stream without end, with probability 1 − ``delta``: whatever the learner and
    the rows. After it has rung it begins anew, with less of delta for each: all false alarms together have at most delta.

    >>> import numpy as np, onlinevi as ovi
    >>> losses = np.random.default_rng(0).exponential(np.repeat([1.0, 3.0], 3000))
    >>> [rang] = ovi.Alarm(delta=0.01).over(losses)
    >>> 2900 <= rang.since <= 3100, 3050 <= rang.at <= 3300
    (True, True)
    """

    delta: float = 0.01
    tolerance: float = 0.02
    share: float = 0.2

    block: ClassVar[int] = BLOCK
    """It rings behind a multiple of so many events."""

    def __post_init__(self) -> None:
        check_delta(self.delta)
        if not 0.0 <= self.tolerance < 1.0:
            raise ValueError(f"tolerance={self.tolerance!r}: needs a share of the rows from 0 to below 1; try 0.02")
        if not 0.0 < self.share < 1.0:
            raise ValueError(f"share={self.share!r}: needs a share of the rows between 0 and 1; try 0.2")

    def init(self) -> AlarmState:
        """Before the first event."""
        return AlarmState()

    def over(self, losses: Any) -> list[Rang]:
        """When it rings on a whole stream of losses."""
        return self.update_many(self.init(), losses)[1]

    def update_many(self, state: AlarmState, losses: Any) -> tuple[AlarmState, list[Rang]]:
        """The state behind further losses, and when it rang among them; any split gives the same."""
        every = np.concatenate([state.waiting, np.asarray(losses, dtype=float)])
        if not np.isfinite(every).all():
            raise ValueError("losses hold a value that is not finite: leave such events out")
        whole = len(every) - len(every) % BLOCK
        watch, rang = _Watch(self, state), []
        start = 0
        while start < whole:
            ends = watch.learn(every[start:whole])
            start += ends
            if watch.rang is not None:
                rang.append(watch.rang)
                watch = _Watch(self, AlarmState(watch.count, watch.count, watch.number + 1))
        return watch.state(every[whole:]), rang

    def spent(self, number: int) -> float:
        """The chance of a false alarm that the one after ``number`` others may have: δ·6/(π²·(number + 1)²)."""
        return self.delta * 6.0 / (math.pi * (number + 1)) ** 2


@dataclass(frozen=True, eq=False)
class AlarmState:
    """What an alarm knows: how many events there were, and the tests at work since it began, or rang last."""

    count: int = 0
    """Events looked at."""
    begun: int = 0
    """How many there were when it began, or rang last."""
    number: int = 0
    """How often it has rung."""
    recent: Vector = field(default_factory=lambda: np.empty(0))
    """The last losses since then."""
    tests: tuple[Counts, ...] = ()
    waiting: Vector = field(default_factory=lambda: np.empty(0))
    """Losses of a block that is not full yet."""

    def to_json(self) -> dict[str, Any]:
        """JSON values, as they are."""
        known = {"count": self.count, "begun": self.begun, "number": self.number}
        tests = [asdict(one) for one in self.tests]
        return known | {"recent": self.recent.tolist(), "tests": tests, "waiting": self.waiting.tolist()}

    @staticmethod
    def from_json(saved: dict[str, Any]) -> AlarmState:
        """The state that ``to_json`` gave."""
        tests = tuple(Counts(**one) for one in saved["tests"])
        recent, waiting = (np.array(saved[name], dtype=float) for name in ("recent", "waiting"))
        return AlarmState(saved["count"], saved["begun"], saved["number"], recent, tests, waiting)


@dataclass(eq=False)
class Counts:
    """One test: how many large losses there were behind its begin, up to each start that is kept, and up to now."""

    season: int
    level: float
    starts: list[int] = field(default_factory=list)
    """Blocks since the test began."""
    sums: list[int] = field(default_factory=list)
    total: int = 0
    excess: float = 0.0
    """By how many large losses the stretch that has most of them exceeds what the tolerance allows."""

    @property
    def begin(self) -> int:
        """Events since the alarm began, or rang last, at which the test begins."""
        return FIRST << self.season

    def copy(self) -> Counts:
        return replace(self, starts=self.starts.copy(), sums=self.sums.copy())

    def add(self, now: int, large: int, tolerance: float) -> bool:
        """Take block ``now``, and say whether it is worth looking for evidence; before it a stretch may start."""
        share = (self.total + 0.5) / ((now - 1) * BLOCK + 1.0)
        self.starts.append(now - 1)
        self.sums.append(self.total)
        self.total += large
        self.excess = max(self.excess + large - BLOCK * (share + tolerance), 0.0)
        if now % 64 == 0:
            kept = [_is_kept(now - start, start) for start in self.starts]
            self.starts, self.sums = list(compress(self.starts, kept)), list(compress(self.sums, kept))
        return self.excess > LOOK_CLOSER * math.sqrt(4.0 * BLOCK * share * (1.0 - share))


def _is_kept(age: int, start: int) -> bool:
    """Of each age there are as many starts as of twice that age, at even distances."""
    return start % (1 << max(age.bit_length() - 1 - AGES, 0)) == 0


def _level(losses: Vector, share: float) -> float:
    """The loss that this share of them is above, by and large.

    Of a few values over and over, as of guesses that are wrong or not, a quantile may be the largest, with nothing above it:
    then the next lower one is the level.
    """
    level = np.quantile(losses, 1.0 - share, method="inverted_cdf")
    lower = losses[losses < level]
    few = np.mean(losses > level) < 0.5 * share
    return float(lower.max() if few and len(lower) else level)


class _Watch:
    """The work of one alarm until it rings."""

    def __init__(self, alarm: Alarm, state: AlarmState) -> None:
        self.alarm = alarm
        self.count, self.begun, self.number = state.count, state.begun, state.number
        self._recent, self._tests = state.recent, [one.copy() for one in state.tests]
        self.rang: Rang | None = None

    def state(self, waiting: Vector) -> AlarmState:
        return AlarmState(self.count, self.begun, self.number, self._recent, tuple(self._tests), waiting)

    def learn(self, losses: Vector) -> int:
        """Take whole blocks of losses until it rings, or the next test begins: how many events that were."""
        age = self.count - self.begun
        turn = FIRST
        while turn <= age:
            turn *= 2
        blocks = losses[: turn - age].reshape(-1, BLOCK)
        done = self._first_ring(blocks)
        taken = blocks[:done].ravel()
        self._recent = np.concatenate([self._recent, taken])[-MOST_LOSSES:]
        self.count += len(taken)
        if self.rang is None and age + len(taken) == turn:
            self._next_test(turn)
        return len(taken)

    def _next_test(self, begin: int) -> None:
        """Half of what has come so far, or the last losses of it, say what a large loss is."""
        season = (begin // FIRST).bit_length() - 1
        self._tests = [one for one in self._tests if begin < LIFE * one.begin]
        self._tests.append(Counts(season, _level(self._recent[-(begin // 2) :], self.alarm.share)))

    def _first_ring(self, blocks: Vector) -> int:
        """The blocks up to the one behind which it rings, or all."""
        large = [(blocks > one.level).sum(axis=1).tolist() for one in self._tests]
        for place in range(len(blocks)):
            age = self.count - self.begun + (place + 1) * BLOCK
            for one, counts in zip(self._tests, large, strict=True):
                now = (age - one.begin) // BLOCK
                if one.add(now, counts[place], self.alarm.tolerance) and self.rang is None:
                    self.rang = self._look(one, now, self.count + (place + 1) * BLOCK)
            if self.rang is not None:
                return place + 1
        return len(blocks)

    def _look(self, test: Counts, now: int, at: int) -> Rang | None:
        """That it rings, where the evidence is enough."""
        starts, sums = np.array(test.starts), np.array(test.sums)
        rows, came = (now - starts) * BLOCK, test.total - sums
        share = (sums + 0.5) / (starts * BLOCK + 1.0)
        high = came - rows * (share + self.alarm.tolerance) > LOOK_CLOSER * np.sqrt(rows * share * (1.0 - share))
        if not high.any():
            return None
        starts, sums, rows, came = starts[high], sums[high], rows[high], came[high]
        evidence = log_evidence(sums, starts * BLOCK, came, rows, self.alarm.tolerance)
        # Bets on all starts of a test have the same weight, and tests weights 1/((s + 1)(s + 2)), which add up to 1.
        possible = (LIFE - 1) * test.begin // BLOCK
        needed = (
            -math.log(self.alarm.spent(self.number)) + math.log((test.season + 1) * (test.season + 2)) + math.log(possible)
        )
        most = float(evidence.max())
        together = most + math.log(float(np.exp(evidence - most).sum()))
        if together < needed:
            return None
        best = int(evidence.argmax())
        before = float(sums[best] / max(int(starts[best]) * BLOCK, 1))
        after = float(came[best] / rows[best])
        return Rang(at, at - int(rows[best]), test.level, before, after, math.exp(min(together - needed, 700.0)))


def log_evidence(before: Any, rows_before: Any, after: Any, rows_after: Any, tolerance: float) -> Vector:
    """The logarithm of the evidence that the share of large losses has grown by more than a tolerance.

    Whatever the share m before was: e-processes against "it was at least m" and "it is at most m + tolerance" are multiplied,
    and the least product over m is taken. Both are monotone in m, so that one factor at each end bounds it in between.
    """
    ks, ns, kt, nt = (np.asarray(part, dtype=float)[:, None, None] for part in (before, rows_before, after, rows_after))
    points = _points((ks / np.maximum(ns, 1.0))[:, 0, 0], (kt / nt)[:, 0, 0])[:, :, None]
    old = ks * DOWN - ns * np.log1p(points * np.expm1(DOWN))
    new = kt * UP - nt * np.log1p(np.minimum(points + tolerance, 1.0) * np.expm1(UP))
    against = np.logaddexp(math.log(0.5), _log_mean(old) + math.log(0.5))
    risen = _log_mean(new)
    return np.asarray((against[:, :-1] + risen[:, 1:]).min(axis=1))


def _points(before: Vector, after: Vector) -> Vector:
    """Where the cells meet, from 0 to 1: the closer to the share before, the closer they are, as the least is there."""
    gap = np.maximum(after - before, 0.0)
    between = before[:, None] + gap[:, None] * np.square(np.linspace(0.0, 1.0, CELLS))
    beyond = 1.0 - (1.0 - between[:, -1:]) * np.linspace(1.0, 0.0, CELLS // 3)
    return np.concatenate([np.zeros((len(before), 1)), between, beyond], axis=1)


def _log_mean(logs: Any) -> Any:
    """log of the mean of exp over the last axis."""
    most = logs.max(axis=-1, keepdims=True)
    return (most + np.log(np.exp(logs - most).mean(axis=-1, keepdims=True)))[..., 0]
