"""What documents say of the tree is true: the paper's map, the names and paths they mention, a cold reader's paths."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from types import FrameType

import numpy as np
import pytest

import onlinevi as ovi

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "onlinevi"
DOCUMENTS = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
TICKED = re.compile(r"`([^`\n]+)`")
FOLDERS = {path.name for path in [*ROOT.iterdir(), *SOURCE.iterdir()] if path.is_dir()} - {"site"}
"""What a path in a document may begin with."""
NEW = re.compile(r"`([^`]+)` \(new\)")
"""A file that a contributor makes."""


def ticked(cell: str) -> list[str]:
    return TICKED.findall(cell)


SECTIONS = [
    "2",
    "3",
    "3.1",
    "3.2",
    "3.3",
    "3.4",
    "4",
    "4.1",
    "4.2",
    "4.3",
    "5.1",
    "5.2",
    "6",
    "A.1",
    "A.2",
    "A.3",
    "A.4",
    "A.5",
]
NUMBERED = [
    *(f"({number})" for number in range(1, 27)),
    *(
        f"{kind} {number}"
        for kind, last in (("Algorithm", 3), ("Proposition", 2), ("Theorem", 6))
        for number in range(1, last + 1)
    ),
    *(f"Assumption 4.{number}" for number in (1, 2, 3)),
    *(f"footnote {number}" for number in range(1, 5)),
    "Lemma 1",
    "Figure 1",
]
"""What the paper numbers."""


def paper_map() -> list[tuple[str, str, list[str], list[str]]]:
    """The section, the claim, the files and the names of each row."""
    text = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8").split("## Where it is")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [(section, claim, ticked(files), ticked(names)) for section, claim, files, names in rows[1:]]


def test_the_map_is_in_the_order_of_the_paper() -> None:
    found = [section for section, *_ in paper_map()]
    assert list(dict.fromkeys(found)) == SECTIONS
    assert found == sorted(found, key=SECTIONS.index)


@pytest.mark.parametrize("item", NUMBERED)
def test_the_map_has_every_number_of_the_paper(item: str) -> None:
    claims = [claim for _, claim, *_ in paper_map()]
    assert any(re.search(rf"{re.escape(item)}(?!\d)", claim) for claim in claims)


def test_the_equations_of_the_map_are_in_order() -> None:
    numbers = [int(number) for _, claim, *_ in paper_map() for number in re.findall(r"\((\d+)\)", claim)]
    assert numbers == list(range(1, 27))


@pytest.mark.parametrize(("files", "names"), [row[2:] for row in paper_map()], ids=lambda cell: cell[0])
def test_the_map_of_the_paper_is_right(files: list[str], names: list[str]) -> None:
    """Every name is defined in one of its row's files, and no file is there for nothing."""
    assert files
    assert names
    modules = [import_module("onlinevi." + file.removesuffix(".py").replace("/", ".")) for file in files]
    homes = {name: [module for module in modules if hasattr(module, name.split(".")[0])] for name in names}
    for name, found in homes.items():
        assert found, f"{name} is in none of {files}"
        assert any(resolve_name(f"{module.__name__}:{name}") is not None for module in found)
    assert all(any(module in found for found in homes.values()) for module in modules), f"one of {files} has none of {names}"


def paths_in(document: Path) -> list[str]:
    """What stands in backticks and looks like a file or a folder of the repository."""
    found = []
    for text in ticked(document.read_text(encoding="utf-8")):
        path = text.removeprefix("python ").split("::")[0]
        rooted = path.split("/")[0] in FOLDERS and re.fullmatch(r"[\w./]+", path) and "/" in path
        if rooted and path.endswith((".py", ".md", ".toml", "/")):
            found.append(path)
    return found


def exists(path: str) -> bool:
    return any((root / path).exists() for root in (ROOT, SOURCE))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_path_in_a_document_exists(document: Path) -> None:
    new = NEW.findall(document.read_text(encoding="utf-8"))
    missing = [path for path in paths_in(document) if not (exists(path) or path in new)]
    assert not missing, f"{document.name} names {missing}"


