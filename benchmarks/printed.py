"""Scores of peers as a page once had them: to the four digits that were printed, where what was measured is gone.

``printed/`` has a line for each peer, and for the linear default, on each stream in each variant. What is measured anew takes
its place. A score that no table had is empty: of streams held out in the first study, only that of the best peer was printed.
``bent_times.csv`` has times over all streams that bend.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ledger import Key, Result
from scores import HEADLINE

FOLDER = Path(__file__).parent / "printed"
KEPT = ("error", "smoothed", "coverage", "width")
"""Scores beside the one that a task is compared by."""


class Times(NamedTuple):
    """Microseconds an event, over the streams that an entrant ran on; on some it may have been stopped as too slow."""

    streams: int
    median: float
    most: float
    slow: int


def printed(path: Path) -> list[Result]:
    """The results in a file; none where there is no file."""
    return [_result(line) for line in _lines(path)]


def printed_times(path: Path) -> dict[str, Times]:
    return {
        line["entrant"]: Times(int(line["streams"]), float(line["median"]), float(line["most"]), int(line["slow"]))
        for line in _lines(path)
    }


def together(old: Iterable[Result], measured: Iterable[Result]) -> list[Result]:
    """All results, those measured in place of those printed."""
    found: dict[Key, Result] = {result.key: result for result in old}
    return list((found | {result.key: result for result in measured}).values())


def _lines(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _result(line: dict[str, str]) -> Result:
    rows, named = int(line["rows"]), {HEADLINE[line["task"]]: line["score"]} | {name: line[name] for name in KEPT}
    scores = {name: float(value) for name, value in named.items() if value}
    seconds = 1e-6 * rows * float(line["micros"] or 0.0)
    return Result(*(line[name] for name in ("stream", "variant", "task", "entrant")), rows, seconds, line["note"], scores)
