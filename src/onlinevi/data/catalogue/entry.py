"""What the catalogue says of a data set, what loading gives, and how it is refused. No logic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from onlinevi.engine import Vector


class DataUnavailable(LookupError):
    """A data set that cannot be had: the message says where it was looked for, and how to get it."""


class WrongContent(DataUnavailable):
    """A copy that was found but refused: its checksum is not the expected one."""


class Table(NamedTuple):
    """Features and labels as they were parsed, in any number type."""

    X: Any
    y: Any


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set in the file's order, with the file's values: nothing is scaled, permuted or dropped."""

    name: str
    X: Any
    """Rows × features: a C-ordered float array, or a CSR matrix where the file is sparse."""
    y: Vector
    """±1 for two classes, else the number to predict."""
    names: tuple[str, ...]
    """One a feature."""
    provenance: str
    licence: str


def unchanged(raw: bytes) -> bytes:
    """The conversion of an origin that publishes the very file."""
    return raw


@dataclass(frozen=True)
class Origin:
    """A public address, and how its bytes become the file that is kept. A wrong guess is refused by the file's checksum."""

    url: str
    convert: Callable[[bytes], bytes] = unchanged


@dataclass(frozen=True)
class StoredFile:
    """A file that is looked for by its name and trusted for its content."""

    name: str
    sha256: str
    """Of the content, unpacked: two mirrors may compress the same content into different bytes."""
    parse: Callable[[bytes], Table]
    origins: tuple[Origin, ...] = ()
    keep_parsed: bool = False
    """Whether parsing is slow enough to keep its result."""


@dataclass(frozen=True)
class Package:
    """An installed package that carries a copy."""

    module: str
    distribution: str
    install: str
    read: Callable[[], Table]
    sha256: str
    """Of the values, since every package keeps them in a format of its own."""


@dataclass(frozen=True)
class Entry:
    """One data set: drawn from a seed, or kept in a file, in a package, or in both."""

    name: str
    columns: tuple[str, ...]
    source: str
    licence: str
    draw: Callable[[int], Table] | None = None
    file: StoredFile | None = None
    package: Package | None = None
