"""What one would say without a model: always the best constant so far, or the same as last time.

Both know what the learner knows: labels that come late are known to them as late.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from onlinevi.engine import Vector
from onlinevi.runs.metrics.thinned import array_of, text_of

SAMPLE = 1024
"""The most labels that a running quantile is taken of."""
GROWTH = 1.05
"""A running quantile is taken anew when there are so many times as many labels."""


class Late:
    """Rows that are known only when so many others have come behind them."""

    def __init__(self, delay: int, width: int) -> None:
        self.delay, self.waiting = delay, np.empty((0, width))

    def take(self, rows: Vector) -> tuple[Vector, Any]:
        """The rows that are known behind the last of these, and how many of them were before each."""
        every = np.concatenate([self.waiting, rows])
        before = np.maximum(len(self.waiting) + np.arange(len(rows)) - self.delay, 0)
        known = max(len(every) - self.delay, 0)
        self.waiting = every[known:]
        return every[:known], before


class ClassSaid(NamedTuple):
    """What is said of the class of each row."""

    guess: Any
    of_label: Vector
    """The probability of the class that came."""
    square: Vector
    """Σ probability² over the classes."""


class ClassBaselines:
    """Of classes. The constant says each as likely as it was so far, one row of each class added; the last label comes again
    with the chance it had so far, and the others share the rest."""

    def __init__(self, delay: int = 0) -> None:
        self.counts = np.zeros(2, dtype=np.int64)
        """How often each class came, of the rows that are known."""
        self.again = np.zeros(2)
        """How often the last class that was known came again, and how often it could have."""
        self.last, self.classes = -1, 2
        """The class that is known last; and how many there are so far."""
        self._labels, self._hits = Late(delay, 1), Late(delay, 2)

    def say(self, codes: Any) -> tuple[ClassSaid, ClassSaid]:
        """What the constant, and the last label, say of rows of these classes."""
        classes = np.maximum.accumulate(np.maximum(codes + 1, self.classes))
        self.classes = int(classes[-1])
        self.counts = np.pad(self.counts, (0, self.classes - len(self.counts)))
        known, before = self._labels.take(codes[:, None])
        labels = known[:, 0].astype(np.int64)
        counts = np.cumsum(np.vstack([self.counts, labels[:, None] == np.arange(self.classes)]), axis=0)
        lasts = np.concatenate([[self.last], labels])
        said_last = lasts[before]
        hits, _ = self._hits.take(np.column_stack([said_last == codes, said_last >= 0]))
        again = np.cumsum(np.vstack([self.again, hits]), axis=0)
        said = self._constant(counts[before], codes, classes), self._same(said_last, again[before], codes, classes)
        self.counts, self.again, self.last = counts[-1], again[-1], int(lasts[-1])
        return said

    @staticmethod
    def _constant(counts: Any, codes: Any, classes: Any) -> ClassSaid:
        known = counts.sum(axis=1)
        of_label = (counts[np.arange(len(codes)), codes] + 1.0) / (known + classes)
        square = (np.square(counts).sum(axis=1) + 2.0 * known + classes) / np.square(known + classes, dtype=float)
        return ClassSaid(counts.argmax(axis=1), of_label, square)

    @staticmethod
    def _same(last: Any, again: Any, codes: Any, classes: Any) -> ClassSaid:
        sure = np.where(last < 0, 1.0 / classes, (again[:, 0] + 1.0) / (again[:, 1] + 2.0))
        guess = np.maximum(last, 0)
        other = (1.0 - sure) / (classes - 1)
        return ClassSaid(guess, np.where(guess == codes, sure, other), sure * sure + (1.0 - sure) * other)

    def add_up(self, other: ClassBaselines) -> None:
        """Add what another has met of other rows, which came behind these."""
        self.classes = max(self.classes, other.classes)
        both = (np.pad(one.counts, (0, self.classes - len(one.counts))) for one in (self, other))
        self.counts, self.again, self.last = sum(both), self.again + other.again, other.last  # type: ignore[assignment]

    def to_json(self) -> dict[str, Any]:
        known = {"counts": self.counts.tolist(), "again": self.again.tolist(), "last": self.last, "classes": self.classes}
        waiting = {"labels": text_of(self._labels.waiting), "hits": text_of(self._hits.waiting)}
        return known | waiting

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go on from what ``to_json`` gave."""
        self.counts, self.again = np.array(saved["counts"], dtype=np.int64), np.array(saved["again"])
        self.last, self.classes = saved["last"], saved["classes"]
        self._labels.waiting, self._hits.waiting = array_of(saved["labels"], 1), array_of(saved["hits"], 2)


