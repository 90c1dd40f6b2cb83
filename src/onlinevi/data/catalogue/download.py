"""One address into one file: continued where it stopped, tried again where that may help.

Written here because the usual download libraries start an interrupted file anew, and check the sum of the packed bytes.
"""

from __future__ import annotations

import http.client
import socket
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from onlinevi.data.catalogue.storage import LARGEST

PAUSES = (0.5, 2.0, 4.0)
"""Seconds before the second, third and fourth try."""
TIMEOUT = 30.0
CHUNK = 1 << 16
SCHEMES = ("https",)
WORTH_ANOTHER_TRY = frozenset({408, 425, 429, 500, 502, 503, 504})


class Failed(Exception):
    """An address that did not give its file, and why."""


class _Interrupted(Exception):
    """A failure that may pass."""


def download(url: str, part: Path) -> bool:
    """Complete ``part`` from the address, asking only for the bytes that it lacks; True if it held some of them before.

    What was received stays in ``part`` when this fails, for the next call.
    """
    continued = _size(part) > 0
    for pause in (*PAUSES, None):
        try:
            _receive(url, part)
        except _Interrupted as error:
            if pause is None:
                kept = f"; {_size(part)} bytes are kept, another try continues there" if _size(part) else ""
                raise Failed(f"{error} ({len(PAUSES) + 1} tries{kept})") from error
            time.sleep(pause)
        else:
            break
    return continued


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows an address only to one that is as safe."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        return super().redirect_request(req, fp, code, msg, headers, _allowed(newurl))


def _allowed(url: str) -> str:
    """The address, refused where anyone on the way could read or change what it gives, or where it is no server's."""
    scheme = urllib.parse.urlsplit(url).scheme
    if scheme not in SCHEMES:
        raise Failed(f"{url}: {scheme or 'no scheme'} is not followed, only {', '.join(SCHEMES)}")
    return url


def _opener() -> urllib.request.OpenerDirector:
    """Opens addresses of the web alone: the usual one also reads files of this machine, and ftp."""
    opener = urllib.request.OpenerDirector()
    handlers = (
        *(urllib.request.ProxyHandler, urllib.request.HTTPHandler, urllib.request.HTTPSHandler, _Redirects),
        *(urllib.request.HTTPDefaultErrorHandler, urllib.request.HTTPErrorProcessor),
    )
    for handler in handlers:
        opener.add_handler(handler())
    return opener


def _receive(url: str, part: Path) -> None:
    have = _size(part)
    headers = {"User-Agent": "onlinevi"} | ({"Range": f"bytes={have}-"} if have else {})
    try:
        with _opener().open(urllib.request.Request(_allowed(url), headers=headers), timeout=TIMEOUT) as answer:
            rest = answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")
            with part.open("ab" if answer.status == http.client.PARTIAL_CONTENT and rest else "wb") as file:
                _copy(answer, file, url)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            if error.headers.get("Content-Range", "") == f"bytes */{have}":
                return
            part.unlink()
            raise _Interrupted("the file there is shorter than what was received before") from error
        kind = _Interrupted if error.code in WORTH_ANOTHER_TRY else Failed
        raise kind(f"HTTP {error.code} {error.reason}") from error
    except (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError) as error:
        reason = getattr(error, "reason", error)
        # Without a network no name is known: waiting would only delay the message.
        unknown = isinstance(reason, socket.gaierror) and reason.errno == socket.EAI_NONAME
        raise (Failed if unknown else _Interrupted)(str(reason) or type(error).__name__) from error


def _copy(answer: Any, file: IO[bytes], url: str) -> None:
    start = file.tell()
    length = answer.headers.get("Content-Length")
    total = start + int(length) if length else None
    while chunk := answer.read(CHUNK):
        file.write(chunk)
        if file.tell() > LARGEST:
            file.truncate(0)  # none of it is what was asked for
            raise Failed(f"it goes on beyond {LARGEST >> 20} MiB, which no file of the catalogue has")
        _show(url, file.tell(), total)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    if total is not None and file.tell() < total:
        raise _Interrupted(f"the connection ended after {file.tell()} of {total} bytes")


def _show(url: str, received: int, total: int | None) -> None:
    if sys.stderr.isatty():
        share = f"{received / total:4.0%} of {total / 1e6:.1f} MB" if total else f"{received / 1e6:.1f} MB"
        print(f"\r{url}: {share}", end="", file=sys.stderr, flush=True)


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


@contextmanager
def one_at_a_time(lock: Path) -> Iterator[None]:
    """Wait for other processes that write the same part; where the system has no such lock, the checksum must do."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("wb") as file:
        if sys.platform != "win32":
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield
