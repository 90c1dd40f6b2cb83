"""Learners to save, what their states hold, and checkpoints as someone would forge them."""

from __future__ import annotations

import hashlib
import io
import json
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from helpers.catalogue import stream

import onlinevi as ovi
from onlinevi import ewa
from onlinevi.learners.store import format as container
from onlinevi.learners.store import saved

SAMPLES = Path(__file__).parents[1] / "samples"

LINEARS = [
    ovi.Linear(ovi.Squared(), ovi.NGVI(), ovi.FullCovariance(box=ovi.Box(mean=(-5.0, np.inf), std=None))),
    ovi.Linear(ovi.Squared(), ovi.Implicit(), ovi.LowRank(rank=2, prior_std=0.5)),
    ovi.Linear(ovi.Logistic(), ovi.NGVI(), discount=0.97),
    ovi.Linear(ovi.Squared(robust=5.0, ridge=0.1), ovi.NGVI(ovi.PerSqrt(1.0)), average=False),
    ovi.Linear(ovi.Hinge(), ovi.SVA(ovi.Adaptive())),
    ovi.Linear(ovi.Hinge(), ovi.OGA(ovi.PerHorizon(0.5)), ovi.Point(box=None), missing=True),
]
AUTOS = [ovi.Auto(), ovi.Auto(loss=ovi.Squared(), coverage=0.8), ovi.Auto(loss=ovi.Pinball(0.9))]
POOL = ovi.Pool([ovi.Linear(ovi.Absolute(), ovi.SVA(rate)) for rate in (0.1, 0.5)], rate=ewa.AdaHedge())


def begun(one: Any, dim: int = 5) -> Any:
    return one.init(dim) if isinstance(one, ovi.Auto) else one.init(dim, 60)


def rows_for(one: Any) -> tuple[np.ndarray, np.ndarray]:
    X, y = stream(one.learners[0].loss if isinstance(one, ovi.Pool) else one.loss)
    if getattr(one, "missing", False):
        X = np.where(np.random.default_rng(1).random(X.shape) < 0.2, np.nan, X)
    return X, y


def load_bytes(raw: bytes | bytearray) -> Any:
    archive = container.Archive(io.BytesIO(raw))
    with container.refusing():
        return saved._restored(archive)


def sealed(raw: bytes | bytearray) -> bytes:
    body = bytes(raw[: -container.DIGEST_SIZE])
    return body + hashlib.sha256(body).hexdigest().encode()


def rewrite(
    path: Path,
    raw: bytes,
    edit: Callable[[dict[str, Any]], object],
    *,
    drop: set[str] = frozenset(),  # type: ignore[assignment]
    add: dict[str, np.ndarray] | None = None,
    table: Callable[[dict[str, Any]], object] = lambda table: None,
    **options: Any,
) -> None:
    """A checkpoint with another header, as someone would forge it: every digest is right."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        header = json.loads(archive.read("header.json"))
        arrays = {one[:-4]: np.load(io.BytesIO(archive.read(one))) for one in archive.namelist()[1:] if one[:-4] not in drop}
    arrays |= add or {}
    header["arrays"] = {
        one: {"values": len(array), "sha256": hashlib.sha256(array.tobytes()).hexdigest()} for one, array in arrays.items()
    }
    edit(header)
    table(header["arrays"])
    with zipfile.ZipFile(path, "w", **options) as archive:
        archive.comment = b"sha256:" + b"0" * 64
        archive.writestr("header.json", json.dumps(header))
        for one, array in arrays.items():
            archive.writestr(f"{one}.npy", container.npy_head(len(array)) + array.tobytes())
    path.write_bytes(sealed(path.read_bytes()))


@contextmanager
def little_memory(most: int = 4_000_000) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in a JSON value."""
    own = list(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else [])
    return [(value, key) for key, _ in own] + [place for _, inner in own for place in places(inner)]
