"""Expand around learners: the laws, certificates, merges, files, columns that join, missing values, and every way in."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.adversaries import BOX, OBLIVIOUS, Oblivious, extremes, family
from helpers.catalogue import name
from scipy.sparse import csr_matrix

import onlinevi as ovi
from onlinevi import checks, ewa
from onlinevi.guarantees import certificate, hindsight
from onlinevi.learners import CheckpointError, buffer_for

NUMBERS = ovi.Linear(ovi.Squared(), ovi.Implicit())
FULL = ovi.Linear(ovi.Squared(), ovi.NGVI(step=1.0), ovi.FullCovariance(box=None))
MAPS = [
    ovi.Fourier(6),
    ovi.Products(),
    ovi.Products(buckets=4),
    ovi.Splines(3),
    ovi.Trees(2, 2),
    ovi.Relu(4),
    ovi.Unbent(),
    ovi.Beside((ovi.Splines(3), ovi.Fourier(4))),
]
by_map = pytest.mark.parametrize("one", MAPS, ids=str)


def bent(count: int = 200, dim: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(seed).standard_normal((count, dim))
    return X, np.where((X[:, :2] ** 2).sum(axis=1) > 1.4, 1.0, -1.0)


@by_map
def test_compositions_keep_the_laws(one: ovi.FeatureMap) -> None:
    checks.learner(ovi.Prepare(ovi.Inputs(), ovi.Expand(one, NUMBERS)), compiled=False)
    checks.learner(ovi.Expand(one, NUMBERS, keep=False, intercept=False), compiled=False)


def test_a_pool_and_intervals_around_and_inside_keep_the_laws() -> None:
    pool = ovi.Pool([NUMBERS, replace(NUMBERS, discount=0.9)], rate=ewa.AdaHedge())
    prepared = ovi.Prepare(ovi.Inputs(), ovi.Expand(ovi.Fourier(4), pool))
    checks.learner(ovi.Calibrate(ovi.Calibration(), prepared), compiled=False)
    checks.learner(ovi.Prepare(ovi.Inputs(), ovi.Expand(ovi.Trees(2, 2), pool)), compiled=False)


def test_the_map_is_computed_once_for_a_pool() -> None:
    calls = []

    @dataclass(frozen=True)
    class Counted(ovi.Products):
        def features(self, Z: Any, start: int) -> Any:
            calls.append(len(Z))
            return super().features(Z, start)

    pool = ovi.Pool([replace(NUMBERS, discount=own) for own in (1.0, 0.99, 0.9)], rate=ewa.AdaHedge())
    learner, (X, y) = ovi.Expand(Counted(), pool, intercept=False), bent(64)
    learner.update_many(learner.init(3), X, y)
    assert sum(calls) == 64


# --- certificates


def assert_holds(learner: ovi.Expand, state: Any, X: np.ndarray, y: np.ndarray) -> None:
    """No point of the box of features, the best in hindsight and random ones among them, beats the decisions by more."""
    live, found = certificate(state), state.space.of(X)
    features = found.toarray() if hasattr(found, "tocsr") else found
    best = hindsight(features, y, loss=learner.loss, box=BOX)
    rng = np.random.default_rng(0)
    points = np.vstack([rng.uniform(-BOX, BOX, (8, features.shape[1])), best.mean, -BOX * np.sign(live.tangents.gradient)])
    regrets = live.loss - learner.loss(y, points @ features.T).value.sum(axis=1)
    assert (regrets <= live.against(points) + live.rounding()).all()
    assert live.loss - live.count * best.value <= live.regret + live.rounding()
    assert live.space == str(state.space)
    assert live.space in repr(live)


@pytest.mark.parametrize("adversary", OBLIVIOUS, ids=lambda own: own.__name__)
def test_no_stream_breaks_a_certificate_of_features(adversary: Oblivious) -> None:
    """Products that meet in buckets among them: the loss is convex in the weights of whatever features there are."""
    for loss in (ovi.Hinge(), ovi.Squared()):
        X, y = adversary(loss, np.random.default_rng(7), 24, 3)
        X = np.clip(X, -3.0, 3.0)
        for one in (ovi.Fourier(4), ovi.Products(buckets=3), ovi.Splines(2, degree=1)):
            rule = ovi.SVB(0.2)
            learner = ovi.Expand(one, ovi.Linear(loss, rule, family(rule)), intercept=False)
            state, _ = learner.update_many(learner.init(3), X, y)
            assert_holds(learner, state, X, y)


@pytest.mark.parametrize("loss", [ovi.Hinge(), ovi.Absolute()], ids=name)
def test_no_adversary_that_sees_the_decision_breaks_it(loss: ovi.Loss) -> None:
    """It plays the row whose features cost the decision most beyond what they cost the corner it points away from."""
    rng = np.random.default_rng(3)
    for one in (ovi.Fourier(4), ovi.Products(buckets=3), ovi.Trees(2, 2)):
        for rule in (ovi.Implicit(), ovi.NGVI(), ovi.OGA(0.1)):
            learner = ovi.Expand(one, ovi.Linear(loss, rule, family(rule)), intercept=False)
            state, played, labels = learner.init(2), [], []
            for _ in range(20):
                tried, y = np.repeat(rng.standard_normal((6, 2)), 2, axis=0), np.tile(extremes(loss), 6)
                features, leaf = state.space.of(tried), state.alone()
                opponent = np.where(leaf.gradient > 0.0, -BOX, BOX)
                worst = int(np.argmax(loss(y, features @ leaf.mean).value - loss(y, features @ opponent).value))
                state, _ = learner.update(state, tried[worst], y[worst])
                played.append(tried[worst])
                labels.append(y[worst])
            assert_holds(learner, state, np.array(played), np.array(labels))


def test_the_certificate_of_a_pool_names_its_features_too() -> None:
    X, y = bent()
    learner = ovi.Prepare(ovi.Inputs(), ovi.Expand(ovi.Fourier(4), ovi.Pool([NUMBERS], rate=1.0)))
    _state, trace = learner.update_many(learner.init(3), X, y)
    assert certificate(trace).space == "8 features (Fourier(count=4, scale=1.0, seed=0, kernel='gaussian') beside the columns)"
    assert certificate(ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.SVB())).space == ""


# --- merge, files, columns that join, missing values


@by_map
def test_a_merge_is_one_pass_for_squared_loss_and_covariances(one: ovi.FeatureMap) -> None:
    learner, (X, y) = ovi.Expand(one, FULL, intercept=False), bent(60)
    whole, _ = learner.update_many(learner.init(3), X, y)
    merged = learner.merge([learner.update_many(learner.init(3), X[k::3], y[k::3])[0] for k in range(3)])
    np.testing.assert_allclose(merged.mean, whole.mean, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(merged.std, whole.std, rtol=1e-9)
    assert certificate(merged).count == 60


def test_what_has_other_features_is_not_merged() -> None:
    learner = ovi.Expand(ovi.Fourier(4), FULL, intercept=False)
    with pytest.raises(ValueError, match="columns at the first row"):
        learner.merge([learner.init(3), learner.widen(learner.init(2), 3)])


def test_shards_learn_features_as_one_pass_does() -> None:
    X, y = bent(120)
    learner = ovi.Prepare(ovi.Inputs(), ovi.Expand(ovi.Fourier(4), FULL))
    with ThreadPoolExecutor(1) as executor:
        fleet = ovi.learn_shards(learner, list(zip(np.array_split(X, 3), np.array_split(y, 3), strict=True)), executor)
    whole, _ = fleet.learner.update_many(fleet.learner.init(3).with_inputs(fleet.state.inputs), X, y)
    np.testing.assert_allclose(fleet.state.mean, whole.mean, rtol=1e-9, atol=1e-10)
    assert "Fourier" in fleet.certificate.space
    with pytest.raises(ValueError, match="give prepare_like"):
        fleet.risk_bound()


@by_map
def test_a_state_widened_is_as_if_the_columns_had_been_0(one: ovi.FeatureMap) -> None:
    X, y = bent(30)
    for learner in (ovi.Expand(one, NUMBERS, intercept=False), ovi.Expand(one, FULL, keep=False, intercept=False)):
        early, _ = learner.update_many(learner.widen(learner.init(2), 3), X * [1.0, 1.0, 0.0], y)
        late = learner.widen(learner.update_many(learner.init(2), X[:, :2], y)[0], 3)
        np.testing.assert_allclose(late.mean, early.mean, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(late.std, early.std, rtol=1e-12)
        after, _ = learner.update_many(late, X, y)
        assert after.count == 60
        assert after.space.start == 2
        assert after.width == 3
        with pytest.raises(ValueError, match="none can leave"):
            learner.widen(late, 2)


@by_map
def test_files_hold_the_map_and_the_columns_it_began_with(one: ovi.FeatureMap, tmp_path: Path) -> None:
    learner, (X, y) = ovi.Prepare(ovi.Inputs(), ovi.Expand(one, NUMBERS)), bent(40)
    state, _ = learner.update_many(learner.init(2), X[:, :2], y)
    state = learner.widen(state, 3)
    ovi.save(tmp_path / "m.ovi", learner, state)
    saved = ovi.load(tmp_path / "m.ovi")
    assert saved.learner == learner
    assert saved.state.space == state.space
    ours, theirs = learner.update_many(state, X, y)[0], saved.learner.update_many(saved.state, X, y)[0]
    assert ours.alone().array.tobytes() == theirs.alone().array.tobytes()
    with pytest.raises(CheckpointError, match="another learner"):
        ovi.save(tmp_path / "n.ovi", replace(learner, inner=replace(learner.inner, keep=False)), state)


@by_map
def test_a_missing_value_is_its_mean_to_features_and_missing_to_its_own_weight(one: ovi.FeatureMap) -> None:
    X, y = bent(40)
    holes = X.copy()
    holes[::3, 1] = np.nan
    zeros = np.nan_to_num(holes)
    leaf = replace(NUMBERS, missing=True)
    alone = ovi.Expand(one, leaf, keep=False, intercept=False)
    ours, _ = alone.update_many(alone.init(3), holes, y)
    if one.may_miss:
        theirs, _ = leaf.update_many(leaf.init(3), one.features(holes, 3), y)
    else:
        theirs, _ = alone.update_many(alone.init(3), zeros, y)
    assert ours.alone().array.tobytes() == theirs.alone().array.tobytes()
    kept = ovi.Expand(one, leaf, intercept=False)
    start = kept.init(3)
    found = start.space.of(holes, missing=True)
    assert np.isnan(found.data if hasattr(found, "tocsr") else found).sum() == len(holes[::3]) * (1 + one.may_miss)
    assert kept.predict(start, holes[0])[1] != kept.predict(start, zeros[0])[1]
    strict = ovi.Expand(one, NUMBERS, keep=False, intercept=False)
    with pytest.raises(ovi.BadRow, match=r"row 2: it holds nan.*missing=True"):
        strict.update_many(strict.init(3), holes[1:], y[1:])


@by_map
def test_sparse_rows_are_learned_as_dense_ones(one: ovi.FeatureMap) -> None:
    X, y = bent(40)
    X[np.abs(X) < 0.5] = 0.0
    learner = ovi.Expand(one, NUMBERS, intercept=False)
    dense, _ = learner.update_many(learner.init(3), X, y)
    sparse, _ = learner.update_many(learner.init(3, sparse=True), csr_matrix(X), y)
    np.testing.assert_allclose(sparse.mean, dense.mean, rtol=1e-10, atol=1e-12)
    prepared = ovi.Prepare(ovi.Inputs(), ovi.Expand(one, NUMBERS))
    whole, _ = prepared.update_many(prepared.init(3), csr_matrix(X), y)
    state = prepared.init(3)
    for low in range(0, 40, 9):
        state, _ = prepared.update_many(state, csr_matrix(X[low : low + 9]), y[low : low + 9])
    assert state.alone().array.tobytes() == whole.alone().array.tobytes()
    X[4, 0] = np.inf
    with pytest.raises(ovi.BadRow, match="row 4: it holds inf"):
        learner.update_many(learner.init(3), csr_matrix(X), y)


def test_columns_matter_by_the_features_that_they_are_part_of() -> None:
    X, y = bent(400, dim=4)
    learner = ovi.Prepare(ovi.Inputs(), ovi.Expand(ovi.Products(), FULL))
    state, _ = learner.update_many(learner.init(4), X, y)
    sizes = state.space.by_column(np.abs(state.mean))
    assert sizes.shape == (4,)
    assert sizes[:2].min() > 3.0 * sizes[2:].max()
    names, mean = state.space.names(list("abcd")), np.abs(state.mean)
    of_a = mean[names.index("a")] + mean[names.index("a²")] + 0.5 * sum(mean[names.index(f"a·{b}")] for b in "bcd")
    assert sizes[0] == pytest.approx(of_a)
    with pytest.raises(ValueError, match="needs 15 values"):
        state.space.by_column([1.0])
    with pytest.raises(ValueError, match="2 names for 4 columns"):
        state.space.names(["a", "b"])


def test_what_makes_no_sense_is_refused_with_the_way_out() -> None:
    X, y = bent(5)
    with pytest.raises(TypeError, match=r"write Fourier\(\)"):
        ovi.Expand(ovi.Fourier, NUMBERS)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="use Beside"):
        ovi.Expand(ovi.Fourier(), ovi.Expand(ovi.Splines(), NUMBERS))
    learner = ovi.Expand(ovi.Fourier(4), NUMBERS)
    with pytest.raises(ovi.BadRow, match=r"row 0: its first column is .* Expand\(…, intercept=False\)"):
        learner.update_many(learner.init(3), X, y)
    with pytest.raises(ValueError, match="X has 2 columns, the state 3"):
        learner.update_many(learner.init(3), X[:, :2], y)


# --- the ways in


def test_a_map_bends_what_is_straight_without_it() -> None:
    X, y = bent(200, dim=2)
    leaf = ovi.Linear(ovi.Squared(), ovi.Implicit(0.5), ovi.FullCovariance(box=None))
    wrong = {}
    for one in (None, ovi.Products(), ovi.Fourier(30)):
        learner = ovi.Prepare(ovi.Inputs(), leaf if one is None else ovi.Expand(one, leaf))
        _, trace = learner.update_many(learner.init(2), X, y)
        wrong[one] = np.mean(trace.prediction[100:] * y[100:] < 0.0)
    assert max(wrong[ovi.Products()], wrong[ovi.Fourier(30)]) < 0.6 * wrong[None]


def test_events_one_by_one_and_several_classes() -> None:
    X, _ = bent(60)
    y = X.argmax(axis=1)
    leaf = ovi.Linear(ovi.Hinge(), ovi.NGVI())
    outside = ovi.OneVsRest(ovi.Prepare(ovi.Inputs(), ovi.Expand(ovi.Fourier(4), leaf)), 3)
    inside = ovi.Prepare(ovi.Inputs(), ovi.Expand(ovi.Fourier(4), ovi.OneVsRest(leaf, 3)))  # the map once for all classes
    states = [learner.update_many(learner.init(3), X, y)[0] for learner in (outside, inside)]
    assert [own.alone().array.tobytes() for own in states[0].by_class()] == [
        own.array.tobytes() for own in states[1].inner.inner.each
    ]
    buffer = buffer_for(outside, outside.init(3))
    for x, label in zip(X, y, strict=True):
        buffer.learn(np.stack([x, np.zeros(3)]), float(label))
    assert [own.alone().array.tobytes() for own in buffer.state.by_class()] == [
        own.alone().array.tobytes() for own in states[0].by_class()
    ]


def test_estimators_take_a_map() -> None:
    pytest.importorskip("sklearn")
    from onlinevi.sklearn import OnlineVIClassifier, OnlineVIRegressor

    X, y = bent(200, dim=2)
    model = OnlineVIRegressor(rule="implicit", family=ovi.FullCovariance(box=None), expand=ovi.Products()).fit(X, y)
    assert np.mean(model.predict(X) * y > 0.0) > 0.75
    assert not hasattr(model, "coef_")
    assert model.state_.space.width == 6
    with pytest.raises(ValueError, match="leave expand out"):
        OnlineVIClassifier(expand=ovi.Products()).fit(X, y)


def test_river_learns_features_of_events() -> None:
    pytest.importorskip("river")
    from onlinevi.river import OnlineVIRegressor

    X, y = bent(120, dim=2)
    model = OnlineVIRegressor(rule="implicit", family=ovi.FullCovariance(box=None), expand=ovi.Products())
    for x, label in zip(X, y, strict=True):
        model.learn_one({"a": x[0], "b": x[1]}, label)
    model.learn_one({"a": 0.0, "b": 0.0, "c": 1.0}, -1.0)  # a column joins
    assert model.predict_one({"a": 0.0, "b": 0.0}) < 0.0 < model.predict_one({"a": 2.0, "b": 2.0})
    with pytest.raises(ValueError, match="maps itself"):
        OnlineVIRegressor(expand=ovi.Products())
