"""Columns as pyarrow arrays: what is missing in them, and their values as text, as numbers or as names.

pyarrow is imported when used: learning from arrays needs none of it.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlinevi.engine import Vector

MISSING = frozenset(["", "?", "NA", "N/A", "#N/A", "na", "n/a", "NaN", "nan", "null", "NULL", "Null", "None", "none"])
"""How text spells a missing number."""

EXACT = 1 << 53
"""Up to here every integer is a float."""

A_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
"""How many units of an Arrow duration it has."""

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(inf|infinity|nan)", re.IGNORECASE)


@cache  # a prediction asks for it a hundred times
def arrow(part: str = "") -> Any:
    """The module ``pyarrow``, or a part of it such as ``pyarrow.csv``."""
    try:
        if _spares_pandas and "pyarrow" not in sys.modules:
            _ask_without_pandas()
        return import_module(f"pyarrow.{part}" if part else "pyarrow")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError('reading files needs pyarrow: pip install "onlinevi[files]"') from error


_spares_pandas = False


def spare_pandas() -> None:
    """Keep pyarrow from importing pandas, in a process of our own: there nothing is ever turned into its tables."""
    global _spares_pandas
    _spares_pandas = "pandas" not in sys.modules


def _ask_without_pandas() -> None:
    """Have pyarrow ask for pandas, which it does once, while there is one that it takes for too old.

    To make any array it asks whether that is one of pandas', and imports it to ask: most of what a command takes to start.
    """
    old: Any = ModuleType("pandas")
    old.__version__, old.api = "0.0", ModuleType("pandas.api")
    sys.modules.update({"pandas": old, "pandas.api": old.api})
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import_module("pyarrow").array([0])
    finally:
        del sys.modules["pandas"], sys.modules["pandas.api"]


def value_text(value: Any) -> str:
    """A value as a category: the same whichever type its neighbours gave it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT:
        return str(int(value))
    return str(value)


def is_number(text: str) -> bool:
    """Whether a text spells a number, be it infinite or NaN."""
    return NUMBER.fullmatch(text) is not None


def array_of(values: list[Any]) -> Any:
    """An array of one type; of text where types are mixed, in which ``came_as_numbers`` still knows what were numbers.

    >>> array_of([1.001, "1.001", None]).to_pylist(), came_as_numbers(array_of([1.001, "1.001", None]))
    (['1.001', '1.001', None], array([1.001,   nan,   nan]))
    """
    pa = arrow()
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float} and all(abs(value) < EXACT for value in values if type(value) is int):
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    if len(kinds) < 2 and (kinds != {int} or all(-(2**63) <= value < 2**63 for value in values if value is not None)):
        return pa.array(values)
    spelled = [
        None if value is None or (isinstance(value, float) and value != value) else value_text(value) for value in values
    ]
    if not kinds & {int, float}:
        return pa.array(spelled, pa.string())
    keys = [None if text is None else (type(value) in (int, float), text) for value, text in zip(values, spelled, strict=True)]
    entries = sorted(dict.fromkeys(key for key in keys if key is not None), reverse=True)  # those of numbers come first
    first = sum(is_one for is_one, _ in entries)
    dictionary = [text for _, text in entries[:first]] + [None] + [text for _, text in entries[first:]]
    places = {key: place + (place >= first) for place, key in enumerate(entries)}
    indices = pa.array([None if key is None else places[key] for key in keys], pa.int32())
    return pa.DictionaryArray.from_arrays(indices, pa.array(dictionary, pa.string()), ordered=True)


def came_as_numbers(values: Any) -> Vector | None:
    """Of text that ``array_of`` made of mixed values, what came as numbers, and NaN elsewhere; None of other columns.

    Who writes 1.001 for a thousand and one in text means by the number 1.001 what all do: the text alone does not say it. Such
    a column is a dictionary, with the texts of numbers before its null.
    """
    if not (arrow().types.is_dictionary(values.type) and values.type.ordered and values.dictionary.null_count == 1):
        return None
    entries = values.dictionary.to_pylist()
    spelled = entries[: entries.index(None)]
    if not all(isinstance(text, str) and is_number(text) for text in spelled):
        return None  # somebody else's
    floats = np.full(len(entries) + 1, np.nan)  # the last for what is missing
    floats[: len(spelled)] = [float(text) for text in spelled]
    return np.asarray(floats[values.indices.fill_null(len(entries)).to_numpy(zero_copy_only=False)])


def as_it_came(value: Any) -> Any:
    """A column of one value, as it is where no others stand beside it."""
    came = came_as_numbers(value)
    return value if came is None or came[0] != came[0] else arrow().array(came)


