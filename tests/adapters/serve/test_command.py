"""``onlinevi serve`` as people start it: a process, a port, an orderly end, and refusals in one line."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.served import new_folder

from onlinevi.adapters.cli import main
from onlinevi.adapters.serve import Folder
from onlinevi.client import Client


def test_a_service_starts_learns_and_ends_in_order(tmp_path: Path) -> None:
    call = [sys.executable, "-m", "onlinevi", "serve", "--json", "--port", "0", "--new", "clicks", "--target", "y"]
    how: dict[str, Any] = {"env": os.environ, "cwd": tmp_path, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*call, "--rule", "implicit"], text=True, **how) as service:
        assert service.stderr is not None
        assert service.stdout is not None
        assert service.stderr.readline() == "clicks: 0 events\n"
        address = re.search(r"http://127\.0\.0\.1:\d+", service.stderr.readline())
        assert address is not None
        told = json.loads(service.stdout.readline())
        assert told == {"address": address[0], "folder": "models", "events": {"clicks": 0}}
        with Client(address[0]) as client:
            client["clicks"].learn_many([{"row": {"a": k % 5}, "label": "no" if k % 5 < 2 else "yes"} for k in range(40)])
            assert client["clicks"].predict({"a": 4})["prediction"] == "yes"
        service.send_signal(signal.SIGTERM)
        assert service.stderr.read() == "stopped: everything acknowledged is on disk\n"
        assert service.wait() == 143
    with_models = Folder(tmp_path / "models")
    assert with_models["clicks"].published.number == 40
    with_models.close()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--host", "0.0.0.0"], "--tokens FILE"),
        (["--new", "clicks"], "--target COL"),
        (["--new", "../up", "--target", "y"], "small letters"),
        (["--new", "clicks", "--target", "y", "--rule", "nonsense"], "nonsense"),
        (["--tokens", "absent"], "No such file"),
        (["--port", "99999999"], "0 to 65535"),
        (["--snapshot-every", "0"], "--snapshot-every 0: needs a number from 1"),
        (["--wait-days", "nan"], "--wait-days nan: needs a number from 0"),
        (["--target", "y"], "--new NAME"),
        (["--task", "classes"], "--new NAME"),
        (["--prot", "80"], "did you mean"),
    ],
)
def test_calls_that_cannot_be_served(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str], why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        code = main(["serve", "models", *arguments])
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    said = capsys.readouterr().err
    assert code == 2
    assert why in said
    assert "Traceback" not in said


def test_one_process_has_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new_folder(tmp_path / "clicks")
    first = Folder(tmp_path)
    assert main(["serve", str(tmp_path), "--port", "0"]) == 2
    assert "another process" in capsys.readouterr().err
    first.close()
