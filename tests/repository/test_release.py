"""What a release is told by: versions that agree, and files that are where they are named."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import release
from extras import FOR

from onlinevi.engine import __version__

ROOT = Path(__file__).parents[2]


def test_one_version_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == __version__
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_core_stays_small() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {re.match(r"[\w-]+", requirement)[0] for requirement in project["dependencies"]}  # type: ignore[index]
    assert needed == {"numpy", "numba", "scipy"}


def test_each_extra_is_told_of_with_its_weight() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {*FOR} == {*extras} - {"peers", "test"}, "those of developers alone are left out"
    told = (ROOT / "docs" / "install.md").read_text()
    assert all(f"| `{name}` | {purpose} |" in told for name, purpose in FOR.items())


def test_the_container_copies_what_is_there_and_asks_for_what_there_is() -> None:
    text = (ROOT / "Dockerfile").read_text()
    for names in re.findall(r"^COPY (?!--from)(.*) \./?\S*$", text, re.MULTILINE):
        for name in names.split():
            assert (ROOT / name).exists(), name
            assert f"!{name}" in (ROOT / ".dockerignore").read_text().split()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(re.findall(r"\[([a-z,]+)\]", text)[0].split(",")) <= set(extras)


def test_each_citation_of_the_paper_has_an_entry_and_each_entry_a_citation() -> None:
    text = (ROOT / "paper" / "paper.md").read_text()
    entries = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "paper" / "paper.bib").read_text(), re.MULTILINE))
    assert set(re.findall(r"@(\w+)", text)) == entries
    for image in re.findall(r"\]\((\S+\.png)\)", text):
        assert (ROOT / "paper" / image).exists()


def test_a_file_that_the_wheel_lacks_is_named(tmp_path: Path) -> None:
    import zipfile

    wheel = tmp_path / "w.whl"
    here = [path for path in (ROOT / "src").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in here:
            if path.name != "page.css":
                archive.writestr(path.relative_to(ROOT / "src").as_posix(), b"")
    assert release.lacking(wheel) == ["onlinevi/runs/report/page.css"]


def test_what_fails_is_said(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="exit code 3"):
        release._run("python3", "-c", "raise SystemExit(3)", cwd=tmp_path)
