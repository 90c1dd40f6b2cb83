"""From a file to a model: ``onlinevi run`` on a big CSV and its Parquet, against Vowpal Wabbit and River on the same rows.

    python benchmarks/end_to_end.py [--gb 2] [--tiny]

The files are made in the temporary directory, where they need about three times the size, and removed. Each command is a
process of its own and runs once: it is long. The default (``--rule auto``), with its many learners, and River get the first
rows only.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from children import Ran, python, run
from section import Size, left_out, main

COLUMNS, TARGET = 54, "label"
BYTES_A_ROW = 405
"""Of the CSV, about."""
BATCH = 50_000
AUTO_ROWS, RIVER_ROWS = 100_000, 100_000
ROOM = 3.5
"""Bytes needed for one of the CSV: itself, Parquet, and the text for VW."""

asked = {"gb": 2.0}

READ = """
import sys
from onlinevi.data import Columns, encode, open_stream
rows = 0
with open_stream(sys.argv[1]) as stream:
    schema = Columns().learn(stream.peek(), target=sys.argv[2])
    stream.numbers |= schema.numbers
    for batch in stream:
        schema, encoded = encode(schema, batch)
        rows += len(encoded.y)
print(rows)
"""
RIVER = """
import csv, itertools, sys
from river.linear_model import LogisticRegression
from river.preprocessing import StandardScaler
model = StandardScaler() | LogisticRegression()
with open(sys.argv[1]) as file:
    for row in itertools.islice(csv.DictReader(file), int(sys.argv[3])):
        label = row.pop(sys.argv[2]) == "yes"
        x = {name: float(value) for name, value in row.items()}
        model.predict_proba_one(x)
        model.learn_one(x, label)
"""


def measure(size: Size) -> dict[str, Any]:
    rows = max(2_000, int(size.share * asked["gb"] * 1e9 / BYTES_A_ROW) // (10 if size.tiny else 1))
    absent = left_out("pyarrow", "Vowpal Wabbit", "River")
    if "pyarrow" in absent:
        return {"left out": absent}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        check_room(folder, rows)
        write(folder, rows, for_vw="Vowpal Wabbit" not in absent)
        sizes = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
        return {
            "rows": rows,
            "columns": COLUMNS,
            "bytes": sizes,
            "runs": _runs(folder, rows, size, absent),
            "left out": absent,
        }


def check_room(folder: Path, rows: int) -> None:
    needed, free = int(ROOM * rows * BYTES_A_ROW), shutil.disk_usage(folder).free
    if free < needed:
        raise SystemExit(f"{folder} has {free / 1e9:.1f} GB free, needs {needed / 1e9:.1f}: set TMPDIR, or --gb to less")


def write(folder: Path, rows: int, *, for_vw: bool) -> None:
    """The same rows as CSV, Parquet and VW's text, batch by batch."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv
    import pyarrow.parquet

    rng = np.random.default_rng(0)
    weights = rng.standard_normal(COLUMNS) / np.sqrt(COLUMNS)
    schema = pa.schema([*((f"x{j}", pa.float64()) for j in range(COLUMNS)), (TARGET, pa.string())])
    with (
        pyarrow.csv.CSVWriter(folder / "rows.csv", schema) as table,
        pyarrow.parquet.ParquetWriter(folder / "rows.parquet", schema) as parquet,
        (folder / "rows.vw").open("wb") as text,
    ):
        for first in range(0, rows, BATCH):
            X = rng.standard_normal((min(BATCH, rows - first), COLUMNS)).round(4)
            positive = X @ weights + rng.logistic(size=len(X)) > 0
            columns = [pa.array(np.ascontiguousarray(column)) for column in X.T]
            batch = pa.table([*columns, pa.array(np.where(positive, "yes", "no"))], schema=schema)
            table.write_table(batch)
            parquet.write_table(batch)
            if for_vw:
                named = [pc.binary_join_element_wise(f"{j}", pc.cast(x, pa.string()), ":") for j, x in enumerate(columns)]
                label = pa.array(np.where(positive, "1 |", "-1 |"))
                text.write("\n".join(pc.binary_join_element_wise(label, *named, " ").to_pylist()).encode() + b"\n")
    if not for_vw:
        (folder / "rows.vw").unlink()


def _runs(folder: Path, rows: int, size: Size, absent: dict[str, str]) -> dict[str, dict[str, Any]]:
    csv, parquet, auto, river = folder / "rows.csv", folder / "rows.parquet", *_first(rows, size)
    tenth, own = rows // 10, [sys.executable, "-m", "onlinevi", "run"]
    run(*own, str(csv), "--target", TARGET, "--rule", "svb", "--rows", "0:1000")  # compiles, if nobody has
    run(*own, str(csv), "--target", TARGET, "--rows", "0:1000")
    found = {
        "onlinevi run --rule svb, CSV": _row(run(*own, str(csv), "--target", TARGET, "--rule", "svb"), rows),
        "onlinevi run --rule svb, Parquet": _row(run(*own, str(parquet), "--target", TARGET, "--rule", "svb"), rows),
        "onlinevi run --rule svb, CSV, first tenth": _row(
            run(*own, str(csv), "--target", TARGET, "--rule", "svb", "--rows", f"0:{tenth}"), tenth
        ),
        "onlinevi run, CSV, first rows": _row(run(*own, str(csv), "--target", TARGET, "--rows", f"0:{auto}"), auto),
        "reading and encoding alone, CSV": _row(_read(csv, rows), rows),
        "reading and encoding alone, Parquet": _row(_read(parquet, rows), rows),
    }
    if "Vowpal Wabbit" not in absent:
        vw = [sys.executable, "-m", "vowpalwabbit", "--quiet", "--loss_function", "logistic", "-d", str(folder / "rows.vw")]
        found["VW, its text"] = _row(run(*vw), rows)
    if "River" not in absent:
        found["River StandardScaler | LogisticRegression, CSV, first rows"] = _row(python(RIVER, csv, TARGET, river), river)
    return found


def _first(rows: int, size: Size) -> tuple[int, int]:
    return min(rows, size.rows(AUTO_ROWS)), min(rows, size.rows(RIVER_ROWS))


def _read(path: Path, rows: int) -> Ran:
    done = python(READ, path, TARGET)
    if int(done.out) != rows:
        raise AssertionError(f"{path.name}: {done.out} rows were read, {rows} written")
    return done


def _row(done: Ran, rows: int) -> dict[str, Any]:
    """Start-up included; it is a second or two."""
    return {
        "rows": rows,
        "seconds": round(done.seconds, 2),
        "rows/s": round(rows / done.seconds),
        "peak MB": round(done.peak_mb),
    }


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--gb", type=float, default=2.0, help="size of the CSV (default: 2)")


if __name__ == "__main__":
    main("end_to_end", __doc__, measure, options=_options, keep=lambda options: asked.update(gb=options.gb))
