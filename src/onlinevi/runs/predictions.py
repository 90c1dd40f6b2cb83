"""Predictions as a table: a row each, in the format that the file's name says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from onlinevi.data import PACKED_SUFFIXES, WRITTEN_AS
from onlinevi.engine import Vector
from onlinevi.learners import Forecast
from onlinevi.losses import Target
from onlinevi.runs.arrow_table import ArrowTable
from onlinevi.runs.text_table import TextFile

SAID: dict[Target, tuple[str, ...]] = {
    "classes": ("prediction", "probability"),
    "numbers": ("prediction", "std", "lower", "upper"),
    "counts": ("prediction", "std", "lower", "upper"),
    "quantile": ("prediction",),
}
"""What is said of a label, by what it is."""


class Table(Protocol):
    """What rows are added to, column by column."""

    def add(self, columns: Sequence[Iterable[Any]]) -> None: ...


def check_format(path: Path) -> None:
    suffix = path.suffix.lower()
    if suffix in PACKED_SUFFIXES:
        raise ValueError(
            f"{path}: a packed file cannot be cut back to a checkpoint; name a .parquet file, which is packed inside, or pack "
            "it afterwards"
        )
    if suffix not in WRITTEN_AS:
        raise ValueError(f"{path}: predictions are written as {', '.join(WRITTEN_AS)}; name such a file")


def columns_of(kind: Target, *, labels: bool) -> Mapping[str, str]:
    """The columns of a table of predictions, and their types."""
    label = "string" if kind == "classes" else "double"
    said = {name: label if name == "prediction" else "double" for name in SAID[kind]}
    return {"row": "int64", **said, **({"label": label, "loss": "double"} if labels else {})}


def open_table(path: Path, columns: Mapping[str, str], place: dict[str, Any] | None = None) -> TextFile | ArrowTable:
    """A new file, or one that goes on from what ``place()`` said of it at a checkpoint."""
    written = WRITTEN_AS[path.suffix.lower()]
    if written.is_text:
        return TextFile(path, columns, place, as_json=written.name == "ndjson")
    return ArrowTable(path, columns, place)


class Predictions:
    """Puts predictions into a table; ``probability`` is that of the second class of two, of the one predicted of more.

    ``classes`` gives the names known at the moment.
    """

    def __init__(self, kind: Target, classes: Callable[[], Sequence[str]], table: Table) -> None:
        self._kind, self._classes, self._table = kind, classes, table

    def add(self, rows: Any, forecast: Forecast, y: Vector | None = None, loss: Vector | None = None) -> None:
        """Some rows, in order; with labels and losses where the table has them."""
        columns: list[Iterable[Any]] = [rows.tolist(), *self._told(forecast)]
        if y is not None and loss is not None:
            columns += [self._labels_of(y), loss.tolist()]
        self._table.add(columns)

    def _told(self, forecast: Forecast) -> list[Iterable[Any]]:
        if self._kind == "classes":
            names, guess = self._classes(), forecast.guess.tolist()
            chances = [None] * len(guess) if forecast.probability is None else forecast.chance.tolist()
            return [[names[code] for code in guess], chances]
        parts = {"prediction": forecast.mean, "std": forecast.std, "lower": forecast.lower, "upper": forecast.upper}
        return [parts[name].tolist() for name in SAID[self._kind]]

    def _labels_of(self, y: Vector) -> Iterable[Any]:
        if self._kind != "classes":
            return list(y.tolist())
        names = self._classes()
        return [names[int(one) if len(names) > 2 else int(one > 0.0)] for one in y.tolist()]
