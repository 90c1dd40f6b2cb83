"""``onlinevi run --labels``: stopped and resumed, with odd input of every kind, and from sources that pause."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.late_runs import learned, two_streams, write
from helpers.run_files import table, told
from helpers.states import bits

pytest.importorskip("pyarrow", reason='pyarrow is missing: pip install "onlinevi[files]"')

from onlinevi.adapters.cli import main
from onlinevi.data import Piece, Position, Reader, ReadOptions, open_stream
from onlinevi.runs import Places, Run, Settings, Stopper, Wait, load_job
from onlinevi.runs import run as driver

WAIT = Wait(("id",), ("at",), seconds=12.0, otherwise="no")
SETTINGS = Settings("y", rule="implicit", drop=("at",), classes=("no", "yes"), wait=WAIT, look=5)
CALL = ["--target", "y", "--rule", "implicit", "--key", "id", "--time", "at", "--drop", "at", "--classes", "no,yes"]


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    rows, labels = two_streams(7)
    for place, row in enumerate(rows):
        row |= {"town": f"t{place // 15}"}
    del rows[7]["id"], labels[3]["y"], labels[9]["id"]
    rows[20]["a"] = "soon"
    return write(tmp_path / "rows.ndjson", rows), write(tmp_path / "labels.ndjson", labels)


def known(folder: Path) -> Any:
    """All that is known at the end, but for clocks."""
    job = load_job(folder / "model.ovi")
    late, left_out = job.late.to_json(), job.rejected.to_json()
    late["position"], left_out["file"] = late["position"][1], None
    files = [(folder / name).read_bytes() for name in ("said.csv", "bad.ndjson")]
    return bits(job.state), late, job.metrics.to_json(), job.joins, job.schema, job.position.rows, left_out, files


def run_to(folder: Path, files: tuple[str, str], settings: Settings = SETTINGS, turns: int | None = None) -> str:
    """How a run ends that goes on with the one in the folder, and is stopped behind so many turns."""
    folder.mkdir(exist_ok=True)
    names = (folder / name for name in ("model.ovi", "said.csv"))
    stopper, left = Stopper(), [turns]

    def watch(*_: Any) -> None:
        if left[0] is not None:
            left[0] -= 1
            stopper.code = 143 if left[0] == 0 else 0

    places = Places(files[0], *names, bad_rows=str(folder / "bad.ndjson"), labels=files[1])
    with Run(settings, places, resume=True) as run:
        return run.go(stopper, watch)[0]


@pytest.mark.parametrize("more", [{}, {"weight": "b", "wait": replace(WAIT, rows=9, seconds=None)}, {"hash_bits": 3}])
def test_a_run_stopped_anywhere_goes_on_to_the_same_bits(
    more: dict[str, Any], files: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "weight" in more:
        lines = [json.loads(line) for line in Path(files[0]).read_text().splitlines()]
        write(Path(files[0]), [line | {"b": max(0.0, line["b"])} for line in lines])
    settings = replace(SETTINGS, **more)
    monkeypatch.setattr(driver, "open_stream", partial(open_stream, batch_rows=4))
    assert run_to(tmp_path / "whole", files, settings) == "end"
    want, stops = known(tmp_path / "whole"), 0
    while (ended := run_to(tmp_path / "parts", files, settings, turns=1 + stops % 3)) != "end":
        assert ended == "interrupted"
        stops += 1
    assert stops > 8
    assert known(tmp_path / "parts") == want
    counts = load_job(tmp_path / "whole" / "model.ovi").late.counts
    assert counts.labelled > 20
    assert counts.otherwise > 2


def test_a_bad_row_or_label_stops_where_it_is_and_the_run_goes_on_from_there(files: tuple[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "out"
    assert run_to(tmp_path / "whole", files) == "end"
    folder.mkdir()
    call = ["run", files[0], "--labels", files[1], *CALL, "--within", "12s", "--otherwise", "no", "--look", "5"]
    call += ["--out", str(folder), "--resume"]
    call += ["--predictions", str(folder / "said.csv")]
    stops = []
    for _ in range(2):
        assert main(call) == 2
        job = load_job(folder / "model.ovi")
        stops.append((job.position.rows, job.late.position and job.late.position.rows, job.rejected.count))
    assert stops[0] == stops[1], "it is the same again, as long as it is not skipped"
    assert stops[0][2] == 0
    assert main([*call, "--bad-rows", "skip"]) == 0
    whole, parts = (load_job(one / "model.ovi") for one in (tmp_path / "whole", folder))
    assert whole.state.alone() == parts.state.alone()
    assert whole.late.counts == parts.late.counts
    assert whole.rejected.reasons == parts.rejected.reasons
    assert (tmp_path / "whole" / "said.csv").read_bytes() == (folder / "said.csv").read_bytes()


def test_one_file_for_both_is_as_a_plain_run(tmp_path: Path) -> None:
    rows, _ = two_streams(1)
    together = [row | {"id": place, "at": place, "y": ["no", "yes"][place % 3 == 0]} for place, row in enumerate(rows)]
    path = write(tmp_path / "all.ndjson", together)
    settings = replace(SETTINGS, wait=replace(WAIT, otherwise=None))
    job, _ = learned(settings, path, path)
    with Run(replace(settings, wait=None, drop=("at", "id")), Places(path)) as run:
        run.go(Stopper())
    assert job.state.alone() == run.job.state.alone()
    assert (job.late.counts.labelled, len(job.late.rows)) == (len(rows), 0)


def test_a_record_may_be_a_label_by_being_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a click is: learned as if each had the label in a column, to the bit, wherever the run stopped. None is waited for to
    know what labels there are."""
    rows, labels = two_streams(5)
    spelled = write(tmp_path / "spelled.ndjson", [label | {"y": "yes"} for label in labels])
    plain = write(tmp_path / "plain.ndjson", [{"id": label["id"], "at": label["at"]} for label in labels])
    files = write(tmp_path / "rows.ndjson", rows), plain
    want, _ = learned(SETTINGS, files[0], spelled)
    settings = replace(SETTINGS, classes=(), wait=replace(WAIT, came="yes"))
    monkeypatch.setattr(driver, "open_stream", partial(open_stream, batch_rows=4))
    while run_to(tmp_path / "out", files, settings, turns=5) != "end":
        pass
    job = load_job(tmp_path / "out" / "model.ovi")
    assert job.state.alone() == want.state.alone()
    assert job.late.counts == want.late.counts
    assert (job.class_names, job.late.counts.otherwise > 5) == (("no", "yes"), True)
    assert main(["run", files[0], "--labels", plain, *CALL, "--within", "12s", "--otherwise", "no", "--came", "yes"]) == 0


