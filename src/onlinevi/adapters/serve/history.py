"""A model on disk, and the job that its journal amounts to: events taken in order, snapshots, recovery, rollback.

An event is on disk before it is learned, and is learned from what the very line says that lies there. So what is in memory is
always what a replay of the journal gives, to the last bit, whatever the groups in which events came.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from onlinevi.adapters.serve.journal import Connect, DamagedJournal, Event, Journal, connect
from onlinevi.adapters.serve.lines import Lines, Noted, as_line, encode_lines, first_job, plain_rows
from onlinevi.data import Encoded, Position, Schema, sync_directory
from onlinevi.learners import CheckpointError
from onlinevi.runs import Collected, Job, Layout, Predictions, Settings, Thinned, certified, load_job, save_job

JOURNAL = "journal.sqlite"
SNAPSHOTS = "snapshots"
PLACE = "journal"
"""The note of a snapshot that says behind which event it was taken, and the journal's sum there."""
COURSE = "certified"
"""The note that has what was certain of the regret on the way."""
COURSE_POINTS, COURSE_SECONDS = 64, 1.0
"""The most points of it, and the seconds between two of them."""
KEPT = 8
"""So many of the newest snapshots are kept; of older ones each second, each fourth, and so on."""

Status: TypeAlias = Literal["learned", "known", "refused", "unknown", "conflict"]
"""What became of an event: ``known`` was learned before, ``conflict`` has the id of an event with another row or label."""


class Asked(NamedTuple):
    """An event to learn: its row with the label, as a line of JSON; or a label alone, for the row that waits under the id."""

    id: str | None
    line: str | None
    label: Any = None
    row: Mapping[str, Any] | None = None
    """What the line says, where it was just made: it need not be read again."""


class Answer(NamedTuple):
    """What became of it: its number in the journal and what was said before its label was used, or the reason against it."""

    status: Status
    number: int | None = None
    said: dict[str, Any] | None = None
    reason: str = ""
    column: str | None = None


