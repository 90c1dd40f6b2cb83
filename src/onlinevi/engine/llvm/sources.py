"""The syntax trees of functions, from the files that they stand in."""

from __future__ import annotations

import ast
import linecache
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple, TypeAlias

from onlinevi.engine.llvm.values import NotTranslated

Place: TypeAlias = tuple[tuple[int, int, bool], ...]
"""Where a name stands: for each list of statements around it, from the outermost on, which list, which of its statements, and
whether it is the body of a loop."""


@dataclass(frozen=True)
class Source:
    """A function as it was written."""

    name: str
    file: str
    tree: ast.FunctionDef
    settled: frozenset[str]
    """Names that have, wherever they are read, the one value that the text shows."""
    names: frozenset[str]
    """All names that are assigned in it, its parameters included."""
    ends: bool
    """Whether the one return, if any, is the last statement."""

    @property
    def constant(self) -> Any:
        """What it returns, if that is all it does; else None."""
        *before, last = self.tree.body
        alone = all(isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant) for one in before)
        returns = isinstance(last, ast.Return) and isinstance(last.value, ast.Constant)
        return last.value.value if alone and returns else None  # type: ignore[attr-defined]


def source_of(function: FunctionType) -> Source:
    """The source of a function, if that is what the function was made of."""
    code = function.__code__
    known = _sources.get(code)
    if known is None:
        tree = _trees(code.co_filename).get((code.co_firstlineno, code.co_name))
        if tree is None or (_is_new(code.co_filename) and code not in _codes(code.co_filename)):
            lacking = NotTranslated("its source is not there, as it runs, and compiled loops are made of sources")
            raise lacking.at(code.co_filename, code.co_firstlineno, function.__qualname__, IN_A_FILE)
        names = frozenset(code.co_varnames)
        known = _sources[code] = Source(code.co_name, code.co_filename, tree, _settled(tree), names, _ends(tree))
    return known


IN_A_FILE = "Write it in a file, or start anew if the file was edited; ONLINEVI_ENGINE=interpreted runs it as it is"
_sources: dict[CodeType, Source] = {}
_START = time.time()


@cache
def _trees(file: str) -> dict[tuple[int, str], ast.FunctionDef]:
    """All functions of a file, by their first lines and their names."""
    try:
        module = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return {}
    return {
        (min([node.lineno, *(one.lineno for one in node.decorator_list)]), node.name): node
        for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef)
    }


def _is_new(file: str) -> bool:
    """Whether a file is younger than this program: it may have been edited since it was read."""
    return Path(file).exists() and Path(file).stat().st_mtime >= _START


@cache
def _codes(file: str) -> set[CodeType]:
    """All functions of a file, as Python makes them of it now."""
    found: set[CodeType] = set()
    waiting: list[Any] = [compile("".join(linecache.getlines(file)), file, "exec", dont_inherit=True)]
    while waiting:
        one = waiting.pop()
        if isinstance(one, CodeType):
            found.add(one)
            waiting += one.co_consts
    return found


def _ends(tree: ast.FunctionDef) -> bool:
    returns = [node for node in ast.walk(tree) if isinstance(node, ast.Return)]
    return not returns or (len(returns) == 1 and tree.body[-1] is returns[0])


def _settled(tree: ast.FunctionDef) -> frozenset[str]:
    """Each time that such a name is read, the last assignment before it in the text is the one that was made last."""
    parameters = [one for one in ast.walk(tree.args) if isinstance(one, ast.arg)]
    found = {one.arg: [Use(((id(tree.body), -1, False),), is_stored=True)] for one in parameters}
    for name, use in _uses(tree.body, ()):
        found.setdefault(name, []).append(use)
    return frozenset(name for name, uses in found.items() if _is_settled(uses))


class Use(NamedTuple):
    """A name in the text."""

    place: Place
    is_stored: bool


def _is_settled(uses: list[Use]) -> bool:
    last: Place | None = None
    for number, (place, is_stored) in enumerate(uses):
        if is_stored:
            last = place
            continue
        later = [use.place for use in uses[number + 1 :] if use.is_stored]
        if last is None or not _behind(last, place) or any(_turns(place, one, len(last)) for one in later):
            return False
    return True


def _behind(stored: Place, read: Place) -> bool:
    """Whether a name is read in a later statement of the list that it is assigned in, or within such a statement."""
    (body, number, _), depth = stored[-1], len(stored) - 1
    return stored[:depth] == read[:depth] and len(read) > depth and read[depth][0] == body and number < read[depth][1]


def _turns(read: Place, stored: Place, depth: int) -> bool:
    """Whether a loop from this depth on has both places in it: what is assigned at its end is read at its next turn."""
    for k, (one, other) in enumerate(zip(read, stored, strict=False)):
        if one[0] != other[0]:
            return False
        if k >= depth and one[2]:
            return True
        if one != other:
            return False
    return False


def _uses(body: list[ast.stmt], above: Place, *, loops: bool = False) -> Iterator[tuple[str, Use]]:
    """Each name in these statements, in the order in which they are read and assigned."""
    for number, statement in enumerate(body):
        place = (*above, (id(body), number, loops))
        inner = isinstance(statement, (ast.For, ast.While))
        start = (*place, (id(statement.body), -1, True)) if inner else place  # type: ignore[attr-defined]
        if isinstance(statement, ast.For):
            yield from _within(statement.iter, place)
            yield from _within(statement.target, start)
        else:
            if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
                yield statement.target.id, Use(place, is_stored=False)
            parts = [node for node in ast.iter_child_nodes(statement) if isinstance(node, ast.expr)]
            # What is assigned to comes behind what is assigned.
            for node in sorted(parts, key=lambda part: isinstance(getattr(part, "ctx", None), ast.Store)):
                yield from _within(node, start)
        for part in ("body", "orelse"):
            if getattr(statement, part, None):
                yield from _uses(getattr(statement, part), place, loops=inner and part == "body")


def _within(node: ast.expr, place: Place) -> Iterator[tuple[str, Use]]:
    for name in ast.walk(node):
        if isinstance(name, ast.Name):
            yield name.id, Use(place, isinstance(name.ctx, ast.Store))
