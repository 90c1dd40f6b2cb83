"""What is asked of a run, and the learner and the task that this means."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from typing import Any, Literal, cast

from onlinevi.beliefs import Family
from onlinevi.data import FIRST_LOOK, MOST_CLASSES, Batch, Columns, Kind, Schema, Stream, Task, arrow, named_classes
from onlinevi.engine import look_up
from onlinevi.learners import (
    Auto,
    Beside,
    Calibration,
    ClassesBy,
    Effort,
    Inputs,
    Learner,
    Space,
    check_classes_by,
    check_of_auto,
    choose,
    choose_softmax,
    classes_by_of,
    family_of,
    for_classes,
    in_ball,
    losses_of,
    map_of,
    rule_of,
    with_sets,
)
from onlinevi.losses import Loss, Pinball, Target
from onlinevi.rules import Rule, spelled
from onlinevi.runs.class_weights import ClassWeight, ClassWeights, as_class_weight
from onlinevi.runs.decisions import Costs, as_costs
from onlinevi.runs.late.wait import Wait, label_of
from onlinevi.runs.metrics.scores import WINDOW

DEFAULT_LOSS: dict[Target, str] = {"classes": "logistic", "numbers": "squared", "counts": "poisson", "quantile": "pinball"}
"""What is paid by default, for each class of task."""

DROP = "drop"
"""What ``kinds`` says of a column that is not to be used."""
WIDEST_FULL = 5_000
"""Columns of a full covariance: 100 MB."""
LEAST_BYTES = 160
"""Of each column: the prior, the belief, the sums of a leaf, and the moments of the inputs, before and after an event."""


def memory() -> float:
    """The bytes of memory that this machine has; infinite where it does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return math.inf


