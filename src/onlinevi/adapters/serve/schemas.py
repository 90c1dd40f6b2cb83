"""The bodies of the interface, for its OpenAPI document; what is refused, and why, is decided by ``requests.py``."""

from __future__ import annotations

from typing import Any, get_args

from onlinevi.beliefs import Family
from onlinevi.data import KINDS
from onlinevi.engine import named
from onlinevi.learners import ClassesBy, Effort
from onlinevi.losses import Loss, Target
from onlinevi.rules import Rule
from onlinevi.runs import DROP

NUMBERS = ("BOOL", "FP16", "FP32", "FP64", *(f"{sign}INT{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)))
"""The types of tensors of numbers, in the Open Inference Protocol."""
TEXT: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {}}}}
STREAM: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {}}}}

VALUE = {"anyOf": [{"type": "number"}, {"type": "string"}, {"type": "boolean"}, {"type": "null"}]}
LABEL = {"anyOf": [{"type": "number"}, {"type": "string"}, {"type": "boolean"}]}
ROW = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": VALUE,
    "description": "Values by columns; null is missing.",
}
ID = {"type": ["string", "null"], "minLength": 1, "maxLength": 200}
ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {"type": "string", "description": "What came, and what is needed."},
        "place": {"type": ["string", "null"], "description": "Where in the request."},
    },
}
STATUSES = {
    400: "The body is not JSON.",
    401: "No token.",
    403: "The token may not do this.",
    404: "No such model, or no row waits under this id.",
    408: "The body took too long to come.",
    409: "The id has another row or label, the name is taken, or nothing has been learned yet.",
    413: "The body is too large.",
    415: "The body is of another type.",
    422: "The request is understood, and not what is needed.",
    503: "Too much waits to be written (Retry-After), or the model's files are damaged.",
    507: "The disk is full: nothing of the request was learned.",
}
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"description": text, "content": {"application/json": {"schema": ERROR}}} for status, text in STATUSES.items()
}
FILE: dict[int | str, dict[str, Any]] = {200: {"content": {"application/octet-stream": {}}}, **REFUSALS}


def _takes(schema: dict[str, Any], example: Any, answer: Any, status: int = 200, **more: Any) -> dict[str, Any]:
    """What a route says of the body that it takes and of its answer, by an example of each."""
    content = {"application/json": {"schema": schema, "example": example}, **more}
    answered = {status: {"description": "Done.", "content": {"application/json": {"example": answer}}}}
    return {"openapi_extra": {"requestBody": {"required": True, "content": content}}, "responses": answered | REFUSALS}


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required, "additionalProperties": False, "properties": properties}


def _list(of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": of, "minItems": 1}


TEXTS = {"type": ["array", "string"], "items": {"type": "string"}, "description": "Texts; in one, with commas between."}
NAME = {"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]{0,63}$"}
PART = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
SETTINGS: dict[str, dict[str, Any]] = {
    "target": {"type": "string", "minLength": 1, "description": "The name of what is predicted."},
    "task": {"enum": [None, *get_args(Target)]},
    "classes": TEXTS,
    "loss": {"type": ["string", "null"], "description": ", ".join(named(Loss))},
    "rule": {"type": "string", "description": f"auto, {', '.join(named(Rule))}; settings may follow: ngvi(floor=0.1)"},
    "level": PART,
    "coverage": PART,
    "missing": {"enum": ["nan", "zero", "refuse"]},
    "keep": TEXTS,
    "drop": TEXTS,
    "max_categories": {"type": "integer", "minimum": 1},
    "hash_bits": {"type": ["integer", "null"], "minimum": 1, "maximum": 28},
    "kinds": {"type": "object", "additionalProperties": {"enum": [*KINDS, DROP]}},
    "decimal": {"enum": [None, ".", ","]},
    "look": {"type": "integer", "minimum": 1},
    "family": {"type": ["string", "null"], "description": ", ".join(named(Family))},
    "expand": {"type": ["string", "null"], "description": "Maps of the columns, such as splines."},
    "ball": {"type": ["number", "null"], "exclusiveMinimum": 0},
    "effort": {"enum": list(get_args(Effort))},
    "lags": {"type": "integer", "minimum": 0},
    "classes_by": {"enum": list(get_args(ClassesBy))},
    "weight": {"type": ["string", "null"], "description": "A column that says how often each row counts."},
    "class_weight": {"anyOf": [{"enum": [None, "balanced"]}, {"type": "object", "additionalProperties": {"type": "number"}}]},
    "cost": {
        "type": ["object", "null"],
        "additionalProperties": {"type": "object", "additionalProperties": {"type": "number"}},
        "description": "Of the class that comes, what each costs that is decided.",
    },
    "abstain": {"type": "boolean"},
    "window": {"type": "integer", "minimum": 1},
    "alarm": {"type": ["number", "null"], "exclusiveMinimum": 0, "exclusiveMaximum": 1},
}
"""The settings of a run that a request may choose; the others are of files, and labels come late by their ids."""
EVENT = {"anyOf": [_object(["row", "label"], row=ROW, label=LABEL, id=ID), _object(["id", "label"], id=ID, label=LABEL)]}
SAID = {"prediction": "yes", "probability": 0.78}
PREDICT = _takes(
    {
        "anyOf": [
            _object(["row"], row=ROW, id=ID, explain={"type": "boolean"}),
            _object(["rows"], rows=_list(ROW), ids={"type": "array", "items": ID}, explain={"type": "boolean"}),
        ]
    },
    {"row": {"hours": 9, "town": "Bonn"}, "id": "visit-17"},
    {"events": 16, **SAID, "id": "visit-17"},
)
LEARN = _takes(
    {"anyOf": [*EVENT["anyOf"], _object(["events"], events=_list(EVENT))]},
    {"id": "visit-17", "label": "yes"},
    {"status": "learned", "event": 17, "id": "visit-17", **SAID, "label": "yes", "loss": 0.25},
)
MAKE = _takes(
    _object(
        ["name", "settings"],
        name=NAME,
        settings=_object(["target"], **SETTINGS),
    ),
    {"name": "clicks", "settings": {"target": "clicked", "task": "classes"}},
    {"name": "clicks", "ready": True, "target": "clicked", "events": 0, "task": None, "columns": []},
    201,
    **{"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
)
MAKE["openapi_extra"]["parameters"] = [
    {"name": "name", "in": "query", "schema": NAME, "description": "Beside a model file: what the model is called."}
]
ROLLBACK = _takes(
    _object(["to"], to={"type": "integer", "minimum": 0}, dry_run={"type": "boolean", "default": False}),
    {"to": 12_000},
    {"from": 12_345, "to": 12_000, "taken_back": 345, "ids": ["visit-12001"], "done": True},
)
TENSOR = {
    "type": "object",
    "required": ["name", "shape", "datatype", "data"],
    "properties": {
        "name": {"type": "string"},
        "shape": _list({"type": "integer"}),
        "datatype": {"enum": ["BYTES", *NUMBERS]},
        "data": _list({}),
    },
}
INFER = _takes(
    {
        "type": "object",
        "required": ["inputs"],
        "properties": {
            "id": {"type": "string"},
            "inputs": _list(TENSOR),
            "outputs": {"type": "array", "items": {"type": "object", "required": ["name"]}},
        },
    },
    {"inputs": [{"name": "hours", "shape": [2], "datatype": "FP64", "data": [9, 1]}]},
    {
        "model_name": "clicks",
        "parameters": {"events": 17},
        "outputs": [{"name": "probability", "datatype": "FP64", "shape": [2], "data": [0.78, 0.31]}],
    },
)