class NumberBaselines:
    """Of numbers and counts: the mean so far, and the last label. Before a label is known, what the learner says.

    With a ``level``, of quantiles: that of the labels so far; and the last label, moved by that of its errors so far.
    ``added`` is added to the sum of the labels: to counts a half, so that no rate is 0.
    """

    def __init__(self, delay: int = 0, level: float | None = None, added: float = 0.0) -> None:
        self.count, self.first, self.total, self.last = 0, 0.0, 0.0, 0.0
        """How many labels are known; the first of them, Σ (label − first), and the last."""
        self.added = added
        self._labels = Late(delay, 1)
        self._errors = Late(delay, 2)
        self._quantiles = None if level is None else (RunningQuantile(level), RunningQuantile(level))

    def say(self, y: Vector, own: Vector) -> tuple[Vector, Vector]:
        """What the constant, and the last label, say of rows with these labels; ``own`` is what the learner said."""
        known, before = self._labels.take(y[:, None])
        labels = known[:, 0]
        self.first = float(labels[0]) if not self.count and len(labels) else self.first
        totals = np.cumsum(np.concatenate([[self.total], labels - self.first]))
        lasts, counts = np.concatenate([[self.last], labels]), self.count + before
        last, begun = lasts[before], counts > 0
        if self._quantiles is None:
            constant = self.first + (totals[before] + self.added) / np.maximum(counts, 1)
        else:
            constant = self._quantiles[0].take(labels)[before]
            errors, _ = self._errors.take(np.column_stack([y - last, begun]))
            # The first error that there is follows the first label.
            moves, skipped = errors[errors[:, 1] > 0.0, 0], int((errors[:, 1] == 0.0).sum())
            moved = self._quantiles[1].take(moves)[np.maximum(before - skipped, 0)]
            last = last + np.where(np.isnan(moved), 0.0, moved)
        self.count, self.total, self.last = self.count + len(labels), float(totals[-1]), float(lasts[-1])
        return np.where(begun, constant, own), np.where(begun, last, own)

    def add_up(self, other: NumberBaselines) -> None:
        """Add what another has met of other rows, which came behind these."""
        if not self.count:
            self.first = other.first
        self.total += other.total + other.count * (other.first - self.first)
        self.count, self.last = self.count + other.count, other.last
        for own, its in zip(self._quantiles or (), other._quantiles or (), strict=True):
            own.add_up(its)

    def to_json(self) -> dict[str, Any]:
        facts = {"count": self.count, "first": self.first, "total": self.total, "last": self.last}
        waiting = {"labels": text_of(self._labels.waiting), "errors": text_of(self._errors.waiting)}
        quantiles = [one.to_json() for one in self._quantiles or ()]
        return facts | waiting | {"quantiles": quantiles}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go on from what ``to_json`` gave."""
        self.count, self.first, self.total, self.last = (saved[name] for name in ("count", "first", "total", "last"))
        self._labels.waiting, self._errors.waiting = array_of(saved["labels"], 1), array_of(saved["errors"], 2)
        for one, own in zip(self._quantiles or (), saved["quantiles"], strict=True):
            one.restore(own)


class RunningQuantile:
    """The quantile of the numbers so far: of at most ``SAMPLE`` of them, drawn by their places alone, as evenly as chance is.

    It is taken anew each time that there are ``GROWTH`` times as many.
    """

    def __init__(self, level: float) -> None:
        self.level, self.count, self.halvings, self.next = level, 0, 0, 1
        self.now = float("nan")
        self.sample = np.empty((0, 2))
        """Numbers, and their places."""

    def take(self, values: Vector) -> Vector:
        """What it was before each of these, and behind the last."""
        found, start = np.full(len(values) + 1, self.now), 0
        while self.count + len(values) - start >= self.next:
            stop = start + self.next - self.count
            self._keep(values[start:stop])
            self.now = float(np.quantile(self.sample[:, 0], self.level, method="inverted_cdf"))
            self.next = max(self.count + 1, int(GROWTH * self.count))
            found[stop:], start = self.now, stop
        self._keep(values[start:])
        return found

    def _keep(self, values: Vector) -> None:
        places = self.count + np.arange(len(values))
        rows = np.column_stack([values, places])
        self.sample = np.concatenate([self.sample, rows[_drawn(places, self.halvings)]])
        self.count += len(values)
        while len(self.sample) > SAMPLE:
            self.halvings += 1
            self.sample = self.sample[_drawn(self.sample[:, 1].astype(np.int64), self.halvings)]

    def add_up(self, other: RunningQuantile) -> None:
        """Add the numbers of another, as many of each as there were rows."""
        self.halvings = max(self.halvings, other.halvings)
        both = np.concatenate([self.sample, other.sample])
        self.sample = both[_drawn(both[:, 1].astype(np.int64), self.halvings)]
        self.count, self.next = self.count + other.count, self.count + other.count + 1

    def to_json(self) -> dict[str, Any]:
        facts = {"count": self.count, "halvings": self.halvings, "next": self.next}
        return facts | {"now": self.now if self.count else None, "sample": text_of(self.sample)}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go on from what ``to_json`` gave."""
        self.count, self.halvings, self.next = (saved[name] for name in ("count", "halvings", "next"))
        self.now = float("nan") if saved["now"] is None else saved["now"]
        self.sample = array_of(saved["sample"], 2)


def _drawn(places: Any, halvings: int) -> Any:
    """Which places are drawn, one in 2^halvings: by their bits, stirred well (splitmix64), so that no season fits them."""
    if not halvings:
        return np.ones(len(places), dtype=bool)
    x = places.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((x ^ (x >> np.uint64(31))) >> np.uint64(64 - halvings)) == 0
