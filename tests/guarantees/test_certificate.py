"""The certificate: against the true regret on streams made to break it, and its forms against each other."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from helpers.adversaries import BOX, OBLIVIOUS, Greedy, Oblivious, Stream, family
from helpers.catalogue import LOSSES, RULES, labels, name, stream
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import lsq_linear

import onlinevi as ovi
from onlinevi.engine.types import Expected, Real
from onlinevi.guarantees import Certificate, SquaredSums, Window, certificate, hindsight
from onlinevi.guarantees.certificates.tangents import tangents

DIM, COUNT = 3, 24


def totals(loss: ovi.Loss, X: np.ndarray, y: np.ndarray, points: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Σ ℓ_t at each row of ``points``, from the definition."""
    weights = np.ones(len(y)) if weights is None else weights
    costs = loss(y, points @ X.T).value @ weights
    return costs + 0.5 * loss.ridge * weights.sum() * (points**2).sum(axis=1)


def comparators(live: Certificate, box: float, seed: int) -> np.ndarray:
    """Points of the box: random, all corners, and the corner that the gradients point to."""
    rng = np.random.default_rng(seed)
    corners = np.array(list(itertools.product([-box, box], repeat=DIM)))
    return np.vstack([rng.uniform(-box, box, (20, DIM)), corners, -box * np.sign(live.tangents.gradient), np.zeros(DIM)])


def assert_holds(live: Certificate, loss: ovi.Loss, X: np.ndarray, y: np.ndarray, best: ovi.Hindsight) -> None:
    points = np.vstack([comparators(live, BOX, 0), best.mean])
    regrets = live.loss - totals(loss, X, y, points)
    assert (regrets <= live.against(points) + live.rounding()).all()
    assert live.against(points).max() <= live.regret + live.rounding()
    assert (live.against(points) <= live.within(np.linalg.norm(points, axis=1)) + live.rounding()).all()
    assert live.loss - live.count * best.value <= live.regret + live.rounding()
    assert live.lower_bound <= best.value + live.rounding()
    assert live.rounding() <= 1e-7 * (1.0 + abs(live.loss) + live.regret), "what is owed to rounding is small"


@pytest.mark.parametrize("adversary", OBLIVIOUS, ids=lambda a: a.__name__)
@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_no_stream_breaks_it(loss: ovi.Loss, adversary: Oblivious) -> None:
    X, y = adversary(loss, np.random.default_rng(7), COUNT, DIM)
    best = hindsight(X, y, loss=loss, box=BOX)
    for rule in RULES:
        trace = ovi.learn(X, y, loss=loss, rule=rule, family=family(rule), record="none")
        assert_holds(certificate(trace), loss, X, y, best)


@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_no_adversary_that_sees_the_decision_breaks_it(loss: ovi.Loss) -> None:
    for rule in RULES:
        learner = ovi.Linear(loss=loss, rule=rule, family=family(rule))
        state, (X, y) = Greedy().play(learner, np.random.default_rng(3), COUNT, DIM)
        assert_holds(certificate(state), loss, X, y, hindsight(X, y, loss=loss, box=BOX))


@pytest.mark.parametrize("adversary", OBLIVIOUS, ids=lambda a: a.__name__)
def test_neither_forgetting_nor_a_bounded_influence_breaks_it(adversary: Oblivious) -> None:
    """It speaks of the decisions and of the loss paid, however the decisions came about."""
    loss = ovi.Squared(robust=2.0)
    for rule in (ovi.OGA(0.1), ovi.NGVI()):
        X, y = adversary(loss, np.random.default_rng(7), COUNT, DIM)
        best = hindsight(X, y, loss=loss, box=BOX)
        for discount in (0.5, 0.95):
            learner = ovi.Linear(loss=loss, rule=rule, family=family(rule), discount=discount)
            state, _ = learner.update_many(learner.init(DIM, COUNT), X, y)
            assert_holds(certificate(state), loss, X, y, best)
            state, seen = Greedy().play(learner, np.random.default_rng(3), COUNT, DIM)
            assert_holds(certificate(state), loss, *seen, hindsight(*seen, loss=loss, box=BOX))


