"""Calls of the command line that nobody would make on purpose: odd files, damaged files, odd options.

    python tools/fuzz_command_line.py [--cases 3000] [--first 0]

Each case is made from its number alone. A call may do what it is asked for, or say in one line why not, with exit code 2. An
exception, exit code 1 or the end of the process is a fault: it is printed with its case, and the script exits with 1.
"""

from __future__ import annotations

import argparse
import bz2
import contextlib
import gzip
import io
import json
import random
import sys
import tempfile
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from datetime import date, datetime, timedelta
from datetime import time as time_of_day
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from onlinevi.adapters.cli import main

CHUNK = 100
"""Cases that share a process: where it dies, the next one goes on behind the case."""

CELLS = (
    *("1", "-2.5", "0", "1e400", "nan", "inf", "", "?", "NA", "1.2.3", "12O", "$14,524.84", "77%", "3,5", "true", "False"),
    *(
        "2024-02-30",
        "2024-02-29",
        "2024-02-29T12:00:00Z",
        "01.01.2023",
        "yes",
        "no",
        "red",
        "Ünïcödé",
        "日本",
        "a\x00b",
        "\ufeff",
    ),
    *('"', '""', '"a,b"', "a;b", "a\rb", "'", "\\", "9" * 400, "x" * 5000, "\ud800", "0x10", "1_000", " 7 ", "−1"),
)
NAMES = ("a", "b", "c", "d e", "", "a", "label", "y", "Ünï", "1", "2.5", "a.b", "--target", "x" * 140_000, "=", "~1", "\x00")
VALUES: tuple[Any, ...] = (
    *(None, 1, -2, 0.5, 2**70, 1e308, True, "red", "3", "", [], [1, 2], {}, {"b": 1}, {"b": [1]}, "\ud800", "NaN"),
)
COLUMNS: tuple[tuple[pa.DataType, tuple[Any, ...]], ...] = (
    (pa.int64(), (1, -2, 3, None)),
    (pa.uint64(), (1, 2**64 - 1)),
    (pa.float64(), (0.5, float("nan"), float("inf"), None)),
    (pa.float16(), (0.5, 2.0)),
    (pa.string(), ("red", "", "3", None)),
    (pa.large_string(), ("red", "blue")),
    (pa.string_view(), ("red", "blue")),
    (pa.bool_(), (True, False, None)),
    (pa.date32(), (date(2024, 1, 1), date(9999, 12, 31))),
    (pa.timestamp("us"), (datetime(2024, 1, 1), datetime(1, 1, 1))),
    (pa.timestamp("ns", "Europe/Berlin"), (datetime(2024, 1, 1), None)),
    (pa.timestamp("s"), (2**60, 1)),
    (pa.time64("us"), (time_of_day(12), None)),
    (pa.duration("us"), (timedelta(1), None)),
    (pa.binary(), (b"a", b"\xff")),
    (pa.binary(2), (b"ab", None)),
    (pa.list_(pa.int64()), ([1], [], None)),
    (pa.map_(pa.string(), pa.int64()), ([("a", 1)], None)),
    (pa.struct([("p", pa.int64()), ("q", pa.string())]), ({"p": 1, "q": "x"}, None)),
    (pa.decimal128(10, 2), (Decimal("1.50"), None)),
    (pa.dictionary(pa.int8(), pa.string()), ("red", "blue")),
    (pa.dictionary(pa.int8(), pa.int64()), (1, 2)),
    (pa.null(), (None,)),
    (pa.month_day_nano_interval(), ((1, 2, 3), None)),
)
OPTIONS = (
    *(("--task", "classes"), ("--task", "numbers"), ("--task", "counts"), ("--task", "quantile"), ("--loss", "hinge")),
    *(("--rule", "svb"), ("--rule", "ngvi"), ("--rule", "nope"), ("--family", "full"), ("--family", "nope"), ("--json",)),
    *(("--level", "2"), ("--coverage", "0"), ("--delay", "3"), ("--delay", "-1"), ("--drop", "a"), ("--keep", "a,b")),
    *(("--drop", "nope"), ("--missing", "zero"), ("--missing", "refuse"), ("--max-categories", "0"), ("--hash-bits", "4")),
    *(("--rows", "2:"), ("--rows", ":3"), ("--rows", "5:2"), ("--rows", "x"), ("--bad-rows", "skip"), ("--every", "3")),
    *(("--bad-rows", "bad.ndjson"), ("--bad-rows", "."), ("--no-hindsight",), ("--hindsight",), ("--every", "0")),
    *(("--predictions", "said.csv"), ("--predictions", "said.parquet"), ("--predictions", "-"), ("--predictions", ".")),
    *(("--predictions", "no/said.csv"), ("--checkpoint", "."), ("--checkpoint", "no/m.ovi"), ("--checkpoint", "m.ovi")),
    *(("--resume",), ("--overwrite",), ("--from", "m.ovi"), ("--prepare-like", "."), ("--out", "afile"), ("--out", "out")),
    *(("--config", "afile"), ("--config", "."), ("--config", "c.toml"), ("--config", "odd.toml"), ("--quiet",), ("-v",)),
    *(("--help-all",), ("--taget", "y"), ("--jsn",)),
    *(("--import", "nope"), ("--import", ""), ("--rule", "a:b"), ("--loss", ":"), ("--debug",), ("--out", "afile/out")),
)


