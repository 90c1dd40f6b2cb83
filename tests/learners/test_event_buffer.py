"""One event at a time, in place: the same state and the same words as the contract's, for what is fast and what is not."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
from helpers.states import arrays_of, bits, same_bits

import onlinevi as ovi
from onlinevi.learners import EventBuffer, OneVsRest, Prepare, StateBuffer, buffer_for

RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((60, 3)) * [1.0, 1e3, 1e-3] + [5.0, 0.0, 1.0]
ROWS[7, 1] = math.nan
NUMBERS = np.nan_to_num(ROWS) @ [1.0, 2e-3, 3e2]
SIGNS = np.where(np.median(NUMBERS) < NUMBERS, 1.0, -1.0)
CODES = np.array([0, 0, 1, *RNG.integers(0, 2, 17), 2, 4, *RNG.integers(0, 5, 38)])
"""Class 4 comes before 3, which is known with it."""


def prepared(loss: ovi.Loss, rule: ovi.Rule, family: ovi.Family | None = None, **more: Any) -> Prepare:
    return Prepare(ovi.Inputs(missing=True), ovi.Linear(loss, rule, family, missing=True, **{"average": False} | more))


HINGE = prepared(ovi.Hinge(), ovi.NGVI())
ONE = prepared(ovi.Logistic(), ovi.NGVI(), ovi.MeanField(box=None))
COMPOSED = {
    "numbers": (prepared(ovi.Squared(), ovi.Implicit(rate=0.5), ovi.MeanField(box=None)), NUMBERS),
    "average": (prepared(ovi.Absolute(), ovi.SVA(0.1), average=True), NUMBERS),
    "counts": (prepared(ovi.Poisson(), ovi.Implicit()), np.round(np.abs(NUMBERS))),
    "two": (ONE, SIGNS),
    "full": (prepared(ovi.Logistic(), ovi.Implicit(), ovi.FullCovariance(), discount=0.9), SIGNS),
    "hinge": (prepared(ovi.Hinge(), ovi.OGA(0.1)), SIGNS),
    "classes": (OneVsRest(ONE, 0), CODES),
    "known classes": (OneVsRest(ONE, 5, grows=False), CODES),
    "hinge classes": (OneVsRest(HINGE, 0), CODES),
}


def event(row: Any) -> np.ndarray:
    return np.array([row, np.zeros(len(row))])


def learned(learner: Any, rows: Any, labels: Any) -> StateBuffer:
    buffer = buffer_for(learner, learner.init(len(rows[0])))
    for row, label in zip(rows, labels, strict=True):
        buffer.learn(event(row), float(label))
    return buffer


@pytest.mark.parametrize("name", COMPOSED)
def test_it_is_the_contract_to_the_bit(name: str) -> None:
    learner, labels = COMPOSED[name]
    buffer = buffer_for(learner, learner.init(3))
    assert type(buffer) is EventBuffer
    assert same_bits(buffer.state, learner.init(3))
    for row, label in zip(ROWS, labels, strict=True):
        before = buffer.state
        said = learner.forecast(before, row)
        if name == "numbers" or name == "average" or name == "counts":
            assert buffer.mean(event(row)) == pytest.approx(float(said.mean), rel=1e-12)
        elif name == "hinge classes" and len(before.each):
            assert buffer.probability(event(row)) is None
            np.testing.assert_allclose(buffer.scores(event(row)), said.prediction, rtol=1e-12)
        elif buffer.count:
            np.testing.assert_allclose(buffer.probability(event(row)), said.probability, rtol=1e-12)
        assert same_bits(buffer.state, before), "what is asked changes nothing"
        buffer.learn(event(row), float(label))
    state, _ = learner.update_many(learner.init(3), ROWS, labels)
    assert same_bits(buffer.state, state)
    assert buffer.count == state.count == 60


@pytest.mark.compiled
def test_it_is_the_contract_compiled() -> None:
    """The beliefs and the coupling to the bit; sums over events, which the compiler adds in another order, nearly so."""
    for learner, labels in ((HINGE, SIGNS), (OneVsRest(HINGE, 0), CODES)):
        buffer, (state, _) = learned(learner, ROWS, labels), learner.update_many(learner.init(3), ROWS, labels)
        for own, other in zip(buffer.state.leaves(), state.leaves(), strict=True):
            assert np.array_equal(own.mean, other.mean)
            assert np.array_equal(own.std, other.std)
        assert buffer.state.inputs == state.inputs
        for found, wanted in zip(arrays_of(buffer.state), arrays_of(state), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
        said = learner.forecast(state, ROWS[3]).prediction
        asked = buffer.scores if isinstance(learner, OneVsRest) else buffer.mean
        np.testing.assert_allclose(asked(event(ROWS[3])), said, rtol=1e-12)


def test_what_is_absent_adds_nothing_and_learns_nothing() -> None:
    buffer = learned(ONE, ROWS, SIGNS)
    before, absent = buffer.state, np.array([[5.0, math.nan, 1.0], [0.0, 1.0, 0.0]])
    missing = event([5.0, math.nan, 1.0])
    assert abs(buffer.probability(missing) - 0.5) < abs(buffer.probability(absent) - 0.5)
    buffer.learn(absent, 1.0)
    assert (buffer.state.mean != before.mean).tolist() == [True, True, False, True]
    assert (buffer.state.std != before.std).tolist() == [True, True, False, True]
    assert buffer.state.inputs.counts.tolist() == [61.0, 59.0, 61.0]


@pytest.mark.parametrize("name", ["two", "classes"])
def test_a_refused_event_leaves_no_trace(name: str) -> None:
    learner, labels = COMPOSED[name]
    buffer = learned(learner, ROWS, labels)
    before = bits(buffer.state)
    for label in (1.0, 9.0):  # of classes, one that is there and one that is not
        with pytest.raises(ovi.BadRow, match="row 0: column 1 is inf: needs finite numbers"):
            buffer.learn(event([5.0, math.inf, 1.0]), label)
    with pytest.raises(ovi.BadRow, match="column 2 is 1e\\+200: beyond"):
        buffer.probability(event([5.0, 0.0, 1e200]))
    for label in (math.nan, 0.5, -1.5):
        with pytest.raises(ValueError, match=r"label|no class"):
            buffer.learn(event(ROWS[0]), label)
    assert bits(buffer.state) == before
    buffer.learn(event(ROWS[0]), 1.0)
    assert buffer.count == 61


def test_what_one_class_refuses_none_has_learned() -> None:
    one = Prepare(ovi.Inputs(standardise=False, squash=None), ovi.Linear(ovi.Logistic(), ovi.NGVI(), average=False))
    buffer = learned(OneVsRest(one, 0), [[1.0], [2.0], [3.0]], [0, 1, 0])
    before = bits(buffer.state)
    for label in (0.0, 2.0):
        with pytest.raises(ovi.BadRow, match="the step would overflow"):
            buffer.learn(event([1e160]), label)
    with pytest.raises(ovi.BadRow, match="the prediction is not finite"):
        buffer.probability(event([1e160]))
    assert bits(buffer.state) == before


def test_none_can_join_where_all_are_known() -> None:
    learner, labels = COMPOSED["known classes"]
    buffer = learned(learner, ROWS, labels)
    with pytest.raises(ValueError, match="class 5: there are 5, and none can join"):
        buffer.learn(event(ROWS[0]), 5.0)


@pytest.mark.parametrize("name", ["numbers", "classes"])
def test_copies_and_pickles_go_on_alike_and_apart(name: str) -> None:
    learner, labels = COMPOSED[name]
    buffer = learned(learner, ROWS[:25], labels[:25])
    copies = copy.deepcopy(buffer), pickle.loads(pickle.dumps(buffer)), buffer_for(learner, buffer.state)
    for one in (buffer, *copies):
        for row, label in zip(ROWS[25:], labels[25:], strict=True):
            one.learn(event(row), float(label))
    assert all(same_bits(buffer.state, one.state) for one in copies)
    assert same_bits(buffer.state, learner.update_many(learner.init(3), ROWS, labels)[0])


def test_a_wider_state_goes_on_in_a_buffer() -> None:
    learner = OneVsRest(ONE, 0)
    state = learner.widen(learned(learner, ROWS[:30, :2], CODES[:30]).state, 3)
    buffer = buffer_for(learner, state)
    for row, code in zip(ROWS[30:], CODES[30:], strict=True):
        buffer.learn(event(row), float(code))
    assert same_bits(buffer.state, learner.update_many(state, ROWS[30:], CODES[30:])[0])


class Own(ovi.Linear):
    """A learner of one's own."""


