"""Logs in files: what is written is read again, in every format, and what is none is refused."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from onlinevi.bandit import Bandit, Decision, LogFile, Shared, Uniform, Wait, read_log, value
from onlinevi.bandit.arms import BINARY


def play(log: Any, arms: Any = ("red", "blue"), count: int = 60, named: bool = True, model: Any = None) -> Bandit:
    rng = np.random.default_rng(0)
    settings = {} if model is None else {"model": model}
    bandit = Bandit(arms, policy=Uniform(), wait=Wait(events=5), log=log, **settings)
    for number in range(count):
        x = rng.standard_normal((2, 3) if model else 3)
        choice = bandit.choose(dict(zip(("age", "x.y", "ß"), x.tolist(), strict=True)) if named else x, id=f"n{number}")
        if number % 4:
            bandit.reward(choice.id, int(rng.random() < 0.5))
    return bandit


def same(one: Decision, other: Decision) -> bool:
    plain = [(a == b) for a, b in zip(one[:7], other[:7], strict=True)]
    arrays = [np.array_equal(getattr(one, name), getattr(other, name)) for name in ("probabilities", "expected")]
    return all(plain) and all(arrays)


@pytest.mark.parametrize("arms", [("red", "blue"), (0, 1), ("0", "x")])
def test_what_is_written_is_read_again(arms: Any, tmp_path: Path) -> None:
    kept: list[Decision] = []
    with LogFile(tmp_path / "log.ndjson") as file:

        def both(decision: Decision) -> None:
            kept.append(decision)
            file(decision)

        play(both, arms)
    found = read_log(tmp_path / "log.ndjson")
    assert all(same(*pair) for pair in zip(kept, found, strict=True))
    assert [one.context for one in found] == [one.context for one in kept]
    assert value(tmp_path / "log.ndjson", arms[0]) == value(kept, arms[0])
    assert any(one.reward is None for one in found)


def test_rows_without_names_come_back_as_arrays(tmp_path: Path) -> None:
    kept: list[Decision] = []
    play(kept.append, named=False)
    with LogFile(tmp_path / "log.ndjson") as file:
        for one in kept:
            file(one)
    for one, other in zip(kept, read_log(tmp_path / "log.ndjson"), strict=True):
        assert one.context.tolist() == other.context.tolist()


def test_rows_for_each_arm_have_the_arm_in_their_names(tmp_path: Path) -> None:
    kept: list[Decision] = []
    play(kept.append, named=False, model=Shared(BINARY))
    with LogFile(tmp_path / "log.ndjson") as file:
        for one in kept:
            file(one)
    first = json.loads((tmp_path / "log.ndjson").read_text().split("\n")[0])
    assert first["context"].keys() == {"red", "blue"}
    found = read_log(tmp_path / "log.ndjson")
    assert [found[0].context[f"blue.{j}"] for j in range(3)] == kept[0].context["blue"].tolist()
    assert value(found, "red") == value(kept, "red")


@pytest.mark.parametrize("kind", ["csv", "parquet", "table", "dicts", "arrow"])
def test_every_format_says_the_same(kind: str, tmp_path: Path) -> None:
    kept: list[Decision] = []
    play(kept.append, (0, 1))
    flat = [
        {"number": one.number, "arm": one.arm, "propensity": one.propensity, "reward": one.reward, "age": one.context["age"]}
        | {f"probabilities.{arm}": chance for arm, chance in zip(one.arms, one.probabilities.tolist(), strict=True)}
        | {f"expected.{arm}": hope for arm, hope in zip(one.arms, one.expected.tolist(), strict=True)}
        for one in kept
    ]
    source: Any = tmp_path / f"log.{kind}"
    if kind == "csv":
        with source.open("w", newline="") as file:
            writer = csv.DictWriter(file, flat[0])
            writer.writeheader()
            writer.writerows(flat)
    elif kind == "parquet":
        pyarrow.parquet.write_table(pa.Table.from_pylist(flat), source)
    else:
        source = {"table": pa.Table.from_pylist(flat), "dicts": flat, "arrow": pa.Table.from_pylist(flat).to_batches()[0]}[
            kind
        ]
    assert value(source, 1) == value(kept, 1)
    assert value(source, lambda one: int(one.context["age"] > 0.0)) == value(kept, lambda one: int(one.context["age"] > 0.0))


def test_a_log_of_someone_else(tmp_path: Path) -> None:
    """The three columns that have to be there; words stay words, and what is missing is NaN."""
    (tmp_path / "log.csv").write_text("arm,propensity,reward,city,age\nx,0.5,1,Rome,\ny,0.25,NA,Bonn,31\n")
    one, two = read_log(tmp_path / "log.csv")
    assert (one.number, one.arm, one.propensity, one.reward, one.told, one.context["city"]) == (0, "x", 0.5, 1.0, True, "Rome")
    assert math.isnan(one.context["age"])
    assert (two.number, two.reward, two.told, two.context["age"]) == (1, None, False, 31.0)
    assert len(one.probabilities) == 0
    assert value(tmp_path / "log.csv", lambda one: "x" if one.context["city"] == "Rome" else "y").count == 2


@pytest.mark.parametrize("spelled", [("True", "False"), ("true", "false"), (1, 0), (True, False), (1.0, False)])
def test_rewards_that_are_true_or_false(spelled: Any) -> None:
    rows = [{"arm": "a", "propensity": 0.5, "reward": reward, "told": spelled[1]} for reward in spelled]
    assert [(one.reward, one.told) for one in read_log(rows)] == [(1.0, False), (0.0, False)]


def test_arms_that_come_and_go_leave_their_columns_empty(tmp_path: Path) -> None:
    with LogFile(tmp_path / "log.ndjson") as file:
        bandit = Bandit(["a", "b"], policy=Uniform(), log=file)
        for number in range(30):
            if number == 10:
                bandit.join("c")
            if number == 20:
                bandit.leave("a")
            bandit.reward(bandit.choose([1.0]).id, 1)
    found = read_log(tmp_path / "log.ndjson")
    assert [found[k].arms for k in (0, 10, 20)] == [("a", "b"), ("a", "b", "c"), ("b", "c")]
    assert value(found, "c").covered == pytest.approx(2.0 / 3.0)


def test_a_file_goes_on_behind_its_last_whole_line(tmp_path: Path) -> None:
    path = tmp_path / "log.ndjson"
    rows: list[Decision] = []
    play(rows.append, count=9)
    with LogFile(path) as file:
        file(rows[0])
        file(rows[1])
    whole = path.read_bytes()
    for torn in (whole[:-1], whole + b'{"number": 2, "id"', whole + b"x" * 200_000):
        path.write_bytes(torn)
        with LogFile(path) as file:
            file(rows[2])
        numbers = [json.loads(line)["number"] for line in path.read_text().splitlines()]
        assert numbers == [rows[k].number for k in ((0, 2) if torn == whole[:-1] else (0, 1, 2))]
    path.write_bytes(b"only a part")
    LogFile(path).close()
    assert path.read_bytes() == b""


def test_a_log_that_fails_leaves_the_decision_as_it_was() -> None:
    full = [False]

    def log(decision: Decision) -> None:
        if full[0]:
            raise OSError("no space left on device")

    bandit = Bandit(["a", "b"], wait=Wait(events=2, default=0.0), log=log)
    one, two = bandit.choose([1.0]).id, bandit.choose([1.0]).id
    full[0] = True
    with pytest.raises(OSError, match="no space"):
        bandit.reward(one, 1)
    with pytest.raises(OSError, match="no space"):
        bandit.choose([1.0])
    assert bandit.waiting == (one, two)
    assert bandit.count == 2
    assert bandit.tallies["a"].rewarded == bandit.tallies["b"].rewarded == 0
    full[0] = False
    bandit.reward(one, 1)
    assert bandit.waiting == (two,)


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"arm": ["a"], "propensity": [0.5]}, "no column 'reward'"),
        ({"arm": ["a"], "Propensity": [0.5], "reward": [1]}, r"no column 'propensity' \(did you mean 'Propensity'\?\)"),
        ({"arm": [None], "propensity": [0.5], "reward": [1]}, "row 0 of .*: it has no arm"),
        ({"arm": ["a"], "propensity": [None], "reward": [1]}, "it has no propensity"),
        ({"arm": ["a"], "propensity": ["much"], "reward": [1]}, "propensity is 'much', needs a number"),
        ({"arm": ["a"], "propensity": [0.5], "reward": ["won"]}, "reward is 'won', needs a number"),
        ({"arm": ["a"], "propensity": [0.5], "reward": [1], "number": [0.5]}, "its number is 0.5"),
        ({"arm": [], "propensity": [], "reward": []}, "the log is empty"),
    ],
)
def test_what_is_no_log_is_refused(columns: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        read_log(columns)
