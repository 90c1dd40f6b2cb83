"""What a row needs of a belief, from the two halves of the row: the values that fill vectors, and the few behind them.

A step writes those few one by one. A read of several at once would have to wait until all of them are in the cache, and the
next event for that read; so they are read one by one too (``reading.dense_halves``), while the vectors are summed.
"""

from __future__ import annotations

from onlinevi.types import Moments


def together(one: Moments, other: Moments) -> Moments:
    return Moments(
        one.prediction + other.prediction,
        one.variance + other.variance,
        one.reach + other.reach,
        one.row_square + other.row_square,
        one.spread_square + other.spread_square,
        one.blur + other.blur,
    )
