"""Moments of blocks of rows, and of several streams together, by numpy alone: what is added up needs no order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onlinevi.engine import Vector
from onlinevi.learners.inputs.passes import COUNT, HEAD, KIND
from onlinevi.learners.inputs.state import CENTRED, UNCENTRED, InputState


def moments_of(kind: float, count: int, lag: Any, mean: Any, square: Any) -> InputState:
    """The state of these moments."""
    array = np.concatenate([np.zeros(HEAD), lag, mean, square])
    array[COUNT], array[KIND] = count, kind
    return InputState(array)


def of_values(X: Vector) -> InputState:
    """Of a block of dense rows, in two looks: its means, then what lies around them."""
    known = ~np.isnan(X)
    counts = known.sum(axis=0)
    mean = np.where(known, X, 0.0).sum(axis=0) / np.maximum(counts, 1)
    square = np.square(np.where(known, X - mean, 0.0)).sum(axis=0)
    return moments_of(CENTRED, len(X), len(X) - counts, mean, square)


def of_stored(data: Vector, indices: Any, starts: Any, dim: int) -> InputState:
    """Of a block of sparse rows, about 0; zeros left out are values."""
    part = slice(int(starts[0]), int(starts[-1]))
    values, places = np.asarray(data[part], dtype=float), np.asarray(indices[part], dtype=np.int64)
    lag = np.bincount(places, np.isnan(values), dim)
    square = np.bincount(places, np.square(np.nan_to_num(values)), dim)
    return moments_of(UNCENTRED, len(starts) - 1, lag, np.zeros(dim), square)


def merged(states: Sequence[InputState]) -> InputState:
    """Of all rows of these states, added up in their order."""
    first, *others = [state for state in states if state.count] or states[:1]
    for other in others:
        here, there = first.counts, other.counts
        both, gap = np.maximum(here + there, 1.0), other.mean - first.mean
        # A column without a value on one side takes the other's moments as they are.
        mean = np.where(here == 0.0, other.mean, first.mean + gap * (there / both))
        square = first.square + other.square + np.square(gap) * (here * there / both)
        first = moments_of(first.kind, first.count + other.count, first.lag + other.lag, mean, square)
    return first
