"""Shards of numbers, (X, y): looked through for their moments, and learned from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from onlinevi.data import as_events
from onlinevi.engine import Vector
from onlinevi.guarantees import LossSums
from onlinevi.learners import BadRow, Inputs, InputState, Learner, pack, unpack
from onlinevi.runs.shards.fleet import Learned
from onlinevi.runs.shards.preparation import with_fixed_inputs
from onlinevi.runs.shards.sources import Shard, as_blocks

ROWS_AT_ONCE = 1 << 16
SHOWN = 20
"""Refused rows that are kept to be shown."""


@dataclass(frozen=True)
class MatrixWork:
    """What is done with each shard: picklable, and the same for all of them."""

    learner: Learner[Any]
    bad_rows: Literal["stop", "skip"]
    horizon: int | None = None
    moments: InputState | None = None
    """Those that all shards share, where rows are prepared."""

    @property
    def inputs(self) -> Inputs | None:
        found = getattr(self.learner, "inputs", None)
        return found if isinstance(found, Inputs) else None

    @property
    def must_survey(self) -> bool:
        return self.inputs is not None and self.moments is None

    def survey(self, shard: Shard) -> bytes:
        """The moments of a shard's rows, and how many rows it has; nothing where it has none."""
        inputs, state, rows = self.inputs or Inputs(standardise=False), None, 0
        for X, _, weights in _chunks(shard, None, self.learner.loss.label_hint):
            rows += X.shape[0]
            used = X if weights is None else X[np.flatnonzero(weights)]
            start = 0
            while start < used.shape[0]:
                state = inputs.init(used.shape[1]) if state is None else state
                try:
                    state, start = inputs.observe(state, used[start:]), used.shape[0]
                except BadRow as bad:
                    self._refused(bad)
                    if bad.row:
                        state = inputs.observe(state, used[start : start + bad.row])
                    start += bad.row + 1
        return b"" if state is None else pack(replace(inputs, fixed=False), state, extra={"rows": rows})

    def prepared(self, surveys: Sequence[bytes]) -> MatrixWork:
        """The same for shards that share the moments of all."""
        states = [unpack(one).state for one in surveys if one]
        if not states:
            raise ValueError("no shard has a row")
        if len(dims := sorted({state.dim for state in states})) > 1:
            raise ValueError(f"some shards have {dims[0]} columns, others {dims[-1]}: all need the same ones")
        return self.sharing(Inputs().merge(states))

    def sharing(self, moments: InputState) -> MatrixWork:
        """The same with these moments."""
        return replace(self, learner=with_fixed_inputs(self.learner), moments=moments)

    @staticmethod
    def rows_of(survey: bytes) -> int:
        """How many rows a surveyed shard has."""
        return int(unpack(survey).extra["rows"]) if survey else 0

    def learn(self, shard: Shard, rows: tuple[int, int] | None, start: bytes | None) -> bytes:
        """What a shard's rows, or those from one number to another, have taught; nothing where there were none."""
        state = None if start is None else unpack(start).state
        losses, refused, first = LossSums(), 0, list[dict[str, Any]]()
        begun, events = (0, 0.0) if state is None else (state.count, state.loss), 0
        for X, y, weights in _chunks(shard, rows, self.learner.loss.label_hint):
            if state is None:
                state = self._begun(X)
            at = 0
            while at < X.shape[0]:
                part = None if weights is None else weights[at:]
                try:
                    state, trace = self.learner.update_many(state, X[at:], y[at:], weights=part)
                    losses, at = losses.add(trace.loss), X.shape[0]
                except BadRow as bad:
                    self._refused(bad)
                    state, losses, refused = bad.trace.state, losses.add(bad.trace.loss), refused + 1
                    first = [*first, {"row": at + bad.row, "reason": bad.reason, "column": None}][:SHOWN]
                    at += bad.row + 1
        if state is None:
            return b""
        events = state.count - begun[0]
        facts = {"events": events, "loss": float(state.loss - begun[1]), "refused": refused, "first": first}
        return pack(self.learner, state, extra=facts | {"losses": _plain(losses)})

    @staticmethod
    def learned(content: bytes, name: str) -> Learned:
        """What ``learn`` has given."""
        own = unpack(content)
        return Learned(own.state, *(own.extra[part] for part in ("events", "loss", "refused", "losses")))

    def job_of_all(self, state: Any, shards: Sequence[Learned]) -> None:
        """Rows of numbers have no file that could go on: there is none."""

    def _begun(self, X: Any) -> Any:
        state = self.learner.init(X.shape[1], self.horizon, sparse=hasattr(X, "tocsr"))
        if self.moments is None:
            return state
        if self.moments.dim != X.shape[1]:
            raise ValueError(f"it has {X.shape[1]} columns, the moments that all share {self.moments.dim}")
        return state.with_inputs(self.moments)

    def _refused(self, bad: BadRow) -> None:
        if self.bad_rows == "stop":
            raise ValueError(f"{bad}; bad_rows='skip' leaves such rows out") from bad


def _chunks(shard: Shard, rows: tuple[int, int] | None, hint: str) -> Iterator[tuple[Any, Vector, Vector | None]]:
    """A shard's rows from one number to another, at most so many at once."""
    passed = 0
    for X, y, *weights in as_blocks(shard):
        events, labels, importance = as_events(X, y, weights[0] if weights else None, hint=hint)
        low, high = (0, events.count) if rows is None else (max(rows[0] - passed, 0), min(rows[1] - passed, events.count))
        for start in range(low, high, ROWS_AT_ONCE):
            used = np.arange(start, min(start + ROWS_AT_ONCE, high))
            yield events.take(used), labels[used], importance[used] if len(importance) else None
        passed += events.count


def _plain(losses: LossSums) -> dict[str, Any] | None:
    """As JSON has it, where there were any."""
    return asdict(losses) if losses.count else None