def test_keys_are_compared_as_text(tmp_path: Path) -> None:
    rows = [{"id": key, "at": 1, "a": 1.0} for key in (1, 2.0, "3", True, "005")]
    labels = [{"id": key, "at": 2, "y": "yes"} for key in ("1", "2", 3, "true", "5")]
    files = write(tmp_path / "rows.ndjson", rows), write(tmp_path / "labels.ndjson", labels)
    job, _ = learned(replace(SETTINGS, look=1), *files)
    assert (job.late.counts.labelled, len(job.late.rows), len(job.late.labels)) == (4, 1, 1)
    (tmp_path / "rows.csv").write_text("id,at,a\n1,1,1\n2,1,1\n")
    job, _ = learned(replace(SETTINGS, look=1), str(tmp_path / "rows.csv"), files[1])
    assert job.late.counts.labelled == 2


def code_of(call: list[str]) -> Any:
    try:
        return main(call)
    except SystemExit as ended:  # the parser's own
        return ended.code


def test_what_cannot_be_is_said_in_a_line(files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, labels = files
    empty = tmp_path / "empty.ndjson"
    empty.write_text("")
    alone = write(tmp_path / "alone.ndjson", [{"id": "x", "at": 1, "a": 1.0, "b": 2.0}])
    fine = ["--labels", labels, "--within", "12s", "--bad-rows", "skip"]
    calls = [
        ([rows, *CALL], "--key is for labels that come by key"),
        ([rows, "--target", "y", "--labels", labels], "by which column do labels find their rows?"),
        ([rows, *CALL, "--labels", labels, "--otherwise", "no"], "is learned after how long?"),
        ([rows, *CALL[:2], "--came", "yes"], "--came is for labels that come by key"),
        ([rows, *CALL, *fine, "--came", "yes"], "came='yes' with otherwise=None: all rows would be learned with one label"),
        ([rows, *CALL, *fine, "--came", "ja", "--otherwise", "no"], "came='ja': the label is neither 'no' nor 'yes'"),
        ([rows, *CALL, *fine, "--otherwise", "maybe"], "otherwise='maybe': the label is neither 'no' nor 'yes'"),
        ([rows, *CALL, *fine, "--within", "soon"], "'soon': needs a number of rows, or a time"),
        ([rows, *CALL, *fine, "--within", "0"], "needs a number of rows, or a time"),
        ([rows, *CALL, *fine, "--waiting", "0"], "waiting=0: needs room"),
        ([rows, *CALL, *fine, "--delay", "3"], "delay=3 with labels by key"),
        ([rows, *CALL, *fine, "--key", "idd"], "no column is called 'idd'"),
        ([rows, *CALL, *fine, "--key", "id,di"], "no column is called 'di': it has id, at, y"),
        ([rows, *CALL, *fine, "--key", "a,b,c"], "needs the name of a column, or two"),
        ([rows, *CALL, *fine, "--time", "att"], "no column is called 'att'"),
        ([rows, *CALL[:6], *CALL[8:], *fine], "does not say when its rows happened"),
        ([rows, *CALL, *fine, "--target", "z"], "no column is called 'z'"),
        ([rows, *CALL, *fine, "--workers", "2"], "--labels is of one stream"),
        ([rows, *CALL, *fine, "--every", "soon"], "needs a number of rows, or a time"),
        ([rows, *CALL, *fine, "--every", "1s,2s"], "needs rows, seconds, or both"),
        ([rows, *CALL, *fine, "--metrics-port", "99999"], "--metrics-port 99999: cannot be had"),
        ([str(empty), *CALL, *fine], "the stream is empty"),
        ([alone, *CALL, "--labels", str(empty)], "has had its label"),
        ([alone, *CALL, *fine], "is --key the same in both"),
        ([str(tmp_path / "none.ndjson"), *CALL, *fine], "no such file"),
        ([rows, *CALL, "--labels", str(tmp_path / "none.ndjson")], "no such file"),
        (["-", *CALL, "--labels", "-"], "cannot both be standard input"),
        ([rows, *CALL, *fine, "--predictions", labels], "would overwrite"),
    ]
    for call, message in calls:
        assert code_of(["run", *call, "--out", str(tmp_path / "out")]) == 2, call
        printed = capsys.readouterr()
        assert message in printed.err + printed.out, (call, printed.err)
        assert "Traceback" not in printed.err


def test_rows_alone_are_learned_as_what_stands_for_no_label(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, _ = two_streams(4)
    (tmp_path / "labels.ndjson").write_text("")
    call = ["run", write(tmp_path / "rows.ndjson", rows), "--labels", str(tmp_path / "labels.ndjson"), *CALL, "--json"]
    assert main([*call, "--within", "5", "--otherwise", "no", "--out", str(tmp_path)]) == 0
    late = told(capsys)["late"]
    assert late["rows"]["otherwise"] == len(rows) - 5 - late["rows"]["repeated"]
    document = json.loads((tmp_path / "run.json").read_text())
    assert document["summary"]["late"] == late
    assert "after 5 rows without one" in (tmp_path / "report.html").read_text()


def test_what_waits_is_kept_before_any_label_has_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, _ = two_streams(4)
    labels = write(tmp_path / "labels.ndjson", [{"id": "k1", "at": 1_000_000, "y": "yes"}])
    monkeypatch.setattr(driver, "open_stream", partial(open_stream, batch_rows=10))
    waited: list[int] = []
    settings = replace(SETTINGS, wait=replace(WAIT, seconds=None, otherwise=None))
    places = Places(write(tmp_path / "rows.ndjson", rows), tmp_path / "m.ovi", every=20, labels=labels)
    with Run(settings, places) as run:
        run.go(Stopper(), on_saved=lambda job: waited.append(len(load_job(tmp_path / "m.ovi").late.rows)))
    assert len(waited) == len(rows) // 20
    assert waited == sorted(waited)
    assert waited[0] > 10


def test_a_model_goes_on_with_rows_and_labels_of_another_day(files: tuple[str, str], tmp_path: Path) -> None:
    call = ["run", files[0], "--labels", files[1], *CALL, "--within", "12s", "--bad-rows", "skip"]
    assert main([*call, "--checkpoint", str(tmp_path / "one.ovi")]) == 0
    first = load_job(tmp_path / "one.ovi")
    again = ["run", files[0], "--labels", files[1], "--from", str(tmp_path / "one.ovi"), "--bad-rows", "skip"]
    assert main([*again, "--checkpoint", str(tmp_path / "two.ovi")]) == 0
    second = load_job(tmp_path / "two.ovi")
    assert second.metrics.count > first.metrics.count
    assert second.settings.wait == first.settings.wait
    assert main([*again, "--key", "a", "--checkpoint", str(tmp_path / "no.ovi")]) == 2


class Dated(Reader):
    """A source that says when its rows happened, pauses, and goes on from a place."""

    live = True

    def __init__(self, name: str, records: list[dict[str, Any]], pause: float = 0.0) -> None:
        self.name, self._records, self._pause = name, records, pause

    def open(self, options: ReadOptions, resume: Position | None = None) -> Dated:
        self.first_row = 0 if resume is None else resume.place
        return self

    def __iter__(self) -> Iterator[Piece]:
        import pyarrow as pa

        for number in range(self.first_row, len(self._records)):
            time.sleep(self._pause)
            record = self._records[number]
            columns = {name: pa.array([value]) for name, value in record.items() if name != "at"}
            yield Piece(1, columns, times=np.array([float(record["at"])]), trail=Place(number))


class Place:
    def __init__(self, number: int) -> None:
        self._number = number

    def behind(self, count: int) -> Any:
        return self._number + count

    def place(self, row: int) -> dict[str, Any]:
        return {"offset": self._number + row}


def test_a_source_that_says_when_needs_no_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what is learned from it is what is learned from files, as long as none lets the other wait for long."""
    rows, labels = two_streams(6)
    files = write(tmp_path / "rows.ndjson", rows), write(tmp_path / "labels.ndjson", labels)
    want, _ = learned(replace(SETTINGS, look=3), *files)
    sources = {"rows": rows, "labels": labels}

    def opened(name: str, **more: Any) -> Any:
        return open_stream(Dated(name, sources[name]), **more)

    monkeypatch.setattr(driver, "open_stream", opened)
    settings = replace(SETTINGS, look=3, drop=(), wait=replace(WAIT, time=()))
    for turns in (None, 40):
        folder = tmp_path / str(turns)
        ended, calls = "", 0
        while ended != "end":
            ended, calls = run_to(folder, ("rows", "labels"), settings, turns), calls + 1
        assert calls > 1 or turns is None
        job = load_job(folder / "model.ovi")
        assert job.state.alone() == want.state.alone()
        assert job.late.counts == want.late.counts


def test_a_message_without_a_column_is_a_bad_row_wherever_the_run_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, labels = two_streams(6)
    for records, name in ((rows, "id"), (labels, "y"), (labels, "id")):
        for record in records[5::9]:
            record.pop(name, None)
    sources = {"rows": rows, "labels": labels}
    monkeypatch.setattr(driver, "open_stream", lambda name, **more: open_stream(Dated(name, sources[name]), **more))
    settings, reasons = replace(SETTINGS, look=3, drop=(), wait=replace(WAIT, time=())), []
    for turns in (None, 30):
        while run_to(tmp_path / str(turns), ("rows", "labels"), settings, turns) != "end":
            pass
        reasons.append(load_job(tmp_path / str(turns) / "model.ovi").rejected.reasons)
    assert reasons[0] == reasons[1]
    assert reasons[0] == {"the key is missing": len(rows[5::9]) + len(labels[5::9])}


def test_lists_are_no_keys(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    _, labels = two_streams(6)
    parquet.write_table(pa.table({"id": [[1]], "at": [1], "a": [1.0]}), tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="column 'id' holds list<"):
        learned(replace(SETTINGS, look=1), str(tmp_path / "rows.parquet"), write(tmp_path / "labels.ndjson", labels))


def test_a_source_that_pauses_does_not_hold_up_the_other(tmp_path: Path) -> None:
    """Rows are predicted though no label comes, and labels are learned though no row comes; what is late then is counted."""
    pipes = [tmp_path / "rows.ndjson", tmp_path / "labels.ndjson"]
    for pipe in pipes:
        os.mkfifo(pipe)
    said, model = tmp_path / "said.csv", tmp_path / "model.ovi"
    call = [sys.executable, "-m", "onlinevi", "run", str(pipes[0]), "--labels", str(pipes[1]), *CALL, "--look", "1"]
    call += ["--within", "1h", "--predictions", str(said), "--checkpoint", str(model), "--every", "0.1s", "--json"]
    with subprocess.Popen(
        [*call, "--metrics-port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stderr is not None
        address = running.stderr.readline().split()[-1]
        rows = pipes[0].open("w")

        def send(file: Any, *records: dict[str, Any]) -> None:
            file.write("".join(json.dumps(record) + "\n" for record in records))
            file.flush()

        def wait_for(what: str) -> None:
            from urllib.request import urlopen

            deadline = time.monotonic() + 60.0
            while what not in (text := urlopen(address).read().decode()):
                assert time.monotonic() < deadline, text
                assert running.poll() is None, running.stderr.read()
                time.sleep(0.05)

        send(rows, *({"id": k, "at": 10 * k, "a": k % 3, "b": 1.0} for k in range(5)))
        labels = pipes[1].open("w")  # which waits until it is read
        wait_for('onlinevi_waiting{what="rows"} 5.0')
        assert len(table(said)) == 5
        send(labels, {"id": 1, "at": 12, "y": "yes"}, {"id": 2, "at": 50, "y": "no"})
        wait_for("onlinevi_events_total 2.0")
        send(rows, {"id": 9, "at": 45, "a": 0.5, "b": 1.0})
        wait_for('onlinevi_late_total{what="out_of_order"} 2.0')
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 143
        assert running.stdout is not None
        told_at_the_end = json.loads(running.stdout.read())
        for file in (rows, labels):
            file.close()
    assert told_at_the_end["late"]["rows"]["labelled"] == 2
    job = load_job(model)
    assert (len(job.late.rows), job.position.rows, job.late.position.rows) == (4, 6, 2)


def test_a_model_of_labels_by_key_learns_at_once_where_rows_have_them(files: tuple[str, str], tmp_path: Path) -> None:
    import pandas as pd

    import onlinevi as ovi

    assert run_to(tmp_path / "out", files) == "end"
    model, frame = (
        ovi.open(tmp_path / "out" / "model.ovi"),
        pd.DataFrame({"a": [1.0, -1.0], "b": [0.0, 2.0], "town": ["t0", "t1"]}),
    )
    count = model.count
    assert len(model.predict(frame)) == 2
    model.learn(frame.assign(y=["yes", "no"]))
    assert model.count == count + 2 == model.state.count
    with pytest.raises(ValueError, match="labels by key have a source of their own"):
        ovi.fit(frame.assign(y=["yes", "no"], id=[1, 2]), target="y", wait=Wait(("id",)))
