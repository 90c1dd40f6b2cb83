"""How the columns of a stream become numbers: learned from the first rows, and growing as names and columns appear."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from onlinevi.data.schema.kinds import KINDS, PARTS, Kind, check_type, is_id, kind_of, told_kind
from onlinevi.data.schema.task import Task, guess_task
from onlinevi.data.stream import Batch
from onlinevi.engine import did_you_mean

ONE, BUCKET = "=", "~"
"""What a feature's name has between the column's and the category's, or the bucket's number."""

SPARSE_FROM = 200
"""So many names in the first rows make a matrix sparse."""
MOST_HASH_BITS = 28
SHOWN = 20
"""Names of columns that a message lists."""

EXACT_WIDTH = 1024
"""Up to here a sparse file has as many features as its largest index asks for; beyond, up to an eighth more."""


def with_room(indices: NDArray[np.int64]) -> NDArray[np.int64]:
    """As many features as a sparse file has that asks for these, so that a learner need not widen at every row."""
    step = 1 << np.maximum(np.frexp(indices.astype(float))[1].astype(np.int64) - 4, 0)
    return np.where(indices <= EXACT_WIDTH, indices, -(-indices // step) * step)


@dataclass(frozen=True)
class Columns:
    """The settings by which columns become features.

    ``missing``: a missing value is "nan", "zero", or its row is to "refuse"; a missing name has none of its column's features.
    ``keep`` and ``drop`` choose columns, ``kinds`` tells what they hold where the guess is wrong. The first ``max_categories``
    names of a column have a feature each, the later ones share ``buckets``. A column with more names in the first rows, a new
    one in nearly each, is an id and has no feature. With ``hash_bits`` all names of all columns share 2^bits features from the
    start. ``sparse`` asks for CSR or for a dense matrix; None decides by the first rows. ``decimal`` tells whether numbers
    have a point or a comma; None finds out. ``odd``: a row with a cell that is not of
    its column's kind is to "refuse", or the cell is "missing". ``weight`` is the column that says how often a row counts.
    """

    missing: Literal["nan", "zero", "refuse"] = "nan"
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    max_categories: int = 100
    buckets: int = 32
    hash_bits: int | None = None
    sparse: bool | None = None
    decimal: Literal[".", ","] | None = None
    odd: Literal["refuse", "missing"] = "refuse"
    weight: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "keep", tuple(self.keep))
        object.__setattr__(self, "drop", tuple(self.drop))
        object.__setattr__(self, "kinds", dict(self.kinds))
        if self.decimal not in (None, ".", ","):
            raise ValueError(f"decimal={self.decimal!r}: needs a point or a comma")
        if self.odd not in ("refuse", "missing"):
            raise ValueError(f"odd={self.odd!r}: needs refuse or missing")
        if self.missing not in ("nan", "zero", "refuse"):
            raise ValueError(f"missing={self.missing!r}: needs nan, zero or refuse")
        wrong = next((kind for kind in self.kinds.values() if kind not in KINDS), None)
        if wrong is not None:
            raise ValueError(f"kinds has {wrong!r}: needs one of {', '.join(KINDS)}")
        if self.max_categories < 0 or self.buckets < 1:
            raise ValueError(f"max_categories={self.max_categories}, buckets={self.buckets}: need at least 0 and 1")
        if self.hash_bits is not None and not 1 <= self.hash_bits <= MOST_HASH_BITS:
            raise ValueError(f"hash_bits={self.hash_bits}: needs 1 to {MOST_HASH_BITS}; 18 is a common choice")

    def wants(self, column: str) -> bool:
        """Whether a column is chosen."""
        return column not in self.drop and (not self.keep or column in self.keep)

    def learn(
        self,
        seen: Sequence[Batch],
        target: str | None = None,
        task: Task | Literal["classes"] | None = None,
        labels: Sequence[Any] | None = None,
    ) -> Schema:
        """The schema for a stream that begins with these rows, as ``stream.peek()`` gives them.

        ``task="classes"`` tells that the labels are classes, whose names are those of these rows. ``labels`` are the first of
        them where they are no column of the rows.
        """
        if not any(map(len, seen)):
            raise ValueError("no rows to learn the columns from: the stream is empty")
        of_indices = any(batch.matrix is not None for batch in seen)
        if of_indices and self.hash_bits is not None:
            raise ValueError(f"hash_bits={self.hash_bits}: is for names, and this file has indices")
        names = list(dict.fromkeys(name for batch in seen for name in batch.columns))
        if self.weight is not None and self.weight == target:
            raise ValueError(f"weight={target!r} is what is to be predicted: name another column, or leave it out")
        within = () if target is None or labels is not None else (target,)
        needed = [*self.keep, *self.drop, *self.kinds, *within, *(() if self.weight is None else (self.weight,))]
        unknown = [name for name in needed if name not in names]
        if unknown:
            meant = did_you_mean(unknown[0], names)
            told = ", ".join(map(repr, names[:SHOWN])) + (f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else "")
            raise ValueError(f"no column is called {unknown[0]!r}{meant}: the first rows have {told}")
        for name in names:
            if name in (target, self.weight) or self.wants(name):
                for batch in seen:
                    if name in batch.columns:
                        check_type(name, batch.columns[name])
        if target is not None:
            if labels is None:
                labels = [batch.columns[target] for batch in seen if target in batch.columns]
            if not isinstance(task, Task):
                task = guess_task(labels, classes=task == "classes", written=self._kind(target, labels))
            elif task.kind != "classes":
                task = replace(task, written=told_kind("number", labels, self.decimal))
        schema = Schema(self, target, task if isinstance(task, Task) else None, {}, ())
        wanted = [] if of_indices else [name for name in names if schema.wants(name)]
        blocks = {name: [batch.columns[name] for batch in seen if name in batch.columns] for name in wanted}
        kinds = {name: self._feature_kind(name, blocks[name]) for name in wanted}
        features = tuple((name, part) for name, kind in kinds.items() if kind for part in PARTS[kind])
        return replace(schema, kinds=kinds, features=features, sparse=self._is_sparse(seen, kinds, of_indices))

    def _kind(self, name: str, blocks: Sequence[Any]) -> Kind | None:
        told = self.kinds.get(name)
        return kind_of(blocks, self.decimal) if told is None else told_kind(told, blocks, self.decimal)

    def _feature_kind(self, name: str, blocks: Sequence[Any]) -> Kind | None:
        """The kind, and that of ids for names that come once, unless it was told or the column was asked for."""
        kind, asked = self._kind(name, blocks), name in self.kinds or name in self.keep or self.hash_bits is not None
        return "id" if kind == "category" and not asked and is_id(blocks, self.max_categories) else kind

    def _is_sparse(self, seen: Sequence[Batch], kinds: Mapping[str, Kind | None], of_indices: bool) -> bool:
        if self.sparse is not None:
            return self.sparse
        names = {
            (name, text)
            for name, kind in kinds.items()
            if kind == "category"
            for batch in seen
            if name in batch.columns
            for text in batch.columns[name].unique().to_pylist()
        }
        return self.hash_bits is not None or len(names) > SPARSE_FROM or of_indices


@dataclass(frozen=True)
class Schema:
    """The features of a stream so far. A value: encoding a batch gives the next one, whose features begin with these."""

    how: Columns
    target: str | None
    task: Task | None
    kinds: Mapping[str, Kind | None]
    """Of each column in use; None while it has had no value."""
    features: tuple[tuple[str, str], ...]
    """Column and part of each feature."""
    sparse: bool = False
    indices: int = 0
    """How many features a sparse file has brought; they stand first."""

    @property
    def hashed(self) -> int:
        """How many features the names share from the start; they stand first."""
        return 0 if self.how.hash_bits is None else 1 << self.how.hash_bits

    @property
    def width(self) -> int:
        """How many columns an encoded matrix has; before there is a feature, one for the first to come."""
        return max(1, self.hashed + self.indices + len(self.features))

    def name(self, place: int) -> str:
        """What the feature in this place is called."""
        if place < self.hashed:
            return f"hash~{place}"
        if place < self.hashed + self.indices:
            return str(place - self.hashed)
        if not self.features:
            return "no feature yet"
        column, part = self.features[place - self.hashed - self.indices]
        return f"{column}.{part}" if part[:1].isalpha() else column + part

    def column(self, place: int) -> str:
        """The column that the feature in this place is of; of names that are hashed and of indices, what it is called."""
        first = self.hashed + self.indices
        return self.name(place) if place < first or not self.features else self.features[place - first][0]

    def kind(self, place: int) -> Kind | None:
        """The kind of the column that the feature in this place is of."""
        if place < self.hashed:
            return "category"
        first = self.hashed + self.indices
        if place < first:
            return "number"
        return self.kinds[self.features[place - first][0]] if self.features else None

    def was_zero(self, place: int) -> bool:
        """Whether the feature in this place was 0 in the rows before the one that brought it: a name or an index is not in
        them, while a number is unknown."""
        return place < self.hashed + self.indices or self.kind(place) == "category"

    @property
    def numbers(self) -> set[str]:
        """The columns that a reader may deliver as floats."""
        features = {name for name, kind in self.kinds.items() if kind == "number"}
        plain = self.task is not None and self.task.kind != "classes" and self.task.written == "number"
        weight = set() if self.how.weight is None else {self.how.weight}
        return features | weight | ({self.target} if self.target is not None and plain else set())

    def wants(self, column: str) -> bool:
        """Whether a column is in use, to predict from."""
        return column not in (self.target, self.how.weight) and self.how.wants(column)

    @cached_property
    def places(self) -> dict[tuple[str, str], int]:
        """Where each feature stands."""
        return {feature: place for place, feature in enumerate(self.features, self.hashed + self.indices)}

    @cached_property
    def categories(self) -> dict[str, int]:
        """How many names of each column have a feature of their own."""
        counts: dict[str, int] = {}
        for column, part in self.features:
            counts[column] = counts.get(column, 0) + part.startswith(ONE)
        return counts

    def taking_odd(self, odd: Literal["refuse", "missing"]) -> Schema:
        """The same with another answer to cells that are not of their column's kind."""
        return self if odd == self.how.odd else replace(self, how=replace(self.how, odd=odd))

    def to_json(self) -> str:
        """The schema as a checkpoint keeps it, all of it."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @staticmethod
    def from_json(text: str) -> Schema:
        """The schema that ``to_json`` wrote."""
        read: dict[str, Any] = json.loads(text)
        task = read["task"] and Task(**{**read["task"], "names": tuple(read["task"]["names"])})
        features = tuple((column, part) for column, part in read["features"])
        return Schema(**{**read, "how": Columns(**read["how"]), "task": task, "features": features})
