"""The same rows give the same features, whatever the batches, the formats and the interruptions."""

from __future__ import annotations

import csv
import io
import json
import math
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.batches import batch
from hypothesis import example, given
from hypothesis import strategies as st

from onlinevi import datasets
from onlinevi.data import open_stream
from onlinevi.data.schema.encoder import encode, encode_one
from onlinevi.data.schema.look import first_look
from onlinevi.data.schema.schema import Columns, Schema
from onlinevi.data.schema.spelling import bucket
from onlinevi.data.schema.task import MOST_CLASSES, Task, guess_task
from onlinevi.data.schema.times import TIME_PARTS, instants, parts
from onlinevi.data.sources import BadInput, Refused
from onlinevi.data.stream import Batch
from onlinevi.data.values import arrow, numbers

pa = pytest.importorskip("pyarrow")


def as_stdin(patch: pytest.MonkeyPatch, rows: list[dict[str, Any]], kind: str) -> None:
    file = io.StringIO()
    if kind == "csv":
        names = list(dict.fromkeys(name for row in rows for name in row))
        table = [["" if row.get(name) is None else str(row[name]) for name in names] for row in rows]
        csv.writer(file).writerows([names, *table])
    else:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(file.getvalue().encode())))


def run(
    rows: list[dict[str, Any]], how: Columns, *, kind: str = "ndjson", chunk: int = 1 << 20, size: int = 8192, look: int = 3
) -> tuple[Schema, np.ndarray, list[float], list[int], list[int], list[Refused]]:
    """All rows encoded, filled up with zeros to the final width; the schema goes through JSON between batches."""
    refused: list[Refused] = []
    matrices, labels, numbers, widths = [], [], [], []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("onlinevi.data.formats.base.CHUNK", chunk)
        as_stdin(patch, rows, kind)
        stream = open_stream("-", format=kind, batch_rows=size)
        schema = how.learn(stream.peek(look), "y", Task("numbers"))
        stream.numbers |= schema.numbers
        for part in stream:
            schema, encoded = encode(schema, part, refused.append)
            assert encoded.X.shape == (len(encoded.rows), schema.width)
            copy = Schema.from_json(schema.to_json())
            assert copy == schema
            schema = copy
            matrices.append(encoded.X.toarray() if schema.sparse else encoded.X)
            assert encoded.y is not None
            labels += encoded.y.tolist()
            numbers += encoded.rows.tolist()
            widths += encoded.widths.tolist()
    X = np.zeros((len(numbers), schema.width))
    start = 0
    for matrix in matrices:
        X[start : start + len(matrix), : matrix.shape[1]] = matrix
        start += len(matrix)
    assert not any(X[row, width:].any() for row, width in enumerate(widths))
    return schema, X, labels, numbers, widths, refused


CELLS = st.one_of(
    st.none(),
    st.sampled_from(["a", "b", "c", "", "NA", "true", "7", " 1.5", "2024-02-29", "2024-02-29T12:30:00Z", "2023-02-29"]),
    st.integers(-3, 3),
    st.sampled_from([0.5, 1e300, float("inf")]),
    st.booleans(),
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {"y": st.sampled_from([0, 1.5, "2", None, "x"])}, optional={"p": CELLS, "q": CELLS, "r": CELLS, "s": st.integers(0, 9)}
    ),
    min_size=1,
    max_size=12,
)
HOW = st.builds(
    Columns,
    missing=st.sampled_from(["nan", "zero", "refuse"]),
    max_categories=st.integers(0, 3),
    buckets=st.integers(1, 3),
    hash_bits=st.sampled_from([None, None, 3]),
    sparse=st.booleans(),
)


LATE = [{"y": 1}, {"y": 1, "p": "NA"}, {"y": 1}, {"y": 1, "p": "NA"}, {"y": 1, "p": "a"}, {"y": 1, "p": "NA"}]


@example(rows=LATE, how=Columns(), kind="ndjson", chunk=1, size=1)
@example(rows=LATE, how=Columns(missing="refuse"), kind="ndjson", chunk=1, size=1)
@given(rows=ROWS, how=HOW, kind=st.sampled_from(["csv", "ndjson"]), chunk=st.integers(1, 200), size=st.integers(1, 5))
def test_features_do_not_depend_on_the_batches(
    rows: list[dict[str, Any]], how: Columns, kind: str, chunk: int, size: int
) -> None:
    want, got = run(rows, how, kind=kind), run(rows, how, kind=kind, chunk=chunk, size=size)
    assert got[0] == want[0]
    assert np.array_equal(got[1], want[1], equal_nan=True)
    assert got[2:] == want[2:]