class History:
    """The journal and the snapshots of a folder, and the job that they amount to. For one thread."""

    def __init__(self, folder: Path, *, every: int = 10_000, connection: Connect = connect) -> None:
        self.folder, self.every = folder, every
        if not (folder / JOURNAL).exists():
            raise DamagedJournal(f"{folder / JOURNAL} is not there: put back a copy of it")
        self.journal = Journal(folder / JOURNAL, connection)
        self.damaged: dict[str, str] = {}
        """Snapshots that could not be read, and why."""
        self.replayed = 0
        """How many events were learned anew at the start."""
        self.whole = True
        """Whether memory has all that the journal has, and no more."""
        self.job: Job | None = None
        """None before the first event."""
        self.snapshots: list[int] = []
        """Behind which events there are snapshots."""
        self.snapshot_at = 0.0
        """When the newest of them was written."""
        self.course = Thinned(COURSE_POINTS, 2)
        """Events, and what was certain of the regret behind them, now and then."""
        self._course_at = -math.inf
        try:
            self.journal.check()
            self.recover()
        except BaseException:
            self.journal.close()
            raise

    @staticmethod
    def begin(folder: Path, settings: Settings, model: bytes | None = None, *, connection: Connect = connect) -> None:
        """Make the files of a model that has learned nothing here; it may begin with what another has learned."""
        (folder / SNAPSHOTS).mkdir(parents=True)
        if model is not None:
            _snapshot(folder, 0).write_bytes(model)
            job = load_job(_snapshot(folder, 0))
            job.notes[PLACE] = [0, ""]
            job.notes.pop(COURSE, None)
            save_job(_snapshot(folder, 0), job)
        journal = Journal(folder / JOURNAL, connection)
        with journal.writing():
            journal.note("settings", settings.to_json())
            journal.note("made", time.time())
        journal.close()
        sync_directory(folder)

    # --- where it stands

    @cached_property
    def settings(self) -> Settings:
        """What was asked for when it was made."""
        given = self.journal.fact("settings")
        if given is None:
            raise DamagedJournal(f"{self.journal.path}: it has no settings: put back a copy of the file")
        known = {part.name for part in fields(Settings)}
        return Settings(**{name: value for name, value in given.items() if name in known})

    @property
    def number(self) -> int:
        """How many events it has."""
        return self.journal.count

    def recover(self) -> None:
        """The newest snapshot that is whole and of this journal, and the events behind it."""
        self.whole = False
        self.job, self.damaged, behind = None, {}, 0
        self.course = Thinned(COURSE_POINTS, 2)
        self.snapshots = sorted(int(path.stem) for path in (self.folder / SNAPSHOTS).glob("*.ovi") if path.stem.isdigit())
        for number in reversed(self.snapshots):
            path = _snapshot(self.folder, number)
            try:
                job = load_job(path)
                place = job.notes.get(PLACE)
                if place is None or place[0] != number:
                    raise CheckpointError(f"{path}: it does not say behind which event it was taken")
            except CheckpointError as error:
                self.damaged[path.name] = str(error)
                self.snapshots.remove(number)
                continue
            if self.journal.sum_behind(number) == bytes.fromhex(place[1]):
                self.job, behind, self.snapshot_at = job, number, path.stat().st_mtime
                if COURSE in job.notes:
                    self.course.restore(job.notes[COURSE])
                break
            if not self.journal.took_back(number):
                raise DamagedJournal(
                    f"{self.journal.path}: it ends at event {self.number}, and is not the journal of {path.name}: put back a "
                    "copy of it with its -wal file, or take newer snapshots away to go on without their events"
                )
            path.unlink()
            self.snapshots.remove(number)
        if self.job is None and (began := _snapshot(self.folder, 0).name) in self.damaged:
            raise DamagedJournal(f"the model that it began with cannot be read: {self.damaged[began]}")
        self.replayed = 0
        for block in self.journal.events(behind):
            self._replay(block)
            self.replayed += len(block)
        self.whole = True

    def _replay(self, block: Sequence[Event]) -> None:
        job = self._begun()
        noted = Noted()
        encoded = encode_lines(job, [event.line for event in block], noted)
        if noted.reasons_by_row:
            row, refused = next(iter(noted.reasons_by_row.items()))
            raise DamagedJournal(
                f"{self.journal.path}: event {block[row].number} was acknowledged, and is refused now ({refused.reason}): "
                "was it written by another version?"
            )
        self._learn(job, encoded, block[0].number - 1, block[-1].number)

    def _begun(self) -> Job:
        """The job; before its first event as it began."""
        if self.job is None:
            schema = self.journal.fact("schema")
            if schema is None:
                raise DamagedJournal(f"{self.journal.path}: it has events, and does not say what their columns are")
            self.job = Job(self.settings, Schema.from_json(schema))
        return self.job

    # --- events

    def take(self, asked: Sequence[Asked]) -> list[Answer]:
        """Learn events in this order, as far as they can be: on disk together, then in memory."""
        answers: list[Answer | None] = []
        fresh: list[tuple[int, str | None, str]] = []
        rows: list[str | Mapping[str, Any]] = []
        told: dict[str, str] = {}
        for place, one in enumerate(asked):
            found = self._resolved(one, told)
            if isinstance(found, str):
                fresh.append((place, one.id, found))
                rows.append(found if one.row is None else one.row)
                if one.id is not None:
                    told[one.id] = found
            answers.append(found if isinstance(found, Answer) else None)
        job, first = self.job, self.job is None
        if fresh and first:
            job = first_job(self.settings, rows)
        if fresh:
            assert job is not None
            noted = Noted()
            encoded = encode_lines(job, rows, noted)
            if noted.reasons_by_row:  # what they would have brought is not to be there
                for row, refused in noted.reasons_by_row.items():
                    answers[fresh[row][0]] = Answer("refused", reason=refused.reason, column=refused.column)
                left = [row for row in range(len(fresh)) if row not in noted.reasons_by_row]
                fresh, rows = [fresh[row] for row in left], [rows[row] for row in left]
                encoded = encode_lines(job, rows, Noted()) if fresh else []
        if fresh:
            assert job is not None
            before, now = self.number, time.time()
            job.settings.check_width(encoded[-1][1].X.shape[1])
            self.whole = False
            try:
                with self.journal.writing():
                    if first:
                        self.journal.note("schema", job.first_schema.to_json())
                    for _, id_, line in fresh:
                        self.journal.add(id_, line, now)
            except BaseException:
                self.whole = self.number == before  # as nothing was written, nothing is to be learned
                raise
            self.job = job
            try:
                said, refused_by_number = self._learn(job, encoded, before, self.number)
            except Exception:  # nobody was told of them; left there they would stop every replay
                self._take_back(before)
                raise
            self.whole = True
            self._note_what_is_certain(job)
            for k, (place, _, _) in enumerate(fresh):
                number = before + 1 + k
                reason = refused_by_number.get(number)
                status: Status = "learned" if reason is None else "refused"
                answers[place] = Answer(status, number, said.get(number), reason or "")
            if self.number // self.every > before // self.every:
                with suppress(OSError):  # the journal has it all, and there will be another one
                    self.snapshot()
        return [self._again(one, asked[place]) for place, one in enumerate(answers)]

    def _again(self, answer: Answer | None, asked: Asked) -> Answer:
        """What stands there by now of an event whose like came in the same group."""
        if answer is not None:
            return answer
        found = self._resolved(asked, {})
        return found if isinstance(found, Answer) else Answer("refused", reason="its like in the same call was refused")

    def _resolved(self, asked: Asked, told: dict[str, str]) -> str | Answer | None:
        """The line to learn, or why there is none; None where the same id comes twice, and the first decides."""
        line, target = asked.line, self.settings.target
        if asked.id is None:
            assert line is not None
            return line
        if asked.id in told:
            before = told[asked.id]
            if _is_again(asked, before, target):
                return None
            return Answer("conflict", reason=f"id {asked.id!r} comes twice, with another row or label")
        event = self.journal.event_of(asked.id)
        if event is not None:
            if _is_again(asked, event.line, target):
                return Answer("known", event.number)
            return Answer("conflict", event.number, reason=f"id {asked.id!r} was learned with another row or label")
        if line is not None:
            return line
        waiting = self.journal.waiting_line(asked.id)
        if waiting is None:
            reason = f"no row waits under id {asked.id!r}: it was never predicted, or has waited too long; send the row too"
            return Answer("unknown", reason=reason)
        return as_line({**json.loads(waiting), target: asked.label})

    def _learn(
        self, job: Job, encoded: Sequence[tuple[Schema, Encoded]], before: int, number: int
    ) -> tuple[dict[int, dict[str, Any]], dict[int, str]]:
        """Learn rows that lie behind this event, up to another: what was said of each, and why some were refused."""
        layout = Layout(job, labels=True)
        noted, said = Noted(), Collected(layout.columns)
        noted.go_on(job.rejected)
        spent, began = job.seconds, time.monotonic()
        position = Position(Lines.name, number, number, self.journal.sum_behind(number).hex())  # type: ignore[union-attr]
        job.rejected = noted
        job.on_rows = Predictions(layout, said).add_learned
        try:
            for schema, rows in encoded:
                job.learn(Lines.name, schema, rows._replace(rows=rows.rows + before), position)
        finally:
            job.on_rows = None
        job.position = position
        job.clock.add(np.array([[job.metrics.count, spent + time.monotonic() - began]]))
        refused = {row + 1: one.reason for row, one in noted.reasons_by_row.items()}
        return {row + 1: told for row, told in plain_rows(said).items()}, refused

    def _note_what_is_certain(self, job: Job) -> None:
        now = time.monotonic()
        if now - self._course_at < COURSE_SECONDS or job.state is None or not job.metrics.count:
            return
        self._course_at, regret = now, certified(job).regret
        if regret is not None:
            self.course.add(np.array([[job.metrics.count, regret]]))

    # --- rows that wait

    def wait(self, rows: Sequence[tuple[str, str]]) -> list[Answer]:
        """Keep rows until their labels come, on disk together."""
        answers, now = [], time.time()
        with self.journal.writing():
            for id_, line in rows:
                there = self.journal.waiting_line(id_)
                event = self.journal.event_of(id_)
                if event is not None:
                    answers.append(Answer("conflict", event.number, reason=f"id {id_!r} has its label already"))
                elif there not in (None, line):
                    answers.append(Answer("conflict", reason=f"another row waits under id {id_!r}"))
                else:
                    if there is None:
                        self.journal.wait(id_, line, now)
                    answers.append(Answer("known" if there else "learned"))
        return answers

    def purge(self, most: int, seconds: float) -> int:
        """Let go of rows that have waited longer than this, and of the oldest beyond so many."""
        with self.journal.writing():
            return self.journal.purge(most, time.time() - seconds)

    # --- versions

    def snapshot(self) -> int:
        """Write what is known now to a file of its own; behind which event that is."""
        job, number = self.job, self.number
        if job is not None and job.state is not None:
            job.notes[PLACE] = [number, self.journal.sum_behind(number).hex()]  # type: ignore[union-attr]
            job.notes[COURSE] = self.course.to_json()
            save_job(_snapshot(self.folder, number), job)
            self.snapshots, self.snapshot_at = sorted({*self.snapshots, number}), time.time()
            self._thin()
        return number

    def _thin(self) -> None:
        """The newest stay; of those before them every second one, of those before them every fourth, and so on."""
        for age, number in enumerate(reversed(self.snapshots[:-KEPT]), 1):
            if number % (self.every << (age - 1).bit_length()):
                _snapshot(self.folder, number).unlink(missing_ok=True)
                self.snapshots.remove(number)

    def roll_back(self, number: int) -> int:
        """Go back to what was known behind an event; how many events were taken back. They are kept apart in the journal."""
        if not 0 <= number <= self.number:
            raise ValueError(f"to={number}: there are events 0 to {self.number:,}")
        lost = self._take_back(number)
        self.recover()
        return lost

    def _take_back(self, number: int) -> int:
        with self.journal.writing():
            lost = self.journal.undo_behind(number)
            if number == 0:
                self.journal.note("schema", None)
        return lost

    def close(self) -> None:
        self.journal.close()


def _is_again(asked: Asked, there: str, target: str) -> bool:
    """Whether what is asked says the same as the line that is there, as far as it says anything."""
    if asked.line == there:
        return True
    row = json.loads(there)
    if asked.line is not None:
        return asked.line == as_line(row)
    label = row.get(target)
    return bool(label == asked.label) and isinstance(label, bool) == isinstance(asked.label, bool)


def _snapshot(folder: Path, number: int) -> Path:
    return folder / SNAPSHOTS / f"{number:012d}.ovi"
