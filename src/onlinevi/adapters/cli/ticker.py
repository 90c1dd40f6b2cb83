"""One line that says how far a run is, on a terminal only."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from onlinevi.runs import certified_regret


class Ticker:
    """Called behind each batch; writes at most ten times a second."""

    def __init__(self, source: str, already: int) -> None:
        self._start, self._already, self._last = time.monotonic(), already, 0.0
        self._said = False
        self._bytes = Path(source).stat().st_size if Path(source).is_file() else 0

    def __call__(self, job: Any, stream: Any, who: str = "") -> None:
        now = time.monotonic()
        if now - self._last < 0.1:
            return
        self._last, count = now, job.account.count
        speed = (count - self._already) / max(now - self._start, 1e-9)
        parts = [f"{who}{count:,} rows"]
        share = min(stream.position.bytes / self._bytes, 1.0) if self._bytes else 0.0
        if share > 0.0:
            parts += [f"{100.0 * share:.0f} % read", f"{(now - self._start) * (1.0 / share - 1.0):.0f} s to go"]
        parts.append(f"average loss {job.account.average_loss:.4g}")
        most = None if job.settings.delay else certified_regret(job.state)
        if most is not None:
            parts.append(f"at most {most:.3g} above the best in hindsight")
        self.say(", ".join([*parts, f"{speed:,.0f} a second"]))

    def say(self, line: str) -> None:
        """In place of what stands there; what does not fit is cut off."""
        print(f"\r{line[: _width() - 1]}\x1b[K", end="", file=sys.stderr, flush=True)
        self._said = True

    def end(self) -> None:
        if self._said:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _width() -> int:
    """How many columns the terminal has: a longer line would not be overwritten."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return shutil.get_terminal_size().columns
