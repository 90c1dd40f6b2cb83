"""Theorems on trial: what each promised about a run, beside what the run did against comparators made to hurt it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from helpers.adversaries import BOX, OBLIVIOUS, Greedy, Stream

import onlinevi as ovi
from onlinevi import bounds
from onlinevi.beliefs import edges
from onlinevi.engine.types import Belief, Expected, Real
from onlinevi.ewa import Experts
from onlinevi.guarantees import batch_vb, hindsight
from onlinevi.rules import ScaleNGVI

TOLERANCE = 1e-10
"""What floats may change, as a share of the two losses and the bound: the losses' closed forms are good to 3·10⁻¹¹."""

LOSSES = [ovi.Hinge(), ovi.Logistic(), ovi.Absolute(), ovi.Pinball(0.1), ovi.Squared()]
RULE_NAMES = {ovi.OGAEL: "OGA-EL"}
PRIOR_STDS = [1.0, 0.3, 3.0]
RIDGES = [0.1, 1.0]
GREEDY_SHARE = 40
"""One stream in so many sees the decisions. It is played event by event, a stream for every run."""


@dataclass(frozen=True)
class LinearLoss(ovi.Loss):
    """y·z: the label is the slope, in [−1, 1]. Its tangents lose nothing."""

    @property
    def lipschitz(self) -> float:
        return 1.0

    @staticmethod
    def expected(y: Real, a: Real, v: Real) -> Expected:
        return Expected(y * a, y + 0.0 * a, 0.0 * a)


class Opponent(NamedTuple):
    """A comparator, and what the stream costs it: under its belief, and at its mean."""

    belief: Belief
    expected_loss: float
    loss: float


class Verdict(NamedTuple):
    """One statement about one run and one comparator."""

    name: str
    regret: float
    bound: bounds.Bound
    size: float
    """Of the sums whose difference the regret is."""

    @property
    def ratio(self) -> float:
        """Of no meaning where the bound is 0: nothing was promised but that nothing is lost."""
        return self.regret / self.bound.value if self.bound.value > 0.0 else 0.0

    @property
    def broken(self) -> bool:
        """A valid bound exceeded by more than floats explain."""
        return self.bound.valid and self.regret > self.bound.value + TOLERANCE * (self.size + self.bound.value)


