"""Whether two states of any composition hold the same bits."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

import onlinevi as ovi
from onlinevi.engine import SUM
from onlinevi.learners import PoolState, Space


def arrays_of(state: Any) -> list[np.ndarray]:
    """Every number that a state holds, in a fixed order."""
    if isinstance(state, np.ndarray):
        return [state]
    if isinstance(state, tuple):
        return [array for part in state for array in arrays_of(part)]
    if isinstance(state, Space):
        return [np.array([state.start, state.dim], dtype=float)]
    if isinstance(state, PoolState):
        return [state.array, state.plan.settings, state.plan.log_prior, *arrays_of(state.learners)]
    if hasattr(state, "array"):
        return [state.array, *([state.settings] if hasattr(state, "settings") else [])]
    if is_dataclass(state):
        return [array for item in fields(state) if item.name != "made_of" for array in arrays_of(getattr(state, item.name))]
    return [] if state is None else [np.array([state], dtype=float)]


def bits(state: Any) -> list[bytes]:
    """The same as bytes."""
    return [array.tobytes() for array in arrays_of(state)]


def same_bits(one: Any, other: Any) -> bool:
    """Whether both hold the same numbers, to the bit."""
    return type(one) is type(other) and bits(one) == bits(other)


def stripped_of_sums(state: ovi.State) -> ovi.State:
    """As a merge of an earlier version: its belief and its count, and no sums."""
    array = np.array(state.array)
    array[1 : len(SUM)] = 0.0
    return ovi.State(array, state.plan)
