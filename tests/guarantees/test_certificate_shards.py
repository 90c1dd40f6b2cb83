"""What is certain of all shards together: the sums of their states add up, and so does the bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.splits import trial
from helpers.states import stripped_of_sums

import onlinevi as ovi
from onlinevi.guarantees import LossSums, SquaredSums, certificate, hindsight, risk_bound, shards_risk_bound
from onlinevi.guarantees.risk import mean_bound


def states_of(learner: ovi.Linear, X: np.ndarray, y: np.ndarray, shards: int) -> list[ovi.State]:
    parts = np.array_split(np.arange(len(y)), shards)
    return [learner.update_many(learner.init(X.shape[1]), X[part], y[part], record="none")[0] for part in parts]


def test_the_toy_stream_in_four_shards() -> None:
    """The figures of docs/scale.md and docs/merge.md."""
    toy, learner = ovi.datasets.load("toy"), ovi.Linear(ovi.Hinge(), ovi.Implicit())
    states = states_of(learner, toy.X, toy.y, 4)
    live = certificate(learner.merge(states))
    assert live.count == len(toy.y)
    assert round(live.within(2.0) / live.count, 4) == 0.0122
    assert round(sum(certificate(state).within(2.0) for state in states) / live.count, 4) == 0.0421
    best = hindsight(toy.X, toy.y, loss=ovi.Hinge(), tolerance=1e-4).value
    assert round(live.loss / live.count - best, 4) == 0.0031


def test_no_split_breaks_it() -> None:
    """``experiments/adversary_shards.py`` has ten thousand."""
    verdicts = [verdict for seed in range(20_000, 20_060) if (verdict := trial(seed)) is not None]
    assert len(verdicts) > 55
    assert not any(verdict.broken or verdict.above_sum for verdict in verdicts)
    assert max(verdict.ratio for verdict in verdicts) > 0.9


@pytest.mark.parametrize("average", [True, False])
def test_a_merge_has_the_sums_of_its_shards(average: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = np.sign(X[:, 0] + 0.3 * rng.standard_normal(60))
    learner = ovi.Linear(ovi.Logistic(ridge=0.1), ovi.NGVI(), average=average)
    states = states_of(learner, X, y, 3)
    merged = learner.merge(states)
    for name in ("count", "weight", "loss", "expected_loss", "product", "magnitude", "gradient_square", "square", "gradient"):
        np.testing.assert_allclose(getattr(merged, name), sum(getattr(state, name) for state in states), rtol=1e-12)
    assert merged.largest_gradient == max(state.largest_gradient for state in states)
    assert certificate(merged).form == ("strongly convex" if average else certificate(merged).form)
    if average:
        decisions = sum(state.count * state.average_mean for state in states)
        np.testing.assert_allclose(merged.average_mean, decisions / 60, rtol=1e-10)
    # It goes on, and so does its certificate.
    later, trace = learner.update_many(merged, X, y)
    live = certificate(later)
    assert live.count == 120
    assert live.loss == pytest.approx(merged.loss + trace.loss.sum())
    ridge = 0.05 * 120 * 0.25
    assert live.against([0.5, 0.0, 0.0]) >= live.loss - 2 * ovi.Logistic()(y, X @ [0.5, 0.0, 0.0]).value.sum() - ridge


def test_exact_sums_of_shards_add_up() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 2)), rng.standard_normal(50)
    learner = ovi.Linear(ovi.Squared(), ovi.Implicit())
    parts = np.array_split(np.arange(50), 3)
    sums = [SquaredSums.empty(2).update(X[part], y[part]) for part in parts]
    live = certificate(learner.merge(states_of(learner, X, y, 3)), exact=sums[0] + sums[1] + sums[2])
    u = np.array([0.3, -0.2])
    assert live.form == "exact"
    assert live.against(u) == pytest.approx(live.loss - float(np.square(y - X @ u).sum()))
    with pytest.raises(ValueError, match="same features and ridge"):
        SquaredSums.empty(2) + SquaredSums.empty(3)


def test_a_merge_without_sums_has_no_certificate() -> None:
    """As versions before this one made them."""
    learner = ovi.Linear(ovi.Hinge(), ovi.Implicit())
    old = stripped_of_sums(learner.update_many(learner.init(1), [[1.0]] * 5, [1.0] * 5)[0])
    with pytest.raises(ValueError, match="merge the shards again"):
        certificate(old)
    with pytest.raises(ValueError, match="merge the shards again"):
        certificate(learner.merge([old, learner.update_many(learner.init(1), [[1.0]], [1.0])[0]]))


def test_the_risk_bound_of_shards_is_that_of_their_losses_in_a_row() -> None:
    rng = np.random.default_rng(0)
    losses = [3.0 * rng.beta(0.5, 2.0, n) for n in (400, 1, 900)]
    sums = [LossSums().add(own[:100]).add(own[100:]) for own in losses]
    for own, kept in zip(losses, sums, strict=True):
        shares = own / 3.0
        times = np.arange(1.0, len(own) + 1.0)
        guesses = (0.5 + np.cumsum(shares) - shares) / times
        assert kept.variation(3.0) == pytest.approx(np.square(shares - guesses).sum(), rel=1e-9)
    one = shards_risk_bound(sums[:1], 0.05, bound=3.0)
    assert one == pytest.approx(mean_bound(losses[0], 0.05, bound=3.0)[-1], rel=1e-9)
    assert shards_risk_bound([*sums, LossSums()], 0.05, bound=3.0) < one
    with pytest.raises(ValueError, match="outside"):
        shards_risk_bound(sums, 0.05, bound=0.1)
    with pytest.raises(ValueError, match="no events"):
        shards_risk_bound([LossSums()], 0.05, bound=1.0)


def test_the_risk_bound_of_shards_fails_no_more_often_than_it_may() -> None:
    rng, failed, trials = np.random.default_rng(0), 0, 200
    for _ in range(trials):
        means = rng.beta(0.3, 1.0, (5, 200))  # what each decision's risk is; its loss is 0 or 1
        losses = (rng.random(means.shape) < means).astype(float)
        failed += shards_risk_bound([LossSums().add(own) for own in losses], 0.2, bound=1.0) < means.mean()
    assert failed <= 0.2 * trials


def test_a_trace_of_one_shard_has_the_bound_it_had() -> None:
    X = np.random.default_rng(0).choice([-1.0, 1.0], (300, 2))
    trace = ovi.learn(X, X[:, 0], loss=ovi.Hinge(), rule=ovi.NGVI(), family=ovi.MeanField(box=ovi.Box(mean=(-2.0, 2.0))))
    again = shards_risk_bound([LossSums().add(trace.loss)], 0.05, bound=5.0)
    assert again == pytest.approx(risk_bound(trace, 0.05, bound=5.0)[-1], rel=1e-9)
    assert math.isfinite(again)
