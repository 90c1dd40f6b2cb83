"""Dataclasses to plain JSON values and back, by their type hints."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np


def to_plain(value: Any) -> Any:
    """What JSON can say: dataclasses as dicts, arrays as lists, NaN and infinity as null."""
    if dataclasses.is_dataclass(value):
        return {part.name: to_plain(getattr(value, part.name)) for part in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_plain(own) for key, own in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(own) for own in value]
    if isinstance(value, np.ndarray | np.generic):
        return to_plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def from_plain(value: Any, kind: Any, place: str) -> Any:
    """A value of this type from plain ones; ``place`` names it in errors."""
    if dataclasses.is_dataclass(kind):
        return _from_dict(value, kind, place)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _from_union(value, arguments, place)
    if origin is Literal:
        return value if value in arguments else _refuse(value, " or ".join(map(repr, arguments)), place)
    if origin is list:
        if not isinstance(value, list | tuple):
            _refuse(value, "a list", place)
        return [from_plain(own, arguments[0], f"{place}[{k}]") for k, own in enumerate(value)]
    if origin is dict:
        if not isinstance(value, Mapping):
            _refuse(value, "a dict", place)
        return {key: from_plain(own, arguments[1], f"{place}.{key}") for key, own in value.items()}
    if kind is float and value is None:
        return math.nan
    allowed = (int, float) if kind is float else kind
    if not isinstance(value, allowed) or isinstance(value, bool) != (kind is bool):
        _refuse(value, {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}[kind], place)
    return kind(value)


def _from_dict(value: Any, kind: Any, place: str) -> Any:
    if not isinstance(value, Mapping):
        _refuse(value, "a dict", place)
    hints, parts = get_type_hints(kind), {}
    for part in dataclasses.fields(kind):
        if part.name in value:
            parts[part.name] = from_plain(value[part.name], hints[part.name], f"{place}.{part.name}")
        elif part.default is dataclasses.MISSING and part.default_factory is dataclasses.MISSING:
            raise ValueError(f"{place}.{part.name} is missing: a results document needs it")
    try:
        return kind(**parts)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None


def _from_union(value: Any, kinds: tuple[Any, ...], place: str) -> Any:
    if value is None and NoneType in kinds:
        return None
    others = [kind for kind in kinds if kind is not NoneType]
    if isinstance(value, Mapping):  # of several dataclasses, the one whose parts it has
        fits = [kind for kind in others if set(value) & {part.name for part in dataclasses.fields(kind)[:1]}]
        others = fits or others
    return from_plain(value, others[0], place)


def _refuse(value: Any, needed: str, place: str) -> Any:
    raise ValueError(f"{place} is {str(value)[:60]!r}: needs {needed}")
