"""Beliefs, totals and rows in single precision: near enough to doubles, and as strict."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.any_loss import standing_for
from helpers.catalogue import RULES, name
from scipy import sparse

import onlinevi as ovi
from onlinevi.beliefs.mean_field import Natural
from onlinevi.engine import SUM
from onlinevi.engine.kernel import _Filler
from onlinevi.engine.llvm.translator import Translator
from onlinevi.engine.llvm.values import BOOL, F32, Items, Number, constant, form_of
from onlinevi.engine.types import Belief, Gradient, Prior, Rates, Totals
from onlinevi.ewa import Aggregate
from onlinevi.guarantees import certificate
from onlinevi.learners.state import State

CASES = [
    (ovi.Hinge(), ovi.OGA(0.1)),
    (ovi.Hinge(), ovi.SVA(0.1)),
    (ovi.Hinge(), ovi.SVB()),
    (ovi.Hinge(), ovi.NGVI()),
    (ovi.Logistic(), ovi.Implicit()),
]
SINGLE = ovi.Linear(ovi.Hinge(), ovi.SVB(), dtype="float32")


def stream(count: int, dim: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of length about 1, in float32, and labels that they tell mostly."""
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((count, dim)) / np.sqrt(dim)).astype(np.float32)
    return X, np.where(X @ rng.standard_normal(dim) + 0.3 * rng.standard_normal(count) > 0.0, 1.0, -1.0)


@pytest.mark.parametrize(("loss", "rule"), CASES, ids=name)
def test_it_agrees_with_doubles(loss: ovi.Loss, rule: ovi.Rule) -> None:
    for X, y in (stream(60, 300), stream(400, 7)):
        single = ovi.learn(X, y, loss=loss, rule=rule, dtype="float32")
        double = ovi.learn(X.astype(float), y, loss=loss, rule=rule)
        assert abs(single.average_loss[-1] - double.average_loss[-1]) < 1e-5
        assert (single.state.array.size - len(SUM)) * 2 - (double.state.array.size - len(SUM)) in (0, 1)
        for part in ("prediction", "spread", "mean", "std", "average_mean"):
            np.testing.assert_allclose(getattr(single, part), getattr(double, part), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(single.state.gradient, double.state.gradient, rtol=1e-4, atol=1e-3)
        assert single.state.gradient_square == pytest.approx(double.state.gradient_square, rel=1e-4)
        assert single.mean.tolist() != double.mean.tolist(), "it must be another arithmetic"


@pytest.mark.parametrize(("loss", "rule"), CASES, ids=name)
def test_real_data_cost_the_same(loss: ovi.Loss, rule: ovi.Rule) -> None:
    data = ovi.datasets.load("breast")
    X = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0)
    losses = [ovi.learn(X, data.y, loss=loss, rule=rule, dtype=dtype).average_loss[-1] for dtype in ("float64", "float32")]
    assert abs(losses[0] - losses[1]) < 1e-4


@pytest.mark.parametrize("rule", [*RULES, ovi.Implicit()], ids=name)
def test_a_rule_meets_no_double(rule: ovi.Rule) -> None:
    """One double, a constant or 2·x with a whole number, would halve what a vector register holds."""
    x = Number(F32, "")
    arguments = Belief(x, x), Gradient(x, x), Totals(x, x), Rates(x, x, constant(BOOL, True)), Prior(x, x)
    step: Any = _Filler("compiled", {})._part(type(rule).new_belief, single=True)[0]
    forms = tuple(form_of(Items(each, type(each))) for each in arguments)
    text, _, form = Translator().written(step, "step", forms)
    assert form == form_of(Items((x, x), Belief))
    assert "double" not in text


def test_any_split_and_any_type_of_rows_give_the_same_bits() -> None:
    X, y = stream(40, 33)
    state, trace = SINGLE.update_many(SINGLE.init(33), X, y)
    for rows in (X.astype(float), np.asfortranarray(X), X.tolist()):
        assert SINGLE.update_many(SINGLE.init(33), rows, y)[0] == state
    after, predictions = SINGLE.init(33), []
    for x, label in zip(X, y, strict=True):
        after, step = SINGLE.update(after, x, label)
        predictions.append(step.prediction)
    assert after == state
    assert predictions == trace.prediction.tolist()
    half, _ = SINGLE.update_many(SINGLE.init(33), X[:17], y[:17])
    assert half != state
    assert SINGLE.update_many(half, X[17:], y[17:])[0] == state


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1e39, r"row 5: feature 2 is inf: .*in float32 all beyond 3.4e38 is infinite"),
        (1e20, "row 5: the step would overflow .*largest feature 1e.20.*or use float64"),
        (np.nan, "row 5: feature 2 is nan"),
    ],
)
def test_a_row_beyond_float32_is_refused_and_changes_nothing(value: float, message: str) -> None:
    X, y = stream(10, 5)
    X = X.astype(float)
    start = SINGLE.init(5)
    before, _ = SINGLE.update_many(start, X[:5], y[:5])
    X[5, 2] = value
    with pytest.raises(ovi.BadRow, match=message) as refused:
        SINGLE.update_many(start, X, y)
    assert refused.value.trace.state == before
    with pytest.raises(ovi.BadRow):
        SINGLE.update(before, X[5], y[5])
    with pytest.raises(ovi.BadRow, match="row 5"):
        SINGLE.update_many(start, sparse.csr_matrix(X), y)


