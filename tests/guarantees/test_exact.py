"""Exponential weights: the three exact forms agree with each other and with their definitions."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from helpers.catalogue import LOSSES, name, stream
from scipy.integrate import quad

import onlinevi as ovi
from onlinevi.beliefs import named_rows
from onlinevi.engine.types import Belief
from onlinevi.ewa import Aggregate, Experts, Grid, TemperedGaussian, divergences
from onlinevi.learners.linear import BadRow

RATES = [ovi.Constant(0.3), ovi.PerHorizon(1.0), ovi.PerSqrt(0.5), ovi.PerStep(1.0)]


def on_box(size: float, **prior: object) -> ovi.MeanField:
    return ovi.MeanField(box=ovi.Box((-size, size), None), **prior)


def definition(grid: Grid, X: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    """The paper's algorithm in a few lines, all in log-space over a list of points."""
    dim = X.shape[1]
    box = named_rows(np.stack([np.broadcast_to(row, dim) for row in grid.family.prior_and_box(dim)]))
    axes = [
        low + (high - low) * (np.arange(grid.points) + 0.5) / grid.points
        for low, high in zip(box.mean_low, box.mean_high, strict=True)
    ]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, dim)
    log_prior, totals = -0.5 * (((points - box.prior_mean) / box.prior_std) ** 2).sum(axis=1), np.zeros(len(points))
    scale, power = grid.rate.schedule(len(y)) if isinstance(grid.rate, ovi.Rate) else (grid.rate, 0.0)
    played = []

    def law(t: int) -> np.ndarray:
        log_weights = log_prior - scale / t**power * totals
        weights = np.exp(log_weights - log_weights.max())
        return weights / weights.sum()

    for t, (row, label) in enumerate(zip(X, y, strict=True), start=1):
        weights, predictions = law(t), points @ row
        mean = weights @ points
        cost = grid.loss(label, row @ mean).value + 0.5 * grid.loss.ridge * mean @ mean
        played.append((row @ mean, np.sqrt(weights @ (predictions - row @ mean) ** 2), cost))
        totals = totals + grid.loss(label, predictions).value + 0.5 * grid.loss.ridge * (points**2).sum(axis=1)
    prediction, spread, loss = np.transpose(played)
    return {"prediction": prediction, "spread": spread, "loss": loss, "weights": law(len(y) + 1), "points": points}


# --- the forms agree


@pytest.mark.parametrize("rate", RATES, ids=name)
@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_the_grid_follows_the_definition(loss: ovi.Loss, rate: ovi.Rate) -> None:
    for dim, ridge in itertools.product((1, 2), (0.0, 0.2)):
        X, y = stream(loss, count=12, dim=dim)
        family = on_box(4.0, prior_mean=[0.5, -0.3][:dim], prior_std=[1.0, 2.0][:dim])
        grid = Grid(type(loss)(*loss.parameters, ridge=ridge), rate, family, points=8)
        played, exact = grid.run(X, y), definition(grid, X, y)
        assert played.prediction == pytest.approx(exact["prediction"], rel=1e-12, abs=1e-12)
        assert played.spread == pytest.approx(exact["spread"], rel=1e-10)
        assert played.loss == pytest.approx(exact["loss"], rel=1e-11, abs=1e-12)
        assert played.average_loss == pytest.approx(np.cumsum(exact["loss"]) / np.arange(1, 13), rel=1e-11)
        assert played.state.weights.ravel() == pytest.approx(exact["weights"], rel=1e-11, abs=1e-15)
        points, weights = exact["points"], exact["weights"]
        assert played.state.mean == pytest.approx(weights @ points, abs=1e-12)
        assert played.state.covariance == pytest.approx(
            np.cov(points.T, aweights=weights, ddof=0).reshape(dim, dim), abs=1e-12
        )
        predicted = grid.predict(grid.update_many(grid.init(dim, 12), X[:-1], y[:-1])[0], X[-1])
        assert predicted == pytest.approx((played.prediction[-1], played.spread[-1]), rel=1e-10)


