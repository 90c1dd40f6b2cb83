"""Runs without an end: checkpoints by time, results written anew on the way, figures on a port, memory that does not grow."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.request import urlopen

import pytest
from helpers.run_files import write_rows

pytest.importorskip("pyarrow", reason='pyarrow is missing: pip install "onlinevi[files]"')

from onlinevi.adapters.cli import endless, main, progress
from onlinevi.adapters.cli.late import Span, every, span
from onlinevi.runs import Job, Places, Run, Settings, Stopper

SETTINGS = Settings("sold", rule="implicit", loss="hinge")


@pytest.fixture
def job(tmp_path: Path) -> Job:
    write_rows(tmp_path / "rows.csv", 300)
    with Run(SETTINGS, Places(str(tmp_path / "rows.csv"))) as run:
        run.go(Stopper())
    return run.job


def test_spans_are_rows_or_seconds() -> None:
    assert [span(text) for text in ("7", "1.5h", "2D")] == [Span(7), Span(None, 5400.0), Span(None, 172_800.0)]
    assert every("5000") == Span(5000, float("inf"))
    assert every("10s") == Span(sys.maxsize, 10.0)
    assert every("10s,5000") == every("5000, 10s") == Span(5000, 10.0)
    for text in ("", "0", "-1", "1.5", "s", "nan s", "infs", "0m", "5x", "1e400d"):
        with pytest.raises(argparse.ArgumentTypeError, match="needs"):
            span(text)
    for text in ("", "5,6", "1s,2s", "1,2,3s"):
        with pytest.raises(argparse.ArgumentTypeError, match="needs"):
            every(text)


@pytest.mark.parametrize("number", [2, 15])
def test_a_second_signal_ends_a_run_at_once(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the first waits for what may never come, as a broker that is away; whoever started it is told how it ended."""
    write_rows(tmp_path / "rows.csv", 50)

    def go(run: Run, stopper: Stopper, *_: Any) -> None:
        stopper(number)
        stopper(number)

    monkeypatch.setattr(Run, "go", go)
    assert main(["run", str(tmp_path / "rows.csv"), "--target", "sold", "--rule", "implicit", "-q"]) == 128 + number
    assert "the same call goes on behind it (run: with --resume)" in capsys.readouterr().err


def test_a_checkpoint_is_due_after_so_many_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a clock that goes on by a second a batch, every third batch is behind it."""
    from onlinevi.data import open_stream
    from onlinevi.runs import run as driver

    write_rows(tmp_path / "rows.csv", 300)
    monkeypatch.setattr(driver, "open_stream", lambda *given, **more: open_stream(*given, batch_rows=20, **more))
    now, saved = [0.0], []
    monkeypatch.setattr(driver.time, "monotonic", lambda: now[0])
    places = Places(str(tmp_path / "rows.csv"), tmp_path / "m.ovi", every=sys.maxsize, every_seconds=3.0)
    with Run(SETTINGS, places) as run:
        run.go(Stopper(), lambda *_: now.__setitem__(0, now[0] + 1.0), lambda job: saved.append(job.metrics.count))
    assert saved == [80, 140, 200, 260]


def test_checkpoints_come_where_they_are_due(tmp_path: Path) -> None:
    """However many rows come at once, bad ones among them, and from wherever the run began."""
    write_rows(tmp_path / "rows.csv", 300)
    lines = (tmp_path / "rows.csv").read_text().splitlines(keepends=True)
    (tmp_path / "rows.csv").write_text("".join([*lines[:31], "no row\n" * 70, *lines[31:]]))
    saved: list[int] = []
    places = Places(str(tmp_path / "rows.csv"), tmp_path / "m.ovi", every=50, bad_rows="skip")
    with Run(replace(SETTINGS, first_row=10), places) as run:
        run.go(Stopper(), on_saved=lambda job: saved.append(job.position.rows))
    assert saved == [100, 150, 200, 250, 300, 350], "the bad rows from 30 to 99 are between two of them"


def test_the_line_tells_the_speed_of_late_and_how_many_rows_were_bad(
    job: Job, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now, count = [0.0], [0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(type(job.metrics), "count", property(lambda metrics: count[0]))
    stream = SimpleNamespace(position=job.position, delivered=0.0)
    ticker = progress.Ticker("redis://localhost/clicks", 0, log=True)
    job.rejected.count = 1234
    for second in range(10, 110, 10):
        now[0], count[0] = float(second), count[0] + (100 if second < 100 else 5000)
        ticker(job, stream)
    assert [line.split(", ")[1] for line in capsys.readouterr().err.splitlines()] == ["10 a second"] * 9 + ["500 a second"]
    ticker(job, stream)
    now[0] += 10.0
    ticker(job, stream)
    assert "5,900 rows, 0 a second, average loss" in (last := capsys.readouterr().err)
    assert ", 1,234 bad" in last


def test_results_are_written_anew_now_and_then(job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, out = [100.0], tmp_path / "out"
    out.mkdir()
    monkeypatch.setattr(endless.time, "monotonic", lambda: now[0])
    rewrite, written = endless.Rewriter(out), []
    write = endless.write_results

    def slowly(*given: Any) -> Any:
        written.append(now[0])
        now[0] += 2.0
        return write(*given)

    monkeypatch.setattr(endless, "write_results", slowly)
    for second in range(100, 200):
        now[0] = max(now[0], float(second))
        if second < 150:
            rewrite.saved(job)
        rewrite(job)
    assert written == [105.0, 147.0, 189.0], "not at the start, and then a twentieth of the time, until the last is shown"
    assert json.loads((out / "run.json").read_text())["summary"]["stopped"] == "running"
    assert "The run goes on; this is what it knows so far." in (out / "report.html").read_text()


def test_figures_are_those_of_the_last_batch(job: Job) -> None:
    pytest.importorskip("prometheus_client")
    with endless.Exporter(0) as exporter:
        assert "onlinevi_events" not in urlopen(exporter.address).read().decode()
        exporter.publish(job)
        told = urlopen(exporter.address).read().decode()
        assert exporter.address.startswith("http://127.0.0.1:")
    figures = dict(line.split() for line in told.splitlines() if line and line[0] != "#")
    assert float(figures["onlinevi_events_total"]) == 300
    assert float(figures["onlinevi_average_loss"]) == job.metrics.average_loss
    assert float(figures["onlinevi_accuracy"]) == job.metrics.hit_rate
    assert float(figures["onlinevi_bad_rows_total"]) == 0


@pytest.mark.compiled
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="has no /proc")
def test_memory_is_flat() -> None:
    """``flat_memory.py`` measures it of ten million events; kept as numbers alone, these would be 3 MiB more."""
    call = [sys.executable, str(Path(__file__).parents[1] / "helpers" / "flat_memory.py"), "100000"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    told = json.loads(subprocess.run(call, capture_output=True, text=True, env=environment, check=True).stdout)
    assert told["events"] == 100_000
    assert len(told["memory"]) == 10
    assert max(told["memory"][4:]) - told["memory"][3] < 2.0, told
