"""What a run has seen in each column of its data, from the moments and the names that it keeps anyway."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlinevi.data import ONE, Schema
from onlinevi.runs.job import Job
from onlinevi.runs.report.results import Column

SHOWN = 200
"""Columns that a report has room for."""


def data_table(job: Job) -> list[Column] | None:
    """The columns of the data, of a sparse file its indices; the first ``SHOWN``."""
    if job.state is None:
        return None
    schema, seen = job.schema, _Seen(job.state.inputs)
    columns = [_of_index(seen, schema.name(place), place) for place in range(min(schema.indices, seen.dim, SHOWN))]
    places: dict[str, list[int]] = {}
    for (name, _), place in schema.places.items():
        if place < seen.dim:
            places.setdefault(name, []).append(place)
    named = list(schema.kinds)[: SHOWN - len(columns)]
    return columns + [_of_column(schema, seen, name, places.get(name, [])) for name in named]


class _Seen:
    """The moments of features, where they are known: of sparse rows that are not centred, none but the mean square."""

    def __init__(self, inputs: Any) -> None:
        self.dim, self.count = int(inputs.dim), int(inputs.count)
        self.lag, self._mean, self._std = inputs.lag, inputs.mean, inputs.std
        self._known = inputs.about_mean

    def moments(self, place: int) -> tuple[float | None, float | None]:
        """The mean and the std of a feature."""
        return (float(self._mean[place]), float(self._std[place])) if self._known[place] else (None, None)

    def share(self, place: int) -> float:
        """In how many of the rows a feature of a name is 1; that of names that share it, about."""
        return float(self._mean[place] if self._known[place] else np.square(self._std[place]))


def _of_index(seen: _Seen, name: str, place: int) -> Column:
    mean, std = seen.moments(place)
    return Column(name, "number", mean, std, int(seen.lag[place]))


def _of_column(schema: Schema, seen: _Seen, name: str, places: list[int]) -> Column:
    kind = schema.kinds[name]
    if kind is None:
        return Column(name, "no value yet", missing=seen.count)
    if kind == "category":
        return _of_names(schema, seen, name, places)
    if not places:
        return Column(name, kind, holds="not learned from")
    mean, std = seen.moments(places[0])
    missing = int(seen.lag[places[0]])
    if len(places) > 1:
        return Column(name, kind, missing=missing, holds=f"{len(places)} features")
    holds = f"true in {100.0 * mean:.0f} %" if kind == "flag" and mean is not None else ""
    return Column(name, kind, mean, std, missing, holds)


def _of_names(schema: Schema, seen: _Seen, name: str, places: list[int]) -> Column:
    """How many names there are, the commonest, and in how many rows there is none of them."""
    if schema.hashed:
        return Column(name, "category", holds="hashed")
    parts = {place: schema.features[place - schema.indices][1] for place in places}
    own = [place for place in places if parts[place].startswith(ONE)]
    if not own:
        return Column(name, "category")
    shares = {place: seen.share(place) for place in places}
    most = max(own, key=lambda place: round(shares[place] * seen.count))
    rest = " and others" if len(own) < len(places) else ""
    holds = f"{len(own):,} {'name' if len(own) == 1 else 'names'}{rest}; "
    holds += f"{parts[most].removeprefix(ONE)} in {100.0 * shares[most]:.0f} %"
    return Column(name, "category", missing=max(round(seen.count * (1.0 - sum(shares.values()))), 0), holds=holds)