def test_paths_are_found_where_they_are() -> None:
    assert "learners/base.py" in paths_in(ROOT / "docs" / "design.md")
    assert "tests/helpers/catalogue.py" in paths_in(ROOT / "CONTRIBUTING.md")
    assert not exists("tests/test_rules.py")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_test_in_a_document_exists(document: Path) -> None:
    for text in ticked(document.read_text(encoding="utf-8")):
        file, _, test = text.partition("::")
        if test:
            assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), text


def test_every_erratum_names_tests_that_exist() -> None:
    errata = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8").split("\n## ")
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "guarantees").glob("test_errata*.py"))
    for entry in errata[1:16]:
        named = [text for text in ticked(entry) if text.startswith("test_")]
        assert named, entry.splitlines()[0]
        assert [name for name in named if f"def {name}(" not in tests] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_name_in_a_document_exists(document: Path) -> None:
    for name in re.findall(r"`(onlinevi(?:\.\w+)+)", document.read_text(encoding="utf-8")):
        assert resolve_name(name) is not None
    for name in re.findall(r"`ovi\.(\w+(?:\.\w+)*)", document.read_text(encoding="utf-8")):
        assert resolve_name(f"onlinevi:{name}") is not None


def reading_list(number: int) -> list[str]:
    """The files of one of the cold reader's paths, as design.md has them."""
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8").split("## A cold reader's path")[1].split("\n## ")[0]
    lists = re.split(r"\n(?=1\. )", text)[1:]
    return re.findall(r"^\d+\. `([^`]+)`", lists[number], flags=re.MULTILINE)


def file_of(frame: FrameType) -> str | None:
    file = Path(frame.f_code.co_filename)
    return file.relative_to(SOURCE).as_posix() if file.is_relative_to(SOURCE) else None


def test_from_learn_to_the_step_of_svb() -> None:
    listed = reading_list(0)
    assert listed[-1] == "rules/svb.py"
    assert len(listed) == len(set(listed)) <= 10
    stack: list[str] = []

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and file_of(frame) == "rules/svb.py" and frame.f_code.co_name == "new_belief" and not stack:
            above: FrameType | None = frame
            while above is not None:
                stack.insert(0, file_of(above) or "")
                above = above.f_back

    sys.setprofile(watch)
    try:
        ovi.learn(np.ones((2, 2)), [1.0, -1.0], loss=ovi.Hinge(), rule=ovi.SVB(10.0))
    finally:
        sys.setprofile(None)
    called = [file for file in dict.fromkeys(stack) if file and file != "engine/interpreter.py"]  # which only silences numpy
    assert called == [file for file in listed if file in called]
    assert set(called) > {"learners/linear.py", "engine/loop.py", "beliefs/mean_field.py"}


RUN = """
import sys
from pathlib import Path
import onlinevi
from onlinevi.adapters.cli import main

source, seen = Path(onlinevi.__file__).parent, set()
sys.setprofile(lambda frame, event, _: seen.add(frame.f_code.co_filename) if frame.f_code.co_name != "<module>" else None)
try:
    main(["run", "rows.csv", "--target", "y", "--rule", "svb", "--out", "out"])
finally:
    sys.setprofile(None)
    names = (Path(name) for name in seen)
    Path("seen").write_text("\\n".join(name.relative_to(source).as_posix() for name in names if source in name.parents))
"""


def test_from_a_row_of_a_file_to_the_report(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    pytest.importorskip("plotly")
    listed = reading_list(1)
    assert listed[-1] == "runs/report/page.py"
    assert len(listed) == len(set(listed)) <= 30
    rows = np.random.default_rng(0).standard_normal((40, 2))
    lines = [f"{a:.3f},{b:.3f},{'up' if a > b else 'down'}" for a, b in rows]
    (tmp_path / "rows.csv").write_text("\n".join(["a,b,y", *lines]), encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", RUN], cwd=tmp_path, env=environment, check=True, capture_output=True)
    assert (tmp_path / "out" / "report.html").exists()
    called = (tmp_path / "seen").read_text(encoding="utf-8").split("\n")
    assert [file for file in listed if file not in called] == []
