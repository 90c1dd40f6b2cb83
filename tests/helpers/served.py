"""Models in service for tests: folders, rows, and a real server on a free port."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from onlinevi.adapters.serve import Folder, Limits, create_app
from onlinevi.adapters.serve.access import Tokens
from onlinevi.adapters.serve.history import Asked, History
from onlinevi.adapters.serve.lines import as_line
from onlinevi.adapters.serve.server import Server, listen
from onlinevi.client import Client
from onlinevi.runs import Job, Settings

IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""A disk that answers at once, where no power is lost but in play: what is killed leaves it as it is."""
RULE = "implicit"
"""One learner: what is tested here is not the default."""


def new_folder(path: Path, **settings: Any) -> Path:
    """The folder of a new model, which predicts y."""
    path.mkdir(parents=True)
    History.begin(path, Settings(**{"target": "y", "rule": RULE} | settings))
    return path


def rows(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Rows with a number, a name and a label of two; now and then a value is missing, and names join."""
    draw = random.Random(seed)
    made = []
    for k in range(count):
        a, b = draw.gauss(0.0, 1.0), draw.choice("uvw" if k < count // 2 else "uvwxyz")
        y = "yes" if a + (b == "u") + draw.gauss(0.0, 0.5) > 0.5 else "no"
        made.append({"a": None if draw.random() < 0.05 else a, "b": b, "y": y})
    return made


def asked(row: dict[str, Any], id: str | None = None) -> Asked:  # noqa: A002
    """An event of a row with its label."""
    return Asked(id, as_line(row), row["y"])


def same_jobs(one: Job, other: Job) -> bool:
    """Whether two jobs know the same, to the bit: beliefs, moments, columns and totals."""
    pairs = zip(one.state.leaves(), other.state.leaves(), strict=True)
    return (
        all(np.array_equal(a.array, b.array, equal_nan=True) for a, b in pairs)
        and np.array_equal(one.state.inputs.array, other.state.inputs.array, equal_nan=True)
        and one.schema == other.schema
        and json.dumps(one.metrics.to_json()) == json.dumps(other.metrics.to_json())
        and one.joins == other.joins
    )


@contextmanager
def served(
    folder: Path, tokens: Tokens | None = None, limits: Limits | None = None, *, port: int = 0, token: str | None = None
) -> Iterator[Client]:
    """A service of a folder in this process, on this port or a free one for 0, and a client of it."""
    models = Folder(folder, limits)
    with listen("127.0.0.1", port) as listening:
        server = Server(create_app(models, tokens=tokens))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            with Client(f"http://127.0.0.1:{listening.getsockname()[1]}", token=token, patience=20.0) as client:
                yield client
        finally:
            server.should_exit = models.stopping = True
            thread.join()
            models.close()
