"""Batches as matrices. Row by row, whatever the batches: the same rows give the same features in the same order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlinevi.data.schema.kinds import NEEDS, PARTS, Cells, Kind, cells, check_type, first_value, kind_of
from onlinevi.data.schema.schema import BUCKET, ONE, Schema, with_room
from onlinevi.data.schema.spelling import bucket
from onlinevi.data.sources import Policy, Refused, Stop
from onlinevi.data.stream import Batch
from onlinevi.data.values import EXACT, Names, arrow, as_it_came, texts
from onlinevi.engine import Vector


class Encoded(NamedTuple):
    """Rows for a learner."""

    X: Any
    """A dense matrix, or CSR: ``schema.width`` columns."""
    y: Vector | None
    """Labels, where the schema has a target and they were asked for."""
    rows: NDArray[np.int64]
    """Each row's number in the stream."""
    widths: NDArray[np.int64]
    """How many features there are when each row has come: those behind are brought by later rows, and 0 in it."""
    odd: int = 0
    """How many cells are not of their column's kind, and were taken as missing."""
    weights: Vector | None = None
    """How often each row counts, where a column says so."""
    beside: Mapping[str, Any] = {}
    """Columns that were asked for as they are."""

    def part(self, start: int, stop: int) -> Encoded:
        """Some of the rows; of those cut off, cells taken as missing are counted still."""
        own = slice(start, stop)
        beside = {name: values.slice(start, stop - start) for name, values in self.beside.items()}
        y, weights = (None if values is None else values[own] for values in (self.y, self.weights))
        return Encoded(self.X[own], y, self.rows[own], self.widths[own], self.odd, weights, beside)


def encode(
    schema: Schema,
    batch: Batch,
    bad: Policy | None = None,
    *,
    labels: bool = True,
    beside: Sequence[str] = (),
    refused: Mapping[int, tuple[str, str]] | None = None,
) -> tuple[Schema, Encoded]:
    """Turn the batch's rows into numbers, and give the schema with what they brought.

    ``labels=False`` is for rows to be predicted. ``refused`` has columns and reasons for which rows are refused already, by
    their places; such rows will have labels, and their weights are wanted. A row with a cell that is not of its column's kind,
    unless such cells are missing values (``Columns.odd``), or with no usable label or weight, goes to ``bad``. Where that
    raises, the rows before it can still be had: ``batch.slice`` up to the row that the exception names. ``beside`` names
    columns to be passed on.
    """
    encoder = BatchEncoder(schema, batch)
    lacking = arrow().nulls(len(batch), arrow().string())
    task, y, weights = schema.task, None, None
    reasons = dict(refused or {})
    if labels and schema.target is not None and task is not None:
        target = batch.columns.get(schema.target, lacking)
        check_type(schema.target, target)
        task, y, of_labels = task.encode(target)
        reasons = {row: (schema.target, reason) for row, reason in of_labels.items()}
    if schema.how.weight is not None and (labels or refused is not None):
        weights, of_weights = _weights(schema.how.weight, batch.columns.get(schema.how.weight, lacking))
        reasons = of_weights | reasons
    left_out = encoder.refused(reasons)
    for row in left_out:
        (bad or Stop())(row)
    kept = np.flatnonzero(~np.isin(batch.rows, [row.row for row in left_out]))
    grown, X, widths = encoder.matrix(kept)
    own, weighing = (None if values is None else values[kept] for values in (y, weights))
    passed_on = {name: batch.columns.get(name, lacking).take(arrow().array(kept)) for name in beside}
    return replace(grown, task=task), Encoded(X, own, batch.rows[kept], widths, encoder.odd(kept), weighing, passed_on)


def encode_one(schema: Schema, row: Mapping[str, Any]) -> Vector | None:
    """A row to be predicted as ``encode`` would have it in a batch of its own, a matrix of one row, without all that is for
    many: numbers, names that have been met, and what is missing. None where it has, or lacks, anything else, which
    ``encode`` is to judge."""
    how, kinds, places = schema.how, schema.kinds, schema.places
    if schema.sparse or how.missing == "refuse" or how.hash_bits is not None or not kinds.keys() & row.keys():
        return None
    if any(name != how.weight for name in row.keys() - kinds.keys()):
        return None
    X = np.zeros((1, schema.width))
    for name, kind in kinds.items():
        value: Any = row.get(name)
        if kind == "number" and value is None:
            X[0, places[name, ""]] = np.nan if how.missing == "nan" else 0.0
        elif kind == "number" and type(value) in (int, float) and -EXACT <= value <= EXACT:
            X[0, places[name, ""]] = value
        elif kind == "category" and type(value) is str and (name, ONE + value) in places:
            X[0, places[name, ONE + value]] = 1.0
        elif value is not None or kind not in ("category", None):
            return None
    return X


