"""The theorems: never exceeded by runs at their rates, and equal to their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.catalogue import labels, name, stream
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import onlinevi as ovi
from onlinevi import bounds
from onlinevi.engine.types import Belief
from onlinevi.ewa import Grid
from onlinevi.guarantees.posterior import batch_vb

LOSSES = [ovi.Hinge(), ovi.Absolute(), ovi.Logistic()]
BOX = ovi.Box((-2.0, 2.0))
FAMILIES = [
    ovi.MeanField(box=BOX),
    ovi.MeanField(prior_mean=0.5, prior_std=0.3, box=BOX),
    ovi.MeanField(prior_std=3.0, box=BOX),
]


def comparators(family: ovi.MeanField, dim: int, seed: int) -> list[Belief]:
    rng = np.random.default_rng(seed)
    prior = family.init(dim)
    drawn = [Belief(rng.uniform(-2, 2, dim), prior.std * rng.uniform(0.01, 1.0, dim)) for _ in range(5)]
    return [prior, Belief(np.full(dim, 2.0), 1e-6 * prior.std), *drawn]


def expected_total(loss: ovi.Loss, X: np.ndarray, y: np.ndarray, family: ovi.MeanField, belief: Belief) -> float:
    a, variance = family.predict(belief, X)
    square = np.sum(np.square(belief.mean) + np.square(belief.std))
    return float(loss(y, a, np.sqrt(variance)).value.sum() + 0.5 * loss.ridge * len(y) * square)


def gradient_squares(loss: ovi.Loss, rule: ovi.Rule, family: ovi.MeanField, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    learner = ovi.Linear(loss=loss, rule=rule, family=family)
    state, sums = learner.init(X.shape[1], len(y)), [0.0]
    for row, label in zip(X, y, strict=True):
        state = learner.update(state, row, label)[0]
        sums.append(state.gradient_square)
    return np.diff(sums)


def rules(family: ovi.MeanField, lipschitz: float, dim: int, count: int) -> list[ovi.Rule]:
    alpha = bounds.kl_strong_convexity(family, dim)
    rate = bounds.sva_best_rate(count=count, lipschitz=lipschitz, kl=float(dim), strong_convexity=alpha)
    step = bounds.svb_best_step(lipschitz=lipschitz, domain=bounds.box_domain(family, dim))
    return [
        ovi.SVA(rate),
        ovi.SVA(ovi.PerHorizon(3.0)),
        ovi.SVA(ovi.PerSqrt(rate * math.sqrt(count))),
        ovi.SVA(ovi.PerStep(1.0)),
        ovi.SVB(ovi.PaperSVB(step)),
        ovi.SVB(ovi.PaperSVB(0.2 * step)),
        ovi.OGAEL(rate),
        ovi.OGAEL(ovi.PerHorizon(1.0)),
    ]


@pytest.mark.parametrize("family", FAMILIES, ids=["wide", "narrow", "wider"])
@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_no_run_exceeds_its_theorem(loss: ovi.Loss, family: ovi.MeanField) -> None:
    for seed, (count, dim) in enumerate([(1, 1), (25, 2), (60, 4)]):
        X, y = stream(loss, count=count, dim=dim, seed=seed)
        lipschitz = bounds.lipschitz(X, y, loss=loss, family=family)
        against = [(one, expected_total(loss, X, y, family, one)) for one in comparators(family, dim, seed)]
        for rule in rules(family, lipschitz, dim, count):
            trace = ovi.learn(X, y, loss=loss, rule=rule, family=family)
            squares = gradient_squares(loss, rule, family, X, y)
            assert squares.max() <= lipschitz**2 * (1 + 1e-12)
            for comparator, total in against:
                regret = trace.state.expected_loss - total
                exact = bounds.after_data(trace, comparator, gradient_squares=squares)
                recorded = bounds.after_data(trace, comparator, lipschitz=lipschitz)
                before = bounds.before_data(trace, comparator, lipschitz=lipschitz)
                values = [exact.value, recorded.value, before.value]
                assert regret <= values[0] + 1e-9
                assert values == sorted(values), "more data, less bound"
                assert math.fsum(exact.terms.values()) == exact.value
                assert exact.valid
                assert regret <= before.trivial + 1e-9


@pytest.mark.parametrize("loss", [ovi.Squared(), ovi.Poisson()], ids=name)
def test_no_run_exceeds_its_theorem_with_losses_lipschitz_on_a_box_only(loss: ovi.Loss) -> None:
    family = ovi.MeanField(box=ovi.Box((-1.0, 1.0)))
    X, y = stream(loss, count=100, dim=3)
    lipschitz = bounds.lipschitz(X, y, loss=loss, family=family)
    for rule in rules(family, lipschitz, 3, 100):
        trace = ovi.learn(X, y, loss=loss, rule=rule, family=family)
        for comparator in comparators(ovi.MeanField(prior_std=0.5), 3, 0)[2:]:
            comparator = family.project(comparator)
            regret = trace.state.expected_loss - expected_total(loss, X, y, family, comparator)
            assert regret <= bounds.before_data(trace, comparator, lipschitz=lipschitz).value


@pytest.mark.parametrize("ridge", [0.1, 2.0])
@pytest.mark.parametrize("kind", [ovi.Hinge, ovi.Absolute, ovi.Logistic])
def test_svb_with_a_ridge_is_below_its_logarithmic_bound(kind: type[ovi.Loss], ridge: float) -> None:
    loss, family = kind(ridge=ridge), ovi.MeanField(box=BOX)
    X, y = stream(loss, count=200, dim=3)
    lipschitz, rule = bounds.lipschitz(X, y, loss=loss, family=family), ovi.SVB(ovi.StronglyConvex(ridge))
    trace = ovi.learn(X, y, loss=loss, rule=rule, family=family)
    squares = gradient_squares(loss, rule, family, X, y)
    assert squares.max() <= lipschitz**2
    for comparator in comparators(family, 3, 1):
        regret = trace.state.expected_loss - expected_total(loss, X, y, family, comparator)
        exact = bounds.after_data(trace, comparator, gradient_squares=squares)
        before = bounds.before_data(trace, comparator, lipschitz=lipschitz)
        assert regret <= exact.value <= bounds.after_data(trace, comparator, lipschitz=lipschitz).value <= before.value
        assert before.value == pytest.approx(lipschitz**2 * (1 + math.log(200)) / ridge)


def test_oga_and_priors_that_differ_between_coordinates() -> None:
    loss = ovi.Absolute()
    X, y = stream(loss, count=80, dim=3)
    scaled = ovi.MeanField(prior_std=[0.1, 1.0, 4.0], box=BOX)
    for rule, family in ((ovi.OGAEL(0.1), scaled), (ovi.SVA(0.1), scaled), (ovi.OGA(0.1), ovi.Point(box=BOX))):
        trace = ovi.learn(X, y, loss=loss, rule=rule, family=family)
        lipschitz = bounds.lipschitz(X, y, loss=loss, family=family)
        for comparator in comparators(scaled, 3, 2):
            u = comparator if family.gaussian else Belief(comparator.mean, np.zeros(3))
            regret = trace.state.expected_loss - expected_total(loss, X, y, scaled, u)
            values = bounds.after_data(trace, u).value, bounds.before_data(trace, u, lipschitz=lipschitz).value
            assert regret <= values[0] <= values[1]


@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_exponential_weights_are_below_theirs(loss: ovi.Loss) -> None:
    family = ovi.MeanField(box=ovi.Box((-1.0, 1.0), None))
    for seed in range(2):
        X, y = stream(loss, count=30, dim=2, seed=seed)
        largest = bounds.largest_loss(X, y, loss=loss, family=family)
        for rate in (0.05, 1.0):
            grid = Grid(loss, rate, family, points=9)
            start, end = grid.init(2), grid.run(X, y).state
            assert end.totals.max() <= largest * 30
            # The infimum over laws p of E_p[Σ loss] + KL(p‖prior)/rate is attained by the posterior (Gibbs).
            least = (start.log_evidence - end.log_evidence) / rate
            assert end.loss <= least + bounds.ewa(rate=rate, count=30, loss_bound=largest, kl=0.0).value
            kl = -math.log(start.weights.flat[end.totals.argmin()])
            bound = bounds.ewa(rate=rate, count=30, loss_bound=largest, kl=kl)
            assert end.loss - end.totals.min() <= bound.value


@pytest.mark.parametrize("family", FAMILIES, ids=["wide", "narrow", "wider"])
@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_the_total_loss_of_sva_without_a_comparator(loss: ovi.Loss, family: ovi.MeanField) -> None:
    X, y = stream(loss, count=200, dim=3)
    lipschitz = bounds.lipschitz(X, y, loss=loss, family=family)
    trace = ovi.learn(X, y, loss=loss, rule=ovi.SVA(ovi.PerHorizon(1.0)), family=family)
    best = batch_vb(X, y, loss=loss, rate=ovi.PerHorizon(1.0), family=family)
    observed, theorem = (bounds.total_loss(trace, best, lipschitz=given) for given in (None, lipschitz))
    assert trace.state.loss <= trace.state.expected_loss <= observed.value <= theorem.value
    at_one = bounds.before_data(trace, best.belief, lipschitz=lipschitz)
    assert theorem.value == pytest.approx(best.expected_loss + at_one.value)
    for comparator in comparators(family, 3, 3):  # the infimum is below any one comparator
        other = (
            expected_total(loss, X, y, family, comparator) + bounds.before_data(trace, comparator, lipschitz=lipschitz).value
        )
        assert theorem.value <= other + best.gap + 1e-9
    with pytest.raises(ValueError, match="call batch_vb with the run's"):
        bounds.total_loss(trace, batch_vb(X, y, loss=loss, rate=1.0, family=family))
    with pytest.raises(ValueError, match="this bound is for SVA"):
        bounds.total_loss(ovi.learn(X, y, loss=loss, rule=ovi.SVB(), family=family), best)


def test_a_point_comparator_by_the_explicit_rate() -> None:
    loss, count, prior_std = ovi.Absolute(), 300, 0.7
    X, y = stream(loss, count=count, dim=3)
    lipschitz = bounds.lipschitz(X, y, loss=loss)
    bound = bounds.sva_mean_field(count=count, dim=3, lipschitz=lipschitz, distance=1.0, prior_std=prior_std)
    std = np.full(3, prior_std / math.sqrt(count))
    family = ovi.MeanField(prior_std=prior_std)
    kl = family.kl(Belief(np.array([1.0, 0.0, 0.0]), std))
    rate = bounds.sva_best_rate(count=count, lipschitz=lipschitz, kl=kl, strong_convexity=prior_std**-2)
    assert bound.terms["gradients and divergence"] == pytest.approx(2 * lipschitz * prior_std * math.sqrt(kl * count))
    trace = ovi.learn(X, y, loss=loss, rule=ovi.SVA(rate), family=family)
    for direction in np.random.default_rng(0).standard_normal((20, 3)):
        u = direction / np.linalg.norm(direction)
        assert trace.state.loss - loss(y, X @ u).value.sum() <= bound.value


# --- best rates


@given(kl=st.floats(0.1, 50.0), size=st.floats(0.1, 10.0), alpha=st.floats(0.01, 100.0), count=st.integers(1, 10**6))
@settings(max_examples=30, deadline=None)
def test_the_best_rates_are_best(kl: float, size: float, alpha: float, count: int) -> None:
    before = {"count": count, "lipschitz": size, "kl": kl, "strong_convexity": alpha}
    after = {"gradient_square": size**2 * count, "kl": kl, "strong_convexity": alpha}
    domain = bounds.ball_domain(size, alpha, 3)
    choices = [
        (bounds.sva_best_rate(**before), lambda rate: bounds.sva(rate=rate, **before).value),
        (bounds.sva_observed_best_rate(**after), lambda rate: bounds.sva_observed(rate=rate, **after).value),
        (
            bounds.svb_best_step(lipschitz=size, domain=domain),
            lambda step: bounds.svb_convex(step=step, count=count, lipschitz=size, domain=domain).value,
        ),
    ]
    for best, value in choices:
        assert value(best) <= min(value(1.001 * best), value(0.999 * best))
    assert bounds.sva(rate=choices[0][0], **before).value == pytest.approx(bounds.sva_at_best_rate(**before).value)
    observed = math.sqrt(2 * kl * size**2 * count / alpha)
    assert bounds.sva_observed(rate=choices[1][0], **after).value == pytest.approx(observed)
    best_svb = bounds.svb_convex(step=choices[2][0], count=count, lipschitz=size, domain=domain).value
    assert best_svb == pytest.approx(2 * domain.svb_diameter * size * math.sqrt(count))


@given(shares=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30), power=st.sampled_from([0.0, 0.5, 1.0]))
@settings(max_examples=60, deadline=None)
def test_front_loaded_gradients_weigh_the_most(shares: list[float], power: float) -> None:
    squares, lipschitz = 4.0 * np.array(shares), 2.0
    weights = np.arange(1.0, len(shares) + 1.0) ** -power
    loaded = bounds.front_loaded(gradient_square=squares.sum(), count=len(shares), lipschitz=lipschitz)
    assert loaded.sum() == pytest.approx(squares.sum())
    assert loaded.max() <= 4.0
    assert weights @ squares <= weights @ loaded + 1e-9
    # By the largest sum: with weights 1/√t no more than 2·L·√(Σ squares).
    if power == 0.5:
        assert weights @ loaded <= 2.0 * lipschitz * math.sqrt(squares.sum()) + 1e-9


# --- constants


@pytest.mark.parametrize("loss", [*LOSSES, ovi.Squared(), ovi.Poisson(), ovi.Pinball(0.2), ovi.Hinge(ridge=0.3)], ids=name)
def test_no_gradient_is_longer_than_the_lipschitz_constant(loss: ovi.Loss) -> None:
    family = ovi.MeanField(prior_mean=0.2, prior_std=[0.5, 1.5], box=ovi.Box(([-1.0, -0.3], [1.0, 2.0])))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 2)) * [0.3, 1.0]
    y = labels(loss, rng, 20)
    largest = bounds.lipschitz(X, y, loss=loss, family=family)
    at = rng.random((400, 4))
    at[:200] = np.round(at[:200])  # corners
    means, stds = np.array([-1.0, -0.3]) + at[:, :2] * [2.0, 2.3], np.maximum(at[:, 2:], 1e-9) * [0.5, 1.5]
    part = loss(y, means @ X.T, np.sqrt(stds**2 @ (X**2).T))
    means, stds = means[:, None], stds[:, None]
    slopes = part.slope[..., None] * X + loss.ridge * means
    along = np.broadcast_to(part.curvature, (400, 20))[..., None] * stds * X**2 + loss.ridge * stds
    longest = float(np.sqrt((slopes**2).sum(axis=-1) + (along**2).sum(axis=-1)).max())
    assert longest <= largest
    if isinstance(loss, ovi.Squared):
        assert longest == pytest.approx(largest), "at a corner"


def test_diameters_of_boxes() -> None:
    family = ovi.MeanField(prior_std=[0.5, 2.0], box=ovi.Box(([-1.0, 0.0], [2.0, 4.0]), (0.25, 1.0)))
    domain = bounds.box_domain(family, 2)

    def farthest(value) -> float:  # type: ignore[no-untyped-def]
        low, high = np.array([-1.0, 0.0, 0.125, 0.5]), np.array([2.0, 4.0, 0.5, 2.0])
        corners = [low + np.array([int(bit) for bit in f"{k:08b}"]).reshape(2, 4) * (high - low) for k in range(256)]
        return max(value(*pair) for pair in corners)

    assert domain.diameter == pytest.approx(farthest(lambda p, q: float(np.linalg.norm(p - q))))
    steps = farthest(lambda p, q: math.sqrt(0.5 * np.sum((p[:2] - q[:2]) ** 2) + np.sum(p[2:] ** 2)))
    assert domain.svb_diameter == pytest.approx(steps)
    assert domain.radius == pytest.approx(farthest(lambda p, q: float(np.linalg.norm(p))))
    square = bounds.box_domain(ovi.MeanField(prior_std=3.0, box=ovi.Box((-2.0, 2.0))), 5)
    assert square.diameter**2 == pytest.approx(5 * (4 * 2.0**2 + 3.0**2))
    ball = bounds.ball_domain(2.0, 3.0, 4)
    assert ball.svb_diameter**2 == pytest.approx(0.5 * 16.0 + 9.0)


def test_the_divergence_is_as_strongly_convex_as_it_says() -> None:
    family = ovi.MeanField(prior_std=[0.5, 2.0])
    alpha, rng = bounds.kl_strong_convexity(family, 2), np.random.default_rng(0)
    assert alpha == 0.25

    def excess(point: np.ndarray) -> float:
        """KL − α/2·‖μ‖², which must be convex."""
        return family.kl(Belief(point[:2], point[2:])) - 0.5 * alpha * point @ point

    for _ in range(200):
        one, two = rng.uniform(0.01, 3.0, (2, 4))
        assert excess((one + two) / 2) <= (excess(one) + excess(two)) / 2 + 1e-12


def test_the_squared_distance_is_below_the_divergence() -> None:
    """What turns OGA-EL's distance into a divergence: its infimum over KL is where both touch, at the prior."""
    family = ovi.MeanField(prior_std=0.7)

    def ratio(point: np.ndarray) -> float:
        kl = family.kl(Belief(point[:1], np.exp(point[1:])))
        return kl / max((point[0] ** 2 + (math.exp(point[1]) - 0.7) ** 2), 1e-12)

    least = minimize(ratio, [1.0, -1.0], method="Nelder-Mead").fun
    assert least >= 0.5 * bounds.kl_strong_convexity(family, 1) * (1 - 1e-6)


