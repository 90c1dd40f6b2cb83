"""The options of labels that come by key, and times and counts as people write them."""

from __future__ import annotations

import argparse
import math
import sys
from typing import NamedTuple

from onlinevi.adapters.cli.options import names
from onlinevi.runs import Settings, Wait

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class Span(NamedTuple):
    """So many rows, or so many seconds."""

    rows: int | None = None
    seconds: float | None = None


def span(text: str) -> Span:
    """A number of rows, or a time with its unit.

    >>> span("1000"), span("30m"), span("0.5s")
    (Span(rows=1000, seconds=None), Span(rows=None, seconds=1800.0), Span(rows=None, seconds=0.5))
    """
    unit = UNITS.get(text[-1:].lower())
    try:
        found = Span(rows=int(text)) if unit is None else Span(seconds=float(text[:-1]) * unit)
    except ValueError:
        found = Span(rows=0)
    if 0.0 < (found.rows or found.seconds or 0.0) < math.inf:
        return found
    raise argparse.ArgumentTypeError(f"{text!r}: needs a number of rows, or a time such as 10s, 30m, 12h or 7d")


def every(text: str) -> Span:
    """How often there is a checkpoint: behind so many rows, after so many seconds, or by whichever comes first."""
    parts = [span(part) for part in names(text)]
    rows = [part.rows for part in parts if part.rows is not None]
    seconds = [part.seconds for part in parts if part.seconds is not None]
    if not parts or len(rows) > 1 or len(seconds) > 1:
        raise argparse.ArgumentTypeError(f"{text!r}: needs rows, seconds, or both, such as 100000, 10s or 100000,10s")
    return Span(*(rows or (sys.maxsize,)), *(seconds or (math.inf,)))


def add_late(command: argparse.ArgumentParser) -> None:
    """Add the options of labels that come by key."""
    late = command.add_argument_group("labels that come later, by key, from a source of their own")
    late.add_argument(
        "--labels", metavar="LABELS", help="where labels come from, as FILE is where rows do; --target is their column there"
    )
    late.add_argument(
        "--key",
        type=names,
        metavar="COL",
        help="the column by which a label finds its row, compared as text; A,B where rows call it A and labels B",
    )
    late.add_argument(
        "--time",
        type=names,
        default=(),
        metavar="COL",
        help="the column that says when a row or a label happened, a date or seconds, by which both are put in order; A,B "
        "where labels call it B (default: the time of the broker)",
    )
    late.add_argument(
        "--within",
        type=span,
        metavar="TIME",
        help="how long a row waits for its label: 90s, 30m, 12h, 7d, or so many further rows (default: as --waiting lets it)",
    )
    late.add_argument(
        "--otherwise",
        metavar="LABEL",
        help="the label with which a row is learned whose own has not come by then (default: it is left out)",
    )
    late.add_argument(
        "--came",
        metavar="LABEL",
        help="the label that each record of LABELS stands for, where to come is all that it says, as a click does; needs "
        "--otherwise (default: the column --target)",
    )
    late.add_argument(
        "--waiting",
        type=int,
        default=Wait.most,
        metavar="N",
        help=f"rows that may wait at once; the oldest of more is left out (default: {Wait.most})",
    )


def wait_of(options: argparse.Namespace, kept: Settings | None = None) -> Wait | None:
    """How labels find their rows, as the options ask for it, or as a model has ``kept`` it."""
    if options.labels is None:
        for name in ("key", "time", "within", "otherwise", "came"):
            if getattr(options, name):
                raise ValueError(f"--{name} is for labels that come by key: say where these come from, --labels LABELS")
        return None
    if kept is not None and kept.wait is not None and options.key is None:
        return kept.wait
    if options.key is None:
        raise ValueError("by which column do labels find their rows? name it: --key COL")
    within: Span = options.within or Span()
    return Wait(options.key, options.time, within.seconds, within.rows, options.otherwise, options.waiting, came=options.came)
