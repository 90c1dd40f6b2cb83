"""One batch, its columns read by their kinds, and the features it brings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinevi.data.files.batch import Batch
from onlinevi.data.files.extra import arrow
from onlinevi.data.files.refused import Refused
from onlinevi.data.schema.categories import BUCKET, ONE, Names, bucket
from onlinevi.data.schema.cells import NEEDS, PARTS, Cells, cells
from onlinevi.data.schema.kinds import Kind, first_value, kind_of
from onlinevi.data.schema.matrices import Dense, Sparse
from onlinevi.data.schema.schema import Schema
from onlinevi.data.schema.texts import texts
from onlinevi.engine import Vector


class Sheet:
    """A batch whose columns have been read by their kinds; those that have their first value here are given one."""

    def __init__(self, schema: Schema, batch: Batch) -> None:
        self.schema, self.batch = schema, batch
        self.kinds = dict(schema.kinds)
        self.births: list[tuple[int, int, tuple[str, str]]] = []
        """New features: the row that brings each, and its column's place. In their order they join, whatever the batches."""
        self.starts: dict[str, int] = {}
        """From which row on a new column counts; before, its features are 0, as they are in batches before this one."""
        if batch.matrix is None:
            self.kinds.update({name: None for name in batch.columns if schema.wants(name) and name not in self.kinds})
        self.order = {name: place for place, name in enumerate(self.kinds)}
        for name in [name for name, kind in self.kinds.items() if kind is None and name in batch.columns]:
            self._decide(name)
        lacking = arrow().nulls(len(batch), arrow().string())
        self.cells = {name: cells(kind, batch.columns.get(name, lacking)) for name, kind in self.kinds.items() if kind}

    def refused(self, reasons: Mapping[int, str]) -> list[Refused]:
        """The rows to refuse: those whose labels have reasons, then those with a bad cell; one report a row."""
        target = self.schema.target or ""
        found = {i: self._report(i, target, reason) for i, reason in reasons.items()}
        for name, read in self.cells.items():
            wrong = read.bad | read.missing if self.schema.how.missing == "refuse" else read.bad
            for i in np.flatnonzero(wrong).tolist():
                if i >= self.starts.get(name, 0) and i not in found:
                    reason = "a missing value" if read.missing[i] else f"needs {NEEDS[self._kind(name)]}"
                    found[i] = self._report(i, name, reason)
        return [found[i] for i in sorted(found)]

    def matrix(self, kept: NDArray[np.int64]) -> tuple[Schema, Any]:
        """The schema with the new features, and the matrix of the rows kept."""
        names = {name: self._names(name, read, kept) for name, read in self.cells.items() if read.names is not None}
        keys = {name: self._keys(name, different, kept) for name, different in names.items()}
        self.births.sort(key=lambda birth: birth[:2])
        features = self.schema.features + tuple(feature for _, _, feature in self.births)
        indices = max(self.schema.indices, 0 if self.batch.matrix is None else self.batch.matrix.shape[1])
        grown = replace(self.schema, kinds=self.kinds, features=features, indices=indices)
        paper = (Sparse if grown.sparse else Dense)(len(kept), grown.width)
        if self.batch.matrix is not None:
            paper.block(grown.hashed, self.batch.matrix[kept])
        for name, read in self.cells.items():
            for part, values in zip(PARTS[self._kind(name)], read.parts, strict=True):
                paper.column(grown.places[name, part], self._filled(name, values)[kept])
            if name in names:
                places = np.array([key if isinstance(key, int) else grown.places[key] for key in keys[name]], dtype=np.int64)
                rows = np.flatnonzero(names[name].rows >= 0)
                paper.ones(rows, places[names[name].rows[rows]])
        return grown, paper.whole()

    def _decide(self, name: str) -> None:
        values = self.batch.columns[name]
        first = first_value(values)
        if first is None:
            return
        kind = kind_of(name, [values.slice(first, 1)])
        assert kind is not None
        self.kinds[name], self.starts[name] = kind, first
        self.births += [(first, self.order[name], (name, part)) for part in PARTS[kind]]

    def _kind(self, name: str) -> Kind:
        kind = self.kinds[name]
        assert kind is not None
        return kind

    def _filled(self, name: str, values: Vector) -> Vector:
        if self.schema.how.missing == "zero":
            values = np.nan_to_num(values)
        start = self.starts.get(name, 0)
        return np.concatenate([np.zeros(start), values[start:]]) if start else values

    def _names(self, name: str, read: Cells, kept: NDArray[np.int64]) -> Names:
        pa = arrow()
        known = read.names.take(pa.array(kept))
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
                    self.births.append((int(kept[row]), self.order[column], key))
            keys[number] = key
        return keys

    def _report(self, i: int, column: str, reason: str) -> Refused:
        cell = texts(self.batch.columns[column].slice(i, 1))[0].as_py() if column in self.batch.columns else None
        return Refused(self.batch.source, int(self.batch.rows[i]), column, reason, cell or "")
