"""The memory of a run without an end: what the process holds behind each tenth of its events, in MiB.

    python tests/helpers/flat_memory.py 10000000            # labels in the rows
    python tests/helpers/flat_memory.py 10000000 --redis    # from a server, or --kafka from the mock in another process
    python tests/helpers/flat_memory.py 1000000 --by-key    # labels from a source of their own: 5,000 rows wait

Events come from a source in this process, which keeps none of them, and predictions go to a file; or both at a broker, which
another process feeds and trims. A checkpoint is written every second.
"""

from __future__ import annotations

import json
import mmap
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from helpers.brokers import MockKafka, RedisServer, redis_server

from onlinevi.data import Piece, Position, Reader, ReadOptions, address_of
from onlinevi.runs import Places, Run, Settings, Stopper, Wait

BATCH = 1000
AHEAD = 100_000
"""Events that a broker has and that the run has not come to."""
LATER = 5_000
"""Seconds, one a row, from a row to its label, of which every third never comes; of few rows a twentieth of them."""


class Events(Reader):
    """Rows with their labels, or one of the two."""

    def __init__(self, count: int, *, rows: bool, labels: bool) -> None:
        self.name = "rows" if rows else "labels"
        self._count, self._rows, self._labels, self._later = count, rows, labels, later(count)

    def open(self, options: ReadOptions, resume: Position | None = None) -> Events:
        return self

    def __iter__(self) -> Iterator[Piece]:
        for first in range(0, self._count, BATCH):
            number = np.arange(first, min(first + BATCH, self._count))
            x = np.random.default_rng(first).standard_normal((len(number), 3))
            y, columns, times = x[:, 0] + x[:, 1] ** 3 > 0.0, {}, number.astype(float)
            if self._rows:
                columns = {name: pa.array(x[:, place]) for place, name in enumerate("abc")}
            if self._labels:
                columns["y"] = pa.array(np.where(y, "yes", "no"))
            if not (self._rows and self._labels):
                columns["id"] = pa.array(number)
            if not self._rows:
                kept, times = number % 3 > 0, times + self._later + 0.5
                columns = {name: values.filter(pa.array(kept)) for name, values in columns.items()}
                number, times = number[kept], times[kept]
            yield Piece(len(number), columns, times=times)


def later(count: int) -> int:
    """How long after its row a label comes."""
    return min(LATER, count // 20)


def held() -> float:
    """MiB of memory that are this process's."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


class Progress:
    """How far the run has come, told to the process that feeds the broker."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), 8)

    @property
    def rows(self) -> int:
        return int.from_bytes(self._shared[:], "little")

    def reach(self, rows: int) -> None:
        self._shared[:] = rows.to_bytes(8, "little")


def feed(kind: str, count: int, progress: Progress) -> None:
    """A broker with the events, so many ahead of the run at most, and few of those behind it."""
    with ExitStack() as stack:
        broker = MockKafka() if kind == "kafka" else stack.enter_context(redis_server("--appendonly", "no"))
        broker.prepare("said")
        for number, piece in enumerate(Events(count, rows=True, labels=True)):
            while number * BATCH - progress.rows > AHEAD:
                time.sleep(0.005)
            columns = {name: values.to_pylist() for name, values in piece.columns.items()}
            rows = (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))
            broker.send("rows", [json.dumps(row).encode() for row in rows], first=number * BATCH + 1)
            if number == 0:
                print(broker.address("rows"), broker.address("said"), flush=True)
            if isinstance(broker, RedisServer):  # the mock does it by itself
                broker.client.xtrim("rows", maxlen=2 * AHEAD)
                broker.client.xtrim("said", maxlen=AHEAD)
        sys.stdin.read()


def measured(count: int, *, by_key: bool = False, kind: str = "") -> dict[str, Any]:
    wait = Wait(("id",), seconds=1.5 * later(count), otherwise="no") if by_key else None
    settings = Settings("y", rule="implicit", classes=("no", "yes"), wait=wait, end_row=count)
    memory: list[float] = []

    def watch(job: Any, stream: Any) -> None:
        progress.reach(rows := stream.position.rows)
        if rows * 10 >= count * (len(memory) + 1):
            memory.append(round(held(), 1))

    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        told = Path(folder) / "progress"
        told.write_bytes(bytes(8))
        progress = Progress(told)
        rows, labels, said = (Events(count, rows=True, labels=not by_key), Events(count, rows=False, labels=True), "said.csv")
        if kind:
            call = [sys.executable, __file__, "feed", kind, str(count), str(told)]
            feeder = subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            stack.callback(feeder.communicate)  # whose standard input ends then, and with it the broker
            assert feeder.stdout is not None
            rows, said = feeder.stdout.readline().split()
        places = Places(
            rows,
            Path(folder) / "m.ovi",
            address_of(said) if kind else Path(folder) / said,
            labels=labels if by_key else None,
            every=sys.maxsize,
            every_seconds=1.0,
        )
        begun = time.process_time()
        with Run(settings, places) as run:
            run.go(Stopper(), watch)
        seconds = time.process_time() - begun
        checkpoint = (Path(folder) / "m.ovi").stat().st_size
    late = run.job.late
    return {
        "events": run.job.metrics.count,
        "memory": memory,
        "waiting": None if late is None else len(late.rows),
        "checkpoint": checkpoint,
        "microseconds": round(1e6 * seconds / count, 1),
    }


if __name__ == "__main__":
    if sys.argv[1] == "feed":
        feed(sys.argv[2], int(sys.argv[3]), Progress(Path(sys.argv[4])))
    else:
        brokers = [kind for kind in ("kafka", "redis") if f"--{kind}" in sys.argv]
        print(json.dumps(measured(int(sys.argv[1]), by_key="--by-key" in sys.argv, kind="".join(brokers))))
