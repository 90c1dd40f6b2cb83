"""Exponential weights under any prior: particles and a uniform grid against exact posteriors, and theorem 1 after the data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import trapezoid

import onlinevi as ovi
from onlinevi import bounds
from onlinevi.ewa import Grid, ParticlePosterior, Particles, TemperedGaussian

BOX = ovi.MeanField(box=ovi.Box((-1.0, 1.0)))


def line(seed: int, count: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((count, dim))
    return X, X @ rng.uniform(-1.0, 1.0, dim) + 0.3 * rng.standard_normal(count)


def within(state: ParticlePosterior, mean: np.ndarray, std: np.ndarray, draws: float = 200.0) -> None:
    """As near as so many independent draws would be, five times over."""
    assert (np.abs(state.mean - mean) <= 5.0 * std / math.sqrt(draws)).all()
    assert state.std == pytest.approx(std, rel=5.0 / math.sqrt(2.0 * draws))


@pytest.mark.parametrize("dim", [1, 4])
def test_particles_are_near_the_posterior_of_a_gaussian_prior(dim: int) -> None:
    X, y = line(dim, 60, dim)
    exact = TemperedGaussian(rate=1.0, prior_std=2.0).run(X, y)
    cloud = Particles(ovi.Squared(), rate=1.0, prior=stats.norm(0.0, 2.0), particles=600)
    played = cloud.run(X, y)
    state = played.state
    within(state, exact.state.mean, exact.state.std)
    assert state.effective >= 0.5 * 600
    assert state.drawn_anew > 2
    assert 0.1 < state.accepted < 0.8
    assert played.prediction == pytest.approx(exact.prediction, abs=0.5)
    assert abs(state.average_loss - exact.state.average_loss) < 0.1 * exact.state.average_loss
    # log ∫ N(θ; 0, 4)·exp(−‖y − Xθ‖²) dθ, in closed form.
    precision = np.eye(dim) / 4.0 + 2.0 * X.T @ X
    best = np.linalg.solve(precision, 2.0 * X.T @ y)
    log_evidence = -y @ y + 0.5 * best @ precision @ best - dim * math.log(2.0)
    log_evidence -= 0.5 * np.linalg.slogdet(precision).logabsdet
    assert state.log_evidence == pytest.approx(log_evidence, abs=0.5)


def test_correlated_priors_are_those_of_a_vector() -> None:
    X, y = line(5, 30, 2)
    spread = np.array([[1.0, 0.8], [0.8, 1.0]])
    state = (
        Particles(ovi.Squared(), rate=0.2, prior=stats.multivariate_normal([0.5, 0.0], spread), particles=800).run(X, y).state
    )
    precision = np.linalg.inv(spread) + 0.4 * X.T @ X
    mean = np.linalg.solve(precision, np.linalg.solve(spread, [0.5, 0.0]) + 0.4 * X.T @ y)
    within(state, mean, np.sqrt(np.linalg.inv(precision).diagonal()))
    with pytest.raises(ValueError, match="the prior has 2 coordinates, the data 3"):
        Particles(ovi.Squared(), prior=stats.multivariate_normal([0.0, 0.0], spread)).init(3, 1)


@pytest.mark.parametrize("loss", [ovi.Absolute(), ovi.Squared(ridge=0.5)], ids=str)
def test_a_uniform_prior_on_the_grid_and_by_particles(loss: Any) -> None:
    """By quadrature of the definition in one dimension, on the grid and by particles."""
    X, y = line(7, 12, 1)
    grid = Grid(loss, rate=0.7, family=BOX, points=81, prior="uniform").run(X, y).state
    cloud = Particles(loss, rate=0.7, prior=stats.uniform(-1.0, 2.0), particles=800).run(X, y).state

    theta = np.linspace(-1.0, 1.0, 20_001)
    losses = loss(y, np.multiply.outer(theta, X[:, 0])).value.sum(axis=1) + 0.5 * loss.ridge * 12 * theta**2

    def moment(power: int) -> float:
        return float(trapezoid(0.5 * theta**power * np.exp(-0.7 * losses), theta))

    mean = moment(1) / moment(0)
    std = math.sqrt(moment(2) / moment(0) - mean**2)
    assert grid.mean[0] == pytest.approx(mean, abs=2e-3)
    assert grid.std[0] == pytest.approx(std, rel=0.01)
    assert grid.log_evidence == pytest.approx(math.log(moment(0)), abs=0.01)
    within(cloud, np.array([mean]), np.array([std]))
    assert cloud.log_evidence == pytest.approx(math.log(moment(0)), abs=0.3)
    assert (np.abs(cloud.points) <= 1.0).all(), "none leaves the box"


def test_a_stream_may_be_cut_anywhere_and_the_seed_decides() -> None:
    X, y = line(9, 20, 2)
    cloud = Particles(ovi.Absolute(), rate=3.0, prior=stats.t(3), particles=100)
    whole = cloud.run(X, y).state
    state = cloud.init(2, 20)
    for row, label in zip(X[:6], y[:6], strict=True):
        state, _ = cloud.update(state, row, label)
    state, _ = cloud.update_many(state, X[6:], y[6:])
    assert np.array_equal(state.points, whole.points)
    assert np.array_equal(state.log_weights, whole.log_weights)
    assert state.log_evidence == whole.log_evidence
    assert state.totals == pytest.approx(np.abs(y - whole.points @ X.T).sum(axis=1))
    other = Particles(ovi.Absolute(), rate=3.0, prior=stats.t(3), particles=100, seed=1).run(X, y).state
    assert not np.array_equal(other.points, whole.points)
    assert "effective=" in repr(whole)


def test_one_event_that_leaves_too_few_is_taken_in_parts() -> None:
    cloud = Particles(ovi.Squared(), rate=1.0, prior=stats.norm(), particles=400)
    state = cloud.run([[100.0]], [30.0]).state
    assert state.drawn_anew > 3
    assert state.effective > 190.0
    exact = TemperedGaussian(rate=1.0).run([[100.0]], [30.0]).state
    within(state, exact.mean, exact.std, draws=100.0)


@pytest.mark.parametrize("kind", ["random", "alternating", "against the decision"])
def test_theorem_1_after_the_data_is_not_exceeded(kind: str) -> None:
    """Uniform prior on a box, absolute losses of labels in [−1, 1]: B = 2. The bound is lemma 1's infimum and η·B²·T/8."""
    rng, largest = np.random.default_rng(3), 0.0
    for _ in range(6):
        rate, count = float(rng.choice([0.05, 0.5, 1.0, 4.0])), int(rng.integers(2, 30))
        grid = Grid(ovi.Absolute(), rate=rate, family=BOX, points=31, prior="uniform")
        state, labels, played = grid.init(1, count), rng.choice([-1.0, 1.0], count), 0.0
        for t in range(count):
            label = labels[t]
            if kind == "alternating":
                label = 1.0 - 2.0 * (t % 2)
            elif kind == "against the decision":
                label = -1.0 if state.mean[0] >= 0.0 else 1.0
            state, step = grid.update(state, [1.0], label)
            played += step.loss
        bound = bounds.ewa_after(rate=rate, count=count, loss_bound=2.0, log_evidence=state.log_evidence)
        largest = max(largest, played / bound.value)
        assert played <= bound.value
        # Against every point of the grid, and the posterior itself, it is what theorem 1 has at its best.
        weights = state.weights
        kl = float(weights @ (np.log(np.maximum(weights, 1e-300)) + math.log(31)))
        against = weights @ state.totals + bounds.ewa(rate=rate, count=count, loss_bound=2.0, kl=max(kl, 0.0)).value
        assert bound.value == pytest.approx(against, rel=1e-9), "the posterior attains the infimum"
        points = state.totals + bounds.ewa(rate=rate, count=count, loss_bound=2.0, kl=math.log(31)).value
        assert bound.value <= points.min() + 1e-9
    assert largest > 0.5, "it is not idle"


