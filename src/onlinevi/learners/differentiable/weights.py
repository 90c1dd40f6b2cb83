"""A model's weights as one flat vector, and the plan, state and trace of a run over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import numpy as np

from onlinevi.engine import SUM, Real, Vector
from onlinevi.learners.differentiable.gradients import Linearised, MonteCarlo
from onlinevi.learners.state import Plan, State
from onlinevi.learners.trace import Trace
from onlinevi.rules import SVA

Params: TypeAlias = Any
"""Weights in any nesting of dicts, lists and tuples of arrays: a pytree."""
Model: TypeAlias = Callable[[Params, Real], Real]


@dataclass(frozen=True)
class Layout:
    """How the weights lie in one flat vector: leaf after leaf."""

    tree: Any
    shapes: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(params: Params) -> Layout:
        leaves, tree = jax.tree.flatten(params)
        return Layout(tree, tuple(np.shape(leaf) for leaf in leaves))

    @property
    def size(self) -> int:
        return sum(int(np.prod(shape)) for shape in self.shapes)

    def params(self, flat: Real) -> Params:
        leaves, start = [], 0
        for shape in self.shapes:
            stop = start + int(np.prod(shape))
            leaves.append(flat[start:stop].reshape(shape))
            start = stop
        return jax.tree.unflatten(self.tree, leaves)


def flatten(params: Params) -> Vector:
    """The weights as one vector, in the order of ``trace.mean``; a family's ``prior_mean`` takes it.

    >>> flatten({"a": np.ones(2), "b": np.zeros((1, 2))}).tolist()
    [1.0, 1.0, 0.0, 0.0]
    """
    return np.concatenate([np.empty(0), *(np.ravel(np.asarray(leaf, dtype=float)) for leaf in jax.tree.leaves(params))])


@dataclass(frozen=True)
class ModelPlan(Plan):
    """A plan whose ``dim`` counts the weights of a model."""

    model: Model
    gradient: MonteCarlo | Linearised
    layout: Layout
    seed: int

    def start(self, weights: Params = None) -> ModelState:
        """The prior, with its means moved to ``weights`` where given."""
        array = np.array(super().start().array)
        if weights is not None:
            array[len(SUM) : len(SUM) + self.dim] = self._means(weights)
        return ModelState(array, self)

    def _means(self, weights: Params) -> Vector:
        """The weights as one vector, refused where the rule or the box would not keep them."""
        shapes, flat = Layout.of(weights).shapes, flatten(weights)
        if shapes not in (self.layout.shapes, ((self.dim,),)):
            raise ValueError(
                f"start has shapes {shapes}, params {self.layout.shapes}: give weights like params, or one flat vector"
            )
        prior = self.family.init(self.dim)
        if not np.array_equal(self.family.project(prior._replace(mean=flat)).mean, flat):
            raise ValueError("start must be finite and lie in the box: scale it down, or widen the box")
        if isinstance(self.rule, SVA) and not np.array_equal(flat, prior.mean):
            raise ValueError("SVA takes every step from the prior, not from start: use MeanField(prior_mean=flatten(start))")
        return flat


class ModelState(State):
    """A state over the weights of a model; ``mean`` and ``std`` are flat."""

    __slots__ = ()
    plan: ModelPlan

    @property
    def params(self) -> Params:
        """The decision: the means, in the shapes that the model takes."""
        return self.plan.layout.params(self.mean)


class ModelTrace(Trace):
    """The events of one pass of a model, and the state after it."""

    state: ModelState

    @property
    def params(self) -> Params:
        """The means after the pass, in the shapes that the model takes."""
        return self.state.params
