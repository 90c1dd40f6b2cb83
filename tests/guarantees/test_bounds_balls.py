"""The theorems, the certificate and the best in hindsight on balls, against streams and comparators made to break them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from helpers.adversaries import OBLIVIOUS, Stream
from helpers.catalogue import name
from helpers.trials import Opponent, Verdict, opponent

import onlinevi as ovi
from onlinevi import bounds
from onlinevi.engine import using_engine
from onlinevi.engine.types import Belief
from onlinevi.guarantees import Setting, calculate, hindsight, loss_bound
from onlinevi.guarantees.bounds.table import THEOREMS

RADIUS = 1.5
LOSSES = [ovi.Hinge(), ovi.Absolute(), ovi.Squared()]


def family_of(rule: ovi.Rule, prior_std: float = 0.4, start: float = 0.0) -> ovi.Family:
    ball = ovi.Ball(mean=RADIUS)
    return ovi.MeanField(start, prior_std, ball) if rule.gaussian else ovi.Point(start, ball)


def rules(lipschitz: float, domain: bounds.Domain, count: int) -> list[ovi.Rule]:
    """Every rule with a theorem, at a rate that makes its bound small and at one that does not."""
    step = bounds.svb_best_step(lipschitz=lipschitz, domain=domain)
    reach = RADIUS / (lipschitz * math.sqrt(count))
    return [
        ovi.SVA(reach / 0.16),
        ovi.SVA(ovi.PerSqrt(1.0)),
        ovi.SVA(ovi.Adaptive()),
        ovi.SVB(ovi.PaperSVB(step)),
        ovi.SVB(ovi.Adaptive()),
        ovi.OGAEL(reach / 0.16),
        ovi.OGAEL(ovi.Adaptive()),
        ovi.OGA(reach),
        ovi.OGA(ovi.Adaptive()),
    ]


def comparators(loss: ovi.Loss, data: Stream, rng: np.random.Generator, std: float) -> Iterator[Belief]:
    """The best of the ball, points all over its surface, and stds from narrow to as long as they may be."""
    X, y = data
    dim = X.shape[1]
    away = rng.standard_normal((3, dim))
    means = [hindsight(X, y, loss=loss, box=None, radius=RADIUS, tolerance=0.01).mean]
    means += list(RADIUS * away / np.linalg.norm(away, axis=1)[:, None])
    for mean in means:
        yield Belief(mean, np.full(dim, std / math.sqrt(len(y))))
        yield Belief(mean, np.full(dim, std))
        yield Belief(mean, std * math.sqrt(dim) * np.maximum(np.eye(dim)[0], 1e-3 / math.sqrt(dim)) * (1.0 - 1e-3))


def verdicts(rule: ovi.Rule, loss: ovi.Loss, data: Stream, opponents: list[Opponent], start: float) -> Iterator[Verdict]:
    X, y = data
    family = family_of(rule, start=start)
    state = ovi.learn(X, y, loss=loss, rule=rule, family=family, record="none", average=False).state
    lipschitz = bounds.lipschitz(X, y, loss=loss, family=family)
    for belief, expected, at_mean in opponents:
        there = belief if rule.gaussian else Belief(belief.mean, np.zeros_like(belief.mean))
        against = expected if rule.gaussian else at_mean
        regret, size = state.expected_loss - against, abs(state.expected_loss) + abs(against)
        yield Verdict(repr(rule), regret, bounds.before_data(state, there, lipschitz=lipschitz), size)
        yield Verdict(repr(rule), regret, bounds.after_data(state, there, lipschitz=lipschitz), size)
        everywhere = bounds.everywhere(state.plan, lipschitz=lipschitz)
        if everywhere is not None:
            point = Verdict(repr(rule), state.loss - at_mean, bounds.Bound("", {"all": everywhere(len(y))}), size)
            yield point


@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_no_stream_breaks_a_theorem_on_a_ball(loss: ovi.Loss) -> None:
    seen, largest = set(), 0.0
    for seed, adversary in enumerate(OBLIVIOUS):
        rng = np.random.default_rng(seed)
        data = adversary(loss, rng, 24, 3)
        opponents = [opponent(loss, data, belief) for belief in comparators(loss, data, rng, 0.4)]
        lipschitz = bounds.lipschitz(*data, loss=loss, family=family_of(ovi.SVA()))
        chosen = rules(lipschitz, bounds.domain_of(family_of(ovi.SVA()), 3), 24)
        for rule in chosen[seed % 2 :: 2]:
            for verdict in verdicts(rule, loss, data, opponents, [0.0, 0.3][seed % 2]):
                assert not verdict.broken, (adversary, verdict)
                seen.add(verdict.name.split("(")[0])
                largest = max(largest, verdict.ratio)
    assert seen == {"SVA", "SVB", "OGAEL", "OGA"}
    assert largest > 0.5  # they were tried


@pytest.mark.parametrize("loss", [ovi.Squared(), ovi.Poisson(), ovi.Hinge(ridge=0.3)], ids=name)
def test_no_gradient_in_the_ball_is_longer_than_its_constant(loss: ovi.Loss) -> None:
    rng, family = np.random.default_rng(3), family_of(ovi.SVA())
    X, y = 0.7 * rng.standard_normal((4, 3)), np.array([1.0, 0.0, 1.0, 1.0]) if loss.ridge == 0.0 else np.ones(4)
    most, largest = bounds.lipschitz(X, y, loss=loss, family=family), 0.0
    radius = 0.4 * math.sqrt(3.0)
    means, stds = rng.standard_normal((4000, 3)), np.abs(rng.standard_normal((4000, 3))) ** 3
    means[:4] = np.sign(-X @ X.T).diagonal()[:, None] * X
    means *= RADIUS / np.linalg.norm(means, axis=1)[:, None]
    stds *= radius / np.linalg.norm(stds, axis=1)[:, None]
    for x, label in zip(X, y, strict=True):
        spread = np.sqrt(np.square(stds) @ np.square(x))
        at = loss(label, means @ x, spread)
        by_mean = at.slope[:, None] * x + loss.ridge * means
        by_std = np.broadcast_to(at.curvature, spread.shape)[:, None] * stds * x**2 + loss.ridge * stds
        largest = max(largest, float(np.sqrt(np.square(by_mean).sum(axis=1) + np.square(by_std).sum(axis=1)).max()))
    assert 0.6 * most < largest <= most * (1.0 + 1e-12)


def test_no_loss_in_the_ball_is_larger_than_its_bound() -> None:
    rng, ball = np.random.default_rng(4), ovi.Ball(mean=RADIUS)
    X = rng.standard_normal((6, 3))
    means = np.vstack([X, -X, rng.standard_normal((500, 3))])
    means *= RADIUS / np.linalg.norm(means, axis=1)[:, None]
    for loss in (ovi.Hinge(), ovi.Squared(ridge=0.2)):
        worst = max(float((loss(label, X @ means.T).value).max()) for label in (-1.0, 1.0)) + 0.5 * loss.ridge * RADIUS**2
        length = float(np.linalg.norm(X, axis=1).max())
        assert loss_bound(loss, X, box=ball, labels=[-1.0, 1.0]) == pytest.approx(worst, rel=1e-9)
        assert loss_bound(loss, length, box=ball, labels=[-1.0, 1.0], dim=3) == pytest.approx(worst, rel=1e-9)
        y = np.where(np.arange(6) % 2 == 0, 1.0, -1.0)
        most = bounds.largest_loss(X, y, loss=loss, family=family_of(ovi.SVA()))
        tried = float(loss(y[:, None], X @ means.T).value.max()) + 0.5 * loss.ridge * RADIUS**2
        assert most == pytest.approx(tried, rel=1e-9)


@pytest.mark.parametrize("rule", [ovi.OGA(0.2), ovi.SVA(0.3), ovi.NGVI(), ovi.Implicit()], ids=name)
@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_the_certificate_holds_on_the_ball(loss: ovi.Loss, rule: ovi.Rule) -> None:
    for seed, adversary in enumerate(OBLIVIOUS[:4]):
        X, y = adversary(loss, np.random.default_rng(seed), 40, 3)
        trace = ovi.learn(X, y, loss=loss, rule=rule, family=family_of(rule))
        live = ovi.certificate(trace)
        best = hindsight(X, y, loss=loss, box=None, radius=RADIUS)
        assert trace.state.loss - len(y) * best.value <= live.regret
        assert live.regret == live.within(RADIUS)
        assert live.lower_bound <= best.value + best.gap


@pytest.mark.parametrize("rule", ["svb", "oga-el"])
def test_the_bound_has_no_dimension_in_it(rule: str) -> None:
    """Section 4.2: with ‖m‖ ≤ M and ‖std‖ ≤ S it is the same in 10 and in 10⁴ dimensions; that of the box grows by √d."""

    def values(dim: int, radius: float | None) -> dict[str, float]:
        setting = Setting(1000, dim, ovi.Hinge(), prior_std=2.0 / math.sqrt(dim), reach=3.0, radius=radius)
        entries = calculate(setting, rule)
        kept = {"SVB, convex", "SVB, adaptive", "OGA-EL, adaptive"}  # the last of a name is that at the best rate
        return {entry.bound.name: entry.bound.value for entry in entries if entry.bound.name in kept}

    small, large = values(10, 3.0), values(10_000, 3.0)
    assert small == pytest.approx(large, rel=1e-12)
    for statement, value in values(10_000, None).items():
        assert value > 20.0 * values(10, None)[statement]
        squared = 4.0 * 9.0 + 2.0 * 4.0 if statement.startswith("OGA-EL") else 2.0 * 4.0 * 9.0 + 4.0 * 4.0
        root = math.sqrt(2.0 * squared if statement.startswith("OGA-EL") else squared)
        assert large[statement] == pytest.approx(root * math.sqrt(1000.0), rel=1e-12)


def test_the_promise_of_sva_is_against_the_farthest_point() -> None:
    family = ovi.MeanField([0.3, -0.4], 0.5, ovi.Ball(mean=RADIUS))
    plan = ovi.Linear(ovi.Hinge(), ovi.SVA(ovi.PerSqrt(0.7)), family).plan(2)
    promised, T = bounds.everywhere(plan, lipschitz=1.3), 50

    def at(u: np.ndarray) -> float:
        kl = family.kl(Belief(u, np.full(2, 0.5 / math.sqrt(T))))
        main = bounds.sva_per_sqrt(step=0.7, count=T, lipschitz=1.3, kl=kl, strong_convexity=4.0).value
        return main + 1.3 * 0.5 * math.sqrt(2.0 * T)

    angles = np.linspace(0.0, 2.0 * np.pi, 2001)
    most = max(at(RADIUS * np.array([np.cos(angle), np.sin(angle)])) for angle in angles)
    assert promised is not None
    assert promised(T) == pytest.approx(most, rel=1e-6)


@pytest.mark.compiled
def test_a_run_in_ten_thousand_dimensions_keeps_the_bound() -> None:
    """Rows of one coordinate each: what a run pays beside the best of the ball depends on T alone."""
    regrets = {}
    for dim in (100, 10_000):
        X, y = np.eye(dim)[:100], np.where(np.arange(100) % 3 == 0, -1.0, 1.0)
        family = ovi.MeanField(prior_std=2.0 / math.sqrt(dim), box=ovi.Ball(mean=3.0))
        step = bounds.svb_best_step(lipschitz=1.0, domain=bounds.domain_of(family, dim))
        state = ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.SVB(ovi.PaperSVB(step)), family=family).state
        u = np.zeros(dim)
        u[:100] = 3.0 * y / 10.0  # the best of the ball, by symmetry
        bound = bounds.before_data(state, Belief(u, np.zeros(dim)), lipschitz=1.0)
        regrets[dim] = state.loss - float(ovi.Hinge()(y, X @ u).value.sum())
        assert bound.value == pytest.approx(2.0 * math.sqrt(22.0) * 10.0, rel=1e-12)
        assert 0.2 * bound.value < regrets[dim] <= bound.value
        assert np.linalg.norm(state.mean) <= 3.0 * (1.0 + 1e-12)
    assert regrets[100] == pytest.approx(regrets[10_000], rel=1e-9)


@pytest.mark.compiled
def test_both_engines_scale_back_alike() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 9))
    y = np.sign(X @ rng.standard_normal(9))
    learner = ovi.Linear(ovi.Hinge(), ovi.SVB(), ovi.MeanField(box=ovi.Ball(mean=0.4)))
    compiled, _ = learner.update_many(learner.init(9), X, y)
    with using_engine("interpreted"):
        interpreted, _ = learner.update_many(learner.init(9), X, y)
    np.testing.assert_allclose(compiled.array, interpreted.array, rtol=1e-9, atol=1e-12)
    assert np.linalg.norm(compiled.mean) == pytest.approx(0.4, rel=1e-12)


def test_what_has_no_theorem_on_a_ball_is_refused() -> None:
    X, y = np.eye(2), [1.0, -1.0]
    state = ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.SVA(0.1), family=family_of(ovi.SVA())).state
    for outside in (Belief(np.array([2.0, 0.0]), 0.1), Belief(0.0, np.array([0.6, 0.6]))):
        with pytest.raises(ValueError, match=r"outside of the domain: its (mean|std) has length"):
            bounds.before_data(state, outside, lipschitz=1.0)
    open_ball = ovi.MeanField(box=ovi.Ball(mean=None))
    with pytest.raises(ValueError, match="both radii of the ball"):
        bounds.domain_of(open_ball, 2)

    class Mine(bounds.Theorem):
        name, rules, rates, rates_in_words = "mine", (ovi.NGVI,), (ovi.Rate,), "any"

    bounds.register(Mine())
    try:
        state = ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.NGVI(), family=family_of(ovi.SVA())).state
        with pytest.raises(ValueError, match="proved for a Box, not for a ball"):
            bounds.before_data(state, Belief(0.0, 0.1), lipschitz=1.0)
    finally:
        del THEOREMS[0]