def test_what_has_no_posterior_is_refused() -> None:
    X, y = line(1, 3, 1)
    for call, message in [
        (lambda: Particles(ovi.Absolute(), rate=ovi.PerSqrt(1.0)), "particles keep one rate"),
        (lambda: Particles(ovi.Absolute(), prior=3.0), "needs rvs and logpdf"),
        (lambda: Particles(ovi.Absolute(), particles=1), "needs 2 or more"),
        (lambda: Particles(ovi.Squared(robust=5.0)), "set robust=None"),
        (lambda: Particles(ovi.Absolute()).init(0, 1), "at least one feature"),
        (lambda: Particles(ovi.Absolute()).run(X[:0], y[:0]), "at least one"),
        (lambda: Particles(ovi.Hinge()).run(X, [1.0, 2.0, 1.0]), "row 1"),
        (lambda: Particles(ovi.Absolute()).run([[math.nan]], [1.0]), "needs finite numbers"),
        (lambda: Particles(ovi.Squared()).run([[1e200]], [1.0]), "overflows"),
        (lambda: Grid(ovi.Absolute(), prior="flat"), "use Particles"),  # type: ignore[arg-type]
        (lambda: bounds.ewa_after(rate=1.0, count=1, loss_bound=1.0, log_evidence=1.0), "at most 0"),
        (
            lambda: ovi.ewa.divergences(
                Grid(ovi.Absolute(), 1.0, BOX, 11, "uniform"), [ovi.Linear(ovi.Absolute(), ovi.SVA())], X, y, [1]
            ),
            "infinite",
        ),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            call()
