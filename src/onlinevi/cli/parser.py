"""What the commands share in parsing and telling."""

from __future__ import annotations

import argparse
from typing import TypeAlias

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""What a command is added to."""


def bad_rows(count: int) -> str:
    """How many, in words."""
    return f"{count:,} bad {'row' if count == 1 else 'rows'}"
