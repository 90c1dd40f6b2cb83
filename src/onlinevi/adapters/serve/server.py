"""The process: a folder of models, a socket, and an orderly end."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import stat
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from onlinevi.adapters.serve.access import Tokens
from onlinevi.adapters.serve.app import MOST_BYTES, create_app
from onlinevi.adapters.serve.folder import Folder
from onlinevi.adapters.serve.guard import Guard
from onlinevi.adapters.serve.keeper import Limits
from onlinevi.adapters.serve.requests import Refused, read_name, read_settings

CONNECTIONS = 1200
"""Beyond so many none is taken; ``guard.py`` bounds the calls at once, with an answer."""
FILES = 8192
"""That the process may have open: connections, and some for each model."""
QUIET = 30
"""Seconds that a connection may ask nothing."""
GOODBYE = 10
"""Seconds that calls have to end once the service is told to stop."""
SELDOM = (10_000, 20, 50)
"""When Python looks for objects that hold each other: it stops every call meanwhile, for a tenth of a second and longer."""
SWITCH = 0.0005
"""Seconds after which a thread that computes lets another one go on: a prediction waits for it some times."""


def serve(
    folder: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    tokens: Path | None = None,
    limits: Limits | None = None,
    new: tuple[str, Mapping[str, Any]] | None = None,
    imported: Collection[str] = (),
    most_bytes: int = MOST_BYTES,
    say: Callable[[str], object] = print,
    ready: Callable[[dict[str, Any]], object] | None = None,
) -> int:
    """Serve until told to stop by Ctrl-C or SIGTERM; the exit code. ``ready`` is told the address and the models."""
    allowed = None if tokens is None else Tokens.read(tokens)
    if tokens is not None and tokens.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
        say(f"{tokens} can be read by others on this machine: chmod 600 {tokens}")
    try:
        listening = listen(host, port)
    except OSError as error:
        raise ValueError(f"--host {host} --port {port}: {error.strerror or error}; --port 0 takes a free one") from None
    with listening:
        models = Folder(folder, limits)
        try:
            if new is not None:
                _make(models, *new, imported=imported, say=say)
            for keeper in models.models.values():
                say(f"{keeper.name}: {keeper.failure or f'{keeper.published.number:,} events'}")
                for why in keeper.damaged.values():
                    say(f"{keeper.name}: went back to an older snapshot, as one cannot be read: {why}")
            at = f"[{host}]" if ":" in host else host
            address = f"http://{at}:{listening.getsockname()[1]}"
            say(f"serving {folder} at {address}; Ctrl-C stops it")
            if ready is not None:
                events = {name: keeper.published.number for name, keeper in models.models.items()}
                ready({"address": address, "folder": str(folder), "events": events})
            app = create_app(models, tokens=allowed, imported=imported, most_bytes=most_bytes)
            code = until_stopped(Server(app), listening, models)
        finally:
            models.close()
    say("stopped: everything acknowledged is on disk")
    return code


def listen(host: str, port: int) -> socket.socket:
    """A socket for a service; port 0 is a free one."""
    listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=512)
    # A long answer is written in parts. Without this the second waits some 40 ms, until the first is known to have arrived.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


class _Whole:
    """A transport that sends the head of an answer with what follows it. Each time that something is sent, another thread may
    take over, and is waited for."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport, self._head = transport, b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self._head and data.startswith(b"HTTP/1.1 ") and data.endswith(b"\r\n\r\n") and data[9:10] != b"1":
            self._head = data
        elif self._head or data:
            self._transport.write(self._head + data)
            self._head = b""

    def close(self) -> None:
        self.write(b"")
        self._transport.close()


class _Connection(H11Protocol):
    """A connection that is closed where nothing is asked in time, neither a first request nor the next one, or where of an
    answer nothing is read. It is h11's, which bounds the headers that it takes in, whatever else is installed."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(_Whole(transport))  # type: ignore[arg-type]
        if len(self.connections) > CONNECTIONS:
            transport.abort()
        else:
            self.loop.call_later(QUIET, self._close_if_quiet, None, 0)

    def _close_if_quiet(self, before: Any, unread: int) -> None:
        """Close where since the last look nothing of an answer was read, or nothing was asked and nothing is answered."""
        left = self.transport.get_write_buffer_size()
        if left and left == unread:
            self.transport.abort()
        elif not self.transport.is_closing() and self.cycle is before and (self.cycle is None or self.cycle.response_complete):
            self.transport.close()
        if left or not self.transport.is_closing():
            self.loop.call_later(QUIET, self._close_if_quiet, self.cycle, left)


class Server(uvicorn.Server):
    """A server of an application, with its limits. It leaves signals to whoever runs it: it is to end in order, whatever stops
    it."""

    def __init__(self, app: Guard) -> None:
        config = uvicorn.Config(
            app,
            http=_Connection,
            ws="none",
            log_level="warning",
            access_log=False,
            timeout_keep_alive=QUIET,
            timeout_graceful_shutdown=GOODBYE,
            server_header=False,
            date_header=False,
            proxy_headers=False,  # nobody asks where a call came from
        )
        super().__init__(config)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def until_stopped(server: Server, listening: socket.socket, models: Folder) -> int:
    """Serve until Ctrl-C or SIGTERM; a second one does not wait for calls to end. The exit code."""
    sys.setswitchinterval(SWITCH)
    _allow_files(FILES)
    gc.freeze()  # what was imported and compiled stays
    gc.set_threshold(*SELDOM)
    code = 0

    def stop(number: int, frame: Any) -> None:
        nonlocal code
        server.force_exit = server.should_exit
        server.should_exit = models.stopping = True
        code = 128 + number

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        server.run(sockets=[listening])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return code


def _allow_files(count: int) -> None:
    """Let the process have so many files open, as far as it may: each connection is one."""
    try:
        import resource
    except ImportError:  # a system without such limits
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count if hard == resource.RLIM_INFINITY else min(count, hard), hard))


def _make(
    models: Folder, name: str, settings: Mapping[str, Any], *, imported: Collection[str], say: Callable[[str], object]
) -> None:
    """Make a model, unless it is there."""
    try:
        if read_name(name) in models.models:
            say(f"{name} is there already: its own settings stay")
        else:
            given = {key: list(value) if isinstance(value, tuple) else value for key, value in settings.items()}
            models.make(name, read_settings(given, imported))
    except Refused as error:
        raise ValueError(f"--new {name}: {error.reason}") from None
