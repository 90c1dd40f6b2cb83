"""Numbers by name: what lies at some place in a packed array today may lie elsewhere tomorrow."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from onlinevi.engine import Vector
from onlinevi.learners.store.format import CheckpointError

Facts: TypeAlias = dict[str, Any]
"""What a file says of a state beside its arrays: JSON."""
Places: TypeAlias = Mapping[str, int]

ADDED_SINCE = frozenset({"last", "last_but_one", "plain_squares", "plain_weight"})
"""Names that files of format version 1 may lack, for sums kept since later: those start from 0. All others are essential."""


def numbers_of(array: Vector, places: Places) -> Facts:
    """The numbers of a packed array by name."""
    return {name: float(array[place]) for name, place in places.items()}


def put_numbers(array: Vector, numbers: Mapping[str, float], places: Places) -> None:
    """Put numbers in their places."""
    if strange := sorted(numbers.keys() - places.keys()):
        raise CheckpointError(f"it has {strange[0]!r}, which this version does not know: upgrade onlinevi")
    if lacking := sorted(places.keys() - numbers.keys() - ADDED_SINCE):
        raise CheckpointError(f"it lacks {lacking[0]!r}, without which no state can go on: take a backup")
    for name, number in numbers.items():
        if type(number) is not float or not math.isfinite(number):
            raise CheckpointError(f"its {name!r} is {number!r}: needs a finite number; take a backup")
        array[places[name]] = number


def whole(number: Any, name: str) -> int:
    """A count from 1 on."""
    if type(number) is not int or number < 1:
        raise CheckpointError(f"its {name} is {number!r}: needs a whole number from 1 on")
    return number


def check_finite(array: Vector, name: str) -> None:
    """Refuse what would poison a posterior."""
    if not np.isfinite(array).all():
        raise CheckpointError(f"its {name} is not finite everywhere: no learner has such a state")
