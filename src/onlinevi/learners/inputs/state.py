"""What preparing rows must remember: a value, one packed array with named read-only views."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinevi.engine import Vector
from onlinevi.learners.columns import Named
from onlinevi.learners.inputs.passes import COUNT, HEAD, KIND

NONE_YET, CENTRED, UNCENTRED = 0.0, 1.0, 2.0
"""The kinds of moments: those of dense rows are about the mean, those of sparse rows about 0, but for some columns."""


_NO_COLUMNS = np.empty(0, dtype=np.int64)


class InputState(Named):
    """The running moments of the columns after ``count`` rows."""

    __slots__ = ("array", "centred")

    def __init__(self, array: Vector, centred: Any = ()) -> None:
        array.setflags(write=False)
        self.array = array
        self.centred: NDArray[np.int64] = np.array(centred, dtype=np.int64) if len(centred) else _NO_COLUMNS
        """The columns that are centred though rows are sparse, ascending; of dense rows all are, and none is named."""
        self.centred.setflags(write=False)

    @classmethod
    def start(cls, dim: int, centred: Any = ()) -> InputState:
        """Before the first row."""
        return cls(np.zeros(HEAD + 3 * dim), centred)

    @property
    def count(self) -> int:
        """How many rows it has seen."""
        return int(self.array[COUNT])

    @property
    def dim(self) -> int:
        """How many columns they have."""
        return (len(self.array) - HEAD) // 3

    @property
    def kind(self) -> float:
        return float(self.array[KIND])

    @property
    def about_mean(self) -> NDArray[np.bool_]:
        """Of each column, whether its moments are about its mean, which is known then; else they are about 0."""
        about = np.full(self.dim, self.kind != UNCENTRED)
        about[self.centred] = True
        return about

    @property
    def lag(self) -> Vector:
        """How many of the rows each column has no value of: it joined later, or they were missing."""
        return self.array[HEAD : HEAD + self.dim]

    @property
    def counts(self) -> Vector:
        """How many values each column has had."""
        return np.asarray(self.count - self.lag)

    @property
    def mean(self) -> Vector:
        """The mean of each column so far; 0 where rows are sparse and the column is not centred."""
        return self.array[HEAD + self.dim : HEAD + 2 * self.dim]

    @property
    def square(self) -> Vector:
        """Σ (x − mean)² of each column."""
        return self.array[HEAD + 2 * self.dim :]

    @property
    def std(self) -> Vector:
        """The std of each column so far, over n; of columns that are not centred, the root of the mean square."""
        return np.asarray(np.sqrt(self.square / np.maximum(self.counts, 1.0)))

    def widened(self, dim: int, lag: Any = None, centred: Any = ()) -> InputState:
        """With further columns at the end: 0 in all rows but ``lag``, which have no value of them; by default never seen.

        ``centred`` names those of them to centre where rows are sparse.
        """
        if dim < self.dim:
            raise ValueError(f"dim={dim}: the state has {self.dim} columns already, and none can leave")
        new = np.zeros(dim - self.dim)
        joined = new + (self.array[COUNT] if lag is None else np.asarray(lag, dtype=float))
        array = np.concatenate([self.array[:HEAD], self.lag, joined, self.mean, new, self.square, new])
        return InputState(array, [*self.centred, *centred])

    def __repr__(self) -> str:
        return f"InputState(count={self.count}, dim={self.dim})"

    def __eq__(self, other: object) -> bool:
        alike = isinstance(other, InputState) and np.array_equal(self.array, other.array)
        return alike and np.array_equal(self.centred, other.centred)  # type: ignore[attr-defined]

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return InputState, (np.array(self.array), np.array(self.centred)), self.__dict__ or None
