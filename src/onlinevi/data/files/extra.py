"""pyarrow, imported when used: learning from arrays needs none of it."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def arrow(part: str = "") -> Any:
    """The module ``pyarrow``, or a part of it such as ``pyarrow.csv``."""
    try:
        return import_module(f"pyarrow.{part}" if part else "pyarrow")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError('reading files needs pyarrow: pip install "onlinevi[files]"') from error
