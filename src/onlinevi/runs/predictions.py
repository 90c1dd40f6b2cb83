"""Predictions as a table, a row each: those of a run, and those of a source that a job predicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinevi.data import Encoded, Refused, Schema, Stream, arrow, encode, encode_one, plain, texts
from onlinevi.engine import Vector, did_you_mean
from onlinevi.learners import BadRow, Forecast
from onlinevi.losses import Target
from onlinevi.runs.explain import Explained, explained
from onlinevi.runs.job import Job
from onlinevi.runs.rejected import Rejected
from onlinevi.runs.settings import several
from onlinevi.runs.widths import as_wide
from onlinevi.runs.writers import NAMES, Table, arrow_type

COLUMNS: dict[Target, tuple[str, ...]] = {
    "classes": ("prediction", "probability"),
    "numbers": ("prediction", "std", "lower", "upper"),
    "counts": ("prediction", "std", "lower", "upper"),
    "quantile": ("prediction",),
}
"""What is predicted of a label, by what it is."""


SET, DECISION = "set", "decision"
"""Of classes: those that hold the label as often as asked, and the one that is decided for."""
SCORE, BASE, ADDED, EACH = "score", "base", "from_{}", "probability_{}"
"""The names of columns: what is taken apart, what is left beside the columns, what each adds, and a class's probability."""
MOST_EXPLAINED = 1000


@dataclass(frozen=True)
class Asked:
    """What a table of predictions is to have beside them: columns passed through, and what each column adds to the score."""

    keep_columns: Sequence[str] = ()
    """Or text, with commas between the names."""
    explain: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "keep_columns", several(self.keep_columns))


NOTHING_ASKED = Asked()


def columns_of(
    kind: Target,
    *,
    labels: bool,
    sets: bool = False,
    decides: bool = False,
    classes: Sequence[str] = (),
    explained: Sequence[str] | None = None,
    beside: Mapping[str, str] | None = None,
) -> Mapping[str, str]:
    """The columns of a table of predictions, and their types.

    Classes may have ``sets``, and a decision where one was asked for. Behind what all have stand the probabilities of these
    ``classes``, where there are more than two, what is ``explained``, and the columns ``beside``.
    """
    label = "string" if kind == "classes" else "double"
    predicted = {name: label if name == "prediction" else "double" for name in COLUMNS[kind]}
    predicted |= ({SET: NAMES} if sets else {}) | ({DECISION: label} if decides else {})
    columns = {"row": "int64", **predicted, **({"label": label, "loss": "double"} if labels else {})}
    more = [EACH.format(name) for name in classes] if len(classes) > 2 else []
    more += [] if explained is None else [SCORE, BASE, *map(ADDED.format, explained)]
    columns |= dict.fromkeys(more, "double")
    if twice := [name for name in beside or {} if name in columns]:
        raise ValueError(f"--keep-columns {twice[0]}: predictions have a column of this name already; rename it in the rows")
    return {**columns, **(beside or {})}


class Layout:
    """Which columns the predictions of a job have: those of the classes and columns that it knows, and what was asked for."""

    def __init__(
        self,
        job: Job,
        asked: Asked = NOTHING_ASKED,
        stream: Stream | None = None,
        *,
        labels: bool,
        beside: Mapping[str, str] | None = None,
    ) -> None:
        self.job, self.asked, self.labels = job, asked, labels
        schema = job.schema
        with_odds = job.kind == "classes" and job.learner.loss.odds is not None
        self.classes: tuple[str, ...] = job.class_names if with_odds and job.learner.several else ()
        self.sets, self.decides = with_odds, job.decisions is not None
        self.explained = tuple(schema.kinds) if asked.explain else None
        if self.explained is not None and not 0 < len(self.explained) <= MOST_EXPLAINED:
            raise ValueError(
                f"--explain: the rows have {len(self.explained)} columns; needs some with names, up to {MOST_EXPLAINED}"
            )
        self.beside: Mapping[str, str] = {}
        """The columns passed through, and their types, as they were or by the first rows."""
        if beside is not None and tuple(beside) == tuple(asked.keep_columns):
            self.beside = beside
        elif asked.keep_columns and stream is not None:
            self.beside = _kinds_of(asked.keep_columns, stream)

    @property
    def columns(self) -> Mapping[str, str]:
        """Their names and types."""
        return columns_of(
            self.job.kind,
            labels=self.labels,
            sets=self.sets,
            decides=self.decides,
            classes=self.classes,
            explained=self.explained,
            beside=self.beside,
        )

    def as_begun(self, columns: Sequence[str]) -> None:
        """Have the columns of a file that goes on: those of the classes that there were, and sets only where it has them."""
        classes = sum(name.startswith(EACH.format("")) for name in columns)
        self.classes, self.sets = self.job.class_names[:classes], self.sets and SET in columns


