"""When rows happened: a source may say so beside its columns, and a column may be read as such."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from onlinevi.data import Piece, Position, Reader, ReadOptions, Refused, Skip, Waiting, open_stream, seconds

pa = pytest.importorskip("pyarrow", reason='pyarrow is missing: pip install "onlinevi[files]"')


@pytest.mark.parametrize(
    ("values", "want", "bad"),
    [
        (pa.array([0, 90, None]), [0.0, 90.0, np.nan], []),
        (pa.array(["1.5", " ", "?", "soon", "inf"]), [1.5, np.nan, np.nan, np.nan, np.inf], [3, 4]),
        (pa.array(["1970-01-02", "1970-01-01T00:01:00Z", "1970-01-01 00:00:00.5"]), [86400.0, 60.0, 0.5], []),
        (pa.array(["1970-01-01T01:00:00+01:00", "7"]), [0.0, 7.0], []),
        (pa.array([1_700_000_000_000, 1_700_000_000]), [1.7e9, 1.7e9], []),
        (pa.array([1_500_000], pa.timestamp("us")), [1.5], []),
        (pa.array([None], pa.null()), [np.nan], []),
    ],
)
def test_times_are_seconds(values: Any, want: list[float], bad: list[int]) -> None:
    found, wrong = seconds(values)
    there = ~wrong
    np.testing.assert_array_equal(found[there], np.array(want)[there])
    assert np.flatnonzero(wrong).tolist() == bad


class Clock(Reader):
    """Rows that say when they happened; the second of each piece is bad."""

    name = "clock"
    live = True

    def open(self, options: ReadOptions, resume: Position | None = None) -> Clock:
        return self

    def __iter__(self) -> Iterator[Piece]:
        for first in (0, 10):
            refused = [Refused(self.name, 1, None, "odd", "")]
            yield Piece(3, {"x": pa.array([first, first + 2])}, refused=refused, times=np.array([first, first + 2.0]))


def test_a_batch_has_the_times_of_its_rows() -> None:
    with open_stream(Clock(), bad=Skip()) as stream:
        batches = [*stream.peek(1), *stream]
    assert [batch.times.tolist() for batch in batches] == [[0.0], [0.0, 2.0], [10.0, 12.0]]
    assert batches[2].slice(1, 2).times.tolist() == [12.0]


def test_what_waits_goes_when_it_is_overdue_and_stays_while_it_is_looked_at() -> None:
    waiting = Waiting[str, int](most=3)
    for number, key in enumerate("abc"):
        assert waiting.add(key, number) is None
    for key, _ in waiting.overdue(lambda number: number < 2):
        assert key in waiting, "whoever fails half way finds it again"
    assert list(waiting) == [("c", 2)]
    assert waiting.at("a") is None
    assert waiting.oldest == ("c", 2)
    with pytest.raises(ValueError, match="room for at least one"):
        Waiting(0)
