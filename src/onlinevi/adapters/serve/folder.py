"""A folder of models: each in a folder of its own, opened at the start, made, listed and archived."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from pathlib import Path

from onlinevi.adapters.serve.history import JOURNAL, SNAPSHOTS, History
from onlinevi.adapters.serve.journal import Connect, connect
from onlinevi.adapters.serve.keeper import Keeper, Limits
from onlinevi.adapters.serve.requests import NAME, Refused
from onlinevi.data import sync_directory
from onlinevi.learners import CheckpointError
from onlinevi.runs import Settings, unpack_job

ARCHIVE = ".archive"
LOCK = ".lock"
NEW = ".new-"


class Folder:
    """The models of a folder, by their names. One process at a time has it."""

    def __init__(self, path: Path, limits: Limits | None = None, connection: Connect = connect) -> None:
        self.path, self.limits, self._connection = path, limits or Limits(), connection
        try:
            path.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise ValueError(f"{path} is a file: the models need a folder") from None
        self._lock_file = _locked(path / LOCK)
        self._lock = threading.Lock()
        self.models: dict[str, Keeper] = {}
        """Never changed in place: who reads it has one that stays."""
        self.stopping = False
        """Whether the service is about to end: answers without an end stop then."""
        for left in path.glob(f"{NEW}*"):  # a model that was never made as a whole
            shutil.rmtree(left, ignore_errors=True)
        for own in sorted(path.iterdir()):
            if NAME.fullmatch(own.name) and any((own / part).exists() for part in (JOURNAL, SNAPSHOTS)):
                self.models[own.name] = Keeper(own, self.limits, connection)

    def __getitem__(self, name: str) -> Keeper:
        try:
            return self.models[name]
        except KeyError:
            raise Refused(404, f"there is no model {name[:64]!r}") from None

    def make(self, name: str, settings: Settings | None = None, model: bytes | None = None) -> Keeper:
        """A new model: by settings, or going on from what a model file holds."""
        if model is not None:
            try:
                settings = unpack_job(model, "the file").settings
            except CheckpointError as error:
                raise Refused(422, str(error)) from None
        assert settings is not None
        with self._lock:
            if name in self.models or (self.path / name).exists():
                raise Refused(409, f"there is a model {name!r} already")
            made = Path(tempfile.mkdtemp(prefix=NEW, dir=self.path))
            try:
                History.begin(made, settings, model, connection=self._connection)
                made.rename(self.path / name)  # whole, or not there
                sync_directory(self.path)
            except BaseException:
                shutil.rmtree(made, ignore_errors=True)
                raise
            keeper = Keeper(self.path / name, self.limits, self._connection)
            self.models = self.models | {name: keeper}
            return keeper

    def archive(self, name: str) -> Path:
        """Take a model out of service; its files stay, in the archive."""
        with self._lock:
            keeper = self[name]
            self.models = {own: one for own, one in self.models.items() if own != name}
        keeper.close()
        place = self.path / ARCHIVE / f"{name}-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{time.time_ns() % 10**9:09d}"
        place.parent.mkdir(exist_ok=True)
        keeper.folder.rename(place)
        sync_directory(self.path)
        return place

    def close(self) -> None:
        """Let every model end what it was asked for, and write a snapshot."""
        for keeper in self.models.values():
            keeper.close()
        self._lock_file.close()


def _locked(path: Path):  # type: ignore[no-untyped-def]
    """The file that says that the folder is in use; refused where another process has it."""
    file = path.open("w")
    try:
        import fcntl
    except ImportError:  # a system without such locks
        return file
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise ValueError(f"{path.parent} is served by another process: stop it first, or name another folder") from None
    return file