MISSING = ovi.Inputs(missing=True)
POOLED = ovi.Pool([ovi.Linear(ovi.Logistic(), ovi.NGVI(), average=False)], rate=1.0, pool="probability")
NUMBER = ovi.Linear(ovi.Squared(), ovi.Implicit(), average=False)
COUNTS = np.round(np.abs(np.nan_to_num(NUMBERS) - 5.0))


def light(loss: ovi.Loss, **more: Any) -> ovi.Auto:
    return ovi.Auto(loss, MISSING, effort="light", **more)


LIVE = {
    "auto": (ovi.Auto(inputs=MISSING), SIGNS, 6),
    "auto numbers": (ovi.Auto(ovi.Squared(), MISSING), NUMBERS, 4),
    "auto classes": (OneVsRest(ovi.Auto(inputs=MISSING, one_of_many=True), 0), CODES % 3, 5),
    "logistic": (light(ovi.Logistic()), SIGNS, 60),
    "hinge": (light(ovi.Hinge()), SIGNS, 40),
    "squared": (light(ovi.Squared()), NUMBERS, 40),
    "absolute": (light(ovi.Absolute()), NUMBERS, 20),
    "pinball": (light(ovi.Pinball(0.9)), NUMBERS, 20),
    "counts": (light(ovi.Poisson()), COUNTS, 40),
    "lags": (light(ovi.Squared(), lags=2), NUMBERS, 20),
    "classes": (OneVsRest(light(ovi.Logistic(), one_of_many=True), 0), CODES, 30),
    "hinge classes": (OneVsRest(light(ovi.Hinge(), one_of_many=True), 5, grows=False), CODES, 20),
    "calibrated": (
        ovi.Calibrate(ovi.Calibration(0.8), Prepare(MISSING, ovi.Linear(ovi.Squared(), missing=True, rule=ovi.Implicit()))),
        NUMBERS,
        20,
    ),
    "trees": (Prepare(MISSING, ovi.Expand(ovi.Trees(3, 2), ovi.Linear(ovi.Logistic(), ovi.NGVI(), missing=True))), SIGNS, 20),
    "own": (Prepare(MISSING, Own(ovi.Squared(), ovi.Implicit(), average=False, missing=True)), NUMBERS, 20),
    "float32": (Prepare(ovi.Inputs(), ovi.Linear(ovi.Squared(), ovi.Implicit(), dtype="float32")), NUMBERS, 7),
    "alone": (NUMBER, NUMBERS, 7),
}
"""Learners, their labels, and how many of the first events they learn: what is live, and what is a new value each time."""


