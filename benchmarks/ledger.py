"""What has been measured, one JSON line each, kept as it comes: an interrupted study goes on where it stopped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypeAlias

Key: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True)
class Result:
    """One entrant on one stream in one variant. ``note`` says why it was stopped, if it was."""

    stream: str
    variant: str
    task: str
    entrant: str
    rows: int
    seconds: float
    note: str = ""
    scores: dict[str, float] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        return self.stream, self.variant, self.entrant


class Ledger:
    """Results in a file; of several with one key the last counts."""

    def __init__(self, path: Path) -> None:
        self.path, self._results = path, {}
        lines = path.read_text().split("\n") if path.exists() else [""]
        for line in lines[:-1]:
            result = Result(**json.loads(line))
            self._results[result.key] = result
        if lines[-1]:  # cut off in the middle when the study was killed
            self._rewrite()

    def __contains__(self, key: Key) -> bool:
        return key in self._results

    def __iter__(self) -> Iterator[Result]:
        return iter(self._results.values())

    def add(self, result: Result) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(_line(result))
        self._results[result.key] = result

    def forget(self, keys: set[Key]) -> None:
        """Drop these, so that they are measured anew."""
        if keys & self._results.keys():
            self._results = {key: result for key, result in self._results.items() if key not in keys}
            self._rewrite()

    def _rewrite(self) -> None:
        new = self.path.with_suffix(".new")
        new.write_text("".join(map(_line, self)))
        new.replace(self.path)


def _line(result: Result) -> str:
    return json.dumps(asdict(result), allow_nan=False) + "\n"
