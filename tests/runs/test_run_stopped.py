"""``onlinevi run``, killed, stopped by a signal or by a bad row: what was learned is kept, and a run resumed ends alike."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.run_files import OF_A_PIPE, ROWS, told, write_rows

import onlinevi as ovi
from onlinevi import datasets
from onlinevi.adapters.cli import main
from onlinevi.learners import Learner
from onlinevi.runs.checkpoint import load_job
from onlinevi.runs.run import Places, Run, Stopper
from onlinevi.runs.settings import Settings

pytest.importorskip("pyarrow", reason='pyarrow is missing: pip install "onlinevi[files]"')

pytestmark = pytest.mark.compiled

KILLS = 20


def without_times(path: Path) -> tuple[Any, Any, Any]:
    """Of a checkpoint: the bits of the belief, and what is kept beside it but for the clock."""
    _, state, extra, _ = ovi.load(path)
    del extra["clock"]
    notes = {name: value for name, value in extra.pop("notes").items() if name == "predictions"}
    return state.alone().array.tobytes(), state.inputs.array.tobytes(), (extra, notes)


def write_real_rows(path: Path) -> None:
    """Houses in California with their latitude as a name, so that names come one after the other; four rows are broken."""
    if datasets.status("california").available:
        data = datasets.load("california")
        rows = [
            [*map(repr, x), f"{x[1]:.0f}", "yes" if y > 180_000.0 else "no"]
            for x, y in zip(data.X[:5_000].tolist(), data.y[:5_000].tolist(), strict=True)
        ]
        lines = [",".join([*data.names, "district", "sold"]), *(",".join(row) for row in rows)]
    else:
        write_rows(path, 5_000)
        lines = path.read_text().splitlines()
    for place in (500, 700, 3_500, len(lines) - 1):
        lines[place] = "1,2"
    path.write_text("\n".join(lines) + "\n")


def write_labels_apart(rows: Path) -> list[str]:
    """The labels into a file of their own, of which some come late, some twice and some never; the options that this needs."""
    rng, labels = np.random.default_rng(0), []
    head, *lines = rows.read_text().splitlines()[:2001]
    kept = [f"number,{head.rpartition(',')[0]}"]
    for number, line in enumerate(lines):
        row, _, label = line.rpartition(",")
        kept.append(f"{number},{row}" if "," in row else line)
        if "," not in row:
            continue
        labels += [(number + int(rng.integers(0, 90)), number, label) for _ in range(int(rng.choice([0, 1, 1, 1, 2])))]
    labels[300:303] = [(time, number, "") for time, number, _ in labels[300:303]]
    rows.write_text("\n".join(kept) + "\n")
    path = rows.with_name("labels.csv")
    told = "".join(f"{time},{number},{label}\n" for time, number, label in sorted(labels))
    path.write_text(f"when,number,sold\n{told}")
    by_key = ["--labels", str(path), "--key", "number", "--time", "number,when", "--within", "60s", "--otherwise", "no"]
    return [*by_key, "--classes", "no,yes"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="has no fork")
@pytest.mark.parametrize("apart", [False, True], ids=["labels in the rows", "labels by key"])
def test_a_run_killed_many_times_ends_with_the_same_bits(apart: bool, tmp_path: Path) -> None:
    """Kills fall into reading, learning, saving and looking back; ``killed.py`` runs, kills and counts."""
    rows, whole, broken = tmp_path / "rows.csv", tmp_path / "whole", tmp_path / "broken"
    write_real_rows(rows)
    more = write_labels_apart(rows) if apart else []
    call = [
        sys.executable,
        str(Path(__file__).parents[1] / "helpers" / "killed.py"),
        str(rows),
        str(whole),
        str(broken),
        str(KILLS),
        *more,
    ]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "ONLINEVI_ENGINE": "compiled"}
    done = subprocess.run(call, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    kills = json.loads(done.stdout)
    assert sum(kills.values()) == KILLS
    assert all(kills[phase] for phase in ("reading", "learning", "saving", "looking back")), kills
    (*bits, (extra, notes)), (*others, (again, other_notes)) = (
        without_times(folder / "model.ovi") for folder in (whole, broken)
    )
    assert bits == others
    extra["left_out"]["file"] = again["left_out"]["file"] = None
    for one in (extra, again):
        if apart:  # bytes that were read ahead are no part of what is known
            one["late"]["position"] = one["late"]["position"][1]
    assert extra == again
    assert notes["predictions"]["bytes"] == other_notes["predictions"]["bytes"]
    for name in ("said.csv", "bad.ndjson"):
        assert (whole / name).read_bytes() == (broken / name).read_bytes()
    assert len((whole / "bad.ndjson").read_text().splitlines()) == (5 if apart else 4)
    documents = [json.loads((folder / "run.json").read_text()) for folder in (whole, broken)]
    for document in documents:
        assert (document["hindsight"] is None) == apart
        assert not apart or document["summary"]["late"]["rows"]["labelled"] > 1000
        assert all(speed > 0.0 for speed in document.pop("throughput")["rows_per_second"])
        for part, name in (("summary", "seconds"), ("summary", "rows_per_second"), ("head", "started"), ("head", "command")):
            del document[part][name]
    assert documents[0] == documents[1]


def test_a_finished_run_resumes_to_itself_and_takes_what_is_new(rows: Path, tmp_path: Path) -> None:
    settings, places = Settings("sold", rule="implicit"), Places(str(rows), tmp_path / "m.ovi", bad_rows="skip")
    with rows.open("a") as file:
        file.write("1,2\n")  # a bad row behind the last good one
    counts = []
    for more in ("", "", "1.0,2.0,t0,yes\n"):
        with rows.open("a") as file:
            file.write(more)
        with Run(settings, places, resume=True) as run:
            assert run.go(Stopper()) == ("end", None)
            counts.append((run.job.metrics.count, run.job.rejected.count))
    assert counts == [(ROWS, 1), (ROWS, 1), (ROWS + 1, 1)]


def test_rows_that_wait_for_their_labels_are_kept(tmp_path: Path) -> None:
    path, folders = tmp_path / "rows.csv", (tmp_path / "whole", tmp_path / "halves")
    write_rows(path, 200)
    lines = path.read_text().splitlines(keepends=True)
    lines[98] = ",1.0,t0,yes\n"  # a missing value in a row that waits at the stop
    for folder, parts in zip(folders, ([lines], [lines[:101], lines]), strict=True):
        folder.mkdir()
        call = ["run", str(path), "--target", "sold", "--rule", "implicit", "--drop", "town", "--delay", "5", "--resume"]
        for part in parts:
            path.write_text("".join(part))
            assert main([*call, "--out", str(folder), "--predictions", str(folder / "said.csv")]) == 0
    whole, halves = (load_job(folder / "model.ovi") for folder in folders)
    assert whole.state.alone() == halves.state.alone()
    assert whole.metrics.to_json() == halves.metrics.to_json()
    assert (folders[0] / "said.csv").read_bytes() == (folders[1] / "said.csv").read_bytes()


def test_a_bad_row_among_those_that_wait_stops_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The row is refused when its label comes; the run resumed goes on at the row that was to be predicted then."""
    path = tmp_path / "rows.csv"
    write_rows(path, 100)
    call = ["run", str(path), "--target", "sold", "--rule", "implicit", "--delay", "5", "--resume", "--out", str(tmp_path)]
    learn = Learner.update_many

    def refuse_row_40(learner: Any, state: Any, X: Any, y: Any, weights: Any = None) -> Any:
        if state.count == 40 and not passed:
            raise ovi.BadRow(0, "not this one")
        return learn(learner, state, X, y, weights=weights)

    passed: list[bool] = []
    monkeypatch.setattr(Learner, "update_many", refuse_row_40)
    assert main(call) == 2
    stopped = load_job(tmp_path / "model.ovi")
    assert (stopped.metrics.count, stopped.state.count, stopped.position) == (45, 40, stopped.position._replace(rows=45))
    passed.append(True)
    assert main(call) == 0
    ended = load_job(tmp_path / "model.ovi")
    assert (ended.metrics.count, ended.state.count, len(ended.late.rows)) == (100, 95, 5)


