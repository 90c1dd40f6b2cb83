"""What notebooks show, facts or rows without colours of their own, that read well on any ground; and rows as DataFrames."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from importlib import import_module
from typing import Any

import numpy as np

NAME = "text-align:left;padding:1px 1em 1px 0;vertical-align:top;white-space:nowrap"
VALUE = "text-align:left;padding:1px 1em 1px 0;font-variant-numeric:tabular-nums"
ROWS = 8
"""Rows of a table that are shown."""
KNOWN = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}
"""The libraries that have tables, in the order in which they are looked for, and what makes one."""


def spelled(value: Any) -> str:
    """A value as people read it."""
    if isinstance(value, float | np.floating):
        return f"{float(value):.6g}"
    return f"{value:,}" if isinstance(value, int | np.integer) and not isinstance(value, bool) else str(value)


def html_of(title: str, facts: Mapping[str, Any], *tables: str) -> str:
    """A title, facts by their names, and tables below."""
    lines = [
        f'<tr><td style="{NAME};opacity:.7">{escape(name)}</td><td style="{VALUE}">{escape(spelled(value))}</td></tr>'
        for name, value in facts.items()
    ]
    told = f"<table>{''.join(lines)}</table>" if lines else ""
    return f"<div><strong>{escape(title)}</strong>{told}{''.join(tables)}</div>"


def html_rows(columns: Mapping[str, Any], most: int = ROWS) -> str:
    """The first rows of columns, and how many there are."""
    count = max(map(len, columns.values()), default=0)
    head = "".join(f'<th style="{NAME}">{escape(name)}</th>' for name in columns)
    rows = zip(*(list(values[:most]) for values in columns.values()), strict=True)
    body = "".join(
        "<tr>" + "".join(f'<td style="{VALUE}">{escape(spelled(value))}</td>' for value in row) + "</tr>" for row in rows
    )
    more = f'<div style="opacity:.7">… of {count:,} rows</div>' if count > most else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def as_frame(columns: Mapping[str, Any], kind: str | None = None) -> Any:
    """Arrays by their names as a table of pandas, polars or pyarrow; None takes the first of these that is installed."""
    if kind not in (None, *KNOWN):
        raise ValueError(f"kind={kind!r}: needs {', '.join(map(repr, KNOWN))}, or None for the first that is installed")
    for library in KNOWN if kind is None else (kind,):
        try:
            return getattr(import_module(library), KNOWN[library])(dict(columns))
        except ModuleNotFoundError:
            continue
    raise ModuleNotFoundError(f"tables need {kind or 'pandas, polars or pyarrow'}: pip install {kind or 'pandas'}")
