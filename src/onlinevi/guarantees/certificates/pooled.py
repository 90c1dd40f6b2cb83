"""The certificate of a pool: what it lost beyond a learner is known, and that learner has a certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinevi.guarantees.certificates.leaf import Certificate, as_html, of_leaf
from onlinevi.guarantees.certificates.squared_sums import SquaredSums
from onlinevi.guarantees.certificates.tangents import FORMULA, UNIT
from onlinevi.learners import PoolState
from onlinevi.losses import Loss


@dataclass(frozen=True, eq=False)
class PooledCertificate:
    """What is certain of the regret of pooled decisions, Σ ℓ_t(decision_t) − Σ ℓ_t(u), row weights as in the loss.

    Each learner k bounds it by (loss − its loss) + its own bound; the least counts, for each u or radius anew. The pooled
    decision need not be any fixed weights, and how learners were weighed does not matter.
    """

    count: int
    """The events it speaks of."""
    loss: float
    """Σ ℓ_t at the pooled decisions."""
    learners: tuple[Certificate, ...]
    """Of the learners whose loss is the pooled one, without a ridge, and whose weights are those of the same features."""
    space: str = ""
    """As that of ``Certificate``."""

    def _repr_html_(self) -> str:
        return as_html(self)

    @property
    def regret(self) -> float:
        """No fixed point in the boxes of all these learners beats the pooled decisions by more than this, in total."""
        return float(self._least([live.regret for live in self.learners]))

    @property
    def lower_bound(self) -> float:
        """No fixed point in the boxes of all these learners has an average loss below this."""
        return (self.loss - self.regret) / self.count

    def against(self, u: Any) -> Any:
        """The bound on the regret against one point u of any space, or against each row of a matrix."""
        return self._least([live.against(u) for live in self.learners])

    def within(self, radius: Any) -> Any:
        """The bound against every u with ‖u‖ ≤ radius, inside the boxes or not; radii may be an array."""
        return self._least([live.within(radius) for live in self.learners])

    def rounding(self, radius: float | None = None) -> float:
        """How far floats can have moved ``regret``, or with a radius ``within(radius)``, at most; part of both."""
        return self._own_rounding + max(live.rounding(radius) for live in self.learners)

    @property
    def _own_rounding(self) -> float:
        """Of the pooled loss."""
        return (FORMULA + 2.0 * UNIT * (self.count + 8.0)) * abs(self.loss)

    def _least(self, bounds: list[Any]) -> Any:
        excess = [self.loss - live.loss + np.asarray(bound) for live, bound in zip(self.learners, bounds, strict=True)]
        least = np.min(excess, axis=0) + self._own_rounding
        return float(least) if least.ndim == 0 else least

    @property
    def bounded(self) -> bool:
        """Whether the boxes of all these learners are finite."""
        return all(live.bounded for live in self.learners)

    def __repr__(self) -> str:
        regret = f"regret={self.regret:.6g}" if self.bounded else f"within(1)={self.within(1.0):.6g}"
        space = f", space={self.space!r}" if self.space else ""
        return f"PooledCertificate(events={self.count}, loss={self.loss:.6g}, {regret}, learners={len(self.learners)}{space})"


def of_pool(state: PoolState, since: PoolState | None, exact: SquaredSums | None) -> PooledCertificate:
    """The certificate of the events of a pool, or of those after ``since``."""
    if since is not None and (since.plan != state.plan or since.count > state.count):
        raise ValueError(f"since={since!r} is no earlier state of this run: needs the same pool, and fewer events")
    loss = state.plan.loss
    alike = _of_same_features(state)
    fitting = [k for k, own in enumerate(alike) if _pays(own.plan.loss, loss)]
    if not fitting:
        own = state.leaves()[0].plan.loss
        if not alike and len(state.by_class()) > 1:
            raise ValueError("each class has a learner of its own, none of which pays for all: put a Softmax among them")
        raise ValueError(
            f"no learner pays the pooled loss, {loss}, and nothing else: theirs is {own}; a certificate needs one of that "
            "loss, without a ridge"
        )
    earlier = [None] * len(alike) if since is None else _of_same_features(since)
    learners = tuple(of_leaf(alike[k], earlier[k], exact) for k in fitting)
    paid = state.loss - (0.0 if since is None else since.loss)
    return PooledCertificate(learners[0].count, paid, learners)


def _of_same_features(state: PoolState) -> list[Any]:
    """The leaves whose weights are those of the pool's own features, in pools inside it too: for each, what the pool lost
    beyond it is known, and it has a certificate."""
    found: list[Any] = []
    for own in state.learners:
        if own.space == state.space and (leaf := own.alone()) is not None:
            found.append(leaf)
        elif own.space == state.space and own.deciders() == (own,):
            found += _of_same_features(own)
    return found


def _pays(own: Loss, pooled: Loss) -> bool:
    """Whether a learner's costs are those of the pooled loss. Robust steps are no matter: what is paid is not changed."""
    return type(own) is type(pooled) and own.parameters == pooled.parameters and own.ridge == 0.0
