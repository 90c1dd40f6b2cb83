"""What pages show of commands is what these print: ``python tools/transcripts.py`` runs them and writes the pages anew.

Blocks of language ``console`` are run, in their order, those of a page in one folder: a line that begins with ``$`` is a
command, what follows is its output, on both streams.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from recipes import settled

ROOT = Path(__file__).parents[1]
PAGES = tuple(ROOT / "docs" / name for name in ("start.md", "coming-from.md"))
BLOCK = re.compile(r"(?<=```console\n).*?(?=```)", re.DOTALL)
SECONDS = re.compile(r"^[\d.]+ s\.\n", re.MULTILINE)
COMPARED = re.compile(r"^(\S+ +[\d,]+ +\S+ +\S+% +\S+ +)\d+\.\d\d(?= +\d+$)", re.MULTILINE)
"""A line of ``onlinevi compare``, up to its seconds."""


def commands(block: str) -> list[str]:
    """The commands of a block."""
    return [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]


def run(block: str, folder: Path) -> str:
    """The block with what its commands print now."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    lines = []
    for command in commands(block):
        call = ["bash", "-c", command]
        done = subprocess.run(
            call, cwd=folder, env=os.environ | {"PATH": path}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        said = settled(COMPARED.sub(r"\1   …", SECONDS.sub("", done.stdout)))
        lines += [f"$ {command}", *([said] if said else [])]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for page in PAGES:
        with tempfile.TemporaryDirectory() as folder:
            text = BLOCK.sub(lambda found: run(found[0], Path(folder)), page.read_text(encoding="utf-8"))
        page.write_text(text, encoding="utf-8")
