"""What every request passes through: who comes in, how large a body may be, how long it may take, what goes back with it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from itertools import chain
from typing import Any, TypeAlias

from onlinevi.adapters.serve.access import Tokens, check_host
from onlinevi.adapters.serve.measures import Measures
from onlinevi.adapters.serve.requests import Refused

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]

BODY_SECONDS = 30.0
"""How long a body may take to come."""
BODIES = 16
"""As much as so many of the largest bodies may be held at once."""
CALLS = 1000
"""That may go on at once, pages that look on among them."""
HEADER_BYTES = 32 << 10
"""Of a request's headers and its address."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
READS = ("GET", "HEAD", "OPTIONS")
"""What needs no body."""
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]


class Guard:
    """The application, with what every request passes through around it."""

    def __init__(self, app: App, *, tokens: Tokens | None, most_bytes: int, measures: Measures) -> None:
        self._app, self._tokens, self._most, self._measures = app, tokens, most_bytes, measures
        self._held, self._calls = 0, 0
        """Bytes of bodies that are here, and calls that go on."""

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status, body = time.perf_counter(), 500, bytearray()

        async def answered(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        self._calls += 1
        try:
            if (refused := await self._take(scope, receive, body)) is not None:
                await respond(answered, refused)
            else:
                await self._app(scope, _giving(bytes(body), receive), answered)
        finally:
            self._held -= len(body)
            self._calls -= 1
            self._measures.answered(scope, status, time.perf_counter() - began)

    async def _take(self, scope: Message, receive: Receive, body: bytearray) -> Refused | None:
        """Take in the whole body of a request that may come in, or say why not."""
        try:
            self._check_headers(scope)
            if scope["method"] not in READS:
                async with asyncio.timeout(BODY_SECONDS):
                    await self._read(receive, body)
        except Refused as refused:
            return refused
        except TimeoutError:
            return Refused(408, f"the body took longer than {BODY_SECONDS:g} seconds")
        return None

    def _check_headers(self, scope: Message) -> None:
        """Refuse a request that may not come in, before its body is waited for."""
        if self._calls > CALLS:
            raise Refused(503, f"{CALLS:,} calls go on: try again in a moment")
        size = len(scope["path"]) + len(scope["query_string"]) + sum(map(len, chain.from_iterable(scope["headers"])))
        if size > HEADER_BYTES:
            raise Refused(431, f"address and headers of {size:,} bytes: needs at most {HEADER_BYTES:,}")
        headers = dict(scope["headers"])
        if self._tokens is None:
            check_host(headers.get(b"host", b"").decode("latin-1"))
        elif scope["method"] not in READS:  # a stranger's body is not waited for
            self._tokens.check(headers.get(b"authorization", b"").decode("latin-1"), "read")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit():
            raise Refused(400, "the length of the body is no number")
        self._check_size(int(length))
        # A page elsewhere can make a browser send text, but JSON only where it is allowed to, which it is not here.
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if scope["method"] == "POST" and kind not in (b"application/json", b"application/octet-stream"):
            raise Refused(415, "needs Content-Type: application/json")

    async def _read(self, receive: Receive, body: bytearray) -> None:
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Refused(400, "the body ended early")
            part = message.get("body", b"")
            body += part
            self._held += len(part)
            more = message.get("more_body", False)
            self._check_size(len(body))
            if self._held > BODIES * self._most:
                raise Refused(503, "too many large bodies are here: try again in a moment")

    def _check_size(self, size: int) -> None:
        if size > self._most:
            raise Refused(413, f"a body of {size:,} bytes: needs at most {self._most:,}; send fewer rows a call")


def _giving(body: bytes, receive: Receive) -> Receive:
    """A body that has come, and then whatever comes."""
    given = False

    async def give() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return give


async def respond(send: Send, refused: Refused) -> None:
    """A whole answer of JSON."""
    body = json.dumps({"error": refused.reason, "place": refused.place}).encode()
    head = {"content-type": "application/json", "content-length": str(len(body)), **refused.headers}
    start = [(name.lower().encode(), value.encode()) for name, value in head.items()]
    await send({"type": "http.response.start", "status": refused.status, "headers": start})
    await send({"type": "http.response.body", "body": body})
