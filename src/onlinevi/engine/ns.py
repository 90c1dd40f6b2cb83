"""The functions that shared code may call: one name, three engines.

A loss or a rule is written once, with operators and these functions. The compiled loop gets their scalar forms (see
``machine``); an array caller gets numpy's, or JAX's when an argument is JAX's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlinevi.engine.square import square_times
from onlinevi.engine.triangle import fold_triangle, triangle_times
from onlinevi.engine.types import Real

__all__ = [
    "LANES",
    "SCRATCH",
    "absolute",
    "erf",
    "exp",
    "fold_triangle",
    "isfinite",
    "log",
    "log1p",
    "maximum",
    "minimum",
    "one_by_one",
    "one_vector",
    "prefetch",
    "scratch",
    "short_vectors",
    "sqrt",
    "square_times",
    "triangle_times",
    "where",
]


def _library(*values: Real) -> Any:
    if any(type(value).__module__.startswith("jax") for value in values):
        import jax.numpy

        return jax.numpy
    return np


def sqrt(x: Real) -> Real:
    return _library(x).sqrt(x)


def exp(x: Real) -> Real:
    return _library(x).exp(x)


def log(x: Real) -> Real:
    return _library(x).log(x)


def log1p(x: Real) -> Real:
    return _library(x).log1p(x)


def erf(x: Real) -> Real:
    if _library(x) is np:
        from scipy import special  # a tenth of a second to import: only those who use it pay

        return special.erf(x)
    from jax.scipy import special as jax_special

    return jax_special.erf(x)


def absolute(x: Real) -> Real:
    return _library(x).abs(x)


def isfinite(x: Real) -> Real:
    return _library(x).isfinite(x)


def maximum(x: Real, y: Real) -> Real:
    return _library(x, y).maximum(x, y)


def minimum(x: Real, y: Real) -> Real:
    return _library(x, y).minimum(x, y)


def prefetch(vector: Real, j: Real) -> None:
    """Compiled loops ask memory for vector[j] ahead of time; elsewhere it does nothing."""


SCRATCH = 64
"""How many numbers ``scratch`` holds."""


def scratch(like: Real) -> Any:
    """Room in compiled loops for a few numbers of the type of ``like``."""
    raise TypeError("scratch is for compiled loops")


def one_by_one() -> None:
    """It keeps a compiled loop from reading vectors; elsewhere it does nothing."""


LANES = 8
"""How many turns of a loop ``one_vector`` takes at once: doubles of 64 bytes."""


def one_vector() -> None:
    """The LANES turns of the compiled loop that it stands in are one vector; elsewhere it does nothing."""


def short_vectors() -> None:
    """It keeps the loops of a compiled function from vectors of more than 32 bytes; elsewhere it does nothing."""


def where(condition: Real, x: Real, y: Real) -> Real:
    """Select, never multiply by a comparison: inf·0 is NaN."""
    return _library(condition, x, y).where(condition, x, y)