@pytest.mark.parametrize("name", LIVE)
def test_any_learner_has_a_buffer_that_is_the_contract_to_the_bit(name: str) -> None:
    """Whatever is asked in between, and whichever events are refused."""
    learner, labels, number = LIVE[name]
    rows = np.nan_to_num(ROWS) if name in ("float32", "alone") else ROWS
    buffer = buffer_for(learner, learner.init(3))
    assert type(buffer) is StateBuffer
    for k, (row, label) in enumerate(zip(rows[:number], labels, strict=False)):
        if k % 7 == 3:
            before = buffer.state
            with pytest.raises(ovi.BadRow):
                buffer.learn(event([5.0, math.inf, 1.0]), float(label))
            with pytest.raises(ValueError, match=r"label|class"):
                buffer.learn(event(row), math.nan)
            assert same_bits(buffer.state, before)
        if k % 5 == 4:
            ask(learner, buffer, rows[k - 2])
            ask(learner, buffer, row)
        buffer.learn(event(row), float(label))
        assert buffer.count == k + 1
    state, _ = learner.update_many(learner.init(3), rows[:number], labels[:number])
    assert same_bits(buffer.state, state)
    assert same_bits(pickle.loads(pickle.dumps(buffer)).state, state)


def ask(learner: Any, buffer: StateBuffer, row: Any) -> None:
    """The buffer says what the contract does."""
    said = learner.forecast(buffer.state, row)
    if learner.several:
        np.testing.assert_allclose(buffer.scores(event(row)), said.prediction, rtol=1e-9)
    elif learner.loss.target != "classes":
        assert buffer.mean(event(row)) == pytest.approx(float(said.mean), rel=1e-9)
    if learner.loss.target == "classes":
        found = buffer.probability(event(row))
        assert found is said.probability is None or found == pytest.approx(said.probability, rel=1e-9)