@pytest.mark.parametrize("rate", RATES, ids=name)
def test_experts_at_the_points_of_a_grid_are_the_grid(rate: ovi.Rate) -> None:
    X, y = stream(ovi.Absolute(), count=50, dim=2)
    grid = Grid(ovi.Absolute(), rate, on_box(3.0), points=15)
    start, played = grid.init(2, 50), grid.run(X, y)
    points = np.stack(np.meshgrid(*start.axes, indexing="ij"), axis=-1).reshape(-1, 2)
    weighing = Experts(rate, start.weights.ravel()).run(np.abs(y[:, None] - X @ points.T))
    assert weighing.state.weights == pytest.approx(played.state.weights.ravel(), rel=1e-12, abs=1e-15)
    assert ((weighing.weights @ points) * X).sum(axis=1) == pytest.approx(played.prediction, abs=1e-12)


@pytest.mark.parametrize("dim", [1, 2])
def test_the_grid_converges_to_the_gaussian_faster_than_any_power(dim: int) -> None:
    X, y = stream(ovi.Squared(), count=30, dim=dim)
    exact = TemperedGaussian(0.1).run(X, y)
    errors = []
    for points in (17, 25, 33, 65):
        played = Grid(ovi.Squared(), 0.1, on_box(8.0), points=points).run(X, y)
        gaps = played.state.mean - exact.state.mean, played.state.std - exact.state.std, played.loss - exact.loss
        errors.append(max(np.abs(gap).max() for gap in gaps))
    # The law of the error is exp(−2π²(std/spacing)²): 1.5 times the points square it, and more.
    assert errors[1] < 30.0 * errors[0] ** 2
    assert errors[2] < 30.0 * errors[1] ** (16 / 9)
    assert errors[3] < 1e-12
    assert played.state.covariance == pytest.approx(exact.state.covariance, abs=1e-12)
    assert played.spread == pytest.approx(exact.spread, rel=1e-10)


@pytest.mark.parametrize("loss", [ovi.Hinge(), ovi.Absolute(), ovi.Logistic()], ids=name)
def test_the_grid_converges_to_quadrature_at_second_order(loss: ovi.Loss) -> None:
    X, y = stream(loss, count=8, dim=1)

    def density(theta: float) -> float:
        return float(np.exp(-0.5 * theta**2 - 0.5 * loss(y, X[:, 0] * theta).value.sum()))

    kinks = sorted(float(kink) for kink in y / X[:, 0] if abs(kink) < 4.0)
    mass, first = (quad(lambda t, k=k: t**k * density(t), -4, 4, points=kinks, epsabs=1e-13, limit=200)[0] for k in (0, 1))
    for points in (51, 101, 801):
        posterior = Grid(loss, 0.5, on_box(4.0), points=points).run(X, y).state
        assert posterior.mean[0] == pytest.approx(first / mass, abs=0.2 * posterior.spacing[0] ** 2)
        assert posterior.log_evidence == pytest.approx(np.log(mass / np.sqrt(2 * np.pi)), abs=0.5 * posterior.spacing[0] ** 2)


