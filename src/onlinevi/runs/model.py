"""One front door: a model of tables, files or rows, learned by the same job that ``onlinevi run`` drives."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from onlinevi.data import AnySource, BadInput, Memory, Stream, arrow, is_number, is_text, open_stream, plain, source_of
from onlinevi.engine import did_you_mean
from onlinevi.learners import Learner, html_of, html_rows
from onlinevi.runs.begin import first_job
from onlinevi.runs.certainty import Certified, certified
from onlinevi.runs.charts.style import number
from onlinevi.runs.checkpoint import load_job, pack_job, save_job, unpack_job
from onlinevi.runs.job import Job
from onlinevi.runs.measured import alarms_of
from onlinevi.runs.predictions import (
    DECISION,
    SCORE,
    SET,
    Asked,
    Collected,
    Layout,
    Predictions,
    absent_columns,
    predict_stream,
)
from onlinevi.runs.rejected import FILELESS, Rejected
from onlinevi.runs.report.measures import NAMES, by_whose
from onlinevi.runs.report.page import write_report
from onlinevi.runs.report.scored import Alarms
from onlinevi.runs.results import importance_of, results_of
from onlinevi.runs.settings import Settings
from onlinevi.runs.summary import by_column, metrics_by_name, summarise

OPTION = re.compile(r"--([a-z][a-z-]+)")
"""An option of the command line, in a message."""
POLICY = "choose a policy that skips or collects bad rows", "give bad_rows='skip'"
TEXT_LABELS = "text labels"
"""The note that labels came as text in typed columns, so that a class called 1 is none of numbers."""


class Model:
    """Learns from tables, files or rows as they come, and predicts others: the model that ``onlinevi run`` writes.

    ``settings`` are those of ``Settings``, which are the options of ``onlinevi run``; nothing but the target is needed. What
    columns and labels are is told by the first rows of what is learned first: numbers, names, dates, true and false.
    ``bad_rows``, for rows that cannot be used: "stop", "skip", "missing" (cells that are not of their column's kind are
    missing), or a file that they are written to.

    A table is one of pandas, polars or pyarrow, a result of DuckDB, or whatever speaks Arrow's PyCapsule interface; columns by
    their names; rows that are dicts, one or many; a path, ``"-"`` or an open binary file; or an iterable of tables or rows.
    What is said of it comes back in its own kind, pandas with its index; of files and of DuckDB as a pyarrow table.

    >>> import onlinevi as ovi
    >>> model = ovi.Model("price", rule="implicit")
    >>> said = model.learn([{"size": 30.0 + k % 50, "town": "Bonn", "price": 2.0 * (30 + k % 50)} for k in range(200)])
    >>> said[-1]["label"], said[-1]["lower"] < 158.0 < said[-1]["upper"]
    (158.0, True)
    >>> model.predict({"size": 60, "town": "Bonn"})["prediction"] > model.predict({"size": 40})["prediction"]
    True
    """

    def __init__(self, target: str, *, bad_rows: str = "stop", **settings: Any) -> None:
        with _in_python():
            self._settings = _settings(target, settings)
        self.bad_rows = str(bad_rows)
        self._job: Job | None = None
        self._resumes_bad_rows = False

    @classmethod
    def of(cls, job: Job, *, bad_rows: str = "stop") -> Model:
        """The model of a job that was begun elsewhere."""
        model = cls.__new__(cls)
        model._settings, model.bad_rows = job.settings, str(bad_rows)
        model._job, model._resumes_bad_rows = job, False
        return model

    @property
    def job(self) -> Job:
        """All that it knows: settings, schema, learner, state, metrics."""
        if self._job is None:
            raise ValueError("it has learned nothing yet: call learn(table) first")
        return self._job

    @property
    def settings(self) -> Settings:
        return self._settings

    @property
    def learner(self) -> Learner[Any]:
        """Who learns."""
        return self.job.learner

    @property
    def state(self) -> Any:
        """What it has learned: a value, for ``ovi.certificate`` and whatever else takes states."""
        return self.job.state

    @property
    def count(self) -> int:
        """How many rows it has learned from."""
        return 0 if self._job is None else self._job.metrics.count

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes in the order of their codes; none for numbers and counts."""
        return self.job.class_names

    def learn(self, table: Any, *, keep_columns: Sequence[str] = (), explain: bool = False) -> Any:
        """Predict each row before its label is used, then learn from it: what was predicted of each, what came, what it cost.

        ``keep_columns`` are passed through; ``explain`` adds what each column adds to the score, and takes one row at a time.

        Any split of the rows gives the same bits, once columns and labels are known by the first ``look`` rows. Where a bad
        row stops it, the rows before are learned from.
        """
        found = self._learned(table, Asked(keep_columns, explain))
        return None if found is None else self._given_back(*found)

    def _learned(self, table: Any, asked: Asked | None) -> tuple[AnySource, Collected, int] | None:
        """Learn, and give what was said of each row and how many there were; nothing is kept where nothing is ``asked``."""
        source, before = source_of(table), self._job
        settings = self._settings if before is None else replace(before.settings, first_row=0, end_row=None)
        saved = before.rejected.to_json() if before is not None and self._resumes_bad_rows else None
        rejected = Rejected(self.bad_rows, saved)
        window: dict[str, Any] = {"skip_rows": settings.first_row, "end_row": settings.end_row}
        with _in_python(), closing(rejected), open_stream(source, bad=rejected, **window, **settings.reading) as stream:
            job = self._begun_for(stream, source, settings, rejected)
            stream.numbers |= job.schema.numbers
            said: Collected | None = None
            if asked is not None:
                layout = Layout(job, asked, stream, labels=True)
                stream.numbers -= {*layout.beside}
                said, job.beside, job.explains = Collected(layout.columns), tuple(layout.beside), asked.explain
                job.on_rows = Predictions(layout, said).add_learned
            try:
                for _ in job.take_all(stream.steps(), stream):
                    pass
                job.finish()
            finally:
                job.on_rows, job.beside, job.explains = None, (), False
                if job.state is not None:
                    self._job, self._resumes_bad_rows = job, True
        return None if said is None else (source, said, 0 if job.position is None else job.position.rows)

    def predict(
        self, table: Any, *, keep_columns: Sequence[str] = (), explain: bool = False, bad_rows: str | None = None
    ) -> Any:
        """What is said of each row, in the table's own kind; labels are not read. A row that cannot be used has none.

        Columns that the model has never met say nothing; one that it knows must be there, if with missing values only. Of two
        classes ``probability`` is that of the second, of more each has one; ``set`` has the classes that hold the label as
        often as ``coverage`` asks, ``decision`` what ``cost`` and ``abstain`` make of it. ``keep_columns`` are passed through,
        and ``explain`` adds what ``explain(table)`` gives.
        """
        return self._predicted(table, Asked(keep_columns, explain), bad_rows)

    def explain(self, table: Any, *, bad_rows: str | None = None) -> Any:
        """What each column adds to the prediction of each row: ``base`` and all of ``from_…`` together are the ``score``.

        The score is on the scale of the loss: a number, log-odds, the logarithm of a rate; of several classes the logarithm of
        the probability of the one predicted, by one-vs-rest its own log-odds. Learners on features of columns add through
        them, by the shares that columns have in each feature, and all by their weights in the pool. The base is the
        intercept, and what is no sum: the mean of probabilities instead of scores, that they sum to 1, the curve that sets
        them right, past labels.

        >>> import onlinevi as ovi
        >>> rows = [{"size": float(k % 50), "town": "Bonn", "price": 2.0 * (k % 50)} for k in range(300)]
        >>> parts = ovi.fit(rows, target="price", rule="implicit").explain({"size": 49.0, "town": "Bonn"})
        >>> list(parts), parts["from_size"] > 0.0
        (['score', 'base', 'from_size', 'from_town'], True)
        >>> abs(parts["score"] - parts["base"] - parts["from_size"] - parts["from_town"]) < 1e-9
        True
        """
        return self._predicted(table, Asked(explain=True), bad_rows, first=SCORE)

    def _predicted(self, table: Any, asked: Asked, bad_rows: str | None, first: str = "row") -> Any:
        """The predictions, from this column on."""
        source, job = source_of(table), self.job
        policy = bad_rows or (self.bad_rows if self.bad_rows in FILELESS else "skip")
        rejected = Rejected(policy)
        with _in_python(), closing(rejected), open_stream(source, bad=rejected, **job.settings.reading) as stream:
            self._check_columns(stream, source)
            layout = Layout(job, asked, stream, labels=False)
            said = Collected(layout.columns)
            predict_stream(job, stream, said, rejected, layout)
            rows = max(stream.position.rows, rejected.settle())
        return self._given_back(source, said, rows, first)

    @property
    def importance(self) -> list[dict[str, Any]]:
        """How much each column of the table matters to what is predicted, the most first (``onlinevi.importance``).

        ``value`` is its share in the variance of predictions and ``std`` how uncertain the share is; a column of names is one.

        >>> import onlinevi as ovi
        >>> rows = [{"size": float(k % 50), "town": "Bonn", "price": 2.0 * (k % 50)} for k in range(300)]
        >>> [(told["name"], round(told["value"], 2)) for told in ovi.fit(rows, target="price", rule="implicit").importance]
        [('size', 1.0), ('town', 0.0)]
        """
        return by_column(importance_of(self.job)[0])

    @property
    def metrics(self) -> dict[str, Any]:
        """How well it has predicted, each row before its label was used: metrics by their names, over all rows.

        ``recent`` has them over the last rows, ``constant`` and ``last_label`` those of always saying the same and of saying
        the same as last time, and ``skill`` says how much better the model is: 1 is all that can be gained, 0 nothing.
        """
        return metrics_by_name(self.job)

    @property
    def alarms(self) -> Alarms | None:
        """When losses grew, and which columns moved then; None where ``alarm=None`` was asked for."""
        return alarms_of(self.job)

    @property
    def certificate(self) -> Certified:
        """What is certain of the regret, whatever the data, as a sentence and in numbers."""
        return certified(self.job)

    def info(self) -> dict[str, Any]:
        """All that ``onlinevi info --json`` tells: the schema, the weights, what was learned from, what is certain."""
        return summarise(self.job)

    def report(self, path: str | Path) -> Path:
        """Write the page that ``onlinevi run`` leaves, with all figures in it."""
        return Path(write_report(results_of(self.job).to_json(), Path(path)))

    def save(self, path: str | Path) -> None:
        """Write it as ``onlinevi run`` does; ``ovi.open`` and every command read it. The file is replaced as a whole."""
        save_job(path, self.job)

    def _begun_for(self, stream: Stream, source: AnySource, settings: Settings, rejected: Rejected) -> Job:
        """The job, ready for the rows of a source."""
        job = self._job
        if job is None:
            job, _ = first_job(settings, stream, rejected)
            if isinstance(source, Memory) and _are_text(stream, job.settings.target):
                job.notes[TEXT_LABELS] = True
        else:
            self._check_columns(stream, source)
            job.go_on(settings, rejected)
        job.take_odd(rejected.odd)
        return job

    def _check_columns(self, stream: Stream, source: AnySource) -> None:
        """Refuse a table that lacks columns which the model has; rows that are dicts may lack any."""
        absent = absent_columns(self.job, stream) if stream.peek(1) else []
        if absent and not (isinstance(source, Memory) and source.of_rows):
            there = {name for batch in stream.peek(1) for name in batch.columns} - {*self.job.schema.kinds}
            lacks = ", ".join(f"{name!r}{did_you_mean(name, there)}" for name in absent[:5])
            raise ValueError(
                f"the table lacks {lacks}, which the model has learned from: give each the name that it had, or a column of "
                "None where it is missing in all rows"
            )

    def _given_back(self, source: AnySource, said: Collected, rows: int, first: str = "row") -> Any:
        """As the caller has tables, from one column on; of a source that is none in memory with the numbers of the rows."""
        table = said.table(rows if isinstance(source, Memory) else None)
        names = table.column_names
        if first in names:
            table = table.select([name for name in names if name == "row" or names.index(name) >= names.index(first)])
        if self.job.kind == "classes" and not self.job.notes.get(TEXT_LABELS):
            for name in ("prediction", SET, DECISION, "label"):
                if name in table.column_names:
                    place = table.column_names.index(name)
                    table = table.set_column(place, name, _as_labels(table[name], self.classes))
        return source.give_back(table) if isinstance(source, Memory) else table

    def __reduce__(self) -> tuple[Any, ...]:
        if self._job is None:
            return _not_begun, (self._settings, self.bad_rows)
        return _unpacked, (pack_job(self._job), self.bad_rows)

    def _repr_html_(self) -> str:
        if self._job is None:
            return html_of("Model", {"target": self._settings.target, "rows": 0})
        results, job = results_of(self._job), self._job
        facts: dict[str, Any] = {
            "what": results.head.task.sentence,
            "rows": self.count,
            "average loss": job.metrics.average_loss,
        }
        tables = []
        if (told := results.metrics) is not None:
            facts |= {"but": told.verdict} if told.verdict else {}
            named = [*told.so_far.learner]
            scored = {title: [number(whose.get(name)) for name in named] for title, whose in by_whose(told).items()}
            tables.append(html_rows({"metric": [NAMES.get(name, name) for name in named], **scored}, most=len(named)))
        if kinds := {name: kind or "no value yet" for name, kind in job.schema.kinds.items()}:
            tables.append(html_rows({"column": list(kinds), "taken for": list(kinds.values())}))
        return html_of("Model", facts | {"certain": self.certificate.sentence}, *tables)

    def __repr__(self) -> str:
        if self._job is None:
            return f"Model(target={self._settings.target!r}, rows=0)"
        what, loss = self._job.kind, self._job.metrics.average_loss
        return f"Model(target={self._settings.target!r}, {what}, rows={self.count}, average_loss={loss:.6g})"


