"""The anytime risk bound: how often it covers, how much it costs, and what it refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.catalogue import LOSSES, name
from scipy.optimize import brentq

import onlinevi as ovi
from onlinevi.guarantees.risk import BETS, deviation, fixed_risk_bound, loss_bound, mean_bound, risk_bound

STREAMS, T, DELTA, RUNS = 800, 300, 0.1, 16

LAWS = {
    "Bernoulli(1/2)": (lambda rng, shape: (rng.random(shape) < 0.5).astype(float), 0.5),
    "Bernoulli(0.02)": (lambda rng, shape: (rng.random(shape) < 0.02).astype(float), 0.02),
    "Bernoulli(0.98)": (lambda rng, shape: (rng.random(shape) < 0.98).astype(float), 0.98),
    "beta(2, 5)": (lambda rng, shape: rng.beta(2.0, 5.0, shape), 2.0 / 7.0),
    "heavy at both ends": (lambda rng, shape: rng.beta(0.05, 0.05, shape), 0.5),
    "rare and large": (lambda rng, shape: np.where(rng.random(shape) < 0.003, 1.0, 0.01), 0.003 + 0.997 * 0.01),
    "constant": (lambda rng, shape: np.full(shape, 0.3), 0.3),
}


def misses(bounds: np.ndarray, means: np.ndarray | float) -> float:
    """The share of streams whose bound fails at any t."""
    return float((bounds < means - 1e-12).any(axis=1).mean())


@pytest.mark.parametrize("law", LAWS)
def test_it_covers_at_all_times_at_once(law: str) -> None:
    draw, mean = LAWS[law]
    losses = 3.0 * draw(np.random.default_rng(1), (STREAMS, T))
    assert misses(mean_bound(losses, DELTA, bound=3.0), 3.0 * mean) <= DELTA


def test_it_covers_means_that_depend_on_the_past() -> None:
    """Each loss is drawn with a chance that the loss before decides: only the average of the chances is bounded."""
    rng = np.random.default_rng(2)
    losses, chances = np.zeros((STREAMS, T)), np.full((STREAMS, T), 0.5)
    for t in range(T):
        if t > 0:
            chances[:, t] = np.where(losses[:, t - 1] > 0.0, 0.05, 0.6)
        losses[:, t] = rng.random(STREAMS) < chances[:, t]
    averages = np.cumsum(chances, axis=1) / np.arange(1, T + 1)
    assert misses(mean_bound(losses, DELTA, bound=1.0), averages) <= DELTA


def test_a_bound_for_one_time_fails_at_all_times_at_once() -> None:
    """Why a confidence sequence is needed: Hoeffding's holds at each t, but along a stream it fails somewhere too often."""
    losses = (np.random.default_rng(3).random((STREAMS, 2000)) < 0.5).astype(float)
    times = np.arange(1, 2001)
    averages = np.cumsum(losses, axis=1) / times
    hoeffding = averages + np.sqrt(math.log(1.0 / DELTA) / (2.0 * times))
    assert misses(hoeffding[:, -1:], 0.5) <= DELTA < misses(hoeffding, 0.5)


def test_it_is_not_much_wider_than_a_bound_for_one_time() -> None:
    rng = np.random.default_rng(4)
    for mean, most in ((0.5, 1.7), (0.02, 0.6)):
        losses = (rng.random(10_000) < mean).astype(float)
        width = mean_bound(losses, 0.05, bound=1.0)[-1] - losses.mean()
        assert width <= most * math.sqrt(math.log(20.0) / 20_000), "small losses vary little, and it knows"


@pytest.mark.parametrize("delta", [0.5, 0.05, 1e-6])
def test_the_deviation_is_the_root_from_above(delta: float) -> None:
    cost = -np.log1p(-BETS) - BETS
    for variation in (0.0, 0.3, 40.0, 1e4, 1e9):

        def excess(s: float, spent: np.ndarray = variation * cost) -> float:
            return float(np.logaddexp.reduce(BETS * s - spent)) - math.log(len(BETS) / delta)

        root = brentq(excess, 0.0, 1e7, xtol=1e-12, rtol=1e-14)
        found = float(deviation(np.array([variation]), delta)[0])
        assert root * (1.0 - 1e-9) <= found <= root * 1.001


