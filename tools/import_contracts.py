"""A contract for import-linter: one package enters another by its door."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class DoorsContract(Contract):
    """Another package is imported as a whole, ``from onlinevi.rules import SVB``, or by a module that its ``__all__`` names.

    What no package re-exports can then be moved, renamed or dropped by its own package alone. Modules beside the packages,
    which are names for their parts, may enter by a package within.
    """

    root = fields.StringField()

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        packages = {child for child in graph.find_children(self.root) if graph.find_children(child)}
        broken = []
        for package in sorted(packages):
            doors = {package, *(f"{package}.{name}" for name in _exported(package))}
            inside = {package, *graph.find_descendants(package)}
            for target in inside - doors:
                for importer in graph.find_modules_that_directly_import(target) - inside:
                    facade = importer.count(".") == 1 and importer not in packages and _is_package(graph, target)
                    if not facade:
                        broken.append((importer, target))
        return ContractCheck(kept=not broken, metadata={"broken": sorted(broken)})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for importer, target in check.metadata["broken"]:
            package = ".".join(target.split(".")[:2])
            output.print_error(f"{importer} reaches into {target}: import it from {package}")


def _is_package(graph: ImportGraph, module: str) -> bool:
    return bool(graph.find_children(module))


def _exported(package: str) -> list[Any]:
    """The names in a package's ``__all__``, read without importing it."""
    spec = find_spec(package.split(".")[0])
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).parent.joinpath(*package.split(".")[1:], "__init__.py").read_text(encoding="utf-8")
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.Assign) and getattr(statement.targets[0], "id", "") == "__all__":
            return list(ast.literal_eval(statement.value))
    return []
