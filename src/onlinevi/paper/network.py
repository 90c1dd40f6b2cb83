"""The nonconvex panel of Figure 1: one hidden ReLU layer, online with Monte Carlo gradients, and offline for its line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onlinevi.engine import Vector
from onlinevi.losses import Squared
from onlinevi.paper.panels import Stream
from onlinevi.rules import Rule

WIDTH = 50
SAMPLES = 10
"""Draws of all weights a step, for the expected gradient."""
TRAININGS = 4
ITERATIONS = 300
BOX = 20.0


def online(rule: Rule, stream: Stream, seed: int, progress: Callable[[float], None]) -> Vector:
    """A_t of one rule. The point of OGA starts at a small draw: at zero weights a ReLU network has no gradient."""
    from onlinevi.learners import Differentiable, MonteCarlo, ReLUNetwork

    count, dim = stream.X.shape
    network = ReLUNetwork(WIDTH)
    learner = Differentiable(network, loss=Squared(), rule=rule, gradient=MonteCarlo(SAMPLES))
    start = None if rule.gaussian else network.init(dim, np.random.default_rng(seed))
    trace = learner.learn(
        stream.X,
        stream.y,
        params=network.zeros(dim),
        start=start,
        seed=seed,
        progress=lambda done: progress(done / count),
    )
    return trace.average_loss


def offline(stream: Stream, progress: Callable[[float], None]) -> tuple[float, Vector]:
    """The best of several offline trainings from different starts: its average loss and its weights.

    No bound says that it is the least.
    """
    import jax
    from scipy.optimize import minimize

    from onlinevi.learners import ReLUNetwork, flatten

    network, dim = ReLUNetwork(WIDTH), stream.X.shape[1]
    with jax.enable_x64(True):
        from jax.flatten_util import ravel_pytree

        unflatten = ravel_pytree(network.zeros(dim))[1]

        def average(flat: Any) -> Any:
            predictions = jax.vmap(network, (None, 0))(unflatten(flat), stream.X)
            return jax.numpy.mean((stream.y - predictions) ** 2)

        both = jax.jit(jax.value_and_grad(average))
        found = []
        for seed in range(TRAININGS):
            start = flatten(network.init(dim, np.random.default_rng(seed)))
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


def predictions(weights: Vector, stream: Stream) -> Vector:
    """Of the network with these weights, for every row."""
    hidden, output = weights[: WIDTH * stream.X.shape[1]], weights[WIDTH * stream.X.shape[1] :]
    return np.asarray(np.maximum(stream.X @ hidden.reshape(WIDTH, -1).T, 0.0) @ output)
