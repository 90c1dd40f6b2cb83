"""The calls that come by the thousand, without what stands around every other one: half of what a call costs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from fastapi import FastAPI, Request
from fastapi.responses import Response
from fastapi.routing import APIRoute

from onlinevi.adapters.serve.guard import Message, Receive, Send

Carry: TypeAlias = Callable[[str, Request], Awaitable[Response]]
"""What carries out a call to a model."""


class Quick:
    """The application, with some of its calls ``POST /models/{model}/…`` taken to their functions at once. All else goes its
    way, these too where their address is written in any other way; errors are answered by the handlers of the application."""

    def __init__(self, api: FastAPI, calls: Mapping[str, Carry]) -> None:
        self._api, self._calls = api, dict(calls)
        found = {route.endpoint: route for route in api.routes if isinstance(route, APIRoute)}
        self._routes = {name: found[carry] for name, carry in self._calls.items()}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        parts = scope["path"].split("/") if scope["type"] == "http" and scope["method"] == "POST" else []
        if len(parts) != 4 or parts[1] != "models" or not parts[2] or parts[3] not in self._calls:
            await self._api(scope, receive, send)
            return
        name = parts[3]
        scope["route"], scope["app"] = self._routes[name], self._api
        request = Request(scope, receive)
        try:
            answer = await self._calls[name](parts[2], request)
        except Exception as error:
            kind = next(kind for kind in type(error).__mro__ if kind in self._api.exception_handlers)
            handler: Any = self._api.exception_handlers[kind]
            await (await handler(request, error))(scope, receive, send)
            if kind is Exception:
                raise  # into the log
            return
        await answer(scope, receive, send)
