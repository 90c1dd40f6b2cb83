"""The container: a zip file of a JSON header and vectors of doubles, sealed by the sha256 of all its bytes.

Nothing is compressed, so what a file can claim is bounded by its own size, and is checked before memory is taken.
"""

from __future__ import annotations

import errno
import hashlib
import json
import re
import struct
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np

from onlinevi.engine import Vector
from onlinevi.learners.described import CheckpointError

FORMAT, VERSION = "onlinevi checkpoint", 2
HEADER = "header.json"
MAGIC = b"PK\x03\x04"
SEAL = re.compile(rb"sha256:([0-9a-f]{64})")
SEAL_SIZE, DIGEST_SIZE = 71, 64
"""The zip file's comment, its last bytes: "sha256:" and 64 digits, of all bytes before them."""
CHUNK = 1 << 20
PIECE = 256
"""Values of a list that are made into text at once."""
EPOCH = (1980, 1, 1, 0, 0, 0)
"""A fixed time, so that the same learner and state give the same bytes."""


FORGED = (
    *(zipfile.BadZipFile, struct.error, RuntimeError, TypeError, ValueError),
    *(ArithmeticError, AttributeError, EOFError, LookupError),
)
"""What a zip reader, a JSON reader and constructors may raise at what was made up."""


@contextmanager
def refusing() -> Iterator[None]:
    """Whatever goes wrong in reading a sealed file was written so by someone else: one kind of error for all of it."""
    try:
        yield
    except CheckpointError:
        raise
    except FORGED as error:
        raise _not_ours(error) from error
    except OSError as error:
        if error.errno != errno.EINVAL:  # the disk's failure, not a place before the start of the file
            raise
        raise _not_ours(error) from error


def _not_ours(error: Exception) -> CheckpointError:
    return CheckpointError(f"ovi.save() writes no such file ({type(error).__name__}: {error}); take a backup")


def write(file: BinaryIO, header: Mapping[str, Any], arrays: Mapping[str, Vector]) -> None:
    """Write a checkpoint into a new file. Arrays are written from where they lie."""
    table = {name: {"values": len(array), "sha256": hashlib.sha256(_raw(array)).hexdigest()} for name, array in arrays.items()}
    content = {"format": FORMAT, "version": VERSION, **header, "arrays": table}
    with zipfile.ZipFile(file, "w") as archive:
        archive.comment = b"sha256:" + b"0" * DIGEST_SIZE
        _add(archive, HEADER, as_json(content).encode("ascii"))
        for name, array in arrays.items():
            _add(archive, f"{name}.npy", npy_head(len(array)), _raw(array))
    size = file.tell()
    digest = _digest(file, size - DIGEST_SIZE)
    file.seek(size - DIGEST_SIZE)
    file.write(digest.encode("ascii"))


def as_json(value: Any) -> str:
    """The text that ``json.dumps`` gives, made in pieces: no other thread goes on while it makes one."""
    if isinstance(value, dict) and all(type(key) is str for key in value):
        return "{" + ", ".join(f"{json.dumps(key)}: {as_json(own)}" for key, own in value.items()) + "}"
    if type(value) is list and not {dict, list}.isdisjoint(map(type, value)):
        return "[" + ", ".join(map(as_json, value)) + "]"
    if type(value) is list and len(value) > PIECE:
        starts = range(0, len(value), PIECE)
        return "[" + ", ".join(as_json(value[start : start + PIECE])[1:-1] for start in starts) + "]"
    return json.dumps(value, allow_nan=False)


def _raw(array: Vector) -> memoryview:
    """The bytes of little-endian doubles; a copy only where the machine has others."""
    return np.ascontiguousarray(array, dtype="<f8").data.cast("B")


def _add(archive: zipfile.ZipFile, name: str, *parts: bytes | memoryview) -> None:
    member = zipfile.ZipInfo(name, EPOCH)
    member.create_system = 3  # whatever the machine: the same bytes
    member.file_size = sum(len(part) for part in parts)
    with archive.open(member, "w") as stream:
        for part in parts:
            for start in range(0, len(part), CHUNK):
                stream.write(part[start : start + CHUNK])


