"""Ctrl-C and SIGTERM: at once while waiting for rows, behind the batch while learning from it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from onlinevi.data import Batch, Stream


class Stopped(BaseException):
    """While waiting for rows, which may never come."""


class Stopper:
    """``code`` is the exit code once a signal has come: 130 or 143."""

    def __init__(self) -> None:
        self.code = 0
        self._waiting = False

    def __call__(self, number: int, frame: Any = None) -> None:
        """The handler. A second signal stops whatever goes on."""
        if self.code:
            raise KeyboardInterrupt
        self.code = 128 + number
        if self._waiting:
            raise Stopped

    def next(self, stream: Stream) -> Batch | None:
        """The next batch; None at the end, or when told to stop."""
        try:
            with self.waiting():
                return None if self.code else next(stream, None)
        except Stopped:
            return None

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Where a signal raises ``Stopped``."""
        try:
            self._waiting = True
            yield
        finally:
            self._waiting = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Until the end of the ``with``; only the main thread hears of signals."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
