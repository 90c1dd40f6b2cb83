"""Which rows of which source something was learned from."""

from __future__ import annotations

from typing import Any, NamedTuple

from onlinevi.data import Position


class Origin(NamedTuple):
    """The rows from ``first`` to those that the position has passed."""

    first: int
    position: Position

    def overlaps(self, other: Origin) -> bool:
        """Whether rows are in both, as far as the sums of the sources and the numbers of the rows tell."""
        ends = self.position.rows, other.position.rows
        return max(self.first, other.first) < min(ends) and self.position.begins_like(other.position)

    def __str__(self) -> str:
        return f"rows {self.first} to {self.position.rows - 1} of {self.position.source}"

    def to_json(self) -> list[Any]:
        return [self.first, self.position.to_json()]

    @staticmethod
    def from_json(saved: list[Any]) -> Origin:
        return Origin(saved[0], Position.from_json(saved[1]))