def fit(table: Any, target: str, *, bad_rows: str = "stop", **settings: Any) -> Model:
    """Learn from a table, a file or rows in one pass, in their order: the model that ``onlinevi run`` would write.

    The parameters are those of ``Model``. Where a bad row stops it, ``error.learned`` is the model of the rows before.

    >>> import onlinevi as ovi
    >>> rows = [{"hours": k % 10, "passed": "yes" if k % 10 > 4 else "no"} for k in range(300)]
    >>> model = ovi.fit(rows, target="passed", rule="implicit")
    >>> model.predict([{"hours": 9}, {"hours": 1}])[0]["prediction"], model.metrics["events"]
    ('yes', 300)
    """
    model = Model(target, bad_rows=bad_rows, **settings)
    try:
        model._learned(table, None)  # of a long file nothing is kept but what was learned
    except BadInput as error:
        error.learned = model if model.count else None
        raise
    model.job  # noqa: B018
    return model


def open_model(path: str | Path, *, bad_rows: str = "stop") -> Model:
    """The model that ``model.save``, ``onlinevi run`` or ``onlinevi merge`` wrote; it goes on with the same bits."""
    return Model.of(load_job(path), bad_rows=bad_rows)


def _unpacked(content: bytes, bad_rows: str) -> Model:
    return Model.of(unpack_job(content, "a model"), bad_rows=bad_rows)


