"""Several rules on one source: rows are read and encoded once, and each rule takes the same."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from onlinevi.data import BadInput, Batch, Encoded, Follow, Position, Schema, Stream, encode, first_look, open_stream
from onlinevi.engine import Vector
from onlinevi.runs.job import Job
from onlinevi.runs.metrics import LOSS, STEP, Measured, certified_regret
from onlinevi.runs.rejected import Rejected
from onlinevi.runs.report.document import to_plain
from onlinevi.runs.report.measures import BASELINES
from onlinevi.runs.results import results_of
from onlinevi.runs.run import Ended, Stopper
from onlinevi.runs.settings import Settings
from onlinevi.runs.widths import begin


@dataclass(frozen=True)
class Standing:
    """How one rule has done."""

    rule: str
    events: int
    average_loss: float
    error_rate: float | None
    """For classes."""
    coverage: float | None
    """For numbers, counts and quantiles."""
    certified_regret: float | None
    """A row, where one is certain."""
    seconds: float
    """Of predicting and learning, without reading and compiling."""
    refused: int
    """Rows that this rule could not use, and the others perhaps could."""
    out: bool = False
    """Whether it could not play to the end: its loss is then of fewer rows, if of any."""
    why: str | None = None
    """Why it is out, or refused a row first, in words."""
    metrics: dict[str, float] = field(default_factory=dict)
    """By their names, the most telling first."""
    recent: dict[str, float] = field(default_factory=dict)
    """The same over the last rows, where there were more."""


class Entrant:
    """A job that plays on its own: what it refuses, or what ends it, is no concern of the others."""

    def __init__(self, settings: Settings, schema: Schema) -> None:
        self.job = Job(settings, schema, rejected=Rejected("skip"))
        self.seconds = 0.0
        self.ended: str | None = None
        """Why it plays no more, in words."""

    def learn(self, source: str, schema: Schema, rows: Encoded, position: Position) -> None:
        if self.ended is not None:
            return
        if self.job.state is None:
            self._warm_up(rows)
        begun = time.monotonic()
        try:
            self.job.learn(source, schema, rows, position)
        except (ValueError, ArithmeticError, MemoryError) as error:
            self.ended = f"out behind row {self.job.metrics.count:,}: {error}"
        self.seconds += time.monotonic() - begun

    def _warm_up(self, rows: Encoded) -> None:
        """Compile, so that no rule's seconds have it in them; what comes of it is dropped."""
        assert rows.y is not None
        with suppress(ValueError):
            state = begin(self.job.learner, rows.X.shape[1], sparse=hasattr(rows.X, "tocsr"))
            self.job.learner.update_many(state, rows.X[:1], rows.y[:1])

    @property
    def standing(self) -> Standing:
        job, rejected = self.job, self.job.rejected
        classes, known = job.kind == "classes", job.metrics.count > 0
        first = f"row {rejected.first[0]['row']}: {rejected.first[0]['reason']}" if rejected.count else None
        return Standing(
            rule=job.settings.rule,
            events=job.metrics.count,
            average_loss=job.metrics.average_loss,
            error_rate=1.0 - job.metrics.hit_rate if classes and known else None,
            coverage=None if classes or not known else job.metrics.hit_rate,
            certified_regret=certified_regret(job.state) if known and not job.settings.late else None,
            seconds=self.seconds,
            refused=rejected.count,
            out=self.ended is not None,
            why=self.ended or first,
            metrics=job.metrics.scores.so_far().learner if known else {},
            recent=_lately(job).learner,
        )

    @property
    def curve(self) -> tuple[Vector, Vector]:
        """Steps, and the average loss up to each."""
        table = self.job.metrics.curve.table
        return table[:, STEP], table[:, LOSS] / table[:, STEP]


