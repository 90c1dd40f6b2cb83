"""However rows arrive, in whatever pieces and with whatever pauses, a run gives the same bits."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.run_files import OF_A_PIPE, table
from helpers.states import bits

pytest.importorskip("pyarrow", reason='pyarrow is missing: pip install "onlinevi[files]"')

from onlinevi.adapters.cli import main
from onlinevi.data import Part, open_stream
from onlinevi.runs import Job, Rejected, Settings, load_job
from onlinevi.runs.checkpoint import save_job

COUNT = 90


class Dribble:
    """Bytes that come in pieces of any size."""

    name = "dribble.ndjson"

    def __init__(self, content: bytes, rng: np.random.Generator | None) -> None:
        self._content, self._rng = content, rng

    def parts(self) -> Iterator[Part]:
        rng = self._rng
        if rng is None:
            yield Part(self.name, io.BytesIO(self._content))
            return
        content, most = io.BytesIO(self._content), int(rng.integers(1, 1500))

        class Pieces:
            def read(self, size: int) -> bytes:
                return content.read(min(size, int(rng.integers(1, most + 1))))

        yield Part(self.name, Pieces(), live=True)


def ndjson() -> bytes:
    """Names that come one after the other, a number and a class that come late, gaps, and rows that cannot be used."""
    rng, rows = np.random.default_rng(1), []
    for t, x in enumerate(rng.standard_normal(COUNT).tolist()):
        row: dict[str, Any] = {"town": f"t{min(int(rng.exponential(2.0 + t / 10)), 9)}", "y": "yes" if x > 0.2 else "no"}
        row |= {} if t % 7 == 3 else {"x": x}
        row |= {"late": -x, "colour": "red"} if t > 40 and t % 3 else {}
        row |= {"x": 1e300} if t in (11, 50) else {}
        row |= {"y": None} if t == 41 else {}
        rows.append(row)
    del rows[0]["town"], rows[0]["x"], rows[1]["town"], rows[1]["x"]  # nothing to predict from as yet
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def libsvm() -> bytes:
    rng, lines = np.random.default_rng(2), []
    for t in range(COUNT):
        places = sorted(set(rng.integers(0, 5 + t, 4).tolist()))
        lines.append(f"{rng.choice([-1, 1])} " + " ".join(f"{j}:{rng.standard_normal():.3f}" for j in places))
    return ("1\n" + "\n".join(lines)).encode()


def learned(content: bytes, settings: Settings, format: str, rng: np.random.Generator | None, path: Path) -> Any:  # noqa: A002
    """What is known behind the last row; half way it goes through a file."""
    said: list[Any] = []
    with open_stream(Dribble(content, rng), format=format) as stream:
        job = Job(settings, settings.schema(stream.peek(settings.look)), rejected=Rejected("skip"))
        stream.numbers |= job.schema.numbers
        batches = list(stream)
        for number, batch in enumerate(batches):
            job.on_rows = lambda rows, forecast, loss, _: said.extend(
                zip(rows.rows.tolist(), rows.y.tolist(), loss.tolist(), strict=True)
            )
            job.take(batch, stream.position)
            if number == len(batches) // 2 and job.state is not None:
                save_job(path, job)
                job = load_job(path)
        job.finish()
    known = bits(job.state), job.metrics.to_json(), job.snapshots.to_json(), job.joins, job.schema, said
    return known, job.rejected.reasons, len(batches)


SETTINGS = {
    "alone": Settings("y", rule="implicit", look=5),
    "few names": Settings("y", rule="svb", max_categories=3, look=5),
    "zeros": Settings("y", rule="ngvi", missing="zero", look=1),
    "refused": Settings("y", rule="implicit", missing="refuse", look=5),
    "hashed": Settings("y", rule="sva", hash_bits=3, look=5),
    "full": Settings("y", rule="implicit", family="full", look=5),
    "late labels": Settings("y", rule="implicit", delay=4, look=5),
    "auto": Settings("y", look=5),
}


@pytest.mark.parametrize("format", ["ndjson", "libsvm"])
@pytest.mark.parametrize("name", SETTINGS)
def test_any_pieces_give_the_same_bits(name: str, format: str, path: Path) -> None:  # noqa: A002
    settings, content = SETTINGS[name], ndjson() if format == "ndjson" else libsvm()
    if format == "libsvm":
        if name not in ("alone", "few names", "late labels"):
            pytest.skip("is for names")
        settings = replace(settings, target="label")
    want, reasons, _ = learned(content, settings, format, None, path)
    assert len(want[3]) > 3 or settings.hash_bits, "columns joined on the way"
    found = [
        learned(content, settings, format, np.random.default_rng(seed), path)
        for seed in range(2 if name in ("auto", "full") else 3)
    ]
    assert len({count for _, _, count in found}) > 1
    for got, refused, _ in found:
        assert refused == reasons
        assert got == want


def test_a_name_that_joins_is_as_if_it_had_been_known(path: Path) -> None:
    """Its moments are those of zeros so far, which is what it was."""
    rows = [{"town": "ab"[t > 20], "x": t % 5, "y": t % 3 > 0} for t in range(40)]
    known = [{"town": name, "x": 0, "y": None} for name in "ab"]
    states = []
    for first in ([], known):
        content = "".join(json.dumps(row) + "\n" for row in [*first, *rows]).encode()
        states.append(
            learned(content, Settings("y", rule="implicit", look=1, classes=("false", "true")), "ndjson", None, path)
        )
    (_, one, *_), (_, two, *_) = states[0][0][:3], states[1][0][:3]
    assert one["totals"][0] == two["totals"][0] == 40
    job = load_job(path)
    assert job.state.inputs.lag.tolist() == [0.0, 0.0, 0.0]


def test_a_sparse_learner_widens_seldom(path: Path) -> None:
    content = "".join(f"{t % 2} {t}:1.0\n" for t in range(1000, 3000, 7)).encode()
    (_, _, _, joins, schema, _), _, _ = learned(content, Settings("label", rule="svb", look=2), "libsvm", None, path)
    assert schema.indices == 3072
    assert len(joins) < 20
    assert joins[-1][1] == 3072


def arrive(command: list[str], content: bytes, rng: np.random.Generator) -> subprocess.CompletedProcess[bytes]:
    """Through a real pipe, with pauses anywhere."""
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdin is not None
    cuts = [0, *sorted(rng.integers(0, len(content), 6).tolist()), len(content)]
    for start, stop in pairwise(cuts):
        child.stdin.write(content[start:stop])
        child.stdin.flush()
        time.sleep(float(rng.uniform(0.0, 0.4)))
    out, err = child.communicate()
    return subprocess.CompletedProcess(command, child.returncode, out, err)


def test_pauses_of_a_pipe_change_nothing(rows: Path, tmp_path: Path) -> None:
    lines = rows.read_bytes().splitlines(keepends=True)[:200]
    content, found = b"".join(lines), []
    rows.write_bytes(content)
    for number, own in enumerate([None, content, content, content.rstrip(b"\n")]):
        said = tmp_path / f"{number}.csv"
        call = [sys.executable, "-m", "onlinevi", "run", "-" if own else str(rows), "--target", "sold", "--rule", "implicit"]
        call += ["--loss", "hinge", "--predictions", str(said), "--json", "--no-hindsight", "--look", "100"]
        if own is None:
            ran = subprocess.run(call, capture_output=True, check=False)
        else:
            ran = arrive(call, own, np.random.default_rng(number))
        assert ran.returncode == 0, ran.stderr
        told = json.loads(ran.stdout)
        found.append((said.read_bytes(), told["average_loss"], told["error_rate"]))
    assert all(one == found[0] for one in found[1:])


def test_what_a_pipe_is_waited_for_is_said(rows: Path) -> None:
    lines = rows.read_bytes().splitlines(keepends=True)
    call = [*OF_A_PIPE, "--loss", "hinge", "--json"]
    read, write = os.pipe()
    with subprocess.Popen(call, stdin=read, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        os.close(read)
        assert child.stderr is not None
        assert child.stdout is not None
        os.write(write, b"".join(lines[:3]))
        assert b"waiting for 1,000 rows, or the end" in child.stderr.readline()
        os.write(write, b"".join(lines[3:20]))
        os.close(write)
        assert json.loads(child.stdout.read())["events"] == 19
    shorter = subprocess.Popen([*call, "--look", "2", "--predictions", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert shorter.stdin is not None
    assert shorter.stdout is not None
    shorter.stdin.write(b"".join(lines[:4]))
    shorter.stdin.flush()
    assert shorter.stdout.readline().startswith(b"row,")
    assert shorter.stdout.readline().startswith(b"0,"), "answered while the pipe is open"
    shorter.communicate()


def sorted_labels(path: Path, first: str = "no", second: str = "yes") -> Path:
    path.write_text("x,y\n" + "".join(f"{t % 7},{first if t < 30 else second}\n" for t in range(60)))
    return path


def test_one_class_in_the_first_rows_is_no_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = sorted_labels(tmp_path / "r.csv"), tmp_path / "out"
    call = ["run", str(path), "--target", "y", "--rule", "implicit", "--look", "10", "--json"]
    assert main([*call, "--out", str(out), "--predictions", str(tmp_path / "p.csv")]) == 0
    told = capsys.readouterr()
    assert "'no', all that the first rows have, is −1, and the first other to come is +1" in told.err
    said = table(tmp_path / "p.csv")
    assert [row["label"] for row in said] == ["no"] * 30 + ["yes"] * 30
    assert said[-1]["prediction"] == "yes"
    assert load_job(out / "model.ovi").class_names == ("no", "yes")
    loss = json.loads(told.out)["average_loss"]
    assert main([*call, "--classes", "no,yes"]) == 0
    assert json.loads(capsys.readouterr().out)["average_loss"] == loss, "as if it had been known"
    assert main(["run", str(path), "--target", "y", "--rule", "implicit", "--json", "--rows", ":20", "--out", str(out)]) == 0
    assert json.loads(capsys.readouterr().out)["events"] == 20
    assert main(["info", str(out / "model.ovi")]) == 0


def test_numbers_that_may_be_a_class_are_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["run", str(sorted_labels(tmp_path / "r.csv", "0", "1")), "--target", "y", "--rule", "implicit", "--look", "9"]
    assert main(call) == 0
    assert "two classes: '0'" in capsys.readouterr().err
    assert main(["run", str(sorted_labels(tmp_path / "r.csv", "7", "8.5")), *call[2:]]) == 2
    assert "the target is 7 in all rows seen: tell the --task" in capsys.readouterr().err


def test_classes_may_be_named_in_their_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["run", str(sorted_labels(tmp_path / "r.csv")), "--target", "y", "--rule", "implicit", "--look", "9"]
    assert main([*call, "--classes", "yes,no"]) == 0
    assert "two classes: 'yes' is −1, 'no' is +1" in capsys.readouterr().err
    assert main([*call, "--classes", "no,perhaps"]) == 2
    assert "the label is neither 'no' nor 'perhaps': name all classes, by --classes" in capsys.readouterr().err
    assert main([*call, "--classes", "no,perhaps,yes"]) == 0
    capsys.readouterr()
    for wrong, message in (
        (["--classes", "no"], "needs 2 to 100 different names"),
        (["--classes", "a,b", "--task", "numbers"], "leave one of them out"),
        (["--look", "0"], "needs a number of rows from 1"),
    ):
        assert main([*call, *wrong]) == 2
        assert message in capsys.readouterr().err


def test_predictions_do_not_depend_on_the_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A column that the model has never met is there for the rows that have it, not for their neighbours."""
    model, found = tmp_path / "m.ovi", []
    (tmp_path / "a.ndjson").write_bytes(ndjson())
    call = ["run", str(tmp_path / "a.ndjson"), "--target", "y", "--rule", "implicit", "--bad-rows", "skip"]
    assert main([*call, "--checkpoint", str(model)]) == 0
    rows = [
        json.dumps({"x": t / 9, "town": f"t{t % 3}"} | ({"new": 1.0 + t, "other": "b"} if t % 4 == 2 else {}))
        for t in range(12)
    ]
    (tmp_path / "b.ndjson").write_text("\n".join(rows) + "\n")
    for chunk in (1 << 20, 60):
        monkeypatch.setattr("onlinevi.data.formats.base.CHUNK", chunk)
        assert main(["predict", str(model), str(tmp_path / "b.ndjson"), "-o", str(tmp_path / "p.csv")]) == 0
        found.append([float(row["probability"]) for row in table(tmp_path / "p.csv")])
    assert found[0] == pytest.approx(found[1], abs=1e-14)
