"""Exponential weights: the regret bound against adversaries, learners as experts, and the laws of a state."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from helpers.catalogue import stream
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

import onlinevi as ovi
from onlinevi.engine.types import Belief
from onlinevi.ewa import Experts, Grid, TemperedGaussian
from onlinevi.learners.linear import BadRow


def on_unit_box(prior_std: float = 1.0) -> ovi.MeanField:
    return ovi.MeanField(prior_std=prior_std, box=ovi.Box((-1.0, 1.0), None))


# --- the bound of theorem 1: rate·B²·T/8 + KL(p‖prior)/rate

Adversary = Callable[[np.ndarray, int, np.random.Generator], np.ndarray]


def alternating(weights: np.ndarray, t: int, rng: np.random.Generator) -> np.ndarray:
    return (np.arange(len(weights)) + t) % 2 * 1.0


def greedy(weights: np.ndarray, t: int, rng: np.random.Generator) -> np.ndarray:
    """1 for the heavier half of the experts."""
    return (weights >= np.median(weights)) * 1.0


def against_the_leader(weights: np.ndarray, t: int, rng: np.random.Generator) -> np.ndarray:
    return np.eye(len(weights))[weights.argmax()]


def random(weights: np.ndarray, t: int, rng: np.random.Generator) -> np.ndarray:
    return rng.random(len(weights)) ** 3


def kl(law: np.ndarray, prior: np.ndarray) -> float:
    return float(law[law > 0] @ np.log(law[law > 0] / prior[law > 0]))


@pytest.mark.parametrize("rate", [0.01, 0.2, 1.0, 5.0])
@pytest.mark.parametrize("adversary", [alternating, greedy, against_the_leader, random])
def test_the_regret_of_experts_is_below_its_bound(adversary: Adversary, rate: float) -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        bound, count, horizon = rng.choice([0.5, 1.0, 7.0]), int(rng.integers(2, 9)), int(rng.integers(1, 150))
        prior = rng.dirichlet(np.ones(count))
        hedge = Experts(rate, prior)
        state, losses = hedge.init(count), np.empty((horizon, count))
        for t in range(horizon):
            losses[t] = bound * adversary(state.weights, t, rng)
            before, (state, step) = state.weights, hedge.update(state, losses[t])
            assert step.loss == pytest.approx(before @ losses[t])
        for law in (*np.eye(count), rng.dirichlet(np.ones(count)), state.weights):
            regret = state.loss - law @ losses.sum(axis=0)
            assert regret <= rate * bound**2 * horizon / 8 + kl(law, prior) / rate + 1e-9
        # Of all laws, the last posterior has the least bound (Gibbs).
        gibbs = -logsumexp(np.log(prior) - rate * losses.sum(axis=0)) / rate
        assert state.loss <= rate * bound**2 * horizon / 8 + gibbs + 1e-9


# --- laws


@pytest.mark.parametrize(
    "model",
    [
        Grid(ovi.Hinge(), ovi.PerSqrt(1.0), points=9),
        TemperedGaussian(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_any_split_gives_the_same_bits(model: Grid | TemperedGaussian) -> None:
    X, y = stream(ovi.Hinge(), count=67, dim=2)
    whole, start = model.run(X, y), model.init(2, 67)
    for size in (1, 2, 9, 50):
        state, parts = start, []
        for cut in range(0, 67, size):
            state, played = model.update_many(state, X[cut : cut + size], y[cut : cut + size])
            parts.append(played)
        for field in ("prediction", "spread", "loss", "average_loss"):
            assert np.concatenate([getattr(part, field) for part in parts]).tolist() == getattr(whole, field).tolist()
        assert state.loss == whole.state.loss
        assert state.mean.tolist() == whole.state.mean.tolist()
    again, step = model.update(start, X[0], y[0])
    assert tuple(step) == (whole.prediction[0], whole.spread[0], whole.loss[0])
    assert (start.count, again.count) == (0, 1)


def test_any_split_of_experts_gives_the_same_bits() -> None:
    losses = np.random.default_rng(0).random((67, 13))
    hedge = Experts(ovi.PerSqrt(2.0))
    whole = hedge.run(losses)
    for size in (1, 2, 9, 50):
        state = hedge.init(13)
        for cut in range(0, 67, size):
            state, part = hedge.update_many(state, losses[cut : cut + size])
            assert part.weights.tolist() == whole.weights[cut : cut + size].tolist()
            assert part.average_loss.tolist() == whole.average_loss[cut : cut + size].tolist()
        assert state.weights.tolist() == whole.state.weights.tolist()
        assert state.loss == whole.state.loss


def test_a_state_is_a_value() -> None:
    X, y = stream(ovi.Squared(), count=5, dim=2)
    for state in (Grid(ovi.Squared(), points=9).run(X, y).state, TemperedGaussian().run(X, y).state):
        for array in (state.mean, state.covariance):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        Experts().init(3, 1).totals[0] = 1.0


@settings(deadline=None, max_examples=80, derandomize=True)
@given(st.data())
def test_weights_are_a_probability_vector_whatever_the_losses(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 6))
    size = data.draw(st.sampled_from([1e-300, 1.0, 1e8, 1e300]))
    rate = data.draw(st.sampled_from([1e-300, 0.1, 1e8, 1e300]))
    row = st.lists(st.floats(-1.0, 1.0), min_size=count, max_size=count)
    losses = size * np.array(data.draw(st.lists(row, min_size=1, max_size=5)))
    prior = np.array(data.draw(st.lists(st.sampled_from([0.0, 1e-300, 0.5, 1.0]), min_size=count, max_size=count)))
    hedge = Experts(rate, prior if prior.sum() > 0.0 else None)
    weighing = hedge.run(losses)
    for weights in (*weighing.weights, weighing.state.weights):
        assert (weights >= 0.0).all()
        assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    if prior.sum() > 0.0:
        assert (weighing.weights[:, prior == 0.0] == 0.0).all()
    order = np.array(data.draw(st.permutations(range(count))))
    permuted = Experts(rate, None if hedge.prior is None else np.array(hedge.prior)[order]).run(losses[:, order])
    assert permuted.weights == pytest.approx(weighing.weights[:, order], abs=1e-12)
    assert permuted.state.weights == pytest.approx(weighing.state.weights[order], abs=1e-12)


@settings(deadline=None, max_examples=50, derandomize=True)
@given(st.lists(st.floats(-1e8, 1e8), min_size=1, max_size=20), st.floats(1e-6, 1e6))
def test_losses_that_are_all_equal_leave_the_prior(losses: list[float], rate: float) -> None:
    prior = np.array([0.1, 0.2, 0.7])
    weighing = Experts(rate, prior).run(np.repeat(np.array(losses)[:, None], 3, axis=1))
    assert weighing.weights == pytest.approx(np.tile(prior, (len(losses), 1)), rel=1e-12)
    assert weighing.loss == pytest.approx(losses, rel=1e-12)


def test_labels_of_any_size_leave_a_probability_on_the_grid() -> None:
    for label in (1e-8, 1.0, 1e8):
        posterior = Grid(ovi.Squared(), 3.0, points=11).run([[1.0, -1.0], [2.0, 1.0]], [label, -label]).state
        assert posterior.weights.sum() == pytest.approx(1.0, abs=1e-12)
        assert np.isfinite(posterior.mean).all()


def test_a_loss_that_is_infinite_at_some_points_leaves_the_others() -> None:
    grid = Grid(ovi.Poisson(), 0.1)
    played = grid.run([[100.0], [1.0]], [0.0, 1.0])  # e^(100·20) is no float
    assert np.isinf(played.state.totals).any()
    assert np.isfinite(played.loss).all()
    assert played.state.mean[0] < 0.0
    assert played.state.kl_from(Belief([-5.0], [0.2])) < np.inf
    assert played.state.kl_from(Belief([5.0], [1.0])) == np.inf
    with pytest.raises(BadRow, match="row 0: the loss overflows"):
        Grid(ovi.Poisson(), 0.1, ovi.MeanField(prior_mean=8.0)).run([[100.0]], [0.0])
