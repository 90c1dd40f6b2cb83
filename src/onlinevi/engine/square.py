"""A covariance as a square, of which what lies on and below the diagonal counts: what events make of it, and Σx, in one pass.

An event narrows it by a column times a row, forgetting adds another. Neither is done at once: the next row has to go over the
whole square anyway, to be multiplied by it, and memory is what takes the time. So both wait in the square's ``room``, a line
each, at the end of which whole vectors are filled as in ``triangle.py``; a tile of eight rows is read, changed, written and
multiplied while it is in registers. Entries change by the same instructions whenever that is, so that a stream may be split
anywhere.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np

from onlinevi.engine.triangle import TILE, Tiles, padding

ROW, TIMES, ALONG, PART, AGAIN_ALONG, AGAIN_PART, NUMBERS, NOBODY = range(8)
"""The lines of a room: x; Σx; the columns' and the rows' parts of what waits, Σ + PART·ALONGᵀ; the same of what comes behind;
``GROWTH`` and ``WAITING``; and one that stands for rows above the first."""
LINES = 8
GROWTH, WAITING = 0, 1
"""Among the numbers: what the square is multiplied by between the two, and how many of them wait."""


def new_square_rooms(count: int, dim: int) -> Any:
    """Rooms of so many squares, with nothing in them."""
    return np.zeros((count, LINES, np.uint64(dim) + padding(dim)))


# --- interpreted


def square_times(square: Any, room: Any, dim: Any) -> None:
    """Do what waits, and fill in Σx.

    Σ becomes Σ + PART·ALONGᵀ where one thing waits; where two do, GROWTH times that, and AGAIN_PART·AGAIN_ALONGᵀ more.
    """
    dim = int(dim)
    first, flat, waiting = -dim % TILE, square.reshape(-1), room[NUMBERS, WAITING]
    x, found = room[ROW, first:], room[TIMES, first:]
    for i in range(dim):
        row = flat[i * dim : i * dim + i + 1]
        if waiting > 0.0:
            row += room[PART, first + i] * room[ALONG, first : first + i + 1]
        if waiting > 1.0:
            row *= room[NUMBERS, GROWTH]
            row += room[AGAIN_PART, first + i] * room[AGAIN_ALONG, first : first + i + 1]
        found[:i] += row[:i] * x[i]
        found[i] = row @ x[: i + 1]
    room[NUMBERS, WAITING] = 0.0


# --- compiled


def _times(tiles: _SquareTiles, waiting: int) -> None:
    """``square_times`` where so many things wait."""
    sums = [tiles.variable() for _ in range(TILE)]
    growth = tiles.repeated(NUMBERS, tiles.word(0), GROWTH) if waiting > 1 else None
    with tiles.downwards() as tile:
        rows = tiles.rows_of(tile)
        x_of_rows, parts, again = ([tiles.repeated(line, tile, r) for r in range(TILE)] for line in (ROW, PART, AGAIN_PART))
        for one in sums:
            tiles.store(tiles.zeros, one)

        def changed(entry: Any, r: int, along: Any, again_along: Any) -> Any:
            new = tiles.plus(entry, tiles.times(parts[r], along)) if waiting else entry
            return tiles.plus(tiles.times(growth, new), tiles.times(again[r], again_along)) if waiting > 1 else new

        def lines(chunk: Any) -> list[Any]:
            return [tiles.load(tiles.line(line, chunk)) for line in (ROW, ALONG, AGAIN_ALONG)]

        # Only the first vector of a row has what is before the row in memory: it is left as it was.
        for first in (True, False):
            with tiles.left_of(tile, first=first) as chunk:
                (x, *along), total = lines(chunk), tiles.load(tiles.line(TIMES, chunk))
                for r, row in enumerate(rows):
                    place = tiles.place(row, chunk)
                    entry = tiles.load(place)
                    if waiting:
                        new = changed(entry, r, *along)
                        entry = tiles.select(tiles.real(chunk), new, entry) if first else new
                        tiles.store(entry, place)
                    tiles.store(tiles.plus(tiles.load(sums[r]), tiles.times(entry, x)), sums[r])
                    total = tiles.plus(total, tiles.times(entry, x_of_rows[r]))
                tiles.store(total, tiles.line(TIMES, chunk))

        # Vectors on the first diagonal overlap: all are read before any is written, and the last word on a row is its own.
        (x, *along), total, real = lines(tile), tiles.zeros, tiles.real(tile)
        places = [tiles.place(row, tile) for row in rows]
        found = [tiles.load(place) for place in places]
        for r in reversed(range(TILE)):
            entry = changed(found[r], r, *along)
            if waiting:
                tiles.store(tiles.up_to_diagonal(r, tiles.select(real, entry, found[r]), found[r]), places[r])
            entry = tiles.select(real, entry, tiles.zeros)
            part = tiles.times(tiles.up_to_diagonal(r, entry), x)
            tiles.store(tiles.plus(tiles.load(sums[r]), part), sums[r])
            total = tiles.plus(total, tiles.times(tiles.up_to_diagonal(r - 1, entry), x_of_rows[r]))
        tiles.store(tiles.plus(total, tiles.totals([tiles.load(one) for one in sums])), tiles.line(TIMES, tile))


@cache
def square_definition() -> str:
    """``onlinevi_square_times`` as a function of LLVM's: of a square, its room, and its width."""
    from llvmlite import ir

    module, name = ir.Module(), "onlinevi_square_times"
    numbers, word = ir.DoubleType().as_pointer(), ir.IntType(64)
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [numbers, numbers, word]), name)
    function.linkage = "linkonce_odr"
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block())
    tiles = _SquareTiles(builder, *function.args)
    place = builder.gep(tiles.start_of(NUMBERS), [word(WAITING)])
    waiting = builder.load(place)
    with builder.if_else(builder.fcmp_ordered(">", waiting, ir.DoubleType()(0.0))) as (some, none):
        with some, builder.if_else(builder.fcmp_ordered(">", waiting, ir.DoubleType()(1.0))) as (two, one):
            with two:
                _times(tiles, 2)
            with one:
                _times(tiles, 1)
        with none:
            _times(tiles, 0)
    builder.store(ir.DoubleType()(0.0), place)
    builder.ret_void()
    return re.sub(r"(<8 x double>|double)\*", "ptr", str(function))


