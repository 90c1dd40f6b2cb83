"""The interface over HTTP: each call is read, carried out by the service, and answered."""

from __future__ import annotations

import sqlite3
from asyncio import to_thread
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from fastapi import FastAPI, Request
from fastapi.exceptions import HTTPException, RequestValidationError
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException as NotThere

from onlinevi.adapters.serve import inference, live, schemas
from onlinevi.adapters.serve.access import Role, Tokens
from onlinevi.adapters.serve.folder import Folder
from onlinevi.adapters.serve.guard import Guard
from onlinevi.adapters.serve.history import Asked
from onlinevi.adapters.serve.keeper import DiskFull, Overloaded, Unavailable
from onlinevi.adapters.serve.measures import Measures
from onlinevi.adapters.serve.quick import Quick
from onlinevi.adapters.serve.requests import Refused, read_events, read_json, read_name, read_rows, read_settings
from onlinevi.adapters.serve.service import Service, columns_known
from onlinevi.engine import __version__

MOST_BYTES = 10 << 20
"""Of a body."""
LARGE = 1 << 16
"""Bytes of a body that takes about as long to read as a prediction to make."""
T = TypeVar("T")
SUMMARY = "Models that learn: predict a row, send its label when it comes, and nothing that was acknowledged is lost."


def create_app(
    folder: Folder, *, tokens: Tokens | None = None, imported: Collection[str] = (), most_bytes: int = MOST_BYTES
) -> Guard:
    """The application, as an ASGI server takes it. Without tokens everybody on this machine may do everything."""
    service, measures = Service(folder, imported), Measures(folder)
    looks = live.Looks(service)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    api = FastAPI(title="onlinevi", version=__version__, description=SUMMARY, lifespan=lifespan, docs_url=None, redoc_url=None)
    api.state.service = service

    def allow(request: Request, role: Role) -> None:
        if tokens is not None:
            tokens.check(request.headers.get("authorization"), role)

    _answer_errors(api)
    _add_health(api, service)

    @api.get("/models", summary="List the models", responses=schemas.REFUSALS)
    async def list_models(request: Request) -> Any:
        allow(request, "read")
        return {"models": [service.about(keeper) for keeper in folder.models.values()]}

    @api.post("/models", status_code=201, summary="Make a model", **schemas.MAKE)
    async def make_model(request: Request) -> Any:
        allow(request, "admin")
        body = await request.body()
        if request.headers.get("content-type", "").startswith("application/octet-stream"):
            name = read_name(request.query_params.get("name"))
            return service.about(await to_thread(folder.make, name, model=body))
        given = read_json(body)
        if not isinstance(given, dict) or set(given) - {"name", "settings"}:
            raise Refused(422, "the body needs name and settings")
        settings = read_settings(given.get("settings"), imported)
        return service.about(await to_thread(folder.make, read_name(given.get("name")), settings))

    @api.get("/models/{model}", summary="A model in a few facts", responses=schemas.REFUSALS)
    async def get_model(model: str, request: Request) -> Any:
        allow(request, "read")
        return service.about(folder[model])

    @api.delete("/models/{model}", summary="Archive a model", responses=schemas.REFUSALS)
    async def archive_model(model: str, request: Request) -> Any:
        allow(request, "admin")
        return {"archived": (await to_thread(folder.archive, model)).name}

    @api.post("/models/{model}/predict", summary="Predict rows", **schemas.PREDICT)
    async def predict(model: str, request: Request) -> Response:
        allow(request, "read")
        keeper = folder[model]
        known = columns_known(keeper.published, keeper.target)
        rows = await _read(await request.body(), lambda body: read_rows(body, known))
        if any(rows.ids):
            allow(request, "learn")  # a row that waits takes room
        return JSONResponse(await service.predict(keeper, rows))

    @api.post("/models/{model}/learn", summary="Learn events", **schemas.LEARN)
    async def learn(model: str, request: Request) -> Response:
        allow(request, "learn")
        keeper = folder[model]
        known = columns_known(keeper.published, keeper.target)
        body = await request.body()

        def events() -> tuple[list[Asked], bool]:
            keeper.check_room(body.count(b'"label"'))  # before any time is spent on it
            return read_events(read_json(body), keeper.target, known)

        try:
            asked, single = await (to_thread(events) if len(body) > LARGE else service.turn(events))
        except Refused as refused:  # all of the call: to whoever looks at the model it is one
            keeper.counts.statuses["refused"] += 1
            keeper.counts.refuse(None, "refused", refused.place, refused.reason)
            raise
        status, told = await service.learn(keeper, asked, single)
        return JSONResponse(told, status)

    @api.get("/models/{model}/certificate", summary="What is certain of its regret", responses=schemas.REFUSALS)
    async def certificate(model: str, request: Request) -> Any:
        allow(request, "read")
        return await service.ask(folder[model], "certificate")

    @api.get("/models/{model}/weights", summary="Its weights with their stds", responses=schemas.REFUSALS)
    async def get_weights(model: str, request: Request) -> Any:
        allow(request, "read")
        return await service.ask(folder[model], "weights")

    @api.get("/models/{model}/metrics.json", summary="How well it has predicted", responses=schemas.REFUSALS)
    async def metrics_json(model: str, request: Request) -> Any:
        allow(request, "read")
        return await service.ask(folder[model], "metrics")

    @api.get("/models/{model}/info", summary="All that onlinevi info tells", responses=schemas.REFUSALS)
    async def info(model: str, request: Request) -> Any:
        allow(request, "read")
        return await service.ask(folder[model], "info")

    @api.get("/models/{model}/checkpoint", summary="The model as a file", responses=schemas.FILE)
    async def checkpoint(model: str, request: Request) -> Response:
        allow(request, "read")
        named = {"content-disposition": f'attachment; filename="{folder[model].name}.ovi"'}
        return Response(await service.ask(folder[model], "checkpoint"), media_type="application/octet-stream", headers=named)

    @api.get("/models/{model}/snapshots", summary="Its versions on disk", responses=schemas.REFUSALS)
    async def snapshots(model: str, request: Request) -> Any:
        allow(request, "read")
        return {"snapshots": await service.snapshots(folder[model])}

    @api.post("/models/{model}/rollback", summary="Go back to an earlier version", **schemas.ROLLBACK)
    async def rollback(model: str, request: Request) -> Any:
        allow(request, "admin")
        given = read_json(await request.body())
        if not isinstance(given, dict) or set(given) - {"to", "dry_run"} or "to" not in given:
            raise Refused(422, "the body needs to, a number of events, and may have dry_run")
        to, dry_run = given["to"], given.get("dry_run", False)
        if not isinstance(to, int) or isinstance(to, bool) or not isinstance(dry_run, bool):
            raise Refused(422, "to needs to be a number of events, dry_run true or false")
        return await service.roll_back(folder[model], to, dry_run)

    @api.post("/v2/models/{model}/infer", summary="Predict, by the Open Inference Protocol", **schemas.INFER)
    async def infer(model: str, request: Request) -> Any:
        allow(request, "read")
        keeper = folder[model]
        known = columns_known(keeper.published, keeper.target)
        asked = await _read(await request.body(), lambda body: inference.read_request(body, known))
        return inference.as_outputs(keeper, asked, await service.predict(keeper, asked.rows))

    @api.get("/v2/models/{model}", summary="Its columns as tensors", responses=schemas.REFUSALS)
    async def model_metadata(model: str, request: Request) -> Any:
        allow(request, "read")
        return inference.metadata(folder[model])

    @api.get("/v2/models/{model}/ready", summary="Whether it is served", responses=schemas.REFUSALS)
    async def model_ready(model: str, request: Request) -> Any:
        allow(request, "read")
        keeper = folder[model]
        return JSONResponse({"name": model, "ready": keeper.failure is None}, 200 if keeper.failure is None else 503)

    @api.get("/metrics", summary="Figures for Prometheus", responses=schemas.TEXT)
    async def metrics(request: Request) -> Response:
        allow(request, "read")
        return Response(await to_thread(measures.exposition), media_type="text/plain; version=0.0.4; charset=utf-8")

    @api.get("/models/{model}/live", summary="What changes, as server-sent events", responses=schemas.STREAM)
    async def live_events(model: str, request: Request) -> StreamingResponse:
        allow(request, "read")
        return StreamingResponse(looks.stream(folder[model]), media_type="text/event-stream")

    live.add_page(api)
    quick = Quick(api, {"predict": predict, "learn": learn})
    return Guard(quick, tokens=tokens, most_bytes=most_bytes, measures=measures)


