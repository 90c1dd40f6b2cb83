"""What waits for its other half: by key, the oldest first, and never more than there is room for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
T = TypeVar("T")


class Waiting(Generic[Key, T]):
    """Things under their keys, in the order in which they came; at most so many.

    >>> waiting = Waiting[str, float](most=2)
    >>> waiting.add("a", 1.0), waiting.add("b", 2.0), waiting.add("c", 3.0)
    (None, None, ('a', 1.0))
    >>> list(waiting.overdue(lambda came: came < 2.5)), waiting.take("c"), len(waiting)
    ([('b', 2.0)], 3.0, 0)
    """

    def __init__(self, most: int) -> None:
        if most < 1:
            raise ValueError(f"waiting={most}: needs room for at least one")
        self.most = most
        self._things: OrderedDict[Key, T] = OrderedDict()

    def __len__(self) -> int:
        return len(self._things)

    def __contains__(self, key: object) -> bool:
        return key in self._things

    def __iter__(self) -> Iterator[tuple[Key, T]]:
        return iter(self._things.items())

    def at(self, key: Key) -> T | None:
        """What waits under a key."""
        return self._things.get(key)

    def add(self, key: Key, thing: T) -> tuple[Key, T] | None:
        """Let it wait, as the newest; the oldest, where it has to go to make room."""
        self._things[key] = thing
        return self._things.popitem(last=False) if len(self._things) > self.most else None

    def take(self, key: Key) -> T:
        """What waited under a key, and waits no more."""
        return self._things.pop(key)

    @property
    def oldest(self) -> tuple[Key, T] | None:
        """What has waited longest."""
        return next(iter(self._things.items()), None)

    def overdue(self, over: Callable[[T], bool]) -> Iterator[tuple[Key, T]]:
        """From the oldest on what has waited long enough; each goes once whoever asked is done with it."""
        while (oldest := self.oldest) is not None and over(oldest[1]):
            yield oldest
            self._things.pop(oldest[0], None)
