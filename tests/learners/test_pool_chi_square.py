"""Weights by χ²: the argmin of their problem, one idea in two loops, and a bound without a range of losses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from helpers.pools import experts, hedge
from scipy.optimize import minimize

import onlinevi as ovi
from onlinevi.ewa import AdaHedge, Experts, Pool

RATES: tuple[Any, ...] = (ovi.Constant(0.3), ovi.PerSqrt(0.7), ovi.PerHorizon(2.0))


def tables() -> dict[str, np.ndarray]:
    """Losses at random, heavy ones, growing ones, and those made to mislead."""
    rng, count = np.random.default_rng(0), 60
    return {
        "random": rng.random((count, 5)),
        "in turn": (np.arange(count)[:, None] % 2 == np.arange(2)).astype(float),
        "heavy": rng.pareto(0.7, (count, 3)),
        "growing": rng.random((count, 3)) * 1.2 ** np.arange(count)[:, None],
        "a sudden end": np.vstack([np.tile([0.0, 1.0], (count - 1, 1)), [[1000.0, 0.0]]]),
        "below 0": rng.standard_cauchy((count, 4)),
    }


@pytest.mark.parametrize("rate", [1e-3, 0.2, 1.0, 30.0])
def test_the_weights_are_the_argmin_of_their_problem(rate: float) -> None:
    """rate·⟨p, totals⟩ + Σ p²/prior − 1 over the simplex, by a generic optimiser."""
    rng = np.random.default_rng(1)
    for _ in range(4):
        prior, totals = rng.dirichlet(np.ones(4)), 3.0 * rng.standard_normal(4)
        state, _ = (hedged := Experts(rate, prior.tolist(), "chi-square")).update(hedged.init(4), totals)

        def problem(p: np.ndarray, prior: np.ndarray = prior, totals: np.ndarray = totals) -> float:
            return float(rate * p @ totals + np.sum(p**2 / prior))

        found = minimize(
            problem,
            prior,
            method="SLSQP",
            bounds=[(0.0, 1.0)] * 4,
            constraints={"type": "eq", "fun": lambda p: p.sum() - 1.0},
            options={"ftol": 1e-14, "maxiter": 500},
        )
        assert problem(state.weights) <= problem(found.x / found.x.sum()) + 1e-9 * (1.0 + abs(found.fun))
        assert state.weights == pytest.approx(found.x, abs=2e-4)
        assert state.weights.sum() == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize("name", tables())
def test_no_table_breaks_the_bound(name: str, rate: Any) -> None:
    """Σ weighted losses − Σ losses of i ≤ (1/prior_i − 1)/rate_t + Σ rate/4·Var, for every i, at any time."""
    losses = tables()[name]
    count, number = losses.shape
    prior = np.arange(1.0, number + 1.0)
    prior /= prior.sum()
    model = Experts(rate, prior.tolist(), "chi-square")
    played = model.run(losses)
    state, scale = model.init(number, count), np.abs(losses).cumsum()[-1]
    for t in range(count):
        state, _ = model.update(state, losses[t])
        for i in range(number):
            assert state.loss - state.totals[i] <= state.regret_bound(i) + 1e-12 * scale
    assert state.loss == played.state.loss
    assert state.price == pytest.approx(played.state.price, rel=1e-12)
    means = losses @ prior
    eta = np.array(
        [
            rate.c / {"Constant": 1.0, "PerSqrt": math.sqrt(t), "PerHorizon": math.sqrt(count)}[type(rate).__name__]
            for t in range(1, count + 1)
        ]
    )
    by_hand = (0.25 * eta * (np.square(losses - means[:, None]) @ prior)).sum() + (1.0 / prior - 1.0) / eta[-1]
    assert [state.regret_bound(i) for i in range(number)] == pytest.approx(by_hand, rel=1e-9)


def test_an_adversary_comes_near_the_bound_and_not_beyond() -> None:
    """Two experts, losses ±1 chosen by climbing; half of the price of the variances would be too little."""
    rng, largest, halved = np.random.default_rng(2), 0.0, 0.0
    for rate in (0.1, 0.5, 1.0, 2.0):
        model, count = Experts(rate, None, "chi-square"), 12

        def ratio(gaps: np.ndarray, model: Experts = model) -> tuple[float, float]:
            state = model.run(np.column_stack([gaps, -gaps])).state
            regrets = state.loss - state.totals
            bounds = np.array([state.regret_bound(i) for i in range(2)])
            return float((regrets / bounds).max()), float((regrets / (bounds - 0.5 * state.price)).max())

        gaps = rng.choice([-1.0, 1.0], count) * rng.random(count)
        best = ratio(gaps)
        for _ in range(160):
            tried = gaps + 0.3 * rng.standard_normal(count) * (rng.random(count) < 0.3)
            if (now := ratio(tried)) > best:
                gaps, best = tried, now
        largest, halved = max(largest, best[0]), max(halved, best[1])
    assert 0.8 < largest <= 1.0 + 1e-12
    assert halved > 1.0


@pytest.mark.parametrize("rate", RATES, ids=str)
def test_a_pool_weighs_as_experts_do(rate: Any) -> None:
    losses = tables()["heavy"]
    prior = [0.2, 0.3, 0.5]
    played, table = (
        hedge(losses, rate=rate, prior=prior, weighing="chi-square"),
        Experts(rate, prior, "chi-square").run(losses),
    )
    assert played.weights == pytest.approx(table.weights, abs=1e-12)
    assert played.state.weights == pytest.approx(table.state.weights, abs=1e-12)
    assert played.state.regret <= played.state.regret_bound
    best = int(losses.sum(axis=0).argmin())
    assert played.state.regret_bound == pytest.approx(table.state.regret_bound(best), rel=1e-9)


def test_learners_far_behind_have_no_weight_and_come_back() -> None:
    state = Experts(1.0, None, "chi-square").run([[0.0, 50.0], [0.0, 50.0]]).state
    assert state.weights.tolist() == [1.0, 0.0]
    state, _ = Experts(1.0, None, "chi-square").update(state, [100.0, 0.0])
    assert state.weights == pytest.approx([0.5, 0.5])
    huge = Experts(1e300, None, "chi-square").run([[0.0, 1e300, 1.0]]).state
    assert huge.weights.tolist() == [1.0, 0.0, 0.0]


def test_a_pool_by_chi_square_is_kept_in_files_and_cut_anywhere(tmp_path: Any) -> None:
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((40, 2)), rng.standard_t(2, 40)
    learners = [ovi.Linear(ovi.Squared(), ovi.Implicit(rate), ovi.MeanField(box=None)) for rate in (0.01, 1.0)]
    pool = Pool(learners, rate=ovi.PerSqrt(0.05), weighing="chi-square")
    whole = pool.update_many(pool.init(2), X, y)[0]
    first = pool.update_many(pool.init(2), X[:15], y[:15])[0]
    ovi.save(tmp_path / "pool.ovi", pool, first)
    loaded, again = ovi.load(tmp_path / "pool.ovi")[:2]
    assert loaded == pool
    state = loaded.update_many(again, X[15:], y[15:])[0]
    assert np.array_equal(state.array, whole.array)
    assert whole.regret <= whole.regret_bound


def test_what_does_not_fit_is_refused() -> None:
    pair = experts(ovi.Absolute(), 2)
    for call, message in [
        (lambda: Experts(1.0, None, "square"), "needs one of 'exponential', 'chi-square'"),  # type: ignore[arg-type]
        (lambda: Pool(pair, AdaHedge(), weighing="chi-square"), "AdaHedge weighs exponentially"),
        (lambda: Pool(pair, 1.0, share=0.1, weighing="chi-square"), "deals out exponential weights"),
        (lambda: Pool(pair, weighing="kl"), "needs one of"),  # type: ignore[arg-type]
        (lambda: Experts(1.0).init(2).regret_bound(0), "see bounds.ewa"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