def normalised_toy(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    y = np.where(rng.random(count) < 2.0 / 3.0, 1.0, -1.0)
    noise = rng.standard_normal((count, 2))
    X = np.where(y[:, None] > 0.0, 1.0 + noise @ np.array([[1.0, 1.0], [0.0, math.sqrt(2.0)]]), noise - 1.0)
    return X / np.linalg.norm(X, axis=1)[:, None], y


@pytest.mark.parametrize("rule", [ovi.SVB(), ovi.NGVI(), ovi.OGA(0.1)], ids=name)
def test_the_average_decision_of_a_learner_has_the_risk_it_says(rule: ovi.Rule) -> None:
    """RUNS runs on i.i.d. rows, the true risk from 20,000 fresh ones, at every tenth event."""
    box = ovi.Box(mean=(-3.0, 3.0))
    learner = ovi.Linear(loss=ovi.Hinge(), rule=rule, family=ovi.MeanField(box=box) if rule.gaussian else ovi.Point(box=box))
    bound = loss_bound(ovi.Hinge(), 1.0, box=box, labels=[-1.0, 1.0], dim=2)
    fresh_X, fresh_y = normalised_toy(np.random.default_rng(0), 20_000)
    failed, widths, times = 0, [], np.arange(10, 301, 10)
    for seed in range(RUNS):
        X, y = normalised_toy(np.random.default_rng(1000 + seed), 300)
        trace = ovi.learn(X, y, loss=learner.loss, rule=rule, family=learner.family)
        state, averages = learner.init(2), []
        for start in range(0, 300, 10):
            state, _ = learner.update_many(state, X[start : start + 10], y[start : start + 10])
            averages.append(state.average_mean)
        risks = np.maximum(1.0 - (fresh_y[:, None] * fresh_X) @ np.array(averages).T, 0.0).mean(axis=0)
        bounds = risk_bound(trace, DELTA, bound=bound)
        failed += bool((risks > bounds[times - 1]).any())
        widths.append(bounds[-1] - trace.average_loss[-1])
        assert risks[-1] <= fixed_risk_bound(trace, 1e-3, bound=bound)
    assert failed <= DELTA * RUNS
    assert np.mean(widths) < 0.8 * bound * math.sqrt(math.log(1.0 / DELTA) / 600), "narrower than Azuma at its own time"


@pytest.mark.parametrize("ridge", [0.0, 0.2])
@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_no_mean_of_the_box_loses_more_than_the_bound(loss: ovi.Loss, ridge: float) -> None:
    rng, loss = np.random.default_rng(5), type(loss)(*loss.parameters, ridge=ridge)
    low, high = np.array([-1.0, 0.0, -0.5]), np.array([1.0, 2.0, 0.5])
    box = ovi.Box(mean=(low.tolist(), high.tolist()))
    X = rng.standard_normal((40, 3))
    X /= np.linalg.norm(X, axis=1)[:, None]
    labels = [0.0, 3.0] if isinstance(loss, ovi.Poisson) else [-1.0, 1.0]
    from_rows = loss_bound(loss, X, box=box, labels=labels)
    from_length = loss_bound(loss, 1.0, box=box, labels=labels, dim=3)
    corners = np.array(np.meshgrid(*zip(low, high, strict=True))).reshape(3, -1).T
    means = np.vstack([rng.uniform(low, high, (100, 3)), corners])
    costs = np.array([loss(label, means @ X.T).value for label in labels]) + 0.5 * ridge * (means**2).sum(axis=1)[:, None]
    assert costs.max() <= from_rows <= from_length * (1.0 + 1e-12)
    if ridge == 0.0:
        assert costs.max() == pytest.approx(from_rows, rel=1e-9), "a corner attains it"


def test_what_would_void_the_guarantee_is_refused() -> None:
    rng = np.random.default_rng(0)
    X, y = normalised_toy(rng, 500)
    learner = ovi.Linear(loss=ovi.Hinge(), rule=ovi.SVB())
    trace = ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.SVB())
    _, later = learner.update_many(trace.state, X, y)
    thinned = ovi.learn(*normalised_toy(rng, 4200), loss=ovi.Hinge(), rule=ovi.OGA(0.1), record="thinned")
    assert len(risk_bound(trace, 0.05, bound=30.0)) == len(trace.steps)
    assert (risk_bound(trace, 0.05, bound=30.0) >= trace.average_loss).all()
    with pytest.raises(TypeError, match="of AutoState, which has no average decision: needs one of learn"):
        risk_bound(ovi.auto(X[:9], y[:9]), 0.05, bound=30.0)
    for call, message in [
        (lambda: risk_bound(trace, 0.05, bound=0.5), r"lies outside \[0, 0.5\]"),
        (lambda: fixed_risk_bound(trace, 0.05, bound=0.5), r"lies outside \[0, 0.5\]"),
        (lambda: risk_bound(trace, 1.5, bound=30.0), "a probability of failure"),
        (lambda: risk_bound(trace, 0.05, bound=math.inf), "needs a finite number"),
        (lambda: risk_bound(thinned, 0.05, bound=30.0), 'record="all"'),
        (lambda: risk_bound(later, 0.05, bound=30.0), "holds 500 of 1000 events"),
        (lambda: mean_bound([], 0.05, bound=1.0), "no events yet"),
        (lambda: mean_bound([0.5, math.nan], 0.05, bound=1.0), "outside"),
        (lambda: mean_bound([-0.5], 0.05, bound=1.0), "outside"),
        (lambda: loss_bound(ovi.Hinge(), X, box=ovi.Box(mean=None), labels=[1.0]), "without bounds"),
        (lambda: loss_bound(ovi.Hinge(), X, box=ovi.Box(mean=(-math.inf, 1.0)), labels=[1.0]), "without bounds"),
        (lambda: loss_bound(ovi.Hinge(), 1.0, box=ovi.Box(), labels=[1.0]), "needs dim"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