def test_a_step_beyond_float32_is_refused() -> None:
    """The row is fine, its weight is fine, and a double would hold their product."""
    X, y = stream(8, 5)
    weights = np.ones(8)
    weights[6] = 1e60
    with pytest.raises(ovi.BadRow, match="row 6: the step would overflow"):
        SINGLE.update_many(SINGLE.init(5), X, y, weights=weights)


def test_sparse_rows() -> None:
    X, y = stream(300, 40)
    X[np.random.default_rng(1).random(X.shape) < 0.8] = 0.0
    dense, _ = SINGLE.update_many(SINGLE.init(40), X, y)
    thin, _ = SINGLE.update_many(SINGLE.init(40), sparse.csr_matrix(X), y)
    np.testing.assert_allclose(thin.mean, dense.mean, atol=1e-4)
    np.testing.assert_allclose(thin.std, dense.std, rtol=1e-4)
    assert SINGLE.update_many(SINGLE.init(40), sparse.csr_matrix(X.astype(float)), y)[0] == thin


def test_missing_values_forgetting_and_priors_of_their_own() -> None:
    """Against SVB in numpy, in doubles: predict, pay, step, and mix with the prior in natural parameters."""
    X, y = stream(200, 6)
    X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    family, loss, discount = ovi.MeanField(prior_std=np.linspace(0.1, 2.0, 6).tolist()), ovi.Hinge(), 0.99
    trace = ovi.learn(X, y, loss=loss, rule=ovi.SVB(), family=family, discount=discount, missing=True, dtype="float32")

    prior = belief = family.init(6)
    law = []
    for t, (row, label) in enumerate(zip(X.astype(float), y, strict=True), start=1):
        mean, variance = family.predict_missing(belief, row)
        law.append((mean, np.sqrt(variance)))
        seen, x = loss(label, *law[-1]), np.nan_to_num(row)
        gradient = Gradient(seen.slope * x, seen.curvature * x * x)
        stepped = ovi.SVB.new_belief(belief, gradient, Totals(0.0, 0.0), Rates(1.0 / np.sqrt(t), 0.0, True), Prior(*prior))
        pairs = zip(family.natural(family.project(stepped)), family.natural(prior), strict=True)
        belief = family.project(
            family.from_natural(Natural(*(discount * now + (1.0 - discount) * first for now, first in pairs)))
        )
    np.testing.assert_allclose(np.column_stack([trace.prediction, trace.spread]), law, atol=1e-5)
    np.testing.assert_allclose(trace.mean, belief.mean, atol=1e-5)
    np.testing.assert_allclose(trace.std, belief.std, rtol=1e-5)


def test_a_ridge() -> None:
    X, y = stream(300, 6)
    single, double = (
        ovi.learn(X.astype(float), y, loss=ovi.Hinge(ridge=0.1), rule=ovi.SVB(), dtype=dtype).state
        for dtype in ("float32", "float64")
    )
    np.testing.assert_allclose(single.mean, double.mean, atol=1e-5)
    for sums in ("loss", "expected_loss", "square"):
        assert getattr(single, sums) == pytest.approx(getattr(double, sums), rel=1e-5)


def test_a_checkpoint_goes_on_with_the_same_bits(tmp_path: Path) -> None:
    X, y = stream(60, 5)
    file = tmp_path / "model.ovi"
    for average in (True, False):  # without it, an odd number of floats
        learner = ovi.Linear(ovi.Hinge(), ovi.SVB(), average=average, dtype="float32")
        half, _ = learner.update_many(learner.init(5), X[:30], y[:30])
        ovi.save(file, learner, half)
        again, state, *_ = ovi.load(file)
        assert (again, state) == (learner, half)
        assert again.update_many(state, X[30:], y[30:])[0] == learner.update_many(half, X[30:], y[30:])[0]
    with np.load(file) as content:
        assert content["belief"].dtype == np.float64
        assert content["belief"][:5].tolist() == half.mean.tolist()


