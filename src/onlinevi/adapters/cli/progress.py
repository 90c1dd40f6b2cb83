"""How far a command is, on a terminal only: one line for a run, bars for the paper's experiments."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from onlinevi.data import may_pause
from onlinevi.runs import certified_regret

PATIENCE = 1.0
"""Seconds to wait for the first rows of a pipe without a word."""


def say_compiling(number: int, total: int) -> None:
    """That a loop is about to be compiled: a line for all of them, and on a terminal how far it is."""
    if number == 1:
        loops = "a loop" if total == 1 else f"{total} loops"
        print(f"compiling {loops} for this machine, once; later starts find them", file=sys.stderr)
    if sys.stderr.isatty():
        print(f"\r{number} of {total}\x1b[K", end="\n" if number == total else "", file=sys.stderr, flush=True)


class Line:
    """One line of a terminal, written over and over."""

    def __init__(self) -> None:
        self._shown = False

    def say(self, line: str) -> None:
        """In place of what stands there; what does not fit is cut off."""
        print(f"\r{line[: _width() - 1]}\x1b[K", end="", file=sys.stderr, flush=True)
        self._shown = True

    def end(self) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


class Ticker(Line):
    """Called behind each batch; writes at most ten times a second."""

    def __init__(self, source: str, already: int) -> None:
        super().__init__()
        self._start, self._already, self._last = time.monotonic(), already, 0.0
        self._bytes = Path(source).stat().st_size if Path(source).is_file() else 0

    def __call__(self, job: Any, stream: Any, who: str = "") -> None:
        now = time.monotonic()
        if now - self._last < 0.1:
            return
        self._last, count = now, job.metrics.count
        speed = (count - self._already) / max(now - self._start, 1e-9)
        parts = [f"{who}{count:,} rows"]
        share = min(stream.position.bytes / self._bytes, 1.0) if self._bytes else 0.0
        if share > 0.0:
            parts += [f"{100.0 * share:.0f} % read", f"{(now - self._start) * (1.0 / share - 1.0):.0f} s to go"]
        parts.append(f"average loss {job.metrics.average_loss:.4g}")
        most = None if job.settings.delay else certified_regret(job.state)
        if most is not None:
            parts.append(f"at most {most:.3g} above the best in hindsight")
        self.say(", ".join([*parts, f"{speed:,.0f} a second"]))


@contextmanager
def awaited(source: str, look: int) -> Iterator[None]:
    """Say what a pipe is waited for, and how to wait for less, where its first rows do not come at once."""
    message = f"waiting for {look:,} rows, or the end, to tell what columns and labels are; --look N waits for N rows"
    timer = threading.Timer(PATIENCE, lambda: print(message, file=sys.stderr, flush=True))
    timer.daemon = True
    if may_pause(source):
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _width() -> int:
    """How many columns the terminal has: a longer line would not be overwritten."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return shutil.get_terminal_size().columns


@contextmanager
def watching(title: str) -> Iterator[Any]:
    """Is told of work and draws a bar for all of it and one for each part under way; None without a terminal or rich."""
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
