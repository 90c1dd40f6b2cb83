"""Docstrings as Markdown for the documentation site: examples that start with >>> become blocks of code."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"(?:^|\n\n)(>>> .*?)(?=\n\n|\Z)", re.DOTALL)


class Doctests(griffe.Extension):
    """Puts fences around them; Markdown would take them for quotations."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(r"\n\n```pycon\n\1\n```", obj.docstring.value)
