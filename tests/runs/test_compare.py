"""``onlinevi compare``: each rule as if it were alone."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.run_files import write_rows

import onlinevi as ovi
from onlinevi.adapters.cli import main
from onlinevi.data.formats import base
from onlinevi.runs import compare, plot_comparison
from onlinevi.runs.compare import Comparison
from onlinevi.runs.run import Stopper
from onlinevi.runs.settings import Settings

pytest.importorskip("pyarrow", reason='pyarrow is missing: pip install "onlinevi[files]"')

RULES = ("svb", "implicit")
COUNT = 1300


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two batches, and names that come late."""
    monkeypatch.setattr(base, "CHUNK", 1 << 15)
    path = tmp_path / "rows.csv"
    write_rows(path, COUNT)
    return path


def standings(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {own["rule"]: own for own in document["rules"]}


@pytest.mark.parametrize("more", [[], ["--delay", "3", "--keep", "a"]])
def test_each_rule_does_as_in_a_run_of_its_own(
    rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    lines = rows.read_text().splitlines(keepends=True)
    lines[401] = "1e200,0,t0,yes\n"  # refused by the learners
    lines[1101] = "1,0,t0,maybe\n"  # by the label
    lines[1201] = "1,0\n"  # by the reader
    rows.write_text("".join(lines[: 60 if more else None]))
    call = [str(rows), "--target", "sold", "--bad-rows", "skip", *more, "--json"]
    assert main(["compare", *call, "--rules", ",".join(RULES), "--out", str(tmp_path / "all")]) == 0
    printed = json.loads(capsys.readouterr().out)
    found = standings(json.loads((tmp_path / "all" / "compare.json").read_text()))
    for rule in RULES:
        assert main(["run", *call, "--rule", rule, "--out", str(tmp_path / rule)]) == 0
        alone = json.loads((tmp_path / rule / "run.json").read_text())
        assert found[rule]["average_loss"] == alone["summary"]["average_loss"]
        assert found[rule]["error_rate"] == alone["summary"]["error_rate"]
        assert found[rule]["curve"] == {name: alone["trace"][name] for name in ("steps", "average_loss")}
        assert found[rule]["metrics"] == alone["metrics"]["so_far"]["learner"]
        assert found[rule]["recent"] == (alone["metrics"]["recent"]["learner"] if not more else {})
        assert found[rule]["refused"] + printed["bad_rows"] == alone["summary"]["bad_rows"]["count"]
    assert [own["rule"] for own in printed["rules"]] == sorted(RULES, key=lambda rule: found[rule]["average_loss"])
    assert (found["svb"]["certified_regret"] is not None) == (not more), "of late labels nothing is certain"
    assert found["implicit"]["certified_regret"] is None, "it has no box"


def test_numbers_have_a_coverage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X = np.random.default_rng(1).standard_normal((120, 2))
    y = 50.0 + X @ [3.0, -1.0]
    path = tmp_path / "n.csv"
    path.write_text("a,b,price\n" + "\n".join(f"{a!r},{b!r},{c!r}" for a, b, c in np.column_stack([X, y]).tolist()))
    assert main(["compare", str(path), "--target", "price", "--rules", "auto", "--coverage", "0.8", "--json"]) == 0
    own = json.loads(capsys.readouterr().out)["rules"][0]
    trace = ovi.auto(X, y, loss=ovi.Squared(), inputs=ovi.Inputs(missing=True), coverage=0.8)
    assert (own["coverage"], own["error_rate"]) == (np.mean((trace.lower <= y) & (y <= trace.upper)), None)


def test_what_stops_one_rule_leaves_the_others_alone(
    rows: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["compare", str(rows), "--target", "sold", "--rules", "svb,implicit,oga", "--family", "mean-field"]
    assert main([*call, "--json"]) == 0
    before = standings(json.loads(capsys.readouterr().out))
    learn = ovi.Sets.update_many

    def update_many(learner: Any, state: Any, X: Any, y: Any, **options: Any) -> Any:
        if isinstance(learner.inner.inner.rule, ovi.SVB):
            if state.count == 40 and not refused:
                refused.append(True)
                raise ovi.BadRow(0, "not this one")
            if state.count >= 1000:
                raise FloatingPointError("too much")
        return learn(learner, state, X, y, **options)

    refused: list[bool] = []
    monkeypatch.setattr(ovi.Sets, "update_many", update_many)
    assert main([*call, "--json"]) == 0
    after = standings(json.loads(capsys.readouterr().out))
    assert after["implicit"] | {"seconds": 0} == before["implicit"] | {"seconds": 0}
    assert (after["svb"]["refused"], after["svb"]["out"], before["svb"]["out"]) == (1, True, False)
    assert "too much" in after["svb"]["why"]
    assert 1000 <= after["svb"]["events"] < COUNT
    assert after["oga"]["events"] == 0
    assert "oga has no step" in after["oga"]["why"]
    assert list(after) == ["implicit", "svb", "oga"], "those that are out come last"
    assert main(call) == 0
    printed = capsys.readouterr().out
    assert "svb: out behind row" in printed
    assert [line.split()[0] for line in printed.splitlines()[2:5]] == ["implicit", "svb", "oga"]


def test_a_stop_leaves_the_table_so_far(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    take = compare.Comparison._take

    def taken(self: Comparison, *arguments: Any) -> None:
        take(self, *arguments)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(compare.Comparison, "_take", taken)
    call = ["compare", str(rows), "--target", "sold", "--rules", "implicit", "--out", str(tmp_path / "out")]
    assert main(call) == 130
    assert "Interrupted" in capsys.readouterr().out
    document = json.loads((tmp_path / "out" / "compare.json").read_text())
    assert document["stopped"] == "interrupted"
    assert 0 < document["rules"][0]["events"] < COUNT


def test_a_bad_row_stops_all_behind_the_same_rows(rows: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = rows.read_text().splitlines(keepends=True)
    lines[1101] = "1,0,t0,maybe\n"
    rows.write_text("".join(lines))
    assert main(["compare", str(rows), "--target", "sold", "--rules", "implicit,svb", "--json"]) == 2
    printed = capsys.readouterr()
    assert "row 1100" in printed.err
    assert [own["events"] for own in json.loads(printed.out)["rules"]] == [1100, 1100]


def test_wrong_calls_are_answered(rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.csv").write_text("a,sold\n")
    for call, answer in (
        ([str(rows), "--target", "sold", "--rules", "svb,best"], "rule='best'"),
        ([str(rows), "--target", "sold", "--rules", ","], "no rule to compare"),
        ([str(rows), "--target", "sold", "--rules", "auto,oga", "--family", "full"], "auto chooses its families itself"),
        ([str(rows), "--target", "sold", "--rules", "implicit", "--drop", "a,b,town"], "no column is left"),
        ([str(tmp_path / "empty.csv"), "--target", "sold"], "no rows"),
        ([str(tmp_path / "none.csv"), "--target", "sold"], "none.csv"),
    ):
        assert main(["compare", *call]) == 2
        assert answer in capsys.readouterr().err


def test_the_figure_has_a_line_a_rule(rows: Path) -> None:
    with Comparison(Settings("sold"), RULES, str(rows)) as comparison:
        comparison.go(Stopper())
    curves = comparison.curves
    axes = plot_comparison(curves).axes[0]
    assert [line.get_label() for line in axes.lines] == list(curves) == [own.rule for own in comparison.standings]
    for line, (steps, average) in zip(axes.lines, curves.values(), strict=True):
        late = steps >= 10
        np.testing.assert_array_equal(line.get_xydata(), np.column_stack([steps[late], average[late]]))
    one = np.array([1.0])
    assert plot_comparison({"svb": (one, one)}).axes
    assert plot_comparison({"svb": (one, -one), "auto": (one, np.array([np.inf]))}).axes
