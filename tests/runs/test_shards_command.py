"""``onlinevi run`` on shards: one model, one report, and a stop that loses nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from onlinevi.adapters.cli import main
from onlinevi.runs import load_job

pytest.importorskip("pyarrow", reason='pyarrow is missing: pip install "onlinevi[files]"')


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for number in range(3):
        X = rng.standard_normal((60, 2)) * [1.0, 100.0]
        sold = X[:, 0] - 0.01 * X[:, 1] + rng.standard_normal(60) > 0.0
        lines = [f"{a!r},{b!r},{int(own)}" for (a, b), own in zip(X.tolist(), sold, strict=True)]
        (tmp_path / f"part-{number}.csv").write_text("\n".join(["a,b,sold", *lines]) + "\n")
    return tmp_path


RUN = ["--target", "sold", "--rule", "implicit", "--loss", "hinge"]
"""A loss that is quick in plain Python too: most of these run in processes of their own."""


def test_a_pattern_is_shards(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "part-*.csv", *RUN, "--workers", "2", "--out", "out"]) == 0
    told = capsys.readouterr().out
    assert "3 shards were learned from side by side." in told
    assert "not of what the merged model will decide" in told
    assert not (shop / "out" / "shards").exists()
    job = load_job("out/model.ovi")
    assert job.metrics.count == job.state.count == 180
    document = json.loads((shop / "out" / "run.json").read_text())
    assert [one["events"] for one in document["shards"]["each"]] == [60, 60, 60]
    page = (shop / "out" / "report.html").read_text()
    assert "<h2>Shards</h2>" in page
    assert "part-1.csv" in page
    # Files by name are the same shards, with the same bits; they predict, tell, and go on.
    assert main(["run", "part-2.csv", "part-0.csv", "part-1.csv", *RUN, "--checkpoint", "again.ovi", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["shards"], facts["bad_shards"], facts["events"]) == (3, [], 180)
    again = load_job("again.ovi")
    assert again.state.alone().array.tobytes() == job.state.alone().array.tobytes()
    assert main(["predict", "again.ovi", "part-0.csv"]) == 0
    assert main(["info", "again.ovi"]) == 0
    assert "rows 0 to 59 of part-1.csv" in capsys.readouterr().out
    assert main(["run", "part-0.csv", "--from", "again.ovi", "--checkpoint", "later.ovi"]) == 0
    assert load_job("later.ovi").state.count == 240
    assert main(["run", "part-*.csv", *RUN, "--prepare-like", "again.ovi", "--rounds", "2", "--checkpoint", "like.ovi"]) == 0
    assert load_job("like.ovi").state.inputs == again.state.inputs


def test_a_bad_shard_is_named(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (shop / "part-1.csv").write_bytes(b"PK\x03\x04 no rows at all")
    call = ["run", "part-*.csv", *RUN, "--workers", "1", "--out", "out"]
    assert main(call) == 2
    assert "part-1.csv: part-1.csv: it is a zip file" in capsys.readouterr().err
    assert main([*call, "--bad-shards", "skip", "--overwrite"]) == 0
    said = capsys.readouterr()
    assert "left out: part-1.csv: " in said.err
    assert "3 shards were learned from side by side; 1 could not be used." in said.out
    assert load_job("out/model.ovi").metrics.count == 120


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["part-0.csv", "--rounds", "2"], "--rounds is for shards"),
        (["part-0.csv", "--bad-shards", "skip"], "--bad-shards is for shards"),
        (["part-*.csv", "--predictions", "p.csv"], "--predictions is of one stream"),
        (["part-*.csv", "--hindsight"], "--hindsight is of one stream"),
        (["part-*.csv", "--bad-rows", "bad.ndjson"], "say stop or skip"),
        (["part-*.csv", "--rows", "1:5"], "not of shards"),
        (["-", "part-0.csv"], "standard input is one stream"),
        (["part-*.csv", "--workers", "2", "--dask", "tcp://nowhere:1"], "give one of them"),
        (["none-*.csv", "--workers", "1"], "no file fits it as a pattern"),
        (["part-*.csv", "--workers", "0"], "needs at least one"),
        (["part-*.csv", "--resume"], "name the folder"),
    ],
)
def test_what_is_of_one_stream_is_refused(
    shop: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    assert main(["run", *options, *RUN]) == 2
    assert message in capsys.readouterr().err


def test_a_driver_that_was_killed_goes_on(shop: Path) -> None:
    """Killed once some shards are on disk; the rest alone is learned from then."""
    for number in range(3, 8):
        (shop / f"part-{number:02d}.csv").write_text((shop / f"part-{number % 3}.csv").read_text())
    call = [sys.executable, "-m", "onlinevi", "run", "part-*.csv", *RUN, "--workers", "1", "--out", "out"]
    driver = subprocess.Popen(call, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    kept, deadline = shop / "out" / "shards", time.monotonic() + 120.0
    while not list(kept.glob("round-1-*.part")) and driver.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    os.kill(driver.pid, signal.SIGKILL)
    assert driver.wait() == -signal.SIGKILL
    finished = len(list(kept.glob("round-1-*.part")))
    assert 0 < finished < 8
    workers = {json.loads(line)[2][0].partition(":")[2] for line in (kept / "done.ndjson").read_text().splitlines()[:-1]}
    while any(Path(f"/proc/{worker}").exists() for worker in workers):  # they end without it
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert main([*call[3:], "--resume"]) == 0
    assert main(["run", "part-*.csv", *RUN, "--workers", "1", "--checkpoint", "whole.ovi"]) == 0
    assert load_job("out/model.ovi").state.alone().array.tobytes() == load_job("whole.ovi").state.alone().array.tobytes()


def test_ctrl_c_keeps_what_is_finished(shop: Path) -> None:
    for number in range(3, 8):
        (shop / f"part-{number:02d}.csv").write_text((shop / f"part-{number % 3}.csv").read_text())
    call = [sys.executable, "-m", "onlinevi", "run", "part-*.csv", *RUN, "--workers", "1", "--out", "out"]
    driver = subprocess.Popen(call, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    kept, deadline = shop / "out" / "shards", time.monotonic() + 120.0
    while not list(kept.glob("*.part")) and driver.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    driver.send_signal(signal.SIGTERM)
    _, said = driver.communicate(timeout=60)
    assert driver.returncode == 143
    assert "--resume learns from the others" in said
    assert main([*call[3:], "--resume"]) == 0


def test_without_dask_its_extra_is_named(
    shop: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(["run", "part-*.csv", *RUN, "--dask", "tcp://nowhere:1"]) == 2
    assert 'pip install "onlinevi[dask]"' in capsys.readouterr().err
