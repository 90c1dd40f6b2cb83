"""The default: what it says before an event is what is recorded, splits do not matter, and a state is a value."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from helpers.autos import BLOCKS, MANY_EVENTS, OFFSETS, UNITS, finite, kind, run, same, stream
from scipy.special import expit

import onlinevi as ovi

# --- it learns


def best_constant(loss: ovi.Loss, y: np.ndarray) -> float:
    """The least average loss of any constant prediction, in hindsight."""
    return min(loss(y, np.full(len(y), a)).value.mean() for a in np.linspace(-3.0, 3.0, 301))


@pytest.mark.parametrize("loss", MANY_EVENTS, ids=kind)
def test_every_loss_is_learned_in_wild_units(loss: ovi.Loss) -> None:
    X, y = stream(loss)
    trace = run(loss, X, y)
    assert trace.state.count == len(trace.loss) == len(y)
    assert trace.average_loss[-1] == pytest.approx(trace.loss.mean())
    assert trace.loss[50:].mean() < 0.85 * best_constant(loss, y[50:])
    assert finite(trace.state)
    if trace.state.calibrated is not None:
        covered = (trace.lower <= y) & (y <= trace.upper)
        assert trace.coverage == pytest.approx(covered[1:].mean(), abs=1e-12)
        assert trace.coverage == pytest.approx(0.9, abs=0.05)
        assert (trace.upper[1:] - trace.lower[1:]).mean() == pytest.approx(trace.width)


@pytest.mark.compiled
def test_probabilities_are_those_that_are_paid_for() -> None:
    X, y = stream(ovi.Logistic())
    trace = ovi.auto(X, y)
    np.testing.assert_allclose(-np.log(np.where(y > 0.0, trace.probability, 1.0 - trace.probability)), trace.loss, rtol=1e-9)
    # And they are right: among events of a probability about p, a part of about p are +1.
    truth = expit(2.0 * ((X - OFFSETS) / UNITS @ [1.0, -0.7] + 0.3))
    assert np.abs(trace.probability - truth)[100:].mean() < 0.06


@pytest.mark.compiled
def test_a_stream_that_jumps_is_tracked_and_outliers_do_not_ruin_it() -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((900, 2))
    weights = np.where(np.arange(900)[:, None] < 450, [1.0, -1.0], [-1.0, 1.0])
    y = (X * weights).sum(axis=1) + 0.1 * rng.standard_normal(900)
    assert run(ovi.Squared(), X, y).loss[550:].mean() < 0.2, "keeping to the old weights costs 8"
    y = X @ [1.0, -1.0] + 0.1 * rng.standard_normal(900)
    wild = y + np.where(rng.random(900) < 0.02, 1e3, 0.0)
    trace = run(ovi.Absolute(), X, wild)
    assert np.median(np.abs(trace.prediction - y)[200:]) < 0.3


# --- one event, a block, any split, records and weights


@pytest.mark.parametrize("loss", MANY_EVENTS, ids=kind)
def test_one_event_at_a_time_and_any_split_give_the_same_bits(loss: ovi.Loss, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = stream(loss, 30)
    learner = ovi.Auto(loss=loss)
    whole, trace = learner.update_many(learner.init(2), X, y)
    state, steps = learner.init(2), []
    for row, label in zip(X, y, strict=True):
        state, step = learner.update(state, row, label)
        steps.append(step)
    assert same(state, whole)
    np.testing.assert_array_equal(np.array(steps), np.column_stack([trace.prediction, trace.spread, trace.loss]))
    monkeypatch.setattr(BLOCKS, "BLOCK_VALUES", 14)
    first, before = learner.update_many(learner.init(2), X[:11], y[:11])
    second, after = learner.update_many(first, X[11:], y[11:])
    assert same(second, whole)
    for name in ("prediction", "spread", "loss", "lower", "upper", "label_std", "average_loss"):
        joined = np.concatenate([getattr(before, name), getattr(after, name)])
        np.testing.assert_array_equal(joined, getattr(trace, name))


def test_what_is_recorded_changes_nothing_else() -> None:
    X, y = stream(ovi.Squared(), 60)
    all_, thinned, none = (run(ovi.Squared(), X, y, record=record) for record in ("all", "thinned", "none"))
    assert same(all_.state, thinned.state)
    assert same(all_.state, none.state)
    np.testing.assert_array_equal(thinned.prediction, all_.prediction)
    assert (len(none.loss), len(none.lower), len(thinned.lower), len(all_.lower)) == (0, 0, 0, 60)
    with pytest.raises(ValueError, match='needs "all"'):
        run(ovi.Squared(), X, y, record="some")


@pytest.mark.compiled
@pytest.mark.parametrize("loss", [ovi.Squared(), ovi.Logistic()], ids=kind)
def test_a_row_of_weight_0_is_as_if_absent(loss: ovi.Loss) -> None:
    X, y = stream(loss, 40)
    used = np.random.default_rng(1).random(40) < 0.6
    X[~used] *= 1e9
    learner = ovi.Auto(loss=loss)
    weighted = learner.update_many(learner.init(2), X, y, weights=used.astype(float))[0]
    assert same(weighted, learner.update_many(learner.init(2), X[used], y[used])[0])
    state, step = learner.update(weighted, X[0], y[0], weight=0.0)
    assert state is weighted
    assert step[:2] == learner.predict(weighted, X[0])
    double, _ = learner.update(weighted, X[0], y[0], weight=2.0)
    assert double.loss - weighted.loss == pytest.approx(2.0 * (learner.update(weighted, X[0], y[0])[0].loss - weighted.loss))
    for weight in (-1.0, np.nan):
        with pytest.raises(ovi.BadRow, match="row 3: weight"):
            learner.update_many(weighted, X[:5], y[:5], weights=np.where(np.arange(5) == 3, weight, 1.0))


@pytest.mark.parametrize("loss", MANY_EVENTS, ids=kind)
def test_a_forecast_is_what_will_be_recorded(loss: ovi.Loss) -> None:
    X, y = stream(loss, 40)
    learner = ovi.Auto(loss=loss)
    state, trace = learner.init(2), run(loss, X, y)
    for start, stop in ((0, 1), (1, 25), (25, 39), (39, 40)):
        said = learner.forecast(state, X[start])
        mean, spread = learner.predict(state, X[start])
        assert (mean, spread) == (said.prediction, said.spread)
        assert (mean, spread) == pytest.approx((trace.prediction[start], trace.spread[start]), rel=1e-8, abs=1e-10)
        if state.calibrated is None:
            assert said.probability == pytest.approx(trace.probability[start], rel=1e-8)
            assert (said.mean, said.std**2) == pytest.approx((2 * said.probability - 1, 1 - said.mean**2))
            assert said.lower is said.upper is None
        else:
            recorded = trace.label_std[start], trace.lower[start], trace.upper[start]
            assert (said.std, said.lower, said.upper) == pytest.approx(recorded, rel=1e-8, abs=1e-10)
            assert said.probability is None
        state, _ = learner.update_many(state, X[start:stop], y[start:stop])
    matrix = learner.forecast(state, X[:5])
    for i in range(5):
        row = learner.forecast(state, X[i])
        for one, many in zip(row, matrix, strict=True):
            assert (one is None) == (many is None)
            assert one is None or one == pytest.approx(many[i], rel=1e-10)


# --- a state is a value


@pytest.mark.parametrize("loss", [ovi.Squared(), ovi.Logistic(), ovi.Pinball(0.9)], ids=kind)
def test_a_state_can_be_pickled_and_copied(loss: ovi.Loss) -> None:
    X, y = stream(loss, 40)
    learner = ovi.Auto(loss=loss)
    state = learner.update_many(learner.init(2), X[:30], y[:30])[0]
    expected = learner.update_many(state, X[30:], y[30:])[0]
    for twin in (pickle.loads(pickle.dumps(state)), copy.deepcopy(state)):
        assert same(twin, state)
        learned = [twin.inputs.array, twin.pooled.array, *(leaf.array for leaf in twin.leaves())]
        learned += [] if twin.calibrated is None else [twin.calibrated.array]
        assert not any(part.flags.writeable for part in learned)
        assert same(learner.update_many(twin, X[30:], y[30:])[0], expected)
    assert not same(state, expected), "the state given is left as it is"
    assert repr(state).startswith("AutoState(count=30, average_loss=")


@pytest.mark.compiled
def test_what_was_learned_can_be_read() -> None:
    X, y = stream(ovi.Squared(), 600)
    trace = run(ovi.Squared(), X, y, inputs=ovi.Inputs(squash=None))
    state = trace.state
    raw = ovi.Inputs(squash=None).raw_weights(state.inputs, state.mean, state.std)
    truth = np.array([1.0, -0.7]) / UNITS
    assert (np.abs(raw.weights - truth) < 4.0 * raw.std).all()
    np.testing.assert_allclose(raw.weights, truth, rtol=0.2)
    assert state.weights.sum() == pytest.approx(1.0)
    assert np.array_equal(trace.mean, state.mean)


@pytest.mark.parametrize("given", [(0, 1), (False, True), (-1.0, 1.0), (3, 7), (0.0, 255.0)], ids=str)
def test_two_labels_are_classes_and_it_is_said(given: tuple[Any, Any]) -> None:
    X, y = stream(ovi.Logistic(), 20)
    trace = ovi.auto(X, [given[int(own > 0.0)] for own in y])
    want = ovi.auto(X, y)
    assert np.array_equal(trace.probability, want.probability)
    if given == (-1.0, 1.0):
        assert trace.classes is None
    else:
        assert trace.classes == given
        assert type(trace.classes[0]) is type(given[0])
        assert f"classes {given[0]!r} as −1 and {given[1]!r} as +1" in repr(trace)
    numbers = ovi.auto(X, [given[int(own > 0.0)] for own in y], loss=ovi.Squared())
    assert numbers.classes is None
    assert numbers.probability is None


# --- several classes


def three(count: int = 40, dim: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((count, dim)) * 10.0 ** np.arange(dim)
    y = (X / 10.0 ** np.arange(dim) @ rng.standard_normal((dim, 4)) + rng.gumbel(size=(count, 4))).argmax(axis=1) * 1.0
    y[: count // 2] %= 3.0
    return X, y


def members(learner: ovi.Auto, dim: int, *, sparse: bool = False) -> list[str]:
    """What the pool is of: the kind of each, and of Softmax on features whether all share a covariance."""
    made: Any = learner.init(dim, sparse=sparse).made_of
    found = []
    for own in made.inner.learners:
        shared = {leaf.shared for leaf in own.inner.learners} if isinstance(own, ovi.Expand) else set()
        found.append(type(own.map).__name__ + (" shared" * shared.pop()) if shared else type(own).__name__)
    return found


@pytest.mark.compiled  # with it the default is whole; nothing is learned, and so nothing compiled
def test_several_classes_are_told_apart_by_posteriors_of_all_beside_one_a_class() -> None:
    straight, bent = ["ClassPool", "OneVsRest"], ["Relu shared", "Fourier shared"]
    few = ovi.Auto(known=3)
    assert members(few, 4) == [*straight, *bent, "Products shared", "Splines shared", "Relu", "Fourier"]
    assert members(ovi.Auto(known=26), 16) == [*straight, *bent, "Products shared", "Splines shared"]
    assert members(few, 60) == [*straight, *bent, "Relu", "Fourier"]
    assert members(ovi.Auto(known=0), 60) == [*straight, *bent], "as for ten classes"
    assert members(ovi.Auto(known=3, effort="light"), 4) == members(few, 4, sparse=True) == straight
    assert len(members(ovi.Auto(known=3, effort="most"), 4)) == len(members(few, 4)) + 2


def test_several_classes_in_any_split_with_classes_and_columns_that_join(path: Any) -> None:
    learner, (X, y) = ovi.Auto(known=0, effort="light", inputs=ovi.Inputs(missing=True)), three(24)
    X[3, 1], weights = np.nan, np.where(y == 1.0, 0.0, 1.0)
    whole, trace = learner.update_many(learner.init(2), X, y)
    assert trace.probability.shape == (24, 4)
    state = learner.init(2)
    for low, high in ((0, 1), (1, 15), (15, 24)):
        state, _ = learner.update_many(state, X[low:high], y[low:high])
    assert same(state, whole)
    live = learner.live(learner.init(2))
    for row, label in zip(X, y, strict=True):
        live.learn(row[np.newaxis], label)
    assert same(live.state, whole)
    ovi.save(path, learner, whole)
    assert same(ovi.load(path).state, whole)
    wide, _ = learner.update_many(whole, np.column_stack([X, X[:, 0]]), y)
    assert wide.mean.shape == (4, 4)
    pool, prepared = learner.init(2).made_of.inner, np.column_stack([np.ones(24), np.nan_to_num(X)])
    merged = pool.merge([pool.update_many(pool.init(3), prepared[k::2], y[k::2])[0] for k in range(2)])
    assert merged.count == 24
    weighed, _ = learner.update_many(learner.init(2), X, y, weights=weights)
    without, _ = learner.update_many(learner.init(2), X[weights > 0.0], y[weights > 0.0])
    assert same(weighed, without)


@pytest.mark.compiled
def test_several_classes_have_one_certificate_and_a_regret() -> None:
    learner, (X, y) = ovi.Auto(known=4), three(200)
    state, trace = learner.update_many(learner.init(2), X, y)
    live = ovi.certificate(state)
    _, rows = learner.inputs.update_many(learner.inputs.init(2), X)
    best = ovi.guarantees.hindsight(rows, y, loss=ovi.Logistic(), classes=4, box=None, radius=5.0)
    assert live.loss == pytest.approx(trace.loss.sum())
    assert live.loss - 200 * best.value <= live.against(best.mean.ravel()) <= live.within(5.0) + 1e-9
    assert state.pooled.regret <= state.pooled.switching_bound(0)
