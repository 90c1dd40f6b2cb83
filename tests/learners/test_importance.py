"""Importance by column: what is known of made streams, through every map and combinator, whatever the units."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.stats import spearmanr

import onlinevi as ovi
from onlinevi.learners import Importance, column_importance, store

IMPLICIT = ovi.Implicit(rate=0.5)
LEAF = ovi.Linear(ovi.Squared(), IMPLICIT, ovi.FullCovariance(prior_std=3.0, box=None), average=False)
NARROW = replace(LEAF, family=ovi.MeanField(prior_std=1.0, box=None))
YES = ovi.Linear(ovi.Logistic(), ovi.Implicit(), ovi.FullCovariance(prior_std=3.0, box=None), average=False)
POOL = ovi.Pool([LEAF, NARROW], rate=ovi.ewa.AdaHedge())


def rows(count: int = 300, dim: int = 4, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, dim))


def learned(learner: Any, X: Any, y: Any, **options: Any) -> Any:
    return learner.update_many(learner.init(X.shape[1], **options), X, y)[0]


def told(learner: Any, X: Any, y: Any, **options: Any) -> Importance:
    found = ovi.importance(learned(learner, X, y, **options))
    assert found.value.sum() == pytest.approx(1.0)
    assert (found.value >= 0.0).all()
    assert ((found.std >= 0.0) & (found.std <= 0.5)).all()
    return found


def shuffled(learner: Any, state: Any, X: np.ndarray) -> np.ndarray:
    """By how much predictions at these rows change where one column is shuffled: its share in all."""
    base, rng, changes = learner.predict(state, X)[0], np.random.default_rng(0), []
    for column in range(X.shape[1]):
        other = np.array(X)
        other[:, column] = rng.permutation(other[:, column])
        changes.append(np.square(learner.predict(state, other)[0] - base).mean())
    return np.array(changes) / sum(changes)


# --- the closed form, and draws against it


def test_of_weights_on_columns_it_is_their_squares() -> None:
    X = rows()
    state = learned(LEAF, X, X @ [2.0, 1.0, 0.0, -1.0])
    np.testing.assert_allclose(ovi.importance(state).value, np.square(state.mean) / (state.mean @ state.mean), rtol=1e-9)


@pytest.mark.parametrize("leaf", [LEAF, NARROW, replace(LEAF, family=ovi.LowRank(2, prior_std=3.0, box=None))], ids=str)
def test_what_is_measured_on_made_rows_is_the_closed_form(leaf: ovi.Linear) -> None:
    """A map that gives each column once more, as it is: then draws of weights and made rows tell what the formula tells."""
    X = rows(60)
    state = learned(leaf, X, X @ [1.0, 1.0, 0.0, -0.5] + rows(60, 1, 1)[:, 0])
    part = state.parts()[0]
    bent = replace(part, columns=None)
    varied = column_importance._varied(state, 4, 128)
    exact, drawn = (column_importance._sizes(one, varied)[0] for one in (part, bent))
    np.testing.assert_allclose(drawn.size, exact.size, rtol=1e-9)
    np.testing.assert_allclose(np.sqrt(drawn.variance), np.sqrt(exact.variance), rtol=0.45)  # of 32 draws


# --- what matters, and what does not

MAPS = [
    ovi.Splines(5),
    ovi.Products(),
    ovi.Products(buckets=40),
    ovi.Relu(40),
    ovi.Fourier(40),
    ovi.Trees(8, 2),
    ovi.Beside((ovi.Splines(4), ovi.Products())),
]


@pytest.mark.parametrize("one", MAPS, ids=str)
def test_through_a_map_columns_that_say_nothing_matter_little(one: ovi.FeatureMap) -> None:
    X = rows(500)
    found = told(ovi.Prepare(ovi.Inputs(), ovi.Expand(one, LEAF)), X, np.square(X[:, 0]) + X[:, 1])
    assert found.value[2:].max() < 0.5 * found.value[:2].min()
    assert found.value[2:].sum() < 0.25


def test_a_product_gives_both_of_its_columns_as_much() -> None:
    X = rows(500)
    found = told(ovi.Prepare(ovi.Inputs(squash=None), ovi.Expand(ovi.Products(), LEAF)), X, X[:, 0] * X[:, 1])
    np.testing.assert_allclose(found.value, [0.5, 0.5, 0.0, 0.0], atol=0.02)


def test_shares_of_columns_of_any_kind_are_those_of_the_variance() -> None:
    """Columns of any unit, those of marks, often or seldom 1, and one that does not vary: as when each is shuffled."""
    rng = np.random.default_rng(0)
    often = np.array([0.5, 0.05])
    X = np.column_stack([rows(800, 2) * [1e-4, 1e5] + [3.0, 0.0], rng.random((800, 2)) < often, np.full(800, 7.0)])
    y = (X - [3.0, 0.0, 0.0, 0.0, 0.0]) @ [1e4, 0.0, 2.0, 4.0, 0.0] + X[:, 2] * X[:, 3]
    for inner in (LEAF, ovi.Expand(ovi.Products(), LEAF)):
        learner = ovi.Prepare(ovi.Inputs(), inner)
        state = learned(learner, X, y)
        found = ovi.importance(state).value
        np.testing.assert_allclose(found, shuffled(learner, state, X), atol=0.03)
        assert found[[0, 2, 3]].min() > 10.0 * found[[1, 4]].max()


def test_the_unit_of_a_column_and_its_zero_do_not_matter() -> None:
    X = rows()
    y = X[:, 0] + np.square(X[:, 1])
    learner = ovi.Prepare(ovi.Inputs(), ovi.Expand(ovi.Splines(4), POOL))
    plain, moved = told(learner, X, y), told(learner, X * [1e-6, 1e9, 3.0, 1.0] + [0.0, 1e9, 5.0, -2.0], y)
    np.testing.assert_allclose(moved.value, plain.value, atol=1e-6)
    np.testing.assert_allclose(moved.std, plain.std, atol=1e-6)


def test_rare_marks_of_sparse_rows_matter_as_rarely_as_they_come() -> None:
    rng = np.random.default_rng(0)
    X = csr_matrix((rng.random((3000, 3)) < [0.3, 0.03, 0.3]).astype(float))
    learner = ovi.Prepare(ovi.Inputs(), replace(NARROW, family=ovi.MeanField(prior_std=3.0, box=None)))
    found = told(learner, X, X @ [1.0, 3.0, 0.0] + 0.05 * rng.standard_normal(3000), sparse=True)
    np.testing.assert_allclose(found.value, [0.53, 0.47, 0.0], atol=0.06)


def test_the_std_falls_as_rows_come_and_covers_what_is_true() -> None:
    """The weights are those of the noise of the belief: the truth lies within some stds."""
    weights = np.array([1.0, 0.7, 0.3, 0.0])
    stds = []
    for count in (60, 960):
        X = rows(count)
        leaf = replace(LEAF, rule=ovi.Implicit(rate=0.5))
        found = told(ovi.Prepare(ovi.Inputs(squash=None), leaf), X, X @ weights + rows(count, 1, 5)[:, 0])
        assert (np.abs(found.value - np.square(weights) / (weights @ weights)) < 4.0 * found.std + 0.01).all()
        stds.append(found.std[:3])
    assert (stds[1] < 0.5 * stds[0]).all()


# --- every combinator


def test_a_pool_tells_of_its_learners_by_their_weights_and_of_their_difference() -> None:
    X = rows()
    y = np.square(X[:, 0]) + 0.1 * X[:, 1]
    parts = [LEAF, ovi.Expand(ovi.Products(), LEAF)]
    state = learned(ovi.Prepare(ovi.Inputs(), ovi.Pool(parts, rate=0.01)), X, y)
    each = [ovi.importance(replace(state, inner=own)) for own in state.inner.learners]
    both = ovi.importance(state)
    assert both.value[0] == pytest.approx(each[1].value[0], abs=0.1)
    assert both.value[0] > 0.8 > each[0].value[0]
    even = replace(state.inner, array=state.inner.array * 0.0)
    np.testing.assert_allclose(even.weights, 0.5)
    assert ovi.importance(replace(state, inner=even)).std[0] > 1.5 * both.std[0]


def test_the_std_is_in_the_unit_of_the_noise() -> None:
    X, noise = rows(), rows(300, 1, 3)[:, 0]
    learner = ovi.Calibrate(ovi.Calibration(), ovi.Prepare(ovi.Inputs(), POOL))
    small, large = (told(learner, X, 10.0**k * (X @ [1.0, 1.0, 0.0, 0.0] + noise)) for k in (0, 100))
    np.testing.assert_allclose(large.value, small.value, atol=0.05)
    np.testing.assert_allclose(large.std, small.std, rtol=0.5)


def test_past_labels_stand_behind_the_columns() -> None:
    X = rows(300, 2)
    y = np.cumsum(X[:, 0])
    found = told(ovi.Prepare(ovi.Inputs(), ovi.Lag(LEAF, 2)), X, y)
    assert found.names == ("column 0", "column 1", "label before", "label 2 before")
    assert found.value[2] > found.value[0] > 5.0 * found.value[1]
    pool = ovi.Pool([LEAF, ovi.Lag(LEAF, 2), ovi.Expand(ovi.Products(), LEAF)], rate=ovi.ewa.AdaHedge())
    assert told(ovi.Prepare(ovi.Inputs(), pool), X, y).value[2:].min() > 0.4
    assert told(ovi.Prepare(ovi.Inputs(), ovi.Lag(ovi.Expand(ovi.Splines(3), LEAF), 2)), X, y).value[2:].min() > 0.3


def test_several_classes_are_told_of_by_class_and_together() -> None:
    X = rows(400, 3)
    y = np.where(X[:, 0] > 0.0, 0, np.where(X[:, 1] > 0.0, 1, 2)).astype(float)
    found = told(ovi.OneVsRest(ovi.Prepare(ovi.Inputs(), YES), 3), X, y)
    assert len(found.by_class) == 3
    assert found.by_class[0].value[0] > 0.9
    assert found.value[2] < 0.02
    assert found.by_class[1].value[1] > 0.2


def test_what_all_classes_share_tells_none_apart() -> None:
    """One posterior over all weights: what is added to those of every class changes no prediction, and no importance."""
    X = rows(200, 3)
    y = np.digitize(X[:, 0], [-0.5, 0.5]).astype(float)
    state = learned(ovi.Softmax(3), X, y)
    array = np.array(state.array)
    state.plan.view(array, "mean")[:, 1] += 5.0
    shifted = type(state)(array, state.plan)
    before, after = ovi.importance(state), ovi.importance(shifted)
    np.testing.assert_allclose(after.value, before.value, rtol=1e-9)
    assert before.by_class[0].value[0] > 0.9


@pytest.mark.parametrize("months", [2.0, 30.0])
@pytest.mark.parametrize("bent", [False, True])
def test_a_date_matters_as_much_as_its_parts_do_together(months: float, bent: bool) -> None:
    """Over two months sine, cosine and month all but say the same: weights that cancel each other are no importance."""
    rng = np.random.default_rng(2)
    gone = 0.8 + np.sort(rng.random(300)) * months / 12.0
    angle = 2.0 * np.pi * gone
    date = np.stack([np.sin(angle), np.cos(angle), 1.0 + np.floor(12.0 * (gone % 1.0))], axis=1)
    x, season = rng.standard_normal(300), 3.0 * np.sin(angle) + 3.0 * np.cos(angle)
    y = x + season - season.mean()
    leaf = replace(LEAF, family=ovi.FullCovariance(prior_std=30.0, box=None))
    inner = ovi.Expand(ovi.Splines(3), leaf) if bent else leaf
    learner, X = ovi.Prepare(ovi.Inputs(), inner), np.column_stack([date, x])
    state = learned(learner, X, y)
    found = ovi.importance(state), column_importance.importance(state, (column_importance.Cycle(0, 1, 2, 12, 1),))
    alone, together = (told.value[:3].sum() for told in found)
    still = np.where(np.arange(4) < 3, X, 0.0), np.where(np.arange(4) < 3, X[150], X)
    by_date, by_x = (learner.predict(state, one)[0].var() for one in still)
    true = by_date / (by_date + by_x)
    assert together == pytest.approx(true, abs=0.1)
    assert found[1].value[1:3].tolist() == [0.0, 0.0]
    assert alone > true + 0.1 or months > 12.0


@pytest.mark.parametrize("effort", ["light", "default"])
@pytest.mark.parametrize("loss", [ovi.Logistic(), ovi.Squared(), ovi.Poisson()], ids=lambda loss: type(loss).__name__)
def test_the_default_tells_of_columns_by_their_names(loss: ovi.Loss, effort: Any, tmp_path: Path) -> None:
    import pandas as pd

    X = pd.DataFrame(rows(120, 2), columns=["size", "age"])
    score = X["size"].to_numpy()
    y = np.where(score > 0.0, 1.0, -1.0) if isinstance(loss, ovi.Logistic) else np.rint(np.exp(score))
    learner = ovi.Auto(loss, effort=effort)
    state = learned(learner, X, y)
    found = ovi.importance(state)
    assert found.names == ("size", "age")
    assert found.value[0] > 0.7
    store.save(tmp_path / "state.ovi", learner, state)
    again = ovi.importance(ovi.load(tmp_path / "state.ovi").state)
    np.testing.assert_array_equal(again.value, found.value)
    np.testing.assert_array_equal(again.std, found.std)


def test_the_default_of_most_effort_tells_of_columns_too() -> None:
    X = rows(12, 2)
    assert told(ovi.Auto(ovi.Squared(), effort="most"), X, 3.0 * X[:, 1]).value[1] > 0.6


def test_columns_that_join_are_told_of() -> None:
    learner, X = ovi.Auto(ovi.Squared()), rows(160, 3)
    y = X @ [1.0, 0.0, 3.0]
    state, _ = learner.update_many(learner.init(2), X[:40, :2], y[:40])
    state, _ = learner.update_many(state, X[40:], y[40:])
    assert ovi.importance(state).value.argmax() == 2


@pytest.mark.parametrize("learner", [LEAF, ovi.Auto(), ovi.Prepare(ovi.Inputs(), ovi.Expand(ovi.Relu(4), LEAF))])
def test_before_the_first_event_nothing_matters(learner: Any) -> None:
    found = ovi.importance(learner.init(3))
    assert found.value.tolist() == found.std.tolist() == [0.0] * 3


def test_what_is_not_linear_in_features_is_refused() -> None:
    with pytest.raises(ValueError, match="linear in columns"):
        ovi.importance(object())
    with pytest.raises(ValueError, match="no class has come"):
        ovi.importance(ovi.OneVsRest(YES, 0).init(3))


@pytest.mark.compiled
def test_it_agrees_with_permuted_columns_of_real_data() -> None:
    """On the breast cancers' rows, whose columns move together: by how much predictions change where one is shuffled."""
    data = ovi.datasets.load("breast", seed=0)
    learner = ovi.Auto(ovi.Logistic(), effort="light")
    state = learned(learner, data.X, data.y)
    assert spearmanr(ovi.importance(state).value, shuffled(learner, state, data.X))[0] > 0.75


def test_products_of_matrices_take_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where something else has a processor, two wait for each other ten times as long as one works."""
    control, numbers, shares = pytest.importorskip("threadpoolctl"), list[int](), column_importance._shares
    state = learned(LEAF, rows(20), rows(20)[:, 0])

    def watched(own: Any, *more: Any) -> Any:
        numbers.extend(pool["num_threads"] for pool in control.threadpool_info() if pool["user_api"] == "blas")
        return shares(own, *more)

    monkeypatch.setattr(column_importance, "_shares", watched)
    with control.threadpool_limits(2, user_api="blas"):
        ovi.importance(state)
        assert {pool["num_threads"] for pool in control.threadpool_info() if pool["user_api"] == "blas"} == {2}
    assert set(numbers) == {1}
