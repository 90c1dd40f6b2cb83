"""Lanes of messages as one line, in an order that hangs on the messages and not on when they were fetched."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

AHEAD = 1000
"""Milliseconds that a message may be ahead of the broker's clock and still be waited for."""


class Message(NamedTuple):
    """What a broker keeps of an event."""

    time: int
    """When it came about, in milliseconds since 1970, as the broker has it."""
    at: Any
    """Where it lies in its lane: an offset, an id."""
    nth: int
    """How many were ever put into its lane up to it."""
    value: Any


class Lane:
    """A partition of a topic, or a stream: what was fetched of it and waits to be taken."""

    def __init__(self, place: Mapping[str, Any]) -> None:
        self.place = place
        """What the lane is called: a topic and a partition, a stream."""
        self.waiting: deque[Message] = deque()
        self.ended = False
        """Whether nothing more was there when the broker was last asked."""
        self.closed = False
        """Whether nothing of what is still to come is wanted."""

    @property
    def known(self) -> bool:
        """Whether its next message is known, or that there is none."""
        return bool(self.waiting) or self.ended or self.closed


def take(lanes: Sequence[Lane], most: int, before: float = float("inf")) -> list[tuple[int, Message]]:
    """The next messages, each with the number of its lane: of the first messages of all lanes always the oldest, and of
    equally old ones that of the first lane.

    A lane of which more is there but has not been fetched is waited for; one that has ended holds nobody up. Messages from
    the time ``before`` on stay: elsewhere one as old may still come, but not where they are further ahead than clocks are.
    """
    if len(lanes) == 1:
        waiting = lanes[0].waiting
        return [(0, waiting.popleft()) for _ in range(min(most, len(waiting)))]
    taken: list[tuple[int, Message]] = []
    if not all(lane.known for lane in lanes):
        return taken
    heads = [(lane.waiting[0].time, number) for number, lane in enumerate(lanes) if lane.waiting]
    heapq.heapify(heads)
    while heads and len(taken) < most:
        time, number = heads[0]
        if before <= time < before + AHEAD:
            break
        lane = lanes[number]
        taken.append((number, lane.waiting.popleft()))
        if lane.waiting:
            heapq.heapreplace(heads, (lane.waiting[0].time, number))
        elif lane.known:
            heapq.heappop(heads)
        else:
            break
    return taken