class Case(NamedTuple):
    """A call in a folder of its own."""

    file: str
    content: bytes
    arguments: list[str]

    def __str__(self) -> str:
        return f"onlinevi {' '.join(self.arguments)} with {self.file} = {self.content[:200]!r}"


def case_of(number: int) -> Case:
    """The case of this number, always the same."""
    rng = random.Random(number)
    kind = rng.choice(("csv", "csv", "ndjson", "libsvm", "parquet", "arrow", "arrow", "model"))
    content = {"csv": _csv, "ndjson": _ndjson, "libsvm": _libsvm, "model": _bytes}.get(kind, _typed)(rng, kind)
    if rng.random() < 0.5:
        content = _damaged(rng, content)
    packing = rng.choice(("", "", "", ".gz", ".bz2", ".zst"))
    packed = {".gz": gzip.compress, ".bz2": bz2.compress, ".zst": _zstd}.get(packing, bytes)(content)
    if packing and rng.random() < 0.6:
        packed = _damaged(rng, packed)
    name = rng.choice((f"t.{kind}{packing}", f"t.{kind}{packing}", "t", "t.csv", "t.zip"))
    return Case(name, packed, _arguments(rng, name, kind))


def _arguments(rng: random.Random, name: str, kind: str) -> list[str]:
    target = rng.choice(("y", "y", "y", "a", "label", "nope")) if kind != "libsvm" else "label"
    chosen = [word for option in rng.sample(OPTIONS, rng.choice((0, 0, 1, 2, 3))) for word in option]
    # One rule is a fraction of the default's work, and what is read does not depend on it.
    rule = [] if "--rule" in chosen or "--from" in chosen else ["--rule", "svb"]
    run = ["run", name, "--target", target, *rule, *chosen]
    if kind != "model":
        return run if rng.random() < 0.95 else ["compare", name, "--target", target, "--rules", "svb,oga"]
    other = (["info", name], ["info", ".", "--json"], ["predict", name, "rows.csv"], ["merge", name, name, "-o", "m"])
    return rng.choice((*other, ["predict", ".", name], ["report", "."], ["report", name], ["run", "rows.csv", "--from", name]))


def _csv(rng: random.Random, _: str) -> bytes:
    plain = rng.random() < 0.6
    names = ["a", "b", "y"] if plain else [*rng.sample(NAMES, rng.randint(0, 4)), "y"]
    stop, end = rng.choice((",", ",", ";", "\t", "|")), rng.choice(("\n", "\n", "\r\n", "\r"))
    lines = [stop.join(names)]
    for _row in range(rng.choice((0, 1, 2, 12, 12))):
        cells = [str(rng.gauss(0, 1)) for _ in names[:-1]] + [rng.choice(("yes", "no"))]
        if rng.random() < 0.3:
            cells[rng.randrange(len(cells))] = rng.choice(CELLS)
        lines.append(stop.join(cells[: rng.choice((len(cells),) * 9 + (1,))]))
    text = end.join(lines) + rng.choice(("", end))
    return text.encode(rng.choice(("utf-8",) * 6 + ("utf-16", "utf-8-sig", "latin-1", "utf-16-le")), errors="replace")


def _ndjson(rng: random.Random, _: str) -> bytes:
    lines = []
    for _row in range(rng.choice((0, 1, 12))):
        row = {"a": rng.gauss(0, 1), "b": rng.choice(VALUES if rng.random() < 0.3 else (1, 2)), "y": rng.choice((0, 1))}
        text = json.dumps(row)
        lines.append(
            text[:-1] + ', "a": 2}' if rng.random() < 0.05 else rng.choice((text,) * 20 + ("[]", "1", "{", "[" * 9999))
        )
    return ("\n".join(lines) + "\n").encode()


