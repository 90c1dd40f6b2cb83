"""Columns of any type as text, spelled the same whatever type a block gave them."""

from __future__ import annotations

from typing import Any

from onlinevi.data.files.extra import arrow
from onlinevi.data.files.values import value_text


def plain(values: Any) -> Any:
    """The array without a dictionary, and text in one of its types."""
    pa = arrow()
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    return values.cast(pa.string()) if _is_other_text(values.type) else values


def is_text(values: Any) -> bool:
    return bool(arrow().types.is_string(values.type))


def texts(values: Any) -> Any:
    """As an array of text; null where there is no value."""
    pa, types = arrow(), arrow().types
    values = plain(values)
    if is_text(values):
        return values
    if types.is_floating(values.type):
        there = (None if value is None or value != value else value for value in values.to_pylist())
        return pa.array([None if value is None else value_text(value) for value in there], pa.string())
    return values.cast(pa.string())


def _is_other_text(kind: Any) -> bool:
    types = arrow().types
    return types.is_large_string(kind) or (hasattr(types, "is_string_view") and types.is_string_view(kind))