def test_a_state_is_a_value() -> None:
    X, y = stream(20, 5)
    state, _ = SINGLE.update_many(SINGLE.init(5), X, y)
    assert pickle.loads(pickle.dumps(state)) == state
    assert state != ovi.learn(X.astype(float), y, loss=ovi.Hinge(), rule=ovi.SVB()).state
    for view in (state.array, state.mean, state.std, state.gradient):
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 1.0
    assert (state.mean == state.mean.astype(np.float32)).all()
    wide = SINGLE.widen(state, 8)
    assert wide.mean.tolist() == [*state.mean.tolist(), 0.0, 0.0, 0.0]
    assert wide.average_mean.tolist() == [*state.average_mean.tolist(), 0.0, 0.0, 0.0]
    want = SINGLE.update_many(SINGLE.init(8), np.pad(X, ((0, 0), (0, 3))), y)[0]
    np.testing.assert_allclose(wide.vector("belief"), want.vector("belief"), rtol=1e-5)


def test_counts_and_sums_go_on_where_floats_would_stand_still() -> None:
    X, y = stream(10, 5)
    array = np.array(SINGLE.init(5).array)
    array[[SUM.count, SUM.weight, SUM.loss]] = 2.0**24, 2.0**24, 2.0**40
    state, trace = SINGLE.update_many(State(array, SINGLE.plan(5)), X, y)
    assert state.count == state.weight == 2**24 + 10
    assert state.loss - 2.0**40 == pytest.approx(trace.loss.sum(), rel=1e-4)


@pytest.mark.compiled
@pytest.mark.parametrize(("loss", "rule"), CASES[3:4], ids=name)
def test_a_long_stream(loss: ovi.Loss, rule: ovi.Rule) -> None:
    """Rounding must not add up to one side: not in the average decision, and no belief may grow surer than in doubles."""
    X, y = stream(300_000, 4)
    single, double = (
        ovi.learn(X.astype(float), y, loss=standing_for(loss), rule=rule, record="none", dtype=dtype).state
        for dtype in ("float32", "float64")
    )
    assert single.average_loss == pytest.approx(double.average_loss, abs=2e-5)
    np.testing.assert_allclose(single.mean, double.mean, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(single.average_mean, double.average_mean, rtol=1e-3, atol=1e-3)
    ratio = single.std / double.std
    assert ratio.min() > 0.999
    assert ratio.max() < 1.03


@pytest.mark.parametrize("rule", [ovi.SVA(0.1), ovi.NGVI()], ids=name)
def test_a_std_stays_above_zero_where_that_is_promised(rule: ovi.Rule) -> None:
    X, y = stream(2000, 5)
    for scale in (1e-8, 1.0, 1e4, 1e8):
        trace = ovi.learn(scale * X, y, loss=ovi.Hinge(), rule=rule, dtype="float32")
        assert (trace.std > 0.0).all()


@pytest.mark.parametrize(("loss", "rule"), CASES, ids=name)
def test_certificates_hold_up_to_what_they_say_of_rounding(loss: ovi.Loss, rule: ovi.Rule) -> None:
    X, y = stream(2000, 7)
    live = certificate(ovi.learn(X, y, loss=loss, rule=rule, dtype="float32"))
    points = np.random.default_rng(3).uniform(-20.0, 20.0, (50, 7))
    totals = np.array([loss(y, X.astype(float) @ u).value.sum() for u in points])
    double = certificate(ovi.learn(X.astype(float), y, loss=loss, rule=rule))
    assert (live.loss - totals <= live.against(points) + live.rounding()).all()
    sums, right = (one.tangents.most(one.box) for one in (live, double))
    assert abs(sums - right) <= live.rounding() <= 0.05 * abs(live.loss + sums)
    assert live.rounding() > 1e4 * double.rounding()


def test_what_needs_doubles_says_so() -> None:
    for family in (ovi.FullCovariance(), ovi.LowRank()):
        with pytest.raises(ValueError, match=rf"covariances of {type(family).__name__} need double precision"):
            ovi.Linear(ovi.Logistic(), ovi.Implicit(), family, dtype="float32")
    with pytest.raises(ValueError, match="a pool needs double precision"):
        Aggregate([SINGLE])
    with pytest.raises(ValueError, match='dtype=\'float16\': needs "float64" or "float32"'):
        ovi.Linear(ovi.Hinge(), ovi.SVB(), dtype="float16")
    for std in (1e39, 1e-46):
        with pytest.raises(ValueError, match="float32 cannot hold"):
            ovi.Linear(ovi.Hinge(), ovi.SVB(), ovi.MeanField(prior_std=std), dtype="float32").init(2)
    with pytest.raises(ValueError, match="dtype differs"):
        SINGLE.update(ovi.Linear(ovi.Hinge(), ovi.SVB()).init(2), [1.0, 2.0], 1.0)
    assert ovi.Linear(ovi.Hinge(), ovi.SVB(), dtype=np.float32) == SINGLE  # type: ignore[arg-type]