def _libsvm(rng: random.Random, _: str) -> bytes:
    def pair() -> str:
        largest = 99_999_999 if rng.random() < 0.02 else 20
        return (
            f"{rng.choice((rng.randint(0, 20), largest, -1 if rng.random() < 0.05 else 3))}:{rng.choice(('1', '0.5', 'nan'))}"
        )

    rows = [" ".join([rng.choice(("1", "-1", "+1")), *(pair() for _ in range(rng.randint(0, 4)))]) for _ in range(10)]
    return ("\n".join(rows) + "\n").encode()


def _typed(rng: random.Random, kind: str) -> bytes:
    count = rng.choice((0, 1, 12, 12))
    types = [COLUMNS[0], rng.choice(COLUMNS), rng.choice(COLUMNS) if rng.random() < 0.2 else COLUMNS[7]]
    arrays = [pa.array([rng.choice(values) for _ in range(count)], kind) for kind, values in types]
    table, file = pa.table(dict(zip(("a", "b", "y"), arrays, strict=True))), io.BytesIO()
    if kind == "parquet":
        with contextlib.suppress(pa.ArrowException):  # a type that it does not have
            pa.parquet.write_table(table, file)
    else:
        with rng.choice((pa.ipc.new_file, pa.ipc.new_stream))(file, table.schema) as writer:
            writer.write_table(table)
    return file.getvalue()


def _bytes(rng: random.Random, _: str) -> bytes:
    return rng.choice((b"", b"PK\x03\x04", rng.randbytes(100), b"PK\x03\x04" + rng.randbytes(200), b"{}", b"\x1f\x8b"))


def _zstd(content: bytes) -> bytes:
    return bytes(pa.compress(content, "zstd", asbytes=True))


def _damaged(rng: random.Random, content: bytes) -> bytes:
    damaged = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        if damaged:
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
    return bytes(damaged[: rng.randrange(len(damaged) + 1)] if rng.random() < 0.3 else damaged)


def fault(number: int, folder: Path) -> str | None:
    """What is wrong with how a case ended; None where nothing is."""
    case, printed, said = case_of(number), io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    (folder / "rows.csv").write_text("a,y\n1,yes\n2,no\n")
    (folder / "afile").write_text("taken")
    (folder / "c.toml").write_text('file = "rows.csv"\ndrop = ["a"]\nrows = ":1"\n[run]\njson = true\nevery = 2\n')
    (folder / "odd.toml").write_text('target = ["y", 2]\nlevel = {a = 1}\nkinds = 1979-05-27\nresume = "no"\n[compare]\n')
    (folder / case.file).write_bytes(case.content)
    try:
        with contextlib.chdir(folder), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
            code: Any = main(case.arguments)
    except SystemExit as ended:  # argparse, at an option that it does not take
        code = ended.code
    except BaseException:
        return f"case {number}, {case}\n{traceback.format_exc()}"
    if code in (0, 2):
        return None
    return f"case {number}, {case}\nexit code {code}: {said.getvalue()}"


def faults(first: int, end: int, started: Path) -> list[str]:
    """The faults of some cases; ``started`` says which was the last to be started, should this process die of it."""
    found = []
    for number in range(first, end):
        started.write_text(str(number))
        with tempfile.TemporaryDirectory() as folder:
            found.append(fault(number, Path(folder)))
    return [one for one in found if one is not None]


def fuzz(first: int, end: int) -> list[str]:
    """The faults of many cases, in processes of their own."""
    found: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        started = Path(folder) / "started"
        while first < end:
            stop = min(first + CHUNK, end)
            with ProcessPoolExecutor(1) as pool:
                try:
                    found += pool.submit(faults, first, stop, started).result()
                except BrokenProcessPool:
                    stop = int(started.read_text()) + 1
                    found.append(f"case {stop - 1}, {case_of(stop - 1)}\nthe process died")
            first = stop
            print(f"\r{first} cases, {len(found)} faults", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=3000, metavar="N", help="default: 3000, some minutes")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="the number of the first case (default: 0)")
    chosen = parser.parse_args()
    begun = time.monotonic()
    wrong = fuzz(chosen.first, chosen.first + chosen.cases)
    print(*wrong, f"{chosen.cases} cases in {time.monotonic() - begun:.0f} s, {len(wrong)} faults", sep="\n\n")
    sys.exit(1 if wrong else 0)
