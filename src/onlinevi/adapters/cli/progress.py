"""How far a command is: a bar for a run, bars for the paper's experiments, and lines in a log that asked for them."""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from onlinevi.adapters.cli.voice import Line, Voice, width
from onlinevi.data import is_address, may_pause
from onlinevi.runs import certified_regret

PATIENCE = 1.0
"""Seconds to wait for the first rows of a pipe without a word."""
REDRAWN, LOGGED = 0.1, 10.0
"""Seconds from one drawing to the next, and from one line of a log to the next."""
RECENT = 10.0
"""Of a run without an end, how fast it was in the last seconds."""
CELLS, SHARE = 24, 6
"""The length of a bar, and that of a share in percent before it."""


class Ticker(Line):
    """Called behind each batch: how much is read, how fast, the loss so far, and the time left.

    ``rows`` is the part of the source that is used, from the first row to the end, which is not included. As a ``log`` it
    writes lines that stay, now and then.
    """

    def __init__(self, source: str, already: int, rows: tuple[int, int | None] = (0, None), *, log: bool = False) -> None:
        super().__init__()
        self._log, self._already, (self._first, self._end) = log, already, rows
        path = Path(source)
        files = [part for part in path.iterdir() if part.is_file()] if path.is_dir() else [path]
        self._bytes = sum(part.stat().st_size for part in files if part.is_file())
        self._start = time.monotonic()
        self._last = self._start if log else 0.0
        self._paces = deque([(self._start, already)])
        """When so many rows had come, from the time on that speed is told of."""
        self._begin: tuple[float, float] | None = None
        """When a share of the whole was first told, and what it was."""

    def __call__(self, job: Any, stream: Any, who: str = "") -> None:
        now = time.monotonic()
        if now - self._last < (LOGGED if self._log else REDRAWN):
            return
        self._last, share = now, self._share(stream)
        left = ""
        if share is not None:
            then, before = self._begin = self._begin or (now, share)
            left = f"{clock((now - then) * (1.0 - share) / (share - before))} left" if share > before else ""
        else:
            self._paces.append((now, job.metrics.count))
            while self._paces[1][0] <= now - RECENT:
                self._paces.popleft()
        self._write(self._told(job, who, left, share), stay=False)

    def done(self, job: Any, *, all_read: bool, who: str = "") -> None:
        """The last word: the bar is full where all was read, and what came of it stays."""
        if all_read and job.metrics.count > self._already:
            self._write(self._told(job, who, f"{clock(time.monotonic() - self._start)} in all", 1.0), stay=True)
        self.end()

    def _write(self, line: str, *, stay: bool) -> None:
        if self._log:
            print(line, file=sys.stderr, flush=True)
        elif stay:
            self.stay(line)
        else:
            self.say(line)

    def _share(self, stream: Any) -> float | None:
        """How much of what is to be read is read; None where nobody knows how much that is."""
        rows = stream.position.rows
        ends = [] if self._end is None else [float(self._end)]
        if self._bytes and stream.delivered:
            ends.append(rows * self._bytes / stream.delivered)  # as many as there are, if the others are as long
        if not ends or min(ends) <= self._first:
            return None
        return min(float(rows - self._first) / (min(ends) - self._first), 1.0)

    def _told(self, job: Any, who: str, time_told: str, share: float | None) -> str:
        metrics, (since, before) = job.metrics, self._paces[0]
        speed = (metrics.count - before) / max(time.monotonic() - since, 1e-9)
        waiting = "" if job.late is None else f"{len(job.late.rows):,} wait"
        bad = f"{job.rejected.count:,} bad" if job.rejected.count else ""
        parts = [f"{who}{metrics.count:,} rows", f"{speed:,.0f} a second", f"average loss {metrics.average_loss:.4g}"]
        parts, room = [part for part in (*parts, waiting, bad, time_told) if part], width() - 1
        while not self._log and len(parts) > 1 and len(", ".join(parts)) + SHARE > room:  # the time left is told longest
            del parts[1]
        most = None if job.settings.late else certified_regret(job.state)
        certain = "" if most is None else f", at most {most:.3g} above the best in hindsight"
        line = ", ".join(parts)
        if share is not None:
            # A bar where it fits beside the rest, and what is certain where there is room for that, too.
            drawn = "" if self._log or len(line) + SHARE + CELLS + 1 > room else f"{bar(share)} "
            line = f"{int(100.0 * share):3d} % {drawn}{line}"
        return line + (certain if self._log or len(line) + len(certain) <= room else "")


def bar(share: float) -> str:
    """A bar of so much; of plain signs where the terminal has no others.

    >>> bar(0.25)
    '━━━━━━──────────────────'
    """
    full = round(CELLS * share)
    drawn = "━" * full + "─" * (CELLS - full)
    try:
        drawn.encode(getattr(sys.stderr, "encoding", None) or "ascii")
    except (UnicodeError, LookupError):
        return drawn.replace("━", "#").replace("─", ".")
    return drawn


def clock(seconds: float) -> str:
    """A time as a clock shows it.

    >>> clock(7), clock(754), clock(40_000)
    ('0:07', '12:34', '11:06:40')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def all_of(watchers: Sequence[Callable[[Any, Any], object]]) -> Callable[[Any, Any], None]:
    """Tell each of them."""

    def watch(job: Any, stream: Any) -> None:
        for one in watchers:
            one(job, stream)

    return watch


def ticker_for(voice: Voice, source: str, already: int = 0, rows: tuple[int, int | None] = (0, None)) -> Ticker | None:
    """A bar on a terminal, lines in a log that asked for them, or none."""
    return Ticker(source, already, rows, log=voice.logs) if voice.draws or voice.logs else None


@contextmanager
def awaited(voice: Voice, source: str, look: int) -> Iterator[None]:
    """Say what a pipe is waited for, and how to wait for less, where its first rows do not come at once."""
    message = f"waiting for {look:,} rows, or the end, to tell what columns and labels are; --look N waits for N rows"
    timer = threading.Timer(PATIENCE, lambda: voice.say(message))
    timer.daemon = True
    if is_address(source) or may_pause(source):
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def watching(title: str, *, draws: bool = True) -> Iterator[Any]:
    """Is told of work and draws a bar for all of it and one for each part under way; None without a terminal or rich."""
    if not draws or not sys.stderr.isatty() or find_spec("rich") is None:
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
