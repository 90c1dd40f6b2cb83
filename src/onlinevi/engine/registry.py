"""Names for parts: what the command line, the estimators and files call a loss, a rule, a family or a format.

A class is known by its own class attribute ``name`` from the moment that it is imported; nothing is written down twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from inspect import isabstract
from typing import Any, TypeVar

T = TypeVar("T")


def named(kind: type[T]) -> dict[str, type[T]]:
    """The classes of this kind that have a name of their own, by it, in the order in which they were made."""
    found: dict[str, type[T]] = {}
    for child in kind.__subclasses__():
        if "name" in vars(child) and not isabstract(child):
            found[str(vars(child)["name"])] = child
        found.update(named(child))
    return found


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """What may have been meant by a name that is not known, in brackets, to stand behind it; nothing where none is close.

    >>> did_you_mean("ngvy", ["svb", "ngvi"]), did_you_mean("price", ["Price"]), did_you_mean("x", ["y"])
    (" (did you mean 'ngvi'?)", " (did you mean 'Price'?)", '')
    """
    of_lower = {name.lower(): name for name in known}
    close = get_close_matches(given.lower(), of_lower, n=1)
    return f" (did you mean {of_lower[close[0]]!r}?)" if close else ""


def look_up(kind: type[T], given: str, argument: str, *others: str) -> type[T]:
    """The class that a name stands for, or ``package.module:Class`` outside of onlinevi."""
    if ":" in given:
        return _imported(kind, given, argument)
    known = named(kind)
    if given not in known:
        names = ", ".join((*others, *known))
        meant = did_you_mean(given, (*others, *known))
        raise ValueError(f"{argument}={given!r}{meant}: needs one of {names}, or a class of yours as package.module:Class")
    return known[given]


def _imported(kind: type[T], given: str, argument: str) -> type[T]:
    module, _, name = given.partition(":")
    try:
        found: Any = getattr(import_module(module), name)
    except ImportError as error:
        raise ValueError(
            f"{argument}={given!r}: cannot import {module!r} ({error}); run where it can be found, or set PYTHONPATH"
        ) from error
    except AttributeError:
        raise ValueError(f"{argument}={given!r}: {module!r} has no {name!r}") from None
    if not (isinstance(found, type) and issubclass(found, kind)):
        raise ValueError(f"{argument}={given!r}: needs a class made from onlinevi.{kind.__name__}, not {found!r}")
    return found