def test_what_does_not_fit_a_checkpoint_is_refused(rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["run", str(rows), "--target", "sold", "--checkpoint", str(tmp_path / "m.ovi"), "--resume"]
    assert main([*call, "--rule", "implicit"]) == 0
    assert main([*call, "--rule", "ngvi"]) == 2
    assert "was made with rule='implicit', not 'ngvi'" in capsys.readouterr().err
    rows.write_text(rows.read_text().replace("yes", "Yes", 1))
    assert main([*call, "--rule", "implicit"]) == 2
    assert "are not those read before" in capsys.readouterr().err


def test_a_signal_while_rows_are_awaited_ends_the_run_with_what_is_known(rows: Path, tmp_path: Path) -> None:
    call = [*OF_A_PIPE, "--overwrite", "--out", str(tmp_path / "o")]
    for number in (signal.SIGINT, signal.SIGTERM):
        said = tmp_path / f"said{number}.csv"
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        with subprocess.Popen(
            [*call, "--predictions", str(said), "--every", "1000"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        ) as running:
            assert running.stdin is not None
            running.stdin.write(rows.read_bytes())
            running.stdin.flush()
            deadline = time.monotonic() + 60.0
            while not (said.exists() and len(said.read_bytes().splitlines()) > ROWS):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            running.send_signal(number)
            assert running.wait(60) == 128 + number
        document = json.loads((tmp_path / "o" / "run.json").read_text())
        assert (document["summary"]["events"], document["summary"]["stopped"]) == (ROWS, "interrupted")


def test_a_silent_pipe_can_be_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipe, done = tmp_path / "pipe.csv", threading.Event()
    os.mkfifo(pipe)
    writer = os.open(pipe, os.O_RDWR)
    before = signal.signal(signal.SIGTERM, lambda *_: None)  # one that comes too early is to harm nothing

    def knock() -> None:
        while not done.wait(1.0):
            os.kill(os.getpid(), signal.SIGTERM)

    knocking = threading.Thread(target=knock)
    knocking.start()
    try:
        assert main(["run", str(pipe), "--target", "sold"]) == 143
    finally:
        done.set()
        knocking.join()
        signal.signal(signal.SIGTERM, before)
        os.close(writer)
    assert "before the first row" in capsys.readouterr().err


def test_a_bad_row_stops_behind_the_rows_before_it(rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = rows.read_text().splitlines(keepends=True)
    lines[1001] = "1e200,0,t0,yes\n"  # the learner's own refusal
    lines[2001] = "1,0,t0,maybe\n"  # the label's
    lines[2501] = "1,0\n"  # the reader's
    rows.write_text("".join(lines))
    call = ["run", str(rows), "--target", "sold", "--rule", "implicit", "--out", str(tmp_path / "out"), "--json"]
    assert main(call) == 2
    printed = capsys.readouterr()
    assert "row 1000" in printed.err
    assert json.loads(printed.out)["events"] == 1000
    assert main([*call, "--bad-rows", "skip", "--resume"]) == 0
    summary = told(capsys)
    assert (summary["events"], summary["bad_rows"]) == (ROWS - 3, 3)
    joins = load_job(tmp_path / "out" / "model.ovi").joins
    assert main([*call, "--bad-rows", "skip"]) == 0
    assert told(capsys)["average_loss"] == summary["average_loss"]
    assert load_job(tmp_path / "out" / "model.ovi").joins == joins, "names behind the bad row joined where they came"
