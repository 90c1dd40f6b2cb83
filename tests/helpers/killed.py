"""A run over a file; the same run killed again and again, at random moments, and resumed; how many kills fell in which phase.

    python tests/helpers/killed.py rows.csv whole broken 50 [--labels labels.csv …]

Runs are forks of this process, which has done the whole run and so has everything loaded: what is killed is the run, not the
start of Python. Small batches, each with a checkpoint, give a kill many places to fall.
"""

from __future__ import annotations

import json
import mmap
import os
import random
import signal
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from onlinevi import runs
from onlinevi.adapters.cli import main
from onlinevi.data import open_stream
from onlinevi.runs import run as driver
from onlinevi.runs.job import Job
from onlinevi.runs.late import Merge
from onlinevi.runs.run import Stopper

PHASES = ("reading", "learning", "saving", "looking back")
"""Reading begins with the checkpoint and the rows before it."""
LAST = PHASES.index("looking back")
BATCH = 64
BEYOND = 0.004
"""A kill comes up to so many seconds after the phase that was waited for began."""

shared = mmap.mmap(-1, 16)  # how many phases were entered, and which is the present one


def marked(phase: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def entered(*args: Any, **named: Any) -> Any:
        count, before = struct.unpack("qq", shared[:])
        shared[:] = struct.pack("qq", count + 1, max(PHASES.index(phase), before if before == LAST else 0))
        return function(*args, **named)

    return entered


def run(rows: str, folder: Path) -> int:
    call = ["run", rows, "--target", "sold", "--rule", "implicit", "--out", str(folder), "--every", str(BATCH), "--resume"]
    return main([*call, *sys.argv[5:], "--bad-rows", str(folder / "bad.ndjson"), "--predictions", str(folder / "said.csv")])


def fork(work: Callable[[], int]) -> int:
    shared[:] = struct.pack("qq", 0, 0)
    child = os.fork()
    if not child:
        os._exit(work())
    return child


def killed(work: Callable[[], int], enough: Callable[[int, int], bool], more: float) -> str:
    """Kill a run once it has entered enough phases, or is in the right one; the phase it was in."""
    child = fork(work)
    while not enough(*struct.unpack("qq", shared[:])):
        assert not os.waitpid(child, os.WNOHANG)[0], "the run ended before it could be killed"
        time.sleep(0.0005)
    time.sleep(more)
    os.kill(child, signal.SIGKILL)
    _, phase = struct.unpack("qq", shared[:])
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1]), "the run ended before it could be killed"
    return PHASES[phase]


def mark_phases() -> None:
    """Small batches, and a word at the beginning of each phase of them."""
    driver.open_stream = partial(open_stream, batch_rows=BATCH)  # type: ignore[attr-defined]
    driver.save_job = marked("saving", driver.save_job)  # type: ignore[attr-defined]
    runs.look_back = marked("looking back", runs.look_back)
    Job.take = marked("learning", Job.take)  # type: ignore[method-assign]
    Job.hear = marked("learning", Job.hear)  # type: ignore[method-assign]
    Stopper.next = marked("reading", Stopper.next)  # type: ignore[method-assign]
    Merge._next = marked("reading", Merge._next)  # type: ignore[method-assign]


def play(rows: str, whole: Path, broken: Path, kills: int) -> Counter[str]:
    mark_phases()
    for folder in (whole, broken):
        folder.mkdir()
    assert run(rows, whole) == 0
    draw, found, work = random.Random(0), Counter(dict.fromkeys(PHASES, 0)), partial(run, rows, broken)
    for _ in range(kills - 1):
        phases = draw.randrange(16)
        found[killed(work, lambda count, _, most=phases: count >= most, draw.uniform(0.0, BEYOND))] += 1  # type: ignore[misc]
    found[killed(work, lambda _, phase: phase == LAST, 10.0 * draw.uniform(0.0, BEYOND))] += 1
    with (broken / "said.csv").open("a") as file:  # what a kill may leave half written is to be cut off
        file.write("half a li")
    assert os.waitpid(fork(work), 0)[1] == 0
    return found


if __name__ == "__main__":
    told = sys.stdout
    with Path(os.devnull).open("w") as sys.stdout:
        counted = play(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
    json.dump(counted, told)