class _SquareTiles(Tiles):
    """Tiles of a square, of which what lies on and below the diagonal is read."""

    def word(self, number: int) -> Any:
        return self._word(number)

    def start_of(self, line: int) -> Any:
        """Where a line of the room begins."""
        return self._line(line)

    def downwards(self) -> Any:
        """A loop over tiles, from the first down."""
        return self._loop(self._number, lambda k: k)

    def left_of(self, tile: Any, *, first: bool) -> Any:
        """A loop over the vectors that lie left of the diagonal: the first alone, or those behind it."""
        b, one = self._builder, self._word(1)
        if first:
            return self._loop(b.select(b.icmp_signed(">", tile, self._word(0)), one, self._word(0)), lambda k: k)
        return self._loop(b.sub(tile, one), lambda k: b.add(k, one))

    def rows_of(self, tile: Any) -> list[Any]:
        b, found = self._builder, []
        for r in range(TILE):
            k = b.sub(b.add(b.mul(tile, self._word(TILE)), self._word(r)), self._padding)
            start = b.sub(b.mul(k, self._dim), self._padding)
            above = b.icmp_signed("<", k, self._word(0))
            found.append(b.select(above, self._line(NOBODY), b.gep(self._factor, [start])))
        return found

    def real(self, chunk: Any) -> Any:
        """Which places of a vector are in the square: before column 0 lies what is before the row in memory."""
        b, ir = self._builder, self._ir
        words = ir.VectorType(ir.IntType(64), TILE)
        first = b.sub(self._padding, b.mul(chunk, self._word(TILE)))
        one = b.insert_element(ir.Constant(words, ir.Undefined), first, ir.IntType(32)(0))
        least = b.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), TILE), [0] * TILE))
        return b.icmp_signed(">=", ir.Constant(words, list(range(TILE))), least)

    def select(self, which: Any, one: Any, other: Any) -> Any:
        return self._builder.select(which, one, other)

    def up_to_diagonal(self, row: int, inside: Any, outside: Any = None) -> Any:
        """Of a vector on the diagonal what lies left of it in the row, or on it; else 0, or what is ``outside``."""
        ir = self._ir
        mask = ir.Constant(ir.VectorType(ir.IntType(1), TILE), [k <= row for k in range(TILE)])
        return self._builder.select(mask, inside, self.zeros if outside is None else outside)