@given(seed=st.integers(0, 2**32), rule=st.sampled_from(RULES), loss=st.sampled_from(LOSSES), ridge=st.sampled_from([0, 0.2]))
@settings(max_examples=25, deadline=None)
def test_it_holds_at_every_point_with_weights_and_a_ridge(seed: int, rule: ovi.Rule, loss: ovi.Loss, ridge: float) -> None:
    rng = np.random.default_rng(seed)
    loss = type(loss)(*loss.parameters, ridge=ridge)
    X, y = rng.standard_normal((30, DIM)), labels(loss, rng, 30)
    weights = rng.exponential(size=30) * (rng.random(30) < 0.9)
    state = ovi.learn(X, y, loss=loss, rule=rule, family=family(rule), weights=weights).state
    live = certificate(state)
    points = comparators(live, BOX, seed)
    assert (live.loss - totals(loss, X, y, points, weights) <= live.against(points) + live.rounding()).all()
    best = hindsight(X, y, loss=loss, box=BOX, weights=weights)
    assert live.lower_bound <= best.value + live.rounding()


@pytest.mark.parametrize("rule", RULES, ids=name)
@pytest.mark.parametrize("loss", [type(loss)(*loss.parameters, ridge=0.3) for loss in LOSSES], ids=name)
def test_a_ridge_is_accounted_for_exactly(loss: ovi.Loss, rule: ovi.Rule) -> None:
    X, y = stream(loss, count=COUNT, dim=DIM)
    plain, curved = (
        certificate(ovi.learn(X, y, loss=loss, rule=rule, family=family(rule), average=average)) for average in (False, True)
    )
    assert plain.form.startswith("linear: ")
    assert curved.form == "strongly convex"
    points = comparators(curved, BOX, 1)
    regrets = curved.loss - totals(loss, X, y, points)
    assert (regrets <= curved.against(points) + curved.rounding()).all()
    assert (curved.against(points) <= plain.against(points) + curved.rounding()).all(), "it is the sharper form"
    assert curved.regret <= plain.regret + curved.rounding()
    grid = np.array(list(itertools.product(np.linspace(-BOX, BOX, 21), repeat=DIM)))
    assert curved.against(grid).max() <= curved.regret + 1e-9, "the closed form is the maximum over the box"
    assert curved.within(BOX * np.sqrt(DIM)) >= curved.regret - 1e-9


def test_a_straight_loss_with_a_ridge_is_certified_to_the_last_digit() -> None:
    """Far from its kink the loss is a line and the ridge is all that bends: then the certificate is the regret itself."""
    loss, rng = ovi.Absolute(ridge=0.1), np.random.default_rng(0)
    X, y = rng.standard_normal((200, DIM)), np.where(rng.random(200) < 0.6, 1e3, -1e3)
    live = certificate(ovi.learn(X, y, loss=loss, rule=ovi.SVB()))
    points = rng.uniform(-20.0, 20.0, (50, DIM))
    regrets = live.loss - totals(loss, X, y, points)
    np.testing.assert_allclose(live.tangents.against(points), regrets, rtol=1e-10)
    assert ((regrets <= live.against(points)) & (live.against(points) <= regrets + 2.0 * live.rounding())).all()


def test_weights_that_average_1_are_told_from_none() -> None:
    """Their sum is the count, but not the sum of their squares; the ridge's sharper form would claim too little for them."""
    X, loss = np.ones((3, 1)), ovi.Absolute(ridge=1.0)
    y, weights = np.full(3, 1e3), np.array([0.125, 0.125, 2.75])
    state = ovi.learn(X, y, loss=loss, rule=ovi.OGA(1.0), weights=weights, family=ovi.Point(prior_mean=-10.0)).state
    assert state.weight == state.count
    at = np.array([[20.0], [-20.0], [5.0]])
    regrets = state.loss - totals(loss, X, y, at, weights)
    live = certificate(state)
    assert live.form == "linear: the ridge's curvature needs rows of weight 1"
    assert (regrets <= live.against(at) + 1e-9).all()
    assert (regrets > tangents(state, None, curved=True).against(at) + 1.0).any(), "the sharper form is false here"


