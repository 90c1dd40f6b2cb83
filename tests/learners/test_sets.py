"""Sets of classes: the identity behind their coverage, on streams and against labels made to break it."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.states import bits
from hypothesis import given
from hypothesis import strategies as st

import onlinevi as ovi
from onlinevi.checkpoint import CheckpointError
from onlinevi.learners import Covered, OneVsRest, buffer_for, choose
from onlinevi.learners.set_calibration import REACH

COUNT = 1_200
ONE = choose(ovi.Logistic(), "implicit", None, None)
SEVERAL = ovi.Sets(ovi.SetCalibration(0.8), OneVsRest(ONE, 0))


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def drawn(chances: np.ndarray, seed: int = 0) -> np.ndarray:
    return np.minimum((chances.cumsum(axis=1) < rng(seed).random((len(chances), 1))).sum(axis=1), chances.shape[1] - 1)


SURE = rng(1).dirichlet(np.full(4, 0.05), COUNT)
UNSURE = rng(2).dirichlet(np.ones(4), COUNT)
STREAMS = {
    "honest": (UNSURE, drawn(UNSURE)),
    "sure and honest": (SURE, drawn(SURE)),
    "sure and wrong": (SURE, SURE.argmin(axis=1)),
    "always right": (SURE, SURE.argmax(axis=1)),
    "certain": (np.eye(4)[drawn(UNSURE)], drawn(UNSURE)),
    "without any pattern": (SURE, rng(3).integers(4, size=COUNT)),
    "wrong by turns": (SURE, np.where(np.arange(COUNT) // 300 % 2, SURE.argmin(axis=1), SURE.argmax(axis=1))),
}


def most_off(calibration: ovi.SetCalibration, count: int, joined: int = 0) -> float:
    """What the theorem allows coverage to differ from what was asked."""
    start = abs(calibration.init().threshold)
    return (REACH + start + calibration.step) / (calibration.step * count) + joined / count


def check_identity(calibration: ovi.SetCalibration, end: Covered, held: Any) -> None:
    owed = (calibration.init().threshold - end.threshold) / calibration.step
    assert (~held).sum() - (1.0 - calibration.coverage) * len(held) == pytest.approx(owed, abs=1e-6)
    assert end.coverage == pytest.approx(held.mean(), abs=1e-12)


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.99])
def test_misses_are_what_the_threshold_says_and_coverage_is_as_asked(name: str, coverage: float) -> None:
    (chances, codes), calibration = STREAMS[name], ovi.SetCalibration(coverage)
    end, sets = calibration.run(codes, chances)
    held = sets[np.arange(COUNT), codes]
    check_identity(calibration, end, held)
    assert abs(held.mean() - coverage) <= most_off(calibration, COUNT)
    assert end.size == pytest.approx(sets.sum(axis=1).mean())
    assert end.empty == pytest.approx((sets.sum(axis=1) == 0).mean())


def test_a_set_is_of_the_classes_that_reach_the_threshold() -> None:
    calibration, chances = ovi.SetCalibration(0.7, step=0.5), UNSURE[:200]
    codes, state = drawn(chances, 5), calibration.init()
    for row, code in zip(chances, codes, strict=True):
        with np.errstate(divide="ignore"):
            odds = np.log(row) - np.log1p(-row)
        said = calibration.sets(state, row[None])[0]
        assert said.tolist() == (odds >= state.threshold).tolist()
        after, again = calibration.update_many(state, [code], row[None])
        assert again[0].tolist() == said.tolist()
        assert after.threshold == pytest.approx(state.threshold + (0.5 * 0.3 if said[code] else -0.5 * 0.7))
        state = after


def adversary(choice: str, said: np.ndarray, t: int, seen: int) -> int:
    """The label that hurts most: one outside of the set, one within, each by turns, or a class that nobody has met."""
    outside, within = np.flatnonzero(~said), np.flatnonzero(said)
    if choice == "new":
        return seen
    wants = outside if choice == "outside" or (choice == "by turns" and t // 50 % 2) else within
    other = within if wants is outside else outside
    return int((wants if len(wants) else other)[-1])


@pytest.mark.parametrize("choice", ["outside", "within", "by turns"])
@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_who_sees_the_set_and_chooses_the_label_changes_nothing(choice: str, coverage: float) -> None:
    calibration, count = ovi.SetCalibration(coverage), 600
    state, held = calibration.init(), []
    for t in range(count):
        row = SURE[t % COUNT : t % COUNT + 1]
        said = calibration.sets(state, row)[0]
        code = adversary(choice, said, t, 4)
        state, sets = calibration.update_many(state, [code], row)
        held.append(bool(sets[0, code]))
        assert abs(state.threshold) <= REACH + calibration.step
    check_identity(calibration, state, np.array(held))
    assert abs(np.mean(held) - coverage) <= most_off(calibration, count)


def test_classes_that_nobody_had_met_are_missed_and_paid_back() -> None:
    calibration, joined = ovi.SetCalibration(0.9), 40
    chances, codes = np.full((COUNT, joined), 1.0 / joined), rng(4).integers(joined, size=COUNT)
    known = np.arange(joined) < (np.arange(COUNT) // 10)[:, None]
    codes = np.minimum(codes, np.arange(COUNT) // 10)
    end, sets = calibration.run(codes, chances, known)
    assert not (sets & ~known).any()
    new = ~known[np.arange(COUNT), np.minimum(codes, joined - 1)]
    check_identity(calibration, end, sets[np.arange(COUNT), codes])
    assert abs(end.coverage - 0.9) <= most_off(calibration, COUNT, int(new.sum()))


@given(
    st.floats(0.05, 0.95),
    st.floats(0.01, REACH),
    st.lists(st.tuples(st.floats(0.0, 1.0), st.booleans()), min_size=1, max_size=60),
)
def test_no_probabilities_and_no_labels_break_the_identity(coverage: float, step: float, events: list[Any]) -> None:
    calibration = ovi.SetCalibration(coverage, step)
    chance, code = np.array([one for one, _ in events]), np.array([int(own) for _, own in events])
    end, sets = calibration.run(code, np.column_stack([1.0 - chance, chance]))
    held = sets[np.arange(len(code)), code]
    check_identity(calibration, end, held)
    assert abs(held.mean() - coverage) <= most_off(calibration, len(code)) + 1e-12


@pytest.mark.parametrize("name", STREAMS)
def test_the_guess_in_the_place_of_empty_sets_only_adds_to_them(name: str) -> None:
    (chances, codes), calibration = STREAMS[name], ovi.SetCalibration(0.8)
    plain, sets = calibration.run(codes, chances)
    filled, full = replace(calibration, filled=True).run(codes, chances)
    empty = ~sets.any(axis=1)
    assert filled.threshold == plain.threshold
    assert np.array_equal(full[~empty], sets[~empty])
    assert np.array_equal(full[empty], np.eye(4, dtype=bool)[chances[empty].argmax(axis=1)])
    assert filled.coverage == pytest.approx(full[np.arange(COUNT), codes].mean())
    assert filled.size == pytest.approx(full.sum(axis=1).mean())
    later = replace(calibration, filled=True).sets(filled, chances[:50])
    assert not (calibration.sets(plain, chances[:50]) & ~later).any()
    assert later.any(axis=1).all()


def test_shards_add_up() -> None:
    calibration = ovi.SetCalibration()
    start = calibration.run(drawn(UNSURE[:100]), UNSURE[:100])[0]
    one, other = (calibration.update_many(start, drawn(part, 7), part)[0] for part in (UNSURE[100:300], SURE[:600]))
    merged = calibration.merge([one, other], start)
    missed = [round(state.count * (1.0 - state.coverage)) for state in (start, one, other, merged)]
    assert merged.count == 900
    assert missed[3] == missed[1] + missed[2] - missed[0]
    assert merged.threshold == pytest.approx(0.25 * one.threshold + 0.75 * other.threshold)


# --- around learners


def rows(count: int = 75, number: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Rows and classes, of which one after the other comes for the first time."""
    draw = rng(8)
    X = draw.standard_normal((count, 3))
    codes = (X @ draw.standard_normal((3, number)) + draw.gumbel(size=(count, number))).argmax(axis=1)
    return X, np.minimum(codes, 1 + np.arange(count) // 15)


def test_blocks_single_events_and_events_in_place_are_the_same_to_the_bit() -> None:
    X, y = rows()
    whole, trace = SEVERAL.update_many(SEVERAL.init(3), X, y)
    state, buffer = SEVERAL.init(3), buffer_for(SEVERAL, SEVERAL.init(3))
    for number, (row, label) in enumerate(zip(X, y, strict=True)):
        event = np.vstack([row, np.zeros(3)])
        foreseen = SEVERAL.forecast(state, row).set
        state, one = SEVERAL.update_many(state, row[None], [label])
        buffer.learn(event, float(label))
        width = one.forecast.set.shape[1]
        assert one.forecast.set[0].tolist() == trace.forecast.set[number, :width].tolist()
        assert not trace.forecast.set[number, width:].any()
        assert foreseen.tolist() == trace.forecast.set[number, : len(foreseen)].tolist()
    assert bits(whole) == bits(state) == bits(buffer.state)
    assert whole.covered.array.tolist() == state.covered.array.tolist() == buffer.state.covered.array.tolist()
    assert trace.forecast.set.dtype == bool
    assert whole.coverage == pytest.approx(trace.forecast.set[np.arange(len(y)), y].mean())


@pytest.mark.parametrize("inner", [ONE, ovi.Auto(ovi.Logistic(), effort="light")], ids=["rule", "auto"])
def test_two_classes_have_sets_too(inner: Any) -> None:
    learner, draw = ovi.Sets(ovi.SetCalibration(0.9), inner), rng(9)
    X = draw.standard_normal((150, 2))
    y = np.where(X[:, 0] + draw.standard_normal(150) > 0.0, 1.0, -1.0)
    state, trace = learner.update_many(learner.init(2), X, y)
    sets, codes = trace.forecast.set, (y > 0.0).astype(int)
    assert sets.shape == (150, 2)
    assert state.coverage == pytest.approx(sets[np.arange(150), codes].mean())
    assert state.coverage == pytest.approx(0.9, abs=0.05)
    wide = learner.fitting(learner.widen(state, 3), 3)
    assert learner.forecast(wide, np.zeros(3)).set.shape == (2,)
    assert learner.look(state, X[:5], y[:5]).set.tolist() == learner.forecast(state, X[:5]).set.tolist()


def test_a_file_brings_all_of_it_back(path: Path) -> None:
    X, y = rows()
    half, _ = SEVERAL.update_many(SEVERAL.init(3), X[:35], y[:35])
    whole, _ = SEVERAL.update_many(half, X[35:], y[35:])
    ovi.save(path, SEVERAL, half)
    saved = ovi.load(path)
    again, _ = saved.learner.update_many(saved.state, X[35:], y[35:])
    assert again.covered.array.tolist() == whole.covered.array.tolist()
    assert pickle.loads(pickle.dumps(whole)).covered.array.tolist() == whole.covered.array.tolist()
    with pytest.raises(CheckpointError, match="another learner"):
        ovi.save(path, replace(SEVERAL, calibration=ovi.SetCalibration(0.99)), half)
    ovi.save(path, SEVERAL.calibration, whole.covered)
    assert ovi.load(path).state.array.tolist() == whole.covered.array.tolist()


def test_merged_shards_say_the_coverage_of_all() -> None:
    (X, y), one = rows(), ovi.Linear(ovi.Logistic(), ovi.Implicit())
    learner = ovi.Sets(ovi.SetCalibration(), OneVsRest(one, 4))
    start, _ = learner.update_many(learner.init(3), X[:25], y[:25])
    shards = [learner.update_many(start, X[part], y[part])[0] for part in (slice(25, 45), slice(45, 75))]
    merged = learner.merge(shards, start)
    assert merged.count == merged.covered.count == 75
    assert len(merged.by_class()) == 4
    assert learner.forecast(merged, X[:2]).set.shape == (2, 4)


def test_what_has_no_sets_is_told() -> None:
    with pytest.raises(ValueError, match="intervals and no sets"):
        ovi.Sets(ovi.SetCalibration(), ovi.Linear(ovi.Squared(), ovi.SVB()))
    hinge = ovi.Sets(ovi.SetCalibration(), OneVsRest(choose(ovi.Hinge(), "svb", None, None), 3))
    with pytest.raises(ValueError, match="no probabilities of several classes"):
        hinge.forecast(hinge.init(2), np.zeros(2))
    for wrong in ({"coverage": 1.0}, {"step": 0.0}, {"step": float("nan")}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))}="):
            ovi.SetCalibration(**wrong)
    calibration = ovi.SetCalibration()
    for codes, chances, why in (
        ([0], [0.5, 0.5], "a column a class"),
        ([0], [[0.5, np.nan]], "no probability"),
        ([0.5], [[0.5, 0.5]], "no class"),
        ([0, 1], [[0.5, 0.5]], "one class an event"),
    ):
        with pytest.raises(ValueError, match=why):
            calibration.run(codes, chances)
    empty, sets = calibration.run(np.empty(0), np.empty((0, 3)))
    assert empty.count == 0
    assert sets.shape == (0, 3)
    assert np.isnan(empty.coverage)


def test_a_table_of_a_forecast_has_a_column_for_each_class() -> None:
    X, y = rows()
    trace = SEVERAL.update_many(SEVERAL.init(3), X, y)[1]
    assert [name for name in trace.to_frame().columns if name.startswith("set")] == ["set_0", "set_1", "set_2", "set_3"]
