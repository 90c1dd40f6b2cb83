"""Run a command as a child, and say how long it took and how much memory it had at most."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

# The peak that the system reports of a child includes that of the process it was started from: a small one starts it.
STARTER = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
code = subprocess.call(sys.argv[2:])
seconds, peak = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
with open(sys.argv[1], "w") as file:
    json.dump([code, seconds, peak], file)
"""


class Ran(NamedTuple):
    seconds: float
    peak_mb: float
    out: str


def run(*command: str, environment: dict[str, str] | None = None) -> Ran:
    """What it prints is for the caller; a failure is raised with its words."""
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "said.json"
        starter = [sys.executable, "-I", "-S", "-c", STARTER, str(said), *command]
        done = subprocess.run(starter, env=environment, capture_output=True, text=True, check=True)
        code, seconds, peak = json.loads(said.read_text())
    if code:
        raise RuntimeError(f"{' '.join(command)[:200]} ended with {code}:\n{(done.stdout + done.stderr)[-2000:]}")
    return Ran(seconds, peak / (1 << 10 if sys.platform == "linux" else 1 << 20), done.stdout)


def python(script: str, *arguments: object, environment: dict[str, str] | None = None) -> Ran:
    """A script of this interpreter."""
    return run(sys.executable, "-c", script, *map(str, arguments), environment=environment)
