"""No call ends in a traceback: odd files, damaged files, odd options, closed and full and narrow standard streams."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from fuzz_command_line import fault

from onlinevi.adapters.cli import main

CASES, A_TEST = 300, 30


@pytest.mark.parametrize("first", range(0, CASES, A_TEST))
def test_generated_calls_do_what_they_are_asked_for_or_say_why_not(first: int, tmp_path: Path) -> None:
    for number in range(first, first + A_TEST):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert (wrong := fault(number, folder)) is None, wrong


@pytest.fixture
def few(tmp_path: Path) -> Path:
    """A file of few rows, with names that are not ASCII."""
    path = tmp_path / "few.csv"
    path.write_text(
        "a,ü,y\n" + "".join(f"{i % 7},{i % 3},{'já' if i % 7 > 3 else '−'}\n" for i in range(40)), encoding="utf-8"
    )
    return path


def call(*arguments: object, shell: str = '"$@"', **variables: str) -> subprocess.CompletedProcess[bytes]:
    """A call in a process of its own, by a shell that may redirect its streams."""
    command = [sys.executable, "-m", "onlinevi", *map(str, arguments)]
    return subprocess.run(["sh", "-c", shell, "sh", *command], capture_output=True, env=os.environ | variables, check=False)


ONE_BY_ONE = """
import json, sys
from onlinevi.adapters.cli import main
for call in json.loads(sys.argv[1]):
    try:
        code = main(call)
    except SystemExit as stopped:
        code = stopped.code
    assert code == 0, call
"""


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_output_in_any_encoding(encoding: str, few: Path, tmp_path: Path) -> None:
    run = ["run", str(few), "--target", "y", "--rule", "svb", "--out", str(tmp_path / "o")]
    calls = json.dumps([["--help"], ["merge", "--help"], run])
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    done = subprocess.run([sys.executable, "-c", ONE_BY_ONE, calls], capture_output=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    printed = call("predict", tmp_path / "o" / "model.ovi", few, PYTHONIOENCODING=encoding).stdout
    assert "já" in printed.decode("utf-8"), "rows are UTF-8, as in files"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
def test_a_full_disk_is_said_in_one_line(few: Path, tmp_path: Path) -> None:
    run = ("run", few, "--target", "y", "--rule", "svb")
    for arguments, shell in ((run, '"$@" > /dev/full'), ((*run, "--predictions", "-"), '"$@" > /dev/full')):
        done = call(*arguments, shell=shell)
        assert done.returncode == 1
        assert done.stderr.decode().splitlines()[-1] == "onlinevi: No space left on device"
    (tmp_path / "said.csv").symlink_to("/dev/full")
    done = call(*run, "--predictions", tmp_path / "said.csv")
    assert done.returncode in (1, 2), "a device cannot be cut back either"
    assert b"Traceback" not in done.stderr
    assert b"said.csv" in done.stderr


def test_streams_that_are_closed(few: Path) -> None:
    run = ("--target", "y", "--rule", "svb")
    done = call("run", "-", *run, shell='"$@" <&-')
    assert done.returncode == 2
    assert b"standard input is closed" in done.stderr
    assert call("run", few, *run, shell='"$@" 2>&-').returncode == 0
    assert call("run", few, *run, shell='"$@" >&-').returncode == 0
    assert call("run", few, "--target", "nope", shell='"$@" >&- 2>&-').returncode == 2


INTERRUPTED_IN_AN_IMPORT = """
import builtins, sys, onlinevi_command
plain = builtins.__import__
def slow(name, *rest):
    if name == "numpy":
        raise KeyboardInterrupt
    return plain(name, *rest)
builtins.__import__ = slow
sys.exit(onlinevi_command.main())
"""


def test_the_import_may_be_interrupted_and_its_variables_wrong() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_IN_AN_IMPORT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "onlinevi: interrupted before anything was begun\n")
    start, wrong = [sys.executable, "-m", "onlinevi_command", "data"], os.environ | {"ONLINEVI_ENGINE": "fast"}
    done = subprocess.run(start, capture_output=True, text=True, env=wrong, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("onlinevi: engine 'fast': needs 'compiled' or 'interpreted'")


def test_what_nobody_thought_of_is_one_line_and_a_traceback_on_demand(
    few: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("onlinevi.runs.Run.go", lambda *_: {}["nowhere"])
    for debug in ([], ["--debug"]):
        assert main(["run", str(few), "--target", "y", "--rule", "svb", *debug]) == 1
        said = capsys.readouterr().err
        assert said.splitlines()[-1] == "onlinevi: KeyError: 'nowhere'. This should not happen: --debug shows where it did"
        assert ("Traceback" in said) == bool(debug)


def test_files_that_are_no_tables_say_what_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "a,y\n" + "1,yes\n2,no\n" * 5
    for name, content, says in (
        ("t.zip", b"PK\x03\x04" + bytes(50), "zip file"),
        ("t.csv", rows.encode("utf-16"), "UTF-16"),
        ("t.csv", rows.encode("utf-16-le"), "zero bytes"),
        ("t.csv", rows.replace("\n", "\r").encode(), "carriage returns"),
        ("t.csv", b"a" * 140_000 + b",y\n1,yes\n", "no header"),
        ("t.svm", b"1 1:1\n-1 99999999:1\n", "GiB"),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        assert main(["run", str(path), "--target", "y" if name != "t.svm" else "label", "--rule", "svb"]) == 2
        assert says in capsys.readouterr().err


def test_places_that_cannot_be_written_are_refused_before_the_first_row(
    few: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ["run", str(few), "--target", "y", "--rule", "svb"]
    for arguments, says in (
        ([*run, "--out", str(few)], "there is a file of this name"),
        ([*run, "--out", str(few / "out")], "there is a file of this name"),
        ([*run, "--checkpoint", str(tmp_path)], "a directory"),
        ([*run, "--checkpoint", str(tmp_path / "no" / "m.ovi")], "no directory; make it first"),
        (["info", str(tmp_path)], "name the model in it"),
    ):
        assert main(arguments) == 2
        assert says in capsys.readouterr().err


def test_a_list_in_a_column_that_is_dropped_is_no_bad_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.ndjson"
    path.write_text("".join(f'{{"a": {i % 3}, "tags": [1, 2], "y": {i % 2}}}\n' for i in range(20)))
    assert main(["run", str(path), "--target", "y", "--rule", "svb"]) == 2
    assert "a list, needs one value; spread it over columns, or drop it" in capsys.readouterr().err
    for chosen in (["--drop", "tags"], ["--keep", "a"]):
        assert main(["run", str(path), "--target", "y", "--rule", "svb", *chosen]) == 0
    assert "1 column" in capsys.readouterr().out
