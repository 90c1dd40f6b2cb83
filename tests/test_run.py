"""``onlinevi run``: the same numbers as the library's own, whatever happens on the way."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onlinevi as ovi
from onlinevi import datasets
from onlinevi.auto import Forecast
from onlinevi.cli import main
from onlinevi.cli.ticker import Ticker
from onlinevi.job import Settings, job, load_job
from onlinevi.job.account import BOUNDED, WIDTH, Account
from onlinevi.job.playing import Played
from onlinevi.job.running import Places, Run
from onlinevi.job.stopper import Stopper
from onlinevi.job.thinned import Thinned

pytest.importorskip("pyarrow", reason='pyarrow is missing: pip install "onlinevi[files]"')

KILLS = 50
ROWS = 3000


def write_rows(path: Path, count: int = ROWS, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two numbers, a town whose names come one after the other, and a class; the numbers and the classes as ±1."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((count, 2)) * [1.0, 100.0]
    town = [f"t{min(int(own), 20)}" for own in rng.exponential(np.linspace(0.5, 6.0, count))]
    y = np.where(X[:, 0] - 0.01 * X[:, 1] + rng.standard_normal(count) > 0.0, 1.0, -1.0)
    lines = [
        f"{a!r},{b!r},{own},{'yes' if label > 0 else 'no'}" for (a, b), own, label in zip(X.tolist(), town, y, strict=True)
    ]
    path.write_text("a,b,town,sold\n" + "\n".join(lines) + "\n")
    return X, y


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    write_rows(path)
    return path


def table(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def told(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_predictions_are_those_of_the_library(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, said = tmp_path / "rows.csv", tmp_path / "said.csv"
    X, y = write_rows(path, 300)
    call = ["run", str(path), "--target", "sold", "--rule", "implicit", "--drop", "town", "--predictions", str(said), "--json"]
    assert main(call) == 0
    printed = capsys.readouterr()
    assert "two classes: 'no' is −1, 'yes' is +1" in printed.err
    inputs = ovi.Inputs(missing=True)
    linear = ovi.Linear(ovi.Logistic(), ovi.Implicit(), ovi.MeanField(box=None), average=False, missing=True)
    _, prepared = inputs.update_many(inputs.init(2), X)
    state, trace = linear.update_many(linear.init(3), prepared, y)
    found = table(said)
    assert [int(row["row"]) for row in found] == list(range(300))
    np.testing.assert_array_equal([float(row["loss"]) for row in found], trace.loss)
    probability = ovi.Logistic().probability(trace.prediction, trace.spread)
    np.testing.assert_allclose([float(row["probability"]) for row in found], probability, rtol=1e-9)
    assert [row["label"] for row in found] == ["yes" if label > 0 else "no" for label in y]
    summary = json.loads(printed.out)
    assert summary["average_loss"] == pytest.approx(state.average_loss, rel=1e-12)
    assert summary["error_rate"] == pytest.approx(np.mean([row["label"] != row["prediction"] for row in found]))


def test_labels_that_come_late_are_learned_late(tmp_path: Path) -> None:
    path, said, delay = tmp_path / "rows.csv", tmp_path / "said.ndjson", 7
    X, y = write_rows(path, 60)
    call = ["run", str(path), "--target", "sold", "--rule", "implicit", "--drop", "town", "--predictions", str(said)]
    assert main([*call, "--delay", str(delay), "--out", str(tmp_path / "out")]) == 0
    inputs = ovi.Inputs(missing=True)
    linear = ovi.Linear(ovi.Logistic(), ovi.Implicit(), ovi.MeanField(box=None), average=False, missing=True)
    found = [json.loads(line) for line in said.read_text().splitlines()]
    for t in (0, delay, delay + 1, 30, 59):
        known = max(t - delay, 0)  # rows 0 … t − delay − 1
        scales, prepared = inputs.update_many(inputs.init(2), X[:known])
        state = linear.update_many(linear.init(3), prepared, y[:known])[0]
        mean, spread = linear.predict(state, inputs.apply(scales, X[t]))
        assert found[t]["probability"] == pytest.approx(float(ovi.Logistic().probability(mean, spread)), rel=1e-9)
        assert found[t]["loss"] == pytest.approx(float(ovi.Logistic()(y[t], mean).value), rel=1e-12)
    job = load_job(tmp_path / "out" / "model.ovi")
    assert (job.account.count, job.state.count, len(job.waiting)) == (60, 60 - delay, delay)


def test_numbers_by_the_default_with_intervals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 2))
    y = 50.0 + X @ [3.0, -1.0] + rng.standard_normal(400)
    path, said = tmp_path / "n.csv", tmp_path / "said.csv"
    path.write_text("a,b,price\n" + "\n".join(f"{a!r},{b!r},{c!r}" for a, b, c in np.column_stack([X, y]).tolist()))
    assert main(["run", str(path), "--target", "price", "--predictions", str(said), "--json"]) == 0
    trace = ovi.auto(X, y, loss=ovi.Squared(), inputs=ovi.Inputs(missing=True))
    found = table(said)
    for name, own in (
        ("prediction", trace.prediction),
        ("std", trace.label_std),
        ("lower", trace.lower),
        ("loss", trace.loss),
    ):
        np.testing.assert_array_equal([float(row[name]) for row in found], own)
    inside = [float(row["lower"]) <= float(row["label"]) <= float(row["upper"]) for row in found]
    assert told(capsys)["coverage"] == np.mean(inside)


def without_times(path: Path) -> tuple[Any, Any, Any]:
    """Of a checkpoint: the bits of the belief, and what is kept beside it but for the clock."""
    _, state, extra, _ = ovi.load(path)
    del extra["clock"]
    notes = {name: value for name, value in extra.pop("notes").items() if name == "predictions"}
    return state.learned.array.tobytes(), state.inputs.array.tobytes(), (extra, notes)


def write_real_rows(path: Path) -> None:
    """Houses in California with their latitude as a name, so that names come one after the other; four rows are broken."""
    if datasets.status("california").available:
        data = datasets.load("california")
        rows = [
            [*map(repr, x), f"{x[1]:.0f}", "yes" if y > 180_000.0 else "no"]
            for x, y in zip(data.X[:10_000].tolist(), data.y[:10_000].tolist(), strict=True)
        ]
        lines = [",".join([*data.names, "district", "sold"]), *(",".join(row) for row in rows)]
    else:
        write_rows(path, 10_000)
        lines = path.read_text().splitlines()
    for place in (500, 700, 7_000, len(lines) - 1):
        lines[place] = "1,2"
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="has no fork")
def test_a_run_killed_fifty_times_ends_with_the_same_bits(tmp_path: Path) -> None:
    """Kills fall into reading, learning, saving and looking back; ``killed.py`` runs, kills and counts."""
    rows, whole, broken = tmp_path / "rows.csv", tmp_path / "whole", tmp_path / "broken"
    write_real_rows(rows)
    call = [sys.executable, str(Path(__file__).with_name("killed.py")), str(rows), str(whole), str(broken), str(KILLS)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"}
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
    assert extra == again
    assert notes["predictions"]["bytes"] == other_notes["predictions"]["bytes"]
    for name in ("said.csv", "bad.ndjson"):
        assert (whole / name).read_bytes() == (broken / name).read_bytes()
    assert len((whole / "bad.ndjson").read_text().splitlines()) == 4
    documents = [json.loads((folder / "run.json").read_text()) for folder in (whole, broken)]
    for document in documents:
        assert document["hindsight"] is not None
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
            counts.append((run.job.account.count, run.job.left_out.count))
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
    assert whole.state.learned == halves.state.learned
    assert whole.account.to_json() == halves.account.to_json()
    assert (folders[0] / "said.csv").read_bytes() == (folders[1] / "said.csv").read_bytes()


def test_a_bad_row_among_those_that_wait_stops_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The row is refused when its label comes; the run resumed goes on at the row that was to be predicted then."""
    path = tmp_path / "rows.csv"
    write_rows(path, 100)
    call = ["run", str(path), "--target", "sold", "--rule", "implicit", "--delay", "5", "--resume", "--out", str(tmp_path)]
    learn = job.play

    def refuse_row_40(learner: Any, state: Any, X: Any, y: Any) -> Any:
        if state.count == 40 and not passed:
            raise ovi.BadRow(0, "not this one")
        return learn(learner, state, X, y)

    passed: list[bool] = []
    monkeypatch.setattr(job, "play", refuse_row_40)
    assert main(call) == 2
    stopped = load_job(tmp_path / "model.ovi")
    assert (stopped.account.count, stopped.state.count, stopped.position) == (45, 40, stopped.position._replace(rows=45))
    passed.append(True)
    assert main(call) == 0
    ended = load_job(tmp_path / "model.ovi")
    assert (ended.account.count, ended.state.count, len(ended.waiting)) == (100, 95, 5)


