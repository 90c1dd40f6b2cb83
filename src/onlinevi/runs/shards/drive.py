"""Stage after stage over all shards: looked at, surveyed, learned from round by round, and added up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

from onlinevi.guarantees import LossSums
from onlinevi.learners import Inputs, InputState, Learner, for_classes, pack, with_sets
from onlinevi.learners.store import encode as as_json
from onlinevi.runs.begin import SAME_COLUMNS
from onlinevi.runs.checkpoint import load_job
from onlinevi.runs.settings import Settings
from onlinevi.runs.shards.attempts import ATTEMPTS, Call, Crew, Done, call
from onlinevi.runs.shards.fleet import BadShard, Fleet, Learned, Progress, ShardReport
from onlinevi.runs.shards.kept import Kept
from onlinevi.runs.shards.matrices import MatrixWork
from onlinevi.runs.shards.preparation import with_fixed_inputs
from onlinevi.runs.shards.sources import Shard, shards_of
from onlinevi.runs.shards.tables import TableWork, first_rows, rows_to_look_at

Policy: TypeAlias = Literal["stop", "skip"]
Work: TypeAlias = MatrixWork | TableWork


def learn_shards(
    learner: Learner[Any] | Settings,
    shards: Any,
    executor: Executor | Callable[[], Executor] | None = None,
    *,
    target: str | None = None,
    rounds: int = 1,
    workers: int | None = None,
    prepare_like: Any = None,
    horizon: int | None = None,
    bad_rows: Policy = "stop",
    bad_shards: Policy = "stop",
    attempts: int = ATTEMPTS,
    folder: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    row_groups: bool | None = None,
    watch: Callable[[Progress], object] | None = None,
    waiting: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> Fleet:
    """Learn from shards side by side, and add up what they have learned: prior + Σ (shard − prior) in natural parameters.

    ``shards`` are files (names, globs, folders; of one Parquet file its row groups), a list of (X, y), a list of functions
    that open one, or a Dask DataFrame, Bag, or pair of Arrays. Named columns need a ``target``. ``executor`` is any
    ``concurrent.futures.Executor``, or a function that makes one, so that it can be replaced if its workers die; None starts
    ``workers`` processes on this machine, as many as it has cores: then a script needs ``if __name__ == "__main__":``.

    Where rows are prepared, a first pass over all shards adds up their moments, and a second learns with them; one pass is
    enough with ``prepare_like``, a model, or a state, whose moments are taken. ``rounds`` cuts each shard into as many parts:
    each round starts from what all have learned in the last. ``bad_rows`` and ``bad_shards`` stop at, or skip, what cannot be
    used; a shard has failed after so many ``attempts``. A ``folder`` keeps finished shards, and with ``resume`` only the
    others are learned from. ``row_groups`` cuts Parquet files into theirs. ``watch`` is told of the progress, and ``waiting``
    is a context for the times when nothing is done but wait.

    The same shards give the same bits, whatever the executor, the number of workers, and the order in which they are done.

    >>> import numpy as np, onlinevi as ovi
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> X = np.random.default_rng(0).standard_normal((400, 2))
    >>> rows = [(part, part @ [1.0, -1.0]) for part in np.array_split(X, 4)]
    >>> learner = ovi.Linear(ovi.Squared(), ovi.NGVI(step=1.0), ovi.FullCovariance(box=None))
    >>> with ThreadPoolExecutor(2) as executor:
    ...     fleet = ovi.learn_shards(learner, rows, executor)
    >>> fleet.state.count, [one.events for one in fleet.shards], fleet.state.mean.round(2).tolist()
    (400, [100, 100, 100, 100], [1.0, -1.0])
    """
    if rounds < 1:
        raise ValueError(f"rounds={rounds}: needs at least one")
    for name, policy in (("bad_rows", bad_rows), ("bad_shards", bad_shards)):
        if policy not in ("stop", "skip"):
            raise ValueError(f'{name}={policy!r}: needs "stop" or "skip"')
    every = shards_of(shards, row_groups=row_groups)
    settings = _settings(learner, target, prepare_like)
    asked = {
        "learner": as_json(learner) if isinstance(learner, Learner) else None,
        "settings": None if settings is None else settings.to_json(),
        "rounds": rounds,
        "horizon": horizon,
        "bad_rows": bad_rows,
        "prepare_like": None if prepare_like is None else str(prepare_like),
    }
    kept = Kept(None if folder is None else Path(folder), every, asked, resume=resume, overwrite=overwrite)
    with Crew(executor, workers=workers, attempts=attempts, waiting=waiting) as crew:
        drive = _Drive(every, crew, kept, bad_shards, watch)
        work: Work
        if settings is None:
            assert isinstance(learner, Learner)
            work = MatrixWork(learner, bad_rows, horizon)
            work = work if prepare_like is None else work.sharing(_moments(prepare_like))
        else:
            work = _table_work(drive, learner if isinstance(learner, Learner) else None, settings, bad_rows)
        return drive.through(work, rounds)


def _settings(learner: Learner[Any] | Settings, target: str | None, prepare_like: Any) -> Settings | None:
    """What is asked of named columns; None where rows are numbers."""
    if isinstance(learner, Settings):
        return learner
    if not isinstance(learner, Learner):
        raise TypeError(f"learner={learner!r}: needs a learner such as Auto(loss), or Linear(loss, rule)")
    if target is None:
        return None
    inputs = getattr(learner, "inputs", None)
    if not isinstance(inputs, Inputs):
        raise ValueError(
            f"{type(learner).__name__} takes numbers as they are, and columns of files have any unit: "
            "Prepare(Inputs(), learner) brings them to one scale"
        )
    missing: Literal["nan", "refuse"] = "nan" if inputs.missing else "refuse"
    like = None if prepare_like is None else str(prepare_like)
    return Settings(target, task=learner.loss.target, rule=_rule_name(learner), missing=missing, prepare_like=like)


def _rule_name(learner: Any) -> str:
    """As a report tells it."""
    while hasattr(learner, "inner"):
        learner = learner.inner
    return str(getattr(getattr(learner, "rule", None), "name", "auto"))


def _moments(given: Any) -> InputState:
    found = given if isinstance(given, InputState) else getattr(getattr(given, "state", given), "inputs", None)
    if not isinstance(found, InputState):
        raise TypeError(f"prepare_like={given!r}: needs a state whose rows were prepared, or its moments, state.inputs")
    return found


def _table_work(drive: _Drive, learner: Learner[Any] | None, settings: Settings, bad_rows: Policy) -> TableWork:
    """The work on named columns, by what the first rows of all shards tell, or a model."""
    if settings.late:
        raise ValueError("labels that come later, by --delay or --labels, do so in one stream; leave them out for shards")
    if settings.weighs:
        raise ValueError("weight, class_weight: what is certain of shards is of rows that count once; learn from one stream")
    if settings.first_row or settings.end_row is not None:
        raise ValueError("rows are chosen of one stream, not of shards: leave the range out")
    model = None if settings.prepare_like is None else load_job(settings.prepare_like)
    if model is not None:
        for name in SAME_COLUMNS:
            was, now = getattr(model.settings, name), getattr(settings, name)
            if learner is None and was != now:
                raise ValueError(f"{settings.prepare_like} was made with {name}={was!r}, not {now!r}: its columns are others")
        schema = model.schema
    else:
        schema = settings.schema(drive.look(settings))
    assert schema.task is not None
    if learner is None:
        fixed = replace(settings, prepare_like=settings.prepare_like or "shards")
        work = TableWork(settings, bad_rows, schema, fixed.learner(schema.task))
    else:
        with_all, _ = with_sets(for_classes(learner, len(schema.task.names)), settings.coverage)
        work = TableWork(settings, bad_rows, schema, with_fixed_inputs(with_all))
    return work if model is None else work.sharing(schema, model.state.inputs)


class _Drive:
    """Stage after stage over the shards that are left."""

    def __init__(
        self,
        shards: Sequence[Shard],
        crew: Crew,
        kept: Kept,
        bad_shards: Policy,
        watch: Callable[[Progress], object] | None,
    ) -> None:
        self._crew, self._kept, self._bad_shards, self._watch = crew, kept, bad_shards, watch
        self._shards = {shard.name: shard for shard in shards}
        self._reports = {shard.name: ShardReport(shard.name) for shard in shards}

    @property
    def _left(self) -> list[Shard]:
        """The shards that are not bad, in the order of their names."""
        return [shard for name, shard in self._shards.items() if not self._reports[name].error]

    def look(self, settings: Settings) -> list[Any]:
        """The first rows of all shards, in the order of their names."""
        rows = rows_to_look_at(settings, len(self._shards))
        calls = {shard.name: call(first_rows, shard, settings, rows) for shard in self._left}
        found = self._stage("look", "looked at", calls, keep=False)
        seen = [batch for shard in self._left for batch in found[shard.name]]
        if not seen:
            raise ValueError("no shard has a row")
        return seen

    def through(self, work: Work, rounds: int) -> Fleet:
        """Survey where it is needed, learn round by round, and add up."""
        looked_ahead, sizes = work.must_survey, {}
        if work.must_survey or rounds > 1:
            found = self._stage("survey", "surveyed", {shard.name: call(work.survey, shard) for shard in self._left})
            sizes = {name: work.rows_of(one) for name, one in found.items()}
            if work.must_survey:
                work = work.prepared([found[shard.name] for shard in self._left])
        start, state, learned, losses = None, None, list[Learned](), list[LossSums]()
        for number in range(rounds):
            calls = {
                shard.name: call(work.learn, shard, _part(sizes.get(shard.name), number, rounds), start)
                for shard in self._left
            }
            stage = "learned from" if rounds == 1 else f"learned from, round {number + 1} of {rounds}"
            found = self._stage(f"round-{number + 1}", stage, calls, partial(self._account, work))
            learned += (news := [found[shard.name] for shard in self._left if found[shard.name] is not None])
            losses += [LossSums(**one.losses) for one in news if one.losses is not None]
            if states := [one.state for one in news if one.events]:
                state = work.learner.merge(states, *(() if state is None else (state,)))
                start = pack(work.learner, state) if number + 1 < rounds else None
        if state is None:
            raise ValueError("no shard has a row that can be used")
        job = work.job_of_all(state, learned)
        reports = tuple(self._reports.values())
        return Fleet(work.learner, state, reports, rounds, looked_ahead, tuple(losses), self._kept, job)

    def _stage(
        self,
        stage: str,
        words: str,
        calls: Mapping[str, Call],
        read: Callable[[str, Any], Any] = lambda _, content: content,
        *,
        keep: bool = True,
    ) -> dict[str, Any]:
        """What each shard has told, as it is read, by its name; those kept from an earlier call are not asked again."""
        found: dict[str, Any] = {}
        if keep:
            for name in calls:
                if (done := self._kept.get(stage, name)) is not None:
                    found[name] = read(name, done.outcome.content)
                    self._note(name, done)
        self._tell(words, len(found), len(calls))
        for name, done in self._crew.run({name: one for name, one in calls.items() if name not in found}):
            self._note(name, done)
            if done.outcome.content is None:
                self._reports[name] = self._reports[name]._replace(error=done.outcome.error)
                if self._bad_shards == "stop":
                    raise BadShard(name, done.outcome.error)
            else:
                if keep:
                    self._kept.put(stage, name, done)
                found[name] = read(name, done.outcome.content)
            self._tell(words, len(found), len(calls))
        if not found:
            name, reason = next((one.name, one.error) for one in self._reports.values() if one.error)
            raise BadShard(name, f"{reason}; all shards have failed")
        return found

    def _note(self, name: str, done: Done) -> None:
        report = self._reports[name]
        self._reports[name] = report._replace(
            seconds=report.seconds + done.outcome.seconds,
            worker=done.outcome.worker,
            attempts=max(report.attempts, done.attempts),
        )

    def _account(self, work: Work, name: str, content: bytes) -> Learned | None:
        """What a shard has learned, if it had a row; its report tells of it."""
        if not content:
            return None
        own, report = work.learned(content, name), self._reports[name]
        self._reports[name] = report._replace(
            events=report.events + own.events, loss=report.loss + own.loss, refused=report.refused + own.refused
        )
        return own

    def _tell(self, words: str, done: int, total: int) -> None:
        if self._watch is not None:
            reports = self._reports.values()
            sums = (
                sum(one.events for one in reports),
                sum(one.loss for one in reports),
                sum(bool(one.error) for one in reports),
            )
            self._watch(Progress(words, done, total, *sums))


def _part(rows: int | None, number: int, rounds: int) -> tuple[int, int] | None:
    """The rows of a shard that a round has."""
    if rounds == 1 or rows is None:
        return None
    return rows * number // rounds, rows * (number + 1) // rounds
