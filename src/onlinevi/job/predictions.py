"""Predictions as a file: a row each, CSV or NDJSON."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from onlinevi.auto import Forecast
from onlinevi.classes import ClassForecast
from onlinevi.job.settings import Asked
from onlinevi.types import Vector

FORMATS = (".csv", ".ndjson", ".jsonl")
SAID: dict[Asked, tuple[str, ...]] = {
    "classes": ("prediction", "probability"),
    "numbers": ("prediction", "std", "lower", "upper"),
    "counts": ("prediction", "std", "lower", "upper"),
    "quantile": ("prediction",),
}
"""What is said of a label, by what it is."""


def check_format(path: Path) -> None:
    if path.suffix not in FORMATS:
        raise ValueError(f"{path}: predictions are written as {', '.join(FORMATS)}; name such a file")


class Predictions:
    """Turns predictions into lines; ``probability`` is that of the second class of two, of the one predicted of more.

    ``classes`` gives the names known at the moment.
    """

    def __init__(
        self, kind: Asked, classes: Callable[[], Sequence[str]], write: Callable[[str], Any], *, as_json: bool, labels: bool
    ) -> None:
        self._kind, self._classes, self._write, self._json, self._labels = kind, classes, write, as_json, labels
        self.names = ("row", *SAID[kind], *(("label", "loss") if labels else ()))

    def head(self) -> None:
        """Before the first row."""
        if not self._json:
            self._write(",".join(self.names) + "\n")

    def add(self, rows: Any, said: Forecast | ClassForecast, y: Vector | None = None, loss: Vector | None = None) -> None:
        """Some rows, in order."""
        columns: list[Iterable[Any]] = [rows.tolist(), *self._said(said)]
        if y is not None and loss is not None and self._labels:
            columns += [self._labels_of(y), loss.tolist()]
        table = zip(*columns, strict=True)
        if self._json:
            self._write("".join(json.dumps(dict(zip(self.names, map(_plain, row), strict=True))) + "\n" for row in table))
        else:
            text = io.StringIO()
            csv.writer(text, lineterminator="\n").writerows(table)
            self._write(text.getvalue())

    def _said(self, said: Forecast | ClassForecast) -> list[Iterable[Any]]:
        names = self._classes()
        if isinstance(said, ClassForecast):
            chances = said.chance.tolist() if said.probability is not None else [None] * len(said.scores)
            return [[names[code] for code in said.guess.tolist()], chances]
        if self._kind == "classes":
            likelier = [names[int(one >= 0.5)] for one in said.probability.tolist()]
            return [likelier, said.probability.tolist()]
        parts = {"prediction": said.mean, "std": said.std, "lower": said.lower, "upper": said.upper}
        return [parts[name].tolist() for name in SAID[self._kind]]

    def _labels_of(self, y: Vector) -> Iterable[Any]:
        if self._kind != "classes":
            return list(y.tolist())
        names = self._classes()
        return [names[int(one) if len(names) > 2 else int(one > 0.0)] for one in y.tolist()]


def _plain(value: Any) -> Any:
    """JSON has no infinity, which an interval has before the first label."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
