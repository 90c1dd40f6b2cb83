"""The default with maps of few features, for tests on the interpreted engine: there each event of a hundred takes a second."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import onlinevi as ovi
from onlinevi.learners.default import joint, recipe
from onlinevi.learners.default.recipe import Member, View

VIEWS = (View(ovi.Relu(3), (Member(1.0, 1.0), Member(1.0, 0.99)), 1000),)
"""Of another kind than the leaves on the columns, as all views are: what is tested of one holds for all."""


@contextmanager
def of_tests(*, wanted: bool) -> Iterator[None]:
    """Let the default see these features alone, as long as the block runs."""
    if not wanted:
        yield
        return
    nothing = recipe.HASHED_PRODUCTS._replace(most_columns=0)
    of_two = mock.patch.multiple(
        recipe, BENT_CLASSES=VIEWS, BENT_NUMBERS=VIEWS, BENT_ONE_OF_MANY=VIEWS, HASHED_PRODUCTS=nothing
    )
    of_more = mock.patch.multiple(joint, BENT=VIEWS, APART=VIEWS)
    with of_two, of_more:
        recipe.pool.cache_clear()
        yield
    recipe.pool.cache_clear()
