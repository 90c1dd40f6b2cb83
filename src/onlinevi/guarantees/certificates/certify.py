"""The certificate of a run so far, of a segment of it, or of its last blocks: of a learner, of a pool, of the default."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from onlinevi.guarantees.certificates.leaf import Certificate, of_leaf
from onlinevi.guarantees.certificates.pooled import PooledCertificate, of_pool
from onlinevi.guarantees.certificates.squared_sums import SquaredSums
from onlinevi.guarantees.sources import decider
from onlinevi.learners import State


def certificate(source: Any, *, since: Any = None, exact: SquaredSums | None = None) -> Certificate | PooledCertificate:
    """Bound the regret of a run so far with no data kept, for any convex loss, rule and stream.

    ``since`` is an earlier state of the same run: then it speaks of the events after that one. ``exact`` holds the sums of
    the same events, for the squared loss: then the regret is known, not only bounded. With a ridge, rows of weight 1 and
    ``average=True``, the ridge's part is exact too. Behind prepared rows, as for ``auto``, points u are weights of the
    prepared features, the intercept first; behind ``Expand``, of those features that ``space`` names.

    >>> import numpy as np, onlinevi as ovi
    >>> from onlinevi import certificate
    >>> X = np.random.default_rng(0).standard_normal((2000, 2))
    >>> trace = ovi.learn(X, np.sign(X[:, 0] + 0.5), loss=ovi.Hinge(), rule=ovi.SVB())
    >>> live = certificate(trace)
    >>> 0.0 < live.lower_bound < trace.state.average_loss
    True
    >>> live.against([1.0, 0.0]) < live.within(1.0) < live.within(5.0) < live.regret
    True
    """
    state, earlier = decider(source), None if since is None else decider(since)
    if earlier is not None and type(earlier) is not type(state):
        raise ValueError(f"since={earlier!r} is no earlier state of this run: needs the same learner, and fewer events")
    earlier = None if earlier is None else earlier.up_to(state)
    space = getattr(getattr(source, "state", source), "space", None)
    found: Certificate | PooledCertificate = (of_pool if state.alone() is None else of_leaf)(state, earlier, exact)
    return found if space is None else replace(found, space=str(space))


@dataclass(frozen=True, eq=False)
class Window:
    """The last ``blocks`` blocks, from the states after each: O(blocks·d) memory, however long the stream.

    ``start`` is the state before the first block; without it the stream starts with it. ``add`` returns a new window.

    >>> import numpy as np, onlinevi as ovi
    >>> from onlinevi.guarantees import Window
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
