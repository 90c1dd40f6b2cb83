"""How learners are weighed: AdaHedge, shares and quantiles follow their definitions, and no stream breaks what is promised."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from helpers.catalogue import stream
from helpers.oracles import expectation
from helpers.pools import LOGISTIC, NEVER, OWN, SQUARED, experts, hedge
from scipy.special import logsumexp
from scipy.stats import expon, norm

import onlinevi as ovi
from onlinevi.ewa import AdaHedge, Pool

# --- AdaHedge


def adahedge(losses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """De Rooij, van Erven, Grünwald and Koolen (2014) from the definition: weights before each event, Σ gaps after it."""
    number, totals, gap, weights, gaps = losses.shape[1], 0.0 * losses[0], 0.0, [], []
    for row in losses:
        lead = totals == totals.min()
        with np.errstate(divide="ignore"):
            levels = -np.log(number) / gap * totals if gap > 0.0 else np.log(lead.astype(float))
        levels = levels - logsumexp(levels)
        weights.append(np.exp(levels))
        mix = -logsumexp(levels - np.log(number) / gap * row) * gap / np.log(number) if gap > 0.0 else row[lead].min()
        if gap == 0.0:  # the limit of an infinite rate: the growth of the least total
            mix = (totals + row).min() - totals.min()
        gap += max(weights[-1] @ row - mix, 0.0)
        gaps.append(gap)
        totals = totals + row
    return np.array(weights), np.array(gaps)


def tables() -> dict[str, np.ndarray]:
    """Losses of random experts, and of those made to mislead whoever follows the leader."""
    rng, count = np.random.default_rng(0), 150
    turns = np.arange(count)[:, None] % 2 == np.arange(2)
    late = np.where(np.arange(count)[:, None] < 100, [1.0, 0.5, 0.0], [0.0, 0.5, 1.0])
    burst = rng.random((count, 4)) * np.where(np.arange(count)[:, None] % 47 == 0, 1e6, 1e-3)
    return {
        "random": rng.random((count, 5)),
        "in turn": np.vstack([[0.5, 0.0], turns[1:].astype(float)]),
        "late": late,
        "bursts": burst,
        "heavy": rng.pareto(0.7, (count, 3)),
        "growing": rng.random((count, 3)) * 1.1 ** np.arange(count)[:, None],
        "one good": np.hstack([np.zeros((count, 1)), rng.random((count, 6))]),
        "a sudden end": np.vstack([np.tile([0.0, 1.0], (count - 1, 1)), [[1000.0, 0.0]]]),
    }


@pytest.mark.parametrize("table", tables())
def test_adahedge_is_as_defined_and_no_table_breaks_its_bound(table: str) -> None:
    losses = tables()[table]
    played, (weights, gaps) = hedge(losses, rate=AdaHedge()), adahedge(losses)
    state = played.state
    assert played.weights == pytest.approx(weights, abs=1e-7)
    assert played.loss == pytest.approx((weights * losses).sum(axis=1), rel=1e-6, abs=1e-7)
    assert state.regret_bound == pytest.approx(2.0 * gaps[-1], rel=1e-7)
    for t in range(1, len(losses) + 1):  # at any time
        regret = played.loss[:t].sum() - losses[:t].sum(axis=0).min()
        assert regret <= 2.0 * gaps[t - 1] + 1e-12 * losses[:t].sum()
    assert state.regret == pytest.approx(state.loss - losses.sum(axis=0).min())
    for power in (-30, 40):
        assert hedge(np.ldexp(losses, power), rate=AdaHedge()).weights.tolist() == played.weights.tolist(), "scale-free"


def test_no_adversary_that_sees_the_weights_breaks_adahedge() -> None:
    for number, seed in itertools.product((2, 3, 10), range(3)):
        mix, rng = Pool(experts(ovi.Absolute(), number), AdaHedge()), np.random.default_rng(seed)
        state = mix.init(number)
        for _ in range(100):
            losses = rng.random(number) * rng.choice([0.0, 0.1, 1.0])
            losses[state.weights.argmax()] += rng.choice([0.0, 1.0, 5.0])
            state, _ = mix.update(state, losses, 0.0)
            assert state.regret <= state.regret_bound + 1e-9


def test_what_all_learners_lose_changes_no_weight() -> None:
    losses = np.random.default_rng(0).random((2000, 3))
    moved = hedge(losses + 1e6, rate=AdaHedge()).state
    plain = hedge(losses, rate=AdaHedge()).state
    assert moved.regret_bound == pytest.approx(plain.regret_bound, rel=1e-5)
    assert moved.weights == pytest.approx(plain.weights, abs=1e-5)


# --- shares


def fixed_share(losses: np.ndarray, rate: float, share: float, prior: np.ndarray) -> np.ndarray:
    weights, shown = prior, []
    for row in losses:
        shown.append(weights)
        kept = weights * np.exp(-rate * row)
        weights = (1.0 - share) * kept / kept.sum() + share * prior
    return np.array(shown)


@pytest.mark.parametrize("prior", [(1 / 3, 1 / 3, 1 / 3), (0.7, 0.2, 0.1)])
@pytest.mark.parametrize("share", [1e-4, 0.3])
def test_a_share_is_dealt_out_as_defined(share: float, prior: tuple[float, ...]) -> None:
    losses = np.random.default_rng(0).exponential(size=(200, 3)) * 3.0
    losses[50] = 1e4, 0.0, 2e4  # a weight that underflows comes back by its share
    played = hedge(losses, rate=0.7, share=share, prior=prior)
    weights = fixed_share(losses, 0.7, share, np.array(prior))
    assert played.weights == pytest.approx(weights, rel=1e-9)
    assert played.weights[51][0] == pytest.approx(share * prior[0])


def best_switching(losses: np.ndarray, most: int) -> np.ndarray:
    """The least loss of a sequence of experts with exactly 0, 1, …, ``most`` changes, by dynamic programming."""
    least = np.full((most + 1, losses.shape[1]), np.inf)
    least[0] = losses[0]
    for row in losses[1:]:
        changed = np.full_like(least, np.inf)
        for m, k in itertools.product(range(1, most + 1), range(losses.shape[1])):
            changed[m, k] = np.delete(least[m - 1], k).min()
        least = np.minimum(least, changed) + row
    return least.min(axis=1)


@pytest.mark.parametrize("prior", [None, (0.7, 0.2, 0.1)])
@pytest.mark.parametrize("share", [0.0, 1e-3, 0.5])
def test_no_switching_stream_breaks_the_bound(share: float, prior: tuple[float, ...] | None) -> None:
    """Experts sure of themselves, of whom another one is right from time to time."""
    mix = Pool(experts(ovi.Logistic(), 3), 1.0, share=share, prior=prior, pool="probability")
    for seed, switches in itertools.product(range(3), (0, 1, 4)):
        rng = np.random.default_rng(seed)
        cuts = np.sort(rng.integers(1, 100, switches))
        right = (np.searchsorted(cuts, np.arange(100), side="right") + seed) % 3
        y = rng.choice([-1.0, 1.0], 100)
        X = -5.0 * y[:, None] * rng.random((100, 3))
        X[np.arange(100), right] *= -1.0
        state = mix.run(X, y).state
        table = ovi.Logistic()(y[:, None], X).value
        assert state.losses == pytest.approx(table.sum(axis=0))
        assert state.regret <= state.regret_bound + 1e-9
        for m, best in enumerate(best_switching(table, 6 if share else 0)):
            assert state.loss <= best + state.switching_bound(m) + 1e-9
    if share == 0.0 and prior is None:
        assert state.regret_bound == pytest.approx(np.log(3))


def test_the_bound_is_reached() -> None:
    """Where one expert is always right and the others always wrong, all of the prior's price is paid."""
    y = np.ones(20)
    state = Pool(experts(ovi.Logistic(), 4), 1.0, pool="probability").run(np.tile([9.0, -40, -40, -40], (20, 1)), y).state
    assert state.regret == pytest.approx(state.regret_bound, rel=1e-8)


