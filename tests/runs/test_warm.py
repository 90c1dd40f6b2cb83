"""What compiling costs is said, paid before the first row, and can be paid ahead."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

import onlinevi as ovi
from onlinevi.adapters.cli import main
from onlinevi.engine import Kernel, compose, watching_kernels
from onlinevi.runs import warm as module
from onlinevi.runs.warm import warm

pytest.importorskip("pyarrow", reason='pyarrow is missing: pip install "onlinevi[files]"')


def doubled(values):  # type: ignore[no-untyped-def]
    for i in range(len(values)):
        values[i] *= 2.0


@pytest.mark.compiled
def test_a_kernel_knows_whether_it_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))  # an earlier run may have left it in the usual one
    kernel = compose(doubled, {})
    assert not kernel.is_compiled
    asked: list[Kernel] = []
    with watching_kernels(asked.append):
        kernel(np.ones(2))
        kernel(np.ones(2))
    assert asked == [kernel], "once, before it runs"
    assert kernel.is_compiled


@pytest.mark.compiled
def test_loops_are_counted_before_they_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = ovi.Linear(ovi.Hinge(), ovi.NGVI())  # a loop that others compile too
    rows, labels = np.ones((3, 2)), np.array([1.0, -1.0, 1.0])
    state, told = learner.init(2), []
    monkeypatch.setattr(Kernel, "is_compiled", property(lambda kernel: False))
    assert warm(learner, state, rows, labels, lambda number, total: told.append((number, total))) == 1
    assert told == [(1, 1)]
    monkeypatch.undo()
    assert warm(learner, state, rows, labels, lambda *_: told.append(_)) == 0, "now it is there"
    assert state == learner.init(2)


@pytest.mark.compiled
def test_what_is_compiled_is_not_interpreted_to_be_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few rows of many classes on features would take seconds so, at the start of every run."""
    learner, rows, labels = ovi.Linear(ovi.Hinge(), ovi.NGVI()), np.ones((3, 2)), np.array([1.0, -1.0, 1.0])
    warm(learner, learner.init(2), rows, labels, lambda *_: None)
    made, asked = Kernel.on, list[str]()
    monkeypatch.setattr(Kernel, "on", lambda kernel, engine: (asked.append(engine), made(kernel, engine))[1])
    assert warm(learner, learner.init(2), rows, labels, lambda *_: None) == 0
    assert set(asked) == {"compiled"}


@pytest.mark.compiled
def test_a_run_says_so_and_does_not_count_it(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["run", str(rows), "--target", "sold", "--rule", "implicit", "--json", "--out", str(tmp_path / "out")]
    played = module._play

    def play_slowly(*arguments: Any) -> None:
        time.sleep(1.0)
        played(*arguments)

    monkeypatch.setattr(Kernel, "is_compiled", property(lambda kernel: False))
    monkeypatch.setattr(module, "_play", play_slowly)
    begun = time.monotonic()
    assert main(call) == 0
    took, printed = time.monotonic() - begun, capsys.readouterr()
    assert "for this machine, once" in printed.err
    assert json.loads(printed.out)["seconds"] < took - 2.0
    monkeypatch.undo()
    assert main(call) == 0
    assert "compiling" not in capsys.readouterr().err


@pytest.mark.compiled
def test_loops_may_be_compiled_ahead(capsys: pytest.CaptureFixture[str]) -> None:
    call = ["warm", "--task", "classes", "--rule", "implicit"]
    assert main(call) == 0
    capsys.readouterr()
    assert main(call) == 0
    assert "Everything was compiled already." in capsys.readouterr().out


def test_too_many_columns_are_refused_before_room_is_made_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "wide.svm"
    path.write_text("1 1:1\n-1 9999:1\n")
    monkeypatch.setattr("onlinevi.runs.settings.memory", lambda: 2**20)
    monkeypatch.setattr(module, "begin", lambda *_, **__: pytest.fail("there is no such room"))
    assert main(["run", str(path), "--target", "label", "--rule", "svb"]) == 2
    assert "GiB" in capsys.readouterr().err


def test_an_engine_that_compiles_nothing_needs_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["warm"]) == 0
    assert "Everything was compiled already." in capsys.readouterr().out