@pytest.mark.parametrize("rate", RATES, ids=name)
def test_the_gaussian_solves_the_normal_equations(rate: ovi.Rate) -> None:
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((60, 6)) * [1e-2, 1.0, 1.0, 3.0, 1e2, 1.0], rng.standard_normal(60)
    mean, std = rng.standard_normal(6), rng.uniform(0.5, 2.0, 6)
    model = TemperedGaussian(rate, prior_std=std, prior_mean=mean)
    played = model.run(X, y)
    for t in (0, 1, 5, 60):
        schedule = rate.schedule(60)
        eta = schedule.scale / (t + 1) ** schedule.power
        # Ridge regression by least squares, on rows stacked with the prior's.
        stacked = np.vstack([np.diag(1.0 / std), np.sqrt(2.0 * eta) * X[:t]])
        direct = np.linalg.lstsq(stacked, np.concatenate([mean / std, np.sqrt(2.0 * eta) * y[:t]]))[0]
        inverse = np.linalg.inv(stacked.T @ stacked)
        state = model.update_many(model.init(6, 60), X[:t], y[:t])[0]
        assert state.mean == pytest.approx(direct, rel=1e-10, abs=1e-10)
        assert state.covariance == pytest.approx(inverse, rel=1e-10, abs=1e-10)
        if t < 60:
            assert played.prediction[t] == pytest.approx(X[t] @ direct, rel=1e-10, abs=1e-10)
            assert played.spread[t] == pytest.approx(np.sqrt(X[t] @ inverse @ X[t]), rel=1e-10)
            assert played.loss[t] == pytest.approx((y[t] - X[t] @ direct) ** 2, rel=1e-9, abs=1e-10)


def test_a_ridge_is_precision() -> None:
    X, y = stream(ovi.Squared(), count=25, dim=2)
    ridge, rate = 0.4, 0.2
    posterior = Grid(ovi.Squared(ridge=ridge), rate, on_box(8.0), points=61).run(X, y).state
    inverse = np.linalg.inv(np.eye(2) * (1.0 + rate * ridge * 25) + 2.0 * rate * X.T @ X)
    assert posterior.covariance == pytest.approx(inverse, abs=1e-9)
    assert posterior.mean == pytest.approx(inverse @ (2.0 * rate * X.T @ y), abs=1e-9)


# --- how far a belief is from the posterior


@pytest.mark.parametrize("dim", [1, 2])
def test_the_divergence_from_a_belief_is_the_gaussian_one(dim: int) -> None:
    X, y = stream(ovi.Squared(), count=15, dim=dim)
    posterior = Grid(ovi.Squared(), 0.1, on_box(10.0), points=81).run(X, y).state
    exact = TemperedGaussian(0.1).run(X, y).state
    rng = np.random.default_rng(0)
    for _ in range(20):
        belief = Belief(rng.standard_normal(dim), rng.uniform(0.3, 1.0, dim))
        assert posterior.kl_from(belief) == pytest.approx(exact.kl_from(belief), rel=1e-9)
    assert exact.kl_from(Belief(np.zeros(dim), np.zeros(dim))) == np.inf
    if dim == 1:
        assert posterior.kl_from(Belief(exact.mean, exact.std)) == pytest.approx(0.0, abs=1e-10)


def test_a_prior_is_no_way_from_itself() -> None:
    family = on_box(3.0, prior_mean=[1.0, -2.0], prior_std=[0.5, 4.0])  # the box cuts it
    grid = Grid(ovi.Hinge(), family=family)
    assert grid.init(2, 1).kl_from(family.init(2)) == pytest.approx(0.0, abs=1e-14)
    assert TemperedGaussian(prior_mean=[1.0, -2.0], prior_std=[0.5, 4.0]).init(2, 1).kl_from(family.init(2)) == 0.0


@pytest.mark.parametrize(("loss", "dim"), [(ovi.Hinge(), 2), (ovi.Logistic(ridge=0.1), 1), (ovi.Absolute(), 1)], ids=name)
def test_divergences_along_a_stream_agree_with_the_grid(loss: ovi.Loss, dim: int) -> None:
    X, y = stream(loss, count=20, dim=dim)
    grid, steps = Grid(loss, family=on_box(6.0), points=41 if dim == 2 else 241), [0, 1, 7, 7, 20]
    learners = [ovi.Linear(loss, rule, on_box(6.0)) for rule in (ovi.SVA(), ovi.SVB(0.1), ovi.NGVI(step=0.1))]
    table = divergences(grid, learners, X, y, steps)
    for row, posterior, step in zip(table, grid.posteriors(X, y, steps), steps, strict=True):
        assert posterior.count == step
        beliefs = [learner.update_many(learner.init(dim, 20), X[:step], y[:step])[0].belief for learner in learners]
        assert row == pytest.approx([posterior.kl_from(belief) for belief in beliefs], abs=2e-4)
    assert (table > -1e-6).all()


