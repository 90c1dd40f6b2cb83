"""What pages tell people to type is what the command line takes, and their Python runs."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import transcripts

from onlinevi.adapters.cli import command_parser

DOCS = Path(__file__).parents[2] / "docs"
PYTHON = re.compile(r"(?<=```python\n).*?(?=```)", re.DOTALL)


@pytest.mark.parametrize("page", transcripts.PAGES, ids=lambda page: page.stem)
def test_commands_of_pages_are_taken(page: Path) -> None:
    blocks = transcripts.BLOCK.findall(page.read_text(encoding="utf-8"))
    typed = [command for block in blocks for command in transcripts.commands(block)]
    ours = [command for command in typed if command.startswith("onlinevi ")]
    assert len(ours) >= 4
    for command in ours:
        words = shlex.split(re.split(r" [|>2]", command)[0])[1:]
        assert command_parser().parse(words).command


def test_words_of_the_table_for_those_who_come_from_elsewhere_are_options() -> None:
    parser = command_parser()
    known = {word for command in parser.commands.values() for word in command.options}
    page = (DOCS / "coming-from.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ") and "`" in line]
    told = {word for row in rows for word in re.findall(r"--[a-z][a-z-]*", row[-1])}
    assert {"--hash-bits", "--from", "--kinds"} <= told
    assert told <= known, sorted(told - known)


def test_the_python_of_the_page_for_those_who_come_from_elsewhere_runs() -> None:
    blocks = PYTHON.findall((DOCS / "coming-from.md").read_text(encoding="utf-8"))
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, "coming-from.md", "exec"), {})


def test_a_block_is_run_and_shown_again(tmp_path: Path) -> None:
    shown = transcripts.run("$ echo one > f; cat f\nold\n$ true\n$ echo 'took'; echo '0.3 s.'\n", tmp_path)
    assert shown == "$ echo one > f; cat f\none\n$ true\n$ echo 'took'; echo '0.3 s.'\ntook\n"


def test_the_readme_shows_what_the_first_page_does() -> None:
    shown = (DOCS.parent / "README.md").read_text(encoding="utf-8").partition("```\n$ onlinevi")[2].partition("```")[0]
    lines = [line for line in shown.splitlines()[1:] if line != "…"]
    there = (DOCS / "start.md").read_text(encoding="utf-8")
    assert len(lines) >= 4
    for line in lines:
        assert line.removeprefix("$ ").removesuffix(" --quiet") in there


def test_the_accuracy_that_the_page_of_scikit_learn_quotes_is_what_its_example_prints() -> None:
    (quoted,) = re.findall(r"accuracy (0\.\d+), nothing tuned", (DOCS / "sklearn.md").read_text(encoding="utf-8"))
    assert f"one pass: accuracy {quoted}\n" in (DOCS / "recipes.md").read_text(encoding="utf-8")
