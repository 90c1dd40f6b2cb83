"""Time several things fairly on a noisy machine: take turns, keep the best."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

# One thread each, said before numpy is imported: a pass is sequential, so its peers must be.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")


def interleaved(
    jobs: Mapping[str, Callable[[], object]], rounds: int = 7, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Seconds of each job: the best of ``rounds``, all jobs taking a turn in every round, after one turn to warm up."""
    best = dict.fromkeys(jobs, float("inf"))
    for turn in range(rounds + 1):
        for name, job in jobs.items():
            start = clock()
            job()
            if turn:
                best[name] = min(best[name], clock() - start)
    return best


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


def save(name: str, results: object) -> Path:
    """Write results as JSON into out/benchmarks."""
    path = Path("out") / "benchmarks" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1))
    return path
