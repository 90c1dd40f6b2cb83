"""The certificate of the last blocks of a stream: what a drifting stream needs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from onlinevi.guarantees.certificates.certify import certificate
from onlinevi.guarantees.certificates.live import Certificate
from onlinevi.guarantees.certificates.pooled import PooledCertificate
from onlinevi.learners import State


@dataclass(frozen=True, eq=False)
class Window:
    """The last ``blocks`` blocks, from the states after each: O(blocks·d) memory, however long the stream.

    ``start`` is the state before the first block; without it the stream starts with it. ``add`` returns a new window.

    >>> import numpy as np, onlinevi as ovi
    >>> from onlinevi import Window
    >>> learner, window = ovi.Linear(loss=ovi.Hinge(), rule=ovi.SVB()), Window(blocks=2)
    >>> state = learner.init(1)
    >>> for sign in (1.0, 1.0, 1.0, -1.0):
    ...     state, _ = learner.update_many(state, np.ones((50, 1)), np.full(50, sign))
    ...     window = window.add(state)
    >>> window.certificate().count
    100
    """

    blocks: int
    start: State | None = None
    states: tuple[State, ...] = ()

    def __post_init__(self) -> None:
        if self.blocks < 1:
            raise ValueError(f"blocks={self.blocks}: a window needs at least one block")

    def add(self, state: State) -> Window:
        """The window after one more block, which ended in this state."""
        last = self.states[-1] if self.states else self.start
        if last is not None and (last.plan != state.plan or last.count > state.count):
            raise ValueError(f"{state!r} does not follow {last!r}: give the states of one run in their order")
        states = (*self.states, state)
        if len(states) <= self.blocks:
            return replace(self, states=states)
        return replace(self, start=states[0], states=states[1:])

    def certificate(self) -> Certificate | PooledCertificate:
        """Of the events in the window."""
        if not self.states:
            raise ValueError("the window is empty: add the state after a block first")
        return certificate(self.states[-1], since=self.start)