def test_a_share_at_rate_1_is_bayes_rule_over_sequences() -> None:
    """The probability of all labels is its mean over all sequences of learners, each with its prior weight."""
    share, prior, count = 0.2, np.array([0.6, 0.4]), 7
    X, y = stream(ovi.Logistic(), count=count, dim=2, seed=4)
    played = Pool(LOGISTIC[:2], 1.0, share=share, prior=prior, pool="probability").run(3.0 * X, y)
    traces = [one.update_many(one.init(2), 3.0 * X, y)[1] for one in LOGISTIC[:2]]
    # The slope of the logistic loss at the label is the probability of the other one.
    chance = np.array(
        [
            [abs(expectation(ovi.Logistic(), -label, a, v)[1]) for a, v in zip(trace.prediction, trace.spread, strict=True)]
            for trace, label in itertools.product(traces, [1.0])
        ]
    ).T
    chance = np.where(y[:, None] > 0.0, chance, 1.0 - chance)
    total = 0.0
    for sequence in itertools.product(range(2), repeat=count):
        moves = [(1.0 - share) * (a == b) + share * prior[b] for a, b in itertools.pairwise(sequence)]
        total += prior[sequence[0]] * np.prod(moves) * np.prod(chance[np.arange(count), sequence])
    assert played.state.loss == pytest.approx(-np.log(total), rel=1e-8)
    assert played.state.losses == pytest.approx(-np.log(chance).sum(axis=0), rel=1e-8)
    expected = 1.0 / (1.0 + np.exp(-played.prediction))
    assert expected == pytest.approx((played.weights * np.where(y[:, None] > 0.0, chance, 1.0 - chance)).sum(axis=1), rel=1e-8)


