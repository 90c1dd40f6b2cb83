"""Moments of blocks of rows, and of several streams together, by numpy alone: what is added up needs no order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onlinevi.engine import Vector
from onlinevi.learners.inputs.passes import COUNT, HEAD, KIND
from onlinevi.learners.inputs.state import CENTRED, UNCENTRED, InputState


def moments_of(kind: float, count: int, lag: Any, mean: Any, square: Any, centred: Any = ()) -> InputState:
    """The state of these moments."""
    array = np.concatenate([np.zeros(HEAD), lag, mean, square])
    array[COUNT], array[KIND] = count, kind
    return InputState(array, centred)


def of_values(X: Vector) -> InputState:
    """Of a block of dense rows, in two looks: its means, then what lies around them."""
    known = ~np.isnan(X)
    counts = known.sum(axis=0)
    mean = np.where(known, X, 0.0).sum(axis=0) / np.maximum(counts, 1)
    square = np.square(np.where(known, X - mean, 0.0)).sum(axis=0)
    return moments_of(CENTRED, len(X), len(X) - counts, mean, square)


def of_stored(data: Vector, indices: Any, starts: Any, dim: int, centred: Any = ()) -> InputState:
    """Of a block of sparse rows, about 0 but for the centred columns; zeros left out are values."""
    part = slice(int(starts[0]), int(starts[-1]))
    values, places = np.asarray(data[part], dtype=float), np.asarray(indices[part], dtype=np.int64)
    known, count = ~np.isnan(values), len(starts) - 1
    lag, stored = np.bincount(places, ~known, dim), np.bincount(places, known, dim)
    mean = np.zeros(dim)
    mean[centred] = (np.bincount(places, np.where(known, values, 0.0), dim) / np.maximum(count - lag, 1.0))[centred]
    square = np.bincount(places, np.where(known, np.square(values - mean[places]), 0.0), dim)
    square += (count - lag - stored) * np.square(mean)
    return moments_of(UNCENTRED, count, lag, mean, square, centred)


def merged(states: Sequence[InputState]) -> InputState:
    """Of all rows of these states, added up in their order."""
    first, *others = [state for state in states if state.count] or states[:1]
    for other in others:
        here, there = first.counts, other.counts
        both, gap = np.maximum(here + there, 1.0), other.mean - first.mean
        # A column without a value on one side takes the other's moments as they are.
        mean = np.where(here == 0.0, other.mean, first.mean + gap * (there / both))
        square = first.square + other.square + np.square(gap) * (here * there / both)
        first = moments_of(first.kind, first.count + other.count, first.lag + other.lag, mean, square, first.centred)
    return first
