"""The content of a file, unpacked and known by its checksum."""

from __future__ import annotations

import gzip
import hashlib
import io
import zipfile
import zlib

from onlinevi.data.catalogue.entry import StoredFile, Table, WrongContent

GZIP_MAGIC = b"\x1f\x8b"
ZIP_MAGIC = b"PK\x03\x04"


def verified(raw: bytes, file: StoredFile, place: str) -> bytes:
    """The content of these bytes, refused unless it is the one that the catalogue knows."""
    try:
        content = unpacked(raw)
    except (OSError, EOFError, ValueError, zlib.error, zipfile.BadZipFile) as error:
        raise WrongContent(f"{place}: refused, it cannot be unpacked ({error})") from error
    refuse_unless(hashlib.sha256(content).hexdigest(), file.sha256, place)
    return content


def unpacked(raw: bytes) -> bytes:
    """Gzip and one-file zip are known by their first bytes; all else is the content itself."""
    if raw.startswith(GZIP_MAGIC):
        return gzip.decompress(raw)
    if raw.startswith(ZIP_MAGIC):
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            (member,) = archive.namelist()
            return archive.read(member)
    return raw


def values_sha256(table: Table) -> str:
    """Of the features and labels as little-endian doubles, so that it does not depend on how a package keeps them."""
    digest = hashlib.sha256()
    for part in table:
        digest.update(part.astype("<f8").tobytes())
    return digest.hexdigest()


def refuse_unless(came: str, expected: str, place: str) -> None:
    if came != expected:
        raise WrongContent(f"{place}: refused, its content has sha256 {came}, expected {expected}")