# --- new data


def test_online_to_batch_on_fresh_data() -> None:
    loss, rng = ovi.Hinge(), np.random.default_rng(0)
    family = ovi.MeanField(box=ovi.Box((-1.0, 1.0)))

    def draw(count: int) -> tuple[np.ndarray, np.ndarray]:
        X = rng.uniform(-1, 1, (count, 2))
        return X, np.where(X @ [1.0, 0.5] + 0.5 * rng.standard_normal(count) > 0, 1.0, -1.0)

    fresh = draw(20_000)
    failures = 0
    for _ in range(20):
        X, y = draw(200)
        trace = ovi.learn(X, y, loss=loss, rule=ovi.SVB(), family=family)
        risk = float(loss(fresh[1], fresh[0] @ trace.average_mean).value.mean())
        confident = bounds.online_to_batch_confident(
            average_loss=trace.state.average_loss, count=200, loss_bound=3.0, failure=0.05
        )
        failures += risk > confident.value
        regret = bounds.before_data(trace, Belief(np.zeros(2), np.ones(2)), lipschitz=math.sqrt(2))
        expected = bounds.online_to_batch(best_risk=1.0, regret=regret, count=200)
        assert expected.value == pytest.approx(1.0 + regret.value / 200)
    assert failures <= 1
    assert not bounds.online_to_batch(best_risk=0.0, regret=bounds.Bound("printed", {}, False, "why"), count=1).valid


