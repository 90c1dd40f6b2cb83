"""A section of the suite: a script that measures one thing and leaves one JSON file.

    python benchmarks/SECTION.py            # in full, into out/bench/SECTION.json
    python benchmarks/SECTION.py --tiny     # seconds, to see that everything runs, into out/bench/tiny/SECTION.json

A result says which sources it is of, so that ``bench.py`` knows what is left to do.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

from timing import machine, pin, save

PACKAGES = ("numpy", "numba", "scipy", "scikit-learn", "river", "vowpalwabbit", "jax", "bayesianbandits", "pyarrow")
CORES = 2
MODULES = {
    "River": "river",
    "scikit-learn": "sklearn",
    "Vowpal Wabbit": "vowpalwabbit",
    "bayesianbandits": "bayesianbandits",
    "JAX": "jax",
    "pyarrow": "pyarrow",
}
"""Who may be absent, and what they are imported as."""


class Size(NamedTuple):
    """How much is measured."""

    share: float
    """Of the rows of a full run."""
    rounds: int
    """The best of so many."""

    def rows(self, full: int) -> int:
        return max(64, int(self.share * full))

    @property
    def tiny(self) -> bool:
        return self.share < 1.0


FULL, TINY = Size(1.0, 7), Size(0.002, 1)


def left_out(*names: str) -> dict[str, str]:
    """Which of these cannot be measured here, and why."""
    return {name: f"{MODULES[name]} is not installed" for name in names if find_spec(MODULES[name]) is None}


def main(
    name: str,
    about: str,
    measure: Callable[[Size], dict[str, Any]],
    arguments: list[str] | None = None,
    *,
    keep: Callable[[argparse.Namespace], None] | None = None,
    options: Callable[[argparse.ArgumentParser], object] | None = None,
) -> None:
    """Run one section from the command line; ``options`` adds its own, ``keep`` hears what they are."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="few rows, one round: to see that everything runs")
    if options is not None:
        options(parser)
    asked = parser.parse_args(arguments)
    if keep is not None:
        keep(asked)
    pin(CORES)
    started, load = time.perf_counter(), os.getloadavg()[0]
    facts = machine(*PACKAGES) | {"load at the start": f"{load:.2f}"}
    print(name, *(f"  {key}: {value}" for key, value in facts.items()), sep="\n")
    results = measure(TINY if asked.tiny else FULL)
    seconds = round(time.perf_counter() - started, 1)
    path = save(name, {"machine": facts, "seconds": seconds, "tiny": asked.tiny} | results, tiny=asked.tiny)
    print(f"{seconds} s; saved to {path}")