def test_what_does_not_fit_a_checkpoint_is_refused(rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["run", str(rows), "--target", "sold", "--checkpoint", str(tmp_path / "m.ovi"), "--resume"]
    assert main([*call, "--rule", "implicit"]) == 0
    assert main([*call, "--rule", "ngvi"]) == 2
    assert "was made with rule='implicit', not 'ngvi'" in capsys.readouterr().err
    rows.write_text(rows.read_text().replace("yes", "Yes", 1))
    assert main([*call, "--rule", "implicit"]) == 2
    assert "are not those read before" in capsys.readouterr().err


def test_a_signal_while_rows_are_awaited_ends_the_run_with_what_is_known(rows: Path, tmp_path: Path) -> None:
    call = [
        sys.executable,
        "-m",
        "onlinevi",
        "run",
        "-",
        "--target",
        "sold",
        "--rule",
        "implicit",
        "--out",
        str(tmp_path / "o"),
    ]
    for number in (signal.SIGINT, signal.SIGTERM):
        said = tmp_path / f"said{number}.csv"
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        with subprocess.Popen(
            [*call, "--predictions", str(said), "--every", "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
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
    assert main([*call, "--bad-rows", "skip"]) == 0
    assert told(capsys)["average_loss"] == summary["average_loss"]


def test_what_is_asked_wrongly_is_answered(rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "many.csv").write_text("a,kind\n" + "".join(f"{k},{k}.5\n" for k in range(101)))
    for call, answer in (
        ([str(tmp_path / "many.csv"), "--target", "kind", "--task", "classes"], "for amounts say --task numbers"),
        ([str(rows), "--target", "price"], "no column is called 'price'"),
        ([str(rows), "--target", "sold", "--loss", "squared"], "choose logistic or hinge"),
        ([str(rows), "--target", "sold", "--predictions", "said.xlsx"], ".ndjson"),
        ([str(rows), "--target", "sold", "--resume"], "nothing to resume from"),
        ([str(rows), "--target", "sold", "--drop", "a,b,town"], "no column is left"),
        ([str(rows), "--target", "sold", "--delay", "-1"], "needs a number of rows from 0"),
        ([str(tmp_path / "none.csv"), "--target", "sold"], "none.csv"),
    ):
        assert main(["run", *call]) == 2
        assert answer in capsys.readouterr().err


def test_curves_stay_short_and_end_at_the_end() -> None:
    whole, cut, draw = Thinned(8, 1), Thinned(8, 1), random.Random(0)
    values = np.arange(1.0, 1001.0)[:, np.newaxis]
    whole.add(values)
    start = 0
    while start < 1000:
        stop = start + draw.randrange(1, 40)
        cut.add(values[start:stop])
        start = stop
        assert len(cut.table) <= 9
    np.testing.assert_array_equal(whole.table, cut.table)
    assert whole.table[-1] == 1000.0
    assert (np.diff(whole.table[:-1, 0]) == whole.stride).all()


def test_predict_says_what_the_model_says(rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, new = tmp_path / "out" / "model.ovi", tmp_path / "new.csv"
    assert main(["run", str(rows), "--target", "sold", "--rule", "implicit", "--out", str(tmp_path / "out")]) == 0
    before = model.read_bytes()
    new.write_text("b,a,town\n100,1,t0\n-50,,t1\n1e200,0,t0\n0,0,never met\n")
    capsys.readouterr()
    assert main(["predict", str(model), str(new), "--bad-rows", "skip"]) == 0
    printed = capsys.readouterr()
    assert "1 bad row left out" in printed.err
    found = list(csv.DictReader(printed.out.splitlines()))
    assert [row["row"] for row in found] == ["0", "1", "3"]
    job = load_job(model)
    places = {job.schema.name(place): place for place in range(job.schema.width)}
    X = np.zeros((3, job.schema.width))
    X[0, [places["a"], places["b"], places["town=t0"]]] = 1.0, 100.0, 1.0
    X[1, [places["a"], places["b"], places["town=t1"]]] = np.nan, -50.0, 1.0
    expected = job.learner.forecast(job.state, X).probability
    assert [float(row["probability"]) for row in found[:2]] == expected.tolist()[:2]
    assert float(found[2]["probability"]) == pytest.approx(float(expected[2]), abs=0.1)
    assert model.read_bytes() == before
    (tmp_path / "other.csv").write_text("c\n1\n")
    assert main(["predict", str(model), str(tmp_path / "other.csv")]) == 2
    assert "none of the columns" in capsys.readouterr().err


def test_info_and_report_tell_of_a_run(rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["run", str(rows), "--target", "sold", "--rule", "implicit", "--out", str(out), "--json"]) == 0
    summary = told(capsys)
    assert main(["info", str(out / "model.ovi"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["events"], facts["average_loss"]) == (summary["events"], summary["average_loss"])
    weights = {weight["name"]: weight for weight in facts["weights"]}
    assert weights["a"]["mean"] / weights["b"]["mean"] == pytest.approx(-100.0, rel=0.2), "the rows were made so"
    state = load_job(out / "model.ovi").state
    assert facts["features"][:3] == ["intercept", "a", "b"]
    assert (facts["mean"], facts["std"]) == (state.mean.tolist(), state.std.tolist())
    assert facts["schema"]["columns"] == {"a": "number", "b": "number", "town": "category"}
    assert facts["features"][3:] == [f"town={name}" for name in facts["schema"]["categories"]["town"]]
    assert (facts["schema"]["target"], facts["schema"]["task"]["names"]) == ("sold", ["no", "yes"])
    assert facts["settings"]["rule"] == "implicit"
    live = ovi.certificate(state.learned)
    sure = facts["certificate"]
    assert sure["regret"] == live.within(float(np.linalg.norm(state.mean))) / ROWS
    assert sure["lower_bound"] == summary["average_loss"] - sure["regret"]
    source = facts["source"]
    assert source["sha256"] == hashlib.sha256(rows.read_bytes()).hexdigest()
    assert (source["first_row"], source["last_row"], source["bytes"]) == (0, ROWS - 1, rows.stat().st_size)
    assert main(["info", str(out / "model.ovi")]) == 0
    printed = capsys.readouterr().out
    assert sure["sentence"] in printed
    assert len(printed.splitlines()) < 40
    document = json.loads((out / "run.json").read_text())
    assert document["posterior"]["steps"][-1] <= ROWS
    assert 32 <= len(document["posterior"]["steps"]) <= 64
    assert document["trace"]["steps"][-1] == ROWS
    assert document["trace"]["average_loss"][-1] == summary["average_loss"]
    assert sum(document["calibration"]["count"]) == ROWS
    pytest.importorskip("plotly", reason='plotly is missing: pip install "onlinevi[report]"')
    (out / "report.html").unlink()
    assert main(["report", str(out)]) == 0
    assert "Predict sold" in (out / "report.html").read_text()
    assert main(["report", str(tmp_path)]) == 2


def test_a_plain_learner_is_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    learner = ovi.Linear(ovi.Logistic(), ovi.Implicit())
    ovi.save(tmp_path / "m.ovi", learner, learner.init(2))
    assert main(["info", str(tmp_path / "m.ovi")]) == 2
    assert "no run of a file" in capsys.readouterr().err


def test_quantiles_and_intervals_are_counted_as_hits() -> None:
    y, said = np.array([1.0, 2.0, 3.0]), np.array([1.5, 1.5, 3.0])
    forecast = Forecast(said, None, said, None, None, np.array([-np.inf, 1.0, 4.0]), np.array([np.inf, 2.0, 5.0]))
    quantiles, intervals = Account("quantile"), Account("numbers")
    for account in (quantiles, intervals):
        for event in range(3):  # one at a time, as all at once
            one = Forecast(*(part if part is None else part[event : event + 1] for part in forecast))
            account.add(y[event : event + 1], Played(one, np.array([0.5])))
    assert quantiles.hit_rate == pytest.approx(2.0 / 3.0)  # 2.0 lies above its quantile
    assert intervals.hit_rate == pytest.approx(2.0 / 3.0)  # 3.0 lies below its interval
    assert intervals.totals[WIDTH] / intervals.totals[BOUNDED] == 1.0  # the first has no width
    together = Account("numbers")
    together.add(y, Played(forecast, np.full(3, 0.5)))
    assert together.to_json() == intervals.to_json()


def test_progress_is_one_line(rows: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Run(Settings("sold", rule="implicit"), Places(str(rows))) as run:
        ticker = Ticker(str(rows), 0)
        run.go(Stopper(), ticker)
        ticker.end()
    line = capsys.readouterr().err
    assert re.match(r"\r[\d,]+ rows, \d+ % read, \d+ s to go, average loss 0\.\d+, [\d,]+ a second", line)
    assert "\n" not in line
