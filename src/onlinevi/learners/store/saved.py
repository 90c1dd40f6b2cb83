"""Save a learner with its state, and go on later as if nothing had been in between: what people call."""

from __future__ import annotations

import io
import json
import math
import os
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from onlinevi.data import replace_file
from onlinevi.engine import Vector, __version__
from onlinevi.learners.base import Learner
from onlinevi.learners.calibration import Calibration
from onlinevi.learners.columns import keeping, names_of
from onlinevi.learners.described import CheckpointError, Facts, Storable
from onlinevi.learners.inputs import Inputs
from onlinevi.learners.set_calibration import SetCalibration
from onlinevi.learners.store import format as container
from onlinevi.learners.store import version_1
from onlinevi.learners.store.configs import Decoder, encode
from onlinevi.learners.store.format import Archive, refusing

AnyPath: TypeAlias = str | os.PathLike[str]
KEPT = (Learner, Inputs, Calibration, SetCalibration, Storable)
"""What a file can be about."""


class Saved(NamedTuple):
    """What a checkpoint holds."""

    learner: Any
    state: Any
    extra: Any
    version: str
    """Of the onlinevi that wrote it."""


def save(path: AnyPath, learner: Any, state: Any, *, extra: Any = None) -> None:
    """Write a learner and its state, or a trace's, to one file, which replaces one of that name as a whole.

    ``learner`` is any learner, alone or composed, ``Inputs``, ``Calibration`` or ``SetCalibration``; ``extra`` is any JSON
    value.

    >>> import os, tempfile, onlinevi as ovi
    >>> learner = ovi.Linear(loss=ovi.Squared(), rule=ovi.NGVI())
    >>> state, step = learner.update(learner.init(2), [1.0, 0.0], 3.0)
    >>> path = os.path.join(tempfile.mkdtemp(), "model.ovi")
    >>> ovi.save(path, learner, state, extra={"columns": ["size", "age"]})
    >>> saved = ovi.load(path)
    >>> saved.learner == learner, saved.state == state, saved.extra["columns"][0]
    (True, True, 'size')
    """
    header, arrays = _content(learner, state, extra)
    replace_file(Path(path), lambda file: container.write(file, header, arrays))


def pack(learner: Any, state: Any, *, extra: Any = None) -> bytes:
    """The bytes that ``save`` would write: what goes from one process to another. The same state gives the same bytes."""
    header, arrays = _content(learner, state, extra)
    file = io.BytesIO()
    container.write(file, header, arrays)
    return file.getvalue()


def _content(learner: Any, state: Any, extra: Any) -> tuple[Facts, dict[str, Vector]]:
    if not isinstance(learner, KEPT):
        raise TypeError(f"learner={learner!r}: a checkpoint holds a learner, Inputs, Calibration or SetCalibration")
    state = getattr(state, "state", state)  # that of a trace
    config = encode(learner)
    try:
        facts, arrays = take_apart(learner, state)
    except (AttributeError, IndexError) as error:
        raise TypeError(f"state={state!r}: a {type(learner).__name__} is saved with its state, or a trace") from error
    names = {"columns": list(names_of(state))} if names_of(state) else {}
    return {"package": __version__, "learner": config, "state": facts, "extra": _plain(extra), **names}, arrays


def take_apart(learner: Any, state: Any, at: str = "") -> tuple[Facts, dict[str, Vector]]:
    """A state as JSON, and its vectors by name, those of the learners inside among them."""
    described = learner.describe(state)
    node: Facts = {"facts": described.facts}
    arrays = {at + name: array for name, array in described.arrays.items()}
    if described.configs:
        node["configs"] = {name: encode(config) for name, config in described.configs.items()}
    for name, (one, own) in described.parts.items():
        inside, its_arrays = take_apart(one, own, f"{at}{name}/")
        node.setdefault("parts", {})[name] = inside
        arrays |= its_arrays
    return node, arrays


class StoredState:
    """A state in a file, to be put together by its learner."""

    def __init__(self, node: Facts, archive: Archive, at: str = "") -> None:
        self._node, self._archive = node, archive
        self._at = node.get("at", at)  # files of version 1 say where
        self.facts: Facts = node["facts"]

    def length(self, name: str) -> int:
        return self._archive.length(self._at + name)

    def fill(self, name: str, vector: Vector) -> None:
        self._archive.fill(self._at + name, vector)

    def part(self, name: str, learner: Any) -> Any:
        return learner.restore(StoredState(self._node["parts"][name], self._archive, f"{self._at}{name}/"))

    def config(self, name: str) -> Any:
        return Decoder(self._archive.size).decode(self._node["configs"][name])


def load(path: AnyPath) -> Saved:
    """Read a file that ``save`` wrote: ``Saved(learner, state, extra, version)``. Any other file is refused.

    Nothing in a file is run. Learning goes on with the same bits as if it had not been interrupted.
    """
    try:
        with Path(path).open("rb") as file:
            archive = Archive(file)
            with refusing():
                return _restored(archive)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from error
    except IsADirectoryError as error:
        raise CheckpointError(f"{path}: a directory; name the model in it, such as {Path(path) / 'model.ovi'}") from error


def unpack(content: bytes) -> Saved:
    """What ``pack`` was given; any other bytes are refused."""
    archive = Archive(io.BytesIO(content))
    with refusing():
        return _restored(archive)


def _restored(archive: Archive) -> Saved:
    header = archive.header
    config, node = header["learner"], header["state"]
    if header["version"] == 1:
        config, node = version_1.upgraded(config, node)
    learner = Decoder(archive.size).decode(config)
    if not (isinstance(learner, KEPT) and hasattr(learner, "restore")):
        raise CheckpointError(f"it holds {learner!r}, which does not learn")
    state = learner.restore(StoredState(node, archive))
    if archive.unread:
        raise CheckpointError(
            f"it has arrays that this version does not know, such as {min(archive.unread)!r}: upgrade onlinevi"
        )
    names = header.get("columns", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise CheckpointError(f"the names of its columns are {names!r}: needs a list of texts")
    return Saved(learner, keeping(state, tuple(names)), header["extra"], str(header["package"]))


def _comes_back(value: Any) -> bool:
    """Whether JSON surely gives a value back as it was. To try it out would keep other threads waiting."""
    kind = type(value)
    if kind is dict:
        return all(type(key) is str for key in value) and all(map(_comes_back, value.values()))
    if kind is list:
        return math.isfinite(sum(value)) if set(map(type, value)) == {float} else all(map(_comes_back, value))
    if kind is float:
        return math.isfinite(value)
    return value is None or kind in (str, bool) or (kind is int and abs(value) < 1 << 63)


def _plain(extra: Any) -> Any:
    """The value, if JSON gives it back as it was."""
    try:
        if _comes_back(extra):
            return extra
        again = json.loads(json.dumps(extra, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(
            f"extra is no JSON value ({error}): use dicts, lists, text, finite numbers, True, False, None"
        ) from error
    if again != extra:
        raise TypeError("extra does not come back from JSON as it was: use lists instead of tuples, and text as keys")
    return extra
