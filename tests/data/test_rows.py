"""Tables of every kind are read as the numbers they hold."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.catalogue import stream

import onlinevi as ovi
from onlinevi.data import as_events, as_labels, as_rows

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


def test_events_are_rows_labels_and_weights_that_fit_each_other() -> None:
    rows, labels, weights = as_events(X, Y, np.arange(300), hint="use ±1", dim=3)
    assert np.array_equal(rows.block(0, 300), X)
    assert np.array_equal(labels, Y)
    assert np.array_equal(weights, np.arange(300.0))
    assert not len(as_events(X, Y, hint="use ±1").weights)
    assert as_events(rows, Y, hint="use ±1").rows is rows


def test_sparse_events_are_filled_where_asked() -> None:
    from scipy.sparse import csr_matrix

    sparse, filled = (as_events(csr_matrix(X), Y, hint="", filled=filled, dtype="float32").rows for filled in (False, True))
    assert sparse.sparse
    assert not filled.sparse
    assert np.array_equal(filled.block(0, 300), X.astype(np.float32))


@pytest.mark.parametrize(
    ("labels", "weights", "dim", "message"),
    [
        (Y[1:], None, 3, r"X has 300 rows, y 299 labels: needs one label a row"),
        (Y[:, None], None, 3, r"labels have shape \(300, 1\): needs one label a row; try y.ravel\(\)"),
        (Y, np.ones(299), 3, r"weights have shape \(299,\), X has 300 rows: give one weight a row"),
        (Y, None, 4, r"X has 3 features, the sums 4: every block needs the same columns"),
    ],
)
def test_events_that_do_not_fit_each_other_are_refused(labels: object, weights: object, dim: int, message: str) -> None:
    for given in (X, as_rows(X)):
        with pytest.raises(ValueError, match=message):
            as_events(given, labels, weights, hint="use ±1", dim=dim, holder="sums")


def test_labels_that_are_no_numbers_are_refused_with_the_hint() -> None:
    with pytest.raises(TypeError, match=r"labels hold <U3, such as .*yes.*: needs numbers; use ±1"):
        as_events(X, ["yes"] * 300, hint="use ±1")


def test_a_mask_hides_values() -> None:
    X = np.ma.array([[1.0, 99.0], [2.0, 3.0]], mask=[[False, True], [False, False]])
    assert np.array_equal(as_rows(X).block(0, 2), [[1.0, np.nan], [2.0, 3.0]], equal_nan=True)
    assert np.array_equal(as_rows(np.ma.array([[1, 2]], mask=[[0, 1]])).block(0, 1), [[1.0, np.nan]], equal_nan=True)
    assert np.array_equal(as_labels(np.ma.array([1.0, 2.0], mask=[False, True]), ""), [1.0, np.nan], equal_nan=True)
    with pytest.raises(ovi.BadRow, match="row 0: feature 1 is nan"):
        ovi.learn(X, [1.0, 2.0], loss=ovi.Squared(), rule=ovi.NGVI())


@pytest.mark.parametrize("kind", ["csr_matrix", "csr_array", "csc_matrix", "coo_matrix"])
@pytest.mark.parametrize("place", [-1, 3, 1 << 30])
def test_sparse_places_outside_of_the_matrix_are_refused(kind: str, place: int) -> None:
    from scipy import sparse

    matrix = getattr(sparse, kind)(np.eye(3))
    (matrix.col if kind == "coo_matrix" else matrix.indices)[1] = place
    with pytest.raises(ValueError, match="indices"):
        as_rows(matrix)


@pytest.mark.parametrize("starts", [[0, 1, 2, 99], [0, 3, 2, 3], [1, 1, 2, 3], [0, -1, 2, 3]])
def test_sparse_starts_outside_of_the_matrix_are_refused(starts: list[int]) -> None:
    from scipy.sparse import csr_matrix

    matrix = csr_matrix(np.eye(3))
    matrix.indptr[:] = starts
    with pytest.raises(ValueError, match="indptr needs 4 ascending places from 0 to at most 3"):
        as_rows(matrix)


def test_what_would_be_cast_to_numbers_is_refused() -> None:
    from scipy.sparse import csr_matrix

    pd = pytest.importorskip("pandas")
    times = pd.to_datetime(["2024-01-01", "2024-01-02"])
    for column in (times, times.tz_localize("UTC"), pd.to_timedelta([1, 2]), ["1", "2"], [1j, 2.0]):
        with pytest.raises(TypeError, match="column 'a' is not numeric"):
            as_rows(pd.DataFrame({"a": column}))
    for X in (np.array([[1j]]), np.array([["1"]]), csr_matrix(np.array([[1j]]))):
        with pytest.raises(TypeError, match=r"needs .*numbers"):
            as_rows(X)
    learner = ovi.Linear(ovi.Squared(), ovi.NGVI())
    for x in (["1", "2"], [1j, 2.0]):
        with pytest.raises(TypeError, match="needs real numbers"):
            learner.update(learner.init(2), x, 1.0)
        with pytest.raises(TypeError, match="needs real numbers"):
            learner.predict(learner.init(2), x)
    with pytest.raises(TypeError, match="weights hold <U1"):
        learner.update_many(learner.init(1), [[1.0]], [1.0], weights=["1"])