def _weights(column: str, values: Any) -> tuple[Vector, dict[int, tuple[str, str]]]:
    """The weights of rows, and why a row has none, by its place."""
    check_type(column, values)
    read = cells("number", values)
    weights, bad = read.parts[0], read.bad | read.missing
    bad |= ~(weights >= 0.0)
    why = {True: "the weight is missing", False: "the weight needs to be a number from 0"}
    return weights, {int(row): (column, why[bool(read.missing[row])]) for row in np.flatnonzero(bad)}


class BatchEncoder:
    """A batch whose columns have been read by their kinds; those that have their first value here are given one."""

    def __init__(self, schema: Schema, batch: Batch) -> None:
        self.schema, self.batch = schema, batch
        self.kinds = dict(schema.kinds)
        self.new_features: list[tuple[int, int, tuple[str, str]]] = []
        """The row that brings each, its column's place, and the feature. In their order they join, whatever the batches."""
        self.starts: dict[str, int] = {}
        """From which row on a new column counts; before, its features are 0, as they are in batches before this one."""
        if batch.matrix is None:
            self.kinds.update({name: None for name in batch.columns if schema.wants(name) and name not in self.kinds})
        for name in self.kinds.keys() & batch.columns.keys():
            check_type(name, batch.columns[name])
        self.order = {name: place for place, name in enumerate(self.kinds)}
        for name in [name for name, kind in self.kinds.items() if kind is None and name in batch.columns]:
            self._decide(name)
        lacking = arrow().nulls(len(batch), arrow().string())
        self.cells = {name: cells(kind, batch.columns.get(name, lacking)) for name, kind in self.kinds.items() if kind}
        self.taken: dict[str, NDArray[np.bool_]] = {}
        """Where cells that are not of their column's kind are missing values."""
        if schema.how.odd == "missing":
            self.taken = {name: column.bad for name, column in self.cells.items() if column.bad.any()}
            self.cells |= {name: self.cells[name].without_bad() for name in self.taken}

    def odd(self, kept: NDArray[np.int64]) -> int:
        """How many cells of the rows kept were taken as missing though they are there."""
        return sum(int(np.count_nonzero(bad[kept[kept >= self.starts.get(name, 0)]])) for name, bad in self.taken.items())

    def refused(self, reasons: Mapping[int, tuple[str, str]]) -> list[Refused]:
        """The rows to refuse: those whose labels or weights have reasons, then those with a bad cell; one report a row."""
        reports = {i: self._report(i, *reason) for i, reason in reasons.items()}
        for name, column in self.cells.items():
            wrong = column.bad | column.missing if self.schema.how.missing == "refuse" else column.bad
            for i in np.flatnonzero(wrong).tolist():
                if i >= self.starts.get(name, 0) and i not in reports:
                    reason = "a missing value" if column.missing[i] else f"needs {NEEDS[self._kind(name)]}"
                    reports[i] = self._report(i, name, reason)
        return [reports[i] for i in sorted(reports)]

    def matrix(self, kept: NDArray[np.int64]) -> tuple[Schema, Any, NDArray[np.int64]]:
        """The schema with the new features, the matrix of the rows kept, and how many features there are behind each."""
        names = {name: self._names(name, column, kept) for name, column in self.cells.items() if column.names is not None}
        keys = {name: self._keys(name, different, kept) for name, different in names.items()}
        self.new_features.sort(key=lambda new: new[:2])
        features = self.schema.features + tuple(feature for _, _, feature in self.new_features)
        indices = self._indices(kept)
        grown = replace(self.schema, kinds=self.kinds, features=features, indices=int(indices[-1]))
        joined = np.searchsorted([row for row, _, _ in self.new_features], kept, side="right")
        widths = np.maximum(grown.hashed + indices[1:] + len(self.schema.features) + joined, 1)
        matrix = (_SparseMatrix if grown.sparse else _DenseMatrix)(len(kept), grown.width)
        if self.batch.matrix is not None:
            matrix.block(grown.hashed, self.batch.matrix[kept])
        for name, column in self.cells.items():
            for part, values in zip(PARTS[self._kind(name)], column.parts, strict=True):
                matrix.column(grown.places[name, part], self._filled(name, values)[kept])
            if name in names:
                places = np.array([key if isinstance(key, int) else grown.places[key] for key in keys[name]], dtype=np.int64)
                rows = np.flatnonzero(names[name].rows >= 0)
                matrix.ones(rows, places[names[name].rows[rows]])
        return grown, matrix.whole(), widths

    def _indices(self, kept: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many indices a sparse file has brought before these rows, and behind each of them."""
        largest = np.zeros(len(kept) + 1, dtype=np.int64)
        largest[0] = self.schema.indices
        if self.batch.matrix is not None and len(kept):
            rows = self.batch.matrix[kept]
            needed = np.ones(len(kept), dtype=np.int64)
            filled = np.flatnonzero(np.diff(rows.indptr))
            needed[filled] += np.maximum.reduceat(rows.indices, rows.indptr[filled]) if len(filled) else 0
            largest[1:] = np.where(needed > self.schema.indices, with_room(needed), 0)
        return np.maximum.accumulate(largest)

    def _decide(self, name: str) -> None:
        values = self.batch.columns[name]
        first = first_value(values)
        if first is None:
            return
        kind = kind_of([as_it_came(values.slice(first, 1))], self.schema.how.decimal)
        assert kind is not None
        self.kinds[name], self.starts[name] = kind, first
        self.new_features += [(first, self.order[name], (name, part)) for part in PARTS[kind]]

    def _kind(self, name: str) -> Kind:
        kind = self.kinds[name]
        assert kind is not None
        return kind

    def _filled(self, name: str, values: Vector) -> Vector:
        if self.schema.how.missing == "zero":
            values = np.nan_to_num(values)
        start = self.starts.get(name, 0)
        return np.concatenate([np.zeros(start), values[start:]]) if start else values

    def _names(self, name: str, column: Cells, kept: NDArray[np.int64]) -> Names:
        pa = arrow()
        known = column.names.take(pa.array(kept))
        counts = pa.array(kept >= self.starts.get(name, 0))
        return Names.of(arrow("compute").if_else(counts, known, pa.scalar(None, pa.string())))

    def _keys(self, column: str, names: Names, kept: NDArray[np.int64]) -> list[tuple[str, str] | int]:
        """The feature of each different name: known, new, a bucket's, or its place among the hashed."""
        how, places = self.schema.how, self.schema.places
        if how.hash_bits is not None:
            return [bucket(f"{column}={text}", self.schema.hashed) for text in names.different]
        keys: list[tuple[str, str] | int] = [0] * len(names.different)
        count, new = self.schema.categories.get(column, 0), set[tuple[str, str]]()
        for row, number in names.met():
            text = names.different[number]
            key = column, ONE + text
            if key not in places:
                if count < how.max_categories:
                    count += 1
                else:
                    key = column, f"{BUCKET}{bucket(text, how.buckets)}"
                if key not in places and key not in new:
                    new.add(key)
                    self.new_features.append((int(kept[row]), self.order[column], key))
            keys[number] = key
        return keys

    def _report(self, i: int, column: str, reason: str) -> Refused:
        cell = texts(self.batch.columns[column].slice(i, 1))[0].as_py() if column in self.batch.columns else None
        return Refused(self.batch.source, int(self.batch.rows[i]), column, reason, cell or "")


class _DenseMatrix:
    """A dense matrix filled column by column; zeros until filled."""

    def __init__(self, count: int, width: int) -> None:
        self._matrix = np.zeros((count, width))

    def block(self, place: int, matrix: Any) -> None:
        width = min(matrix.shape[1], self._matrix.shape[1] - place)  # beyond it lie rows that were refused
        self._matrix[:, place : place + width] = matrix[:, :width].toarray()

    def column(self, place: int, values: Vector) -> None:
        self._matrix[:, place] = values

    def ones(self, rows: NDArray[np.int64], places: NDArray[np.int64]) -> None:
        self._matrix[rows, places] = 1.0

    def whole(self) -> Vector:
        return self._matrix


class _SparseMatrix:
    """A CSR matrix that holds only what is filled in; what meets in one place is added up."""

    def __init__(self, count: int, width: int) -> None:
        self._shape = count, width
        nowhere = np.empty(0, dtype=np.int64)
        self._entries: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = [(np.empty(0), nowhere, nowhere)]

    def block(self, place: int, matrix: Any) -> None:
        stored = matrix.tocoo()
        self._entries.append((stored.data, stored.row, stored.col + place))

    def column(self, place: int, values: Vector) -> None:
        rows = np.flatnonzero(values)
        self._entries.append((values[rows], rows, np.full(len(rows), place)))

    def ones(self, rows: NDArray[np.int64], places: NDArray[np.int64]) -> None:
        self._entries.append((np.ones(len(rows)), rows, places))

    def whole(self) -> Any:
        from scipy.sparse import csr_matrix

        values, rows, places = (np.concatenate(parts) for parts in zip(*self._entries, strict=True))
        return csr_matrix((values, (rows, places)), shape=self._shape)
