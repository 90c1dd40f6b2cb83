"""Features and labels, parsed from a file's content or drawn from a seed; and what public addresses publish, as those files.

The content of a file is known by its checksum, so nothing is checked again.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinevi.data.catalogue.entry import Table
from onlinevi.engine import Vector

TOY_ROWS = 10_000
COVER_COLUMNS = 55
LODGEPOLE_PINE = 2
A9A_FEATURES = 123
BOSTON_PREAMBLE = 22
BOSTON_COLUMNS = 14
CALIFORNIA_DECIMALS = (2, 2, 0, 0, 0, 0, 0, 4, 0)


def toy(seed: int) -> Table:
    """Two Gaussian classes, drawn: P(y = +1) = 2/3; x given + is N((1, 1), [[1, 1], [1, 3]]), given − it is N((−1, −1), I)."""
    rng = np.random.default_rng(seed)
    positive = rng.random(TOY_ROWS) < 2.0 / 3.0
    noise = rng.standard_normal((TOY_ROWS, 2))
    factor = np.linalg.cholesky(np.array([[1.0, 1.0], [1.0, 3.0]]))
    X = np.where(positive[:, None], 1.0 + noise @ factor.T, noise - 1.0)
    return Table(X, np.where(positive, 1.0, -1.0))


def pima(content: bytes) -> Table:
    """Pima Indians Diabetes: outcome 1 is +1."""
    values = _numbers(content)
    return Table(values[:, :-1], _signs(values[:, -1] == 1.0))


def housing(content: bytes) -> Table:
    """Boston and California: the last column is the price to predict."""
    values = _numbers(content)
    return Table(values[:, :-1], values[:, -1])


def electricity(content: bytes) -> Table:
    """Electricity: UP is +1, DOWN is −1."""
    values = _numbers(content.replace(b",UP", b",1").replace(b",DOWN", b",-1"))
    return Table(values[:, :-1], values[:, -1])


def cover(content: bytes) -> Table:
    """Cover Type: class 2 is +1. All values fit 16 bits; so parsed, they take a tenth of the time that floats take."""
    values = np.fromstring(content.replace(b"\n", b","), dtype=np.int16, sep=",").reshape(-1, COVER_COLUMNS)
    return Table(np.ascontiguousarray(values[:, :-1]), _signs(values[:, -1] == LODGEPOLE_PINE))


def a9a(content: bytes) -> Table:
    """Adult: rows ``label index:value index:value …`` with indices from 1, as a CSR matrix."""
    from scipy.sparse import csr_array

    counts = np.array([line.count(b":") for line in content.splitlines()])
    starts = np.concatenate([[0], np.cumsum(counts)])
    numbers = np.fromstring(content.replace(b":", b" "), sep=" ")
    labels = 2 * starts[:-1] + np.arange(len(counts))
    pairs = np.delete(numbers, labels).reshape(-1, 2)
    X = csr_array((pairs[:, 1].copy(), pairs[:, 0].astype(np.int32) - 1, starts), shape=(len(counts), A9A_FEATURES))
    return Table(X, numbers[labels])


def _numbers(content: bytes) -> Vector:
    return np.loadtxt(content.decode().splitlines(), delimiter=",", skiprows=1)


def _signs(positive: NDArray[np.bool_]) -> NDArray[Any]:
    return np.where(positive, np.int8(1), np.int8(-1))


def add_header(columns: Sequence[str]) -> Callable[[bytes], bytes]:
    """The conversion of a CSV published without the names of its columns."""

    def convert(raw: bytes) -> bytes:
        return _lines([",".join(columns), *raw.decode().split()])

    return convert


def statlib_boston(columns: Sequence[str]) -> Callable[[bytes], bytes]:
    """The conversion of StatLib's page, which prints each row on two lines, in columns of blanks, below a description."""

    def convert(raw: bytes) -> bytes:
        cells = " ".join(raw.decode().splitlines()[BOSTON_PREAMBLE:]).split()
        rows = [cells[start : start + BOSTON_COLUMNS] for start in range(0, len(cells), BOSTON_COLUMNS)]
        return _lines(",".join(row) for row in [columns, *rows])

    return convert


def california_archive(columns: Sequence[str]) -> Callable[[bytes], bytes]:
    """The conversion of the archive that scikit-learn downloads: a CSV of six decimals, without the names of its columns."""

    def convert(raw: bytes) -> bytes:
        with tarfile.open(fileobj=io.BytesIO(raw), mode="r:gz") as archive:
            member = archive.extractfile("CaliforniaHousing/cal_housing.data")
            assert member is not None, "the member is a file"
            rows = member.read().decode().split()
        cells = (zip(row.split(","), CALIFORNIA_DECIMALS, strict=True) for row in rows)
        return _lines([",".join(columns), *(",".join(f"{float(cell):.{digits}f}" for cell, digits in row) for row in cells)])

    return convert


def _lines(lines: Iterable[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode()
