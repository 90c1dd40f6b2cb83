"""The command line as a person meets it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from onlinevi.adapters.cli import main


def test_help_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, expected in (
        (["--help"], ["run", "predict", "info", "reproduce", "data", "143 terminated"]),
        (["run", "--help"], ["--target COL", "--resume", "examples:", "130 or 143"]),
        (
            ["reproduce", "--help"],
            ["--out DIR", "--seeds N", "--network", "--beside N", "toy, breast, pima, cover, boston, california", "example:"],
        ),
        (["compare", "--help"], ["--rules A,B", "--target COL", "--family", "examples:", "130 or 143"]),
        (["data", "--help"], ["list", "fetch", "path", "ONLINEVI_DATA"]),
    ):
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert stopped.value.code == 0
        printed = " ".join(capsys.readouterr().out.split())
        assert all(word in printed for word in expected), printed


def test_every_command_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    commands = re.findall(r"^    ([a-z]+)\b", capsys.readouterr().out, re.MULTILINE)
    assert {"run", "compare", "bounds"} <= set(commands)
    for command in commands:
        with pytest.raises(SystemExit):
            main([command, "--help"])
        assert re.search(rf"examples?:\s+onlinevi {command}", capsys.readouterr().out)


def test_reproduce_writes_and_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reading = ["--scaling", "row", "--network", "width-50", "--beside", "0"]
    assert (
        main(["reproduce", "--out", str(tmp_path), "--data", "breast", "--rules", "SVB,NGVI", "--seeds", "1", *reading]) == 0
    )
    printed = capsys.readouterr()
    assert "2 runs in" in printed.out
    assert "`row`: rows of length 1" in printed.out
    assert printed.err == "", "no progress bar where there is no terminal"
    assert (tmp_path / "figure.png").exists()
    call = ["reproduce", "--out", str(tmp_path), "--data", "breast", "--rules", "SVB,NGVI", "--seeds", "1", *reading]
    assert main([*call, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 2


def test_what_cannot_be_had_by_name_is_exit_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ONLINEVI_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("onlinevi.data.catalogue.lookup._bring", lambda *_: (_ for _ in ()).throw(OSError("no network")))
    assert main(["reproduce", "--out", str(tmp_path), "--data", "pima"]) == 2
    message = capsys.readouterr().err
    assert "pima" in message
    assert "put pima.csv into" in message
    assert main(["data", "fetch", "pima", "toy"]) == 2
    assert main(["reproduce", "--data", "iris"]) == 2
    assert "there are toy" in capsys.readouterr().err


def test_bounds_prints_terms_and_where_it_is_vacuous(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bounds", "--T", "10000", "--dim", "54", "--loss", "hinge", "--rule", "sva"]) == 0
    printed = capsys.readouterr().out
    assert "SVA, rate 0.01: 22318.2, or 2.232 a step" in printed
    assert "100 (gradients) + 22218.2 (divergence)" in printed
    assert "from T = 24,935 on; vacuous here" in printed
    assert "SVA, explicit, excess risk, rate 0.1679: 0.441579\n" in printed, "of a risk there is no part a step"
    assert main(["bounds", "--T", "100", "--dim", "2", "--rule", "ngvi"]) == 0
    printed = capsys.readouterr().out
    assert "NGVI, floor, step 1, floor 0.1: " in printed
    assert "NGVI, scale, step " in printed
    assert "onlinevi.certificate" in printed
    assert main(["bounds", "--T", "10000", "--dim", "2", "--rule", "ewa", "--loss-bound", "3"]) == 0
    assert "EWA, computed prior mass, excess risk, its best rate" in capsys.readouterr().out
    assert main(["bounds", "--T", "100", "--dim", "2", "--rule", "ewa"]) == 2
    assert "loss_bound" in capsys.readouterr().err
    assert main(["bounds", "--T", "10000", "--dim", "10000", "--rule", "svb", "--ball", "20", "--prior-std", "0.01"]) == 0
    assert "SVB, convex, rate 28.3/(std²√t): 5660.39" in capsys.readouterr().out


def test_data_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines][:6] == ["toy", "breast", "pima", "cover", "boston", "california"]
    assert main(["data", "fetch", "toy", "breast"]) == 0
    assert main(["data", "path", "toy"]) == 2
    assert "generated" in capsys.readouterr().err


def test_the_progress_bars_draw_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    from onlinevi.adapters.cli import progress

    with progress.watching("work") as silent:
        assert silent is None
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with progress.watching("work") as bars:
        bars.plan(3)
        bars.progress("a", 0.0)
        bars.progress("a", 0.5)
        bars.progress("a", 1.0)
        bars.progress("b", 1.0)
        whole = bars._display.tasks[0]
        assert (whole.completed, whole.total) == (2, 3)
        assert len(bars._display.tasks) == 1


def test_the_module_runs() -> None:
    done = subprocess.run([sys.executable, "-m", "onlinevi", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("onlinevi 0.")
