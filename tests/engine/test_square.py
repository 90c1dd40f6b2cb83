"""The pass over a covariance as code made for the processor, against plain sums; and nothing beside it is touched."""

from __future__ import annotations

import numpy as np
import pytest

from onlinevi.engine import compose, ns, square
from onlinevi.engine.triangle import TILE

pytestmark = pytest.mark.compiled
ROOM = 8
"""Numbers before and behind the square, as a state has them."""


def passed(packed: np.ndarray, room: np.ndarray, dim: int) -> None:
    ns.square_times(packed[ROOM:], room, dim)


def waiting_room(dim: int, waiting: int, rng: np.random.Generator) -> np.ndarray:
    """A room with a row, and so many things that wait."""
    room, first = square.new_square_rooms(1, dim)[0], -dim % TILE
    for line in (square.ROW, square.ALONG, square.PART, square.AGAIN_ALONG, square.AGAIN_PART):
        room[line, first:] = rng.standard_normal(dim)
    room[square.NUMBERS, [square.GROWTH, square.WAITING]] = 1.25, waiting
    return room


@pytest.mark.parametrize("dim", [1, 2, 3, 7, 8, 9, 16, 23, 40, 61])
def test_what_waits_is_done_and_the_row_multiplied(dim: int) -> None:
    rng, first, run = np.random.default_rng(dim), -dim % TILE, compose(passed, {})
    lower, packed = np.tril_indices(dim), rng.standard_normal(ROOM + dim * dim + ROOM)
    for waiting in (0, 1, 2):
        room = waiting_room(dim, waiting, rng)
        given, made, made_room = packed[ROOM:-ROOM].reshape(dim, dim).copy(), packed.copy(), room.copy()
        expected, own = np.tril(given) + np.tril(given, -1).T, room[:, first:]
        if waiting:
            expected = expected + np.outer(own[square.PART], own[square.ALONG])
        if waiting > 1:
            expected = 1.25 * expected + np.outer(own[square.AGAIN_PART], own[square.AGAIN_ALONG])
        expected = np.tril(expected) + np.tril(expected, -1).T  # what lies below the diagonal is what counts
        square.square_times(given, room, dim)
        run(made, made_room, dim)
        for found, its_room in ((given, room), (made[ROOM:-ROOM].reshape(dim, dim), made_room)):
            np.testing.assert_allclose(found[lower], expected[lower], rtol=1e-12, atol=1e-12)
            times = expected @ its_room[square.ROW, first:]
            np.testing.assert_allclose(its_room[square.TIMES, first:], times, rtol=1e-11, atol=1e-11)
            assert its_room[square.NUMBERS, square.WAITING] == 0.0
        np.testing.assert_array_equal(made[:ROOM], packed[:ROOM])
        np.testing.assert_array_equal(made[-ROOM:], packed[-ROOM:])
        above = np.triu_indices(dim, 1)
        for found in (given, made[ROOM:-ROOM].reshape(dim, dim)):
            np.testing.assert_array_equal(found[above], packed[ROOM:-ROOM].reshape(dim, dim)[above])
