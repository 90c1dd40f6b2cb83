"""Curves of any length in flat memory, and numbers as texts that keep their bits."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import numpy as np

from onlinevi.engine import Vector


class Thinned:
    """Of rows numbered 1, 2, 3, … those that a stride divides, and the last one; the stride doubles when ``most`` are kept."""

    def __init__(self, most: int, width: int) -> None:
        self.most, self.stride, self.count = most, 1, 0
        self.kept, self.last = np.empty((0, width)), np.empty((0, width))

    def add(self, rows: Vector) -> None:
        """Take the next rows."""
        numbers = self.count + np.arange(1, len(rows) + 1)
        chosen = rows[numbers % self.stride == 0]
        self.count += len(rows)
        self.last = rows[-1:].copy() if len(rows) else self.last
        self.kept = np.concatenate([self.kept, chosen])
        while len(self.kept) > self.most:
            self.stride *= 2
            self.kept = self.kept[1::2].copy()

    @property
    def table(self) -> Vector:
        """All rows kept, in order, the last one included."""
        ends = self.count % self.stride == 0
        return self.kept if ends else np.concatenate([self.kept, self.last])

    def to_json(self) -> dict[str, Any]:
        counts = {"stride": self.stride, "count": self.count}
        return counts | {"kept": self.kept.tolist(), "last": self.last.tolist()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what ``to_json`` gave."""
        self.stride, self.count = saved["stride"], saved["count"]
        width = self.kept.shape[1]
        self.kept, self.last = (np.array(saved[name], dtype=float).reshape(-1, width) for name in ("kept", "last"))


def text_of(table: Any, kind: str = "<f8") -> str:
    """Numbers as a text that keeps their bits, a third as long as their digits."""
    return b64encode(np.ascontiguousarray(table, kind).tobytes()).decode("ascii")


def array_of(text: str, width: int, kind: str = "<f8") -> Any:
    """Rows of so many numbers, as ``text_of`` wrote them."""
    table = np.frombuffer(b64decode(text, validate=True), kind).reshape(-1, width).copy()
    if not np.isfinite(table).all():
        raise ValueError("a number of its metrics is not finite")
    return table
