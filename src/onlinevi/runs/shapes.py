"""What the parts of a stored run look like. A file may have been made by anyone: what has another shape is refused by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from onlinevi.learners import CheckpointError

LARGEST = 2**53
"""Counts beyond this are none: as doubles they would no longer be exact."""

Shape: TypeAlias = "Callable[[Any], bool] | list[Shape] | Mapping[str, Shape]"
"""A question about a value; a list of values of one shape; or fields by name, all of which must be there."""


def is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= LARGEST


def is_stride(value: Any) -> bool:
    return is_count(value) and value > 0


def is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= 1e308


def is_text(value: Any) -> bool:
    return type(value) is str


def either(shape: Shape) -> Callable[[Any], bool]:
    """None, or a value of this shape."""
    return lambda value: value is None or _is(value, shape)


def parts(*shapes: Shape) -> Callable[[Any], bool]:
    """A list of so many values, each of its own shape."""
    return lambda value: (
        type(value) is list
        and len(value) == len(shapes)
        and all(_is(one, shape) for one, shape in zip(value, shapes, strict=True))
    )


def named(shape: Shape) -> Callable[[Any], bool]:
    """Values of one shape by any names."""
    return lambda value: type(value) is dict and all(_is(one, shape) for one in value.values())


def is_row(value: Any) -> bool:
    """One row, dense or sparse."""
    if type(value) is not dict:
        return _is(value, [either(is_number)])
    fields = _is(value, {"width": is_count, "at": [is_count], "values": [either(is_number)]})
    return fields and len(value["at"]) == len(value["values"]) and all(place < value["width"] for place in value["at"])


def is_late(value: Any) -> bool:
    """A row whose label comes later: its number, the row, the label, and how often it counts where that is told."""
    labels: Shape = [is_number]
    return parts(is_count, is_row, labels)(value) or parts(is_count, is_row, labels, labels)(value)


def is_weights(value: Any) -> bool:
    """The weights of all features, or a list of them for each class."""
    return _is(value, [is_number]) or _is(value, [[is_number]])


def is_position(value: Any) -> bool:
    """Four parts; prefixes, which the first files had not; and what a source goes on from, where it is not read again."""
    head = is_text, is_count, is_count, is_text
    prefixes = [parts(is_count, is_text)]
    return any(parts(*head, *more)(value) for more in ((), (prefixes,), (prefixes, lambda mark: mark is not None)))


CURVE: Shape = {"stride": is_stride, "count": is_count, "kept": [[is_number]], "last": [[is_number]]}

COUNTS: Shape = {"shape": [is_count], "at": [is_count], "counts": [is_count]}
OF_CLASSES: Mapping[str, Shape] = {"confusion": COUNTS, "odds": COUNTS, "lately": {"classes": is_stride, "bins": is_text}}
SCORES: Mapping[str, Shape] = {
    "window": is_stride,
    "since": is_count,
    "totals": is_text,
    "curve": {"stride": is_stride, "count": is_count, "kept": is_text, "last": is_text},
    "recent": is_text,
    "own": lambda value: (
        type(value) is dict and all(_is(value[name], shape) for name, shape in OF_CLASSES.items() if name in value)
    ),
}
ACCOUNT: Mapping[str, Shape] = {"totals": [is_number], "bins": [[is_number]], "curve": CURVE}


def is_account(value: Any) -> bool:
    """Totals, and the metrics, which the first files had not."""
    return _is(value, ACCOUNT) and ("scores" not in value or _is(value["scores"], SCORES))


RUN: Mapping[str, Shape] = {
    "schema": is_text,
    "position": either(is_position),
    "account": is_account,
    "moments": {
        "stride": is_stride,
        "steps": [is_count],
        "weights": [[is_weights]],
        "certified": [either(is_number)],
    },
    "left_out": {"count": is_count, "reasons": named(is_count), "first": [lambda value: type(value) is dict]},
    "notes": lambda value: type(value) is dict,
    "settings": {"target": is_text},
}

MOMENTS: Shape = {"width": is_count, "rows": is_count, **dict.fromkeys(("centre", "older", "recent", "begun"), is_text)}
TEST: Shape = {
    **dict.fromkeys(("season", "total"), is_count),
    **dict.fromkeys(("level", "excess"), is_number),
    "starts": [is_count],
    "sums": [is_count],
}
STATE: Shape = {
    **dict.fromkeys(("count", "begun", "number"), is_count),
    "recent": [is_number],
    "waiting": [is_number],
    "tests": [TEST],
}
ALARMS: Shape = {
    "state": STATE,
    "columns": MOMENTS,
    "labels": MOMENTS,
    "since": is_count,
    "count": is_count,
    "rang": [parts([is_number], [[is_number]])],
}

STANDING: Mapping[str, Shape] = {
    "keys": [lambda value: is_text(value) or is_count(value)],
    "sparse": lambda value: type(value) is bool,
    **dict.fromkeys(
        ("numbers", "came", "times", "labels", "weights", "widths", "sizes", "values", "places", "of", "said"), is_text
    ),
    "layouts": [[lambda value: type(value) is int and -1 <= value <= LARGEST]],
}
"""Rows that wait for labels."""
BY_KEY: Mapping[str, Shape] = {
    "labels": {"keys": [is_text], "came": is_text, "time": is_text, "label": is_text},
    "settled": {"keys": [is_text], "came": is_text, "time": is_text, "labelled": is_text},
    "counts": named(is_count),
    "position": either(is_position),
    "times": parts(*(either(is_number) for _ in range(3))),
}


def is_waiting(value: Any) -> bool:
    """What waits in a run whose labels come later; by key there is more of it."""
    return _is(value, {"came": is_count, "rows": STANDING}) and ("counts" not in value or _is(value, BY_KEY))


def is_wait(value: Any) -> bool:
    """How long rows wait for labels that come by key."""
    limits: Shape = {"seconds": either(is_number), "rows": either(is_count), "otherwise": either(is_text), "most": is_stride}
    named = _is(value, limits) and _is(value, {"key": [is_text], "time": [is_text]})
    return named and ("came" not in value or _is(value, {"came": either(is_text)}))


ADDED_SINCE: Mapping[str, Shape] = {
    "first_schema": is_text,
    "before": [parts(is_count, is_position)],
    "merged": [parts(is_count, is_position)],
    "joins": [parts(is_count, is_count)],
    "clock": CURVE,
    "class_totals": [is_number],
    "alarms": ALARMS,
    "late": either(is_waiting),
    "waiting": [is_late],
}
"""What the files of some versions have not."""

SETTINGS: Mapping[str, Shape] = {
    **dict.fromkeys(
        ("task", "loss", "family", "expand", "prepare_like", "decimal", "delimiter", "encoding", "weight", "classes_by"),
        either(is_text),
    ),
    **dict.fromkeys(("rule", "missing", "effort"), is_text),
    **dict.fromkeys(("level", "coverage"), is_number),
    **dict.fromkeys(("delay", "lags", "max_categories", "first_row", "look", "window"), is_count),
    **dict.fromkeys(("hash_bits", "end_row"), either(is_count)),
    "alarm": either(is_number),
    "keep": [is_text],
    "drop": [is_text],
    "classes": [is_text],
    "names": either([is_text]),
    "kinds": named(is_text),
    "cost": either(named(named(is_number))),
    "abstain": lambda value: type(value) is bool,
    "wait": either(is_wait),
    "class_weight": lambda value: value in (None, "balanced") or named(is_number)(value),
}
"""Of the settings, what may be left out: later versions have added to them."""


def check_run(extra: Mapping[str, Any]) -> None:
    """Refuse a run one of whose parts is absent, or has another shape."""
    for name, shape in {**RUN, **ADDED_SINCE}.items():
        if name not in extra and name in RUN:
            raise CheckpointError(f"its run lacks {name!r}, without which it cannot go on: take a backup")
        if name in extra and not _is(extra[name], shape):
            raise CheckpointError(f"the {name!r} of its run is not what onlinevi writes: take a backup")
    for name, value in extra["settings"].items():
        if name in SETTINGS and not _is(value, SETTINGS[name]):
            raise CheckpointError(f"the setting {name!r} of its run is not what onlinevi writes: take a backup")


def _is(value: Any, shape: Shape) -> bool:
    if isinstance(shape, list):
        return type(value) is list and all(_is(one, shape[0]) for one in value)
    if isinstance(shape, Mapping):
        return type(value) is dict and all(name in value and _is(value[name], part) for name, part in shape.items())
    return shape(value)