def _not_begun(settings: Settings, bad_rows: str) -> Model:
    return Model(bad_rows=bad_rows, **{part.name: getattr(settings, part.name) for part in fields(Settings)})


def _settings(target: str, given: dict[str, Any]) -> Settings:
    known = [part.name for part in fields(Settings)]
    if unknown := [name for name in given if name not in known]:
        meant = did_you_mean(unknown[0], known)
        raise TypeError(f"{unknown[0]}={given[unknown[0]]!r}: is no setting of a run{meant}; there are {', '.join(known[1:])}")
    if not isinstance(target, str):
        raise TypeError(f"target={target!r}: needs the name of a column")
    return Settings(target, **given)


def _are_text(stream: Stream, target: str) -> bool:
    """Whether the labels of the first rows are text by their type."""
    return any(is_text(plain(batch.columns[target])) for batch in stream.peek(1) if target in batch.columns)


def _as_labels(values: Any, classes: tuple[str, ...]) -> Any:
    """Names of classes, or sets of such, as what they spell: whole numbers, numbers, true and false; or as they are."""
    pa = arrow()
    if set(classes) <= {"true", "false"}:
        kind = pa.bool_()
    elif not all(map(is_number, classes)):
        return values
    else:
        kind = pa.int64() if all(float(name).is_integer() and "." not in name for name in classes) else pa.float64()
    return values.cast(pa.list_(kind) if pa.types.is_list(values.type) else kind)


@contextmanager
def _in_python() -> Iterator[None]:
    """Messages name options of the command line; here they are arguments of the same name."""
    try:
        yield
    except ValueError as error:
        message = str(error)
        told = OPTION.sub(lambda found: found[1].replace("-", "_") + "=…", message).replace(*POLICY)
        if told == message or type(error) not in (ValueError, BadInput):
            raise
        raise (BadInput(told, error.refused) if isinstance(error, BadInput) else ValueError(told)) from error
