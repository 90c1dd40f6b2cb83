"""What shards have learned together, and what became of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from onlinevi.beliefs import Box, named_rows, radii
from onlinevi.guarantees import LossSums, certificate, loss_bound, shards_risk_bound
from onlinevi.learners import Inputs, Learner
from onlinevi.runs.job import Job
from onlinevi.runs.shards.kept import Kept


class BadShard(ValueError):
    """A shard that cannot be learned from, and why."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason} (bad_shards='skip' learns from the others alone)")
        self.name, self.reason = name, reason

    def __reduce__(self) -> tuple[Any, ...]:
        return BadShard, (self.name, self.reason)


class Learned(NamedTuple):
    """What one shard has taught."""

    state: Any
    events: int
    loss: float
    """Σ loss of its decisions."""
    refused: int
    losses: dict[str, Any] | None
    """The sums of its losses, as ``LossSums`` has them."""
    job: Job | None = None
    """Where its columns have names: what is told of its rows."""


class ShardReport(NamedTuple):
    """What became of one shard."""

    name: str
    events: int = 0
    loss: float = 0.0
    """Σ loss of its decisions."""
    seconds: float = 0.0
    """Of the attempts that were used, surveying included."""
    worker: str = ""
    """The process that learned from it, as host:number."""
    attempts: int = 0
    """How often it was tried, at most in one stage: 1 where all went well."""
    refused: int = 0
    """Rows left out."""
    error: str = ""
    """Why it has no part in the result."""


class Progress(NamedTuple):
    """How far the shards are."""

    stage: str
    """What is done with them, in words."""
    done: int
    total: int
    events: int
    loss: float
    bad: int


@dataclass(frozen=True, eq=False)
class Fleet:
    """What the shards have learned together."""

    learner: Learner[Any]
    """Forecasts with the state, goes on with it, and merges it with others; its inputs stay as all shards shared them."""
    state: Any
    shards: tuple[ShardReport, ...]
    """One each, in the order of their names."""
    rounds: int
    looked_ahead: bool
    """Whether rows were prepared by the moments of these same rows."""
    losses: tuple[LossSums, ...]
    """Of each shard and round."""
    kept: Kept
    """What is finished, on disk where a folder was named: ``kept.clear()`` when it is needed no more."""
    job: Job | None = None
    """Of shards with named columns: the model as ``onlinevi run`` leaves it, for ``save_job`` and ``predict``."""

    @property
    def certificate(self) -> Any:
        """What is certain of what all shards paid, together, against one u for all of them.

        It speaks of the decisions that the shards made, each by what it knew, not of those that the merged model will make.
        """
        return certificate(self.state)

    @property
    def bad(self) -> tuple[ShardReport, ...]:
        """The shards left out."""
        return tuple(one for one in self.shards if one.error)

    def risk_bound(self, delta: float = 0.05, *, bound: float | None = None) -> float:
        """With probability ≥ 1 − delta, the risk of the average of all decisions, ``state.average_mean``, is at most this.

        For i.i.d. rows that were dealt out to shards without looking at them, and a convex loss in [0, bound]; None computes
        the bound where a box of means and the inputs' squash give one. Refused where rows were prepared by their own moments,
        or a shard was left out: then a decision knows of rows to come.
        """
        if self.looked_ahead:
            raise ValueError(
                "rows were prepared by moments of all of them, so that each decision knew of rows to come: give prepare_like, "
                "the model of other rows, or a learner that prepares nothing"
            )
        if self.bad:
            raise ValueError(f"{self.bad[0].name} was left out for what it holds: the others are no fair sample any more")
        leaf = self.state.alone()
        if leaf is None:
            raise ValueError("several learners decide together: a pool has no average decision in one set of weights")
        if not leaf.plan.loss.convex:
            raise ValueError(f"{leaf.plan.loss} is not convex: the average decision may be worse than the decisions")
        return shards_risk_bound(self.losses, delta, bound=_bound(self.learner, self.state, leaf) if bound is None else bound)

    def __repr__(self) -> str:
        bad = f", {len(self.bad)} bad" if self.bad else ""
        return f"Fleet(shards={len(self.shards)}{bad}, rounds={self.rounds}, events={self.state.count})"


def _bound(learner: Learner[Any], state: Any, leaf: Any) -> float:
    """The largest loss of two classes by the box of means, on rows that are squashed."""
    inputs, plan = getattr(learner, "inputs", None), leaf.plan
    if not (isinstance(inputs, Inputs) and inputs.squash is not None and plan.loss.target == "classes" and leaf.unit_weights):
        raise ValueError("only of two classes and squashed rows is it known how large a loss can be: give bound=")
    if state.space is not None:
        raise ValueError(f"how long rows of {state.space} can be is not known: give bound=")
    columns = plan.dim - inputs.intercept
    longest = float(np.sqrt(inputs.intercept + columns * inputs.squash**2))
    ends, ball = named_rows(plan.prior_and_box), radii(plan.family, plan.dim)
    box = Box(mean=(ends.mean_low, ends.mean_high)) if ball is None else plan.family.box
    return loss_bound(plan.loss, longest, box=box, labels=[-1.0, 1.0], dim=plan.dim)
