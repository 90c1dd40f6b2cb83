"""No output is an input, no stopped run is lost, and what is predicted of a pipe can be read at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from onlinevi.adapters.cli import main
from onlinevi.runs import Places, load_job, refuse_overwriting

pytest.importorskip("pyarrow", reason='pyarrow is missing: pip install "onlinevi[files]"')

RUN = ["--target", "sold", "--rule", "implicit", "--loss", "hinge"]


@pytest.fixture
def model(rows: Path, tmp_path: Path) -> Path:
    path = tmp_path / "first.ovi"
    assert main(["run", str(rows), *RUN, "--checkpoint", str(path)]) == 0
    return path


def test_an_output_that_is_an_input_is_refused_before_anything_is_opened(
    rows: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = rows.parent
    (folder / "soft.csv").symlink_to(rows)
    (folder / "hard.csv").hardlink_to(rows)
    (folder / "parts").mkdir()
    (folder / "parts" / "one.csv").write_bytes(rows.read_bytes())
    before, learned = rows.read_bytes(), model.read_bytes()
    names = [str(rows), str(folder / "soft.csv"), str(folder / "hard.csv"), os.path.relpath(rows), f"{folder}/./x/../rows.csv"]
    (folder / "x").mkdir()
    calls = [
        ["run", str(rows), *RUN, flag, name] for flag in ("--predictions", "--checkpoint", "--bad-rows") for name in names
    ]
    calls += [
        ["run", str(folder / "parts"), *RUN, "--predictions", str(folder / "parts" / "one.csv")],
        ["run", str(folder / "parts"), *RUN, "--predictions", str(folder / "parts" / "new.csv")],
        ["run", str(folder / "parts"), *RUN, "--out", str(folder / "parts")],
        ["run", str(rows), "--from", str(model), "--checkpoint", str(model)],
        ["predict", str(model), str(rows), "-o", str(rows)],
        ["predict", str(model), str(rows), "--bad-rows", str(rows)],
        ["predict", str(model), str(rows), "--bad-rows", str(model)],
        ["compare", str(rows), "--target", "sold", "--rules", "oga", "--bad-rows", str(rows)],
        ["merge", str(model), str(model), "-o", str(model)],
    ]
    for call in calls:
        assert main(call) == 2, call
        told = capsys.readouterr().err
        assert "would overwrite" in told or "lies in the folder" in told, call
        assert "name a" in told
    assert rows.read_bytes() == before
    assert model.read_bytes() == learned


def test_two_outputs_are_two_files(rows: Path, tmp_path: Path) -> None:
    for first, second in (("a.csv", "a.csv"), ("a.parquet", "a.parquet.arrows"), ("a.csv", "./x/../a.csv")):
        with pytest.raises(ValueError, match=r"is the file of --predictions too"):
            refuse_overwriting({"FILE": rows}, {"--predictions": tmp_path / first, "--bad-rows": tmp_path / second})
    refuse_overwriting({"FILE": rows}, {"--predictions": "/dev/null", "--bad-rows": "/dev/null"})
    refuse_overwriting({"FILE": "-"}, {"--predictions": "-", "--bad-rows": None})
    with pytest.raises(ValueError, match="would overwrite"):
        Places(str(rows), predictions=rows)


def test_standard_input_may_be_a_file_too(rows: Path) -> None:
    call = [sys.executable, "-m", "onlinevi", "run", "-", *RUN, "--predictions", str(rows)]
    before = rows.read_bytes()
    with rows.open() as stdin:
        done = subprocess.run(call, stdin=stdin, capture_output=True, text=True)
    assert (done.returncode, rows.read_bytes()) == (2, before)
    assert "would overwrite" in done.stderr


def test_a_stopped_run_is_not_started_anew_without_a_word(
    rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = rows.read_text().splitlines(keepends=True)
    call = ["run", str(rows), *RUN, "--out", str(tmp_path / "out")]
    rows.write_text("".join([*lines[:50], "not a row\n", *lines[50:]]))
    assert main(call) == 2
    capsys.readouterr()
    kept = (tmp_path / "out" / "model.ovi").read_bytes()
    assert main(call) == 2
    told = capsys.readouterr().err
    assert "stopped behind 49 events: --resume goes on with it, --overwrite starts anew" in told
    assert (tmp_path / "out" / "model.ovi").read_bytes() == kept
    rows.write_text("".join(lines))
    assert main([*call, "--overwrite"]) == 0
    assert main(call) == 0, "a run that came to its end may be run again"
    precious = tmp_path / "notes.txt"
    precious.write_text("precious")
    assert main(["run", str(rows), *RUN, "--checkpoint", str(precious)]) == 2
    assert "is no model of a run" in capsys.readouterr().err
    assert precious.read_text() == "precious"


@pytest.mark.parametrize("name", ["said.ndjson", "said.csv", "-"])
def test_every_row_of_a_pipe_is_answered_at_once(name: str, rows: Path, tmp_path: Path) -> None:
    lines, path = rows.read_text().splitlines(keepends=True), tmp_path / name
    call = [sys.executable, "-m", "onlinevi", "run", "-", *RUN, "--predictions", "-" if name == "-" else str(path)]
    with subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("".join(lines[:1001]))
        process.stdin.flush()
        head = 0 if name == "said.ndjson" else 1
        told = [process.stdout.readline() for _ in range(1000 + head)] if name == "-" else []
        for sent in range(1001, 1004):
            process.stdin.write(lines[sent])
            process.stdin.flush()
            if name == "-":
                told.append(process.stdout.readline())
                continue
            for _ in range(600):
                if path.exists() and len(path.read_text().splitlines()) >= sent + head:
                    break
                time.sleep(0.05)
            assert len(path.read_text().splitlines()) == sent + head
        if name == "-":
            assert [line.split(",")[0] for line in told[-3:]] == ["1000", "1001", "1002"]
        process.stdin.close()
        rest, messages = process.stdout.read(), process.stderr.read() if process.stderr is not None else ""
    assert process.returncode == 0, messages
    assert ("Predict sold" in messages) == (name == "-"), "what is said of the run is not among its predictions"
    assert ("Predict sold" in rest) == (name != "-")


def test_a_model_goes_on_with_another_file(rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header, *lines = rows.read_text().splitlines(keepends=True)
    first, second, whole = tmp_path / "day1.csv", tmp_path / "day2.csv", tmp_path / "whole.csv"
    first.write_text(header + "".join(lines[:1200]))
    second.write_text(header + "".join(lines[1200:1500]))
    whole.write_text(header + "".join(lines[:1500]))
    run = [*RUN, "--drop", "town"]
    assert main(["run", str(first), *run, "--out", str(tmp_path / "days")]) == 0
    assert main(["run", str(second), "--from", str(tmp_path / "days" / "model.ovi"), "--out", str(tmp_path / "days2")]) == 0
    assert "goes on behind 1,200 events" in capsys.readouterr().err
    assert main(["run", str(whole), *run, "--checkpoint", str(tmp_path / "whole.ovi")]) == 0
    job, one = load_job(tmp_path / "days2" / "model.ovi"), load_job(tmp_path / "whole.ovi")
    assert job.state.alone() == one.state.alone(), "as if the files had been one"
    assert job.metrics.to_json() == one.metrics.to_json()
    assert [str(origin) for origin in job.origins] == [f"rows 0 to 1199 of {first}", f"rows 0 to 299 of {second}"]
    assert "whose rows are not in this file" in json.loads((tmp_path / "days2" / "run.json").read_text())["without_hindsight"]

    names = header.strip().split(",")
    order = [*reversed(names), "extra"]
    other = tmp_path / "day3.csv"
    table = [dict(zip(names, line.strip().split(","), strict=True)) for line in lines[1500:1600]]
    other.write_text(
        ",".join(order) + "\n" + "".join(",".join(row.get(name, "7.5") for name in order) + "\n" for row in table)
    )
    call = ["run", str(other), "--from", str(tmp_path / "days2" / "model.ovi"), "--out", str(tmp_path / "days3"), "--json"]
    assert main(call) == 0
    grown = load_job(tmp_path / "days3" / "model.ovi")
    assert grown.metrics.count == 1600
    assert set(grown.schema.kinds) - set(job.schema.kinds) == {"extra"}, "columns are matched by name, and new ones join"
    capsys.readouterr()
    assert main([*call, "--rule", "ngvi"]) == 2
    assert "was made with rule='implicit', not 'ngvi'" in capsys.readouterr().err
