"""Every format gives the same table, cut anywhere, packed or not; no row is lost without a word."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import select
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.file_rows import SAMPLES, TABLE, arrow_file, read

from onlinevi.data import arrow, open_stream
from onlinevi.data.sources import BadInput, Collect, Skip

pa = pytest.importorskip("pyarrow")


def write(kind: str) -> bytes:
    return arrow_file(stream=True) if kind == "arrows" else SAMPLES[kind]()


def twice() -> bytes:
    table, file = pa.table([[1], [2]], names=["a", "a"]), io.BytesIO()
    with pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    return file.getvalue()


PACK = {
    "": lambda data: data,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": lambda data: pa.Codec("zstd").compress(data, asbytes=True),
}


@pytest.mark.parametrize("pack", PACK)
@pytest.mark.parametrize("kind", ["csv", "ndjson", "parquet", "arrow", "arrows"])
@pytest.mark.parametrize("named", [True, False])
def test_formats_and_packings_agree(tmp_path: Path, kind: str, pack: str, named: bool) -> None:
    stored = PACK[pack](write(kind))
    path = tmp_path / (f"t.{kind}{pack}" if named else "t")
    path.write_bytes(stored)
    stream = open_stream(path, batch_rows=2)
    stream.numbers |= {"x", "n"}
    rows, columns = read(stream)
    assert rows == [0, 1, 2, 3]
    assert columns == TABLE
    assert stream.position[:4] == (str(path), 4, len(stored), hashlib.sha256(stored).hexdigest())


@pytest.mark.parametrize("pack", PACK)
@pytest.mark.parametrize("kind", ["csv", "ndjson", "parquet", "arrow", "arrows"])
def test_standard_input_says_what_it_is(kind: str, pack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = PACK[pack](write(kind))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stored)))
    stream = open_stream("-")
    stream.numbers |= {"x", "n"}
    assert read(stream) == ([0, 1, 2, 3], TABLE)
    assert stream.position[:4] == ("-", 4, len(stored), hashlib.sha256(stored).hexdigest())
    assert not sys.stdin.buffer.closed


@pytest.mark.parametrize("pack", PACK)
def test_packed_files_may_be_joined(tmp_path: Path, pack: str) -> None:
    (tmp_path / "t.csv").write_bytes(PACK[pack](b"a\n1\n") + PACK[pack](b"2\n"))
    assert read(open_stream(tmp_path / "t.csv"))[1] == {"a": ["1", "2"]}


BAD: dict[str, tuple[bytes, list[tuple[int, int, str]], list[int]]] = {
    "csv": (
        b'a,b\n1,2\n3\n\n"4\n4",5\n6,7,8\n9,caf\xe9\n10,11\n12,"open\n13,14\n',
        [
            (1, 3, "1 fields, the header has 2"),
            (3, 7, "3 fields, the header has 2"),
            (4, 8, "not UTF-8 at byte 5"),
            (6, 10, "a quote that never closes"),
        ],
        [0, 2, 5, 7],
    ),
    "ndjson": (
        b'{"a": 1}\n{"a": \n\n[1]\n{"a": {"b": [2]}}\n{"a": "\xe9"}\n{"a": 3}\n{"a": "\\uD800"}\n{"a": "\\ud83d\\ude00"}\n',
        [(1, 2, "not JSON"), (2, 4, "needs an object"), (3, 5, "a list"), (4, 6, "not JSON"), (6, 8, "not JSON")],
        [0, 5, 7],
    ),
    "libsvm": (
        b"+1 1:2\nspam 1:2\n\n-1 1:x # a comment\n-1 1\n-1 999999999:1\n# nothing\n2.5e0 7:-.5 # good\n0\n1 -1:2\n",
        [
            (1, 2, "the label 'spam' is no number"),
            (2, 4, "'1:x' is no index:value"),
            (3, 5, "'1' is no index:value"),
            (4, 6, "'999999999:1' is no"),
            (7, 10, "'-1:2' is no"),
        ],
        [0, 5, 6],
    ),
}


@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 8, 13, 21, 34, 55, 1000])
@pytest.mark.parametrize("kind", BAD)
def test_bad_rows_are_named_wherever_blocks_end(
    tmp_path: Path, kind: str, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onlinevi.data.formats.base.CHUNK", chunk)
    data, wanted, good = BAD[kind]
    path = tmp_path / f"t.{kind}"
    path.write_bytes(data)
    collect = Collect(tmp_path / "bad.ndjson")
    rows, _ = read(open_stream(path, bad=collect))
    told = [json.loads(line) for line in (tmp_path / "bad.ndjson").read_text().splitlines()]
    assert rows == good
    assert [(bad["row"], bad["line"]) for bad in told] == [(row, line) for row, line, _ in wanted]
    for bad, (_, line, reason) in zip(told, wanted, strict=True):
        assert reason in bad["reason"]
        assert bad["text"] == data.split(b"\n")[line - 1].decode(errors="replace")
    assert collect.count == len(wanted)
    skipped, seen = wanted[1][0], Skip()
    assert read(open_stream(path, bad=seen, skip_rows=skipped))[0] == [row for row in good if row >= skipped]
    assert seen.count == len(wanted) - 1


def test_stop_delivers_what_comes_before(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n3,4\n5\n6,7\n")
    stream = open_stream(path)
    assert next(stream).rows.tolist() == [0, 1]
    with pytest.raises(BadInput, match=r"t\.csv, row 2 \(line 4\): 1 fields, the header has 2; it reads '5'") as caught:
        next(stream)
    assert caught.value.refused is not None
    assert stream.position.rows == 2


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("kind", ["csv", "ndjson", "parquet", "arrow"])
def test_resuming_gives_the_rest(tmp_path: Path, kind: str, rows: int) -> None:
    path = tmp_path / f"t.{kind}"
    path.write_bytes(write(kind))
    want = {name: values[rows:] for name, values in TABLE.items()}
    for stream in (open_stream(path, skip_rows=rows), open_stream(path, batch_rows=3, skip_rows=rows)):
        stream.numbers |= {"x", "n"}
        numbers, columns = read(stream)
        assert numbers == list(range(rows, 4))
        assert columns == (want if rows < 4 else {})


def test_resuming_checks_the_bytes_read_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onlinevi.data.formats.base.CHUNK", 7)
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n3,4\n5,6\n")
    stream = open_stream(path)
    first = next(stream)
    position = stream.position
    assert 0 < position.rows == len(first) < 3
    assert read(open_stream(path, resume=position))[0] == list(range(position.rows, 3))
    with path.open("a") as file:
        file.write("7,8\n")
    assert read(open_stream(path, resume=position))[0] == list(range(position.rows, 4))
    path.write_text("a,b\n1,9\n3,4\n5,6\n")
    with pytest.raises(BadInput, match="are not those read before"):
        read(open_stream(path, resume=position))
    path.write_text("a")
    with pytest.raises(BadInput, match="it was cut"):
        read(open_stream(path, resume=position))


def test_a_folder_is_one_stream(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("y,x\n4,3\n")
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"x,y\n1,2\n"))
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / ".hidden").write_text("no")
    assert read(open_stream(tmp_path)) == ([0, 1], {"x": ["1", "3"], "y": ["2", "4"]})
    (tmp_path / "c.csv").write_text("x,z\n1,2\n")
    with pytest.raises(BadInput, match=r"c\.csv: its columns .* lacks \['y'\], and has \['z'\]"):
        read(open_stream(tmp_path))


def test_peeked_rows_stay_to_come(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a\n" + "".join(f"{i}\n" for i in range(20)))
    stream = open_stream(path, batch_rows=6)
    assert [len(batch) for batch in stream.peek(10)] == [6, 4]
    assert stream.position.rows == 0
    assert read(stream)[0] == list(range(20))


def test_a_bad_row_behind_those_peeked_at_waits_its_turn(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n3\n4,5\n")
    stream = open_stream(path)
    assert [batch.rows.tolist() for batch in stream.peek()] == [[0]]
    assert next(stream).rows.tolist() == [0]
    for _ in range(2):
        with pytest.raises(BadInput, match="row 1"):
            next(stream)
    path.write_text("a,b\n3\n4,5\n")
    with pytest.raises(BadInput, match="row 0"):
        open_stream(path).peek()


def test_libsvm_is_a_matrix_that_widens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onlinevi.data.formats.base.CHUNK", 8)
    path = tmp_path / "t"
    path.write_text("+1 1:2 3:4.5\n-1 0:1e3\n3 7:1 2:.5\n")
    batches = list(open_stream(path))
    assert [batch.columns["label"].to_pylist() for batch in batches] == [[1.0], [-1.0], [3.0]]
    assert [batch.matrix.shape for batch in batches] == [(1, 4), (1, 4), (1, 8)]
    assert batches[2].matrix.toarray()[0].tolist() == [0, 0, 0.5, 0, 0, 0, 0, 1]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "empty; CSV needs a header"),
        (b"\n\n", "empty; CSV needs a header"),
        (b"1,2\n3,4\n", "the first line holds numbers, no header"),
        (b"a,b,a\n", "two columns are called 'a'"),
        (b'"a,b\n', "the header has a quote that never closes"),
        (gzip.compress(b"a,b\n" * 999)[:-9], "its gzip data is damaged or cut"),
        (bz2.compress(b"a,b\n" * 999)[:-9], "its bz2 data is damaged or cut"),
        (b"ARROW1\0\0" + write("arrows")[:-99], "no readable Arrow"),
        (write("parquet")[:99], "no readable Parquet"),
        (twice(), "have one name"),
        (b"PAR1 and no more", "no readable Parquet"),
        (b"ARROW1\0\0 and no more", "no readable Arrow"),
    ],
    ids=lambda value: value if isinstance(value, str) else "bytes",
)
def test_what_cannot_be_read_is_named(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "t"
    path.write_bytes(data)
    with pytest.raises(BadInput, match=message) as caught:
        read(open_stream(path))
    assert str(path) in str(caught.value)


def test_settings_are_checked(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such file"):
        open_stream(tmp_path / "none")
    with pytest.raises(FileNotFoundError, match="holds no files"):
        open_stream(tmp_path)
    path = tmp_path / "t"
    path.write_text("1,2\n")
    for settings in ({"batch_rows": 0}, {"skip_rows": -1}, {"delimiter": "::"}):
        with pytest.raises(ValueError, match=next(iter(settings))):
            open_stream(path, **settings)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="needs one of csv, ndjson"):
        read(open_stream(path, format="xlsx"))
    assert read(open_stream(path, names=["a", "b"]))[1] == {"a": ["1"], "b": ["2"]}


CHILD = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests in the background has it ignored
from onlinevi.data import open_stream
stream = open_stream("-")
try:
    for batch in stream:
        print(batch.rows.tolist(), *(values.to_pylist() for values in batch.columns.values()), flush=True)
except KeyboardInterrupt:
    print("stopped", stream.position.rows, flush=True)
"""