@dataclass(frozen=True, eq=False)
class Trial:
    """A rule at a rate that a theorem is for, and the stream it runs on."""

    loss: ovi.Loss
    rule: ovi.Rule
    family: ovi.Family
    X: np.ndarray
    y: np.ndarray

    @cached_property
    def state(self) -> ovi.State:
        parts = {"loss": self.loss, "rule": self.rule, "family": self.family}
        return ovi.learn(self.X, self.y, record="none", average=False, **parts).state

    @cached_property
    def lipschitz(self) -> float:
        return bounds.lipschitz(self.X, self.y, loss=self.loss, family=self.family)

    @cached_property
    def states(self) -> list[ovi.State]:
        """Behind no event, one, two, …"""
        learner = ovi.Linear(loss=self.loss, rule=self.rule, family=self.family, average=False)
        states = [learner.init(self.X.shape[1], len(self.y))]
        for row, label in zip(self.X, self.y, strict=True):
            states.append(learner.update(states[-1], row, label)[0])
        return states

    @cached_property
    def gradient_squares(self) -> np.ndarray | None:
        """One an event, where the rate falls with time; others need what the state keeps."""
        if not self.rule.step_rate.varies or isinstance(self.rule.step_rate, ovi.Adaptive):
            return None
        return np.diff([state.gradient_square for state in self.states])

    def judged(self, opponents: list[Opponent]) -> list[Verdict]:
        """The worst verdict on every statement that speaks of this rule and its rate."""
        if isinstance(self.rule, ovi.SVB) or self.theorem == "NGVI, floor":  # its bounds are the same for every comparator
            opponents = [min(opponents, key=lambda opponent: opponent.expected_loss)]
        return worst(verdict for opponent in opponents for verdict in self.verdicts(opponent))

    def verdicts(self, opponent: Opponent) -> Iterator[Verdict]:
        name, state = self.theorem, self.state
        comparator, against, at_mean = opponent
        regret, size = state.expected_loss - against, abs(state.expected_loss) + abs(against)
        before = bounds.before_data(state, comparator, lipschitz=self.lipschitz)
        after = bounds.after_data(state, comparator, gradient_squares=self.gradient_squares)
        yield Verdict(name, regret, before, size)
        yield Verdict(f"{name}, observed", regret, after, size)
        for special in (*self._divergence(comparator), *self._best_rate(comparator), *self._printed_svb(), *self._floored):
            yield Verdict(special.name, regret, special, size)
        for point in (*self._mean_field(comparator), *self._explicit(comparator)):
            yield Verdict(point.name, state.loss - at_mean, point, abs(state.loss) + abs(at_mean))

    @property
    def theorem(self) -> str:
        if isinstance(self.rule.step_rate, ovi.Explicit):
            return f"{type(self.rule).__name__}, explicit"
        if isinstance(self.rule.step_rate, ovi.Adaptive):
            return f"{RULE_NAMES.get(type(self.rule), type(self.rule).__name__)}, adaptive"
        match self.rule:
            case ovi.SVA():
                return "SVA, schedule" if self.rule.step_rate.varies else "SVA"
            case ScaleNGVI():
                return "NGVI, scale"
            case ovi.NGVI():
                return "NGVI, floor"
            case ovi.SVB():
                return f"SVB, {'strongly ' if isinstance(self.rule.step_rate, ovi.StronglyConvex) else ''}convex"
            case _:
                return RULE_NAMES.get(type(self.rule), type(self.rule).__name__)

    @property
    def numbers(self) -> dict[str, float]:
        return {"count": len(self.y), "lipschitz": self.lipschitz}

    def _divergence(self, comparator: Belief) -> Iterator[bounds.Bound]:
        """OGA-EL by the KL to its prior, and both bounds of Theorem 4 as printed; the first of these holds."""
        if self.theorem == "OGA-EL":
            dim = self.X.shape[1]
            alpha, prior = bounds.kl_strong_convexity(self.family, dim), self.family.init(dim)
            step = self.rule.step_rate.schedule(len(self.y)).scale / alpha
            parts = {"step": step, "kl": self.family.kl(comparator), "strong_convexity": alpha, **self.numbers}
            distance = math.dist([*comparator.mean, *comparator.std], [*prior.mean, *prior.std])
            yield bounds.oga_el_divergence(**parts)
            yield printed(bounds.oga_el_divergence(printed=True, **parts))
            yield printed(bounds.oga_el(step=step, distance=distance, printed=True, **self.numbers))

    def _best_rate(self, comparator: Belief) -> Iterator[bounds.Bound]:
        """Where the rate is the best one for this very comparator."""
        if not isinstance(self.rule, ovi.SVA) or self.rule.step_rate.varies or not self.family.kl(comparator) > 0.0:
            return
        parts = {
            "kl": self.family.kl(comparator),
            "strong_convexity": bounds.kl_strong_convexity(self.family, self.X.shape[1]),
        }
        best = bounds.sva_best_rate(**parts, **self.numbers)
        if math.isclose(self.state.plan.step_rate.schedule(len(self.y)).scale, best, rel_tol=1e-9):
            yield bounds.sva_at_best_rate(**parts, **self.numbers)

    def _mean_field(self, comparator: Belief) -> Iterator[bounds.Bound]:
        """The same for the comparator's mean as a point, where its std is the one of that theorem."""
        std = self.family.init(self.X.shape[1]).std
        narrow = np.allclose(comparator.std, std / math.sqrt(len(self.y)), rtol=1e-9)
        for _ in self._best_rate(comparator) if narrow and np.ptp(std) == 0.0 else ():
            yield bounds.sva_mean_field(**self._point(comparator))

    def _explicit(self, comparator: Belief) -> Iterator[bounds.Bound]:
        """Of section 4.1's rate, for the comparator's mean as a point, where L is that of the stream played."""
        if self.theorem == "SVA, explicit" and math.isclose(self.rule.step_rate.c, self.lipschitz, rel_tol=1e-9):
            bound = bounds.sva_explicit(**self._point(comparator))
            yield bounds.Bound(f"{bound.name}, to points", bound.terms)

    def _point(self, comparator: Belief) -> dict[str, float]:
        """The comparator's mean as the theorems about points take it."""
        mean, std = self.family.init(self.X.shape[1])
        away = float(np.linalg.norm(comparator.mean - mean))
        return {"dim": self.X.shape[1], "distance": away, "prior_std": float(std[0]), **self.numbers}

    @cached_property
    def _floored(self) -> list[bounds.Bound]:
        """The bound of a floor with the sums that no state keeps: what the mean moved with, and what the spread cost."""
        if self.theorem != "NGVI, floor":
            return []
        gradients = np.diff([state.gradient for state in self.states], axis=0)
        means, stds = (np.array([getattr(state, part) for state in self.states]) for part in ("mean", "std"))
        products = np.diff([state.product for state in self.states])
        low, high, _, _ = edges(self.family, self.X.shape[1])
        found = bounds.ngvi_floor_observed(
            step=self.rule.step_rate.schedule(len(self.y)).scale,
            reach=float(np.linalg.norm((high - low) / stds[-1])),
            energy=float(np.sum(np.square(gradients * stds[1:]))),
            spread=max(float(np.sum(products - np.sum(gradients * means[:-1], axis=1))), 0.0),
        )
        return [bounds.Bound("NGVI, floor, event by event", found.terms)]

    def _printed_svb(self) -> Iterator[bounds.Bound]:
        if self.theorem == "SVB, convex":
            domain = bounds.box_domain(self.family, self.X.shape[1])
            step = printed_step(domain, self.lipschitz)
            if math.isclose(self.rule.step_rate.c, step, rel_tol=1e-9):
                yield printed(bounds.svb_convex(step=step, domain=domain, printed=True, **self.numbers))


