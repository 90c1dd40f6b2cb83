"""The default with all its features, compiled: the laws that the small one keeps in other tests, and what effort is worth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.autos import finite, same
from scipy import sparse

import onlinevi as ovi
from onlinevi.learners import Effort
from onlinevi.learners.default import recipe

pytestmark = pytest.mark.compiled


def rings(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Inside or outside of a ring: no straight boundary says it."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((count, 2)) * [1e-3, 50.0]
    return X, np.where(np.square(X / [1e-3, 50.0]).sum(axis=1) + 0.2 * rng.standard_normal(count) > 1.4, 1.0, -1.0)


def test_more_effort_is_worth_it_where_boundaries_bend() -> None:
    X, y = rings(600)
    efforts: tuple[Effort, ...] = ("light", "default", "most")
    paid = {effort: ovi.auto(X, y, effort=effort).average_loss[-1] for effort in efforts}
    assert paid["default"] < 0.5 * paid["light"]
    assert paid["most"] < 0.5 * paid["light"]
    with pytest.raises(ValueError, match="needs one of 'light', 'default', 'most'"):
        ovi.Auto(effort="all")  # type: ignore[arg-type]


def test_it_never_pays_much_more_than_its_linear_part() -> None:
    """By Bayes' rule at most −log of the share of one learner, and of what is dealt out: whatever the stream."""
    rng = np.random.default_rng(1)
    for labels in (np.where(rng.random(300) < 0.5, 1.0, -1.0), rings(300)[1], np.where(np.arange(300) % 2, 1.0, -1.0)):
        trace = ovi.auto(rings(300)[0], labels)
        pool = trace.state.pooled
        linear = [own.loss for own in pool.learners if own.space is None]
        # Of each leaf the losses of its mean; the pool pays those of its probability, which ``losses`` has.
        assert len(linear) == 4
        assert pool.loss <= pool.losses[:4].min() + pool.regret_bound + 1e-9
        curve = np.log(2.0) - 300 * np.log1p(-0.5e-4)
        assert trace.state.loss <= pool.loss + curve + 1e-9


@pytest.mark.parametrize("loss", [ovi.Logistic(), ovi.Squared()], ids=lambda own: own.name)
def test_splits_files_and_columns_that_join(loss: ovi.Loss, tmp_path: Path) -> None:
    X, y = rings(90)
    learner = ovi.Auto(loss, lags=1)
    whole, trace = learner.update_many(learner.init(2), X, y)
    first, before = learner.update_many(learner.init(2), X[:37], y[:37])
    ovi.save(tmp_path / "model.ovi", learner, first)
    loaded, again = ovi.load(tmp_path / "model.ovi")[:2]
    second, after = loaded.update_many(again, X[37:], y[37:])
    assert same(second, whole)
    np.testing.assert_array_equal(np.concatenate([before.prediction, after.prediction]), trace.prediction)
    said = learner.forecast(first, X[37])
    assert said.prediction == pytest.approx(trace.prediction[37], rel=1e-8)

    wide = np.column_stack([X, np.arange(90.0)])
    joined = learner.update_many(first, wide[37:], y[37:])[0]
    assert finite(joined)
    assert joined.inputs.dim == 3
    ovi.save(tmp_path / "wide.ovi", learner, joined)
    assert same(ovi.load(tmp_path / "wide.ovi")[1], joined)


def test_missing_values_and_sparse_rows() -> None:
    X, y = rings(120)
    X[np.random.default_rng(2).random(X.shape) < 0.1] = np.nan
    holed = ovi.auto(X, y, inputs=ovi.Inputs(missing=True))
    assert finite(holed.state)
    assert np.isfinite(holed.prediction).all()
    rows = sparse.csr_matrix(np.nan_to_num(X))
    assert all(own.space is None for own in ovi.auto(rows, y).state.pooled.learners), "sparse rows keep to their columns"


def test_its_certificate_holds_against_weights_of_the_columns() -> None:
    X, y = rings(200)
    trace = ovi.auto(X, y)
    Z = ovi.Inputs().update_many(ovi.Inputs().init(2), X)[1]
    live = ovi.certificate(trace)
    best = ovi.hindsight(Z, y, loss=ovi.Logistic(), box=None, radius=2.0)
    assert trace.state.loss - best.value * len(y) <= live.within(2.0)
    assert len(trace.mean) == 3, "the weights are those of the columns, the intercept first"


def test_one_of_many_has_fewer_learners() -> None:
    alone = recipe.core(recipe.Chosen(ovi.Logistic(), "default"), 5)
    among = recipe.core(recipe.Chosen(ovi.Logistic(), "default", one_of_many=True), 5)
    assert isinstance(alone, ovi.Recalibrate)
    assert isinstance(among, ovi.Pool)
    assert len(among.init(5).leaves()) < 0.7 * len(alone.init(5).leaves())


def test_wide_rows_have_narrow_priors_and_rates_those_of_their_width() -> None:
    def stds(loss: ovi.Loss, *, is_sparse: bool) -> list[float]:
        leaves = recipe.linear(recipe.Chosen(loss, "light", sparse=is_sparse), 401)
        assert not is_sparse or all(leaf.lazy == (leaf.discount < 1.0) for leaf in leaves), "a row costs what it stores"
        return sorted({round(leaf.belief_family.prior_std[-1], 6) for leaf in leaves})  # type: ignore[attr-defined]

    for loss in (ovi.Logistic(), ovi.Squared()):
        assert stds(loss, is_sparse=True) == [0.03, 0.1, 0.3, 1.0]
    assert stds(ovi.Squared(), is_sparse=False) == [0.03, 0.1, 0.4, 2.0]
    for is_sparse in (False, True):
        assert stds(ovi.Poisson(), is_sparse=is_sparse) == [round(std / np.sqrt(401), 6) for std in (0.5, 1.0, 2.0)]
