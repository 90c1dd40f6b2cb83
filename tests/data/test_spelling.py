"""Numbers, dates and words as people write them, and what the first look says of columns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers.batches import batch

from onlinevi.data.schema.encoder import encode
from onlinevi.data.schema.kinds import KINDS, Cells, cells
from onlinevi.data.schema.look import first_look
from onlinevi.data.schema.schema import Columns, Schema
from onlinevi.data.schema.spelling import bucket
from onlinevi.data.schema.task import Task
from onlinevi.data.sources import Refused
from onlinevi.data.values import array_of

pytest.importorskip("pyarrow")


@pytest.mark.parametrize(
    ("values", "kind", "want"),
    [
        (["$14,524.84", "-3", "€ 7"], "amount", [14524.84, -3.0, 7.0]),
        (["77%", "5.5 %"], "amount", [77.0, 5.5]),
        (["0,5", "1.234,25", "-2", "1 000 000,5 €"], "decimal-comma", [0.5, 1234.25, -2.0, 1000000.5]),
        (["1,5", "2,5.5"], "category", None),
        (["1.2", "3,4"], "category", None),
        (["01.02.2023", "03.04.2023"], "day-first", [2023.0, 2023.0]),
        (["13/02/2023", "03/04/2023"], "day-first", [2023.0, 2023.0]),
        (["02/13/2023", "03/04/2023"], "month-first", [2023.0, 2023.0]),
        (["01/02/2023", "03/04/2023"], "category", None),
        (["13/02/2023", "02/13/2023"], "category", None),
        (["01.02.2023 14:05", "03.04.2023"], "day-first-time", [2023.0, 2023.0]),
        (["13/02/2023 9:30", "03/04/2023 14:05:09.5"], "day-first-time", [2023.0, 2023.0]),
        (["02/13/2023 02:05 PM", "03/04/2023, 12:00am"], "month-first-time", [2023.0, 2023.0]),
        (["01/02/2023 14:05", "03/04/2023 14:05"], "category", None),
    ],
)
def test_common_ways_to_write_are_read(values: list[str], kind: str, want: list[float] | None) -> None:
    rows = batch({"x": values})
    schema = Columns().learn([rows])
    assert schema.kinds == {"x": kind}
    if want is not None:
        _, encoded = encode(schema, rows)
        assert encoded.X[:, 0].tolist() == want
        refused: list[Refused] = []
        encode(schema, batch({"x": ["NA", "soon"]}), refused.append)
        assert [row.row for row in refused] == [1]


def test_days_and_months_are_what_they_are() -> None:
    rows = batch({"d": ["13.02.2023", "01.03.2023"], "m": ["02/13/2023", "03/01/2023"]})
    schema, encoded = encode(Columns().learn([rows]), rows)
    place = [schema.name(place) for place in range(schema.width)].index
    assert encoded.X[:, place("d.month")].tolist() == encoded.X[:, place("m.month")].tolist() == [2.0, 3.0]


def test_times_are_those_of_their_plain_form() -> None:
    pairs = {
        "31.01.2023 14:05": "2023-01-31T14:05",
        "01.02.2023 09:30:15.25": "2023-02-01T09:30:15.25",
        "2.3.2023T0:00": "2023-03-02",
    }
    rows = batch({"x": list(pairs)}), batch({"x": list(pairs.values())})
    written, plain = (encode(Columns().learn([one]), one) for one in rows)
    assert (written[0].kinds, plain[0].kinds) == ({"x": "day-first-time"}, {"x": "time"})
    np.testing.assert_array_equal(written[1].X, plain[1].X)
    american = batch({"x": ["01/31/2023 02:05 PM", "01/31/2023 12:30:00 am", "1/31/2023 12:00 PM"]})
    schema, encoded = encode(Columns(kinds={"x": "time"}).learn([american]), american)
    assert schema.kinds == {"x": "month-first-time"}
    place = [schema.name(place) for place in range(schema.width)].index
    assert encoded.X[:, place("x.hour")].tolist() == [14.0, 0.0, 12.0]
    refused: list[Refused] = []
    encode(schema, batch({"x": ["01/31/2023 13:05 PM", "01/31/2023 25:00", "02/30/2023 1:00 PM"]}), refused.append)
    assert [row.reason for row in refused] == ["needs a time such as 02/29/2024 12:00"] * 3
    (told,) = first_look(Columns().learn([rows[0]]), [rows[0]])[0].warnings
    assert told == "x is read as dates, days first: '31.01.2023 14:05'"


def test_what_is_told_is_read_as_it_is_written() -> None:
    rows = batch({"x": ["1,234", "5,678"], "y": ["1.234", "2.5"]})
    assert Columns(kinds={"x": "number"}).learn([rows]).kinds == {"x": "amount", "y": "number"}
    told = Columns(decimal=",", keep=("x",)).learn([rows])
    assert encode(told, rows)[1].X.tolist() == [[1.234], [5.678]]
    assert Columns(decimal=".", keep=("x",)).learn([batch({"x": ["1,5"]})]).kinds == {"x": "category"}
    with pytest.raises(ValueError, match="needs a point or a comma"):
        Columns(decimal=";")  # type: ignore[arg-type]


def test_labels_are_read_as_they_are_written() -> None:
    rows = batch({"x": [1, 2, 3], "y": ["1,5", "2,5", "?"]})
    for task in (None, Task("numbers")):
        refused: list[Refused] = []
        schema = Columns().learn([rows], "y", task)
        assert (schema.task.kind, schema.numbers) == ("numbers", {"x"})  # type: ignore[union-attr]
        assert Schema.from_json(schema.to_json()) == schema
        assert encode(schema, rows, refused.append)[1].y.tolist() == [1.5, 2.5]  # type: ignore[union-attr]
        assert [row.reason for row in refused] == ["the label is missing"]


def test_words_of_a_text_are_counted() -> None:
    rows = batch({"note": ["good good flat", None, "Flat"]})
    schema, encoded = encode(Columns(kinds={"note": "text"}).learn([rows]), rows)
    assert schema.width == 32
    assert encoded.X.sum(axis=1).tolist() == [3.0, 0.0, 1.0]
    assert encoded.X[0, bucket("good", 32)] == 2.0
    assert (encoded.X[2] <= encoded.X[0]).all()


def test_the_first_look_warns() -> None:
    rng = np.random.default_rng(0)
    columns = {
        "key": [f"u{t}" for t in range(60)],
        "number": list(range(60)),
        "note": [f"the flat number {t}" for t in range(60)],
        "same": ["k"] * 60,
        "money": [f"${t},000" for t in range(1, 61)],
        "share": [f"{t}%" for t in range(60)],
        "comma": [f"{t},5" for t in range(60)],
        "when": [f"{t % 12 + 1}/{t % 5 + 1}/2023" for t in range(60)],
        "fine": rng.standard_normal(60).tolist(),
        "infinite": [np.inf] * 30 + [-np.inf, np.inf] * 15,
        "town": rng.choice(["a", "b", None], 60).tolist(),
        "y": ["no"] * 30 + ["yes"] * 30,
    }
    rows = batch(columns)
    seen = {column.name: column for column in first_look(Columns().learn([rows], "y"), [rows])}
    expected = {
        "key": "as an id has: --drop key",
        "number": "goes up by 1 from row to row",
        "note": "--kinds note=text counts its words",
        "same": "is 'k' in all rows",
        "money": "with commas between thousands: '$1,000'",
        "share": "in percent: '0%'",
        "comma": "a decimal comma: '0,5'",
        "infinite": "60 of 60 cells are none, as 'inf'",
        "when": "days or months first: --kinds when=day-first",
        "y": "labels are sorted in the first rows, 2 runs of 2 classes",
    }
    assert {name: column.warnings for name, column in seen.items() if name not in expected} == {"fine": (), "town": ()}
    assert all(text in seen[name].warnings[0] for name, text in expected.items())
    assert (seen["town"].missing, seen["town"].distinct) == (columns["town"].count(None), 2)
    assert seen["y"].kind == "classes"


NUMBERS = [1, -3, 1.5, 1.001, -1234.5, 1e20, 1e-7, 20200101, 1577836800.5, 2**53, 2**53 + 1, 10**20, 5e-324, -0.0]
TEXTS = [
    "1",
    "1.5",
    "1,5",
    "1.001",
    "14.524,84",
    "$3.5",
    "2020-01-01",
    "01.02.2020",
    "10:30",
    "x",
    "",
    "nan",
    "inf",
    "1e5",
    "yes",
]
OTHERS = [True, False, None, float("nan"), float("inf")]


@pytest.mark.parametrize("kind", KINDS)
def test_a_cell_is_what_it_is_alone_whatever_its_neighbours(kind: str) -> None:
    """JSON has numbers beside texts, and how many rows come together is nobody's business: 1.001 stays what it is where others
    write 1,5, and "1.001" a thousand and one."""

    def known(read: Cells) -> list[tuple[object, ...]]:
        names = [None] * len(read.missing) if read.names is None else read.names.to_pylist()
        usable = ~(read.missing | read.bad)
        parts = [np.where(usable, part, np.nan).tolist() for part in read.parts]
        return [*map(repr, zip(read.missing.tolist(), read.bad.tolist(), names, *parts, strict=True))]

    for values in (
        NUMBERS + TEXTS + OTHERS,
        NUMBERS + OTHERS,
        NUMBERS[2:7],
        TEXTS + OTHERS,
        [1.5, True],
        [1.5, 2**53],
        [1, "1,5"],
    ):
        alone = [own for value in values for own in known(cells(kind, array_of([value])))]  # type: ignore[arg-type]
        assert known(cells(kind, array_of(values))) == alone  # type: ignore[arg-type]
        assert known(cells(kind, array_of(values).slice(1))) == alone[1:]  # type: ignore[arg-type]


@pytest.mark.parametrize("first", [20200101, 1.5, 2**70])
def test_what_a_column_that_joins_holds_is_told_by_its_first_value_alone(first: float) -> None:
    """Whatever stands below it in the same batch: 20200101 is a number, and "20200101" a day."""
    schema = Columns(decimal=",").learn([batch({"b": [1.0, 2.0]})])
    for others in ([], [2], ["yes"], ["1,5", True]):
        values = [None, first, *others]
        grown, _ = encode(
            schema, replace(batch({"b": [1.0] * len(values)}), columns={"a": array_of(values)}), bad=lambda _: None
        )
        assert grown.kinds["a"] == "number"