def test_divergences_take_a_belief_narrower_than_a_cell() -> None:
    X, y = stream(ovi.Squared(), count=15, dim=2)
    narrow = ovi.Linear(ovi.Squared(), ovi.SVB(1e-9), ovi.MeanField(prior_std=1e-4))
    found = divergences(Grid(ovi.Squared(), 0.1, on_box(8.0), points=65), [narrow], X, y, [15])[0, 0]
    belief = narrow.update_many(narrow.init(2), X, y)[0].belief
    assert found == pytest.approx(TemperedGaussian(0.1).run(X, y).state.kl_from(belief), rel=1e-9)


def test_sva_is_near_the_posterior_that_it_approximates() -> None:
    X, y = stream(ovi.Hinge(), count=60, dim=2)
    learners = [ovi.Linear(ovi.Hinge(), rule) for rule in (ovi.SVA(), ovi.SVB(ovi.PerHorizon(1.0)))]
    grid = Grid(ovi.Hinge(), family=on_box(6.0), points=31)
    near = divergences(grid, learners, X, y, [60])[0]
    untrained = grid.run(X, y).state.kl_from(Belief(np.zeros(2), np.ones(2)))
    assert (near < 0.3 * untrained).all()


# --- bad input

GRID, GAUSSIAN = Grid(ovi.Hinge(), 0.1, points=5), TemperedGaussian(0.1)
LEARNERS = [ovi.Linear(ovi.Squared(), ovi.NGVI())]


