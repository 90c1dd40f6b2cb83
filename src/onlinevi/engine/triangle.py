"""The two passes over a packed upper triangle that a step on a full covariance is made of, eight rows at a time.

Loops written row by row leave a compiler with rows of all lengths, whose ends fill no vector, and with sums that it must read
and write once a row. Here a tile of eight rows reads and writes them once, in vectors, whose remainders lie on the diagonal
alone. Vectors beside the triangle lie in a ``room``, at the ends of lines that whole vectors fill.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

TILE = 8
"""Rows that are taken at once, and doubles of a vector: one of 64 bytes, or two of 32."""

ROW, TIMES, BELOW, SUM, SCALE, SHIFT, NOBODY = range(7)
"""The lines of a room: x; w = C·x; Σ w_i² of the rows below each; S = Σ w_k·C_k; what a row of C is multiplied by, and what of
S it takes in; and one that stands for rows above the first."""
LINES = 7

FUSED = ("contract",)
"""A product and a sum may become one instruction; no sum is reordered."""


def padding(dim: Any) -> Any:
    """Where the numbers of a line begin: what is lacking to whole vectors."""
    return np.uint64(TILE - 1) - (np.uint64(dim) + np.uint64(TILE - 1)) % np.uint64(TILE)


def new_room(dim: int) -> Any:
    """A room with nothing in it."""
    return np.zeros((LINES, np.uint64(dim) + padding(dim)))


# --- interpreted


def triangle_times(factor: Any, room: Any, dim: Any, count: Any) -> None:
    """The first ``count`` numbers of w become those of C·x, all others being 0, and those of its squares' sums from below."""
    dim, count = int(dim), int(count)
    first = -dim % TILE
    for k, row in enumerate(_rows(factor, dim)[:count]):
        room[TIMES, first + k] = row @ room[ROW, first + k :]
    total = 0.0
    for k in range(first + count - 1, first - 1, -1):
        room[BELOW, k] = total
        total += room[TIMES, k] * room[TIMES, k]


def fold_triangle(factor: Any, room: Any, dim: Any, count: Any) -> None:
    """From row ``count`` − 1 up C_k becomes scale_k·C_k + shift_k·S, and S takes in w_k·C_k as it was; those of the same tile
    below it have the scale 1, and else 0. S begins at 0 up to the columns of that tile, and at what it is behind them."""
    dim, count = int(dim), int(count)
    first, rows = -dim % TILE, _rows(factor, dim)
    room[SUM, : first + count + -(first + count) % TILE] = 0.0
    for k in range(count - 1, -1, -1):
        row, below = np.array(rows[k]), room[SUM, first + k :]
        rows[k][:] = room[SCALE, first + k] * row + room[SHIFT, first + k] * below
        below += room[TIMES, first + k] * row


def _rows(factor: Any, dim: int) -> list[Any]:
    ends = np.cumsum(np.arange(dim, 0, -1))
    return [factor[end - length : end] for end, length in zip(ends.tolist(), range(dim, 0, -1), strict=True)]


# --- compiled


def _times(tiles: Tiles, last: Any) -> None:
    """``triangle_times``."""
    sums, squares = [tiles.variable() for _ in range(TILE)], tiles.variable()
    tiles.store(tiles.zeros, squares)
    with tiles.from_row(last) as tile:
        rows, x = tiles.rows_of(tile), tiles.load(tiles.line(ROW, tile))
        for r, row in enumerate(rows):
            tiles.store(tiles.times(tiles.from_diagonal(r, tiles.load(tiles.place(row, tile))), x), sums[r])
        with tiles.beside(tile) as chunk:
            x = tiles.load(tiles.line(ROW, chunk))
            for r, row in enumerate(rows):
                part = tiles.times(tiles.load(tiles.place(row, chunk)), x)
                tiles.store(tiles.plus(tiles.load(sums[r]), part), sums[r])
        w = tiles.totals([tiles.load(one) for one in sums])
        square = tiles.times(w, w)
        below = tiles.sums_behind(square)
        tiles.store(w, tiles.line(TIMES, tile))
        tiles.store(tiles.plus(below, tiles.load(squares)), tiles.line(BELOW, tile))
        tiles.store(tiles.plus(tiles.load(squares), tiles.picked([0] * TILE, tiles.plus(below, square))), squares)


