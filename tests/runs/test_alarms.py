"""Alarms in runs: told, kept in files, the same however rows arrive, and with what has moved."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason='pyarrow is missing: pip install "onlinevi[files]"')

import onlinevi as ovi
from onlinevi.adapters.cli import main
from onlinevi.runs import load_job
from onlinevi.runs.alarms import WIDEST, Alarms, Moments
from onlinevi.runs.report.measures import rang
from onlinevi.runs.report.scored import Alarms as Alarmed
from onlinevi.runs.report.scored import MovedColumn, OneAlarm

COUNT, CHANGE = 3000, 2000


def write(path: Path) -> None:
    """A label that turns its sign at the change, where one column moves, and another is missing now and then."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((COUNT, 3))
    late = np.arange(COUNT) >= CHANGE
    X[late, 1] += 1.5
    y = np.where(late, -2.0, 2.0) * X[:, 0] + 0.3 * rng.standard_normal(COUNT)
    rows = (
        f"{a:.4f},{b + 1e6:.4f},{'' if t % 9 == 2 else f'{c:.4f}'},{label:.4f}"
        for t, ((a, b, c), label) in enumerate(zip(X.tolist(), y.tolist(), strict=True))
    )
    path.write_text("a,b,c,y\n" + "\n".join(rows) + "\n")


def test_a_run_says_when_it_rang_and_what_moved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "rows.csv", tmp_path / "out"
    write(path)
    call = ["run", str(path), "--target", "y", "--rule", "implicit", "--no-hindsight"]
    assert main([*call, "--out", str(out)]) == 0
    assert "An alarm rang" in capsys.readouterr().out
    alarms = json.loads((out / "run.json").read_text())["alarms"]
    (one,) = alarms["rang"]
    assert (alarms["delta"], alarms["count"]) == (0.01, 1)
    assert one["since"] == CHANGE < one["row"] <= CHANGE + 200
    (moved,) = [each for each in one["moved"] if each["name"] != "y"]
    assert moved["name"] == "b"
    assert moved["stds"] == pytest.approx(1.5, abs=0.3)
    assert moved["after"] - moved["before"] == pytest.approx(1.5, abs=0.3)
    assert main([*call, "--no-alarm", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["alarms"] is None
    with pytest.raises(SystemExit):
        main([*call, "--alarm", "much"])
    assert main([*call, "--alarm", "2"]) == 2
    assert "alarm=2.0: needs the chance of a false alarm" in capsys.readouterr().err


def test_a_run_that_stops_and_goes_on_rings_at_the_same_rows(tmp_path: Path) -> None:
    path, found = tmp_path / "rows.csv", []
    write(path)
    lines = path.read_text().splitlines(keepends=True)
    for cuts in ([], [1, 777, CHANGE + 33]):
        folder = tmp_path / f"{len(cuts)}"
        for cut in [*cuts, COUNT]:
            path.write_text("".join(lines[: cut + 1]))
            rows = ["--target", "y", "--rule", "implicit", "--resume", "--no-hindsight", "--look", "1", "--task", "numbers"]
            assert main(["run", str(path), *rows, "--out", str(folder)]) == 0
        job = load_job(folder / "model.ovi")
        found.append((job.alarms.to_json(), job.metrics.to_json()))
    assert found[0] == found[1]
    assert found[0][0]["count"] == 1


def test_moments_of_blocks_are_those_of_their_rows() -> None:
    rng = np.random.default_rng(0)
    table = 1e8 + rng.standard_normal((1000, 3)) * [1.0, 5.0, 0.1]
    table[rng.random((1000, 3)) < 0.1] = np.nan
    table[800:, 1] += 10.0
    found = []
    for cuts in ([], [1, 49, 50, 51, 730], range(7, 1000, 13)):
        moments = Moments(centred=True)
        for part in np.split(table, list(cuts)):
            if len(part):
                moments.keep(moments.add(part))
        found.append(moments.to_json())
        (moved,) = moments.moved(4)
        assert moved.place == 1
        assert moved.before == pytest.approx(np.nanmean(table[:800, 1]), rel=1e-12)
        assert moved.stds == pytest.approx((np.nanmean(table[800:, 1]) - moved.before) / np.nanstd(table[:800, 1]), rel=1e-6)
    assert found[0] == found[1] == found[2]


def test_one_outlier_has_moved_whatever_it_makes_of_the_spread_behind_it() -> None:
    """The variance since is beyond all measure then; that of before is none of a constant."""
    rows = np.random.default_rng(0).normal(25_000.0, 13_000.0, (1050, 1))
    rows[1003] = 9e12
    moments = Moments(centred=True)
    moments.keep(moments.add(rows))
    (moved,) = moments.moved(1)
    assert moved.stds == pytest.approx(9e12 / 50 / 13_000, rel=0.1)
    constant = np.repeat([[5.0, 0.0], [5.0, 1.0]], [1000, 50], axis=0)
    constant[1020:, 0] = 6.0
    moments = Moments(centred=True)
    moments.keep(moments.add(constant))
    assert [(one.place, round(one.stds, 1)) for one in moments.moved(1)] == [(0, 1.2)], "by what it is since"


def test_a_column_is_told_of_once_by_the_feature_that_moved_most(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    days = np.datetime64("2024-01-01") + np.arange(COUNT) // 4
    x = rng.standard_normal(COUNT)
    y = np.where(np.arange(COUNT) < CHANGE, 2.0, -2.0) * x + 0.3 * rng.standard_normal(COUNT)
    model = ovi.fit({"day": days.astype(str), "x": x, "y": y}, target="y", rule="implicit")
    (one,) = model.alarms.rang
    named = [each.name.partition(".")[0] for each in one.moved]
    assert len(model.job.alarms.rang[0][1]) > len(named)
    assert named.count("day") == 1


def test_of_many_columns_nothing_is_kept() -> None:
    alarms = Alarms(0.01)
    alarms.add(np.zeros((60, WIDEST + 1)), np.zeros(60), np.zeros(60), classes=False, several=False)
    assert alarms.to_json()["columns"]["width"] == 0


def test_that_columns_are_not_watched_is_said() -> None:
    def said(*, columns: bool) -> str:
        one = OneAlarm(3050, 3000, 1.5, 0.2, 0.8, [])
        return rang(Alarmed(0.01, 1, [one], columns=columns))[0]

    assert "moved most: no column by itself." in said(columns=True)
    assert "moved most: not told of more than 100 columns." in said(columns=False)
    moved = [MovedColumn(name, 0.0, 1.0, stds) for name, stds in (("a", -1.25), ("b", 13.5e6), ("c", -212.0))]
    far = rang(Alarmed(0.01, 1, [OneAlarm(3050, 3000, 1.5, 0.2, 0.8, moved)]))[0]
    assert far.endswith("moved most: a by -1.2 stds, b by +14M stds, c by -210 stds.")
