"""Labels of several classes: their numbers, and where a block has the first row of one that had not come."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST = 1 << 20
"""A class of a larger number is some other number, such as a year or an id: there is a line of weights for each below it."""


def class_codes(y: Any, known: int, *, grows: bool) -> NDArray[np.int64]:
    """The numbers of these labels' classes, refused where there is no such class, and none can join."""
    labels = np.asarray(y, dtype=float)
    with np.errstate(invalid="ignore"):  # refused below
        codes = labels.astype(np.int64)
    if not (codes == labels).all() or (codes < 0).any():
        raise ValueError("y has a label that is no class: needs their numbers, 0, 1, 2, …")
    if (codes >= MOST).any():
        raise ValueError(
            f"y has class {codes.max()}: classes have numbers, 0, 1, 2, …, below {MOST:,}, as they have weights up to the "
            "largest; number them, as np.unique(y, return_inverse=True)[1] does"
        )
    if not grows and (codes >= known).any():
        raise ValueError(f"y has class {codes.max()}: there are {known}, and none can join; set grows=True")
    return codes


def firsts(codes: Any, come: Collection[int]) -> list[int]:
    """Where blocks begin: at the first row, and at the first row of each class that had not come before."""
    found, first = np.unique(codes, return_index=True)
    return sorted({0, *(place for code, place in zip(found.tolist(), first.tolist(), strict=True) if code not in come)})