@dataclass(frozen=True)
class Settings:
    """What is asked of a run. ``loss``, ``rule``, ``family`` and ``expand`` are names, or ``package.module:Class``.

    Settings of a rule may follow its name: ``ngvi(floor=0.1)``.

    ``task`` and ``loss`` None: by the labels. ``family`` None: the rule's own. ``ball`` is the radius of a ball that keeps
    the weights of one rule; None: the family's box. ``expand`` None: no features of the columns, only these; several maps are
    named at commas. ``effort`` and ``lags`` are those of ``Auto``. ``classes_by`` is how more than two classes are told
    apart, by one posterior for all, "softmax", or "one-vs-rest"; None: the first where auto learns probabilities, else the
    second. ``level`` is that of a quantile, ``coverage`` that of intervals, and of the sets of classes; ``delay`` is how many
    rows late labels come; the others are those of ``Columns``.

    ``classes`` are the labels in the order of their codes; none: those of the first rows, and others join. ``look`` is how
    many rows are waited for before the first is learned from, to tell what columns and labels are; one is enough where
    ``kinds`` tells it of all columns, and the task of the labels is told. A column of kind "drop" is dropped. ``delimiter``,
    ``encoding`` and ``names`` are those of ``open_stream``.

    ``weight`` is a column that says how often each row counts, 0 for one that is only predicted. ``class_weight`` has weights
    for classes by their names, or is "balanced": a row counts n/(K·n_k) times, by what has come of the K classes so far.

    ``cost`` says what each class that comes, the outer name, costs with each that is decided, the inner name: a row is then
    decided for the class of the least expected cost, and these are all the classes. With ``abstain`` nothing is decided where
    the set has not one class alone.

    ``window`` is how many of the last rows metrics are told of beside those of all. ``alarm`` is the chance of a false alarm,
    over a stream without end, that losses have grown; None: none is given.

    ``wait`` tells that labels come by key from a source of their own; ``target`` is their column there, unless to come is all
    that they say.

    ``first_row`` and ``end_row`` are the part of the source that is used, the latter not included. ``prepare_like`` is a model
    whose columns and moments are taken over and stay as they are, so that what several runs learn can be merged.
    """

    target: str
    task: Target | None = None
    loss: str | None = None
    rule: str = "auto"
    level: float = 0.9
    coverage: float = 0.9
    missing: Literal["nan", "zero", "refuse"] = "nan"
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    delay: int = 0
    family: str | None = None
    expand: str | None = None
    max_categories: int = 100
    hash_bits: int | None = None
    first_row: int = 0
    end_row: int | None = None
    prepare_like: str | None = None
    classes: tuple[str, ...] = ()
    look: int = FIRST_LOOK
    kinds: Mapping[str, str] = field(default_factory=dict)
    decimal: Literal[".", ","] | None = None
    delimiter: str | None = None
    encoding: str | None = None
    names: tuple[str, ...] | None = None
    ball: float | None = None
    effort: Effort = "default"
    lags: int = 0
    classes_by: ClassesBy | None = None
    weight: str | None = None
    class_weight: ClassWeight = None
    window: int = WINDOW
    alarm: float | None = 0.01
    cost: Costs | None = None
    abstain: bool = False
    wait: Wait | None = None

    def __post_init__(self) -> None:
        for name in ("keep", "drop", "classes"):
            object.__setattr__(self, name, several(getattr(self, name)))
        object.__setattr__(self, "kinds", dict(self.kinds))
        object.__setattr__(self, "class_weight", as_class_weight(self.class_weight))
        object.__setattr__(self, "cost", as_costs(self.cost))
        object.__setattr__(self, "wait", Wait.asked(self.wait))
        object.__setattr__(self, "names", None if self.names is None else tuple(self.names))
        if self.window < 1:
            raise ValueError(
                f"window={self.window}: needs a number of rows from 1, of which metrics are told beside those of all"
            )
        if self.alarm is not None and not 0.0 < self.alarm < 1.0:
            raise ValueError(f"alarm={self.alarm!r}: needs the chance of a false alarm, between 0 and 1; try 0.01")
        if self.look < 1:
            raise ValueError(f"look={self.look}: needs a number of rows from 1")
        if self.classes and self.task not in (None, "classes"):
            raise ValueError(f"classes={','.join(self.classes)} with task={self.task!r}: leave one of them out")
        if not isinstance(self.abstain, bool):
            raise ValueError(f"abstain={self.abstain!r}: needs True or False")
        if self.decides and self.task not in (None, "classes"):
            raise ValueError(f"{'abstain' if self.cost is None else 'cost'} with task={self.task!r}: classes are decided")
        if self.task not in (None, *DEFAULT_LOSS):
            raise ValueError(f"task={self.task!r}: needs one of {', '.join(DEFAULT_LOSS)}")
        if self.loss is not None:
            _check_storable(look_up(Loss, self.loss, "loss"), self.loss, "loss")
        if self.rule != "auto":
            _check_storable(look_up(Rule, spelled(self.rule)[0], "rule", "auto"), self.rule, "rule")
            rule_of(self.rule)
            check_of_auto(self.effort, self.lags)
        check_classes_by(self.classes_by, self.rule)
        _ = Auto(effort=self.effort, lags=self.lags)
        if self.lags and self.delay:
            raise ValueError(f"lags={self.lags} with delay={self.delay}: past labels are no columns where they come late")
        if self.wait is not None and (self.delay or self.lags):
            name = "delay" if self.delay else "lags"
            raise ValueError(f"{name}={getattr(self, name)} with labels by key: these come when they come; leave it out")
        if self.wait is not None and self.wait.key[0] in (self.target, self.weight, *self.keep):
            raise ValueError(
                f"key={self.wait.key[0]!r} says which row it is: nothing is learned from it, so leave it out of keep"
            )
        if self.delay < 0:
            raise ValueError(f"delay={self.delay}: needs a number of rows from 0")
        if self.first_row < 0 or (self.end_row is not None and self.end_row <= self.first_row):
            raise ValueError(f"rows={self.first_row}:{self.end_row}: needs a first row from 0 and an end behind it")
        _ = self.beliefs
        if self.expand is not None:
            made = map_of(self.expand, self.rule)
            for one in made.maps if isinstance(made, Beside) else (made,):
                _check_storable(type(one), self.expand, "expand")
        _ = Pinball(self.level), Calibration(self.coverage), self.columns, self._told()

    @property
    def columns(self) -> Columns:
        """What is wanted of the columns."""
        return Columns(
            missing=self.missing,
            keep=self.keep,
            drop=(*self.drop, *(name for name, kind in self.kinds.items() if kind == DROP), *self._names_of_rows),
            kinds={name: cast(Kind, kind) for name, kind in self.kinds.items() if kind != DROP},
            decimal=self.decimal,
            max_categories=self.max_categories,
            hash_bits=self.hash_bits,
            weight=self.weight,
        )

    @property
    def _names_of_rows(self) -> tuple[str, ...]:
        """The column that says which row it is, where labels come by key."""
        return () if self.wait is None else self.wait.key[:1]

    @property
    def reading(self) -> dict[str, Any]:
        """How the source is to be read, for ``open_stream``."""
        return {"delimiter": self.delimiter, "encoding": self.encoding, "names": self.names, "wants": self.wants}

    def first_rows(self, stream: Stream) -> tuple[Batch, ...]:
        """The rows by which columns and labels are known: one, where all is told."""
        first = stream.peek(1)
        told = {self.target, *self.kinds, *self.columns.drop}
        columns = {name for batch in first for name in batch.columns if not self.keep or name in self.keep}
        if columns and columns <= told and isinstance(self._told(), Task):
            return first
        return stream.peek(self.look)

    def wants(self, column: str) -> bool:
        """Whether a column is used, to predict from or as what is predicted."""
        time = () if self.wait is None else self.wait.time[:1]
        return column in (self.target, self.weight, *self._names_of_rows, *time) or self.columns.wants(column)

    def wants_of_labels(self, column: str) -> bool:
        """Whether a column of labels that come by key is used."""
        if self.wait is None:
            return False
        return column in (self.wait.key[-1], *self.wait.time[-1:]) or (self.wait.came is None and column == self.target)

    @property
    def late(self) -> bool:
        """Whether labels come later than their rows."""
        return self.delay > 0 or self.wait is not None

    def first_labels(self, stream: Stream) -> list[Any]:
        """The labels by which it is known what they are, where they come by key; none are waited for where it is told."""
        assert self.wait is not None
        seen = () if isinstance(self._told(), Task) or self.wait.came is not None else stream.peek(self.look)
        labels = [batch.columns[self.target] for batch in seen if self.target in batch.columns]
        return labels + [arrow().array([told]) for told in (self.wait.came, self.wait.otherwise) if told is not None]

    @property
    def may_leave_out(self) -> bool:
        """Whether rows may have the weight 0, so that those that are measured are not all that came."""
        by_class = self.class_weight
        return self.weight is not None or (isinstance(by_class, Mapping) and 0.0 in by_class.values())

    @property
    def weighs(self) -> bool:
        """Whether rows may count more or less than once."""
        return self.weight is not None or self.class_weight is not None

    def schema(self, seen: Sequence[Batch], labels: Sequence[Any] | None = None) -> Schema:
        """How the columns of a stream that begins so become numbers, and what is to be predicted.

        ``labels`` are the first of them, where they come by key.
        """
        schema = self.columns.learn(seen, self.target, self._told(), labels)
        if not schema.kinds and all(batch.matrix is None for batch in seen):
            raise ValueError("no column is left to predict from: keep more of them, or drop fewer")
        task = schema.task
        assert task is not None
        if self.wait is not None:
            label_of(self.wait, task)
            label_of(self.wait, task, "came")
        if len(task.names) > MOST_CLASSES:
            raise ValueError(
                f"{self.target!r} has {len(task.names)} classes in the first rows: a run learns up to {MOST_CLASSES}; "
                "for amounts say --task numbers, else name another target"
            )
        if self.class_weight is not None and task.kind != "classes":
            raise ValueError(
                f"class_weight: {self.target!r} has no classes ({task.why}); name a column by weight, or leave it out"
            )
        ClassWeights(self.class_weight).check(task.names, more=len(task.names) != 2)
        loss = self.loss_of(self.kind(task))
        if self.decides and loss.odds is None:
            what = "abstain" if self.cost is None else "cost"
            needed = "classes" if task.kind != "classes" else "probabilities of them"
            raise ValueError(f"{what}: {self.target!r} has no {needed} with {loss} ({task.why}); leave it out")
        return schema

    @property
    def decides(self) -> bool:
        """Whether more is asked of classes than the likeliest."""
        return self.cost is not None or self.abstain

    def _told(self) -> Task | Literal["classes"] | None:
        if self.cost is not None:
            told = named_classes(self.classes or tuple(self.cost), grows=False)
            if other := {*told.names} ^ {*self.cost}:
                raise ValueError(f"cost: {min(other)!r} is in classes or in the costs alone; name the same in both")
            return told
        if self.classes:
            return named_classes(self.classes)
        if self.task is None or self.task == "classes":
            return self.task
        return Task("counts" if self.task == "counts" else "numbers", why=f"{self.task}, as told")

    def kind(self, task: Task) -> Target:
        """What is predicted; of numbers it may be a quantile."""
        asked = None if self.loss is None else look_up(Loss, self.loss, "loss").target
        quantile = task.kind == "numbers" and "quantile" in (self.task, asked)
        return "quantile" if quantile else task.kind

    def loss_of(self, kind: Target) -> Loss:
        """The loss that was asked for, if it is one of this task, or the task's own."""
        given = self.loss or DEFAULT_LOSS[kind]
        loss = look_up(Loss, given, "loss")
        if loss.target != kind:
            names = sorted(losses_of(kind), key=lambda name: name != DEFAULT_LOSS[kind])
            raise ValueError(f"loss={given!r} is none of {kind}: choose {' or '.join(names)}, or another --task")
        loss.check_probability()
        try:
            return loss(self.level) if kind == "quantile" else loss()  # type: ignore[call-arg]
        except TypeError as error:
            takes = "the level as its first field" if kind == "quantile" else "a default for every field"
            raise ValueError(f"loss={given!r} cannot be made by its name ({error}): give it {takes}") from error

    @property
    def beliefs(self) -> Family | None:
        """The family that was asked for, in its ball; None for the rule's own."""
        family = None if self.family is None else family_of(self.family, self.rule)
        return family if self.ball is None else in_ball(family, self.rule, self.ball)

    def learner(self, task: Task) -> Learner[Any]:
        """The learner for this task."""
        loss = self.loss_of(self.kind(task))
        # Missing values may come at any row, so the learner has to be ready for them from the first.
        inputs = Inputs(missing=self.missing == "nan", fixed=self.prepare_like is not None)
        expand = None if self.expand is None else map_of(self.expand, self.rule)
        coverage, known = None if task.kind == "classes" else self.coverage, len(task.names)
        if known > 2 and classes_by_of(self.classes_by, loss, self.rule, self.lags) == "softmax":
            if self.lags:
                raise ValueError(f"lags={self.lags}: labels of several classes are no columns; leave it out")
            own = choose_softmax(loss, self.rule, self.beliefs, inputs, expand, self.effort, known, grows=True)
            return with_sets(own, self.coverage)[0]
        learner = choose(loss, self.rule, self.beliefs, inputs, coverage, expand, self.effort, self.lags)
        return with_sets(for_classes(learner, known), self.coverage)[0]

    def check_width(self, dim: int) -> None:
        """Refuse more columns, or covariances of them, than a machine has memory for."""
        if dim * LEAST_BYTES > memory() / 2:
            raise ValueError(
                f"the rows have {dim:,} columns, which need {dim * LEAST_BYTES / 2**30:,.1f} GiB at least, and this machine "
                f"has {memory() / 2**30:,.1f}: mend the largest index, or number the columns anew"
            )
        features = dim if self.expand is None else Space(map_of(self.expand, self.rule), True, False, dim, dim).width
        if self.family == "full" and features > WIDEST_FULL:
            raise ValueError(
                f"family='full': {features:,} columns have {features * (features + 1) // 2:,} covariances; choose low-rank "
                f"or mean-field, or keep at most {WIDEST_FULL:,} columns"
            )

    def to_json(self) -> dict[str, Any]:
        fields = asdict(self)
        for part in (fields, fields["wait"] or {}):
            part |= {name: list(value) for name, value in part.items() if isinstance(value, tuple)}
        return fields


def several(names: Sequence[str] | str) -> tuple[str, ...]:
    """Names, which may be written as the command line has them, with commas between."""
    given = names.split(",") if isinstance(names, str) else names
    return tuple(name.strip() if isinstance(names, str) else name for name in given if name)


def _check_storable(kind: type, given: str, argument: str) -> None:
    """Refuse a class from elsewhere that no checkpoint could hold, before the first row rather than behind it."""
    if ":" in given and not ("name" in vars(kind) and is_dataclass(kind)):
        raise ValueError(
            f"{argument}={given!r}: a model's file knows it by its name, so it needs to be a frozen dataclass with one, "
            f'as name: ClassVar[str] = "my-{argument}"'
        )
