"""JSON objects as rows: pyarrow's way is taken only where it gives what one object at a time gives."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlinevi.data.formats import ReadOptions, objects_piece
from onlinevi.data.formats.objects import MANY, _one_by_one, _parsed

pa = pytest.importorskip("pyarrow")

TEXTS = st.one_of(
    st.sampled_from(["2026-08-01", "2026-08-01 12:00:00", "12:00", "1e5", "", "nan", "é", "\u2028", "}", "{"]), st.text()
)
ONE_KIND = st.sampled_from(
    [
        st.integers(-9, 9),
        st.integers(),
        st.floats(),
        st.integers(-9, 9) | st.floats(),
        st.integers(2**53 - 2, 2**53 + 2) | st.floats(0, 1),
        st.booleans(),
        TEXTS,
        st.none(),
        TEXTS | st.integers(-9, 9),
        st.lists(st.integers(), max_size=2),
        st.dictionaries(st.sampled_from("xy"), st.integers(), max_size=2),
    ]
)
ROWS = st.dictionaries(st.sampled_from(["a", "b", "user.age", "long name", ""]), ONE_KIND, min_size=1, max_size=4).flatmap(
    lambda kinds: st.lists(
        st.fixed_dictionaries({}, optional={name: st.none() | kind for name, kind in kinds.items()}),
        min_size=MANY,
        max_size=MANY + 3,
    )
)


@settings(max_examples=60, deadline=None)
@given(rows=ROWS, indent=st.sampled_from([None, None, 1]), ascii_only=st.booleans())
def test_many_at_once_are_what_each_is_alone(rows: list[dict[str, Any]], indent: int | None, ascii_only: bool) -> None:
    """To the type, and in one order of columns."""
    messages = [json.dumps(row, indent=indent, ensure_ascii=ascii_only).encode(errors="surrogatepass") for row in rows]
    columns = _parsed(messages)
    if columns is None:
        return
    alone = _one_by_one(messages, "m", ReadOptions(), None)
    assert not alone.refused
    assert list(columns) == list(alone.columns)
    for name, values in columns.items():
        assert values.type == alone.columns[name].type
        assert str(values.to_pylist()) == str(alone.columns[name].to_pylist())  # NaN is like NaN


@pytest.mark.parametrize("column", ["n", "x", "date", "flag"])
def test_flat_rows_go_the_fast_way(column: str) -> None:
    row = {"n": 1, "x": 0.5, "date": "2026-08-01 12:00:00", "flag": True, "é": None}
    assert _parsed([json.dumps({column: row[column], "é": None}).encode()] * 3) is not None


FINE = [b'{"a": %d}' % k for k in range(MANY)]


@pytest.mark.parametrize(
    "odd",
    [
        [b'{"a": 1}{"a": 2}'],
        [b'{"a": {"b": 1}', b'{"c": 2}}'],
        [b'{"a": "}', b'{"a": "}'],
        [b'{"a": 1', b', "b": 2}'],
        [b'{"a": 1, "a": 2}'],
        [b'{"a": "\xff"}'],
        [b'{"a": "\\ud800"}'],
        [b""],
        [b"[1]"],
        [b'{"a": 1e999}'],
        [b'{"a": 18014398509481985.0, "b": 1}', b'{"a": 9007199254740993}'],
    ],
)
def test_what_does_not_fit_together_is_read_one_by_one(odd: list[bytes]) -> None:
    assert _parsed(FINE) is not None
    assert _parsed([*FINE, *odd]) is None
    piece = objects_piece([*FINE, *odd], "m", ReadOptions())
    assert piece.count == MANY + len(odd)
    assert piece.good.tolist()[:MANY] == list(range(MANY))
