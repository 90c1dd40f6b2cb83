"""What docs/recipes.md shows is what the examples print: ``python tools/recipes.py`` writes it anew."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "recipes.md"
OUTPUT = re.compile(r"(?<=```text\n\$ python )(examples/\w+\.py)\n(.*?)(?=\n```)", re.DOTALL)
CLOCK = r"(?<=^\$ cd ).+|(?<=started )\S+(?=\.$)|(?<=resumed behind )[\d,]+|(?<=numbers: ).*|^[\d.]+(?= s\.$)"
"""Folders, times, and how much of a pipe or a run was there at a time."""
LAST_DIGITS = r"(?<=\.\d{4})\d{6,}"
"""Machines differ in them."""
BUSY = re.compile(r"^(compiling .* for this machine, once; |waiting for .* rows, or the end, ).*\n", re.MULTILINE)
"""What is said where loops have yet to be compiled, and where a pipe is slow."""
CHANGING = re.compile(f"{CLOCK}|{LAST_DIGITS}", re.MULTILINE)


def shown() -> dict[Path, str]:
    """The outputs on the page."""
    return {ROOT / name: output for name, output in OUTPUT.findall(PAGE.read_text(encoding="utf-8"))}


def printed(example: Path) -> str:
    """What an example prints, on both streams, as a terminal has it."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    call = [sys.executable, "-u", "-W", "error", str(example)]
    done = subprocess.run(call, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"{example} failed:\n{done.stdout}")
    return done.stdout


def settled(output: str) -> str:
    """Without what changes from run to run, as the page has it."""
    return CHANGING.sub("…", BUSY.sub("", output)).rstrip("\n")


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(OUTPUT.sub(lambda found: f"{found[1]}\n{settled(printed(ROOT / found[1]))}", page), encoding="utf-8")
