"""Rows as a learner wants them, whatever the units of the data: what people call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlinevi.data import Rows, SparseRows, as_rows, blocks, one_row
from onlinevi.engine import Vector
from onlinevi.learners.base import BadRow
from onlinevi.learners.columns import checked, keeping
from onlinevi.learners.described import CheckpointError, Described, Stored, check_finite, whole
from onlinevi.learners.inputs.moments import merged, of_stored, of_values
from onlinevi.learners.inputs.passes import (
    COUNT,
    FINITE,
    HEAD,
    INTERCEPT,
    KIND,
    LARGEST,
    MISSING,
    PER_SQUASH,
    ROUNDING,
    STANDARDISE,
    UNIT_ROWS,
    compiled,
)
from onlinevi.learners.inputs.state import CENTRED, NONE_YET, UNCENTRED, InputState

ROWS_SEEN = {"none": NONE_YET, "dense": CENTRED, "sparse": UNCENTRED}
MOMENTS = ("lag", "mean", "square")
"""What a file calls the kinds of moments, and the moments."""

_TOGETHER = np.empty(0)
_TOGETHER.setflags(write=False)  # as the state's array: one type of argument, one pass to compile


class RawWeights(NamedTuple):
    """A linear predictor in the units of the data: intercept + ⟨weights, x⟩."""

    intercept: float
    weights: Vector
    std: Vector | None
    """The std of each weight, where stds were given."""


@dataclass(frozen=True)
class Inputs:
    """How rows are prepared, each with the moments of the rows so far and of itself; nothing later is looked at.

    ``standardise``: (x − mean)/std, column by column; a column that has not varied yet is 0. ``squash`` = c bends what lies
    beyond ±⅔c, smoothly, so that no value exceeds ±c; None leaves it. ``unit_rows`` divides a row by its length.
    ``intercept`` puts a column of ones first. ``missing``: NaN is a missing value, left out of the moments and left NaN for
    ``Linear(missing=True)``. ``fixed``: no row changes the moments, which another stream has taught; so several streams are
    prepared by one map, and what was learned of each can be merged.

    Sparse rows stay sparse: they are divided by the root of their columns' mean square, zeros included, and not centred. But
    columns of which ``init`` is told are treated as in dense rows, and a value of theirs that is not stored is 0.

    >>> import numpy as np, onlinevi as ovi
    >>> inputs = ovi.Inputs(squash=None)
    >>> state, Z = inputs.update_many(inputs.init(1), [[1e6], [3e6], [2e6]])
    >>> Z.tolist()
    [[1.0, 0.0], [1.0, 1.0], [1.0, 0.0]]
    """

    standardise: bool = True
    squash: float | None = 3.0
    intercept: bool = True
    unit_rows: bool = False
    missing: bool = False
    fixed: bool = False

    def __post_init__(self) -> None:
        if self.squash is not None and not 1e-6 <= self.squash <= 1e6:
            raise ValueError(f"squash={self.squash!r}: needs a number from 1e-6 to 1e6, or None; try 3.0")
        if self.missing and not self.standardise:
            raise ValueError("missing=True needs standardise=True: only beside a mean and a std is a missing value N(0, 1)")
        if self.missing and self.unit_rows:
            raise ValueError("missing=True with unit_rows=True: a row with missing values has no known length; choose one")

    def init(self, dim: int, centred: Any = ()) -> InputState:
        """The state before the first row of ``dim`` columns. ``centred`` names those that are centred though rows are sparse.

        >>> import onlinevi as ovi
        >>> from scipy.sparse import csr_matrix
        >>> inputs = ovi.Inputs(squash=None)
        >>> state, Z = inputs.update_many(inputs.init(2, centred=[0]), csr_matrix([[4.0, 0.0], [0.0, 2.0]]))
        >>> Z.toarray().round(2).tolist()
        [[1.0, 0.0, 0.0], [1.0, -1.0, 1.41]]
        """
        if dim < 1:
            raise ValueError(f"dim={dim}: needs at least one column")
        places = np.unique(np.asarray(centred, dtype=np.int64))
        if len(places) and not 0 <= places[0] <= places[-1] < dim:
            raise ValueError(f"centred={centred}: needs numbers of columns from 0 to {dim - 1}")
        return InputState.start(dim, places)

    def dim_out(self, dim: int) -> int:
        """How many columns the prepared rows have."""
        return dim + self.intercept

    def update(self, state: InputState, x: Any) -> tuple[InputState, Vector]:
        """Prepare one row, and take it into the moments. The state given is left as it is."""
        state, prepared = self.update_many(state, _as_matrix(x))
        return state, prepared[0]

    def update_many(self, state: InputState, X: Any) -> tuple[InputState, Any]:
        """Prepare rows in their order, and take them into the moments; the same bits as one row at a time."""
        if self.fixed:
            if not state.count:
                raise ValueError("fixed=True needs moments: give the state that other Inputs have learned, not a new one")
            return state, self.apply(state, X)
        rows, columns = as_rows(X), checked(state, X)
        kind = _kind(state, rows)
        array = np.array(state.array)
        prepared = self._prepare(rows, state, array, _TOGETHER)
        array[KIND] = kind if rows.count else state.kind
        return keeping(InputState(array, state.centred), columns), prepared

    def apply(self, state: InputState, X: Any) -> Any:
        """A row, or each row of a matrix by itself, as it would be prepared if it came next. Changes nothing."""
        if not hasattr(X, "shape") or len(X.shape) == 1:
            X = np.asarray(X, dtype=float)
            if X.ndim == 1:
                return self.apply(state, _as_matrix(X))[0]
        checked(state, X)
        rows = as_rows(X)
        _kind(state, rows)
        return self._prepare(rows, state, np.array(state.array), state.array)

    def observe(self, state: InputState, X: Any) -> InputState:
        """Take rows into the moments and prepare none; to rounding what ``update_many`` makes of them, at less cost."""
        rows = as_rows(X)
        _kind(state, rows)
        if isinstance(rows, SparseRows):
            self._check_values(rows, np.asarray(rows.data, dtype=float), 0)
            return merged([state, of_stored(rows.data, rows.indices, rows.starts, rows.dim, state.centred)])
        for low, high in blocks(rows):
            values = np.asarray(rows.block(low, high), dtype=float)
            self._check_values(rows, values, low)
            state = merged([state, of_values(values)])
        return state

    def merge(self, states: Sequence[InputState]) -> InputState:
        """The moments of the rows of several streams, as if they were one (Chan, Golub and LeVeque, 1979).

        >>> import numpy as np, onlinevi as ovi
        >>> inputs, X = ovi.Inputs(), np.array([[1.0], [5.0], [9.0]])
        >>> one, two = (inputs.observe(inputs.init(1), part) for part in (X[:1], X[1:]))
        >>> inputs.merge([one, two]).mean.tolist(), inputs.merge([one, two]).square.tolist()
        ([5.0], [32.0])
        """
        if not states:
            raise ValueError("nothing to merge: give the moments of one stream or more")
        alike = {(state.dim, state.kind, tuple(state.centred)) for state in states if state.count}
        if len({state.dim for state in states}) > 1 or len(alike) > 1:
            raise ValueError(
                "these moments are of different columns, are centred otherwise, or are of dense and of sparse rows"
            )
        return merged(states)

    def widen(self, state: InputState, dim: int) -> InputState:
        """The state for rows of ``dim`` columns: the new ones joined at the end, never seen before."""
        return state.widened(dim)

    def raw_weights(self, state: InputState, mean: Any, std: Any = None) -> RawWeights:
        """Weights of prepared rows as weights of the data. Exact for ``squash=None``, else the slope at the columns' means.

        >>> import numpy as np, onlinevi as ovi
        >>> inputs = ovi.Inputs()
        >>> state, Z = inputs.update_many(inputs.init(1), [[10.0], [30.0]])
        >>> inputs.raw_weights(state, [5.0, 2.0])
        RawWeights(intercept=1.0, weights=array([0.2]), std=None)
        """
        if self.unit_rows:
            raise ValueError("unit_rows=True: a row divided by its length is no linear map, so no weights of the data exist")
        mean, first = np.asarray(mean, dtype=float), int(self.intercept)
        if mean.shape != (self.dim_out(state.dim),) or (std is not None and np.shape(std) != mean.shape):
            raise ValueError(
                f"mean has shape {mean.shape}: needs {self.dim_out(state.dim)} weights, as the prepared rows have"
            )
        varied = np.square(state.std) > ROUNDING * np.square(state.mean)
        per_unit = np.divide(1.0, state.std, out=np.zeros(state.dim), where=varied) if self.standardise else np.ones(state.dim)
        weights = mean[first:] * per_unit
        intercept = (float(mean[0]) if self.intercept else 0.0) - float(weights @ state.mean)
        return RawWeights(intercept, weights, None if std is None else np.asarray(std, dtype=float)[first:] * per_unit)

    def refusal(self, x: Any, name: Callable[[int], str] = "column {}".format) -> str | None:
        """Why a row is refused, by the name of its first value that is none to learn from; None where all are.

        >>> import onlinevi as ovi
        >>> ovi.Inputs(missing=True).refusal([1.0, float("nan"), float("inf")])
        'column 2 is inf: needs finite numbers; drop the row, or fill it in'
        """
        row = np.asarray(x, dtype=float)
        most = LARGEST if self.standardise else FINITE
        refused = np.flatnonzero(~(np.abs(row) <= most) & ~(np.isnan(row) & self.missing))
        if not len(refused):
            return None
        k = int(refused[0])
        if np.isfinite(row[k]):
            return f"{name(k)} is {row[k]}: beyond ±{LARGEST} sums of squares overflow; change its unit"
        ways = "give Inputs(missing=True), drop the row, or fill it in" if np.isnan(row[k]) else "drop the row, or fill it in"
        return f"{name(k)} is {row[k]}: needs finite numbers; {ways}"

    def describe(self, state: InputState) -> Described:
        """The moments in plain terms."""
        check_finite(state.array, "moments of columns")
        seen = next(name for name, kind in ROWS_SEEN.items() if kind == state.kind)
        centred = {"centred": state.centred.tolist()} if len(state.centred) else {}
        facts = {"count": state.count, "rows_seen": seen, **centred}
        return Described(facts, {name: getattr(state, name) for name in MOMENTS})

    def restore(self, stored: Stored) -> InputState:
        """The moments that were described."""
        dim = whole(stored.length("mean"), "number of columns")
        array = np.zeros(HEAD + 3 * dim)
        array[COUNT] = stored.facts["count"]
        array[KIND] = ROWS_SEEN[stored.facts["rows_seen"]]
        for k, name in enumerate(MOMENTS):
            stored.fill(name, array[HEAD + k * dim : HEAD + (k + 1) * dim])
        check_finite(array, "moments of columns")
        centred = stored.facts.get("centred", [])
        ascending = all(type(place) is int for place in centred) and sorted({*centred}) == centred
        if not ascending or (centred and not 0 <= centred[0] <= centred[-1] < dim):
            raise CheckpointError(f"its centred columns are {centred!r}: needs ascending numbers from 0 to {dim - 1}")
        return InputState(array, centred)

    @cached_property
    def settings(self) -> Vector:
        """As the compiled passes read them."""
        settings = np.zeros(5)
        settings[STANDARDISE], settings[INTERCEPT], settings[UNIT_ROWS] = self.standardise, self.intercept, self.unit_rows
        settings[PER_SQUASH], settings[MISSING] = 0.0 if self.squash is None else 1.0 / self.squash, self.missing
        return settings

    def _prepare(self, rows: Rows, state: InputState, array: Vector, start: Vector) -> Any:
        """The prepared rows; changes ``array``."""
        also: tuple[Vector, ...] = ()
        prepared: _SparseOut | _DenseOut
        if isinstance(rows, SparseRows):
            rows = _storing(rows, state.centred)
            prepared, also = _SparseOut(rows, self), (_marked(state.dim, state.centred),)
        else:
            prepared = _DenseOut(rows, self)
        one_pass = compiled(rows.sparse)
        for low, high in blocks(rows):
            block = (*rows.block(low, high), *also) if also else rows.block(low, high)
            used = one_pass(block, array, start, self.settings, prepared.block(low, high))
            if low + used < high:
                raise self._bad_row(rows, low + used)
        return prepared.whole()

    def _check_values(self, rows: Rows, values: Vector, low: int) -> None:
        """Refuse a row that ``update_many`` would."""
        refused = ~(np.abs(values) <= (LARGEST if self.standardise else FINITE)) & ~(np.isnan(values) & self.missing)
        if refused.any():
            first = int(np.argwhere(refused)[0][0])
            row = int(np.searchsorted(rows.starts, first, side="right")) - 1 if isinstance(rows, SparseRows) else low + first
            raise self._bad_row(rows, row)

    def _bad_row(self, rows: Rows, i: int) -> BadRow:
        return BadRow(i, str(self.refusal(one_row(rows, i), lambda k: f"column {_column(rows, i, k)}")))


class _DenseOut:
    def __init__(self, rows: Rows, inputs: Inputs) -> None:
        self._matrix = np.empty((rows.count, inputs.dim_out(rows.dim)))

    def block(self, start: int, stop: int) -> Vector:
        return self._matrix[start:stop]

    def whole(self) -> Vector:
        return self._matrix


class _SparseOut:
    def __init__(self, rows: SparseRows, inputs: Inputs) -> None:
        size = len(rows.data) + rows.count * inputs.intercept
        kind = np.int32 if max(size, rows.dim + 1) < 2**31 else np.int64
        self._values, self._places = np.empty(size), np.empty(size, dtype=kind)
        self._starts = (rows.starts + np.arange(rows.count + 1) * inputs.intercept).astype(kind)
        self._shape = rows.count, inputs.dim_out(rows.dim)

    def block(self, start: int, stop: int) -> Any:
        return self._values, self._places, self._starts[start : stop + 1]

    def whole(self) -> Any:
        from scipy.sparse import csr_matrix

        return csr_matrix((self._values, self._places, self._starts), shape=self._shape)


def _marked(dim: int, columns: NDArray[np.int64]) -> Vector:
    """1 for these columns, 0 for the others."""
    marks = np.zeros(dim)
    marks[columns] = 1.0
    return marks


def _storing(rows: SparseRows, columns: NDArray[np.int64]) -> SparseRows:
    """The same rows with zeros stored where one of these columns has none."""
    if not len(columns):
        return rows
    from scipy.sparse import csr_matrix

    stored = slice(0, rows.starts[-1])
    indices, numbers = rows.indices[stored], np.repeat(np.arange(rows.count), np.diff(rows.starts))
    asked = _marked(rows.dim, columns)[indices] > 0.0
    if np.count_nonzero(asked) == rows.count * len(columns):
        return rows
    lacking = np.ones((rows.count, len(columns)), dtype=bool)
    lacking[numbers[asked], np.searchsorted(columns, indices[asked])] = False
    where, which = np.nonzero(lacking)
    values = np.concatenate([rows.data[stored], np.zeros(len(where), dtype=rows.data.dtype)])
    places = np.concatenate([numbers, where]), np.concatenate([indices, columns[which]])
    return SparseRows(csr_matrix((values, places), shape=(rows.count, rows.dim)))


def _as_matrix(x: Any) -> Vector:
    row = np.asarray(x, dtype=float)
    if row.ndim != 1:
        raise ValueError(f"x has shape {row.shape}: needs one value a column; for a matrix use update_many")
    return row[np.newaxis]


def _column(rows: Rows, i: int, k: int) -> int:
    """Which column a row's k-th stored value is in."""
    return int(rows.indices[rows.starts[i] + k]) if isinstance(rows, SparseRows) else k


def _kind(state: InputState, rows: Rows) -> float:
    """Refuse rows that the state's moments are not of."""
    if rows.dim != state.dim:
        raise ValueError(f"X has {rows.dim} columns, the state {state.dim}: every block needs the same; new ones need widen()")
    kind = UNCENTRED if rows.sparse else CENTRED
    if state.kind not in (NONE_YET, kind):
        had, way = ("dense", "X.toarray()") if state.kind == CENTRED else ("sparse", "scipy.sparse.csr_matrix(X)")
        raise ValueError(f"the state has seen {had} rows, whose moments differ from those of others: give {way}")
    return kind
