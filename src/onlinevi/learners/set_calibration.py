"""Sets of classes that hold the one that comes as often as asked, on any stream: a threshold that moves by misses and hits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from onlinevi.engine import Kernel, Real, Vector, compose, ns
from onlinevi.learners.described import Described, Stored, check_finite, numbers_of, put_numbers

# The packed state.
COUNT, MISSED, SIZES, EMPTY, SAVED, THRESHOLD = range(6)

# The settings, read as data.
MISS_RATE, STEP, FILLED = range(3)

SUMS = {"count": COUNT, "missed": MISSED, "sizes": SIZES, "empty": EMPTY, "saved": SAVED, "threshold": THRESHOLD}
SETTINGS = {"miss_rate": MISS_RATE, "step": STEP, "filled": FILLED}
"""What a file calls the sums and the settings."""

REACH = 10.0
"""Log-odds from which on a threshold holds every class, below 0, or none: so it never goes further than a step beyond."""


@dataclass(frozen=True, eq=False)
class Covered:
    """What the labels have told of the sets so far."""

    array: Vector
    settings: Vector

    def __post_init__(self) -> None:
        self.array.setflags(write=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return Covered, (self.array, self.settings)

    @property
    def count(self) -> int:
        return int(self.array[COUNT])

    @property
    def threshold(self) -> float:
        """The log-odds that a class needs to be in the next set."""
        return float(self.array[THRESHOLD])

    @property
    def target(self) -> float:
        """The coverage asked for."""
        return 1.0 - float(self.settings[MISS_RATE])

    @property
    def coverage(self) -> float:
        """The part of the classes that came that were in their sets; NaN before the first event."""
        return 1.0 - float(self.array[MISSED] - self.array[SAVED]) / self.count if self.count else np.nan

    @property
    def size(self) -> float:
        """How many classes a set had, on average."""
        return float(self.array[SIZES]) / self.count if self.count else np.nan

    @property
    def empty(self) -> float:
        """The part of the sets for which no class reached the threshold."""
        return float(self.array[EMPTY]) / self.count if self.count else np.nan


@dataclass(frozen=True)
class SetCalibration:
    """Sets of the classes whose log-odds reach a threshold, which misses lower and hits raise: adaptive conformal inference.

    The threshold moves by −step·(missed − (1 − coverage)) at every event, so that on any stream whatever
    (rate of misses) − (1 − coverage) = (first threshold − last threshold)/(step·events), exactly. From log-odds of ±10 on it
    holds every class that is known, or none, and moves back: coverage differs from what was asked by at most
    (10 + |first threshold| + step)/(step·events), and 1/events more for each class that nobody had met before it came. For
    ``coverage=0.9`` that is 1 % after 5,000 events, whoever chooses the labels. No model and no law of the data enters.

    A set may be empty: where the guess is right more often than asked, some sets have to be, and they are those of the rows
    whose guess was least sure. ``filled=True`` puts the guess there, of which the threshold takes no notice: then sets hold
    the class at least as often as asked, and as often as the guess is right. Or ask for more coverage.

    >>> import numpy as np, onlinevi as ovi
    >>> rng = np.random.default_rng(0)
    >>> chances = rng.dirichlet(np.ones(4), 20_000)
    >>> labels = (chances.cumsum(axis=1) < rng.random((20_000, 1))).sum(axis=1)
    >>> covered, sets = ovi.SetCalibration(0.9).run(labels, chances)
    >>> round(covered.coverage, 2), sets.shape, round(covered.size, 1)
    (0.9, (20000, 4), 2.6)
    """

    coverage: float = 0.9
    step: float = 0.25
    filled: bool = False

    def __post_init__(self) -> None:
        if not 0.0 < self.coverage < 1.0:
            raise ValueError(f"coverage={self.coverage!r}: lies strictly between 0 and 1; try 0.9")
        if not 0.0 < self.step <= REACH:
            raise ValueError(f"step={self.step!r}: needs 0 < step ≤ {REACH:g}, in log-odds; try 0.25")

    def init(self) -> Covered:
        """Before the first event: a class is held that is as likely as a miss may be."""
        array = np.zeros(len(SUMS))
        array[THRESHOLD] = np.clip(np.log((1.0 - self.coverage) / self.coverage), -REACH, REACH)
        return Covered(array, np.array([1.0 - self.coverage, self.step, self.filled]))

    def update_many(self, state: Covered, codes: Any, chances: Any, known: Any = None) -> tuple[Covered, Any]:
        """The sets of these events before their labels, a column a class, and the state after; any split gives the same bits.

        ``codes`` are the numbers of the classes that came, ``chances`` the probability of each class, a row an event, and
        ``known`` says which classes there were: the others are in no set.
        """
        table, there = _checked(chances, known)
        numbers = np.asarray(codes, dtype=float)
        if numbers.shape != table.shape[:1]:
            raise ValueError(f"codes has shape {numbers.shape}, for {len(table)} rows of chances: needs one class an event")
        if not ((numbers >= 0.0) & (numbers % 1.0 == 0.0)).all():
            raise ValueError("codes has a label that is no class: needs their numbers, 0, 1, 2, …")
        array, sets = state.array.copy(), np.empty(table.shape)
        learning()(table, there, numbers.copy(), array, state.settings, sets)
        return Covered(array, state.settings), sets > 0.0

    def run(self, codes: Any, chances: Any, known: Any = None) -> tuple[Covered, Any]:
        """One pass over a stream of probabilities and classes."""
        return self.update_many(self.init(), codes, chances, known)

    def sets(self, state: Covered, chances: Any, known: Any = None) -> Any:
        """Sets for events to come. Changes nothing."""
        table, there = _checked(chances, known)
        sets = np.empty(table.shape)
        holding()(table, there, state.array, state.settings, sets)
        return sets > 0.0

    def merge(self, states: Sequence[Covered], start: Covered | None = None) -> Covered:
        """What the labels of several streams have told together: sums, and the mean of their thresholds, weighted by events.

        ``start`` is where all of them started, if they did not at the first event.
        """
        arrays = np.stack([state.array for state in states])
        before = np.zeros(len(SUMS)) if start is None else start.array
        merged = arrays.sum(axis=0) - (len(states) - 1) * before
        events = arrays[:, COUNT] - before[COUNT]
        merged[THRESHOLD] = np.average(arrays[:, THRESHOLD], weights=events) if events.any() else arrays[0, THRESHOLD]
        return Covered(merged, states[0].settings)

    def describe(self, state: Covered) -> Described:
        """The sums in plain terms."""
        check_finite(np.concatenate([state.array, state.settings]), "sums of sets")
        return Described({"sums": numbers_of(state.array, SUMS), "settings": numbers_of(state.settings, SETTINGS)})

    def restore(self, stored: Stored) -> Covered:
        """The sums that were described."""
        array, settings = np.zeros(len(SUMS)), np.zeros(len(SETTINGS))
        put_numbers(array, stored.facts["sums"], SUMS)
        put_numbers(settings, stored.facts["settings"], SETTINGS)
        return Covered(array, settings)


def _checked(chances: Any, known: Any) -> tuple[Vector, Vector]:
    """The probabilities, and which classes are known, as tables of their own for the loops."""
    table = np.array(chances, dtype=float, order="C")
    if table.ndim != 2:
        raise ValueError(f"chances has shape {table.shape}: needs a row an event, and a column a class")
    if not ((table >= 0.0) & (table <= 1.0)).all():
        raise ValueError("chances has what is no probability: needs numbers from 0 to 1")
    there = np.ones(table.shape) if known is None else np.array(np.broadcast_to(known, table.shape), dtype=float)
    return table, there


# --- row by row


def least_chance(threshold: Real) -> Real:
    """The probability from which on a class is in the set: 0 and ∞ where the threshold has gone as far as it may."""
    if threshold <= -REACH:
        return 0.0
    return np.inf if threshold >= REACH else 1.0 / (1.0 + ns.exp(-threshold))


def hold_row(chances: Any, known: Any, i: int, least: Real, sets: Any) -> Real:
    """Fill the set of one row; how many classes it has."""
    size = 0.0
    for k in range(chances.shape[1]):
        sets[i, k] = 1.0 if known[i, k] > 0.0 and chances[i, k] >= least else 0.0
        size += sets[i, k]
    return size


def fill_row(chances: Any, known: Any, i: int, sets: Any) -> Real:
    """Put the likeliest class into an empty set, if there is one; how many classes it has then."""
    likeliest = -1
    for k in range(chances.shape[1]):
        if known[i, k] > 0.0 and (likeliest < 0 or chances[i, k] > chances[i, likeliest]):
            likeliest = k
    if likeliest < 0:
        return 0.0
    sets[i, likeliest] = 1.0
    return 1.0


def hold(chances: Any, known: Any, state: Any, settings: Any, sets: Any) -> None:
    """Fills ``sets``, a row each, by one threshold."""
    for i in range(len(chances)):
        size = hold_row(chances, known, i, least_chance(state[THRESHOLD]), sets)
        if size == 0.0 and settings[FILLED] > 0.0:
            fill_row(chances, known, i, sets)


def learn(chances: Any, known: Any, codes: Any, state: Any, settings: Any, sets: Any) -> None:
    """The set, then the label, then the threshold. Changes ``state``, fills ``sets``."""
    for i in range(len(chances)):
        size, own = hold_row(chances, known, i, least_chance(state[THRESHOLD]), sets), int(codes[i])
        there = own < sets.shape[1]
        missed = 0.0 if there and sets[i, own] > 0.0 else 1.0
        state[COUNT] += 1.0
        state[MISSED] += missed
        state[EMPTY] += 1.0 if size == 0.0 else 0.0
        state[THRESHOLD] -= settings[STEP] * (missed - settings[MISS_RATE])
        if size == 0.0 and settings[FILLED] > 0.0:
            size = fill_row(chances, known, i, sets)
            state[SAVED] += 1.0 if there and sets[i, own] > 0.0 else 0.0
        state[SIZES] += size


@cache
def learning() -> Kernel:
    return compose(learn, {})


@cache
def holding() -> Kernel:
    return compose(hold, {})