def plain(values: Any) -> Any:
    """The array without a dictionary, and text in one of its types."""
    pa, types = arrow(), arrow().types
    if types.is_dictionary(values.type):  # pyarrow decodes no dictionary of views, as polars' categories are
        values = pa.DictionaryArray.from_arrays(values.indices, plain(values.dictionary)).dictionary_decode()
    other_text = types.is_large_string(values.type) or (hasattr(types, "is_string_view") and types.is_string_view(values.type))
    return values.cast(pa.string()) if other_text else values


def stored(values: Any) -> Any:
    """The array without what wraps its values: an extension type, or runs of one value; durations as numbers of seconds."""
    pa, compute = arrow(), arrow("compute")
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if pa.types.is_run_end_encoded(values.type):
        values = compute.run_end_decode(values)
    if pa.types.is_duration(values.type):
        values = compute.divide(values.cast(pa.int64()).cast(pa.float64(), safe=False), A_SECOND[values.type.unit])
    return values


def is_usable(values: Any) -> bool:
    """Whether a column holds what can become numbers: no lists, bytes or times of day."""
    types, kind = arrow().types, plain(values).type
    usable = (types.is_null, types.is_boolean, types.is_date, types.is_timestamp, types.is_string)
    return is_numeric_type(kind) or any(is_one(kind) for is_one in usable)


def is_text(values: Any) -> bool:
    """Whether a plain array holds text."""
    return bool(arrow().types.is_string(values.type))


def is_numeric(values: Any) -> bool:
    """Whether a plain array holds numbers."""
    return is_numeric_type(values.type)


def is_numeric_type(kind: Any) -> bool:
    """Whether an Arrow type is one of numbers."""
    types = arrow().types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def is_missing(values: Any) -> NDArray[np.bool_]:
    """Where a column has no value: null, NaN, or text that says so."""
    values = plain(values)
    if is_text(values):
        values = _without_missing(values)
    return np.asarray(arrow("compute").is_null(values, nan_is_null=True).to_numpy(zero_copy_only=False))


def texts(values: Any) -> Any:
    """The column as an array of text, spelled the same whatever type a block gave it; null where there is no value."""
    pa = arrow()
    values = plain(values)
    if is_text(values):
        return values
    if pa.types.is_floating(values.type):
        there = (None if value is None or value != value else value for value in values.to_pylist())
        return pa.array([None if value is None else value_text(value) for value in there], pa.string())
    return values.cast(pa.string())


def numbers(values: Any) -> tuple[Vector, NDArray[np.bool_]]:
    """The column as floats, NaN where missing, and where it has values that are no finite numbers."""
    values = plain(values)
    if not is_numeric(values):
        values = texts(values)
    try:
        floats = _floats(_without_missing(values) if is_text(values) else values)
    except arrow().ArrowInvalid:
        floats, bad = _one_by_one(values)
    else:
        bad = np.zeros(len(floats), dtype=bool)
    return floats, bad | np.isinf(floats)


class Names(NamedTuple):
    """The different names in a column, and which of them each row has; −1 where missing."""

    different: list[str]
    rows: NDArray[np.int64]

    @staticmethod
    def of(texts: Any) -> Names:
        """The names in an array of text."""
        encoded = texts.dictionary_encode()
        rows = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return Names(encoded.dictionary.to_pylist(), rows.astype(np.int64))

    def met(self) -> Iterator[tuple[int, int]]:
        """The row in which each name is met first, and the name's number; in the order of rows."""
        numbers, first = np.unique(self.rows, return_index=True)
        for row, number in sorted(zip(first.tolist(), numbers.tolist(), strict=True)):
            if number >= 0:
                yield row, number


def _floats(values: Any) -> Vector:
    return np.asarray(values.cast(arrow().float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)


def _without_missing(values: Any) -> Any:
    pa, compute = arrow(), arrow("compute")
    values = compute.utf8_trim_whitespace(values)
    missing = compute.is_in(values, value_set=pa.array(sorted(MISSING)))
    return compute.if_else(missing, pa.scalar(None, pa.string()), values)


def _one_by_one(values: Any) -> tuple[Vector, NDArray[np.bool_]]:
    floats, bad = np.full(len(values), np.nan), np.zeros(len(values), dtype=bool)
    for i, text in enumerate(_without_missing(values).to_pylist()):
        if text is not None:
            bad[i] = not is_number(text)
            floats[i] = np.nan if bad[i] else float(text)
    return floats, bad
