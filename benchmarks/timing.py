"""Time several things fairly on a noisy machine: take turns, keep the best."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

# One thread each, said before numpy is imported: a pass is sequential, so its peers must be.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
for variable, value in ONE_THREAD.items():
    os.environ.setdefault(variable, value)


HERE, OUT = Path(__file__).parent, Path("out") / "bench"


class Staged(NamedTuple):
    """A job whose preparation is not timed."""

    prepare: Callable[[], Any]
    run: Callable[[Any], object]


class Work(NamedTuple):
    """A job that goes over this many rows."""

    rows: int
    job: Callable[[], object] | Staged


def interleaved(
    jobs: Mapping[str, Callable[[], object] | Staged], rounds: int = 7, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Seconds of each job: the best of ``rounds``, all jobs taking a turn in every round, after one turn to warm up."""
    best = dict.fromkeys(jobs, float("inf"))
    for turn in range(rounds + 1):
        for name, job in jobs.items():
            _tell(f"round {turn} of {rounds}: {name}")
            if isinstance(job, Staged):
                given = job.prepare()
                start = clock()
                job.run(given)
            else:
                start = clock()
                job()
            if turn:
                best[name] = min(best[name], clock() - start)
    _tell("")
    return best


def _tell(text: str) -> None:
    """What is under way, on a terminal."""
    if sys.stderr.isatty():
        print(f"\r  {text[:70]:70}\r", end="", file=sys.stderr, flush=True)


def nanoseconds_a_row(
    works: Mapping[str, Work], rounds: int = 7, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Of each job, the best of ``rounds``, in turns."""
    seconds = interleaved({name: work.job for name, work in works.items()}, rounds, clock)
    return {name: round(1e9 * seconds[name] / work.rows, 2) for name, work in works.items()}


def cores() -> list[int]:
    """The cores that this process may use."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))


def pin(count: int) -> None:
    """Keep this process, and those it starts, on its first ``count`` cores, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores()[:count])


@contextmanager
def pinned(count: int) -> Iterator[None]:
    """For a while."""
    before = cores()
    pin(count)
    try:
        yield
    finally:
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, before)


def machine(*packages: str) -> dict[str, str]:
    """What the numbers were measured on."""
    facts = {"python": platform.python_version(), "cpu": _cpu(), "cores": str(os.cpu_count())}
    for package in packages:
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            facts[package] = "not installed"
    return facts


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor())


def caches() -> dict[str, int]:
    """Bytes of each data cache of the first core, where Linux says them: L1, L2, L3."""
    found = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        if (index / "type").read_text().strip() != "Instruction":
            size = (index / "size").read_text().strip()
            found["L" + (index / "level").read_text().strip()] = int(size.rstrip("K")) * 1024
    return found


def sources(name: str) -> str:
    """The version, and a digest of the library's sources and of the section's own: what its numbers are of."""
    package = Path(str(find_spec("onlinevi").origin)).parent
    files = [*sorted(package.rglob("*.py")), HERE / f"{name}.py", HERE / "reference.c"]
    content = hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()
    return f"{version('onlinevi')} {content[:12]}"


def place(name: str, *, tiny: bool = False) -> Path:
    return (OUT / "tiny" if tiny else OUT) / f"{name}.json"


def save(name: str, results: dict[str, Any], *, tiny: bool = False) -> Path:
    """Write results as JSON, whole or not at all."""
    path = place(name, tiny=tiny)
    path.parent.mkdir(parents=True, exist_ok=True)
    head = {"section": name, "command": f"python benchmarks/{name}.py", "sources": sources(name)}
    new = path.with_suffix(".new")
    new.write_text(json.dumps(head | results, indent=1, ensure_ascii=False))
    new.replace(path)
    return path
