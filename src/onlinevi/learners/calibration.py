"""Noise and intervals around predictions of numbers, learned from the residuals as they come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from onlinevi.engine import Kernel, Real, Vector, compose, ns
from onlinevi.learners.described import Described, Stored, check_finite, numbers_of, put_numbers

# The packed state.
COUNT, MISSED, SQUARES, WEIGHT, LOG_RATIO, LAST, LAST_BUT_ONE, PLAIN_SQUARES, PLAIN_WEIGHT, RAW_SQUARES, RAW_WEIGHT = range(11)

# The settings, read as data.
MISS_RATE, STEP, KEPT = range(3)

LEAST_LOG_RATIO = float(np.log(1e-4))
"""From here some 200 misses make an interval of one std again, however long a sensor was stuck."""
OUTLIER = 4.0
"""How many stds a residual counts for at most, unless the last two were as large."""
LARGEST = 1e300
"""A square beyond this counts as this: sums of a memory's length stay finite."""

EARLY = 200
"""For how many events residuals as they are hold intervals open: less and less, as what is known of the noise grows."""

LEAST_SHARE = 1e-3
"""What a residual counts for at least in the noise, however unsure the prediction was; and the least part that noise has."""

SUMS = {
    "count": COUNT,
    "missed": MISSED,
    "squares": SQUARES,
    "weight": WEIGHT,
    "log_ratio": LOG_RATIO,
    "last": LAST,
    "last_but_one": LAST_BUT_ONE,
    "plain_squares": PLAIN_SQUARES,
    "plain_weight": PLAIN_WEIGHT,
    "raw_squares": RAW_SQUARES,
    "raw_weight": RAW_WEIGHT,
}
SETTINGS = {"miss_rate": MISS_RATE, "step": STEP, "kept": KEPT}
"""What a file calls the sums and the settings."""

# The columns of a record.
STD, LOWER, UPPER, NOISE = range(4)


@dataclass(frozen=True, eq=False)
class Bands:
    """Before each label was seen: the std of what it might be, and an interval for it; infinite at the first."""

    std: Vector
    lower: Vector
    upper: Vector
    noise: Vector
    """The variance of the noise, as known then; NaN at the first."""


