"""The weights of a run on the way, and what was certain of its regret."""

from __future__ import annotations

from typing import Any

from onlinevi.guarantees import certificate
from onlinevi.learners import Learner

MOST_SNAPSHOTS = 64
WIDEST = 200
"""More weights than this are not kept: they would be most of a checkpoint."""


class Snapshots:
    """The weights, and what is certain of the regret, where the stride divides the number of events; the stride doubles when
    there are ``MOST_SNAPSHOTS``."""

    def __init__(self) -> None:
        self.stride = 1
        self.steps: list[int] = []
        self.weights: list[Any] = []
        """The mean and the std of the weight of each prepared feature, all of one scale; empty where there are too many.

        Of more than two classes, a list for each class.
        """
        self.certified: list[float | None] = []
        """Regret a row; None where nothing is certain."""

    def until_next(self, count: int) -> int:
        """How many events there are from this number of them to the next snapshot."""
        return self.stride - count % self.stride

    def add(self, learner: Learner[Any], state: Any, count: int, *, certify: bool) -> None:
        """Take the snapshot after this number of events, if one is due."""
        if count % self.stride:
            return
        self.steps.append(count)
        first, few = int(learner.inputs.intercept), state.space is None and state.inputs.dim * len(state.by_class()) <= WIDEST
        self.weights.append([state.mean[..., first:].tolist(), state.std[..., first:].tolist()] if few else [])
        self.certified.append(certified_regret(state) if certify else None)
        if len(self.steps) > MOST_SNAPSHOTS:
            self.stride *= 2
            self.steps, self.weights, self.certified = self.steps[1::2], self.weights[1::2], self.certified[1::2]

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what ``to_json`` gave."""
        self.stride, self.steps = saved["stride"], saved["steps"]
        self.weights, self.certified = saved["weights"], saved["certified"]


def certified_regret(state: Any) -> float | None:
    """A row, against every fixed point of the box; for a rule alone, whose box is bounded and whose loss is convex."""
    leaf = state.alone()
    if leaf is None or not leaf.plan.loss.convex:
        return None
    live = certificate(leaf)
    return live.regret / live.count if live.bounded else None
