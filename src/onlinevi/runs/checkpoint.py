"""A job as one checkpoint: the learner and its state, and the rest as ``extra``."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

from onlinevi.data import Position, Schema
from onlinevi.learners import CheckpointError, Learner, Saved, load, pack, save, unpack, with_sets
from onlinevi.runs.class_weights import ClassWeights
from onlinevi.runs.job import Job, Origin
from onlinevi.runs.late import KeptRow, WaitingRow, rows_to_json
from onlinevi.runs.rejected import Rejected
from onlinevi.runs.settings import Settings
from onlinevi.runs.shapes import check_run

KEY = "onlinevi job"
VERSION = 1


def save_job(path: str | Path, job: Job) -> None:
    """Write all that a run needs to go on; the file is replaced as a whole."""
    save(path, job.learner, job.state, extra=_extra(job))


def pack_job(job: Job) -> bytes:
    """The bytes that ``save_job`` would write."""
    return pack(job.learner, job.state, extra=_extra(job))


def _extra(job: Job) -> dict[str, Any]:
    if job.state is None:
        raise ValueError("nothing has been learned yet, so there is nothing to save: the stream had no usable row")
    return {
        KEY: VERSION,
        "settings": job.settings.to_json(),
        "first_schema": job.first_schema.to_json(),
        "schema": job.schema.to_json(),
        "position": None if job.position is None else job.position.to_json(),
        "before": [origin.to_json() for origin in job.before],
        "merged": [origin.to_json() for origin in job.merged],
        "account": job.metrics.to_json(),
        "moments": job.snapshots.to_json(),
        "alarms": job.alarms.to_json(),
        "joins": job.joins,
        "clock": job.clock.to_json(),
        "left_out": job.rejected.to_json(),
        "late": None if job.late is None else job.late.to_json(),
        "class_totals": job.class_weights.totals.tolist(),
        "notes": job.notes,
    }


def load_job(path: str | Path, *, bad_rows: str = "skip") -> Job:
    """The job as it was; it goes on with the same bits."""
    return _job_of(load(path), str(path), bad_rows)


def unpack_job(content: bytes, name: str) -> Job:
    """The job that ``pack_job`` was given; ``name`` is what messages call it."""
    return _job_of(unpack(content), name, "skip")


def _job_of(saved: Saved, path: str, bad_rows: str) -> Job:
    learner, state, extra, _ = saved
    if not isinstance(extra, dict) or KEY not in extra:
        raise CheckpointError(f"{path}: it holds a learner, but no run of a file: read it with ovi.load")
    if extra[KEY] != VERSION:
        raise CheckpointError(f"{path}: its run has version {extra[KEY]}, this onlinevi knows {VERSION}: upgrade it")
    try:
        check_run(extra)
        _check_imported(extra["settings"])
        return _restored(learner, state, extra, bad_rows)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from None
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path}: its run is damaged ({error}): take a backup") from error


def _restored(learner: Learner[Any], state: Any, extra: dict[str, Any], bad_rows: str) -> Job:
    """The job of a learner, its state, and what else was kept."""
    job = Job(Settings(**extra["settings"]), Schema.from_json(extra["schema"]), rejected=Rejected(bad_rows, extra["left_out"]))
    # Files from before a run looked back: as if all columns had been there from the start, which a replay checks.
    job.first_schema = Schema.from_json(extra.get("first_schema") or extra["schema"])
    job.joins = extra.get("joins", [[0, state.inputs.dim]])
    # Files from before there were sets: these begin where the run goes on.
    job.learner, job.state = with_sets(learner, job.settings.coverage, state)
    job.prepared_by = state.inputs if job.settings.prepare_like is not None else None
    job.position = None if extra["position"] is None else Position.from_json(extra["position"])
    job.before = tuple(map(Origin.from_json, extra.get("before", ())))
    job.merged = tuple(map(Origin.from_json, extra.get("merged", ())))
    job.metrics.restore(extra["account"])
    job.snapshots.restore(extra["moments"])
    if "alarms" in extra:
        job.alarms.restore(extra["alarms"])
    else:
        job.alarms.since = job.metrics.count
    if "clock" in extra:
        job.clock.restore(extra["clock"])
    if job.late is not None:
        job.late.restore(extra["late"] if extra.get("late") is not None else _late_as_it_was(extra["waiting"]))
    job.class_weights = ClassWeights(job.settings.class_weight, extra.get("class_totals", ()))
    job.notes = extra["notes"]
    return job


def _check_imported(settings: dict[str, Any]) -> None:
    """Refuse to import what a file names: nothing in a file is run."""
    for argument in ("loss", "rule", "family", "expand"):
        for given in re.split(r"[(),\s]+", str(settings.get(argument))):  # of maps there may be several
            module, colon, _ = given.partition(":")
            if colon and module not in sys.modules:
                raise CheckpointError(
                    f"it was learned with {argument}={settings[argument]!r}, and a file imports nothing by itself: import "
                    f"{module} first, on the command line by --import {module}"
                )


def _late_as_it_was(waiting: list[Any]) -> dict[str, Any]:
    """The rows that waited in a file of the first versions: number, row, label, and perhaps weight, of each."""
    rows = [
        (number, WaitingRow(number, came, np.nan, KeptRow.of(_matrix(row)), float(y[0]), *(weights[0] for weights in more)))
        for came, (number, row, y, *more) in enumerate(waiting)
    ]
    return {"came": len(rows), "rows": rows_to_json(rows)}


def _matrix(row: Any) -> Any:
    from scipy.sparse import csr_matrix

    if isinstance(row, dict):
        values = np.array(row["values"], dtype=float)
        return csr_matrix((values, row["at"], [0, len(values)]), shape=(1, row["width"]))
    return np.array([row], dtype=float)