def test_rows_of_more_weight_than_1_are_promised_nothing() -> None:
    """Ten times a loss is no logarithm of a probability that weights could follow: ln N is exceeded."""
    mix = Pool(experts(ovi.Logistic(), 2), 1.0, pool="probability")
    state, _ = mix.update(mix.init(2), [20.0, -20.0], 1.0, weight=10.0)
    assert state.regret > 6.0 > np.log(2)
    assert np.isnan(state.regret_bound)
    with pytest.raises(ValueError, match="rows of weight 1"):
        state.switching_bound(0)


# --- quantiles


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("law", [norm(3.0, 2.0), expon(scale=0.01)], ids=["normal", "exponential"])
def test_a_shift_finds_the_quantile_of_the_residuals(law: Any, level: float) -> None:
    y = law.rvs(6000, random_state=0)
    loss = ovi.Absolute() if level == 0.5 else ovi.Pinball(level)
    silent = ovi.Linear(OWN, ovi.OGA(NEVER))
    played = Pool([silent], AdaHedge(), loss=loss, pool="quantile").run(np.zeros((6000, 1)), y)
    late = slice(1000, None)
    assert np.mean(y[late] <= played.prediction[late]) == pytest.approx(level, abs=0.01)
    assert played.prediction[late].mean() == pytest.approx(law.ppf(level), abs=0.12 * law.std())
    assert played.state.shifts[0] != 0.0
    assert (hedge(np.ones((3, 2)), rate=1.0).state.shifts == 0.0).all()


@pytest.mark.parametrize("loss", [None, ovi.Pinball(0.9), ovi.Absolute()], ids=str)
def test_predictions_follow_the_unit_of_the_labels(loss: ovi.Loss | None) -> None:
    X, y = stream(OWN, count=100, dim=3)
    mix = Pool(SQUARED, AdaHedge(), loss=loss, pool="prediction" if loss is None else "quantile")
    plain = mix.run(X, y)
    for power in (-20, 7, 30):
        scaled = mix.run(X, np.ldexp(y, power))
        assert scaled.prediction == pytest.approx(np.ldexp(plain.prediction, power), rel=1e-12)
        assert scaled.weights == pytest.approx(plain.weights, abs=1e-12)