def printed(bound: bounds.Bound) -> bounds.Bound:
    return bounds.Bound(f"{bound.name}, as printed", bound.terms, bound.valid, bound.note, bound.trivial)


def printed_step(domain: bounds.Domain, lipschitz: float) -> float:
    """√2·D/L: the step of SVB's theorem in print."""
    return math.sqrt(2.0) * domain.theorem_diameter / lipschitz


def opponent(loss: ovi.Loss, data: Stream, belief: Belief) -> Opponent:
    X, y = data
    spread, half_ridge = np.sqrt(np.square(X) @ np.square(belief.std)), 0.5 * loss.ridge * len(y)
    expected, point = (float(loss(y, X @ belief.mean, v).value.sum()) for v in (spread, 0.0))
    mean_square, variance = float(np.sum(np.square(belief.mean))), float(np.sum(np.square(belief.std)))
    return Opponent(belief, expected + half_ridge * (mean_square + variance), point + half_ridge * mean_square)


# --- streams against every rule


def family_of(seed: int, rule: ovi.Rule, shape: tuple[int, int]) -> ovi.Family:
    """Three priors in turn, with a floor its best; a start off the centre, so that one side of the box is farther."""
    box, start = ovi.Box((-BOX, BOX)), [0.0, 0.5 * BOX][seed % 2]
    if rule.std_floor > 0.0:
        return ovi.MeanField(start, 2.0 * BOX * math.sqrt(shape[1] / shape[0]), box)
    return ovi.MeanField(start, PRIOR_STDS[seed % 3], box) if rule.gaussian else ovi.Point(start, box)


def is_against_points(rule: ovi.Rule) -> bool:
    return not rule.gaussian or rule.std_floor > 0.0


def rules(loss: ovi.Loss, family: ovi.MeanField, lipschitz: float, count: int, target: Belief, turn: int) -> list[ovi.Rule]:
    """Every rule with a theorem, at rates that it is for: the best before data and, in turn, others smaller and larger."""
    if loss.ridge:
        return [ovi.SVB(ovi.StronglyConvex([1.0, 0.5][turn] * loss.ridge))]
    dim, domain = len(target.mean), bounds.box_domain(family, len(target.mean))
    alpha, prior = bounds.kl_strong_convexity(family, dim), family.init(dim)
    best = bounds.sva_best_rate(count=count, lipschitz=lipschitz, kl=family.kl(target), strong_convexity=alpha)
    reach = math.dist([*target.mean, *target.std], [*prior.mean, *prior.std]) / (lipschitz * math.sqrt(count))
    step = bounds.svb_best_step(lipschitz=lipschitz, domain=domain)
    floor, narrow = [0.3, 0.7][turn], domain.mean_diameter / math.sqrt(count)
    far: dict[str, float] = {"reach": domain.mean_diameter / (floor * narrow), "prior_std": narrow}
    return [
        ovi.SVA(best),
        ovi.SVA([10.0 * best, ovi.PerHorizon(1.0)][turn]),
        ovi.SVA(ovi.PerSqrt(best * math.sqrt(count))),
        ovi.SVB(ovi.PaperSVB(step)),
        ovi.SVB(ovi.PaperSVB([0.2 * step, printed_step(domain, lipschitz)][turn])),
        ovi.OGAEL([reach * alpha, ovi.PerHorizon(1.0)][turn]),
        ovi.OGA([reach, ovi.PerHorizon(1.0)][turn]),
        ovi.NGVI(bounds.ngvi_floor_best_step(count=count, lipschitz=lipschitz, **far), floor=floor),
        ovi.NGVI(ovi.PaperSVB(step), [math.sqrt(count), 3.0][turn], parameters="scale"),
        *(rule(ovi.Adaptive([None, 0.3][turn])) for rule in (ovi.SVA, ovi.SVB)),
        ovi.SVA(ovi.Explicit(lipschitz)),
    ]


