"""What a request's body says: rows, labels, ids and settings, refused with the reason where they are not what is needed."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from onlinevi.adapters.serve.history import Asked
from onlinevi.adapters.serve.lines import as_line
from onlinevi.adapters.serve.schemas import SETTINGS
from onlinevi.runs import Settings

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
"""What a model may be called: its name is that of a folder."""
MOST_ROWS = 10_000
MOST_COLUMNS = 10_000
LONGEST_TEXT = 65_536
LONGEST_ID = 200


class Refused(Exception):
    """A request that is not carried out: its status and the reason, and where in the request it is."""

    def __init__(self, status: int, reason: str, place: str | None = None) -> None:
        super().__init__(reason)
        self.status, self.reason, self.place = status, reason, place
        self.headers = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "1"}}.get(status, {})


class Rows(NamedTuple):
    """Rows to predict, and the ids under which they wait for their labels."""

    rows: list[dict[str, Any]]
    ids: list[str | None]
    single: bool
    """Whether one was asked for by itself."""
    explain: bool = False
    """Whether to tell what each column adds."""


def read_json(body: bytes) -> Any:
    """A body as JSON; NaN and Infinity are none, and an object with a name twice says two things."""
    try:
        return json.loads(body, parse_constant=_no_number, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the body is not JSON ({error})") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    given = dict(pairs)
    if len(given) < len(pairs):
        (name, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"{name[:60]!r} comes twice in an object")
    return given


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number: send null for a value that is missing")


def read_rows(body: Any, known: Collection[str] | None = None) -> Rows:
    """``{"row": {…}, "id": "…"}`` or ``{"rows": [{…}, …], "ids": ["…", …]}``; ``known`` are the columns of the model."""
    given = _object(body, "the body", ("row", "id", "rows", "ids", "explain"))
    explain = given.get("explain", False)
    if not isinstance(explain, bool):
        raise Refused(422, "explain needs to be true or false", "explain")
    if ("row" in given) == ("rows" in given):
        raise Refused(422, "the body needs either row, an object, or rows, a list of objects")
    if "row" in given:
        if "ids" in given:
            raise Refused(422, "ids go with rows; one row has an id", "ids")
        return Rows([_row(given["row"], "row", known)], [_id(given.get("id"), "id")], True, explain)
    if "id" in given:
        raise Refused(422, "one row has an id; rows have ids", "id")
    rows = _list(given["rows"], "rows")
    ids = [None] * len(rows) if given.get("ids") is None else _list(given["ids"], "ids")
    if len(ids) != len(rows):
        raise Refused(422, f"there are {len(rows)} rows and {len(ids)} ids: needs one for each, or null", "ids")
    checked = [_row(row, f"rows[{k}]", known) for k, row in enumerate(rows)]
    return Rows(checked, [_id(one, f"ids[{k}]") for k, one in enumerate(ids)], False, explain)


def read_events(body: Any, target: str, known: Collection[str] | None = None) -> tuple[list[Asked], bool]:
    """``{"row": {…}, "label": …, "id": "…"}``, ``{"id": "…", "label": …}``, or ``{"events": [such, …]}``; and whether it is
    one by itself."""
    given = _object(body, "the body", ("row", "label", "id", "events"))
    if "events" not in given:
        return [_event(given, "", target, known)], True
    if len(given) > 1:
        raise Refused(422, "events stand alone: each has its own row, label and id", "events")
    events = _list(given["events"], "events")
    return [
        _event(_object(one, f"events[{k}]", ("row", "label", "id")), f"events[{k}].", target, known)
        for k, one in enumerate(events)
    ], False


def _event(given: Mapping[str, Any], place: str, target: str, known: Collection[str] | None) -> Asked:
    id_ = _id(given.get("id"), f"{place}id")
    if given.get("label") is None:
        raise Refused(422, "an event needs its label", f"{place}label")
    label = _value(given["label"], f"{place}label")
    if given.get("row") is None:
        if id_ is None:
            raise Refused(422, "an event needs its row, or the id under which it was predicted", f"{place}row")
        return Asked(id_, None, label)
    if isinstance(given["row"], dict) and target in given["row"]:
        raise Refused(422, f"{target!r} is what is predicted: it goes into label, and not into the row", f"{place}row")
    row = _row(given["row"], f"{place}row", known)
    row = {**row, target: label}
    return Asked(id_, as_line(row), label, row)


def _row(given: Any, place: str, known: Collection[str] | None) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise Refused(422, f"a row is an object of values by columns, and no {_kind(given)}", place)
    if not given or len(given) > MOST_COLUMNS:
        raise Refused(422, f"a row has {len(given):,} columns: needs 1 to {MOST_COLUMNS:,}", place)
    for name, value in given.items():
        if known is None:
            _value(name, f"{place}: a column's name")
        elif name not in known:
            raise Refused(422, _unknown(name, known), f"{place}.{name[:60]}")
        if (reason := _against(value)) is not None:
            raise Refused(422, reason, f"{place}.{name[:60]}")
    return given


def _value(value: Any, place: str) -> Any:
    if (reason := _against(value)) is not None:
        raise Refused(422, reason, place)
    return value


def _against(value: Any) -> str | None:
    """Why a value is none of a row; a body has thousands of them."""
    if isinstance(value, float):
        return None if math.isfinite(value) else "a number is too large"
    if isinstance(value, str):
        if len(value) > LONGEST_TEXT:
            return f"a text of {len(value):,} characters: needs at most {LONGEST_TEXT:,}"
        return None if value.isascii() or _is_whole(value) else "a text with half a character"
    if isinstance(value, int) and abs(value) > 1 << 1023:
        return "a number is too large"
    if isinstance(value, dict | list):
        return f"a value is a number, text, true, false or null, and no {_kind(value)}"
    return None


def _is_whole(text: str) -> bool:
    try:
        text.encode()
    except UnicodeError:
        return False
    return True


def _id(given: Any, place: str) -> str | None:
    if given is None:
        return None
    if not isinstance(given, str) or not 1 <= len(given) <= LONGEST_ID or not given.isprintable():
        raise Refused(422, f"an id is a text of 1 to {LONGEST_ID} printable characters", place)
    return _value(given, place)  # type: ignore[no-any-return]


def _object(given: Any, what: str, names: Collection[str]) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise Refused(422, f"{what} needs to be an object with {', '.join(names)}, and is {_a(given)}")
    for name in given:
        if name not in names:
            raise Refused(422, f"{what} has {name[:60]!r}; it knows {', '.join(names)}", name[:60])
    return given


def _list(given: Any, place: str) -> list[Any]:
    if not isinstance(given, list) or not 1 <= len(given) <= MOST_ROWS:
        found = f"one of {len(given):,}" if isinstance(given, list) else _a(given)
        raise Refused(422, f"{place} needs to be a list of 1 to {MOST_ROWS:,}, and is {found}", place)
    return given


def _kind(value: Any) -> str:
    return {dict: "object", list: "list", str: "text", bool: "truth value", type(None): "null"}.get(type(value), "number")


TYPES: dict[str, tuple[Any, str]] = {
    "null": (type(None), "null"),
    "boolean": (bool, "true or false"),
    "integer": (int, "a whole number"),
    "number": ((int, float), "a number"),
    "string": (str, "text"),
    "array": (list, "a list"),
    "object": (Mapping, "an object"),
}
"""What the types of schemas are in Python, and in words."""


def _misfit(value: Any, schema: Mapping[str, Any], place: str) -> tuple[str, str] | None:
    """Where a value, or a part of it, is of another kind than a schema has, and what is needed there. How large it may be says
    whoever uses it, with more to tell."""
    if "anyOf" in schema:
        found = [_misfit(value, one, place) for one in schema["anyOf"]]
        misfits = [one for one in found if one is not None]
        deeper = [one for one in misfits if one[0] != place]
        if len(misfits) < len(found):
            return None
        return deeper[0] if deeper else (place, " or ".join(needs for _, needs in misfits))
    if "enum" in schema:
        fits = any(type(one) is type(value) and one == value for one in schema["enum"])
        needs = " or ".join("null" if one is None else str(one) for one in schema["enum"])
    else:
        types = [TYPES[name] for name in ([schema["type"]] if isinstance(schema["type"], str) else schema["type"])]
        fits = any(isinstance(value, kind) and (kind is bool or not isinstance(value, bool)) for kind, _ in types)
        needs = " or ".join(words for _, words in types)
    if not fits:
        return place, needs
    parts = (
        [_misfit(part, schema["items"], f"{place}[{k}]") for k, part in enumerate(value)] if isinstance(value, list) else []
    )
    if isinstance(value, Mapping):
        parts = [_misfit(part, schema["additionalProperties"], f"{place}.{name[:60]}") for name, part in value.items()]
    return next((part for part in parts if part is not None), None)


def _shown(value: Any) -> str:
    """A value in a message."""
    text = json.dumps(value, default=repr)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _a(value: Any) -> str:
    """Its kind, with an article."""
    kind = _kind(value)
    return kind if kind in ("text", "null") else f"{'an' if kind[0] == 'o' else 'a'} {kind}"


def _unknown(name: str, known: Collection[str]) -> str:
    """Why a column is refused that the model does not have: misspelled, it would be missing in every row without a word."""
    near = difflib.get_close_matches(name, known, 1)
    has = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(map(repr, list(known)[:8]))}"
    return f"the model has no column {name[:60]!r}: {has}"


def read_settings(given: Any, imported: Collection[str] = ()) -> Settings:
    """The settings of a new model. Nothing that a request names is imported, and no file is read."""
    if not isinstance(given, dict):
        raise Refused(422, f"settings needs to be an object with target at least, and is {_a(given)}", "settings")
    for name in given:
        if name not in SETTINGS:
            near = difflib.get_close_matches(name, SETTINGS, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(SETTINGS)}"
            raise Refused(422, f"{name[:60]!r} is no setting of a model: {hint}", f"settings.{name[:60]}")
        if (wrong := _misfit(given[name], SETTINGS[name], f"settings.{name}")) is not None:
            raise Refused(422, f"{name} needs {wrong[1]}, and is {_shown(given[name])}", wrong[0])
    target = given.get("target")
    if not isinstance(target, str) or not target:
        raise Refused(422, "settings needs the target: the name of what is predicted", "settings.target")
    for name in ("loss", "rule", "family", "expand"):
        text = given.get(name)
        if text is not None and not isinstance(text, str):
            raise Refused(422, f"{name} needs to be a name", f"settings.{name}")
        for part in re.split(r"[(),\s]+", text or ""):
            module, colon, _ = part.partition(":")
            if colon and module not in imported:
                raise Refused(422, f"{name}={text!r}: a request imports nothing; start the service with --import {module}")
    try:
        return Settings(**given)
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
        raise Refused(422, str(error), "settings") from None


def read_name(given: Any) -> str:
    """The name of a model, which is that of its folder."""
    if not isinstance(given, str) or not NAME.fullmatch(given):
        raise Refused(422, "a model's name has 1 to 64 small letters, digits, - and _, the first a letter or a digit", "name")
    return given
