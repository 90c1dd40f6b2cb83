"""Configs as JSON and back: ``{"is": "Linear", …fields}``. Only classes that are known are made, by their own constructors."""

from __future__ import annotations

import itertools
import math
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import numpy as np

from onlinevi.beliefs import Ball, Box, Family
from onlinevi.learners.base import Learner
from onlinevi.learners.calibration import Calibration
from onlinevi.learners.described import CheckpointError, Storable
from onlinevi.learners.expand import FeatureMap
from onlinevi.learners.inputs import Inputs
from onlinevi.learners.pool import AdaHedge, Pool
from onlinevi.learners.set_calibration import SetCalibration
from onlinevi.losses import Loss
from onlinevi.rules import Rate, Rule

C = TypeVar("C", bound=Loss | Rule | Rate | Family | FeatureMap)

PARTS = (Loss, Rule, Rate, Family, FeatureMap)
"""What people may add classes of."""
SINGLE: tuple[type, ...] = (AdaHedge, Ball, Box, Calibration, Inputs, SetCalibration)
_registered: dict[str, type] = {}


def known() -> dict[str, type]:
    """The classes that files may name: ours, those that have a ``name`` of their own, and those that were registered."""
    kinds = {kind.__name__: kind for base in (*PARTS, Learner, Storable) for kind in _below(base) if _is_ours(kind)}
    named = {kind.__name__: kind for base in PARTS for kind in _below(base) if "name" in vars(kind) and is_dataclass(kind)}
    return named | _registered | kinds | {kind.__name__: kind for kind in SINGLE} | {"Aggregate": Pool}


def _below(kind: Any) -> set[type]:
    return {kind}.union(*(_below(child) for child in kind.__subclasses__()), ())


def _is_ours(kind: type) -> bool:
    return kind.__module__.startswith("onlinevi.") and is_dataclass(kind)


SHORTEST_RUN = 4
"""Equal numbers in a row are written once from here on: priors repeat one number for each of a million features."""


def register(kind: type[C]) -> type[C]:
    """Let checkpoints hold a loss, rule, rate, family or map of your own; also as a decorator. Loading needs the same call.

    The class is a frozen dataclass, known by its name; its fields are numbers, text, or configs themselves.
    """
    if not (is_dataclass(kind) and issubclass(kind, PARTS)):
        raise TypeError(f"{kind!r}: needs a class of a loss, rule, rate, family or feature map that is a frozen dataclass")
    same = known().get(kind.__name__, kind)
    if (same.__module__, same.__qualname__) != (kind.__module__, kind.__qualname__):
        raise ValueError(
            f"{kind.__qualname__}: checkpoints know {same.__module__}.{same.__qualname__} by this name; rename one"
        )
    _registered[kind.__name__] = kind
    return kind


def encode(value: Any) -> Any:
    """A config, or a value in one, as JSON."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"float": repr(float(value))}
    if isinstance(value, tuple | list):
        return _encode_sequence([encode(item) for item in value])
    return _encode_config(value)


def _encode_config(value: Any) -> dict[str, Any]:
    name = type(value).__name__
    if not _knows(type(value)):
        raise CheckpointError(
            f"{value!r} is of a class that checkpoints do not know: call ovi.checkpoint.register({name}) "
            "before saving and before loading"
        )
    settings = {item.name: getattr(value, item.name) for item in fields(value) if item.init}
    return {"is": name} | {field: encode(setting) for field, setting in settings.items()}


def _knows(kind: type) -> bool:
    return _is_ours(kind) or known().get(kind.__name__) is kind


def _encode_sequence(items: list[Any]) -> Any:
    if items and all(isinstance(item, float) for item in items):
        runs = [[float(value), len(list(run))] for value, run in itertools.groupby(map(repr, items))]  # −0.0 is not 0.0
        if len(items) >= SHORTEST_RUN * len(runs):
            return {"runs": runs}
    return items


class Decoder:
    """Makes configs from JSON. Runs may grow to as many values as the file has bytes: with its states it has more."""

    def __init__(self, most_values: int) -> None:
        self._left, self._known = most_values, known()

    def decode(self, data: Any) -> Any:
        """A config, or a value in one."""
        if isinstance(data, list):
            return tuple(self.decode(item) for item in data)
        if not isinstance(data, dict):
            return data
        if data.keys() == {"float"} and data["float"] in ("inf", "-inf", "nan"):
            return float(data["float"])
        if data.keys() == {"runs"}:
            return tuple(itertools.chain.from_iterable(self._run(*run) for run in data["runs"]))
        return self._config(data)

    def _run(self, value: float, count: int) -> tuple[float, ...]:
        self._left -= count
        if type(value) is not float or type(count) is not int or count < 1 or self._left < 0:
            raise CheckpointError(
                f"a setting claims {count!r} times {value!r}: more than the file's state can have, or no number"
            )
        return (value,) * count

    def _config(self, data: dict[str, Any]) -> Any:
        name = data.get("is")
        kind = self._known.get(name) if isinstance(name, str) else None
        if kind is None:
            raise CheckpointError(
                f"it holds a {name!r}, which this version does not know: if it is a class of yours, import it first (on the "
                "command line by --import package.module), and let it have a name, or call ovi.checkpoint.register() with it; "
                "else upgrade onlinevi"
            )
        settings = {field: self.decode(item) for field, item in data.items() if field != "is"}
        for item in fields(kind):  # anything is true or false to Python, and a constructor would not mind
            if item.type in (bool, "bool") and not isinstance(settings.get(item.name, False), bool):
                raise CheckpointError(f"its settings make no {name}: {item.name} is {settings[item.name]!r}, no true or false")
        try:
            return kind(**settings)
        except Exception as error:  # a constructor, perhaps not ours, met settings that nobody gives by hand
            raise CheckpointError(f"its settings make no {name} ({type(error).__name__}: {error})") from error