def _kinds_of(names: Sequence[str], stream: Stream) -> dict[str, str]:
    """The types of columns to be passed through, by the first rows."""
    seen = stream.peek(1)
    there = {name: plain(values).type for batch in seen for name, values in batch.columns.items()}
    if unknown := [name for name in names if name not in there] if seen else []:
        meant = did_you_mean(unknown[0], there)
        raise ValueError(f"--keep-columns: no column is called {unknown[0]!r}{meant}: the first row has {', '.join(there)}")
    return {name: _stored_as(there[name]) if name in there else "string" for name in names}


def _stored_as(kind: Any) -> str:
    """The name of an Arrow type, or of text for one that has none or says little of other rows."""
    types, plainly = arrow().types, str(kind)
    known = (types.is_integer, types.is_floating, types.is_boolean, types.is_date)
    return plainly if any(is_one(kind) for is_one in known) else "string"


class Collected:
    """A table in memory, of columns as ``columns_of`` tells them."""

    def __init__(self, columns: Mapping[str, str]) -> None:
        self._kinds = dict(columns)
        self._parts: list[list[Any]] = [[] for _ in columns]

    def add(self, columns: Sequence[Iterable[Any]]) -> None:
        for part, values in zip(self._parts, columns, strict=True):
            part.extend(values)

    def rows(self) -> list[dict[str, Any]]:
        """As a dict for each row."""
        return [dict(zip(self._kinds, values, strict=True)) for values in zip(*self._parts, strict=True)]

    def table(self, count: int | None = None) -> Any:
        """As a pyarrow table; of ``count`` rows by their numbers, with nulls where there is nothing of a row."""
        pa = arrow()
        pairs = zip(self._kinds.items(), self._parts, strict=True)
        table = pa.table({name: pa.array(part, arrow_type(kind)) for (name, kind), part in pairs})
        if count is None:
            return table
        numbers, places = table["row"].to_numpy(), np.full(count, -1)
        places[numbers] = np.arange(len(numbers))
        return table.drop_columns("row").take(pa.array(places, mask=places < 0))


class Predictions:
    """Puts predictions into a table; ``probability`` is that of the second class of two, of the one predicted of more."""

    def __init__(self, layout: Layout, table: Table) -> None:
        self.layout, self._job, self._table = layout, layout.job, table
        self._beside = [(name, layout.beside[name]) for name in layout.beside]

    def add_learned(self, rows: Encoded, forecast: Forecast, loss: Vector, parts: Explained | None = None) -> None:
        """Rows as a job tells of them."""
        self.add(rows, forecast, loss, parts)

    def add(self, rows: Encoded, forecast: Forecast, loss: Vector | None = None, parts: Explained | None = None) -> None:
        """Some rows, in order; with labels and losses where the table has them."""
        columns: list[Iterable[Any]] = [rows.rows.tolist(), *self._columns(forecast)]
        if self.layout.labels and rows.y is not None and loss is not None:
            columns += [self._labels(rows.y), loss.tolist()]
        columns += self._each_class(forecast)
        if self.layout.explained is not None and parts is not None:
            columns += parts.by_row(self.layout.explained).T.tolist()
        columns += [_values(rows.beside[name], kind) for name, kind in self._beside]
        self._table.add(columns)

    def _columns(self, forecast: Forecast) -> list[Iterable[Any]]:
        if self._job.kind == "classes":
            names, guess = (*self._job.class_names, None), forecast.guess.tolist()  # the second may have yet to come
            chances = [None] * len(guess) if forecast.probability is None else forecast.chance.tolist()
            found: list[Iterable[Any]] = [[names[code] for code in guess], chances]
            if self.layout.sets:
                found.append(_names_in(forecast.set, self._job.class_names))
            if self._job.decisions is not None:
                found.append([names[code] if code >= 0 else None for code in self._job.decisions.made(forecast).tolist()])
            return found
        parts = {"prediction": forecast.mean, "std": forecast.std, "lower": forecast.lower, "upper": forecast.upper}
        return [parts[name].tolist() for name in COLUMNS[self._job.kind]]

    def _each_class(self, forecast: Forecast) -> list[Iterable[Any]]:
        """The probability of each class, 0 before it has come."""
        if len(self.layout.classes) <= 2:
            return []
        known = forecast.probability
        nobody = [0.0] * len(known)
        return [known[:, k].tolist() if k < known.shape[1] else nobody for k in range(len(self.layout.classes))]

    def _labels(self, y: Vector) -> Iterable[Any]:
        if self._job.kind != "classes":
            return list(y.tolist())
        names = self._job.class_names
        return [names[int(one) if len(names) > 2 else int(one > 0.0)] for one in y.tolist()]


