"""Shards on a local Dask cluster of separate processes, whose workers are killed at random: none lost, none counted twice.

    python tests/helpers/killed_shards.py 100

Each kill is a SIGKILL to one worker process, at a random moment; its nanny starts another. The result is compared with that of
threads in this process, to the bit, and so is what each shard reports.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

import onlinevi as ovi
from onlinevi.runs import learn_shards

LEARNER = ovi.Prepare(ovi.Inputs(), ovi.Linear(ovi.Logistic(), ovi.Implicit(), ovi.MeanField(box=None)))


PATIENT = {
    "distributed.deploy.lost-worker-timeout": "10 minutes",
    "distributed.worker.multiprocessing-method": "forkserver",
}
"""A local cluster gives up on a worker that does not come back soon, which on a busy machine none does."""


def slowly(seconds: float, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A source that takes its time."""
    time.sleep(seconds)
    return X, y


def shards_of_rows(shards: int, seconds: float) -> list[Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30 * shards, 3)) * [1.0, 50.0, 0.1]
    y = np.sign(X[:, 0] + 0.5 * rng.standard_normal(len(X)))
    parts = zip(np.array_split(X, shards), np.array_split(y, shards), strict=True)
    return [partial(slowly, seconds, *part) for part in parts]


def pid_of(worker: Any = None) -> int:
    return os.getpid()


class Killer(threading.Thread):
    """Kills a worker of the cluster at random moments, until it has killed so many or is told to stop."""

    def __init__(self, client: Any, kills: int, pause: float) -> None:
        super().__init__(daemon=True)
        self._client, self._left, self._pause, self._draw = client, kills, pause, random.Random(0)
        self.kills, self.stop = 0, threading.Event()

    def run(self) -> None:
        while self.kills < self._left and not self.stop.wait(self._draw.uniform(0.2, 1.0) * self._pause):
            with suppress(Exception):  # a worker that is just being started has no number yet
                pids = list(self._client.run(pid_of, nanny=False, on_error="ignore").values())
                os.kill(self._draw.choice(sorted(pids)), signal.SIGKILL)
                self.kills += 1


def play(kills: int, *, shards: int = 24, seconds: float = 0.1, pause: float = 0.7) -> dict[str, Any]:
    """Runs over the shards until so many workers were killed; what came of it."""
    import dask
    from distributed import Client, LocalCluster

    calm = shards_of_rows(shards, 0.0)
    with ThreadPoolExecutor(2) as executor:
        expected = learn_shards(LEARNER, calm, executor, rounds=2)
    found = {"kills": 0, "runs": 0, "other bits": 0, "lost": 0, "counted twice": 0, "most attempts": 0}
    with (
        dask.config.set(PATIENT),
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        while found["kills"] < kills:
            killer = Killer(client, kills - found["kills"], pause)
            killer.start()
            fleet = learn_shards(LEARNER, shards_of_rows(shards, seconds), client.get_executor(), rounds=2, attempts=1000)
            killer.stop.set()
            killer.join()
            found["kills"], found["runs"] = found["kills"] + killer.kills, found["runs"] + 1
            found["other bits"] += fleet.state.alone().array.tobytes() != expected.state.alone().array.tobytes()
            for one, its in zip(fleet.shards, expected.shards, strict=True):
                found["lost"] += one.events < its.events
                found["counted twice"] += one.events > its.events
                found["most attempts"] = max(found["most attempts"], one.attempts)
    return found


if __name__ == "__main__":
    json.dump(play(int(sys.argv[1])), sys.stdout)
    print()
