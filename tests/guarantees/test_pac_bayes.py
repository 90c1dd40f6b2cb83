"""The PAC-Bayes bounds of a belief: closed forms by other means, how often they fail, and what they refuse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.optimize import brentq, minimize
from scipy.special import betaln, ndtr, rel_entr, xlogy

import onlinevi as ovi
from onlinevi.guarantees import played_risk
from onlinevi.guarantees.pac_bayesian import TEMPERS, bernoulli_kl, kl_bound, kl_price, tempered_bound

DELTA = 0.1
FAMILIES = (
    ovi.MeanField(prior_mean=0.3, prior_std=0.7),
    ovi.FullCovariance(prior_std=0.7),
    ovi.LowRank(1, prior_std=0.7),
)


def plane(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((count, 2))
    return X, np.where(rng.random(count) < 0.1, -1.0, 1.0) * np.sign(X[:, 0])


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_the_parts_are_those_of_drawn_weights(family: Any) -> None:
    X, y = plane(0, 60)
    trace = ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.NGVI(), family=family)
    risk = ovi.pac_bayes(trace, X, y)
    drawn = family.sample(trace.state.belief, np.random.default_rng(1), 20_000)
    assert risk.gibbs_error == pytest.approx(float((y[:, None] * (X @ drawn.T) <= 0.0).mean()), abs=0.003)
    assert risk.vote_error == float((y * (X @ trace.mean) <= 0.0).mean())
    assert risk.kl == family.kl(trace.state.belief)
    limit = (risk.kl + math.log(2.0 * math.sqrt(60) / 0.05)) / 60
    maurer = brentq(lambda r: bernoulli_kl(risk.gibbs_error, r) - limit, risk.gibbs_error, 1.0 - 1e-12)
    assert risk.gibbs_error < risk.gibbs_risk < maurer < risk.gibbs_risk + 0.01
    assert risk.vote_risk <= 2.0 * risk.gibbs_risk


@pytest.mark.parametrize("family", FAMILIES[:2], ids=lambda family: family.name)
def test_the_vote_is_bounded_by_the_best_stretch_of_the_belief(family: Any) -> None:
    """A generic optimiser over (c, k) finds no lower bound among N(c·mean, k²·covariance), nor much above it."""
    X, y = plane(2, 80)
    trace = ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.NGVI(), family=family)
    mean, spread, prior = trace.mean, np.sqrt(family.predict(trace.state.belief, X)[1]), family.init(2)
    factor = np.diag(trace.std) if isinstance(family, ovi.MeanField) else trace.state.belief.factor
    covariance = factor.T @ factor

    def bound(logs: np.ndarray) -> float:
        c, k = np.exp(logs)
        shift = c * mean - prior.mean
        kl = 0.5 * (k**2 * np.trace(covariance) + shift @ shift) / 0.49 - 1.0
        kl += 0.5 * (4.0 * math.log(0.7) - np.linalg.slogdet(k**2 * covariance).logabsdet)
        return kl_bound(float(ndtr(-y * (X @ mean) * c / (k * spread)).mean()), kl, 80, 0.05)

    best = min(minimize(bound, start, method="Nelder-Mead").fun for start in ([0.0, 0.0], [0.5, 1.0], [0.0, 1.5]))
    found = ovi.pac_bayes(trace, X, y).vote_risk
    assert 2.0 * best - 1e-9 <= found <= 2.0 * best + 2e-3
    assert found < 2.0 * ovi.pac_bayes(trace, X, y).gibbs_risk


def test_the_price_of_mixing_over_chances_is_the_least_at_the_ends() -> None:
    """∫ p^S (1 − p)^(t − S) d Beta(½, ½) ≥ (S/t)^S (1 − S/t)^(t − S)/ξ for every real S, with equality at 0 and t."""
    for count in (1, 2, 3, 17, 400):
        S = np.linspace(0.0, count, 1001)
        mixture = betaln(S + 0.5, count - S + 0.5) - math.log(math.pi)
        excess = mixture - (xlogy(S, S / count) + xlogy(count - S, 1.0 - S / count)) + kl_price(count)
        assert excess.min() >= -1e-9
        assert excess[[0, -1]] == pytest.approx(0.0, abs=1e-9)
        assert kl_price(count) <= math.log(2.0 * math.sqrt(count)) + 1e-12


def test_the_bounds_are_the_roots_they_claim_to_be() -> None:
    for error, cost, count in ((0.0, 0.0, 5), (0.1, 3.0, 100), (0.4, 50.0, 70), (0.25, 9.0, 10**6), (1.0, 1.0, 3)):
        limit = (cost + kl_price(count) + math.log(1.0 / DELTA)) / count
        found = kl_bound(error, cost, count, DELTA)
        assert bernoulli_kl(error, found) >= limit * (1.0 - 1e-9) or found == 1.0
        assert bernoulli_kl(error, found - 1e-9) <= limit
        tempered = float(tempered_bound(error, cost, count, DELTA))
        price = (cost + math.log(len(TEMPERS) / DELTA)) / count
        gains = -TEMPERS * error - np.log1p(tempered * np.expm1(-TEMPERS))  # what each rate has won at this risk
        assert tempered == 1.0 or gains.max() == pytest.approx(price, rel=1e-6)
        best = brentq(lambda r, e=error, p=price: bernoulli_kl(e, r) - p, error, 1.0) if error < 1.0 else 1.0
        assert best - 1e-12 <= tempered <= best + 0.02, "no rate does better than the best one"
    assert kl_bound(0.0, math.inf, 10, DELTA) == 1.0


WEIGHTS = np.array([0.0, 0.2, 0.5, 0.8, 1.0])


def failures(chance: float, streams: int, count: int, price: float = 0.0) -> tuple[int, int]:
    """Of the kl bound and the tempered one, at the worst time and for the worst belief over two classifiers."""
    rng, times = np.random.default_rng(7), np.arange(1.0, count + 1.0)
    plus = np.cumsum(rng.random((streams, count)) < chance, axis=1) / times
    by_kl, by_tempers = np.zeros((2, streams), dtype=bool)
    for weight in WEIGHTS:
        cost = math.log(2.0) + xlogy(weight, weight) + xlogy(1.0 - weight, 1.0 - weight)
        errors, risk = weight * (1.0 - plus) + (1.0 - weight) * plus, weight * (1.0 - chance) + (1.0 - weight) * chance
        divergence = rel_entr(errors, risk) + rel_entr(1.0 - errors, 1.0 - risk)
        limit = cost + kl_price(times) + math.log(1.0 / DELTA) - price
        by_kl |= ((errors < risk) & (times * divergence > limit)).any(axis=1)
        by_tempers |= (tempered_bound(errors, cost - price, times, DELTA) < risk).any(axis=1)
    return int(by_kl.sum()), int(by_tempers.sum())


@pytest.mark.parametrize("chance", [0.5, 0.1, 0.02])
def test_they_hold_at_the_worst_time_for_the_worst_belief(chance: float) -> None:
    """The prior gives ½ to "always +" and to "always −"; who looks picks the time and the belief after seeing all rows."""
    assert max(failures(chance, 600, 120)) <= DELTA * 600
    assert max(failures(chance, 600, 120, price=3.0)) > DELTA * 600, "20 times less sure they fail: they are not idle"


def test_adapted_rows_may_have_risks_that_the_past_decides() -> None:
    rng, times = np.random.default_rng(2), np.arange(1.0, 151.0)
    errors, chances = np.zeros((600, 150)), np.full((600, 150), 0.5)
    for t in range(150):
        if t > 0:
            chances[:, t] = np.where(errors[:, t - 1] > 0.0, 0.05, 0.6)
        errors[:, t] = rng.random(600) < chances[:, t]
    risks = np.cumsum(chances, axis=1) / times

    def failed(price: float) -> int:
        return int((tempered_bound(np.cumsum(errors, axis=1) / times, -price, times, DELTA) < risks).any(axis=1).sum())

    assert failed(0.0) <= DELTA * 600 < failed(5.0)


def test_a_learned_belief_has_the_risk_it_says() -> None:
    """Rows in a plane, whose true risks are angles; a prior that has seen the rows is what makes it false."""
    fooled = 0
    for seed in range(8):
        X, y = plane(seed, 40)
        trace = ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.NGVI())
        risk = ovi.pac_bayes(trace, X, y, delta=DELTA)
        drawn = trace.mean + trace.std * np.random.default_rng(seed).standard_normal((4000, 2))
        off = np.abs(np.arctan2(drawn[:, 1], drawn[:, 0])) / math.pi
        assert 0.1 + 0.8 * off.mean() <= risk.gibbs_risk
        assert 0.1 + 0.8 * abs(math.atan2(trace.mean[1], trace.mean[0])) / math.pi <= risk.vote_risk
        coins = np.random.default_rng(100 + seed).choice([-1.0, 1.0], 40)
        wide = np.random.default_rng(200 + seed).standard_normal((40, 30))
        first = ovi.learn(wide, coins, loss=ovi.Hinge(), rule=ovi.NGVI())
        assert ovi.pac_bayes(first, wide, coins, delta=DELTA).gibbs_risk >= 0.5
        known = ovi.MeanField(prior_mean=first.mean.tolist(), prior_std=first.std.tolist())
        again = ovi.learn(wide, coins, loss=ovi.Hinge(), rule=ovi.NGVI(0.01), family=known)
        fooled += ovi.pac_bayes(again, wide, coins, delta=DELTA).gibbs_risk < 0.5
    assert fooled > 4


def test_the_vote_of_a_gaussian_is_its_mean_and_errs_at_most_twice_as_often() -> None:
    """P_q(sign is wrong) ≥ ½ where the mean is wrong, by quadrature of the density itself."""
    mean, std, x = np.array([0.3, -0.2]), np.array([0.5, 0.8]), np.array([1.0, 0.7])

    def density(u: float, w: float) -> float:
        z = (np.array([w, u]) - mean) / std
        return float(np.exp(-0.5 * z @ z) / (2.0 * math.pi * std.prod()))

    wrong = dblquad(density, -6.0, 6.0, -7.0, lambda w: -w * x[0] / x[1], epsabs=1e-6)[0]
    assert wrong == pytest.approx(float(ndtr(-(mean @ x) / math.sqrt(x**2 @ std**2))), abs=1e-5)
    assert (wrong >= 0.5) == (mean @ x <= 0.0)


def test_a_pool_is_a_mixture_of_gaussians_with_a_mixture_as_prior() -> None:
    X, y = plane(3, 150)
    learners = [ovi.Linear(ovi.Hinge(), ovi.NGVI(rate)) for rate in (0.01, 1.0)]
    trace = ovi.Pool(learners, rate=0.2, prior=[0.9, 0.1]).run(X, y)
    state, risk = trace.state, ovi.pac_bayes(trace, X, y)
    each = [ovi.pac_bayes(own, X, y) for own in state.learners]
    assert risk.gibbs_error == pytest.approx(state.weights @ [one.gibbs_error for one in each], rel=1e-12)
    cost = rel_entr(state.weights, [0.9, 0.1]).sum() + state.weights @ [one.kl for one in each]
    assert risk.kl == pytest.approx(cost, rel=1e-12)
    drawn, draws = np.random.default_rng(0), 4000
    parts = drawn.choice(2, draws, p=state.weights)
    weights = np.stack([own.mean for own in state.learners])[parts]
    weights = weights + np.stack([own.std for own in state.learners])[parts] * drawn.standard_normal((draws, 2))
    wrong = (y[:, None] * (X @ weights.T) <= 0.0).mean(axis=1)
    assert risk.vote_error == pytest.approx(float((wrong > 0.5).mean()), abs=0.02)
    assert risk.vote_risk == pytest.approx(2.0 * risk.gibbs_risk)


def test_rows_prepared_as_they_came_are_prepared_once_more() -> None:
    X, y = plane(4, 16)
    X[::7, 1] = np.nan
    named = np.where(y > 0.0, 5, 2)
    inputs = ovi.Inputs(missing=True)
    trace = ovi.auto(100.0 * X + 7.0, named, inputs=inputs)
    risk = ovi.pac_bayes(trace, 100.0 * X + 7.0, named)
    Z = np.nan_to_num(inputs.update_many(inputs.init(2), 100.0 * X + 7.0)[1])
    by_hand = ovi.pac_bayes(trace.state.pooled, Z, y, adapted=True)
    assert risk == by_hand
    assert risk.adapted
    assert played_risk(trace, named, 0.05).gibbs is None
    fixed = ovi.Prepare(ovi.Inputs(fixed=True), ovi.Linear(ovi.Hinge(), ovi.NGVI()))
    start = fixed.init(2).with_inputs(ovi.Inputs().update_many(ovi.Inputs().init(2), 3.0 * plane(5, 90)[0])[0])
    later = fixed.update_many(start, *plane(6, 100))[1]
    assert not ovi.pac_bayes(later, *plane(6, 100)).adapted
    with pytest.raises(ValueError, match="not the rows that were learned from"):
        ovi.pac_bayes(trace, 100.0 * X[::-1] + 7.0, named[::-1])
    with pytest.raises(TypeError, match="give the trace"):
        ovi.pac_bayes(trace.state, X, y)


def test_features_of_a_map_are_made_once_more() -> None:
    """The bound of a composition is that of its leaf on the features that the leaf had."""
    X = np.random.default_rng(0).standard_normal((120, 2))
    y = np.where(np.square(X).sum(axis=1) > 1.4, 1.0, -1.0)
    leaf = ovi.Linear(ovi.Hinge(), ovi.NGVI(), ovi.FullCovariance(box=None))
    inputs = ovi.Inputs()
    for learner, prepared in (
        (ovi.Expand(ovi.Fourier(8), leaf, intercept=False), X),
        (ovi.Prepare(inputs, ovi.Expand(ovi.Fourier(8), leaf)), inputs.update_many(inputs.init(2), X)[1]),
    ):
        state, trace = learner.update_many(learner.init(2), X, y)
        online = prepared is not X
        alone = ovi.pac_bayes(state.alone(), state.space.of(prepared), y, adapted=online)
        assert ovi.pac_bayes(trace, X, y) == alone
        assert alone.adapted == online
        assert alone.gibbs_risk < 1.0


def test_what_was_played_is_bounded_from_one_pass() -> None:
    X, y = plane(8, 400)
    trace = ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.NGVI())
    decisions, gibbs = played_risk(trace, y, 0.05)
    assert gibbs is not None
    errors = np.cumsum(ndtr(-y * trace.prediction / trace.spread)) / np.arange(1, 401)
    assert (decisions >= np.cumsum(y * trace.prediction <= 0.0) / np.arange(1, 401)).all()
    assert gibbs == pytest.approx(tempered_bound(errors, 0.0, np.arange(1, 401), 0.05))
    assert decisions[-1] < ovi.pac_bayes(trace, X, y).vote_risk, "no divergence, no factor of two: but of another classifier"


def test_what_says_nothing_or_has_no_bound_is_refused_or_trivial() -> None:
    X, y = plane(9, 50)
    trace = ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.NGVI())
    point = ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.OGA(0.1))
    thinned = ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.NGVI(), record="none")
    several = ovi.OneVsRest(ovi.Linear(ovi.Hinge(), ovi.NGVI()), 3)
    classes = several.update_many(several.init(2), X, np.arange(50) % 3)[1]
    for call, message in [
        (lambda: ovi.pac_bayes(trace, X, y, delta=0.0), "strictly between 0 and 1"),
        (lambda: ovi.pac_bayes(trace, X, 2.0 * y), "a label of"),
        (lambda: ovi.pac_bayes(trace, X[:0], y[:0]), "needs at least one"),
        (lambda: ovi.pac_bayes(trace, X[:, :1], y), "every block needs the same columns"),
        (lambda: ovi.pac_bayes(trace, np.where(X > 2.0, np.nan, X), y), "the prediction is not finite"),
        (lambda: ovi.pac_bayes(point, X, y), "infinitely far from any prior"),
        (lambda: ovi.pac_bayes(classes, X, y), "several classes"),
        (lambda: played_risk(thinned, y, 0.05), 'record="all"'),
        (lambda: played_risk(trace, y, 1.0), "strictly between 0 and 1"),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            call()
    assert ovi.pac_bayes(trace, np.zeros((50, 2)), y).gibbs_error == 1.0, "a sign that is none is wrong"
    narrow = ovi.learn(
        X, y, loss=ovi.Squared(), rule=ovi.OGAEL(1e3), family=ovi.MeanField(box=ovi.Box((-1.0, 1.0), (0.0, 1.0)))
    )
    assert not narrow.std.any()
    assert ovi.pac_bayes(narrow, X, y).gibbs_risk == ovi.pac_bayes(narrow, X, y).vote_risk == 1.0
