"""Progress bars, on a terminal only."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any


@contextmanager
def watching(title: str) -> Iterator[Any]:
    """Hears of work and draws a bar for all of it and one for each part under way; None without a terminal or rich."""
    if not sys.stderr.isatty() or find_spec("rich") is None:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:28}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:
        yield Bars(display, title)


class Bars:
    """The bars of one piece of work; called from several threads."""

    def __init__(self, display: Any, title: str) -> None:
        self._display, self._lock = display, threading.Lock()
        self._whole = display.add_task(title, total=None)
        self._parts: dict[str, Any] = {}

    def plan(self, total: int) -> None:
        """How many parts there will be."""
        self._display.update(self._whole, total=total)

    def progress(self, name: str, share: float) -> None:
        """How much of a part is done, from 0 to 1."""
        with self._lock:
            if share >= 1.0:
                self._display.advance(self._whole)
                if name in self._parts:
                    self._display.remove_task(self._parts.pop(name))
            elif name not in self._parts:
                self._parts[name] = self._display.add_task(f"  {name}", total=100)
            else:
                self._display.update(self._parts[name], completed=round(100 * share))
