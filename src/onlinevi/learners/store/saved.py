"""Save a learner with its state, and go on later as if nothing had been in between: what people call."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from onlinevi.engine import __version__
from onlinevi.learners.calibration import Calibrated, Calibration
from onlinevi.learners.default.learner import Auto
from onlinevi.learners.default.outcome import AutoState
from onlinevi.learners.inputs.inputs import Inputs
from onlinevi.learners.inputs.state import InputState
from onlinevi.learners.linear import Linear
from onlinevi.learners.one_vs_rest.learner import Classes
from onlinevi.learners.one_vs_rest.outcome import ClassesState
from onlinevi.learners.pool.aggregate import Aggregate
from onlinevi.learners.pool.mixer import AggregateState
from onlinevi.learners.pool.played import Played
from onlinevi.learners.prepare import Prepared, PreparedState
from onlinevi.learners.state import State
from onlinevi.learners.store import format as container
from onlinevi.learners.store.atomic import replace_file
from onlinevi.learners.store.classes import describe_classes, restore_classes
from onlinevi.learners.store.configs import Decoder, encode
from onlinevi.learners.store.format import Archive, CheckpointError, refusing
from onlinevi.learners.store.pools import describe_auto, describe_pool, restore_auto, restore_pool
from onlinevi.learners.store.prepared import describe_prepared, restore_prepared
from onlinevi.learners.store.states import (
    describe_inputs,
    describe_linear,
    describe_residuals,
    restore_inputs,
    restore_linear,
    restore_residuals,
)
from onlinevi.learners.trace import Trace

AnyPath: TypeAlias = str | os.PathLike[str]


class Kind(NamedTuple):
    """A learner, its state, and how that becomes facts and arrays and is made from them."""

    learner: type
    state: type
    describe: Callable[..., Any]
    restore: Callable[..., Any]


KINDS = (
    Kind(Linear, State, describe_linear, restore_linear),
    Kind(Auto, AutoState, describe_auto, restore_auto),
    Kind(Prepared, PreparedState, describe_prepared, restore_prepared),
    Kind(Classes, ClassesState, describe_classes, restore_classes),
    Kind(Aggregate, AggregateState, describe_pool, restore_pool),
    Kind(Inputs, InputState, describe_inputs, restore_inputs),
    Kind(Calibration, Calibrated, describe_residuals, restore_residuals),
)


class Saved(NamedTuple):
    """What a checkpoint holds."""

    learner: Any
    state: Any
    extra: Any
    version: str
    """Of the onlinevi that wrote it."""


def save(path: AnyPath, learner: Any, state: Any, *, extra: Any = None) -> None:
    """Write a learner and its state, or a trace's, to one file, which replaces one of that name as a whole.

    ``learner`` is a ``Linear``, ``Auto``, ``ewa.Aggregate``, ``Inputs`` or ``Calibration``; ``extra`` is any JSON value.

    >>> import os, tempfile, onlinevi as ovi
    >>> learner = ovi.Linear(loss=ovi.Squared(), rule=ovi.NGVI())
    >>> state, step = learner.update(learner.init(2), [1.0, 0.0], 3.0)
    >>> path = os.path.join(tempfile.mkdtemp(), "model.ovi")
    >>> ovi.save(path, learner, state, extra={"columns": ["size", "age"]})
    >>> saved = ovi.load(path)
    >>> saved.learner == learner, saved.state == state, saved.extra["columns"][0]
    (True, True, 'size')
    """
    if isinstance(state, Trace | Played):
        state = state.state
    kind = _kind(learner)
    if not isinstance(state, kind.state):
        raise TypeError(f"state={state!r}: a {kind.learner.__name__} is saved with its {kind.state.__name__}, or a trace")
    facts, arrays = kind.describe(learner, state, "")
    header = {"package": __version__, "learner": encode(learner), "state": facts, "extra": _plain(extra)}
    replace_file(Path(path), lambda file: container.write(file, header, arrays))


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


def _restored(archive: Archive) -> Saved:
    header = archive.header
    learner = Decoder(archive.size).decode(header["learner"])
    state = _kind(learner).restore(learner, header["state"], archive, "")
    if archive.unread:
        raise CheckpointError(
            f"it has arrays that this version does not know, such as {min(archive.unread)!r}: upgrade onlinevi"
        )
    return Saved(learner, state, header["extra"], str(header["package"]))


def _kind(learner: Any) -> Kind:
    for kind in KINDS:
        if type(learner) is kind.learner:
            return kind
    names = ", ".join(kind.learner.__name__ for kind in KINDS)
    raise TypeError(f"learner={learner!r}: a checkpoint holds one of {names}")


def _plain(extra: Any) -> Any:
    """The value, if JSON gives it back as it was."""
    try:
        again = json.loads(json.dumps(extra, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(
            f"extra is no JSON value ({error}): use dicts, lists, text, finite numbers, True, False, None"
        ) from error
    if again != extra:
        raise TypeError("extra does not come back from JSON as it was: use lists instead of tuples, and text as keys")
    return extra