async def _read(body: bytes, read: Callable[[Any], T]) -> T:
    """What a body says. A large one is read beside the loop, which others wait for."""
    if len(body) > LARGE:
        return await to_thread(lambda: read(read_json(body)))
    return read(read_json(body))


def _add_health(api: FastAPI, service: Service) -> None:
    """Whether it is there, for whoever asks."""

    @api.get("/v2", summary="The service", include_in_schema=True)
    async def server() -> Any:
        return inference.server()

    @api.get("/v2/health/live", summary="Whether the service is there")
    async def health_live() -> Any:
        return {"live": True}

    @api.get("/v2/health/ready", summary="Whether every model is served", responses=schemas.REFUSALS)
    async def health_ready() -> Any:
        ready = all(keeper.failure is None for keeper in service.folder.models.values())
        return JSONResponse({"ready": ready}, 200 if ready else 503)


def _answer_errors(api: FastAPI) -> None:
    """Each error as a status with its reason, and no traceback to anybody."""

    def answer(status: int, reason: str, place: str | None = None, **headers: str) -> JSONResponse:
        return JSONResponse({"error": reason, "place": place}, status, headers)

    @api.exception_handler(Refused)
    async def refused(request: Request, error: Refused) -> JSONResponse:
        return answer(error.status, error.reason, error.place, **error.headers)

    @api.exception_handler(Overloaded)
    async def overloaded(request: Request, error: Overloaded) -> JSONResponse:
        return answer(503, str(error), **{"Retry-After": "1"})

    @api.exception_handler(Unavailable)
    async def unavailable(request: Request, error: Unavailable) -> JSONResponse:
        return answer(503, str(error))

    @api.exception_handler(DiskFull)
    @api.exception_handler(sqlite3.OperationalError)
    async def full(request: Request, error: Exception) -> JSONResponse:
        return answer(507, str(error))

    @api.exception_handler(OSError)
    async def not_written(request: Request, error: OSError) -> JSONResponse:
        return answer(507, f"it could not be written ({error.strerror or error})")

    @api.exception_handler(ValueError)
    async def wrong(request: Request, error: ValueError) -> JSONResponse:
        return answer(422, str(error))

    @api.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        return answer(422, str(error.errors()[0].get("msg", "the request is not what is needed")))

    @api.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> JSONResponse:
        return answer(500, "the service failed; what went wrong is in its log")  # which has the traceback

    @api.exception_handler(NotThere)
    async def not_there(request: Request, error: HTTPException) -> JSONResponse:
        return answer(error.status_code, str(error.detail), **(error.headers or {}))