def test_a_form_says_why_it_is_not_sharper() -> None:
    loss = ovi.Squared(ridge=0.1)
    X, y = stream(loss, dim=DIM)
    run = lambda **more: ovi.learn(X, y, loss=loss, rule=ovi.SVB(), **more)  # noqa: E731
    assert certificate(run()).form == "strongly convex"
    assert certificate(run(average=False)).form == "linear: the ridge's curvature needs average=True"
    assert certificate(run(weights=np.full(len(y), 2.0))).form == "linear: the ridge's curvature needs rows of weight 1"
    assert certificate(ovi.learn(X, y, loss=ovi.Squared(), rule=ovi.SVB())).form == "linear"


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_exact_sums_give_the_regret_itself(ridge: float, weighted: bool) -> None:
    loss, rng = ovi.Squared(ridge=ridge), np.random.default_rng(2)
    X, y = stream(loss, count=200, dim=DIM)
    y = 4.0 * (X @ [1.0, -3.0, 0.5]) + y
    weights = rng.integers(0, 3, 200) * 0.7 if weighted else np.ones(200)
    state = ovi.learn(X, y, loss=loss, rule=ovi.SVB(0.1), family=family(ovi.SVB()), weights=weights).state
    sums = SquaredSums.empty(DIM, ridge=ridge).update(X[:90], y[:90], weights[:90]).update(X[90:], y[90:], weights[90:])
    live = certificate(state, exact=sums)
    points = comparators(live, BOX, 0)
    regrets = state.loss - totals(loss, X, y, points, weights)
    np.testing.assert_allclose(state.loss - sums.total(points), regrets, rtol=1e-11)
    assert ((regrets <= live.against(points)) & (live.against(points) <= regrets + 2.0 * live.rounding())).all()
    assert live.rounding() <= 1e-10 * (1.0 + state.loss)
    root = np.sqrt(weights)[:, None]
    stacked = np.vstack([root * X, np.sqrt(0.5 * ridge * weights.sum()) * np.eye(DIM)])
    truth = lsq_linear(stacked, np.r_[root[:, 0] * y, np.zeros(DIM)], (-BOX, BOX), method="bvls", tol=1e-14)
    assert live.form == "exact"
    assert 0.0 <= live.regret - (state.loss - 2.0 * truth.cost) <= 2.0 * live.rounding()
    assert live.regret <= certificate(state).regret + live.rounding()
    assert 0.0 <= 2.0 * truth.cost / live.count - live.lower_bound <= 2.0 * live.rounding() / live.count
    ball = live.within([0.0, 0.5, 50.0])
    assert ball[0] == pytest.approx(live.against(np.zeros(DIM)))
    assert ball[0] < ball[1] < ball[2]
    around = rng.standard_normal((2000, DIM))
    around *= 0.5 / np.linalg.norm(around, axis=1)[:, None]
    assert live.against(around).max() <= ball[1] + 1e-8
    assert live.against(around).max() >= ball[1] - 0.02 * abs(ball[1])


def test_exact_sums_do_without_a_spanning_stream() -> None:
    X, y = np.tile([[1.0, 1.0, 0.0]], (20, 1)), np.arange(20.0)
    state = ovi.learn(X, y, loss=ovi.Squared(), rule=ovi.OGA(0.01)).state
    live = certificate(state, exact=SquaredSums.empty(3).update(X, y))
    assert live.regret == pytest.approx(state.loss - ((y - y.mean()) ** 2).sum(), rel=1e-9)


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_a_segment_is_certified_on_its_own(ridge: float) -> None:
    loss = ovi.Hinge(ridge=ridge)
    X, y = stream(loss, count=300, dim=DIM)
    learner = ovi.Linear(loss=loss, rule=ovi.SVB(), family=family(ovi.SVB()))
    middle, _ = learner.update_many(learner.init(DIM), X[:200], y[:200])
    end, last = learner.update_many(middle, X[200:], y[200:])
    live = certificate(end, since=middle)
    assert live.count == 100
    assert live.loss == pytest.approx(last.loss.sum())
    points = comparators(live, BOX, 0)
    regrets = live.loss - totals(loss, X[200:], y[200:], points)
    assert (regrets <= live.against(points) + live.rounding()).all()
    parts = live.tangents.against(points) + certificate(middle).tangents.against(points)
    np.testing.assert_allclose(parts, certificate(end).tangents.against(points), rtol=1e-9, atol=1e-9)
    assert live.rounding() > certificate(end).rounding(), "a difference is off by what both sums are"


def test_a_window_forgets_what_left_it() -> None:
    """After a drift the certificate of the window is small again; that of the whole stream never is."""
    rng, learner = np.random.default_rng(0), ovi.Linear(loss=ovi.Hinge(), rule=ovi.SVB(), family=family(ovi.SVB()))
    state, window, states = learner.init(DIM), Window(blocks=3), []
    for block in range(10):
        X = rng.standard_normal((400, DIM))
        state, _ = learner.update_many(state, X, np.sign(X[:, 0]) * (1.0 if block < 5 else -1.0))
        states.append(state)
        window = window.add(state)
        whole, recent = certificate(state), window.certificate()
        assert recent.count == min(block + 1, 3) * 400
        if block < 3:
            assert recent.regret == whole.regret
        else:
            assert recent.regret == certificate(state, since=states[block - 3]).regret
    assert len(window.states) == 3
    late = Window(blocks=4, start=states[6]).add(states[7]).add(states[8])
    assert late.certificate().count == 800


