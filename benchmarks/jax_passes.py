"""The same filters as one would write them in JAX: a compiled scan over the rows, in 64 bits.

SVB with the hinge loss is the library's own rule. The extended Kalman filters are those of the packages BONG and rebayes for
Bernoulli labels, diagonal and full; these packages are not published as such, so the standard recursion stands for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Pass = Callable[[], np.ndarray]


def passes(X: np.ndarray, y: np.ndarray) -> dict[str, Callable[[slice], Pass]]:
    """Each filter over the rows of a slice, compiled at its first call; a pass returns the mean."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)

    def made(step: Callable[..., Any], start: Callable[[int], Any]) -> Callable[[slice], Pass]:
        compiled = jax.jit(lambda begin, rows: jax.lax.scan(step, begin, rows)[0])

        def over(part: slice) -> Pass:
            rows = jnp.asarray(X[part]), jnp.asarray(y[part])
            return lambda: np.asarray(compiled(start(X.shape[1]), rows)[0])

        return over

    def svb(belief: Any, event: Any) -> Any:
        mean, std, count = belief
        x, label = event
        a, v = mean @ x, jnp.sqrt(jnp.square(std * x).sum())
        r = (1.0 - label * a) / v
        slope = -label * 0.5 * jax.lax.erfc(-r * 0.7071067811865476)
        u = 0.5 / jnp.sqrt(count) * 0.3989422804014327 * jnp.exp(-0.5 * r * r) / v * x * x
        mean = jnp.clip(mean - slope * x / jnp.sqrt(count), -20.0, 20.0)
        return (mean, jnp.clip(std / (jnp.sqrt(1.0 + u * u) + u), 0.0, 1.0), count + 1.0), None

    def diagonal(belief: Any, event: Any) -> Any:
        mean, precision = belief
        x, label = event
        p = jax.nn.sigmoid(mean @ x)
        precision = precision + p * (1.0 - p) * x * x
        return (mean + (0.5 * (label + 1.0) - p) * x / precision, precision), None

    def full(belief: Any, event: Any) -> Any:
        mean, covariance = belief
        x, label = event
        p = jax.nn.sigmoid(mean @ x)
        noise = p * (1.0 - p)
        through = covariance @ x
        gain = through * noise / (noise * noise * (x @ through) + noise)
        covariance = covariance - jnp.outer(gain, noise * through)
        return (mean + gain * (0.5 * (label + 1.0) - p), covariance), None

    return {
        "JAX scan, SVB": made(svb, lambda dim: (jnp.zeros(dim), jnp.ones(dim), jnp.asarray(1.0))),
        "JAX scan, diagonal EKF": made(diagonal, lambda dim: (jnp.zeros(dim), jnp.ones(dim))),
        "JAX scan, full EKF": made(full, lambda dim: (jnp.zeros(dim), jnp.eye(dim))),
    }
