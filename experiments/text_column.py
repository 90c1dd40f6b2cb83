"""The table of docs/files.md: what a column of texts that say nothing costs the columns beside it.

    python experiments/text_column.py [--rows 3000]

Each data set is written to a CSV file as it is, with a column of texts that never come twice, and with a column of 500 names
drawn at random. ``onlinevi run`` learns from the three; of numbers the mean squared error is told, beside that of the first.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from onlinevi import datasets

Stream = tuple[list[list[object]], list[object]]
"""Rows and labels."""


def of_numbers(name: str) -> Callable[[], Stream]:
    def stream() -> Stream:
        data = datasets.load(name)
        return np.asarray(data.X).tolist(), np.asarray(data.y).tolist()

    return stream


def cover_with_names() -> Stream:
    """Cover Type with its areas and soils as names, in a random order."""
    data = datasets.load("cover")
    order = np.random.default_rng(0).permutation(len(data.y))[:20_000]
    X, y = np.asarray(data.X)[order], np.asarray(data.y)[order]
    areas, soils = (np.argmax(X[:, part], axis=1).tolist() for part in (slice(10, 14), slice(14, 54)))
    rows = zip(X[:, :10].tolist(), areas, soils, strict=True)
    return [[*numbers, f"area {area}", f"soil {soil}"] for numbers, area, soil in rows], y.tolist()


STREAMS: Mapping[str, Callable[[], Stream]] = {
    "Pima": of_numbers("pima"),
    "Breast Cancer": of_numbers("breast"),
    "Electricity": of_numbers("electricity"),
    "Cover Type, areas and soils as names": cover_with_names,
    "Boston": of_numbers("boston"),
    "California": of_numbers("california"),
}


def unique(count: int) -> list[str]:
    """Texts that never come twice."""
    return [f"note-{i} word{i}" for i in range(count)]


def recurring(count: int) -> list[str]:
    """Names that come again, and have nothing to do with the labels."""
    return [f"name-{k}" for k in np.random.default_rng(1).integers(500, size=count).tolist()]


def write(path: Path, stream: Stream, texts: Sequence[str] | None = None) -> None:
    """A CSV file of a stream, with a column of texts where there are some."""
    rows, labels = stream
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow([*(f"x{j}" for j in range(len(rows[0]))), *([] if texts is None else ["note"]), "label"])
        for i, (row, label) in enumerate(zip(rows, labels, strict=True)):
            out.writerow([*row, *([] if texts is None else [texts[i]]), label])


def run(path: Path) -> tuple[float | None, float]:
    """The part of the classes that was right, if there are classes, and the average loss."""
    command = [sys.executable, "-m", "onlinevi", "run", str(path), "--target", "label", "--json", "--no-hindsight"]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return None if told["error_rate"] is None else 1.0 - told["error_rate"], told["average_loss"]


def told(name: str, most: int) -> str:
    rows, labels = STREAMS[name]()
    stream = rows[:most], labels[:most]
    count, cells = len(stream[1]), []
    with tempfile.TemporaryDirectory() as folder:
        plain = 0.0
        for texts in (None, unique(count), recurring(count)):
            write(Path(folder, "rows.csv"), stream, texts)
            right, loss = run(Path(folder, "rows.csv"))
            plain = plain or loss
            cells.append(f"{loss / plain:.3f}" if right is None else f"{100.0 * right:.1f} %")
    return f"| {name} | {count:,} | {' | '.join(cells)} |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=3_000, help="the most rows of a data set")
    most = parser.parse_args().rows
    print("| data | rows | as it is | unique texts | 500 names |\n|---|---|---|---|---|")
    for name in STREAMS:
        print(told(name, most), flush=True)
