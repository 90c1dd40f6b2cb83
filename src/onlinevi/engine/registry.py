"""Names for parts: what the command line, the estimators and files call a loss, a rule, a family or a format.

A class is known by its own class attribute ``name`` from the moment that it is imported; nothing is written down twice.
"""

from __future__ import annotations

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


def look_up(kind: type[T], given: str, argument: str, *others: str) -> type[T]:
    """The class that a name stands for, or ``package.module:Class`` outside of onlinevi."""
    if ":" in given:
        return _imported(kind, given, argument)
    known = named(kind)
    if given not in known:
        names = ", ".join((*others, *known))
        raise ValueError(f"{argument}={given!r}: needs one of {names}, or a class of yours as package.module:Class")
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
