"""What a guarantee is asked about: a trace or a state of any composition, as the states inside it that decide."""

from __future__ import annotations

from typing import Any, TypeAlias

from onlinevi.learners import State, Trace

Alone: TypeAlias = Trace | State
"""A run of one learner, or its state."""


def decider(source: Any) -> Any:
    """The state that decides: of the compiled loop, or of a pool of such."""
    state = getattr(source, "state", source)
    if not hasattr(state, "deciders"):
        raise TypeError(f"{source!r}: needs a trace or a state")
    deciders = state.deciders()
    if len(deciders) != 1:
        raise ValueError("several classes decide one by one: certify each of state.deciders()")
    return deciders[0]


def leaf(source: Any) -> State:
    """The state of the one learner that decides; a pool is refused."""
    state: State | None = decider(source).alone()
    if state is None:
        raise TypeError(f"{source!r}: a theorem speaks of one rule, not of a pool; certificate() holds for it")
    if not isinstance(state, State):
        raise TypeError(f"{source!r}: a theorem speaks of one rule of two classes or of numbers; certificate() holds for it")
    return state
