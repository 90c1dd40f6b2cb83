"""The names of the columns that a state has learned from: kept beside it, and compared with those of every later table."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from onlinevi.data import column_names
from onlinevi.learners.shown import html_of


class Named:
    """A state that keeps the names of its columns, where tables with names were given."""

    columns: tuple[str, ...] = ()
    """In their order; none before the first table with names. Arrays without names are taken as they are."""

    def _repr_html_(self) -> str:
        known = {"events": "count", "columns": "width", "average loss": "average_loss"}
        facts = {name: getattr(self, part) for name, part in known.items() if hasattr(self, part)}
        return html_of(type(self).__name__, facts | ({"names": ", ".join(self.columns)} if self.columns else {}))


S = TypeVar("S")


def names_of(state: Any) -> tuple[str, ...]:
    """The names that a state knows; a state that is none of ours keeps none."""
    return state.columns if isinstance(state, Named) else ()


def checked(state: Any, X: Any) -> tuple[str, ...]:
    """The names that the state knows after these rows; refused where those of X are others, or in another order."""
    known = names_of(state)
    if type(X) is np.ndarray:  # what nearly all rows are: told at a glance
        return known
    names = column_names(X)
    for place, (name, own) in enumerate(zip(names, known, strict=False)):
        if name != own:
            raise ValueError(
                f"column {place} of X is {name!r}, where the state has learned from {own!r}: give the columns in the state's "
                "order, X[list(state.columns)]; an array without names is taken as it is"
            )
    return names if len(names) > len(known) else known


def keeping(state: S, columns: tuple[str, ...]) -> S:
    """A state that was just made, with the names of its columns."""
    if columns and isinstance(state, Named):
        object.__setattr__(state, "columns", columns)
    return state
