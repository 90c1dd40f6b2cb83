"""Loops compiled before the first row, so that it can be said how many there are, and no row's time has theirs in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onlinevi.data import Skip, Stream, Task, encode
from onlinevi.engine import Kernel, Vector, engine_in_use, using_engine, watching_kernels
from onlinevi.learners import BadRow, InputState, Learner
from onlinevi.losses import Target
from onlinevi.runs.job import Job, as_wide, begin
from onlinevi.runs.settings import Settings

ROWS = 3
"""Enough for every loop to be asked for."""

OnLoop = Callable[[int, int], object]
"""Called before a loop is compiled, with its number from 1 and how many there are."""


def warm_for(job: Job, stream: Stream, on_loop: OnLoop) -> int:
    """Compile what a run will need, by rows that stay to come; how many loops it were."""
    for batch in stream.peek(ROWS):
        _, rows = encode(job.schema, batch, Skip())
        if len(rows.rows) and rows.y is not None and rows.X.shape[1]:
            job.settings.check_width(rows.X.shape[1])  # before there is room made for them
            state = _begun(job.learner, rows.X, job.prepared_by) if job.state is None else job.state
            return warm(job.learner, as_wide(job.learner, state, rows.X), rows.X, rows.y, on_loop)
    return 0


def warm_task(settings: Settings, kind: Target, on_loop: OnLoop, *, sparse: bool = False) -> int:
    """Compile what runs of such a task will need; how many loops it were."""
    from scipy.sparse import csr_matrix

    task = Task("numbers" if kind == "quantile" else kind, ("no", "yes") if kind == "classes" else ())
    X = np.arange(2.0 * ROWS).reshape(ROWS, 2) % 3.0
    y = np.array([1.0, -1.0, 1.0]) if kind == "classes" else np.array([1.0, 0.0, 2.0])
    learner, X = settings.learner(task), csr_matrix(X) if sparse else X
    return warm(learner, _begun(learner, X), X, y, on_loop)


def warm(learner: Learner[Any], state: Any, X: Any, y: Vector, on_loop: OnLoop) -> int:
    """Compile the loops that the learner runs on such rows. Interpreted first, which tells which they are."""
    if engine_in_use() == "interpreted":
        return 0
    asked: list[Kernel] = []
    with using_engine("interpreted"), watching_kernels(asked.append):
        _play(learner, state, X, y)
    lacking = [kernel for kernel in dict.fromkeys(asked) if not kernel.is_compiled]
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