@pytest.mark.compiled
def test_live_states_are_the_contract_compiled() -> None:
    """The same loops run over blocks of one row, so that all bits are the same."""
    for learner, labels in ((LIVE["auto"][0], SIGNS), (LIVE["auto numbers"][0], NUMBERS)):
        buffer = learned(learner, ROWS, labels)
        assert same_bits(buffer.state, learner.update_many(learner.init(3), ROWS, labels)[0])
        buffer = buffer_for(learner, buffer.state)
        ask(learner, buffer, ROWS[3])
        ask(learner, buffer, ROWS[7])


def test_a_learner_that_grows_with_its_rows_does_so_in_a_buffer() -> None:
    learner = light(ovi.Logistic())
    buffer = learned(learner, ROWS[:10, :2], SIGNS[:10])
    wide = learner.widen(buffer.state, 3)
    assert buffer.probability(event(ROWS[10])) == pytest.approx(learner.forecast(wide, ROWS[10]).probability, rel=1e-9)
    assert buffer.state.width == 2, "what is asked changes nothing"
    for row, label in zip(ROWS[10:20], SIGNS[10:20], strict=True):
        buffer.learn(event(row), float(label))
    assert same_bits(buffer.state, learner.update_many(wide, ROWS[10:20], SIGNS[10:20])[0])


def test_the_way_back_is_as_long_as_events_since_a_state_was_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onlinevi.learners.event_buffer.buffer.WAY_BACK", 4)
    learner = light(ovi.Logistic())
    for number in (3, 4, 5):
        buffer = learned(learner, ROWS[:number], SIGNS[:number])
        with pytest.raises(ovi.BadRow, match="label 3"):
            buffer.learn(event(ROWS[9]), 3.0)
        assert buffer.count == number
        assert same_bits(buffer.state, learner.update_many(learner.init(3), ROWS[:number], SIGNS[:number])[0])


def test_an_interrupt_in_the_middle_of_an_event_is_as_if_it_had_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """The leaves of a pool have learned it by then, and its weights have not."""
    learner = light(ovi.Logistic())
    buffer = learned(learner, ROWS[:5], SIGNS[:5])

    def interrupted(*arguments: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(buffer._live._inner._inner._mixing, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            buffer.learn(event(ROWS[5]), 1.0)
    assert same_bits(buffer.state, learner.update_many(learner.init(3), ROWS[:5], SIGNS[:5])[0])


def test_files_carry_what_a_buffer_has_learned(tmp_path: Any) -> None:
    learner = light(ovi.Squared())
    buffer = learned(learner, ROWS[:10], NUMBERS[:10])
    ovi.save(tmp_path / "model.ovi", learner, buffer.state)
    saved = ovi.load(tmp_path / "model.ovi")
    again = buffer_for(saved.learner, saved.state)
    for own in (buffer, again):
        for row, label in zip(ROWS[10:20], NUMBERS[10:20], strict=True):
            own.learn(event(row), float(label))
    assert same_bits(buffer.state, again.state)


def test_moments_that_stay_are_left_to_the_contract() -> None:
    taught, _ = ovi.Inputs().update_many(ovi.Inputs().init(3), ROWS[30:])
    learner = Prepare(ovi.Inputs(fixed=True), NUMBER)
    buffer = buffer_for(learner, learner.init(3).with_inputs(taught))
    buffer.learn(event(ROWS[0]), 1.0)
    assert buffer.state.inputs == taught
