"""Contexts of every form, and how a bandit keeps their names and moments."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_matrix

import onlinevi as ovi
from onlinevi.bandit import Bandit, Decision, Disjoint, Greedy, Shared, Uniform
from onlinevi.bandit.arms import BINARY
from onlinevi.bandit.contexts import row_of, rows_of

TABLE = pd.DataFrame({"age": [31, 44], "open": [True, False]})


@pytest.mark.parametrize(
    "given",
    [
        {"age": 31, "open": True},
        {"open": 1.0, "age": np.float32(31)},
        TABLE.iloc[0],
        TABLE.iloc[[0]],
        pl.from_pandas(TABLE)[0],
        pl.from_pandas(TABLE).row(0, named=True),
        pa.Table.from_pandas(TABLE).slice(0, 1),
    ],
    ids=lambda given: type(given).__module__ + "." + type(given).__name__,
)
def test_a_row_by_its_names(given: Any) -> None:
    found = row_of(given, ("age", "open"))
    assert found.rows.tolist() == [31.0, 1.0]
    assert found.names == ("age", "open")
    assert set(row_of(given, ()).names) == {"age", "open"}


def test_rows_without_names_are_taken_as_they_are() -> None:
    for given in ([31, 1], (31, True), np.array([31.0, 1.0]), csr_matrix([[31.0, 1.0]])):
        assert row_of(given, ("age", "open")).rows.tolist() == [31.0, 1.0]


@pytest.mark.parametrize(
    "given",
    [
        TABLE.astype(float).to_numpy(),
        {"red": [31, 1], "blue": [44, 0]},
        TABLE,
        pl.from_pandas(TABLE),
        pa.Table.from_pandas(TABLE),
        {"blue": {"open": 0, "age": 44}, "red": TABLE.iloc[0]},
        [{"open": 1, "age": 31}, {"age": 44, "open": 0}],
    ],
    ids=lambda given: type(given).__module__ + "." + type(given).__name__,
)
def test_a_row_for_each_arm(given: Any) -> None:
    found = rows_of(given, ["red", "blue"], ("age", "open"))
    assert found.rows.tolist() == [[31.0, 1.0], [44.0, 0.0]]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"age": 1.0, "opne": 1.0}, r"has 'opne' \(did you mean 'open'\?\)"),
        ({"age": 1.0}, "has no 'open'"),
        ({"age": 1.0, "open": "yes"}, "has 'yes' for 'open': needs a number"),
        ({"age": 1.0, "open": None}, "has None for 'open'"),
        (["x"], "needs numbers"),
    ],
)
def test_names_that_do_not_fit_are_refused(given: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        row_of(given, ("age", "open"))


def play(bandit: Bandit, rounds: range, tmp: Path | None = None) -> list[Any]:
    rng, seen = np.random.default_rng(rounds.start), []
    for number in rounds:
        x = {"age": 1000.0 * rng.standard_normal(), "flat": 7.0, "one": rng.standard_normal()}
        choice = bandit.choose(dict(reversed(x.items())) if number % 2 else x, now=0.0)
        seen.append((choice.arm, choice.propensity))
        if number % 3:
            bandit.reward(choice.id, float((choice.arm == "a") == (x["age"] > 0.0)), now=0.0)
    return seen


@pytest.mark.parametrize("inputs", [None, ovi.Inputs(), ovi.Inputs(squash=None, intercept=False)], ids=repr)
def test_names_and_moments_go_on_from_a_file(inputs: Any, tmp_path: Path) -> None:
    rows: list[Decision] = []
    one, other = (Bandit("ab", Disjoint(BINARY, inputs), policy=Greedy(explore=0.3), log=rows.append) for _ in range(2))
    play(one, range(30))
    play(other, range(30))
    other.save(tmp_path / "half.ovi")
    other = Bandit.load(tmp_path / "half.ovi")
    assert play(one, range(30, 60)) == play(other, range(30, 60))
    one.save(tmp_path / "one.ovi")
    other.save(tmp_path / "other.ovi")
    assert (tmp_path / "one.ovi").read_bytes() == (tmp_path / "other.ovi").read_bytes()
    assert rows[0].context.keys() == {"age", "flat", "one"}
    with pytest.raises(ValueError, match="has no 'flat'"):
        other.choose({"age": 1.0, "one": 1.0})


def test_moments_are_of_all_contexts_and_the_law_is_that_of_prepared_rows() -> None:
    inputs = ovi.Inputs()
    bandit, rng = Bandit("ab", Disjoint(BINARY, inputs), policy=Uniform()), np.random.default_rng(0)
    X = rng.standard_normal((40, 2)) * [1e4, 1.0]
    state, moments = BINARY.init(3), inputs.init(2)
    for number, x in enumerate(X):
        choice = bandit.choose(x)
        moments, _ = inputs.update(moments, x)
        if number % 2:
            bandit.reward(choice.id, number % 3 == 0)
            if choice.arm == "a":
                state, _ = BINARY.update(state, inputs.apply(moments, x), 2.0 * (number % 3 == 0) - 1.0)
    assert bandit.state_of("a") == state
    x = np.array([3e3, 0.1])
    moments, row = inputs.update(moments, x)
    expected = bandit.choose(x).expected[0]
    assert expected == pytest.approx(float(BINARY.forecast(state, row).probability))


def test_without_columns_it_is_a_bandit_without_contexts(tmp_path: Path) -> None:
    bandit, rng = Bandit("abc", seed=2), np.random.default_rng(0)
    for _ in range(200):
        choice = bandit.choose([])
        bandit.reward(choice.id, rng.random() < {"a": 0.2, "b": 0.8, "c": 0.5}[choice.arm])
    bandit.choose([], id="open")
    assert bandit.tallies["b"].chosen > 80
    bandit.save(tmp_path / "bandit.ovi")
    again = Bandit.load(tmp_path / "bandit.ovi")
    assert again.choose([]).propensity == bandit.choose([]).propensity
    assert again.probabilities([]) == bandit.probabilities([])


def test_without_columns_a_learner_may_prepare_by_itself() -> None:
    bandit = Bandit("ab", ovi.Prepare(ovi.Inputs(), BINARY))
    bandit.reward(bandit.choose([]).id, 1)
    assert sum(bandit.choose([]).probabilities) == pytest.approx(1.0)


def test_a_context_that_is_refused_settles_nothing() -> None:
    bandit = Bandit("ab", policy=Uniform())
    bandit.choose([1.0])
    for bad in ([math.nan], [math.inf], ["x"], [1.0, 2.0]):
        with pytest.raises(ValueError, match=r"nan|inf|needs numbers|has 2 values"):
            bandit.choose(bad)
    assert bandit.waiting == (0,)
    assert bandit.count == 1


def test_probabilities_change_nothing() -> None:
    model = Shared(BINARY)
    bandit = Bandit("abc", model)
    context = np.random.default_rng(0).standard_normal((3, 2))
    said = bandit.probabilities(context)
    assert said == bandit.probabilities(context), "of joint draws too"
    assert list(said.values()) == bandit.choose(context).probabilities.tolist()
    assert bandit.probabilities({"a": [1.0, 0.0]}, among=["a"]) == {"a": 1.0}


def test_hundreds_of_arms_that_share_what_they_learn() -> None:
    """They come and go, each with features of its own."""
    rng = np.random.default_rng(0)
    bandit = Bandit(range(200), Shared(BINARY, ovi.Inputs()))
    features = rng.standard_normal((300, 4))
    wanted = []
    for number in range(100):
        if number and not number % 30:
            bandit.leave(bandit.arms[0])
            bandit.join(200 + number)
        rows = {arm: features[arm] for arm in bandit.arms}
        choice = bandit.choose(rows)
        wanted.append(features[choice.arm] @ [1.0, -1.0, 0.0, 0.0])
        bandit.reward(choice.id, float(wanted[-1] > 0.5))
    assert np.mean(wanted[50:]) > 1.0, "0 at random"


def test_names_may_come_from_numpy_and_pandas() -> None:
    bandit = Bandit(np.arange(3), BINARY, policy=Uniform())
    choice = bandit.choose([1.0], id=np.int64(7), among=np.array([1, 2]))
    assert (bandit.arms, type(choice.arm)) == ((0, 1, 2), int)
    bandit.reward(np.int64(7), np.bool_(True))
    assert bandit.waiting == ()
    assert Bandit(pd.Series(["a", "b"]).to_numpy(dtype=str)).arms == ("a", "b")


def test_what_was_said_cannot_be_changed_behind_its_back() -> None:
    bandit = Bandit("ab", BINARY)
    row = np.array([1.0])
    choice = bandit.choose(row)
    for array in (choice.probabilities, choice.expected):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0.5
    row[:] = math.nan  # the caller's own
    bandit.reward(choice.id, 1)


def test_rows_of_one_context_are_prepared_alike() -> None:
    """By the moments of all of them: the first row is not beside itself alone."""
    bandit = Bandit("ab", Shared(BINARY, ovi.Inputs()), policy=Uniform())
    context = np.array([[1.0, 5.0], [1.0, 5.0]])
    choice = bandit.choose(context + np.array([[0.0, 0.0], [2.0, 1.0]]))
    bandit.reward(choice.id, 1)
    one, other = bandit.choose(context).expected
    assert one == other


@pytest.mark.parametrize("now", [math.nan, math.inf])
def test_a_time_that_is_none_is_refused(now: float) -> None:
    bandit = Bandit("ab", BINARY)
    for act in (lambda: bandit.choose([1.0], now=now), lambda: bandit.settle(now=now)):
        with pytest.raises(ValueError, match="needs a time in seconds"):
            act()
