"""``onlinevi value``: what Python says of the same log, in words and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onlinevi.adapters.cli import main
from onlinevi.bandit import value


@pytest.fixture
def log(tmp_path: Path) -> Path:
    rng, lines = np.random.default_rng(0), ["number,arm,propensity,reward,probabilities.1,probabilities.2,wanted,chance,city"]
    for number in range(200):
        arm = int(rng.random() < 0.4) + 1
        reward = "" if number == 7 else str(float(rng.random() < 0.3 * arm))
        lines.append(f"{number},{arm},{(0.6, 0.4)[arm - 1]},{reward},0.6,0.4,{1 + number % 2},{0.5 + 0.1 * (arm == 2)},Rome")
    path = tmp_path / "log.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("words", "policy"),
    [
        ([], None),
        (["--arm", "2"], 2),
        (["--chosen", "wanted"], lambda one: int(one.context["wanted"])),
        (["--chance", "chance"], lambda one: one.context["chance"]),
    ],
)
def test_it_says_what_python_says(words: list[str], policy: Any, log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = value(log, policy, confidence=0.9)
    assert main(["value", str(log), *words, "--confidence", "0.9", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    for name in ("estimate", "lower", "upper", "count", "missing", "earned"):
        assert found[name] == getattr(expected, name)
    assert found["gain"] == expected.gain._asdict()
    assert main(["value", str(log), *words, "--confidence", "0.9"]) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"{expected}.\nMore than the log's own policy was to earn by")
    assert "1 decisions have no reward" in told


def test_what_is_left_out_and_never_done_is_said(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = log.read_text().splitlines()
    log.write_text("\n".join([*rows[:100], *rows[101:]]) + "\n")
    assert main(["value", str(log), "--arm", "2"]) == 0
    assert "100 rows are left out" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--arm", "9"], "policy=9 is none of the arms of the log"),
        (["--chosen", "wante"], "the log has no column 'wante'"),
        (["--chosen", "city"], "chose 'Rome' for decision 0"),
        (["--chance", "city"], "has 'Rome' in the column 'city': needs a probability"),
        (["--range", "0", "0.5"], "outside of bounds"),
        (["--range", "1", "0"], "needs the least and the largest reward"),
        (["--confidence", "2"], "confidence=2.0"),
    ],
)
def test_wrong_calls_are_one_line(words: list[str], says: str, log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["value", str(log), *words]) in (1, 2)
    told = capsys.readouterr().err
    assert says in told
    assert told.count("\n") == 1


def test_a_file_that_is_none_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["value", str(tmp_path / "none.csv")]) == 2
    (tmp_path / "log.csv").write_text("arm,propensity\na,0.5\n")
    assert main(["value", str(tmp_path / "log.csv")]) in (1, 2)
    assert "no column 'reward'" in capsys.readouterr().err
