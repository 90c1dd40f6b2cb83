"""How single values are spelled as text."""

from __future__ import annotations

from typing import Any

MISSING = frozenset(["", "?", "NA", "N/A", "#N/A", "na", "n/a", "NaN", "nan", "null", "NULL", "Null", "None", "none"])
"""How text spells a missing number."""

EXACT = 1 << 53
"""Up to here every integer is a float."""


def value_text(value: Any) -> str:
    """A value as a category: the same whichever type its neighbours gave it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT:
        return str(int(value))
    return str(value)
