"""The certificate of a run so far, or of a segment of it: of a learner, of an aggregate, of the default."""

from __future__ import annotations

from typing import Any

from onlinevi.guarantees.certificates.live import Certificate, of_learner
from onlinevi.guarantees.certificates.pooled import PooledCertificate, of_aggregate
from onlinevi.guarantees.certificates.squared import SquaredSums


def certificate(source: Any, *, since: Any = None, exact: SquaredSums | None = None) -> Certificate | PooledCertificate:
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
    state, earlier = _decider(source), None if since is None else _decider(since)
    if earlier is not None and type(earlier) is not type(state):
        raise ValueError(f"since={earlier!r} is no earlier state of this run: needs the same learner, and fewer events")
    of_run: Any = of_learner if state.leaves()[0] is state else of_aggregate
    found: Certificate | PooledCertificate = of_run(state, earlier, exact)
    return found


def _decider(source: Any) -> Any:
    """The state that decides, in a trace or in a state of any composition."""
    state = getattr(source, "state", source)
    if not hasattr(state, "deciders"):
        raise TypeError(f"{source!r}: needs a trace or a state")
    deciders = state.deciders()
    if len(deciders) != 1:
        raise ValueError("several classes decide one by one: certify each of state.deciders()")
    return deciders[0]
