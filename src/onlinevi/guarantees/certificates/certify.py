"""The certificate of a run so far, or of a segment of it: of a learner, of an aggregate, of the default."""

from __future__ import annotations

from typing import TypeAlias, overload

from onlinevi.guarantees.certificates.live import Certificate, of_learner
from onlinevi.guarantees.certificates.pooled import PooledCertificate, of_aggregate
from onlinevi.guarantees.certificates.squared import SquaredSums
from onlinevi.learners import Aggregated, AggregateState, AutoState, AutoTrace, State, Trace

Alone: TypeAlias = Trace | State
Pooled: TypeAlias = AutoTrace | AutoState | Aggregated | AggregateState


@overload
def certificate(  # type: ignore[overload-overlap]  # the default's trace is a trace
    source: Pooled, *, since: Pooled | None = None, exact: SquaredSums | None = None
) -> PooledCertificate: ...
@overload
def certificate(source: Alone, *, since: Alone | None = None, exact: SquaredSums | None = None) -> Certificate: ...
def certificate(
    source: Alone | Pooled, *, since: Alone | Pooled | None = None, exact: SquaredSums | None = None
) -> Certificate | PooledCertificate:
    """Bound the regret of a run so far with no data kept, for any convex loss, rule and stream.

    ``since`` is an earlier state of the same run: then it speaks of the events after that one. ``exact`` holds the sums of
    the same events, for the squared loss: then the regret is known, not only bounded. With a ridge, rows of weight 1 and
    ``average=True``, the ridge's part is exact too. For ``auto``, points u are weights of the prepared features, the
    intercept first.

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
    state, earlier = _state(source), None if since is None else _state(since)
    if isinstance(state, AggregateState) and isinstance(earlier, AggregateState | None):
        return of_aggregate(state, earlier, exact)
    if isinstance(state, State) and isinstance(earlier, State | None):
        return of_learner(state, earlier, exact)
    raise ValueError(f"since={earlier!r} is no earlier state of this run: needs the same learner, and fewer events")


def _state(source: object) -> State | AggregateState:
    state = source.state if isinstance(source, Trace | Aggregated) else source
    state = state.pooled if isinstance(state, AutoState) else state
    if isinstance(state, State | AggregateState):
        return state
    raise TypeError(f"{source!r}: needs a trace or a state")
