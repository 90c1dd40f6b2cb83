"""A CSV file is cut into rows as its grammar says, wherever a block ends and whatever is quoted."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from helpers.file_rows import csv_text, read
from hypothesis import given
from hypothesis import strategies as st

from onlinevi.data import open_stream
from onlinevi.data.formats import csv as csv_files
from onlinevi.data.sources import BadInput, Skip

pytest.importorskip("pyarrow")

NASTY = (
    '\ufeff\r\nplain,"quo,ted",z\n1,"a,\nb",é\r\n\r\n\n2,"""x""",""\n "3",5" pipe,"tail"end\n,,\n'
    '"\r\n","\n\n","," \n4,5,日本\n6,7,last'
).encode()


@pytest.mark.parametrize("chunk", range(1, len(NASTY) + 1))
def test_a_csv_may_be_cut_anywhere(tmp_path: Path, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onlinevi.data.formats.base.CHUNK", chunk)
    path = tmp_path / "nasty.csv"
    path.write_bytes(NASTY)
    names, *rows = [row for row in csv.reader(io.StringIO(NASTY.decode("utf-8-sig"), newline="")) if row]
    numbers, columns = read(open_stream(path))
    assert numbers == list(range(len(rows)))
    assert columns == dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


TEXT = st.text(st.sampled_from("ab1 ,;|\t\"\n\r'é"), max_size=6).filter(lambda text: "\r" not in text.replace("\r\n", ""))


@given(
    rows=st.lists(st.lists(TEXT, min_size=3, max_size=3), max_size=8),
    delimiter=st.sampled_from(",;\t|"),
    chunk=st.integers(1, 60),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_a_written_csv_is_read_as_it_was(rows: list[list[str]], delimiter: str, chunk: int, quoting: int) -> None:
    data = csv_text(["a", "b", "c"], rows, delimiter=delimiter, quoting=quoting)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("onlinevi.data.formats.base.CHUNK", chunk)
        patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        numbers, columns = read(open_stream("-", format="csv"))
    assert numbers == list(range(len(rows)))
    assert [list(row) for row in zip(*columns.values(), strict=True)] == rows


def test_a_quote_left_open_costs_one_line_and_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["1,2"] * 500_000
    lines[100] = '"1,2'
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "\n".join(lines) + "\n")
    for chunk in (1 << 16, 1 << 20):
        monkeypatch.setattr("onlinevi.data.formats.base.CHUNK", chunk)
        skip = Skip()
        assert sum(map(len, open_stream(path, bad=skip))) == 499_999
        assert skip.count == 1
        assert skip.first is not None
        assert (skip.first.row, skip.first.line) == (100, 102)


def test_a_number_late_in_the_file_may_be_none(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,2\n" * 1000 + "3.5,n/a\n" + "4,5\n" * 1000 + "six,7\n")
    stream = open_stream(path, batch_rows=500)
    stream.numbers |= {"a", "b"}
    _, columns = read(stream)
    assert columns["a"][-1] == "six"
    assert len(columns["b"]) == 2002


@pytest.mark.parametrize("delimiter", [",", ";"])
@pytest.mark.parametrize(
    "text",
    [
        'a,"b"\n1,"x"\n',
        'a,"b\nc"\n1,"x\n',
        '"x\ny","z\n',
        '1,"say ""hi"""\n2,""\r\n3,"',
        'a"b,c"d\n1,2\n',
        'a,\r"b\n1,"c\n',
        '""a,b\n"c\n',
    ],
)
def test_a_cut_by_plain_quotes_is_that_of_the_grammar(text: str, delimiter: str) -> None:
    data = text.replace(",", delimiter).encode()
    grammar = csv_files._grammar(delimiter)
    found = grammar.records.match(data)
    assert csv_files._plain_end(data, delimiter) in (0, found.end() if found else 0)


@given(st.text('a,"\n\r', max_size=14))
def test_no_text_is_cut_otherwise_than_by_the_grammar(text: str) -> None:
    found = csv_files._grammar(",").records.match(text.encode())
    assert csv_files._plain_end(text.encode(), ",") in (0, found.end() if found else 0)


def test_a_lone_carriage_return_ends_a_row(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b'a,b\n1,2\r3,4\n5\r"x\ry",6\n\xff,7\n')
    bad = Skip()
    with open_stream(path, bad=bad) as stream:
        rows = [(batch.rows.tolist(), batch.columns["a"].to_pylist()) for batch in stream]
    assert rows == [([0, 1, 3], ["1", "3", "x\ry"])]
    assert bad.count == 2
    assert bad.first is not None
    assert (bad.first.row, bad.first.text) == (2, "5")


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-8"])
def test_text_of_other_encodings_is_read(tmp_path: Path, encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "größe;ort\n" + "".join(f"{t};Köln\n" for t in range(50))
    (tmp_path / "r.csv").write_bytes(text.encode(encoding))
    for chunk in (1 << 20, 7):
        monkeypatch.setattr("onlinevi.data.formats.base.CHUNK", chunk)
        with open_stream(tmp_path / "r.csv", encoding=encoding) as stream:
            batches = list(stream)
        assert list(batches[0].columns) == ["größe", "ort"]
        assert [town for batch in batches for town in batch.columns["ort"].to_pylist()] == ["Köln"] * 50
    with (
        pytest.raises(BadInput, match="is none that is known; try latin-1"),
        open_stream(tmp_path / "r.csv", encoding="x") as s,
    ):
        next(s)


def test_a_file_without_a_header_may_have_names_of_places(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("\n1,2\n3,4\n")
    with pytest.raises(BadInput, match="--no-header"), open_stream(tmp_path / "r.csv") as stream:
        next(stream)
    with open_stream(tmp_path / "r.csv", names=()) as stream:
        assert {name: values.to_pylist() for name, values in next(stream).columns.items()} == {
            "column_0": ["1", "3"],
            "column_1": ["2", "4"],
        }
