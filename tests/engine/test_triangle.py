"""Both passes over a packed triangle, as code made for the processor, against plain sums; and nothing beside it is touched."""

from __future__ import annotations

import numpy as np
import pytest

from onlinevi.engine import compose, ns, triangle

pytestmark = pytest.mark.compiled
ROOM = 8
"""Numbers before and behind the triangle, as a state has them."""


def both(packed: np.ndarray, room: np.ndarray, dim: int, count: int, folds: bool) -> None:
    factor = packed[ROOM:]
    if folds:
        ns.fold_triangle(factor, room, dim, count)
    else:
        ns.triangle_times(factor, room, dim, count)


@pytest.mark.parametrize("dim", [1, 2, 3, 7, 8, 9, 16, 23, 40, 61])
def test_tiles_give_what_rows_do(dim: int) -> None:
    rng, first, size = np.random.default_rng(dim), -dim % triangle.TILE, dim * (dim + 1) // 2
    packed, run = rng.standard_normal(ROOM + size + ROOM), compose(both, {})
    for count in sorted({1, (dim + 1) // 2, dim}):
        room = triangle.new_room(dim)
        room[:, first:] = rng.standard_normal((triangle.LINES, dim))
        for line, still in ((triangle.SCALE, 1.0), (triangle.SHIFT, 0.0), (triangle.TIMES, 0.0), (triangle.ROW, 0.0)):
            room[line, first + count :] = still
        for folds in (False, True):
            plain, plain_room = packed[ROOM:-ROOM].copy(), room.copy()
            made, made_room = packed.copy(), room.copy()
            if folds:
                triangle.fold_triangle(plain, plain_room, dim, count)
            else:
                triangle.triangle_times(plain, plain_room, dim, count)
            run(made, made_room, dim, count, folds)
            np.testing.assert_allclose(made[ROOM:-ROOM], plain, rtol=1e-12, atol=1e-12)
            lines = [triangle.SUM] if folds else [triangle.TIMES, triangle.BELOW]
            for line in lines:
                np.testing.assert_allclose(
                    made_room[line, first : first + count], plain_room[line, first : first + count], rtol=1e-12, atol=1e-12
                )
            np.testing.assert_array_equal(made[:ROOM], packed[:ROOM])
            np.testing.assert_array_equal(made[-ROOM:], packed[-ROOM:])
            if not folds:
                np.testing.assert_array_equal(made, packed)
