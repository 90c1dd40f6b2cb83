"""What public addresses publish, turned into the files of the catalogue: the same numbers in another layout."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterable, Sequence

BOSTON_PREAMBLE = 22
BOSTON_COLUMNS = 14
CALIFORNIA_DECIMALS = (2, 2, 0, 0, 0, 0, 0, 4, 0)


def add_header(columns: Sequence[str]) -> Callable[[bytes], bytes]:
    """For a CSV published without the names of its columns."""

    def convert(raw: bytes) -> bytes:
        return _lines([",".join(columns), *raw.decode().split()])

    return convert


def statlib_boston(columns: Sequence[str]) -> Callable[[bytes], bytes]:
    """StatLib prints each row on two lines, in columns of blanks, below a description."""

    def convert(raw: bytes) -> bytes:
        cells = " ".join(raw.decode().splitlines()[BOSTON_PREAMBLE:]).split()
        rows = [cells[start : start + BOSTON_COLUMNS] for start in range(0, len(cells), BOSTON_COLUMNS)]
        return _lines(",".join(row) for row in [columns, *rows])

    return convert


def california_archive(columns: Sequence[str]) -> Callable[[bytes], bytes]:
    """The archive that scikit-learn downloads: a CSV of six decimals, without the names of its columns."""

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
