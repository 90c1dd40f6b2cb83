"""Features of random directions: waves of Fourier's, and ramps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from onlinevi.engine import Kernel as Loop
from onlinevi.engine import Vector, compose, ns
from onlinevi.learners.expand.base import FeatureMap, Places, whole_number

Kernel: TypeAlias = Literal["gaussian", "laplace", "cauchy"]

_NORMS, _OFFSETS, _COLUMNS = range(3)
"""Behind a seed: what is drawn. Those of columns have all numbers from the last one on."""
ROOT_2 = math.sqrt(2.0)
COSINE = np.array([(-1.0) ** p / math.factorial(2 * p) for p in range(8, -1, -1)])
SINE = np.array([(-1.0) ** p / math.factorial(2 * p + 1) for p in range(8, -1, -1)])
"""Taylor's coefficients of cos x and of sin x / x by x², the highest power first: to 2e-18 within ±π/4."""
_NO_OFFSETS = np.empty(0)
TOGETHER = 64
"""Columns that are drawn at once: to begin anew takes as long as to draw a thousand numbers."""


@dataclass(frozen=True)
class Fourier(FeatureMap):
    """Random Fourier features (Rahimi and Recht, 2007): √2·cos⟨w, z⟩ and √2·sin⟨w, z⟩ for ``count``/2 random w.

    ⟨φ(x), φ(z)⟩/count is an unbiased estimate of a kernel k(x − z), and a linear function of the features nearly one of the
    kernel's: ``gaussian`` e^(−‖δ‖²/2σ²), ``laplace`` e^(−‖δ‖/σ), or ``cauchy`` 1/(1 + ‖δ‖²/σ²), whose w have a normal law, a
    multivariate Cauchy or a multivariate Laplace law. σ is ``scale``·√(d/2) for the d columns at the start, so that prepared
    rows are some σ apart whatever d is; of several scales, w take turns. Up to d directions at a time are orthogonal, which
    makes the estimate better and leaves it unbiased (Yu et al., 2016).

    A column that joins has a part in every feature, with draws of its own: where it is 0 nothing changes.

    >>> import numpy as np, onlinevi as ovi
    >>> one, other = ovi.Fourier(2000).features(np.array([[0.5, 0.0], [0.0, 1.0]]), start=2) / np.sqrt(2000)
    >>> bool(abs(one @ other - np.exp(-0.5 * 1.25)) < 0.03)
    True
    """

    count: int = 100
    scale: float | tuple[float, ...] = 1.0
    seed: int = 0
    kernel: Kernel = "gaussian"
    name: ClassVar[str] = "fourier"

    def __post_init__(self) -> None:
        whole_number(self.count, "count", 2, 100)
        whole_number(self.seed, "seed", 0, 0)
        if self.count % 2:
            raise ValueError(f"count={self.count}: features come in pairs, a cosine and a sine; try {self.count + 1}")
        if isinstance(self.scale, list):
            object.__setattr__(self, "scale", tuple(self.scale))
        if not self.scales or not all(1e-6 <= one <= 1e6 for one in self.scales):
            raise ValueError(f"scale={self.scale!r}: needs a number from 1e-6 to 1e6, or several; try 1.0")
        if self.kernel not in ("gaussian", "laplace", "cauchy"):
            raise ValueError(f'kernel={self.kernel!r}: needs "gaussian", "laplace" or "cauchy"')

    @property
    def scales(self) -> tuple[float, ...]:
        return self.scale if isinstance(self.scale, tuple) else (self.scale,)

    def frequencies(self, start: int, dim: int) -> Vector:
        """The random w, a column each."""
        return _frequencies(self, start, dim)

    def since(self, start: int, dim: int) -> Places:
        return np.zeros(self.count, dtype=np.int64)

    def features(self, Z: Any, start: int) -> Vector:
        return filled(waves, self.count, Z, _turns(self, start, Z.shape[1]), _NO_OFFSETS)

    def names(self, columns: Sequence[str], start: int) -> list[str]:
        return [f"{wave} {k}" for wave in ("cos", "sin") for k in range(self.count // 2)]

    def shares(self, start: int, dim: int) -> Vector:
        return np.tile(_parts(self.frequencies(start, dim)), (2, 1))


@lru_cache(maxsize=32)
def _frequencies(fourier: Fourier, start: int, dim: int) -> Vector:
    number = fourier.count // 2
    drawn = gaussians(fourier.seed, dim, number)
    drawn[:start] = _first(fourier.seed, start, number)
    rng = np.random.default_rng([fourier.seed, _NORMS])
    # All three laws are normal ones of a random length: the kernel of the mixture is the mixture of the kernels.
    if fourier.kernel == "laplace":
        drawn /= np.abs(rng.standard_normal(number))
    elif fourier.kernel == "cauchy":
        drawn *= np.sqrt(2.0 * rng.standard_exponential(number))
    drawn /= np.resize(fourier.scales, number) * math.sqrt(max(start, 1) / 2.0)
    drawn.setflags(write=False)
    return drawn


@lru_cache(maxsize=32)
def _first(seed: int, start: int, number: int) -> Vector:
    """Of the columns at the start: they stay as they are when others join."""
    return orthogonal(gaussians(seed, start, number))


@lru_cache(maxsize=32)
def _turns(fourier: Fourier, start: int, dim: int) -> Vector:
    return _frequencies(fourier, start, dim) / (2.0 * math.pi)


@dataclass(frozen=True)
class Relu(FeatureMap):
    """Ramps √2·max(0, ⟨w, z⟩ + b) in random directions, with random kinks: a layer of a network that is not trained.

    ⟨w, z⟩ of prepared rows has about the variance 1, and b is N(0, 1). A column that joins has a part in every feature, with
    draws of its own: where it is 0 nothing changes.
    """

    count: int = 100
    seed: int = 0
    name: ClassVar[str] = "relu"

    def __post_init__(self) -> None:
        whole_number(self.count, "count", 1, 100)
        whole_number(self.seed, "seed", 0, 0)

    def since(self, start: int, dim: int) -> Places:
        return np.zeros(self.count, dtype=np.int64)

    def features(self, Z: Any, start: int) -> Vector:
        return filled(ramps, self.count, Z, _directions(self, start, Z.shape[1]), _offsets(self))

    def names(self, columns: Sequence[str], start: int) -> list[str]:
        return [f"ramp {k}" for k in range(self.count)]

    def shares(self, start: int, dim: int) -> Vector:
        return _parts(_directions(self, start, dim))


@lru_cache(maxsize=32)
def _directions(ramps: Relu, start: int, dim: int) -> Vector:
    return gaussians(ramps.seed, dim, ramps.count) / math.sqrt(max(start, 1))


@lru_cache(maxsize=32)
def _offsets(ramps: Relu) -> Vector:
    return np.random.default_rng([ramps.seed, _OFFSETS]).standard_normal(ramps.count)


def gaussians(seed: int, dim: int, number: int) -> Vector:
    """N(0, 1), a row for each column: those of a column are the same, however many columns there are."""
    chunks = [
        np.random.default_rng([seed, _COLUMNS + chunk]).standard_normal((TOGETHER, number))
        for chunk in range(math.ceil(dim / TOGETHER))
    ]
    return np.concatenate([np.empty((0, number)), *chunks])[:dim]


def orthogonal(drawn: Vector) -> Vector:
    """The same lengths, in directions that are orthogonal among as many columns as there are rows, block by block.

    By Gram and Schmidt, twice, in numpy's own order of summation: LAPACK's differs from machine to machine.
    """
    size = len(drawn)
    found = np.array(drawn)
    for low in range(0, drawn.shape[1] if size else 0, max(size, 1)):
        block = found[:, low : low + size]
        lengths = np.sqrt((block * block).sum(axis=0))
        for _ in range(2):
            for k in range(block.shape[1]):
                block[:, k] /= math.sqrt((block[:, k] * block[:, k]).sum())
                rest = block[:, k + 1 :]
                rest -= np.outer(block[:, k], (block[:, k : k + 1] * rest).sum(axis=0))
        block *= lengths
    return found


def filled(loop: Loop, count: int, Z: Any, directions: Vector, offsets: Vector) -> Vector:
    """What a loop makes of the rows of Z in these directions, so many features of each."""
    found = np.zeros((Z.shape[0], count))
    if hasattr(Z, "tocsr"):  # then ⟨w, z⟩ costs what is stored, and nothing is left to be added
        found[:, : directions.shape[1]] = Z @ directions
        Z = np.empty((Z.shape[0], 0))
    loop(np.ascontiguousarray(Z), directions, offsets, found)
    return found


# Loops, in which each row is added up in the order of its columns: BLAS adds otherwise in blocks of another size.


def project(Z: Any, i: int, directions: Any, found: Any) -> None:
    """Adds to the row of ``found`` ⟨w, z⟩ for each direction w."""
    for j in range(Z.shape[1]):
        for k in range(np.uint64(directions.shape[1])):
            found[i, k] += Z[i, j] * directions[j, k]


def fill_ramps(Z: Any, directions: Any, offsets: Any, found: Any) -> None:
    """√2·max(0, ⟨w, z⟩ + offset)."""
    for i in range(len(Z)):
        project(Z, i, directions, found)
        for k in range(np.uint64(len(offsets))):
            found[i, k] = ROOT_2 * ns.maximum(0.0, found[i, k] + offsets[k])  # what is not a number stays none


def fill_waves(Z: Any, turns: Any, offsets: Any, found: Any) -> None:
    """√2·cos and, behind them, √2·sin of the numbers of turns that directions give, by Taylor's polynomials to the last digit.

    They are for an eighth of a turn to both sides; quarters of a turn change sines into cosines, and signs.
    """
    number = np.uint64(turns.shape[1])
    for i in range(len(Z)):
        project(Z, i, turns, found)
        for k in range(number):
            quarters = np.floor(4.0 * found[i, k] + 0.5)
            x = 2.0 * math.pi * (found[i, k] - 0.25 * quarters)
            side = quarters - 4.0 * np.floor(0.25 * quarters)
            x2, cosine, sine = x * x, COSINE[0], SINE[0]
            for p in range(1, len(COSINE)):
                cosine, sine = cosine * x2 + COSINE[p], sine * x2 + SINE[p]
            sine *= x
            turned, half = side == 1.0 or side == 3.0, side >= 2.0
            up, along = ns.where(turned, cosine, sine), ns.where(turned, sine, cosine)
            found[i, number + k] = ROOT_2 * ns.where(half, -up, up)
            found[i, k] = ROOT_2 * ns.where(half == turned, along, -along)


ramps, waves = compose(fill_ramps, {}), compose(fill_waves, {})


def _parts(directions: Vector) -> Vector:
    """How much of each direction, a column of them, each coordinate is."""
    sizes = np.abs(directions).T
    return sizes / sizes.sum(axis=1, keepdims=True) if sizes.shape[1] else sizes
