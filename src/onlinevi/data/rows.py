"""Whatever holds rows, as the compiled loop reads it: C-ordered float blocks, or the three arrays of a CSR matrix."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

BLOCK_VALUES = 1 << 20
"""How many values a block holds: small enough to copy cheaply and to stop soon after Ctrl-C."""


class Rows(Protocol):
    """A matrix of features that can be read in blocks."""

    count: int
    dim: int
    sparse: bool

    @property
    def values_a_row(self) -> float:
        """How many values a row stores, on average."""

    def block(self, start: int, stop: int) -> Any:
        """These rows, as the compiled loop reads them."""

    def take(self, numbers: NDArray[np.int64]) -> Any:
        """The rows of these numbers, which ascend, as a matrix of their own."""


def blocks(rows: Rows, at_least: int = 0) -> Iterator[tuple[int, int]]:
    """The bounds of the blocks, in order; each has ``at_least`` so many values where there are as many."""
    size = max(1, int(max(BLOCK_VALUES, at_least) / max(1.0, rows.values_a_row)))
    for start in range(0, rows.count, size):
        yield start, min(start + size, rows.count)


def typed(values: Any, dtype: str | None) -> NDArray[Any]:
    """C-ordered numbers of this type; None keeps float32 and float64, and makes doubles of others.

    What is too large for float32 becomes infinite, and the row is refused as such.
    """
    if dtype == "float64" or (dtype is None and values.dtype != np.float32):
        return np.ascontiguousarray(values, dtype=np.float64)
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(values, dtype=np.float32)


class DenseRows:
    """A matrix that numpy can slice by rows."""

    sparse = False

    def __init__(self, matrix: NDArray[Any], dtype: str | None = None) -> None:
        if matrix.ndim != 2:
            raise ValueError(f"X has shape {matrix.shape}: needs rows × features; for one feature use X.reshape(-1, 1)")
        if matrix.dtype.kind not in "fiub":
            raise TypeError(f"X holds {matrix.dtype}, such as {matrix.flat[0]!r}: needs numbers; encode categories first")
        self.matrix, self.dtype = matrix, dtype
        self.count, self.dim = matrix.shape

    @property
    def values_a_row(self) -> float:
        return float(self.dim)

    def block(self, start: int, stop: int) -> NDArray[Any]:
        # The order of the values in memory decides the order of summation, so all blocks are brought to one.
        return typed(self.matrix[start:stop], self.dtype)

    def take(self, numbers: NDArray[np.int64]) -> NDArray[Any]:
        if not len(numbers):
            return np.empty((0, self.dim))
        first, last = int(numbers[0]), int(numbers[-1])
        block = self.block(first, last + 1)
        return block if last - first == len(numbers) - 1 else np.asarray(block[numbers - first])


class TableRows(DenseRows):
    """A pandas, polars or pyarrow table, copied a block at a time."""

    def __init__(self, table: Any, dtype: str | None = None) -> None:
        self.table = table
        self.count, self.dim = table.shape
        super().__init__(self._numbers(0, min(1, self.count)), dtype)
        self.count = table.shape[0]

    def block(self, start: int, stop: int) -> NDArray[Any]:
        return typed(self._numbers(start, stop), self.dtype)

    def _numbers(self, start: int, stop: int) -> NDArray[Any]:
        table, part = self.table, slice(start, stop)
        if hasattr(table, "iloc"):
            columns = [(name, table.iloc[part, j]) for j, name in enumerate(table.columns)]
        elif hasattr(table, "get_columns"):
            columns = [(column.name, column) for column in table[part].get_columns()]
        else:
            columns = list(zip(table.column_names, table.slice(start, stop - start).columns, strict=True))
        return np.column_stack([_column(name, values) for name, values in columns]) if columns else np.empty((stop - start, 0))


def _column(name: object, values: Any) -> NDArray[np.float64]:
    try:
        array = values.to_numpy()
        if array.dtype.kind not in "fiubO":  # dates would become nanoseconds, text its digits, complex numbers real ones
            raise TypeError(f"it holds {array.dtype}")
        if array.dtype.kind == "O" and (odd := next((one for one in array.flat if not _is_real(one)), None)) is not None:
            raise TypeError(f"it holds {odd!r}")
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"column {name!r} is not numeric ({error}): encode it, or drop it") from error


def _is_real(value: Any) -> bool:
    """Whether an object is a real number, or None for a missing one."""
    return value is None or isinstance(value, Real | Decimal | np.bool_)


def column_names(X: Any) -> tuple[str, ...]:
    """The names of a table's columns; none where they are not all text, as pandas numbers columns without names."""
    table = X.table if isinstance(X, TableRows) else X
    if not (hasattr(table, "columns") and hasattr(table, "shape")):
        return ()
    names = tuple(table.column_names if hasattr(table, "column_names") else table.columns)
    return names if all(isinstance(name, str) for name in names) else ()