@dataclass(frozen=True, eq=False)
class Calibrated:
    """What the residuals have told so far."""

    array: Vector
    settings: Vector

    def __post_init__(self) -> None:
        self.array.setflags(write=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return Calibrated, (self.array, self.settings)

    @property
    def count(self) -> int:
        return int(self.array[COUNT])

    @property
    def noise(self) -> float:
        """The variance of the noise; NaN before the first event."""
        return float(noise_of(self.array)) if self.count else np.nan

    @property
    def ratio(self) -> float:
        """An interval's half width, in predictive stds, once the first events are behind."""
        return float(np.exp(self.array[LOG_RATIO]))

    @property
    def target(self) -> float:
        """The coverage asked for."""
        return 1.0 - float(self.settings[MISS_RATE])

    @property
    def coverage(self) -> float:
        """The part of the labels that lay in their intervals; NaN before the second event, which has the first interval."""
        asked = self.count - 1
        return 1.0 - float(self.array[MISSED]) / asked if asked > 0 else np.nan


@dataclass(frozen=True)
class Calibration:
    """Intervals prediction ± ratio·std whose ratio grows by a miss and shrinks by a hit: adaptive conformal inference.

    ln ratio moves by step·(missed − (1 − coverage)) at every event, so that on any stream whatever
    (rate of misses) − (1 − coverage) = ln(last ratio / first ratio) / (step·events), exactly. As a ratio only grows at a
    residual beyond it, coverage can fall short by no more than ln(largest residual/std / first ratio) / (step·events).
    Where labels never miss, as constant ones do not, the ratio stays at 1e-4: then = becomes ≤, and coverage exceeds.

    The std is √(noise·unit + extra): ``unit`` > 0 and ``extra`` come with each prediction, the noise is the average of
    (residual² − extra)/unit over about the last ``memory`` events, and about half of all while there are fewer: the first
    predictions are poor. It is 0 if that average is below. A residual counts as no more than 4 stds, or than both of the
    last two: outliers pass for noise only where three come in a row, as they do when a stream has changed.

    The first predictions are poor, and what they know of their own error is poorer. So the std is held to be no less than
    the root mean square of the residuals, of which the latest count most, and an interval no narrower than Student's law
    makes it for so few. Both fade out over the first 200 events.

    >>> import numpy as np, onlinevi as ovi
    >>> rng = np.random.default_rng(0)
    >>> y = rng.standard_cauchy(20_000)
    >>> calibrated, bands = ovi.Calibration(0.9).run(y, np.zeros(20_000))
    >>> round(calibrated.coverage, 2)
    0.9
    """

    coverage: float = 0.9
    step: float = 0.05
    memory: float = 100.0

    def __post_init__(self) -> None:
        if not 0.0 < self.coverage < 1.0:
            raise ValueError(f"coverage={self.coverage!r}: lies strictly between 0 and 1; try 0.9")
        if not (0.0 < self.step < 1.0):
            raise ValueError(f"step={self.step!r}: needs 0 < step < 1; try 0.05")
        if not self.memory >= 1.0:
            raise ValueError(f"memory={self.memory!r}: needs at least one event; try 100")

    def init(self) -> Calibrated:
        """Before the first event. The first ratio is the normal law's."""
        from scipy.special import ndtri

        array = np.zeros(len(SUMS))
        array[LOG_RATIO] = np.log(ndtri(0.5 + 0.5 * self.coverage))
        return Calibrated(array, np.array([1.0 - self.coverage, self.step, 1.0 - 1.0 / self.memory]))

    def update_many(
        self, state: Calibrated, y: Any, prediction: Any, unit: Any = 1.0, extra: Any = 0.0
    ) -> tuple[Calibrated, Bands]:
        """Intervals for each of these events before its label, and the state after them; any split gives the same bits."""
        parts = np.broadcast_arrays(*(np.asarray(part, dtype=float) for part in (y, prediction, unit, extra)))
        if parts[0].ndim != 1:
            raise ValueError(f"y has shape {parts[0].shape}: needs one label an event")
        if not all(np.isfinite(part).all() for part in parts) or not ((parts[2] > 0.0) & (parts[3] >= 0.0)).all():
            raise ValueError("labels, predictions and variances must be finite, unit > 0 and extra ≥ 0: drop the event")
        array, record = state.array.copy(), np.empty((len(parts[0]), 4))
        copies = map(np.array, parts)  # a row alone is broadcast onto itself
        kernel()(*copies, array, state.settings, student(self.coverage), record)
        return Calibrated(array, state.settings), Bands(*record.T)

    def run(self, y: Any, prediction: Any, unit: Any = 1.0, extra: Any = 0.0) -> tuple[Calibrated, Bands]:
        """One pass over a stream of predictions and labels."""
        return self.update_many(self.init(), y, prediction, unit, extra)

    def merge(self, states: Sequence[Calibrated], start: Calibrated | None = None) -> Calibrated:
        """What the residuals of several streams have told together: one noise, and the geometric mean of their ratios.

        The mean is weighted by events, so that the coverage of all of them still follows from where the ratio has gone.
        ``start`` is where all of them started, if they did not at the first event.
        """
        arrays = np.stack([state.array for state in states])
        before = np.zeros(len(SUMS)) if start is None else start.array
        merged = arrays.sum(axis=0)  # sums of squares and their weights fade: what the start left in each is a mean still
        for part in (COUNT, MISSED):
            merged[part] -= (len(states) - 1) * before[part]
        events = arrays[:, COUNT] - before[COUNT]
        for part in (LOG_RATIO, LAST, LAST_BUT_ONE):
            merged[part] = np.average(arrays[:, part], weights=events) if events.any() else arrays[0, part]
        return Calibrated(merged, states[0].settings)

    def describe(self, state: Calibrated) -> Described:
        """The sums in plain terms."""
        check_finite(np.concatenate([state.array, state.settings]), "sums of residuals")
        return Described({"sums": numbers_of(state.array, SUMS), "settings": numbers_of(state.settings, SETTINGS)})

    def restore(self, stored: Stored) -> Calibrated:
        """The sums that were described."""
        array, settings = np.zeros(len(SUMS)), np.zeros(len(SETTINGS))
        put_numbers(array, stored.facts["sums"], SUMS)
        put_numbers(settings, stored.facts["settings"], SETTINGS)
        if array[COUNT] > 0.0 and array[PLAIN_WEIGHT] == 0.0:  # a file from before these sums were kept
            array[[PLAIN_SQUARES, PLAIN_WEIGHT]] = array[[SQUARES, WEIGHT]]
        if array[COUNT] > 0.0 and array[RAW_WEIGHT] == 0.0:
            array[[RAW_SQUARES, RAW_WEIGHT]] = array[[PLAIN_SQUARES, PLAIN_WEIGHT]]
        return Calibrated(array, settings)

    def bands(self, state: Calibrated, prediction: Any, unit: Any = 1.0, extra: Any = 0.0) -> Bands:
        """Intervals for labels to come. Changes nothing."""
        centre, unit, extra = np.broadcast_arrays(*(np.asarray(part, dtype=float) for part in (prediction, unit, extra)))
        noise = np.full(centre.shape, state.noise)
        if not state.count:
            return Bands(np.full(centre.shape, np.inf), np.full(centre.shape, -np.inf), np.full(centre.shape, np.inf), noise)
        known, least = np.sqrt(noise * unit + extra), early_std(state.array)
        radius = state.ratio * np.maximum(known, student_factor(student(self.coverage), state.count) * least)
        return Bands(np.maximum(known, least), centre - radius, centre + radius, noise)


@cache
def student(coverage: float) -> Vector:
    """How much wider Student's interval is than the normal law's, by events from 1 on.

    It has three quarters as many degrees of freedom as there were events, of which the latest count most.
    """
    from scipy.special import ndtri, stdtrit

    above = 0.5 + 0.5 * coverage
    factors: Vector = stdtrit(np.maximum(1.0, 0.75 * np.arange(1.0, EARLY)), above) / ndtri(above)
    factors.setflags(write=False)
    return factors


def student_factor(factors: Any, count: Real) -> Real:
    """The factor at so many events."""
    return factors[int(count) - 1] if count < EARLY else 1.0


def early_std(state: Any) -> Real:
    """What a std is no less than, after the first event: the root mean square of the residuals, and less and less of it."""
    if state[COUNT] >= EARLY:
        return 0.0
    part = 1.0 - (state[COUNT] / EARLY) ** 2
    return ns.sqrt(part * state[RAW_SQUARES] / state[RAW_WEIGHT])


def noise_of(state: Any) -> Real:
    return ns.maximum(state[SQUARES] / state[WEIGHT], 0.0)


def calibrate(
    labels: Any, predictions: Any, units: Any, extras: Any, state: Any, settings: Any, factors: Any, record: Any
) -> None:
    """The interval, then the label, then the ratio and the noise. Changes ``state``, fills ``record``."""
    for t in range(len(labels)):
        residual, known = labels[t] - predictions[t], state[COUNT] > 0.0
        noise = noise_of(state) if known else np.nan
        std = radius = np.inf
        if known:
            std, least_std = ns.sqrt(noise * units[t] + extras[t]), early_std(state)
            radius = ns.exp(state[LOG_RATIO]) * ns.maximum(std, student_factor(factors, state[COUNT]) * least_std)
            std = ns.maximum(std, least_std)
        record[t, STD], record[t, LOWER], record[t, UPPER] = std, predictions[t] - radius, predictions[t] + radius
        record[t, NOISE] = noise
        if known:
            missed = 1.0 if ns.absolute(residual) > radius else 0.0
            state[MISSED] += missed
            moved = state[LOG_RATIO] + settings[STEP] * (missed - settings[MISS_RATE])
            state[LOG_RATIO] = ns.maximum(moved, LEAST_LOG_RATIO)
        kept = ns.minimum(settings[KEPT], state[COUNT] / (state[COUNT] + 2.0))
        kept_raw = ns.minimum(settings[KEPT], state[COUNT] / (state[COUNT] + 3.0))
        state[RAW_WEIGHT] = kept_raw * state[RAW_WEIGHT] + 1.0
        state[RAW_SQUARES] = kept_raw * state[RAW_SQUARES] + ns.minimum(residual * residual, LARGEST)
        state[COUNT] += 1.0
        # Where much else is unsure, a residual says little of the noise.
        least = LEAST_SHARE * state[PLAIN_SQUARES] / state[PLAIN_WEIGHT] if known else 0.0
        noisy = ns.maximum(noise, least) * units[t]
        part = noisy / (noisy + extras[t]) if known and extras[t] > 0.0 else 1.0
        share = ns.maximum(part * part, LEAST_SHARE)
        state[PLAIN_WEIGHT] = kept * state[PLAIN_WEIGHT] + 1.0
        state[PLAIN_SQUARES] = kept * state[PLAIN_SQUARES] + ns.minimum(residual * residual / units[t], LARGEST)
        state[WEIGHT] = kept * state[WEIGHT] + share
        square = (ns.minimum(residual * residual, LARGEST) - ns.minimum(extras[t], LARGEST)) / units[t]
        square = ns.minimum(ns.maximum(square, -LARGEST), LARGEST)
        limit = ns.maximum(OUTLIER * OUTLIER * noise, ns.minimum(state[LAST], state[LAST_BUT_ONE])) if known else LARGEST
        state[SQUARES] = kept * state[SQUARES] + share * ns.minimum(square, limit)
        state[LAST], state[LAST_BUT_ONE] = square, state[LAST]


@cache
def kernel() -> Kernel:
    return compose(calibrate, {})
