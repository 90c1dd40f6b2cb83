"""One preparation for all shards: the columns, names and moments of each, added up to those of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np

from onlinevi.data import BUCKET, MOST_CLASSES, ONE, Encoded, Kind, Schema, Task, bucket
from onlinevi.learners import CENTRED, UNCENTRED, Inputs, InputState, Learner, moments_of
from onlinevi.runs.widths import joined

L = TypeVar("L", bound=Learner[Any])

MOST_NAMES = 1 << 16
"""Names of one column that a shard may have."""
LARGEST = 1e145
"""A row with a value beyond is refused by ``Inputs``, and has no part in the moments either."""


def with_fixed_inputs(learner: L) -> L:
    """The same learner, whose inputs take their moments as they are given."""
    inputs = learner.inputs if any(part.name == "inputs" for part in fields(learner)) else None  # type: ignore[arg-type]
    if isinstance(inputs, Inputs):
        return replace(learner, inputs=replace(inputs, fixed=True))  # type: ignore[type-var]
    if isinstance(inner := vars(learner).get("inner"), Learner):
        return replace(learner, inner=with_fixed_inputs(inner))  # type: ignore[type-var]
    return learner


@dataclass(frozen=True)
class Survey:
    """What a look at all rows of a shard has told: its columns and names, and their moments."""

    schema: Schema
    moments: InputState
    rows: int
    """Rows of the source, bad ones too."""


def open_to_all_names(schema: Schema) -> Schema:
    """The schema with which a shard is surveyed: every name has a feature, and only what is there is stored."""
    return replace(schema, how=replace(schema.how, max_categories=MOST_NAMES), sparse=True)


def add_rows(moments: InputState | None, schema: Schema, rows: Encoded, *, centred: bool) -> InputState:
    """The moments with those of encoded rows, CSR; columns that these have brought are new.

    A number was unknown before it joined, a name was absent. ``centred``: the shards will be read as dense rows.
    """
    width = schema.width
    X, widths = rows.X, rows.widths
    usable = np.ones(len(rows.rows), dtype=bool)
    usable[np.repeat(np.arange(len(usable)), np.diff(X.indptr))[np.abs(X.data) > LARGEST]] = False
    if not usable.all():
        X, widths = X[usable], widths[usable]
    known = 0 if moments is None else moments.dim
    late = np.zeros(width)
    for place in range(known, width):
        if not schema.was_zero(place):
            late[place] = np.searchsorted(widths, place, side="right")
    count, values, places = X.shape[0], X.data, X.indices
    missing = np.isnan(values)
    lag = late + np.bincount(places, missing, width)
    values, places = values[~missing], places[~missing]
    counts, mean = count - lag, np.bincount(places, values, width) / np.maximum(count - lag, 1.0)
    beside = () if centred else _numbers(schema)
    if not centred:
        mean = np.where(np.isin(np.arange(width), beside), mean, 0.0)
    gaps = np.square(values - mean[places])
    square = np.bincount(places, gaps, width) + (counts - np.bincount(places, minlength=width)) * np.square(mean)
    block = moments_of(CENTRED if centred else UNCENTRED, count, lag, mean, square, beside)
    if moments is None or not moments.count:
        return block
    if width > known:
        moments = joined(moments, replace(schema, sparse=not centred), width)
    return Inputs().merge([moments, block])


def _numbers(schema: Schema) -> list[int]:
    """The places of the numbers, which are centred though names beside them make rows sparse."""
    return [place for place in range(schema.width) if not schema.was_zero(place)]


def united(base: Schema, surveys: Sequence[Survey]) -> tuple[Schema, InputState]:
    """The schema of all shards, and the moments of all their rows. ``base`` is what the first rows of all have told.

    What a shard has brought follows in the order of the shards; where two took a column for different kinds, the first one's
    counts.
    """
    kinds, features, tasks = dict(base.kinds), dict.fromkeys(base.features), base.task
    named = dict(base.categories)
    keys: list[dict[tuple[str, str], tuple[str, str]]] = []
    for survey in surveys:
        own = survey.schema
        for column, kind in own.kinds.items():
            kinds[column] = kinds.get(column) or kind
        found = {}
        for column, part in own.features:
            if own.kinds[column] == kinds[column]:
                found[column, part] = _feature(base, kinds, features, named, column, part)
        keys.append(found)
        tasks = _both(tasks, own.task)
    indices = max([base.indices, *(survey.schema.indices for survey in surveys)])
    schema = replace(base, task=tasks, kinds=kinds, features=tuple(features), indices=indices)
    aligned = [_aligned(schema, survey, own) for survey, own in zip(surveys, keys, strict=True) if survey.moments.count]
    if not aligned:
        raise ValueError("no shard has a row that can be used")
    return schema, Inputs().merge(aligned)


def _feature(
    base: Schema,
    kinds: Mapping[str, Kind | None],
    features: dict[tuple[str, str], None],
    named: dict[str, int],
    column: str,
    part: str,
) -> tuple[str, str]:
    """The feature of all shards that this one is: of a name beyond the first ones, its bucket's."""
    key = column, part
    if key in features:
        return key
    if kinds[column] == "category":
        if part.startswith(BUCKET):
            raise ValueError(f"{column!r} has more than {MOST_NAMES:,} names: share features among them by --hash-bits 18")
        if named.get(column, 0) < base.how.max_categories:
            named[column] = named.get(column, 0) + 1
        else:
            key = column, f"{BUCKET}{bucket(part.removeprefix(ONE), base.how.buckets)}"
    features.setdefault(key)
    return key


def _both(one: Task | None, other: Task | None) -> Task | None:
    """The classes of both, as far as they may join."""
    if one is None or other is None or one.kind != "classes":
        return one
    most = MOST_CLASSES if len(one.names) > 2 else 2
    return replace(one, names=tuple(dict.fromkeys([*one.names, *other.names]))[:most])


def _aligned(schema: Schema, survey: Survey, keys: Mapping[tuple[str, str], tuple[str, str]]) -> InputState:
    """A shard's moments, as those of the features of all."""
    own, moments = survey.schema, survey.moments
    count, centred = moments.count, moments.kind == CENTRED
    lag, mean, square = (np.zeros(schema.width) for _ in range(3))
    for place in range(schema.width):
        lag[place] = 0 if schema.was_zero(place) else count
    first = own.hashed + own.indices
    lag[:first], mean[:first], square[:first] = moments.lag[:first], moments.mean[:first], moments.square[:first]
    shared: dict[int, list[int]] = {}
    for feature, place in own.places.items():
        if feature in keys and place < moments.dim:
            shared.setdefault(schema.places[keys[feature]], []).append(place)
    for place, parts in shared.items():
        lag[place], mean[place], square[place] = moments.lag[parts[0]], moments.mean[parts].sum(), moments.square[parts].sum()
        if len(parts) > 1 and centred:  # names of one bucket: a row has one of them
            square[place] = count * mean[place] * (1.0 - mean[place])
    return moments_of(moments.kind, count, lag, mean, square, () if centred else _numbers(schema))
