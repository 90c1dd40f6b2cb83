"""Predictions and bad rows as messages: the key of each says which event it is of, so that one that comes twice is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from onlinevi.data import Address, sender
from onlinevi.runs.writers import json_rows

PlaceOf = Callable[[int], Mapping[str, Any] | None]
"""What its source calls a row, by its number."""


def key_of(row: int, place: Mapping[str, Any] | None) -> str:
    """An event's key: its place in a broker, as ``clicks/2/55``, or its number in a file.

    >>> key_of(7, {"topic": "clicks", "partition": 2, "offset": 55}), key_of(7, None)
    ('clicks/2/55', '7')
    """
    return str(row) if place is None else "/".join(map(str, place.values()))


class Sent:
    """Lines to a broker; what a checkpoint says was sent has been delivered."""

    def __init__(self, address: Address) -> None:
        self.address, self._sender = address, sender(address)

    def write(self, key: str, text: str) -> None:
        self._sender.send(key, text.encode())

    def flush(self) -> None:
        """What was written is on its way."""
        self._sender.flush()

    def place(self) -> dict[str, Any]:
        """Where it went, all of it delivered."""
        self._sender.settle()
        return {"path": str(self.address)}

    def close(self) -> None:
        self._sender.close()


class SentTable(Sent):
    """Rows as messages of JSON; resumed, rows behind the checkpoint are sent again, under the keys that they had."""

    def __init__(self, address: Address, names: Iterable[str], place_of: PlaceOf) -> None:
        super().__init__(address)
        self._names, self._place_of = tuple(names), place_of

    def add(self, columns: Sequence[Iterable[Any]]) -> None:
        numbers, *others = columns
        rows = list(numbers)
        for row, text in zip(rows, json_rows(self._names, [rows, *others]), strict=True):
            self.write(key_of(row, self._place_of(row)), text)

    def finish(self) -> None:
        """Deliver all of them."""
        self.place()
