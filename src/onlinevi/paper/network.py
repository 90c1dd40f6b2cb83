"""The nonconvex panel of Figure 1: one hidden ReLU layer, online with Monte Carlo gradients, and offline for its line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinevi.engine import Vector
from onlinevi.losses import Squared
from onlinevi.paper.panels import Stream
from onlinevi.rules import Rule

SAMPLES = 10
"""Draws of all weights a step, for the expected gradient."""
TRAININGS = 4
ITERATIONS = 300
BOX = 20.0


@dataclass(frozen=True)
class Network:
    """One reading of the paper's "one-hidden-layer neural network with a ReLU activation", which it says no more of."""

    width: int
    biases: bool
    """In both layers; else a constant feature stands in for them."""
    gauss_newton: bool
    """Whether the curvature is E[2J²], or from the draws alone."""
    drawn_start: bool
    """Whether OGA starts at a small draw rather than at 0, where without biases it would stay."""

    @property
    def model(self) -> Any:
        from onlinevi.learners import ReLUNetwork

        return ReLUNetwork(self.width, self.biases)


NETWORKS = {
    "width-5": Network(5, biases=True, gauss_newton=True, drawn_start=False),
    "width-50": Network(50, biases=False, gauss_newton=False, drawn_start=True),
}
"""By their width, which the paper does not give: 5 was chosen because it works."""


def online(network: Network, rule: Rule, stream: Stream, seed: int, progress: Callable[[float], None]) -> Vector:
    """A_t of one rule."""
    from onlinevi.learners import Differentiable, MonteCarlo

    count, dim = stream.X.shape
    gradient = MonteCarlo(SAMPLES, gauss_newton=network.gauss_newton)
    learner = Differentiable(network.model, loss=Squared(), rule=rule, gradient=gradient)
    at_draw = network.drawn_start and not rule.gaussian
    trace = learner.learn(
        stream.X,
        stream.y,
        params=network.model.zeros(dim),
        start=network.model.init(dim, np.random.default_rng(seed)) if at_draw else None,
        seed=seed,
        progress=lambda done: progress(done / count),
    )
    return trace.average_loss


def offline(network: Network, stream: Stream, progress: Callable[[float], None]) -> tuple[float, Vector]:
    """The best of several offline trainings from different starts: its average loss and its weights.

    No bound says that it is the least.
    """
    import jax
    from scipy.optimize import minimize

    from onlinevi.learners import flatten

    dim = stream.X.shape[1]

    def average(flat: Any) -> Any:
        return jax.numpy.mean((stream.y - _predicted(network, flat, stream)) ** 2)

    with jax.enable_x64(True):
        both = jax.jit(jax.value_and_grad(average))
        found = []
        for seed in range(TRAININGS):
            start = flatten(network.model.init(dim, np.random.default_rng(seed)))
            best = minimize(
                lambda flat: tuple(np.asarray(part) for part in both(flat)),
                start,
                jac=True,
                method="L-BFGS-B",
                bounds=[(-BOX, BOX)] * len(start),
                options={"maxiter": ITERATIONS},
                callback=lambda _, seed=seed: progress(seed / TRAININGS),
            )
            found.append((float(best.fun), np.asarray(best.x)))
    return min(found, key=lambda training: training[0])


def predictions(network: Network, weights: Vector, stream: Stream) -> Vector:
    """Of the network with these weights, for every row."""
    import jax

    with jax.enable_x64(True):
        return np.asarray(_predicted(network, jax.numpy.asarray(weights), stream))


def _predicted(network: Network, flat: Any, stream: Stream) -> Any:
    import jax
    from jax.flatten_util import ravel_pytree

    params = ravel_pytree(network.model.zeros(stream.X.shape[1]))[1](flat)
    return jax.vmap(network.model, (None, 0))(params, stream.X)
