"""The study of experiments/beyond.py in small: every method has its row, and no divergence is hidden."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from onlinevi import datasets

sys.path.append(str(Path(__file__).resolve().parents[2] / "experiments"))
import beyond
from beyond import METHODS, RANKS, SCALINGS, Run, cell, hindsight, report, scaled, study, values


def available(name: str) -> str:
    if not datasets.status(name).available:
        pytest.skip(f"{name} is not on this machine")
    return name


@pytest.mark.parametrize("name", ["toy", "breast"])
def test_every_method_has_its_row(name: str) -> None:
    runs = list(study([available(name)], SCALINGS, METHODS, seeds=1, most=60)) + list(hindsight([name]))
    for scaling, text in zip(SCALINGS, report(runs, [name]), strict=False):
        for method in [*METHODS, "*hindsight*"]:
            assert f"\n| {method} | {cell(values(runs, name, scaling, method))} |" in text
    for run in runs:
        assert (run.average_loss is None) == (run.overflowed_at is not None)
        assert run.average_loss is None or np.isfinite(run.average_loss)
        if run.average_loss is None:  # only the explicit full step overflows here, and only on raw rows
            assert (run.method, run.scaling) == ("SVB, full", "raw")


def test_implicit_steps_stay_where_explicit_ones_overshoot() -> None:
    methods = {name: METHODS[name] for name in ("SVB", "Implicit")}
    found = {run.method: run.average_loss for run in study([available("boston")], ["standard"], methods, 1, 506)}
    assert found["Implicit"] < 0.2
    assert found["SVB"] > 1000.0


def test_ranks_end_at_the_full_covariance() -> None:
    runs = {run.method: run for run in study([available("breast")], ["standard"], RANKS, 1, 10)}
    assert runs["rank 10"].average_loss == pytest.approx(runs["full"].average_loss)  # ten rows span ten directions
    assert runs["rank 10"].spread == pytest.approx(runs["full"].spread)
    assert runs["rank 1"].spread != pytest.approx(runs["full"].spread)


def test_scalings() -> None:
    X = np.array([[3.0, 4.0, 7.0], [0.0, 0.0, 7.0], [0.0, 0.0, 0.0]])
    assert np.linalg.norm(scaled(X, "rows"), axis=1) == pytest.approx([1.0, 1.0, 0.0])
    standard = scaled(X[:2], "standard")
    assert standard.std(axis=0) == pytest.approx([1.0, 1.0, 0.0])
    assert standard.mean(axis=0) == pytest.approx([0.0, 0.0, 0.0])
    assert scaled(X, "raw").tolist() == X.tolist()


def test_a_cell_says_what_diverged() -> None:
    assert cell([1.0, 3.0]) == "2 (1–3)"
    assert cell([None, 1.0, 3.0]) == "2 (1–3) diverges 1/3"
    assert cell([None]) == "diverges 1/1"
    assert cell([]) == "–"


def test_an_interrupted_study_keeps_what_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")

    def interrupted(*arguments: object) -> object:
        yield Run("toy", "raw", "OGA", 0, 0.5)
        raise KeyboardInterrupt

    monkeypatch.setattr(beyond, "study", interrupted)
    monkeypatch.setattr(sys, "argv", ["beyond.py", "--quick", "--data", "toy", "--out", str(tmp_path)])
    beyond.main()
    assert "| OGA | 0.5 |" in capsys.readouterr().out
    assert json.loads((tmp_path / "beyond.json").read_text())[-1]["average_loss"] == 0.5
    assert (tmp_path / "beyond.png").stat().st_size > 5000
