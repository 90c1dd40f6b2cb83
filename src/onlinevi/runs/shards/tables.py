"""Shards of named columns, as files are: looked through for their names and moments, and learned from by a job each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from onlinevi.data import Batch, Encoded, Schema, Stream, encode, open_stream
from onlinevi.engine import Vector
from onlinevi.guarantees import LossSums
from onlinevi.learners import Forecast, Inputs, InputState, Learner, pack, unpack
from onlinevi.runs.checkpoint import pack_job, unpack_job
from onlinevi.runs.job import Job, Origin
from onlinevi.runs.merge import add_accounts
from onlinevi.runs.metrics import LOSS
from onlinevi.runs.rejected import Rejected
from onlinevi.runs.settings import Settings
from onlinevi.runs.shards.fleet import Learned
from onlinevi.runs.shards.preparation import Survey, add_rows, open_to_all_names, united
from onlinevi.runs.shards.sources import Shard, as_source
from onlinevi.runs.widths import begin

ALL_SHARDS = "a first pass over all shards"
"""What ``Settings.prepare_like`` says where no model was named."""
MOST_LOOKED_AT, LEAST_OF_EACH = 100_000, 20
"""So many first rows of all shards are looked at together, and so many of each at least."""


@dataclass(frozen=True)
class TableWork:
    """What is done with each shard: picklable, and the same for all of them."""

    settings: Settings
    bad_rows: Literal["stop", "skip"]
    schema: Schema
    learner: Learner[Any]
    moments: InputState | None = None
    """Those that all shards share; before they are known, the schema is what their first rows have told."""

    @property
    def must_survey(self) -> bool:
        return self.moments is None

    def survey(self, shard: Shard) -> bytes:
        """The names and the moments of a shard's rows, and how many rows it has."""
        rejected, moments = Rejected(self.bad_rows), None
        schema = open_to_all_names(self.schema)
        with _opened(shard, self.settings, rejected) as stream:
            stream.numbers |= schema.numbers
            for batch in stream:
                schema, rows = encode(schema, batch, rejected)
                moments = add_rows(moments, schema, rows, centred=not self.schema.sparse)
            facts = {"rows": stream.position.rows, "schema": schema.to_json()}
        return pack(Inputs(), moments or InputState.start(schema.width), extra=facts)

    def prepared(self, surveys: Sequence[bytes]) -> TableWork:
        """The same for shards that share the columns, names and moments of all."""
        found = [unpack(one) for one in surveys]
        each = [Survey(Schema.from_json(one.extra["schema"]), one.state, one.extra["rows"]) for one in found]
        schema, moments = united(self.schema, each)
        self.settings.check_width(schema.width)
        return self.sharing(schema, moments)

    def sharing(self, schema: Schema, moments: InputState) -> TableWork:
        """The same with these columns and moments."""
        settings = self.settings
        if settings.prepare_like is None:
            settings = replace(settings, prepare_like=ALL_SHARDS)
        return replace(self, settings=settings, schema=schema, moments=moments)

    @staticmethod
    def rows_of(survey: bytes) -> int:
        """How many rows a surveyed shard has, bad ones too."""
        return int(unpack(survey).extra["rows"])

    def learn(self, shard: Shard, rows: tuple[int, int] | None, start: bytes | None) -> bytes:
        """A job of a shard's rows, or of those from one number to another, that starts from a state where one is given."""
        losses = LossSums()

        def on_rows(rows: Encoded, forecast: Forecast, loss: Vector, parts: Any = None, /) -> None:
            nonlocal losses
            losses = losses.add(loss)

        first, end = rows or (0, None)
        job = self.job(Rejected(self.bad_rows), first, end)
        job.on_rows = on_rows
        job.state = None if start is None else unpack(start).state
        with _opened(shard, job.settings, job.rejected, first, end) as stream:
            stream.numbers |= job.schema.numbers
            for batch in stream.steps():
                job.take(batch, stream.position)
            job.position = stream.position
        job.finish()
        if job.state is None:
            job.state = begin(job.learner, job.schema.width, self.moments, sparse=job.schema.sparse)
        job.snapshots = type(job.snapshots)()  # of one part of many: in no report
        job.notes["losses"] = asdict(losses) if losses.count else None
        return pack_job(job)

    def job(self, rejected: Rejected | None = None, first: int = 0, end: int | None = None) -> Job:
        """A job of the columns and moments that all share, before its first row."""
        job = Job(replace(self.settings, first_row=first, end_row=end), self.schema, rejected=rejected)
        job.learner, job.prepared_by = self.learner, self.moments
        return job

    @staticmethod
    def learned(content: bytes, name: str) -> Learned:
        """What ``learn`` has given."""
        job = unpack_job(content, name)
        paid = float(job.metrics.totals[LOSS])
        return Learned(job.state, job.metrics.count, paid, job.rejected.count, job.notes["losses"], job)

    def job_of_all(self, state: Any, shards: Sequence[Learned]) -> Job:
        """The model of all shards, with what is told of their rows."""
        merged, jobs = self.job(), [shard.job for shard in shards if shard.job is not None]
        merged.state = state
        add_accounts(merged, jobs)
        origins: dict[str, Origin] = {}
        for job in jobs:
            for origin in job.origins:
                first = origins.get(origin.position.source, origin).first
                origins[origin.position.source] = Origin(min(first, origin.first), origin.position)
        merged.merged = tuple(origins.values())
        return merged


@contextmanager
def _opened(shard: Shard, settings: Settings, rejected: Rejected, first: int = 0, end: int | None = None) -> Iterator[Stream]:
    with open_stream(as_source(shard), bad=rejected, skip_rows=first, end_row=end, **settings.reading) as stream:
        yield stream


def first_rows(shard: Shard, settings: Settings, rows: int) -> tuple[Batch, ...]:
    """The first rows of a shard."""
    with _opened(shard, settings, Rejected("skip")) as stream:
        return stream.peek(rows)


def rows_to_look_at(settings: Settings, shards: int) -> int:
    """Of each shard."""
    return max(min(settings.look, MOST_LOOKED_AT // shards), LEAST_OF_EACH)