@pytest.mark.parametrize("kind", ["csv", "ndjson", "libsvm", "gzip"])
def test_a_pipe_delivers_each_row_as_it_comes(kind: str) -> None:
    lines = {"csv": [b"a\n", b"5\n", b"6\n"], "ndjson": [b"", b'{"a": "5"}\n', b'{"a": "6"}\n']}.get(kind)
    lines = lines or [b"", b"5 1:1\n", b"6 2:2\n"]
    values = ["['5']", "['6']"] if kind in ("csv", "ndjson") else ["[5.0]", "[6.0]"]
    pack = gzip.compress if kind == "gzip" else bytes
    with subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin
        assert child.stdout
        child.stdin.write(pack(lines[0] + lines[1]))
        child.stdin.flush()
        assert child.stdout.readline().decode().strip() == f"[0] {values[0]}"
        child.stdin.write(pack(lines[2]))
        child.stdin.flush()
        assert child.stdout.readline().decode().strip() == f"[1] {values[1]}"
        child.send_signal(signal.SIGINT)
        while not select.select([child.stdout], [], [], 5.0)[0]:  # a signal just before a read begins is seen behind the read
            child.send_signal(signal.SIGINT)
        assert child.stdout.readline().decode().strip() == "stopped 2"


def test_memory_stays_flat(tmp_path: Path) -> None:
    row = ",".join(f"{value:.4f}" for value in np.linspace(-1, 1, 20)) + ',"some, text"\n'
    header = ",".join(f"c{i}" for i in range(21)) + "\n"
    for name, size in (("small", 4 << 20), ("large", 24 << 20)):
        (tmp_path / name).write_text(header + row * (size // len(row)))
    script = f"""
import resource
from onlinevi.data import open_stream
for name in ("small", "small", "large"):
    with open_stream({str(tmp_path)!r} + "/" + name) as stream:
        stream.numbers |= {{f"c{{i}}" for i in range(20)}}
        sum(map(len, stream))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    _, small, large = map(int, done.stdout.split())
    assert large - small < 8 << 10


def test_groups_of_a_parquet_file_are_let_go(tmp_path: Path) -> None:
    group = pa.table({f"x{j}": np.random.default_rng(j).standard_normal(10_000) for j in range(20)})
    with pytest.importorskip("pyarrow.parquet").ParquetWriter(tmp_path / "rows.parquet", group.schema) as writer:
        for _ in range(30):
            writer.write_table(group)
    before, most = pa.total_allocated_bytes(), 0
    with open_stream(tmp_path / "rows.parquet") as stream:
        for _ in stream:
            most = max(most, pa.total_allocated_bytes() - before)
    assert most < 8 * group.nbytes, "30 groups were read"


def test_the_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    arrow.cache_clear()  # another test may have found it
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n")
    with pytest.raises(ModuleNotFoundError, match=r"pip install \"onlinevi\[files\]\""):
        read(open_stream(path))


def test_a_command_takes_pyarrow_without_pandas_and_a_library_takes_both() -> None:
    script = """
import sys
from onlinevi import data
{}
assert data.arrow().array(["a", None]).null_count == 1
print("pandas" in sys.modules)
import pandas
print(len(pandas.DataFrame({{"a": [1, 2]}})))
"""
    for before, pandas in (("data.spare_pandas()", "False"), ("", "True")):
        done = subprocess.run([sys.executable, "-c", script.format(before)], capture_output=True, text=True, check=True)
        assert done.stdout.split() == [pandas, "2"]