NAMES = st.sampled_from(["a", "b", "c", "d", "é", "", None])


@given(rows=st.lists(st.tuples(NAMES, NAMES), min_size=1, max_size=20), most=st.integers(0, 4), size=st.integers(1, 20))
def test_names_become_features_in_the_order_they_are_met(rows: list[tuple[Any, Any]], most: int, size: int) -> None:
    how = Columns(max_categories=most, buckets=2, kinds={"p": "category", "q": "category"}, sparse=False)
    features: list[str] = []
    owners: dict[tuple[str, str], str] = {}
    hot = []
    for row in rows:
        hot.append(set())
        for column, text in zip("pq", row, strict=True):
            if not text:
                continue
            if (column, text) not in owners:
                own = sum(feature.startswith(f"{column}=") for feature in features) < most
                feature = f"{column}={text}" if own else f"{column}~{bucket(text, 2)}"
                owners[column, text] = feature
                features += [] if feature in features else [feature]
            hot[-1].add(owners[column, text])
    table = {"p": pa.array([p for p, _ in rows], pa.string()), "q": pa.array([q for _, q in rows], pa.string())}
    whole = Batch("here", np.arange(len(rows)), table)
    schema = how.learn([whole])
    seen = []
    for start in range(0, len(rows), size):
        schema, encoded = encode(schema, whole.slice(start, min(start + size, len(rows))))
        seen += [{schema.name(place) for place in np.flatnonzero(row)} for row in encoded.X]
    assert [schema.name(place) for place in range(schema.width)] == (features or ["no feature yet"])
    assert seen == hot


@given(text=st.one_of(st.text(st.sampled_from("0123456789+-.eEinfa_xN/ "), max_size=8), st.floats().map(repr)))
def test_a_number_is_read_the_same_on_every_path(text: str) -> None:
    fast, fast_bad = numbers(pa.array([text, "1"]))
    slow, slow_bad = numbers(pa.array([text, "no number"]))
    assert slow_bad[1]
    assert (fast_bad[0], repr(fast[0])) == (slow_bad[0], repr(slow[0]))
    try:
        want = math.nan if not text.strip() else float(text)
    except ValueError:
        want = math.nan
    if "_" not in text:
        assert repr(slow[0]) == repr(np.float64(want))
    with pytest.MonkeyPatch.context() as patch:
        as_stdin(patch, [{"a": 1, "b": text}, {"a": 2, "b": "1"}], "csv")
        stream = open_stream("-", format="csv")
        stream.numbers.add("b")
        found, bad = numbers(next(stream).columns["b"])
    assert (bad[0], repr(found[0])) == (fast_bad[0], repr(fast[0]))


ZONES = st.sampled_from([None, UTC, timezone(timedelta(hours=5, minutes=30)), timezone(-timedelta(hours=8))])


@given(when=st.datetimes(datetime(1900, 1, 2), datetime(2199, 12, 30)), zone=ZONES)
def test_times_are_their_parts(when: datetime, zone: timezone | None) -> None:
    utc = when if zone is None else when.replace(tzinfo=zone).astimezone(UTC).replace(tzinfo=None)
    text = when.replace(tzinfo=zone).isoformat()
    day_gone = (utc - datetime.combine(utc, datetime.min.time())) / timedelta(days=1)
    year_gone = (utc - datetime(utc.year, 1, 1)) / timedelta(days=365.2425)
    turns = [f(2 * math.pi * gone) for gone in (year_gone, day_gone) for f in (math.sin, math.cos)]
    want = [utc.year, utc.month, utc.weekday(), *turns[:2], utc.hour, *turns[2:]]
    for values in (pa.array([text, None]), pa.array([when.replace(tzinfo=zone), None])):
        found, bad = instants(values)
        assert not bad.any()
        read = np.array(parts(found, TIME_PARTS))
        assert read[:, 0] == pytest.approx(want, abs=1e-9)
        assert np.isnan(read[:, 1]).all()


def test_nanoseconds_are_times_too() -> None:
    """As pandas and polars write them; they are taken to the microsecond."""
    texts = ["2024-11-01 00:12:34.123456789", "2024-11-01 00:12:34.123456"]
    (one, other), bad = instants(pa.array(texts))
    assert not bad.any()
    assert one == other
    as_people_write, bad = instants(pa.array(["11/01/2024 00:12:34.123456789"]), day_first=False)
    assert not bad.any()
    assert as_people_write[0] == one


