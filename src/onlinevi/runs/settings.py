"""What is asked of a run, and the learner and the task that this means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from onlinevi.data import MOST_CLASSES, Batch, Columns, Schema, Task
from onlinevi.learners import RULES, AnyLearner, Calibration, Classes, Inputs, choose, family_of
from onlinevi.losses import Absolute, Hinge, Logistic, Loss, Pinball, Poisson, Squared

Asked: TypeAlias = Literal["classes", "numbers", "counts", "quantile"]

LOSSES: dict[str, dict[str, type[Loss]]] = {
    "classes": {"logistic": Logistic, "hinge": Hinge},
    "numbers": {"squared": Squared, "absolute": Absolute},
    "counts": {"poisson": Poisson},
    "quantile": {"pinball": Pinball},
}
"""The losses of each task; the first is its default."""

WIDEST_FULL = 5_000
"""Columns of a full covariance: 100 MB."""


@dataclass(frozen=True)
class Settings:
    """``task`` and ``loss`` None: by the labels. ``family`` None: the rule's own. ``level`` is that of a quantile,
    ``coverage`` that of intervals, ``delay`` how many rows late labels come; the others are those of ``Columns``.

    ``first_row`` and ``end_row`` are the part of the source that is used, the latter not included. ``prepare_like`` is a model
    whose columns and moments are taken over and stay as they are, so that what several runs learn can be merged.
    """

    target: str
    task: Asked | None = None
    loss: str | None = None
    rule: str = "auto"
    level: float = 0.9
    coverage: float = 0.9
    missing: Literal["nan", "zero", "refuse"] = "nan"
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    delay: int = 0
    family: str | None = None
    max_categories: int = 100
    hash_bits: int | None = None
    first_row: int = 0
    end_row: int | None = None
    prepare_like: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "keep", tuple(self.keep))
        object.__setattr__(self, "drop", tuple(self.drop))
        if self.task not in (None, *LOSSES):
            raise ValueError(f"task={self.task!r}: needs one of {', '.join(LOSSES)}")
        known = [name for losses in LOSSES.values() for name in losses]
        if self.loss not in (None, *known):
            raise ValueError(f"loss={self.loss!r}: needs one of {', '.join(known)}")
        if self.rule not in ("auto", *RULES):
            raise ValueError(f"rule={self.rule!r}: needs one of auto, {', '.join(RULES)}")
        if self.delay < 0:
            raise ValueError(f"delay={self.delay}: needs a number of rows from 0")
        if self.first_row < 0 or (self.end_row is not None and self.end_row <= self.first_row):
            raise ValueError(f"rows={self.first_row}:{self.end_row}: needs a first row from 0 and an end behind it")
        if self.family is not None:
            family_of(self.family, self.rule)
        _ = Pinball(self.level), Calibration(self.coverage), self.columns

    @property
    def columns(self) -> Columns:
        """What is wanted of the columns."""
        return Columns(
            missing=self.missing,
            keep=self.keep,
            drop=self.drop,
            max_categories=self.max_categories,
            hash_bits=self.hash_bits,
        )

    def schema(self, seen: Sequence[Batch]) -> Schema:
        """How the columns of a stream that begins so become numbers, and what is to be predicted."""
        schema = self.columns.learn(seen, self.target, self._told())
        task = schema.task
        assert task is not None
        if len(task.names) > MOST_CLASSES:
            raise ValueError(
                f"{self.target!r} has {len(task.names)} classes in the first rows: a run learns up to {MOST_CLASSES}; "
                "for amounts say --task numbers, else name another target"
            )
        self.losses_of(self.kind(task))
        return schema

    def _told(self) -> Task | Literal["classes"] | None:
        if self.task is None or self.task == "classes":
            return self.task
        return Task("counts" if self.task == "counts" else "numbers", why=f"{self.task}, as told")

    def kind(self, task: Task) -> Asked:
        """What is predicted; of numbers it may be a quantile."""
        quantile = task.kind == "numbers" and (self.task == "quantile" or self.loss == "pinball")
        return "quantile" if quantile else task.kind

    def losses_of(self, kind: Asked) -> dict[str, type[Loss]]:
        """The losses of a task, where the one asked for is among them."""
        if self.loss is not None and self.loss not in LOSSES[kind]:
            raise ValueError(f"loss={self.loss!r} is none of {kind}: choose {' or '.join(LOSSES[kind])}, or another --task")
        return LOSSES[kind]

    def learner(self, task: Task) -> AnyLearner:
        """The learner for this task."""
        losses = self.losses_of(self.kind(task))
        kind = losses[self.loss or next(iter(losses))]
        loss = Pinball(self.level) if kind is Pinball else kind()
        # Missing values may come at any row, so the learner has to be ready for them from the first.
        inputs = Inputs(missing=self.missing == "nan", fixed=self.prepare_like is not None)
        family = None if self.family is None else family_of(self.family, self.rule)
        own = choose(loss, self.rule, family, inputs, None if task.kind == "classes" else self.coverage)
        return Classes(own, len(task.names)) if len(task.names) > 2 else own

    def check_width(self, dim: int) -> None:
        """Refuse covariances of more columns than a machine has memory for."""
        if self.family == "full" and dim > WIDEST_FULL:
            raise ValueError(
                f"family='full': {dim:,} columns have {dim * (dim + 1) // 2:,} covariances; choose low-rank or mean-field, "
                f"or keep at most {WIDEST_FULL:,} columns"
            )

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"keep": list(self.keep), "drop": list(self.drop)}
