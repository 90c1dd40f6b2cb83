"""Tables of every kind are read as the numbers they hold."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.catalogue import stream

import onlinevi as ovi

X, Y = stream(ovi.Hinge(), count=300, dim=3)
NAMES = ["a", "b", "c"]


def table(kind: str):  # type: ignore[no-untyped-def]
    library = pytest.importorskip(kind)
    columns = dict(zip(NAMES, X.T, strict=True))
    return library.table(columns) if kind == "pyarrow" else library.DataFrame(columns)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_tables_give_the_same_bits_as_their_numbers(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onlinevi.data.rows.BLOCK_VALUES", 100)
    labels = table(kind)["a"].to_numpy() * 0 + Y
    want = ovi.learn(X, Y, loss=ovi.Hinge(), rule=ovi.SVB()).state
    assert ovi.learn(table(kind), labels, loss=ovi.Hinge(), rule=ovi.SVB()).state == want


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_labels_may_be_a_column(kind: str) -> None:
    column = table(kind)["a"]
    want = ovi.learn(X, X[:, 0], loss=ovi.Squared(), rule=ovi.SVB()).state
    assert ovi.learn(X, column, loss=ovi.Squared(), rule=ovi.SVB()).state == want


def test_a_column_of_words_is_named() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [1.0, 2.0], "city": ["Paris", "Tokyo"]})
    with pytest.raises(TypeError, match="column 'city' is not numeric"):
        ovi.learn(frame, [1, -1], loss=ovi.Hinge(), rule=ovi.SVB())


def test_missing_values_in_a_table_are_bad_rows() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"a": [1.0, None, 3.0], "b": [1.0, 2.0, 3.0]})
    with pytest.raises(ovi.BadRow, match="row 1: feature 0 is nan"):
        ovi.learn(frame, [1, -1, 1], loss=ovi.Hinge(), rule=ovi.SVB())


def test_an_empty_table_is_an_empty_stream() -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="the stream is empty"):
        ovi.learn(pandas.DataFrame({"a": np.empty(0)}), [], loss=ovi.Hinge(), rule=ovi.SVB())