@pytest.mark.parametrize(
    "text", ["2023-02-29", "2024-13-01", "20240101", "2024-01-01T25:00", "soon", "2024-01-01T10:00+99:99"]
)
def test_what_is_no_time_is_marked(text: str) -> None:
    assert instants(pa.array([text, "2024-01-01", None]))[1].tolist() == [True, False, False]


def test_formats_give_the_same_features(tmp_path: Path) -> None:
    from pyarrow import parquet

    when = [datetime(2024, 2, 29, 12, tzinfo=UTC), None, datetime(2023, 1, 1, tzinfo=UTC)]
    typed = {"x": [1.0, 2.5, None], "flag": [True, False, None], "city": ["b", "a", None], "when": when, "id": [7, 8, 9]}
    spelled = {**typed, "when": [stamp and stamp.isoformat() for stamp in when], "flag": ["true", "False", ""]}
    rows = [dict(zip(spelled, values, strict=True)) for values in zip(*spelled.values(), strict=True)]
    parquet.write_table(pa.table(typed), tmp_path / "t.parquet")
    (tmp_path / "t.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with (tmp_path / "t.csv").open("w", newline="") as file:
        csv.writer(file).writerows([spelled, *[row.values() for row in rows]])
    found = {}
    for kind in ("parquet", "ndjson", "csv"):
        with open_stream(tmp_path / f"t.{kind}") as stream:
            schema = Columns(kinds={"id": "category"}).learn(stream.peek())
            schema, encoded = encode(schema, next(stream))
            found[kind] = [schema.name(place) for place in range(schema.width)], encoded.X
    names, X = found["parquet"]
    assert names == ["x", "flag", *(f"when.{part}" for part in TIME_PARTS), "city=b", "id=7", "city=a", "id=8", "id=9"]
    for other, matrix in found.values():
        assert other == names
        assert np.array_equal(matrix, X, equal_nan=True)
    assert X[:, 0].tolist()[:2] == [1.0, 2.5]
    assert X[:, 10:].tolist() == [[1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 1]]


def test_missing_values_are_told() -> None:
    rows = batch({"x": ["1", "n/a", "3"], "city": ["a", "b", ""]})
    for missing, want in (("nan", [1.0, math.nan, 3.0]), ("zero", [1.0, 0.0, 3.0])):
        how = Columns(missing=missing)
        _, encoded = encode(how.learn([rows]), rows)
        assert np.array_equal(encoded.X[:, 0], want, equal_nan=True)
        assert encoded.X[:, 1:].tolist() == [[1, 0], [0, 1], [0, 0]]
    refused: list[Refused] = []
    _, encoded = encode(Columns(missing="refuse").learn([rows]), rows, refused.append)
    assert encoded.rows.tolist() == [0]
    assert [tuple(row)[1:5] for row in refused] == [(1, "x", "a missing value", "n/a"), (2, "city", "a missing value", "")]


def test_a_cell_of_another_kind_is_a_bad_row() -> None:
    first, later = batch({"x": ["1", "2"]}), batch({"x": ["3", "six", "inf", "4"]}, first=2)
    schema = Columns().learn([first])
    with pytest.raises(BadInput, match="here, row 3, column 'x': needs a finite number; it reads 'six'") as caught:
        encode(schema, later)
    assert caught.value.refused is not None
    refused: list[Refused] = []
    _, encoded = encode(schema, later, refused.append)
    assert encoded.X.tolist() == [[3.0], [4.0]]
    assert [row.row for row in refused] == [3, 4]


@pytest.mark.parametrize(("usual", "kind"), [("1.5", "number"), ("2024-02-29", "date"), ("2024-02-29T12:00", "time")])
def test_a_few_odd_cells_do_not_make_names_of_numbers(usual: str, kind: str) -> None:
    cells = [usual] * 99 + ["12O"]
    schema = Columns().learn([batch({"x": cells[:40]}), batch({"x": cells[40:]}, first=40)])
    assert schema.kinds == {"x": kind}
    (seen,) = first_look(schema, [batch({"x": [*cells, "NA"]})])
    assert seen[:4] == ("x", kind, 1, 2)
    assert "1 of 100 cells is none, as '12O'" in seen.warnings[0]
    refused: list[Refused] = []
    encode(schema, batch({"x": cells}), refused.append)
    assert [(row.row, row.text) for row in refused] == [(99, "12O")]
    assert Columns().learn([batch({"x": [usual] * 97 + ["a", "b", "c"]})]).kinds == {"x": "category"}, "three are not few"
    assert Columns().learn([batch({"x": [usual, usual, "12O"]})]).kinds == {"x": "category"}


def test_a_block_of_typed_numbers_beside_one_with_an_odd_cell_is_the_same_column() -> None:
    typed, mixed = batch({"x": [1.0] * 60}), batch({"x": ["2"] * 39 + ["?!"]}, first=60)
    assert Columns().learn([typed, mixed]).kinds == {"x": "number"}


def test_hashing_is_the_same_everywhere() -> None:
    assert [bucket(text, 1 << 18) for text in ("city=Paris", "city=Köln", "")] == [169074, 125851, 42724]


def test_hashed_names_have_a_width_from_the_start() -> None:
    rows = batch({"city": ["a", "b", "a", None], "x": [1.0, 2.0, 3.0, 4.0]})
    schema = Columns(hash_bits=4).learn([rows])
    assert schema.width == 17
    grown, encoded = encode(schema, rows)
    assert grown == schema
    want = np.zeros((4, 17))
    want[:, 16] = [1, 2, 3, 4]
    for row, text in enumerate("aba"):
        want[row, bucket(f"city={text}", 16)] = 1
    assert encoded.X.toarray().tolist() == want.tolist()


def test_many_names_make_a_sparse_matrix() -> None:
    for count, sparse in ((100, False), (300, True)):
        rows = batch({"name": [f"n{i % count}" for i in range(2 * count)]})
        schema, encoded = encode(Columns().learn([rows]), rows)
        assert schema.sparse is sparse
        assert encoded.X.shape == (2 * count, min(count, 100) + (32 if sparse else 0))


def test_names_that_come_once_have_no_feature() -> None:
    ids = [f"n{i}" for i in range(300)]
    rows = batch({"id": [*ids[:-1], None], "x": list(map(str, range(300)))})
    schema, encoded = encode(Columns(missing="refuse").learn([rows]), rows)
    assert (schema.kinds, schema.sparse) == ({"id": "id", "x": "number"}, False)
    assert encoded.X.tolist() == [[float(i)] for i in range(300)], "a missing one is none to refuse"
    (told,) = first_look(schema, [rows])[0].warnings
    assert told == (
        "id has a name of its own in nearly every row, as an id has, and is left out: --kinds id=text counts its words, "
        "id=category takes it for names"
    )
    assert Schema.from_json(schema.to_json()).kinds == schema.kinds
    for how in (Columns(kinds={"id": "category"}), Columns(keep=("id",)), Columns(hash_bits=4), Columns(max_categories=300)):
        assert how.learn([rows]).kinds["id"] == "category", "asked for"
    again = batch({"id": ids[:150] * 2})
    assert Columns().learn([again]).kinds == {"id": "category"}
    assert Columns().learn([batch({"id": ids[:100]})]).kinds == {"id": "category"}, "each may have a feature"


def test_a_sparse_file_keeps_its_indices() -> None:
    if not datasets.status("a9a").available:
        pytest.skip("a9a is not on this machine")
    known = datasets.load("a9a")
    with open_stream(str(datasets.path("a9a")), format="libsvm") as stream:
        schema = Columns().learn(stream.peek(), target="label")
        assert schema.task == Task("classes", ("-1", "1"), "two classes: '-1' is −1, '1' is +1")
        start = 0
        for part in stream:
            schema, encoded = encode(schema, part)
            stop = start + len(encoded.rows)
            assert (encoded.X[:, 1:] != known.X[start:stop, : schema.width - 1]).nnz == 0
            assert np.array_equal(encoded.y, known.y[start:stop])
            start = stop
    assert (start, schema.width) == (32561, 124)


@pytest.mark.parametrize(
    ("values", "kind", "names"),
    [
        (["0", "1", "1"], "classes", ("0", "1")),
        (["1.0", "1", "0"], "classes", ("0", "1")),
        ([1, -1], "classes", ("-1", "1")),
        ([1.0, 2.0], "classes", ("1", "2")),
        (["yes", "no"], "classes", ("no", "yes")),
        ([True, False], "classes", ("false", "true")),
        (["spam", "ham", None, "eggs"], "classes", ("eggs", "ham", "spam")),
        (["1", "2", "x"], "classes", ("1", "2", "x")),
        (["1.5", "2.5"], "numbers", ()),
        ([1, 2, 3], "numbers", ()),
        ([-1, 0, 1], "numbers", ()),
        ([0, 1, 101], "numbers", ()),
        ([0, 1, 100], "counts", ()),
        (["NA", "3.7"], "numbers", ()),
    ],
)
def test_the_task_is_guessed_and_said(values: list[Any], kind: str, names: tuple[str, ...]) -> None:
    task = guess_task([pa.array(values[:1]), pa.array(values[1:])])
    assert (task.kind, task.names) == (kind, names)
    assert kind in task.why
    assert all(name in task.why for name in names)


@pytest.mark.parametrize("values", [["spam", None], [1, 1], ["0.0", "NA"]])
def test_one_value_may_be_the_first_of_two_classes(values: list[Any]) -> None:
    task = guess_task([pa.array(values)])
    assert len(task.names) == 1
    grown, labels, reasons = task.encode(pa.array([*task.names, "other", "third"]))
    assert grown.names == (*task.names, "other")
    assert labels.tolist()[:2] == [-1.0, 1.0]
    assert list(reasons) == [2]


@pytest.mark.parametrize("values", [[7, 7], [None], ["NA", ""]])
def test_one_value_is_no_task(values: list[Any]) -> None:
    with pytest.raises(ValueError, match="the target"):
        guess_task([pa.array(values, pa.string() if values == [None] else None)])


def test_codes_are_told_to_be_classes() -> None:
    task = guess_task([pa.array([3, 1, 2]), pa.array([10.0, 1.0])], classes=True)
    assert (task.kind, task.names) == ("classes", ("1", "2", "3", "10"))


def test_classes_join_up_to_a_number() -> None:
    names = [f"c{k}" for k in range(MOST_CLASSES + 2)]
    task, labels, reasons = Task("classes", tuple(names[:3])).encode(pa.array(names[::-1][:1] + names))
    assert (task.names[3], len(task.names)) == (names[-1], MOST_CLASSES)
    assert labels.tolist()[:4] == [3.0, 0.0, 1.0, 2.0]
    assert reasons == dict.fromkeys((MOST_CLASSES, MOST_CLASSES + 1), f"the label is a class beyond the first {MOST_CLASSES}")


def test_labels_are_coded() -> None:
    two = Task("classes", ("no", "yes"))
    task, labels, reasons = two.encode(pa.array(["yes", "no ", "maybe", None, "NA"]))
    assert task == two
    assert labels.tolist()[:2] == [1.0, -1.0]
    missing = "the label is missing"
    assert reasons == {2: "the label is neither 'no' nor 'yes': name all classes, by --classes", 3: missing, 4: missing}
    task, labels, reasons = Task("classes", ("a", "b", "none")).encode(pa.array(["b", "none", "z", "a", "", "z"]))
    assert task.names == ("a", "b", "none", "z")
    assert labels.tolist()[:4] == [1.0, 2.0, 3.0, 0.0]
    assert reasons == {4: missing}
    _, labels, reasons = Task("counts").encode(pa.array(["3", "0", "-1", "1.5", "inf", "?"]))
    assert labels.tolist()[:2] == [3.0, 0.0]
    assert set(reasons) == {2, 3, 4, 5}
    assert set(Task("numbers").encode(pa.array([1.0, math.inf, None, math.nan]))[2]) == {1, 2, 3}


def test_rows_to_predict_need_no_label() -> None:
    seen = batch({"x": [1.0, 2.0], "y": ["a", "b"]})
    schema = Columns().learn([seen], target="y")
    new = batch({"x": [3.0]})
    assert encode(schema, new, labels=False)[1].X.tolist() == [[3.0]]
    with pytest.raises(BadInput, match="column 'y': the label is missing"):
        encode(schema, new)


def test_columns_are_chosen_by_name() -> None:
    rows = batch({"a": [1], "b": [2], "c": [3], "y": [0.5]})
    assert list(Columns(drop=("b",)).learn([rows], target="y").kinds) == ["a", "c"]
    assert list(Columns(keep=("b",)).learn([rows], target="y").kinds) == ["b"]
    with pytest.raises(ValueError, match="no column is called 'z': the first rows have 'a', 'b', 'c', 'y'"):
        Columns().learn([rows], target="z")
    with pytest.raises(BadInput, match="column 'tags' holds list"):
        Columns().learn([batch({"tags": [[1, 2]]})])
    with pytest.raises(ValueError, match="the stream is empty"):
        Columns().learn([])
    for wrong in ({"missing": "mean"}, {"kinds": {"a": "colour"}}, {"buckets": 0}, {"hash_bits": 40}):
        with pytest.raises(ValueError, match="need"):
            Columns(**wrong)  # type: ignore[arg-type]
    for kind, names in (("colours", ()), ("classes", ()), ("numbers", ("a", "b")), ("classes", ("a", "a"))):
        with pytest.raises(ValueError, match="need"):
            Task(kind, names)  # type: ignore[arg-type]


def test_pyarrow_chooses_between_slices_of_strings() -> None:
    """Before version 24 it took the characters of the wrong rows (apache/arrow#41479), in silence."""
    rng = np.random.default_rng(0)
    names = [f"town-{number}" * (number % 4) for number in rng.integers(0, 1000, 30_000)]
    wanted = (rng.random(30_000) < 0.5).tolist()
    for start in (0, 1, 63, 64, 8191, 20_000):
        strings, mask = arrow().array(names).slice(start, 5000), arrow().array(wanted).slice(start, 5000)
        chosen = arrow("compute").if_else(mask, strings, arrow().scalar("other")).to_pylist()
        piece = slice(start, start + 5000)
        assert chosen == [name if own else "other" for name, own in zip(names[piece], wanted[piece], strict=True)]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([b"a"]),
        pa.array([1], pa.duration("s")),
        pa.array([1], pa.time32("s")),
        pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
        pa.array([[1]]),
    ],
    ids=lambda values: str(values.type),
)
def test_a_type_without_a_kind_is_refused_wherever_it_comes(values: pa.Array) -> None:
    good = Batch("t", np.array([0, 1]), {"a": pa.array([1.0, 2.0]), "y": pa.array(["no", "yes"])})
    for name in ("a", "y"):
        bad = Batch("t", np.array([2]), {"a": pa.array([1.0]), "y": pa.array(["no"])} | {name: values})
        with pytest.raises(BadInput, match=f"column '{name}' holds .*: needs numbers, text.* --drop {name}"):
            Columns().learn([bad], target="y")
        with pytest.raises(BadInput, match=f"column '{name}' holds"):
            encode(Columns().learn([good], target="y"), bad)
    dropped = Batch("t", np.array([0, 1]), {**good.columns, "odd": pa.array([values[0], values[0]], values.type)})
    assert Columns(drop=("odd",)).learn([dropped], target="y").kinds == {"a": "number"}