class Comparison:
    """One pass for all rules. ``settings`` say what is asked but for rule and family. Use it in a ``with``.

    Rows that cannot be read go where ``bad_rows`` says. Those that one rule refuses are counted for that rule.
    """

    def __init__(
        self,
        settings: Settings,
        rules: Sequence[str],
        source: str,
        *,
        family: str | None = None,
        bad_rows: str = "stop",
        follow: Follow | None = None,
    ) -> None:
        self.unfit: dict[str, str] = {}
        """Rules that cannot play at all, and why."""
        asked = []
        for rule in dict.fromkeys(rules):
            alone = replace(settings, rule=rule)
            try:
                asked.append(replace(alone, family=family))
            except ValueError as error:
                self.unfit[rule] = str(error)
        if not asked:
            raise ValueError("; ".join(self.unfit.values()) or "no rule to compare: name one at least")
        self.rejected = Rejected(bad_rows)
        with ExitStack() as opened:
            opened.callback(self.rejected.close)
            self.stream: Stream = opened.enter_context(
                open_stream(
                    source,
                    bad=self.rejected,
                    skip_rows=settings.first_row,
                    end_row=settings.end_row,
                    follow=follow,
                    **settings.reading,
                )
            )
            seen = settings.first_rows(self.stream)
            self.schema = settings.schema(seen).taking_odd(self.rejected.odd)
            self.columns = first_look(self.schema, seen)
            """What the first rows were taken for."""
            self.stream.numbers |= self.schema.numbers
            self.entrants = [Entrant(each, self.schema) for each in asked]
            opened.pop_all()  # from here on __exit__ closes them

    def go(self, stopper: Stopper, watch: Callable[[Comparison], None] | None = None) -> tuple[Ended, BadInput | None]:
        """To the end, to a bad row, or until stopped behind a batch."""
        try:
            while (batch := stopper.next(self.stream)) is not None:
                self._take(batch, self.stream.position)
                if watch is not None:
                    watch(self)
        except BadInput as error:
            return "bad row", error
        if stopper.code:
            return "interrupted", None
        self.rejected.settle()
        return "end", None

    def _take(self, batch: Batch, position: Position) -> None:
        if not len(batch):
            self.rejected.settle(position.rows)
            return
        try:
            self.schema, rows = encode(self.schema, batch, self.rejected)
        except BadInput as stopped:
            good = 0 if stopped.refused is None else int(np.searchsorted(batch.rows, stopped.refused.row))
            if good:
                self._take(batch.slice(0, good), position)
            raise
        for entrant in self.entrants:
            entrant.learn(batch.source, self.schema, rows, position)
        if all(entrant.ended is not None for entrant in self.entrants):
            raise ValueError(f"no rule can play on; {self.entrants[0].job.settings.rule} is {self.entrants[0].ended}")
        self.rejected.settle(position.rows)
        self.rejected.as_missing += rows.odd

    @property
    def leader(self) -> Entrant:
        """The one with the lowest average loss so far."""
        playing = [entrant for entrant in self.entrants if entrant.ended is None] or self.entrants
        return min(playing, key=lambda entrant: entrant.job.metrics.average_loss)

    @property
    def standings(self) -> list[Standing]:
        """The lowest average loss first; those that are out last."""
        unfit = [Standing(rule, 0, math.nan, None, None, None, 0.0, 0, True, why) for rule, why in self.unfit.items()]
        played = [entrant.standing for entrant in self.entrants]
        return sorted(played + unfit, key=lambda one: (one.out, math.isnan(one.average_loss), one.average_loss))

    @property
    def curves(self) -> dict[str, tuple[Vector, Vector]]:
        """The curve of each rule that has played, the lowest in the end first."""
        played = {entrant.job.settings.rule: entrant.curve for entrant in self.entrants if entrant.job.metrics.count}
        return {standing.rule: played[standing.rule] for standing in self.standings if standing.rule in played}

    def to_json(self, ended: Ended) -> dict[str, Any]:
        """JSON values: what was asked, and how each rule has done."""
        head, position, curves = results_of(self.entrants[0].job).head, self.stream.position, self.curves
        parts = {rule: dict(zip(("steps", "average_loss"), curve, strict=True)) for rule, curve in curves.items()}
        document: dict[str, Any] = to_plain(
            {
                "task": head.task,
                "loss": head.settings["loss"],
                "source": {"path": position.source, "sha256": position.sha256, "rows": position.rows},
                "bad_rows": self.rejected.count,
                "cells_as_missing": self.rejected.as_missing,
                "stopped": ended,
                "baselines": _without_model(self.leader.job.metrics.scores.so_far()),
                "recent_baselines": _without_model(_lately(self.leader.job)),
                "rules": [asdict(standing) | {"curve": parts.get(standing.rule)} for standing in self.standings],
            }
        )
        return document

    def __enter__(self) -> Comparison:
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.close()
        self.rejected.close()


def _lately(job: Job) -> Measured:
    """The metrics of the last rows; none where there were no others."""
    lately = job.metrics.scores.lately()
    return lately if lately.events < job.metrics.count else Measured(0, {})


def _without_model(scored: Measured) -> dict[str, dict[str, float]]:
    """What needs no model has in the same metrics, by its name."""
    return {name: getattr(scored, who) for who, name in BASELINES.items()} if scored.events else {}