def _names_in(sets: Any, names: Sequence[str]) -> list[list[str]]:
    """The names of the classes of each set; of two, the second may have yet to come."""
    return [[name for name, there in zip(names, row, strict=False) if there] for row in sets.tolist()]


def _values(values: Any, kind: str) -> list[Any]:
    """A column as it came: of text, and of what has no type of its own, the texts."""
    return list((texts(values) if kind == "string" else plain(values)).to_pylist())


def absent_columns(job: Job, stream: Stream) -> list[str]:
    """The columns in use that the first rows lack, of a pipe the first row; refused where they lack all."""
    seen = stream.peek(1)
    if not stream.live:
        seen = stream.peek()
    names = {name for batch in seen for name in batch.columns}
    wanted = (
        [] if any(batch.matrix is not None for batch in seen) else [name for name, kind in job.schema.kinds.items() if kind]
    )
    absent = [name for name in wanted if name not in names]
    if absent and len(absent) == len(wanted):
        raise ValueError(f"none of the columns of the model is in {stream.source}: it needs {', '.join(wanted[:5])}, …")
    return absent


def predict_stream(job: Job, stream: Stream, table: Table, bad: Rejected, layout: Layout | None = None) -> None:
    """A row for each. Names and columns that the job has never met say nothing, but make a prediction less sure."""
    layout = layout or Layout(job, labels=False)
    predictions, beside = Predictions(layout, table), tuple(layout.beside)
    learner, schema = job.learner, job.schema.taking_odd(bad.odd)
    stream.numbers |= schema.numbers - {job.settings.target, *beside}
    for batch in stream.steps():
        bad.settle(stream.position.rows)
        if not len(batch):
            continue
        grown, rows = encode(schema, batch, bad, labels=False, beside=beside)
        bad.as_missing += rows.odd
        X = _of_known(rows.X, job.schema.width)
        state, start = as_wide(learner, job.state, X), 0
        while start < len(rows.rows):
            try:
                _predict(layout, predictions, state, grown, X, rows, start, len(rows.rows))
                break
            except BadRow as refused:
                stop = start + refused.row
                if stop > start:
                    _predict(layout, predictions, state, grown, X, rows, start, stop)
                bad(Refused(batch.source, int(rows.rows[stop]), None, refused.reason, ""))
                start = stop + 1


def predict_one(job: Job, row: Mapping[str, Any], table: Table, layout: Layout) -> bool:
    """The same of a row by itself, the same bits in a fraction of the time; False where ``predict_stream`` is to judge it."""
    X = encode_one(job.schema, row)
    if X is None or layout.asked != NOTHING_ASKED:
        return False
    try:
        forecast = job.learner.forecast(as_wide(job.learner, job.state, X), X)
    except BadRow:
        return False
    one = np.zeros(1, dtype=np.int64)
    Predictions(layout, table).add(Encoded(X, None, one, one), forecast)
    return True


def _predict(
    layout: Layout, predictions: Predictions, state: Any, schema: Schema, X: Any, rows: Encoded, start: int, stop: int
) -> None:
    learner = layout.job.learner
    forecast = learner.forecast(state, X[start:stop])
    parts = explained(learner, state, schema, X[start:stop], forecast) if layout.asked.explain else None
    predictions.add(rows.part(start, stop), forecast, parts=parts)


def _of_known(X: Any, known: int) -> Any:
    """Rows without what they lack of features that the job has never met: those are there only because another row of the
    batch has them. A dense row has a 0 for each once it is prepared, whatever its value, and needs none of them."""
    if not hasattr(X, "tocsr"):
        return np.ascontiguousarray(X[:, :known])
    X.data[np.isnan(X.data) & (X.indices >= known)] = 0.0
    return X