def comparators(loss: ovi.Loss, family: ovi.MeanField, data: Stream, rng: np.random.Generator) -> list[Belief]:
    """Beliefs in the domain that are hard to beat, or far off: the first is the one that best rates are chosen for."""
    (X, y), (count, dim) = data, data[0].shape
    std = family.init(dim).std
    best = hindsight(X, y, loss=loss, box=BOX, tolerance=0.01).mean
    return [
        Belief(best, std / math.sqrt(count)),
        batch_vb(X, y, loss=loss, rate=ovi.PerHorizon(1.0), family=family, tolerance=0.01).belief,
        Belief(best, 1e-3 * std),
        Belief(BOX * np.where(best < 0.0, -1.0, 1.0), 1e-3 * std),
        Belief(BOX * rng.choice([-1.0, 1.0], dim), std),
        Belief(rng.uniform(-BOX, BOX, dim), std * rng.uniform(0.01, 1.0, dim)),
    ]


def of_seed(seed: int, loss: ovi.Loss, longest: int = 200) -> Iterator[Verdict]:
    """One stream, played by every rule with a theorem and by exponential weights, as the worst verdict on each statement."""
    rng = np.random.default_rng(seed)
    count, dim = int(rng.integers(10, longest)), int(rng.integers(1, 6))
    family, ridge = family_of(seed, ovi.SVA(), (count, dim)), RIDGES[seed % len(RIDGES)]
    greedy, turn = seed % GREEDY_SHARE == 0, seed // len(OBLIVIOUS) % 2
    count = min(count, 25) if greedy else count
    data = OBLIVIOUS[seed % len(OBLIVIOUS)](loss, rng, count, dim)
    known = comparators(loss, family, data, rng)
    for played in (loss, type(loss)(*loss.parameters, ridge=ridge)):
        against = [opponent(played, data, u) for u in known]
        lipschitz = bounds.lipschitz(*data, loss=played, family=family)
        for rule in rules(played, family, lipschitz, count, known[0], turn):
            domain = family_of(seed, rule, (count, dim))
            if greedy:
                learner = ovi.Linear(loss=played, rule=rule, family=domain)
                _, data = Greedy(length=rng.choice([0.3, 1.0])).play(learner, rng, count, dim)
                against = [opponent(played, data, u) for u in comparators(played, family, data, rng)]
            points = [Opponent(Belief(u.mean, 0.0 * u.std), at, at) for u, _, at in against]
            fitting = points if is_against_points(rule) else against
            yield from Trial(played, rule, domain, *data).judged(fitting)
    yield from experts_of(loss, family, data, rng)


def worst(verdicts: Iterator[Verdict]) -> list[Verdict]:
    """Of each statement the verdict that breaks it, else the one that comes nearest to its bound."""
    found: dict[str, Verdict] = {}
    for verdict in verdicts:
        last = found.setdefault(verdict.name, verdict)
        found[verdict.name] = max(last, verdict, key=lambda one: (one.broken, one.ratio))
    return list(found.values())


# --- exponential weights


def experts_of(loss: ovi.Loss, family: ovi.Family, data: Stream, rng: np.random.Generator) -> Iterator[Verdict]:
    """Points of the box as experts: corners and random ones."""
    points = np.vstack([BOX * rng.choice([-1.0, 1.0], (4, data[0].shape[1])), rng.uniform(-BOX, BOX, (4, data[0].shape[1]))])
    losses = np.asarray(loss(data[1][:, None], data[0] @ points.T).value)
    largest = bounds.largest_loss(*data, loss=loss, family=family)
    for rate in (math.sqrt(8.0 * math.log(len(points)) / len(losses)) / largest, 0.1 / largest, 1.0 / largest):
        yield from worst(iter(experts_verdicts(losses, rate, largest)))


def experts_verdicts(losses: np.ndarray, rate: float, largest: float) -> list[Verdict]:
    """Against every expert alone, and against the posterior, where the theorem's divergence is least for what it buys."""
    state, count = Experts(rate).run(losses).state, losses.shape[1]
    found = []
    for law in [*np.eye(count), state.weights]:
        used = law > 0.0
        kl = max(float(law[used] @ np.log(law[used] * count)), 0.0)
        bound, against = bounds.ewa(rate=rate, count=len(losses), loss_bound=largest, kl=kl), float(law @ state.totals)
        found.append(Verdict("EWA", state.loss - against, bound, state.loss + against))
    return found