def test_an_unbounded_domain_has_a_curve_only() -> None:
    X, y = stream(ovi.Squared(), dim=DIM)
    live = certificate(ovi.learn(X, y, loss=ovi.Squared(), rule=ovi.NGVI(), family=ovi.MeanField(box=None)))
    for refused in ("regret", "lower_bound"):
        with pytest.raises(ValueError, match=r"\.within\(radius\)"):
            getattr(live, refused)
    with pytest.raises(ValueError, match=r"\.within\(radius\)"):
        live.rounding()
    curve = live.within(np.array([[0.0, 0.5], [1.0, 2.0]]))
    assert curve.shape == (2, 2)
    assert (np.diff(curve.ravel()) > 0.0).all()
    assert live.within(1.0) == curve[1, 0]
    points = np.random.default_rng(0).standard_normal((50, DIM))
    regrets = live.loss - totals(ovi.Squared(), X, y, points)
    assert (regrets <= live.within(np.linalg.norm(points, axis=1)) + live.rounding(5.0)).all()
    assert "within(1)=" in repr(live)


def test_rounding_covers_sums_of_a_long_stream() -> None:
    """Against the same sums without rounding (math.fsum), over 10⁴ events."""
    X, y = stream(ovi.Hinge(), count=10_000, dim=DIM)
    learner = ovi.Linear(loss=ovi.Hinge(), rule=ovi.OGA(0.01), family=family(ovi.OGA()))
    trace = ovi.learn(X, y, loss=learner.loss, rule=learner.rule, family=learner.family)
    slope = learner.loss(y, trace.prediction).slope
    product = math.fsum(slope * trace.prediction)
    gradient = np.array([math.fsum(slope * column) for column in X.T])
    live = certificate(trace)
    assert 0.0 <= live.regret - (product + BOX * np.abs(gradient).sum()) <= 2.0 * live.rounding()
    assert live.rounding() <= 1e-4


@pytest.mark.parametrize("count", [1, 7])
def test_sparse_rows_and_traces_give_the_same(count: int) -> None:
    X, y = stream(ovi.Hinge(), count=count, dim=DIM)
    dense = certificate(ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.SVB()))
    thin = ovi.learn(sparse.csr_matrix(X), y, loss=ovi.Hinge(), rule=ovi.SVB(), record="none", average=False)
    assert certificate(thin.state).regret == pytest.approx(dense.regret)
    assert dense.count == count
    assert repr(dense).startswith(f"Certificate(events={count}, ")


class Bent(ovi.Loss):
    convex = False

    @staticmethod
    def expected(y: Real, a: Real, v: Real) -> Expected:
        return Expected(0.0 * a, 0.0 * a, 0.0 * a)


def run(data: Stream, **more: object) -> ovi.State:
    return ovi.learn(*data, **({"loss": ovi.Squared(), "rule": ovi.SVB()} | more)).state  # type: ignore[arg-type]


def test_what_cannot_be_certified_is_refused() -> None:
    data = stream(ovi.Squared(), dim=DIM)
    state, sums = run(data), SquaredSums.empty(DIM).update(*data)
    start = ovi.Linear(loss=ovi.Squared(), rule=ovi.SVB()).init(DIM)
    for call, message in [
        (lambda: certificate(run(data, loss=Bent())), "is not convex"),
        (lambda: certificate(start), "no events yet"),
        (lambda: certificate(state, since=state), "no events yet"),
        (lambda: certificate(state, since=run(data, rule=ovi.NGVI())), "no earlier state of this run"),
        (lambda: certificate(run(data, loss=ovi.Absolute()), exact=sums), "exact sums determine the squared loss"),
        (lambda: certificate(run(data, loss=ovi.Squared(ridge=0.1)), exact=sums), "have ridge 0.0, the loss 0.1"),
        (lambda: certificate(state, exact=sums.update(*data)), "hold 120 rows of 3 features"),
        (lambda: certificate(state).within(-1.0), "a radius must be"),
        (lambda: certificate(state).against([1.0]), "needs 3 values"),
        (lambda: Window(blocks=0), "at least one block"),
        (lambda: Window(blocks=2).certificate(), "the window is empty"),
        (lambda: Window(blocks=2).add(state).add(start), "does not follow"),
        (lambda: sums.update(data[0][:, :2], data[1]), "has 2 features, the sums 3"),
        (lambda: sums.update(data[0], data[1][:-1]), "needs one label a row"),
        (lambda: sums.update(data[0], data[1] * np.nan), "not finite"),
        (lambda: sums.update(*data, weights=-np.ones(len(data[1]))), "a weight must be"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="needs a trace or a state"):
        certificate(3.0)  # type: ignore[arg-type]