def npy_head(values: int) -> bytes:
    """What a .npy file has before a vector of doubles: ``numpy.load`` reads a checkpoint's arrays too."""
    about = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({values},), }}".encode("ascii")
    about += b" " * (-(len(about) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(about).to_bytes(2, "little") + about


def _digest(file: BinaryIO, size: int) -> str:
    """The sha256 of the first ``size`` bytes."""
    file.seek(0)
    digest = hashlib.sha256()
    while size > 0 and (chunk := file.read(min(size, CHUNK))):
        digest.update(chunk)
        size -= len(chunk)
    return digest.hexdigest()


class Archive:
    """A checkpoint that is open: its header, and its arrays by name. Every byte has been compared with the seal."""

    def __init__(self, file: BinaryIO) -> None:
        self.size = file.seek(0, 2)
        _check_seal(file, self.size)
        with refusing():
            self._zip = zipfile.ZipFile(file)
            members = self._zip.infolist()
            self._check_stored(members[:1])
            if not members or members[0].filename != HEADER:
                raise CheckpointError(f"its first part is not {HEADER}: it is some other file")
            self.header = _strict(self._zip.read(members[0]))
            _check_version(self.header)
            self._check_stored(members)
            self._members = {member.filename: member for member in members[1:]}
            self._sizes = {name: about["values"] for name, about in self.header["arrays"].items()}
            self._check_arrays(members[1:])
        self.unread = set(self._sizes)
        """The arrays that nobody has asked for yet."""

    def _check_stored(self, members: list[zipfile.ZipInfo]) -> None:
        if any(one.compress_type != zipfile.ZIP_STORED or one.file_size != one.compress_size for one in members):
            raise CheckpointError("parts of it are compressed: ovi.save() writes none such; take a backup")
        if sum(one.file_size for one in members) > self.size:
            raise CheckpointError(f"its parts claim to be larger than the file, which has {self.size} bytes")

    def _check_arrays(self, members: list[zipfile.ZipInfo]) -> None:
        if sorted(member.filename for member in members) != sorted(f"{name}.npy" for name in self._sizes):
            raise CheckpointError("its header names other arrays than it has")
        for name, values in self._sizes.items():
            claimed = f"array {name!r} claims {values!r} values"
            if type(values) is not int or not 0 <= values <= self.size // 8:
                raise CheckpointError(f"{claimed}, which a file of {self.size} bytes cannot hold")
            stored = self._members[f"{name}.npy"].file_size
            if stored != len(npy_head(values)) + 8 * values:
                raise CheckpointError(f"{claimed}, but takes {stored} bytes")

    def length(self, name: str) -> int:
        """How many values an array has; none where there is no such array."""
        return int(self._sizes.get(name, 0))

    def fill(self, name: str, out: Vector) -> None:
        """Read an array into a vector of its length, once; one of no values need not be in the file."""
        if self.length(name) != len(out):
            raise CheckpointError(f"array {name!r} has {self.length(name)} values, its learner needs {len(out)}")
        if name not in self._sizes:
            return
        self.unread.remove(name)
        raw, digest = out.data.cast("B"), hashlib.sha256()
        with refusing(), self._zip.open(self._members[f"{name}.npy"]) as stream:
            head = npy_head(len(out))
            if stream.read(len(head)) != head:
                raise CheckpointError(f"array {name!r} is not one of little-endian doubles")
            for start in range(0, len(raw), CHUNK):
                chunk = stream.read(min(CHUNK, len(raw) - start))
                raw[start : start + CHUNK] = chunk
                digest.update(chunk)
        if digest.hexdigest() != self.header["arrays"][name]["sha256"]:
            raise CheckpointError(f"array {name!r} has another sha256 than its header says")
        if sys.byteorder == "big":
            out.byteswap(inplace=True)


def _check_seal(file: BinaryIO, size: int) -> None:
    """Refuse a file that is no checkpoint, was cut short, or has a byte that was not written."""
    file.seek(0)
    start = file.read(len(MAGIC))
    if start != MAGIC:
        raise CheckpointError(f"it begins with {start!r}, a checkpoint with {MAGIC!r}: it is some other file")
    file.seek(max(0, size - SEAL_SIZE))
    seal = SEAL.fullmatch(file.read(SEAL_SIZE))
    if seal is None:
        raise CheckpointError("it does not end in a seal: it was cut short, or ovi.save() did not write it; take a backup")
    if _digest(file, size - DIGEST_SIZE).encode("ascii") != seal[1]:
        raise CheckpointError("its bytes are not those that were sealed: it was altered or damaged; take a backup")


def _check_version(header: Any) -> None:
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise CheckpointError(f"its header does not say {FORMAT!r}: it is some other file")
    version = header.get("version")
    if type(version) is not int or version < 1:
        raise CheckpointError(f"its format version is {version!r}: needs a whole number from 1 on")
    if version > VERSION:
        raise CheckpointError(
            f"it has format version {version}, by onlinevi {header.get('package')}; this one reads up to version {VERSION}: "
            "upgrade onlinevi"
        )


def _strict(raw: bytes) -> Any:
    """JSON, without the NaN and Infinity that Python adds to it."""

    def refuse(constant: str) -> None:
        raise CheckpointError(f"its header holds {constant}, which is no JSON")

    return json.loads(raw, parse_constant=refuse)