def _fold(tiles: Tiles, last: Any) -> None:
    """``fold_triangle``."""
    with tiles.from_row(last) as tile:
        rows = tiles.rows_of(tile)
        scales, shifts, weights = ([tiles.repeated(line, tile, r) for r in range(TILE)] for line in (SCALE, SHIFT, TIMES))

        def fold(chunk: Any, *, diagonal: bool) -> None:
            # No row below this tile has columns of its diagonal: what is there is not read.
            total = tiles.zeros if diagonal else tiles.load(tiles.line(SUM, chunk))
            places = [tiles.place(row, chunk) for row in rows]
            # Vectors on the diagonal overlap: all are read before any is written, and the last word on a row is its own.
            found = [tiles.load(place) for place in places] if diagonal else []
            for r in reversed(range(TILE)):
                entry = tiles.from_diagonal(r, found[r]) if diagonal else tiles.load(places[r])
                new = tiles.plus(tiles.times(scales[r], entry), tiles.times(shifts[r], total))
                tiles.store(tiles.from_diagonal(r, new, found[r]) if diagonal else new, places[r])
                total = tiles.plus(total, tiles.times(weights[r], entry))
            tiles.store(total, tiles.line(SUM, chunk))

        fold(tile, diagonal=True)
        with tiles.beside(tile) as chunk:
            fold(chunk, diagonal=False)


@cache
def definitions() -> dict[str, str]:
    """Both as functions of LLVM's, by name: of a packed triangle, its room, its width, and how many rows from the first on.

    They are called, not inlined: loops that call them compile sooner, and all of them get the same bits.
    """
    from llvmlite import ir

    found = {}
    for name, code in (("onlinevi_triangle_times", _times), ("onlinevi_fold_triangle", _fold)):
        module = ir.Module()
        numbers, word = ir.DoubleType().as_pointer(), ir.IntType(64)
        function = ir.Function(module, ir.FunctionType(ir.VoidType(), [numbers, numbers, word, word]), name)
        function.linkage = "linkonce_odr"
        function.attributes.add("noinline")
        builder = ir.IRBuilder(function.append_basic_block())
        factor, room, dim, count = function.args
        code(Tiles(builder, factor, room, dim), builder.sub(count, word(1)))
        builder.ret_void()
        found[name] = re.sub(r"(<8 x double>|double)\*", "ptr", str(function))
    return found


