"""Every format is known by its name, by its files' names and by their first bytes; so is one of your own."""

from __future__ import annotations

import gc
import gzip
import hashlib
import io
import random
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from helpers.file_rows import SAMPLES, read

from onlinevi.data import PACKED_SUFFIXES, WRITTEN_AS, BadInput, Format, Part, ReadOptions, open_stream
from onlinevi.data.formats import format_of
from onlinevi.data.sources import Content, Digest
from onlinevi.engine import named

pa = pytest.importorskip("pyarrow")


def content(data: bytes, name: str = "t") -> Content:
    return Content(Part(name, io.BytesIO(data)), Digest())


def test_tests_draw_from_every_format() -> None:
    ours = [name for name, kind in named(Format).items() if kind.__module__.startswith("onlinevi.")]
    assert ours == list(SAMPLES)


def test_no_two_formats_share_an_ending_or_a_magic() -> None:
    for part in ("suffixes", "magic"):
        marks = [mark for each in named(Format).values() for mark in getattr(each, part)]
        assert len(set(marks)) == len(marks)
    assert not set(PACKED_SUFFIXES) & {suffix for each in named(Format).values() for suffix in each.suffixes}


def test_what_is_written_under_an_ending_is_read_by_it() -> None:
    for suffix, kind in WRITTEN_AS.items():
        assert suffix in kind.suffixes
        assert kind.is_text != bool(kind.magic)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_format_is_told_named_or_seen(name: str) -> None:
    kind, data = named(Format)[name], SAMPLES[name]()
    for suffix in kind.suffixes:
        assert type(format_of(content(b"", f"a.b{suffix.upper()}"))) is kind
        for packed in PACKED_SUFFIXES:
            assert type(format_of(content(b"", f"a{suffix}{packed}"))) is kind
    assert type(format_of(content(b"", "a.csv"), name)) is kind
    for stored in (data, gzip.compress(data)):
        seen = content(stored)
        assert type(format_of(seen)) is kind
        assert seen.read() == data, "what was looked at is still to be read"


@pytest.mark.parametrize("name", SAMPLES)
def test_every_format_numbers_and_resumes_its_rows(name: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(SAMPLES[name]())
    stream = open_stream(path, batch_rows=3)
    whole = read(stream)
    assert whole[0] == [0, 1, 2, 3]
    assert stream.position[:4] == (str(path), 4, path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest())
    for start in range(4):
        rows, columns = read(open_stream(path, skip_rows=start, end_row=3))
        assert rows == list(range(start, 3))
        assert start == 3 or columns == {key: values[start:3] for key, values in whole[1].items()}


OWN = """
import pyarrow as pa
from onlinevi.data import Format, ReadOptions
from onlinevi.data.formats import Piece

class Numbers(Format):
    name = "numbers_a_line"
    suffixes = (".num",)
    magic = (b"#num",)
    is_text = False

    def read(self, content, options):
        rows = [float(line) for line in content.read().splitlines() if not line.startswith(b"#")]
        yield Piece(len(rows), {"value": pa.array(rows)})
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a module with a format of one's own, outside of onlinevi."""
    (tmp_path / "own_format.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    yield "own_format"
    sys.modules.pop("own_format", None)
    gc.collect()  # the class, which its base would go on to know


def test_a_format_of_ones_own_is_used_like_ours(tmp_path: Path, own: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"#num\n1.5\n2\n")
    want = ([0, 1], {"value": [1.5, 2.0]})
    assert read(open_stream(path, format=f"{own}:Numbers")) == want
    assert read(open_stream(path, format="numbers_a_line")) == want
    assert read(open_stream(path, format=named(Format)["numbers_a_line"]())) == want
    for name in ("t.num.gz", "t"):
        assert read(open_stream(path.rename(tmp_path / name))) == want
        path = tmp_path / name


def test_a_format_that_is_none_is_refused_with_those_that_are(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"1.5\n")
    with pytest.raises(ValueError, match=r"'xlsx': needs one of csv, ndjson, parquet, arrow, libsvm.* package\.module:Class"):
        read(open_stream(tmp_path / "t", format="xlsx"))


def test_a_format_without_a_reader_says_so() -> None:
    with pytest.raises(NotImplementedError, match="Format reads nothing: give it a method read"):
        Format().read(content(b""), ReadOptions())


class Memory:
    """A source of parts in memory: what a new kind of source has to be."""

    name = "memory"

    def __init__(self, *parts: tuple[str, bytes]) -> None:
        self.stored, self.closed = parts, 0

    def parts(self) -> Generator[Part]:
        for name, data in self.stored:
            with io.BytesIO(data) as file:
                try:
                    yield Part(name, file)
                finally:
                    self.closed += 1


@pytest.mark.parametrize("name", SAMPLES)
def test_a_source_of_ones_own_is_read_as_a_file(name: str, tmp_path: Path) -> None:
    data = SAMPLES[name]()
    path = tmp_path / "t"
    path.write_bytes(data)
    source = Memory(("t", data))
    ours, theirs = open_stream(source), open_stream(path)
    assert read(ours) == read(theirs)
    assert ours.position == theirs.position._replace(source="memory")
    assert source.closed == 1
    assert read(open_stream(source, resume=ours.position))[0] == []


def test_parts_are_one_stream_and_closed_where_it_ends() -> None:
    parts = ("a.csv", b"x,y\n1,2\n3,4\n"), ("b.csv.gz", gzip.compress(b"y,x\n6,5\n"))
    assert read(open_stream(Memory(*parts))) == ([0, 1, 2], {"x": ["1", "3", "5"], "y": ["2", "4", "6"]})
    source = Memory(*parts)
    with open_stream(source) as stream:
        next(stream)
        assert source.closed == 0
    assert source.closed == 1
    with pytest.raises(BadInput, match=r"c\.csv: its columns are not those"):
        read(open_stream(source := Memory(*parts, ("c.csv", b"z\n1\n"))))
    assert source.closed == 3


def test_a_source_that_has_changed_is_not_resumed() -> None:
    stream = open_stream(Memory(("t.csv", b"x\n1\n2\n")))
    assert read(stream)[0] == [0, 1]
    with pytest.raises(BadInput, match="are not those read before"):
        read(open_stream(Memory(("t.csv", b"x\n1\n3\n4\n")), resume=stream.position))


def test_damaged_arrow_is_refused_and_never_followed() -> None:
    rng, file = random.Random(0), io.BytesIO()
    table = pa.table({"a": ["red", "blue", None] * 20, "b": list(range(60))})
    with pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    whole, refused = file.getvalue(), 0
    for _ in range(300):
        damaged = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        try:
            for piece in format_of(content(bytes(damaged)), "arrow").read(content(bytes(damaged)), ReadOptions()):
                assert all(len(values.to_pylist()) == piece.count for values in piece.columns.values())
        except BadInput:
            refused += 1
    assert refused > 100
