"""What is to be predicted: classes, numbers or counts; guessed from labels, and said why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from onlinevi.data.schema.kinds import NEEDS, NUMBERS, Kind, cells
from onlinevi.data.values import MISSING, Names, is_number, texts, value_text
from onlinevi.engine import Vector

TaskKind: TypeAlias = Literal["classes", "numbers", "counts"]
LARGEST_COUNT = 100
"""Whole numbers from 0 beyond this are more likely measured than counted."""

MOST_CODES = 50
MOST_CLASSES = 100
"""New classes join up to here: a column in which every row has a name of its own is no target."""
CODES = ("0", "1", "-1")
"""Numbers that, alone in the first rows, are more likely a class than an amount."""
LACKS = "the label is missing"
SHOWN = 10
"""Names of classes in a message."""


@dataclass(frozen=True)
class Task:
    """Labels as a loss wants them: −1 and +1 for two classes, 0, 1, 2 … for more, numbers as they are.

    ``names`` are the classes in the order of these codes. Where there is one, the first other that comes is the second of two;
    of more than two, new ones join at the end as they come, up to ``MOST_CLASSES``, unless it does not grow.
    """

    kind: TaskKind
    names: tuple[str, ...] = ()
    why: str = "told"
    written: Kind = "number"
    """How numbers are written."""
    grows: bool = True
    """Whether classes may join that are not among the names."""

    def __post_init__(self) -> None:
        if self.kind not in ("classes", "numbers", "counts"):
            raise ValueError(f"task={self.kind!r}: needs classes, numbers or counts")
        if (self.kind == "classes") != bool(self.names) or len(set(self.names)) != len(self.names):
            raise ValueError(f"task={self.kind!r} with names={self.names!r}: classes need different names, others none")

    def encode(self, values: Any) -> tuple[Task, Vector, dict[int, str]]:
        """The labels, and why a row has none, by its place; new classes are taken in where they may join."""
        if self.kind == "classes":
            return self._classes(values)
        read = cells(self.written, values)
        labels, bad, missing = read.parts[0], read.bad, read.missing
        if self.kind == "counts":
            bad |= ~missing & ~((labels >= 0.0) & (labels == np.floor(labels)))
        needs = "a whole number from 0" if self.kind == "counts" else NEEDS[self.written]
        reasons = {int(i): LACKS if missing[i] else f"the label needs to be {needs}" for i in np.flatnonzero(bad | missing)}
        return self, labels, reasons

    def _classes(self, values: Any) -> tuple[Task, Vector, dict[int, str]]:
        spelled = Names.of(texts(values))
        names = [class_name(text, self.names) for text in spelled.different]
        codes: dict[str | None, float] = {name: float(code) for code, name in enumerate(self.names)}
        several = len(self.names) > 2
        most = len(self.names) if not self.grows else MOST_CLASSES if several else 2
        for _, number in spelled.met():
            if names[number] is not None and len(codes) < most:
                codes.setdefault(names[number], float(len(codes)))
        labels = np.array([codes.get(name, np.nan) for name in [*names, None]])[spelled.rows]  # −1 is the last: missing
        two = " nor ".join(repr(name) for name in codes)
        other = f"a class beyond the first {MOST_CLASSES}" if several else f"neither {two}: name all classes, by --classes"
        if not self.grows:
            other = f"none of the classes that have costs, {', '.join(map(repr, self.names[:SHOWN]))}"
        reasons = {}
        for i in np.flatnonzero(np.isnan(labels)):
            known = spelled.rows[i] >= 0 and names[spelled.rows[i]] is not None
            reasons[int(i)] = f"the label is {other}" if known else LACKS
        grown = replace(self, names=tuple(name for name in codes if name is not None))
        return grown, labels if several else 2.0 * labels - 1.0, reasons


def guess_task(blocks: Iterable[Any], *, classes: bool = False, written: Kind | None = None) -> Task:
    """Guess what the labels seen so far are. ``why`` is a sentence to show: a guess can be wrong, and can be told instead.

    ``classes`` tells that they are classes, numbers too; ``written`` how they are written, where they are numbers.
    """
    spelled = {class_name(text) for values in blocks for text in texts(values).unique().to_pylist()}
    names = sorted((name for name in spelled if name is not None), key=_order)
    if not names:
        raise ValueError("the target has no value in the rows seen: name another column, or tell the task")
    if not classes and written in NUMBERS[1:]:
        return Task("numbers", why=f"numbers: {len(names)} different ones, as {names[0]}", written=written)
    if classes or not all(map(is_number, names)):
        return _classes(names)
    labels = np.array([float(name) for name in names])
    whole = bool((labels == np.floor(labels)).all())
    if whole and (len(names) == 2 or (names[0] in CODES and len(names) == 1)):
        return _classes(names)
    if len(names) == 1 and whole:
        raise ValueError(
            f"the target is {names[0]} in all rows seen: tell the --task, name all --classes, or --look at more rows"
        )
    perhaps = "; if they are codes of classes, say so" if whole and len(names) <= MOST_CODES else ""
    if whole and labels[0] == 0.0 and labels[-1] <= LARGEST_COUNT:
        return Task("counts", why=f"counts: whole numbers from 0 to {names[-1]}, {len(names)} different ones{perhaps}")
    return Task("numbers", why=f"numbers: {len(names)} different ones from {names[0]} to {names[-1]}{perhaps}")


def _classes(names: Sequence[str]) -> Task:
    if len(names) == 1:
        why = f"two classes: {names[0]!r}, all that the first rows have, is −1, and the first other to come is +1"
    elif len(names) == 2:
        why = f"two classes: {names[0]!r} is −1, {names[1]!r} is +1"
    else:
        why = f"{len(names)} classes: " + ", ".join(map(repr, names[:5])) + (", …" if len(names) > 5 else "")
    return Task("classes", tuple(names), why)


def named_classes(names: Sequence[str], *, grows: bool = True) -> Task:
    """The task of labels that are these classes, in the order of their codes; of two, the first is −1.

    Unless it ``grows``, no other may come: each of these has costs.

    >>> named_classes(["no", "yes"]).why
    "two classes: 'no' is −1, 'yes' is +1"
    """
    spelled = [class_name(name, tuple(names)) or name for name in names]
    if len(spelled) < 2 or len(set(spelled)) < len(spelled) or len(spelled) > MOST_CLASSES:
        raise ValueError(f"classes={','.join(names)}: needs 2 to {MOST_CLASSES} different names")
    return replace(_classes(spelled), grows=grows)


def _order(name: str) -> tuple[bool, float, str]:
    """Numbers by size, then words by the alphabet: no before yes, false before true."""
    return (False, float(name), "") if is_number(name) else (True, 0.0, name)


def class_name(text: str | None, told: tuple[str, ...] = ()) -> str | None:
    """A label as a name: 1 and 1.0 are one class. What spells a missing value is one, unless it was told to be a class."""
    name = "" if text is None else text.strip()
    if name in MISSING and name not in told:
        return None
    return value_text(float(name)) if is_number(name) else name