@pytest.mark.parametrize(
    ("attempt", "error", "message"),
    [
        (lambda: Experts(0.0), ValueError, "a rate must be > 0"),
        (lambda: Grid(ovi.Hinge(), -1.0), ValueError, "a rate must be > 0"),
        (lambda: TemperedGaussian(np.inf), ValueError, "a rate must be > 0 and finite"),
        (lambda: Experts(ovi.PaperSVB(1.0)), ValueError, "only SVB"),
        (lambda: Experts().init(3), ValueError, "give horizon=T"),
        (lambda: Experts().init(3, 0), ValueError, "at least one event"),
        (lambda: Experts(1.0).init(0), ValueError, "at least one expert"),
        (lambda: Experts(1.0, [0.5, 0.5]).init(3), ValueError, "2 weights for 3 experts"),
        (lambda: Experts(1.0, [0.0, 0.0]), ValueError, "not all 0"),
        (lambda: Experts(1.0, [-1.0, 2.0]), ValueError, "≥ 0 an expert"),
        (lambda: Experts(1.0).update(Experts(1.0).init(2), [0.0, np.nan]), ValueError, "event 0, expert 1: loss nan"),
        (lambda: Experts(1.0).run([[0.0, 1.0], [np.inf, 0.0]]), ValueError, "event 1, expert 0: loss inf"),
        (lambda: Experts(1.0).run([[1e308], [1e308]]), ValueError, "sum is finite"),
        (lambda: Experts(1.0).update(Experts(1.0).init(2), [0.0] * 3), ValueError, r"needs \(events, 2\)"),
        (lambda: Experts(1.0).update(Experts(1.0).init(2), 0.0), ValueError, r"needs \(2,\)"),
        (lambda: Experts(1.0).run(np.empty((0, 2))), ValueError, "at least one of each"),
        (lambda: GRID.init(3), ValueError, r"dim=3: a grid serves 1 or 2 features, here it would take 5\^3 points.*try"),
        (lambda: Grid(ovi.Hinge), TypeError, r"write Hinge\(\)"),
        (lambda: Grid(ovi.Hinge(), family=ovi.Point()), TypeError, "needs a MeanField"),
        (lambda: Grid(ovi.Hinge(), points=1), ValueError, "at least 2 points"),
        (lambda: Grid(ovi.Hinge(), 0.1, ovi.MeanField(box=None)).init(2), ValueError, "finite ends"),
        (lambda: GRID.update(GRID.init(2), [1.0], 1.0), ValueError, r"needs \(2,\)"),
        (lambda: GRID.update_many(GRID.init(2), [[1.0]], [1.0]), ValueError, "X has 1 features, the state 2"),
        (lambda: GRID.run([[1.0], [2.0]], [1.0]), ValueError, "2 rows, y 1 labels"),
        (lambda: GRID.run(np.empty((0, 2)), []), ValueError, "stream is empty"),
        (lambda: GRID.run([[1.0], [np.nan]], [1.0, 1.0]), BadRow, "row 1: features"),
        (lambda: GRID.run([[1.0], [1.0]], [1.0, 0.0]), BadRow, "row 1: label 0.0: Hinge needs"),
        (lambda: GRID.init(1).kl_from(Belief([0.0], [3.9])), ValueError, "below half a cell"),
        (lambda: GRID.init(1).kl_from(Belief([0.0, 1.0], [9.0, 9.0])), ValueError, "the grid 1 coordinates"),
        (lambda: list(GRID.posteriors([[1.0]], [1.0], [0, 2])), ValueError, "from 0 to 1"),
        (lambda: list(GRID.posteriors([[1.0]], [1.0], [1, 0])), ValueError, "in order"),
        (lambda: divergences(GRID, [ovi.Linear(ovi.Hinge(), ovi.OGA())], [[1.0]], [1.0], [1]), TypeError, "keeps a point"),
        (lambda: TemperedGaussian(0.1, prior_std=0.0), ValueError, "must be > 0"),
        (lambda: TemperedGaussian(0.1, prior_std=[1.0, 2.0]).init(3), ValueError, "2 values, the data 3"),
        (lambda: GAUSSIAN.init(0), ValueError, "at least one feature"),
        (lambda: GAUSSIAN.update(GAUSSIAN.init(2), [1.0], 1.0), ValueError, r"needs \(2,\)"),
        (lambda: GAUSSIAN.run([[1.0], [np.nan]], [1.0, 1.0]), BadRow, "row 1: features"),
        (lambda: GAUSSIAN.run([[1.0], [1.0]], [1.0, 1e200]), BadRow, "row 1: the step would overflow"),
        (lambda: GAUSSIAN.run([[1.0]], [1.0, 1.0]), ValueError, "1 rows, y 2 labels"),
        (lambda: GAUSSIAN.run(np.empty((0, 2)), []), ValueError, "stream is empty"),
        (lambda: GAUSSIAN.run([[1e9, 1e9]], [1.0]).state.mean, ValueError, "scale them down"),
    ],
)
def test_bad_input_is_refused(attempt: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        attempt()


def test_states_say_what_they_hold() -> None:
    X, y = stream(ovi.Hinge(), count=3, dim=2)
    assert repr(Experts(1.0).run([[0.0, 1.0]]).state) == "ExpertState(count=1, experts=2, average_loss=0.5)"
    assert repr(GRID.run(X, y).state).startswith("GridPosterior(count=3, points=(5, 5), average_loss=")
    assert repr(GAUSSIAN.init(2)) == "GaussianPosterior(count=0, dim=2, average_loss=nan)"


def test_tables_and_small_numbers_are_rows_too() -> None:
    X, y = stream(ovi.Hinge(), count=20, dim=2)
    X = X.astype(np.float32)
    from scipy.sparse import csr_array

    for model in (GRID, GAUSSIAN, Aggregate(LEARNERS)):
        plain = model.run(X.astype(float), y).loss
        for same in (X, np.asfortranarray(X), csr_array(X)):
            assert model.run(same, y).loss == pytest.approx(plain, rel=1e-12)