# --- when a bound says something


def test_vacuous_until_it_is_not() -> None:
    family = ovi.MeanField(box=BOX)
    domain = bounds.box_domain(family, 3)
    step = bounds.svb_best_step(lipschitz=2.0, domain=domain)

    def at(count: int) -> bounds.Bound:
        return bounds.svb_convex(step=step, count=count, lipschitz=2.0, domain=domain)

    first = bounds.informative_from(at)
    assert first is not None
    assert at(first - 1).vacuous
    assert not at(first).vacuous
    # 2·D₁·L·√T < L·D·T from T > (2·D₁/D)² on.
    assert first == math.floor((2 * domain.svb_diameter / domain.diameter) ** 2) + 1
    assert bounds.informative_from(lambda T: bounds.ewa(rate=8.0, count=T, loss_bound=1.0, kl=1.0)) is None
    assert bounds.Bound("nothing known", {"all": 1.0}).vacuous is False


def test_a_bound_shows_its_terms() -> None:
    bound = bounds.ewa(rate=0.5, count=16, loss_bound=1.0, kl=3.0)
    assert repr(bound) == "Bound(EWA: 7 = 1 (losses) + 6 (divergence))"
    printed = bounds.oga_el_divergence(step=1.0, count=1, lipschitz=1.0, kl=1.0, strong_convexity=4.0, printed=True)
    assert "not valid: " in repr(printed)
