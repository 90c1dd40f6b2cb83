"""A rule with its settings as text, as a command is given it: ``ngvi(floor=0.1)``, ``svb(rate=PerSqrt(2))``."""

from __future__ import annotations

import ast
from typing import Any

from onlinevi.rules.rates import Adaptive, Constant, PaperSVB, PerHorizon, PerSqrt, PerStep, Rate, StronglyConvex

RATES: dict[str, type[Rate]] = {
    kind.__name__: kind for kind in (Adaptive, Constant, PaperSVB, PerHorizon, PerSqrt, PerStep, StronglyConvex)
}


def spelled(text: str) -> tuple[str, dict[str, Any]]:
    """The name of a rule and its settings: numbers, words, None, and rates by their names.

    >>> spelled("ngvi(step=PaperSVB(1), rate=100, parameters=scale)")
    ('ngvi', {'step': PaperSVB(c=1.0), 'rate': 100.0, 'parameters': 'scale'})
    >>> spelled("oga-el")
    ('oga-el', {})
    """
    name, opened, settings = text.partition("(")
    if not opened:
        return text, {}
    try:
        call = ast.parse(f"rule({settings}", mode="eval").body
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and not call.args:
            return name.strip(), {str(given.arg): _value(given.value) for given in call.keywords}
    except (SyntaxError, ValueError):
        pass
    raise ValueError(
        f"rule={text!r}: settings are name=value, a number, a word or one of {', '.join(RATES)}; as ngvi(floor=0.1) or "
        "svb(rate=PerSqrt(2))"
    )


def _value(given: ast.expr) -> Any:
    match given:
        case ast.Call(ast.Name(kind), arguments, []) if kind in RATES:
            return RATES[kind](*map(_value, arguments))
        case ast.Name(word):
            return word
        case _:
            value = ast.literal_eval(given)
            return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def split_outside(text: str) -> tuple[str, ...]:
    """The parts of a list, split at those commas that stand in no brackets.

    >>> split_outside("auto, ngvi(step=1,rate=9), svb")
    ('auto', 'ngvi(step=1,rate=9)', 'svb')
    """
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return tuple(part.strip() for part in parts if part.strip())
