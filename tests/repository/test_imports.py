"""Pay for what you use."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "onlinevi"
HEAVY = ["jax", "sklearn", "pandas", "polars", "pyarrow", "matplotlib", "scipy", "numba", "river", "plotly"]


def loaded(script: str) -> set[str]:
    code = f"{script}\nimport sys\nprint(*sorted(name for name in sys.modules))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_importing_is_light() -> None:
    assert not loaded("import onlinevi") & set(HEAVY)


@pytest.mark.compiled
def test_learning_adds_the_compiler_alone() -> None:
    script = "import onlinevi as o; o.learn([[1.0]], [1.0], loss=o.Hinge(), rule=o.SVB())"
    modules = loaded(script)
    assert "numba" in modules
    assert not modules & {"jax", "sklearn", "pandas", "matplotlib", "scipy.optimize"}


def test_a_name_is_a_module_or_what_is_in_it_and_never_both() -> None:
    """``import onlinevi.risk; onlinevi.risk.Bound`` fails where a function of that name hides the module."""
    both = []
    for door in PACKAGE.rglob("__init__.py"):
        parts = {path.stem for path in door.parent.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
        for statement in ast.parse(door.read_text(encoding="utf-8")).body:
            if isinstance(statement, ast.ImportFrom):
                package = ".".join(("onlinevi", *door.parent.relative_to(PACKAGE).parts))
                given = {name.asname or name.name for name in statement.names} if statement.module != package else set()
                both += [f"{package}.{name}" for name in given & parts]
    assert both == []


ASKED = {("guarantees/sources.py", "State"), ("runs/shards/drive.py", "InputState")}
"""Whether a state has the sums of one rule, as theorems need them; and whether moments were given, or what has some."""
KINDS = re.compile(r"^class (\w+)\(.*\b(?:Loss|Learner|Combinator|Wrapped|Named)\b", re.MULTILINE)
QUESTION = re.compile(r"is(?:instance|subclass)\((?:[^()]|\([^()]*\))*, ([^()]*)\)")


def test_nobody_asks_which_loss_or_learner_it_is_but_their_packages() -> None:
    """A loss says what it means, a learner what it gives: ``Loss`` and ``Learner`` alone may be asked for, of arguments."""
    sources = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    home = {
        name: package
        for package in ("losses", "learners")
        for file, text in sources.items()
        if file.startswith(f"{package}/")
        for name in KINDS.findall(text)
    }
    assert {"Absolute", "Linear", "Pool", "PoolState", "State"} <= set(home)
    found = {
        (file, name)
        for file, text in sources.items()
        for kinds in QUESTION.findall(text)
        for name in re.findall(r"\w+", kinds)
        if name in home and not file.startswith(f"{home[name]}/")
    }
    assert found == ASKED


def test_every_public_name_has_a_docstring() -> None:
    import onlinevi

    for name in onlinevi.__all__:
        assert getattr(onlinevi, name).__doc__, name


HOLES = [
    "expected",
    "new_belief",
    "moments",
    "advance",
    "event_at",
    "split_tail",
    "interleave",
    "views",
    "interleaved_views",
    "restore",
    "squares",
    "setting_at",
    "value",
    "missing_variance",
    "is_missing",
]


@pytest.mark.parametrize("name", HOLES)
def test_a_hole_refuses_to_be_called(name: str) -> None:
    from onlinevi.engine import holes

    hole = getattr(holes, name)
    with pytest.raises(TypeError, match="compose a kernel first"):
        hole(*[0] * hole.__code__.co_argcount)
