"""Loops compiled before the first row, so that it can be said how many there are, and no row's time has theirs in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onlinevi.data import Skip, Stream, Task, encode
from onlinevi.engine import Engine, Kernel, Vector, engine_in_use, using_engine, watching_kernels
from onlinevi.learners import BadRow, InputState, Learner
from onlinevi.losses import Target
from onlinevi.runs.job import Job
from onlinevi.runs.settings import Settings
from onlinevi.runs.widths import as_wide, begin

ROWS = 3
"""Enough for every loop to be asked for."""

OnLoop = Callable[[int, int], object]
"""Called before a loop is compiled, with its number from 1 and how many there are."""


def warm_for(job: Job, stream: Stream, on_loop: OnLoop) -> int:
    """Compile what a run will need; how many loops it were. One that has begun needs no row for it, which may be long in
    coming; another has those by which its columns are known, and they stay to come."""
    if job.state is not None:
        X, y = _rows(job.state.inputs.dim, job.schema.sparse), _labels(job.kind, job.learner)
        return warm(job.learner, job.state, X, y, on_loop)
    for batch in stream.peek(ROWS):
        _, rows = encode(job.schema, batch, Skip(), labels=job.settings.wait is None)
        if len(rows.rows) and rows.X.shape[1]:
            y = _labels(job.kind, job.learner)[: len(rows.rows)] if rows.y is None else rows.y
            job.settings.check_width(rows.X.shape[1])  # before there is room made for them
            state = _begun(job.learner, rows.X, job.prepared_by)
            return warm(job.learner, as_wide(job.learner, state, rows.X), rows.X, y, on_loop)
    return 0


def warm_task(settings: Settings, kind: Target, on_loop: OnLoop, *, sparse: bool = False) -> int:
    """Compile what runs of such a task will need; how many loops it were."""
    X, compiled = _rows(2, sparse), 0
    # More than two classes are another learner.
    for names in (("no", "yes"), ("no", "yes", "both")) if kind == "classes" else ((),):
        learner = settings.learner(Task("numbers" if kind == "quantile" else kind, names))
        compiled += warm(learner, _begun(learner, X), X, _labels(kind, learner), on_loop)
    return compiled


def _rows(width: int, sparse: bool) -> Any:
    """Rows as they might come."""
    X = np.arange(float(ROWS * width)).reshape(ROWS, width) % 3.0
    if not sparse:
        return X
    from scipy.sparse import csr_matrix

    return csr_matrix(X)


def _labels(kind: Target, learner: Learner[Any]) -> Vector:
    """Some that may come, where those of the rows are not known."""
    return np.array([1.0, -1.0, 1.0]) if kind == "classes" and not learner.several else np.array([1.0, 0.0, 2.0])


def warm(learner: Learner[Any], state: Any, X: Any, y: Vector, on_loop: OnLoop) -> int:
    """Compile the loops that the learner runs on such rows. Those that lack are interpreted first, which tells how many
    there are; some rows of several classes take seconds so."""
    if engine_in_use() == "interpreted":
        return 0
    asked: dict[Kernel, Engine | None] = {}

    def ask(kernel: Kernel) -> Engine | None:
        return asked.setdefault(kernel, "compiled" if kernel.is_compiled else None)

    with using_engine("interpreted"), watching_kernels(ask):
        _play(learner, state, X, y)
    lacking = [kernel for kernel, there in asked.items() if there is None]
    if not lacking:
        return 0

    def before(kernel: Kernel) -> None:
        if kernel in lacking:
            on_loop(len(lacking) - len(left) + 1, len(lacking))
            left.remove(kernel)

    left = list(lacking)
    with watching_kernels(before):
        _play(learner, state, X, y)
    return len(lacking)


def _play(learner: Learner[Any], state: Any, X: Any, y: Vector) -> None:
    """A few rows, and a forecast; a row that is refused is refused again when its turn comes."""
    try:
        state, _ = learner.update_many(state, X, y)
        learner.forecast(state, X)
    except BadRow:
        pass


def _begun(learner: Learner[Any], X: Any, moments: InputState | None = None) -> Any:
    return begin(learner, X.shape[1], moments, sparse=hasattr(X, "tocsr"))
