"""Where the vectors of a state lie during a pass: one behind the other, or interleaved, coordinate by coordinate.

A dense row reads each vector from end to end. A sparse row takes a few coordinates from anywhere, and waits for memory once a
vector and coordinate; interleaved, all numbers of a coordinate come together.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlinevi.engine import ns
from onlinevi.engine.holes import interleaved_views, keeps_std_total, views

PAYS = 3
"""Interleaving pays where a block stores so many values for each number of the state, which is copied twice."""


class Layout(NamedTuple):
    """The vectors that a pass works on."""

    vectors: Any
    """As the family names them."""
    drift: Any
    """Empty where decisions are not averaged."""
    copy: Any
    """What the vectors lie in, if not in the state."""


def ends(sizes: Any) -> tuple[int, int, int]:
    """Where the belief, the totals and the drift end in a packed state; float32 may leave a number behind them."""
    dim, belief, drift = sizes
    totals_end = belief + (belief if keeps_std_total() else dim)
    return belief, totals_end, totals_end + drift


def as_packed(packed: Any, rows: Any, sizes: Any) -> Layout:
    """The vectors as the state has them."""
    belief_end, totals_end, drift_end = ends(sizes)
    vectors = views(packed[:belief_end], packed[belief_end:totals_end], sizes[0])
    return Layout(vectors, packed[totals_end:drift_end], packed)


def interleaved(packed: Any, rows: Any, sizes: Any) -> Layout:
    """A table with a line for each coordinate: a copy, or for a short block a view of the state."""
    dim, _, drift = sizes
    _, _, size = ends(sizes)
    width, stored = size // dim, rows[2][-1] - rows[2][0]
    copy = np.empty((dim if stored > PAYS * size else 0, width), packed.dtype)
    # A step of 1 is a step to the compiler: both tables have one type, and one loop serves them.
    table = packed[:size].reshape((width, dim)).T[::1]
    if len(copy) > 0:
        for j in range(dim):
            for c in range(width):
                ns.one_by_one()  # vectors would gain nothing here, and take the compiler long
                copy[j, c] = table[j, c]
        table = copy[::1]
    return Layout(interleaved_views(table), table[:drift, width - 1], copy)


def late_forgetting(packed: Any, sizes: Any) -> tuple[Any, Any]:
    """Behind the vectors stands, for each coordinate, by how many events it has forgotten; the room is for one row."""
    _, _, size = ends(sizes)
    return packed[size : size + sizes[0]], np.empty((3, sizes[0]))


def restore_nothing(packed: Any, copy: Any) -> None:
    """What is changed in the state itself is there already."""


def restore_interleaved(packed: Any, copy: Any) -> None:
    """Bring back into the state what a pass has changed in a copy."""
    dim = len(copy)
    for j in range(dim):
        for c in range(copy.shape[1]):
            ns.one_by_one()
            packed[c * dim + j] = copy[j, c]
