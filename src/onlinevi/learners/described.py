"""A state in plain terms: facts that JSON can hold, and vectors by name. ``store`` puts them into a file and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np

from onlinevi.engine import Vector

Facts: TypeAlias = dict[str, Any]
"""What is said of a state beside its arrays: JSON."""
Places: TypeAlias = Mapping[str, int]

FOREIGN = "this state belongs to another learner: save it with the one that made it"

ADDED_SINCE = frozenset({"last", "last_but_one", "magnitude", "plain_squares", "plain_weight", "raw_squares", "raw_weight"})
"""Names that older files may lack, for sums kept since later: those start from 0. All others are essential."""


class CheckpointError(ValueError):
    """A checkpoint that cannot be written or is not to be trusted, and why."""


@dataclass(frozen=True)
class Described:
    """A state taken apart."""

    facts: Facts
    arrays: dict[str, Vector] = field(default_factory=dict)
    parts: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    """The learners inside with their states, by name."""
    configs: dict[str, Any] = field(default_factory=dict)
    """Configs that the learner itself does not tell, by name."""


class Storable:
    """What files may hold beside learners: a config of a package above, as a learner or in one.

    A frozen dataclass. One that a file is about says ``describe(state)`` and ``restore(stored)``, as a learner does.
    """


class Stored(Protocol):
    """A described state to be put together again."""

    facts: Facts

    def length(self, name: str) -> int:
        """How many values an array has; 0 where there is none."""

    def fill(self, name: str, vector: Vector) -> None:
        """Put an array's values where they belong; refused where their number differs."""

    def part(self, name: str, learner: Any) -> Any:
        """The state of a learner inside."""

    def config(self, name: str) -> Any:
        """A config that was kept beside the state."""


def numbers_of(array: Vector, places: Places) -> Facts:
    """The numbers of a packed array by name: what lies at some place today may lie elsewhere tomorrow."""
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


def sizes_of(facts: Facts) -> tuple[int, int | None]:
    """How many features a state has, and the horizon, where it was given one."""
    horizon = facts["horizon"]
    return whole(facts["dim"], "number of features"), None if horizon is None else whole(horizon, "horizon")


def check_finite(array: Vector, name: str) -> None:
    """Refuse what would poison a posterior."""
    if not np.isfinite(array).all():
        raise CheckpointError(f"its {name} is not finite everywhere: no learner has such a state")