class SparseRows:
    """A CSR matrix; its blocks share its arrays."""

    sparse = True

    def __init__(self, matrix: Any, dtype: str | None = None) -> None:
        if matrix.format in ("csc", "bsr"):
            matrix.check_format(full_check=True)  # to make rows of its columns, scipy follows its indices
        elif matrix.format == "coo" and matrix.nnz:
            for place, size in zip((matrix.row, matrix.col), matrix.shape, strict=True):
                if place.min() < 0 or place.max() >= size:
                    raise ValueError(f"X is no valid COO matrix: indices from {place.min()} to {place.max()}, for {size}")
        matrix = matrix.tocsr()
        if matrix.dtype.kind not in "fiub":
            raise TypeError(f"X holds {matrix.dtype}: needs real numbers")
        _check_csr(matrix)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        self.data = typed(matrix.data, dtype)
        self.indices, self.starts = matrix.indices, matrix.indptr
        self.count, self.dim = matrix.shape
        self.values_a_row = len(self.data) / max(1, self.count)

    def block(self, start: int, stop: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        return self.data, self.indices, self.starts[start : stop + 1]

    def take(self, numbers: NDArray[np.int64]) -> Any:
        from scipy.sparse import csr_matrix

        return csr_matrix((self.data, self.indices, self.starts), shape=(self.count, self.dim))[numbers]


def _check_csr(matrix: Any) -> None:
    """Refuse indices that lead out of the rows or the values: a compiled loop would follow them."""
    indices, starts, (count, dim) = matrix.indices, matrix.indptr, matrix.shape
    stored = min(len(matrix.data), len(indices))
    if len(starts) != count + 1 or starts[0] != 0 or starts[-1] > stored or (starts[1:] < starts[:-1]).any():
        raise ValueError(f"X is no valid CSR matrix: indptr needs {count + 1} ascending places from 0 to at most {stored}")
    used = indices[: starts[-1]]
    unsigned = used.view(f"u{used.itemsize}")  # of which a negative one is large: one look for both ends
    if len(used) and unsigned.max() >= dim:
        raise ValueError(f"X is no valid CSR matrix: indices go from {used.min()} to {used.max()}, it has {dim} columns")


class SpreadRows(DenseRows):
    """Sparse rows filled up with zeros, for rules that move every coordinate."""

    def __init__(self, rows: SparseRows) -> None:
        self.rows, self.count, self.dim = rows, rows.count, rows.dim

    def block(self, start: int, stop: int) -> NDArray[Any]:
        data, indices, starts = self.rows.block(start, stop)
        filled = np.zeros((stop - start, self.dim), dtype=data.dtype)
        part = slice(starts[0], starts[-1])
        filled[np.repeat(np.arange(stop - start), np.diff(starts)), indices[part]] = data[part]
        return filled


def as_row(x: Any) -> NDArray[Any]:
    """One row, or rows in a plain array: numbers, and NaN where a mask hides them."""
    array = _unmasked(x)
    if array.dtype.kind not in "fiub" and array.size and not all(map(_is_real, array.flat)):
        raise TypeError(f"x holds {array.dtype}, such as {array.flat[0]!r}: needs real numbers")
    return array


DOUBLE = np.dtype(np.float64)


def typed_row(x: Any, dtype: str) -> NDArray[Any]:
    """One row of this type. What nearly all events are is told at a glance."""
    if type(x) is np.ndarray and x.dtype is DOUBLE and dtype == "float64" and x.flags.c_contiguous:
        return x
    return typed(as_row(x), dtype)


def as_rows(X: Any, *, filled: bool = False, dtype: str | None = None) -> Rows:
    """X as rows; ``filled`` asks for dense blocks even where X is sparse, ``dtype`` for numbers of this type."""
    if hasattr(X, "tocsr"):
        return SpreadRows(SparseRows(X, dtype)) if filled else SparseRows(X, dtype)
    if hasattr(X, "columns") and hasattr(X, "shape"):
        return TableRows(X, dtype)
    return DenseRows(_unmasked(X), dtype)


def _unmasked(values: Any) -> NDArray[Any]:
    """An array, with NaN where a mask hides a value: what lies below the mask is none."""
    if not isinstance(values, np.ma.MaskedArray):
        return np.asarray(values)
    if not np.ma.is_masked(values):
        return values.data
    if values.dtype.kind not in "fiub":
        raise TypeError(f"a masked array holds {values.dtype}: needs numbers")
    kind = values.dtype if values.dtype.kind == "f" else np.dtype(np.float64)
    return np.where(np.ma.getmaskarray(values), np.array(np.nan, dtype=kind), values.data.astype(kind))


class Events(NamedTuple):
    """A block of events as the compiled loop reads them: every row has one label, and one weight where there are weights."""

    rows: Rows
    labels: NDArray[np.float64]
    weights: NDArray[np.float64]
    """Empty where every row counts once."""


def as_events(
    X: Any,
    y: Any,
    weights: Any = None,
    *,
    hint: str,
    dim: int | None = None,
    holder: str = "state",
    filled: bool = False,
    dtype: str | None = None,
) -> Events:
    """Check rows, labels and weights against each other, and give them as the compiled loop reads them.

    X may be rows already. ``hint`` says what to try where labels are no numbers. ``dim`` is how many features the rows must
    have, because ``holder`` (the state, some sums) has so many; ``filled`` and ``dtype`` are those of ``as_rows``.
    """
    rows = X if isinstance(X, DenseRows | SparseRows) else as_rows(X, filled=filled, dtype=dtype)
    labels = as_labels(y, hint)
    if dim is not None and rows.dim != dim:
        raise ValueError(f"X has {rows.dim} features, the {holder} {dim}: every block needs the same columns")
    if len(labels) != rows.count:
        raise ValueError(f"X has {rows.count} rows, y {len(labels)} labels: needs one label a row")
    return Events(rows, labels, as_weights(weights, rows.count))


def one_row(rows: Rows, i: int) -> NDArray[Any]:
    """The values of row i, those that are stored."""
    block = rows.block(i, i + 1)
    return np.asarray(block[0][slice(*block[2])] if rows.sparse else block[0])


def as_labels(y: Any, hint: str) -> NDArray[np.float64]:
    """Labels as floats; whether the loss takes them is for the loss to say."""
    labels = _unmasked(y.to_numpy() if hasattr(y, "to_numpy") else y)
    if labels.dtype.kind not in "fiub":
        example = labels.flat[0] if labels.size else None
        raise TypeError(f"labels hold {labels.dtype}, such as {example!r}: needs numbers; {hint}")
    if labels.ndim != 1:
        raise ValueError(f"labels have shape {labels.shape}: needs one label a row; try y.ravel()")
    return np.ascontiguousarray(labels, dtype=np.float64)


def as_weights(weights: Any, count: int) -> NDArray[np.float64]:
    """One weight a row, or none."""
    if weights is None:
        return np.empty(0)
    given = _unmasked(weights.to_numpy() if hasattr(weights, "to_numpy") else weights)
    if given.dtype.kind not in "fiub" and given.size:
        raise TypeError(f"weights hold {given.dtype}, such as {given.flat[0]!r}: needs numbers")
    array = np.ascontiguousarray(given, dtype=np.float64)
    if array.shape != (count,):
        raise ValueError(f"weights have shape {array.shape}, X has {count} rows: give one weight a row")
    return array
