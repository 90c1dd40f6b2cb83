"""Predictions in files: every format has the same rows, whatever was killed on the way."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.run_files import write_rows

from onlinevi.adapters.cli import main
from onlinevi.runs import run as module
from onlinevi.runs.writers import GROUP, ArrowTable, check_format, open_table

pa = pytest.importorskip("pyarrow", reason='pyarrow is missing: pip install "onlinevi[files]"')
from pyarrow import ipc, parquet  # noqa: E402

COLUMNS = {"row": "int64", "prediction": "string", "loss": "double"}
FORMATS = ("said.csv", "said.ndjson", "said.parquet", "said.arrow")


def rows_of(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        return parquet.read_table(path).to_pylist()
    if path.suffix == ".arrow":
        return ipc.open_file(str(path)).read_all().to_pylist()
    lines = path.read_text().splitlines()
    if path.suffix == ".ndjson":
        return [json.loads(line) for line in lines]
    number = {"row": int, "probability": float, "loss": float, "set": lambda text: text.split("|") if text else []}
    return [{name: number.get(name, str)(text) for name, text in row.items()} for row in csv.DictReader(lines)]


def block(start: int, stop: int) -> list[list[Any]]:
    rows = range(start, stop)
    return [
        list(rows),
        [f"né {row % 7}" if row % 3 else "" for row in rows],
        [row / 7 if row else float("inf") for row in rows],
    ]


@pytest.mark.parametrize("name", ["said.parquet", "said.arrow"])
def test_whatever_is_killed_the_file_has_the_same_bytes(tmp_path: Path, name: str) -> None:
    """Checkpoints, kills with half a batch written, ends and starts after an end, at random."""
    total = GROUP + 20_000
    (tmp_path / "whole").mkdir()
    whole = ArrowTable(tmp_path / "whole" / name, COLUMNS, None)
    whole.add(block(0, total))
    whole.finish()
    for seed in range(5):
        draw, path = random.Random(seed), tmp_path / str(seed) / name
        path.parent.mkdir()
        place, done = None, 0
        while done < total:
            table = ArrowTable(path, COLUMNS, place)
            at = done
            for _ in range(draw.randrange(1, 8)):
                size = min(draw.choice([1, 5000, 30_000]), total - at)
                table.add(block(at, at + size))
                at += size
                if draw.random() < 0.5:
                    place, done = table.place(), at
            if draw.random() < 0.3:
                place, done = table.place(), at
                table.finish()
            else:
                table.close()
                with table.spool.open("ab") as spool:
                    spool.write(b"\xff\xff\xff\xff\x70\x00half")
        ArrowTable(path, COLUMNS, place).finish()
        assert path.read_bytes() == (tmp_path / "whole" / name).read_bytes()
        assert [own.name for own in path.parent.iterdir()] == [name], "nothing is left beside it"
    assert rows_of(path)[-1] == {"row": total - 1, "prediction": block(total - 1, total)[1][0], "loss": (total - 1) / 7}


def test_a_file_that_lacks_rows_of_the_checkpoint_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "said.parquet"
    table = ArrowTable(path, COLUMNS, None)
    table.add(block(0, 10))
    place = table.place()
    table.finish()
    with pytest.raises(ValueError, match="has 10 rows, it had 11 at the checkpoint"):
        ArrowTable(path, COLUMNS, place | {"rows": 11})
    assert len(rows_of(path)) == 10, "and left as it is"
    ArrowTable(path, COLUMNS, place).close()
    path.unlink()
    with pytest.raises(ValueError, match=r"arrows has 10 rows, it had 12"):
        ArrowTable(path, COLUMNS, place | {"rows": 12})
    path.with_name("said.parquet.arrows").unlink()
    with pytest.raises(ValueError, match="has 0 rows"):
        ArrowTable(path, COLUMNS, place)


def test_a_new_run_takes_nothing_of_an_old_one_for_its_own(tmp_path: Path) -> None:
    path = tmp_path / "said.arrow"
    table = ArrowTable(path, COLUMNS, None)
    table.add(block(0, 10))
    table.finish()
    ArrowTable(path, COLUMNS, None).close()  # killed at once
    assert not path.exists()
    ArrowTable(path, COLUMNS, None).finish()
    assert rows_of(path) == []


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    for name, answer in (
        ("a.csv.gz", "cannot be cut back"),
        ("a.csv.zst", "afterwards"),
        ("a.xlsx", ".arrow"),
        ("a", ".csv"),
    ):
        with pytest.raises(ValueError, match=answer):
            check_format(tmp_path / name)
    check_format(tmp_path / "A.CSV")
    with open_table(tmp_path / "A.CSV", COLUMNS)._file._file as file:  # type: ignore[union-attr]
        assert file.tell() == len("row,prediction,loss\n")


class Killed(BaseException):
    """Where a kill falls."""


@pytest.mark.compiled
def test_all_formats_of_a_run_agree_and_survive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, bad = tmp_path / "rows.csv", tmp_path / "bad.csv"
    write_rows(path, 1000)
    lines = path.read_text().splitlines(keepends=True)
    bad.write_text("".join([*lines[:901], "1,2\n", *lines[901:]]))
    call = ["run", str(bad), "--target", "sold", "--rule", "implicit", "--resume", "--every", "800"]
    save, found = module.save_job, {}

    def killed(*arguments: Any) -> None:
        save(*arguments)
        raise Killed

    for name in FORMATS:
        folder = tmp_path / name.replace(".", "_")
        own = [*call, "--out", str(folder), "--predictions", str(folder / name)]
        monkeypatch.setattr(module, "save_job", killed)
        with pytest.raises(Killed):
            main(own)
        monkeypatch.setattr(module, "save_job", save)
        assert main(own) == 2  # the bad row ends it, with a file of the rows before
        assert len(rows_of(folder / name)) == 900
        assert main([*own, "--bad-rows", "skip"]) == 0
        found[name] = rows_of(folder / name)
        assert main([*own, "--bad-rows", "skip"]) == 0  # nothing is new
        assert rows_of(folder / name) == found[name]
    assert [row["row"] for row in found["said.csv"]] == [*range(900), *range(901, 1001)]
    assert all(rows == found["said.csv"] for rows in found.values())


def test_predict_writes_all_formats_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.csv"
    write_rows(path, 300)
    assert main(["run", str(path), "--target", "sold", "--rule", "implicit", "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    call = ["predict", str(tmp_path / "model.ovi"), str(path)]
    assert main(call) == 0
    (tmp_path / "printed.csv").write_text(capsys.readouterr().out)
    for name in FORMATS:
        assert main([*call, "-o", str(tmp_path / name)]) == 0
        assert rows_of(tmp_path / name) == rows_of(tmp_path / "printed.csv")
    with path.open("a") as file:
        file.write("1,2\n")
    assert main([*call, "-o", str(tmp_path / "said.parquet")]) == 2
    assert len(rows_of(tmp_path / "said.parquet")) == 300, "the rows before the bad one"
    assert np.isfinite([row["probability"] for row in rows_of(tmp_path / "said.parquet")]).all()
