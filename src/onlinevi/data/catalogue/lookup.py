"""Find a data set: in ``ONLINEVI_DATA``, in the user's cache, in an installed package, or at its public address."""

from __future__ import annotations

import hashlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from onlinevi.data.atomic import replace_file
from onlinevi.data.catalogue import storage
from onlinevi.data.catalogue.catalogue import CATALOGUE
from onlinevi.data.catalogue.entry import Dataset, DataUnavailable, Entry, Origin, Package, StoredFile, Table, WrongContent
from onlinevi.data.catalogue.storage import Folder, parsed_table, refuse_unless, values_sha256, verified
from onlinevi.engine import did_you_mean


@dataclass(frozen=True)
class Status:
    """Where a data set would come from. ``available`` says that it needs no download; the content is not read."""

    name: str
    available: bool
    place: str
    path: Path | None


def names() -> tuple[str, ...]:
    """The names of the data sets that ``load`` knows."""
    return tuple(CATALOGUE)


def status(name: str) -> Status:
    """Say where ``load`` would take a data set from, without a download.

    >>> status("toy")
    Status(name='toy', available=True, place='generated', path=None)
    """
    entry = _entry(name)
    if entry.draw is not None:
        return Status(name, True, "generated", None)
    stored = _in_folder(entry.file) if entry.file else None
    if stored is not None:
        return Status(name, True, stored[0].label, stored[1])
    if entry.package is not None and _installed(entry.package):
        return Status(name, True, entry.package.distribution, None)
    if entry.file is not None and entry.file.origins:
        return Status(name, False, entry.file.origins[0].url, None)
    return Status(name, False, "nowhere", None)


def path(name: str) -> Path | None:
    """The file that ``load`` would read; None where it is not here yet, is generated, or is inside a package."""
    return status(name).path


def fetch(name: str) -> Path | None:
    """Have the data set on this machine, its content checked, downloading it if needed; its path, if it is a file."""
    load(name)
    return path(name)


def load(name: str, *, seed: int | None = None) -> Dataset:
    """Load a data set, with the file's values in the file's order.

    ``seed`` draws the toy data, by default 0; all other data sets are the same for every seed.
    """
    entry = _entry(name)
    table, place = _table(entry, 0 if seed is None else seed)
    X = table.X.astype(np.float64, order="C") if isinstance(table.X, np.ndarray) else table.X
    y = table.y.astype(np.float64)
    return Dataset(name, X, y, entry.columns, f"{entry.source}; {place}", entry.licence)


def _table(entry: Entry, seed: int) -> tuple[Table, str]:
    if entry.draw is not None:
        return entry.draw(seed), f"seed {seed}"
    stored = _in_folder(entry.file) if entry.file else None
    if stored is None and entry.package is not None and _installed(entry.package):
        return _packaged(entry.package), f"the copy in {entry.package.distribution}"
    folder, file_path = stored or _downloaded(entry)
    assert entry.file is not None
    try:
        table = parsed_table(file_path.read_bytes(), entry.file, f"{file_path} (found in {folder.label})")
    except WrongContent as error:
        raise WrongContent(f"{error}; remove the file, or put the right one in its place") from error
    return table, f"{entry.file.name} in {folder.label}, content sha256 {entry.file.sha256}"


def _entry(name: str) -> Entry:
    if name not in CATALOGUE:
        raise ValueError(f"name={name!r}{did_you_mean(name, CATALOGUE)}: no such data set; there are {', '.join(CATALOGUE)}")
    return CATALOGUE[name]


def _in_folder(file: StoredFile) -> tuple[Folder, Path] | None:
    for folder in storage.searched():
        if folder.path is not None and (folder.path / file.name).is_file():
            return folder, folder.path / file.name
    return None


def _installed(package: Package) -> bool:
    return importlib.util.find_spec(package.module) is not None


def _packaged(package: Package) -> Table:
    table = package.read()
    refuse_unless(values_sha256(table), package.sha256, f"the copy in {package.distribution}")
    return table


def _downloaded(entry: Entry) -> tuple[Folder, Path]:
    """Download the file into the user's cache, from the first origin that gives the right content."""
    failures = []
    cache = storage.searched()[1]
    if entry.file is not None and cache.path is not None:
        from onlinevi.data.catalogue.download import Failed, one_at_a_time

        target = cache.path / entry.file.name
        for origin in entry.file.origins:
            try:
                with one_at_a_time(target.with_name(f"{target.name}.lock")):
                    if not target.is_file():  # another process may have brought it meanwhile
                        _bring(origin, entry.file, target)
                return cache, target
            except (Failed, WrongContent, OSError) as error:
                failures.append(str(error) if origin.url in str(error) else f"{origin.url}: {error}")
    raise DataUnavailable(_explain(entry, failures))


def _bring(origin: Origin, file: StoredFile, target: Path) -> None:
    from onlinevi.data.catalogue.download import download

    # Mirrors pack the same content differently, so what one began another cannot continue.
    part = target.with_name(f"{target.name}.{hashlib.sha256(origin.url.encode()).hexdigest()[:8]}.part")
    while True:
        continued = download(origin.url, part)
        try:
            kept = _converted(origin, file, part.read_bytes())
            break
        except WrongContent:
            part.unlink()
            # A beginning from an earlier time may be of another version: only a fresh copy tells.
            if not continued:
                raise
    target.parent.mkdir(parents=True, exist_ok=True)
    replace_file(target, lambda file: file.write(kept))
    part.unlink()


def _converted(origin: Origin, file: StoredFile, raw: bytes) -> bytes:
    try:
        kept = origin.convert(raw)
    except Exception as error:  # whatever a page that is not the file may do to a parser
        raise WrongContent(f"{origin.url}: refused, it is not in the expected format ({error})") from error
    verified(kept, file, origin.url)
    return kept


def _explain(entry: Entry, failures: list[str]) -> str:
    looked, remedies = [], []
    if entry.file is not None:
        searched = storage.searched()
        looked += [f"{label}: {f'no {entry.file.name} in {folder}' if folder else why}" for label, folder, why in searched]
        named, cache = searched
        home = named.path or cache.path or f"a folder, and set {storage.VARIABLE} to it"
        remedies.append(f"put {entry.file.name} into {home}")
    if entry.package is not None:
        looked.append(f"{entry.package.distribution}: not installed")
        remedies.append(entry.package.install)
    if entry.file is not None:
        looked += failures or ["download: no address known" if not entry.file.origins else f"download: needs {storage.EXTRA}"]
    lines = "".join(f"\n  {line}" for line in looked)
    return f"the data set {entry.name!r} cannot be had. Looked in:{lines}\nTo get it: {', or '.join(remedies)}."