def test_wrapped_columns_are_what_they_hold(tmp_path: Path) -> None:
    flags = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0], pa.int8()))
    table = pa.table({"flag": flags, "y": ["no", "yes"]})
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    with open_stream(tmp_path / "t.parquet") as stream:
        assert Columns().learn(stream.peek(), target="y").kinds == {"flag": "number"}


ONE_ROW: list[tuple[dict[str, Any], bool]] = [
    ({"a": 0.5, "b": "u"}, True),
    ({"b": "v", "a": -3}, True),
    ({"a": None, "b": "u"}, True),
    ({"b": None, "a": 1e15}, True),
    ({"a": 2.0}, True),
    ({"b": "u", "w": 2.0}, True),
    ({"a": "0.5", "b": "u"}, False),
    ({"a": "x", "b": "u"}, False),
    ({"a": True, "b": "u"}, False),
    ({"a": math.inf, "b": "u"}, False),
    ({"a": 1 << 60, "b": "u"}, False),
    ({"a": 1e300, "b": "u"}, False),
    ({"a": 1.0, "b": "never met"}, False),
    ({"a": 1.0, "b": " "}, False),
    ({"a": 1.0, "b": 7}, False),
    ({"a": 1.0, "c": "who knows"}, False),
    ({"c": 1.0}, False),
    ({}, False),
]
"""Rows, and whether they are read at once."""


@pytest.mark.parametrize("missing", ["nan", "zero", "refuse"])
@pytest.mark.parametrize(("row", "at_once"), ONE_ROW, ids=str)
def test_one_row_is_read_as_many_are(row: dict[str, Any], at_once: bool, missing: Any) -> None:
    """Or not at all: then it is for the way that many go."""
    first = batch({"a": [k / 7 for k in range(20)], "b": ["u", "v"] * 10, "w": [1.0] * 20, "y": list(range(20))})
    schema = Columns(missing=missing, weight="w").learn([first], "y", Task("numbers"))
    schema, _ = encode(schema, first)
    found = encode_one(schema, row)
    assert (found is not None) == (at_once and missing != "refuse")
    if found is not None:
        whole = encode(schema, batch({name: [value] for name, value in row.items()}), labels=False)[1].X
        assert found.tobytes() == whole.tobytes()
        assert found.flags == whole.flags
