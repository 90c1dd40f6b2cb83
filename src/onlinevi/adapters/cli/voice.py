"""What a command says on the way, on standard error: nothing but errors, the usual, or all of it."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Literal

from onlinevi.engine import __version__

Level = Literal["quiet", "usual", "verbose"]
WIDEST = 127
"""Characters of a line where there is no terminal that has fewer."""


@dataclass(frozen=True)
class Voice:
    """Says what is worth hearing at its level. Errors and results are no part of it: they are always given."""

    level: Level = "usual"

    @staticmethod
    def asked_for(options: argparse.Namespace) -> Voice:
        """The voice that ``--quiet`` or ``-v`` asks for."""
        return Voice("quiet" if options.quiet else "verbose" if options.verbose else "usual")

    @property
    def draws(self) -> bool:
        """Whether lines may be written over: on a terminal, unless it is to be quiet."""
        return self.level != "quiet" and sys.stderr.isatty()

    @property
    def logs(self) -> bool:
        """Whether progress is told line by line: asked for with ``-v``, where nothing is drawn."""
        return self.level == "verbose" and not sys.stderr.isatty()

    def say(self, text: str) -> None:
        """What people want to know of each call."""
        if self.level != "quiet":
            print(text, file=sys.stderr, flush=True)

    def detail(self, text: str) -> None:
        """What only those want to know who asked for it."""
        if self.level == "verbose":
            self.say(text)

    def compiling(self, number: int, total: int) -> None:
        """That a loop is about to be compiled: a line for all of them, and on a terminal how far it is."""
        if self.draws:
            end = "\n" if number == total else ""
            print(f"\rcompiling for this machine, once: {number} of {total}\x1b[K", end=end, file=sys.stderr, flush=True)
        elif number == 1:
            loops = "a loop" if total == 1 else f"{total} loops"
            self.say(f"compiling {loops} for this machine, once; later starts find them")

    @contextmanager
    def meanwhile(self, what: str) -> Iterator[None]:
        """While something goes on that takes a while: on a terminal what it is, with ``-v`` how long it took."""
        line, begun = Line(), time.monotonic()
        if self.draws:
            line.say(what)
        try:
            yield
        finally:
            line.end()
            self.detail(f"{what.partition(';')[0]}: {time.monotonic() - begun:.1f} s")


class Line:
    """One line of a terminal, written over and over."""

    def __init__(self) -> None:
        self._shown = False

    def say(self, line: str) -> None:
        """In place of what stands there; what does not fit is cut off."""
        print(f"\r{line[: width() - 1]}\x1b[K", end="", file=sys.stderr, flush=True)
        self._shown = True

    def stay(self, line: str) -> None:
        """As the last word: what comes next is written below."""
        self.say(line)
        print(file=sys.stderr, flush=True)
        self._shown = False

    def end(self) -> None:
        """Take away what stands there."""
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._shown = False


def between_words(text: str) -> str:
    """Text for standard output: on a terminal its lines are broken between words, else not at all."""
    if not sys.stdout.isatty():
        return text
    return textwrap.fill(text, room(), break_long_words=False, break_on_hyphens=False)


def room() -> int:
    """How long a line of standard output may be: on a terminal as this is wide."""
    return max(width(), 20) if sys.stdout.isatty() else WIDEST


def versions() -> str:
    """What a run is made with; asked of what is installed, as the interpreted engine has no need to import numba."""
    made_with = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba"))
    return f"onlinevi {__version__}, Python {platform.python_version()}, {made_with}"


def width() -> int:
    """How many columns the terminal has: a longer line would not be overwritten."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return shutil.get_terminal_size().columns
