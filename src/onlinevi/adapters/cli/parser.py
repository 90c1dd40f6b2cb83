"""What the commands share."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""What a command is added to."""


def run_document(folder: Path) -> dict[str, Any]:
    """The results that a run has left in its directory."""
    source = folder / "run.json"
    if not source.exists():
        raise ValueError(f"{source} is not there: name the directory that onlinevi run had as --out")
    document: dict[str, Any] = json.loads(source.read_text(encoding="utf-8"))
    return document


def write_json(path: Path, document: dict[str, Any]) -> Path:
    """Put a document in the place of the file, as a whole."""
    from onlinevi.learners import replace_file

    def write(file: BinaryIO) -> None:
        file.write(json.dumps(document, ensure_ascii=False).encode())

    replace_file(path, write)
    return path


def bad_rows(count: int) -> str:
    """How many, in words."""
    return f"{count:,} bad {'row' if count == 1 else 'rows'}"