class Tiles:
    """Code of LLVM's that goes over a triangle by tiles: eight rows, in vectors of eight columns.

    Tiles are laid from the last row and column on, so that only the first may lack rows, and only vectors on the diagonal hold
    what is not in their row: the end of the row before it, or what lies before the triangle in a state. That is read, left out
    of sums, and written back as it was.
    """

    def __init__(self, builder: Any, factor: Any, room: Any, dim: Any) -> None:
        from llvmlite import ir

        self._ir, self._builder = ir, builder
        self._factor, self._room, self._dim = factor, room, dim
        self._word, self._vector = ir.IntType(64), ir.VectorType(ir.DoubleType(), TILE)
        self._width = builder.and_(builder.add(dim, self._word(TILE - 1)), self._word(-TILE))
        self._padding = builder.sub(self._width, dim)
        self._number = builder.udiv(self._width, self._word(TILE))

    def from_row(self, row: Any) -> Any:
        """A loop over tiles, from that of a row up."""
        b = self._builder
        last = b.udiv(b.add(row, self._padding), self._word(TILE))
        return self._loop(b.add(last, self._word(1)), lambda k: b.sub(last, k))

    def beside(self, tile: Any) -> Any:
        """A loop over the vectors that lie right of the diagonal."""
        b = self._builder
        first = b.add(tile, self._word(1))
        return self._loop(b.sub(self._number, first), lambda k: b.add(first, k))

    @contextmanager
    def _loop(self, count: Any, place: Callable[[Any], Any]) -> Iterator[Any]:
        from numba.core import cgutils

        with cgutils.for_range(self._builder, count) as loop:
            yield place(loop.index)

    def rows_of(self, tile: Any) -> list[Any]:
        """Where the rows of a tile would have column 0 of the padded square."""
        b, found = self._builder, []
        for r in range(TILE):
            k = b.sub(b.add(b.mul(tile, self._word(TILE)), self._word(r)), self._padding)
            others = b.sub(b.sub(b.mul(self._word(2), self._dim), k), self._word(1))
            start = b.sub(b.ashr(b.mul(k, others), self._word(1)), self._padding)
            above = b.icmp_signed("<", k, self._word(0))
            found.append(b.select(above, self._line(NOBODY), b.gep(self._factor, [start])))
        return found

    def place(self, row: Any, chunk: Any) -> Any:
        """Where a vector of a row lies."""
        b = self._builder
        return b.bitcast(b.gep(row, [b.mul(chunk, self._word(TILE))]), self._vector.as_pointer())

    def line(self, line: int, chunk: Any) -> Any:
        """Where a vector of a line of the room lies."""
        return self.place(self._line(line), chunk)

    def _line(self, line: int) -> Any:
        return self._builder.gep(self._room, [self._builder.mul(self._word(line), self._width)])

    def load(self, place: Any) -> Any:
        return self._builder.load(place, align=8)

    def store(self, value: Any, place: Any) -> None:
        self._builder.store(value, place, align=8)

    def repeated(self, line: int, tile: Any, row: int) -> Any:
        """The number that a line has for a row of a tile, in all places of a vector."""
        b, ir = self._builder, self._ir
        number = b.load(b.gep(self._line(line), [b.add(b.mul(tile, self._word(TILE)), self._word(row))]))
        return self.picked([0] * TILE, b.insert_element(ir.Constant(self._vector, ir.Undefined), number, ir.IntType(32)(0)))

    def picked(self, places: list[int], one: Any, other: Any = None) -> Any:
        """Numbers of two vectors, those of the second from place 8 on."""
        kind = self._ir.VectorType(self._ir.IntType(32), TILE)
        return self._builder.shuffle_vector(one, one if other is None else other, self._ir.Constant(kind, places))

    @property
    def zeros(self) -> Any:
        return self._ir.Constant(self._vector, [0.0] * TILE)

    def from_diagonal(self, row: int, inside: Any, outside: Any = None) -> Any:
        """Of a vector on the diagonal what is in the row; else 0, or what is ``outside``."""
        ir = self._ir
        mask = ir.Constant(ir.VectorType(ir.IntType(1), TILE), [k >= row for k in range(TILE)])
        return self._builder.select(mask, inside, self.zeros if outside is None else outside)

    def times(self, one: Any, other: Any) -> Any:
        return self._builder.fmul(one, other, flags=FUSED)

    def plus(self, one: Any, other: Any) -> Any:
        return self._builder.fadd(one, other, flags=FUSED)

    def totals(self, vectors: list[Any]) -> Any:
        """The sum of each of eight vectors, as a vector: halves of two are added at a time."""
        width = TILE
        while len(vectors) > 1:
            width //= 2
            left = [k for k in range(2 * TILE) if k // width % 2 == 0]
            pairs = zip(vectors[::2], vectors[1::2], strict=True)
            vectors = [self.plus(self.picked(left, *both), self.picked([k + width for k in left], *both)) for both in pairs]
        return vectors[0]

    def sums_behind(self, vector: Any) -> Any:
        """For each place the sum of what lies behind it."""
        found = self.picked([*range(1, TILE), TILE], vector, self.zeros)
        for far in (1, 2, 4):
            found = self.plus(found, self.picked([min(k + far, TILE) for k in range(TILE)], found, self.zeros))
        return found

    def variable(self) -> Any:
        from numba.core import cgutils

        return cgutils.alloca_once(self._builder, self._vector)
