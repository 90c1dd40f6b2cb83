"""Any differentiable model: against the compiled loop where it is linear, and the laws of a pass where it is not."""

from __future__ import annotations

import itertools
import pickle
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from helpers.catalogue import LOSSES, RULES, learner, name, stream
from scipy import sparse
from test_linear import SUMS

import onlinevi as ovi
from onlinevi.engine import Belief

jax = pytest.importorskip("jax")

from onlinevi.autodiff import Differentiable, Linearised, MonteCarlo, ReLUNetwork, flatten  # noqa: E402
from onlinevi.learners.differentiable import learner as differentiable  # noqa: E402

NETWORK = ReLUNetwork(width=8)
DRAWN_RULES = [ovi.OGA(0.05), ovi.SVA(0.05), ovi.SVB(ovi.PaperSVB(0.1)), ovi.NGVI(step=0.1)]
CALM = ovi.MeanField(prior_std=0.3)


def dot(params: dict, x: np.ndarray) -> np.ndarray:
    """Linear in the weights, which lie in two places."""
    return params["first"] @ x[:2] + params["rest"] @ x[2:]


LINEAR = {"first": np.zeros(2), "rest": np.zeros(3)}


def bent(count: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """|x| with a constant column: no line fits it."""
    x = np.random.default_rng(seed).uniform(-1.0, 1.0, count)
    return np.column_stack([x, np.ones(count)]), np.abs(x)


ADAPTIVE = [ovi.SVA(ovi.Adaptive()), ovi.SVB(ovi.Adaptive())]


def network(rule: ovi.Rule, gradient: MonteCarlo | Linearised | None = None) -> Differentiable:
    family = CALM if rule.gaussian else None
    return Differentiable(NETWORK, ovi.Squared(), rule, family, gradient or MonteCarlo(3), average=True)


@pytest.fixture(autouse=True)
def _jax_keeps_its_precision():  # type: ignore[no-untyped-def]
    assert not jax.config.jax_enable_x64
    yield
    assert not jax.config.jax_enable_x64


@pytest.mark.parametrize(
    ("loss", "rule"),
    [*itertools.product([ovi.Squared()], [*RULES, *ADAPTIVE]), *itertools.product(LOSSES[1:], [ovi.SVB()])],
    ids=name,
)
def test_linearised_is_exact_for_a_linear_model(loss: ovi.Loss, rule: ovi.Rule) -> None:
    X, y = stream(loss, count=25)
    family = ovi.MeanField() if rule.gaussian else ovi.Point()
    if isinstance(loss, ovi.Squared):  # one number a weight: traced once for this test and the next
        family = replace(family, prior_mean=[0.0] * 5)
    model = Differentiable(dot, loss, rule, family, Linearised(), average=True)
    trace, truth = model.learn(X, y, params=LINEAR), ovi.learn(X, y, loss=loss, rule=rule, family=family)
    for what in SUMS:
        got, want = getattr(trace.state, what), getattr(truth.state, what)
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12, err_msg=what)
    for what in ("steps", "prediction", "spread", "loss", "average_loss"):
        np.testing.assert_allclose(getattr(trace, what), getattr(truth, what), rtol=1e-12, atol=1e-12, err_msg=what)


@pytest.mark.parametrize("rule", RULES, ids=name)
def test_ridge_weights_and_boxes_are_part_of_the_game(rule: ovi.Rule) -> None:
    loss, weights = ovi.Squared(ridge=0.3), np.random.default_rng(5).integers(0, 3, 25) * 0.7
    X, y = stream(loss, count=25)
    box = ovi.Box(mean=([-0.05, -0.02, -20.0, 0.0, -1.0], 0.06), std=(0.1, 1.0))
    family = ovi.MeanField(0.03, [1.0, 0.5, 2.0, 1.0, 1.0], box) if rule.gaussian else ovi.Point(0.03, box)
    model = Differentiable(dot, loss, rule, family, Linearised(), average=True)
    trace = model.learn(sparse.csr_matrix(X), y, params=LINEAR, weights=weights)
    truth = ovi.learn(X, y, loss=loss, rule=rule, family=family, weights=weights)
    np.testing.assert_allclose(trace.state.array, truth.state.array, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(trace.loss, truth.loss, rtol=1e-12, atol=1e-12)


def test_balls_are_part_of_the_game() -> None:
    X, y = stream(ovi.Squared(), count=25)
    family = ovi.MeanField(0.03, 0.5, ovi.Ball(0.1))
    trace = Differentiable(dot, ovi.Squared(), ovi.SVB(), family, Linearised()).learn(X, y, params=LINEAR)
    truth = ovi.learn(X, y, loss=ovi.Squared(), rule=ovi.SVB(), family=family, average=False)
    assert np.linalg.norm(truth.mean) == pytest.approx(0.1, rel=1e-12)
    np.testing.assert_allclose(trace.state.array, truth.state.array, rtol=1e-12, atol=1e-12)
    with pytest.raises(ValueError, match="no radial projection"):
        Differentiable(NETWORK, ovi.Squared(), ovi.SVA(), family)


@pytest.mark.parametrize("centred", [False, True])
def test_draws_converge_to_the_closed_form(centred: bool) -> None:
    """Both gradients are unbiased, and their errors fall like 1/√samples: 200 runs of one event, by a z-test."""
    loss, rule = ovi.Hinge(), ovi.SVA(0.1)
    X, y = stream(loss, count=1)
    truth = learner(loss, rule).update(learner(loss, rule).init(5), X[0], y[0])[0]
    part = truth.plan.parts["totals"]
    errors = {}
    for samples in (4, 64):
        model = Differentiable(dot, loss, rule, gradient=MonteCarlo(samples, centred))
        runs = [model.update(model.init(LINEAR, seed=seed), X[0], y[0])[0].array[part] for seed in range(200)]
        error = np.array(runs) - truth.array[part]
        errors[samples] = error.std(axis=0)
        z = error.mean(axis=0) / (errors[samples] / np.sqrt(200.0))
        assert (np.abs(z) < 4.0).all(), z
    np.testing.assert_allclose(errors[4] / errors[64], 4.0, rtol=0.35)


def test_centred_draws_keep_a_curvature_that_plain_ones_lose() -> None:
    """At a small std plain draws give γ/std = noise/std; the squared loss has the curvature 2x², whatever the std."""
    family, rule = ovi.MeanField(prior_std=1e-6), ovi.SVA(1e-3)
    model = Differentiable(dot, ovi.Squared(), rule, family, MonteCarlo(1000, centred=True))
    state, _ = model.update(model.init(LINEAR), np.ones(5), 1.0)
    std_total = state.array[state.plan.parts["totals"]][5:]
    np.testing.assert_allclose(std_total / 1e-6, 2.0, rtol=0.5)


def test_gauss_newton_draws_have_the_curvature_of_a_model_that_is_linear_in_each_weight() -> None:
    """(y − abx)²: ∂E/∂std_a ÷ std_a = 2x²(mean_b² + std_b²), by hand; and a linear model's 2x² from any draw."""
    x, y, mean, std = 1.5, 0.7, np.array([0.4, -1.2]), np.array([0.8, 0.3])
    with jax.enable_x64(True):
        cost = partial(ovi.Squared.expected, y)
        belief = Belief(jax.numpy.asarray(mean), jax.numpy.asarray(std))
        view = MonteCarlo(200_000, gauss_newton=True).view(lambda ab: ab[0] * ab[1] * x, cost, belief, jax.random.key(0))
        np.testing.assert_allclose(view.gradient.curvature, 2 * x**2 * (mean**2 + std**2)[::-1], rtol=0.02)
        expected = y**2 - 2 * y * x * mean.prod() + x**2 * (mean**2 + std**2).prod()
        np.testing.assert_allclose(view.value, expected, rtol=0.02)
        line = MonteCarlo(1, gauss_newton=True).view(lambda ab: ab @ np.array([x, 3.0]), cost, belief, jax.random.key(0))
        np.testing.assert_allclose(line.gradient.curvature, [2 * x**2, 18.0], rtol=1e-14)


def test_biases_are_those_of_a_constant_feature_and_a_constant_unit() -> None:
    """The network with biases is the one without, where a feature and a hidden unit are 1."""
    rng, x = np.random.default_rng(0), np.array([0.3, -2.0])
    params = {name: rng.standard_normal(shape.shape) for name, shape in ReLUNetwork(3, biases=True).zeros(2).items()}
    hidden = np.vstack([np.column_stack([params["hidden"], params["hidden_bias"]]), [0.0, 0.0, 1.0]])
    plain = {"hidden": hidden, "output": np.append(params["output"], params["output_bias"])}
    assert ReLUNetwork(3, biases=True)(params, x) == pytest.approx(ReLUNetwork(4)(plain, np.append(x, 1.0)), rel=1e-12)
    drawn = ReLUNetwork(3, biases=True).init(2, np.random.default_rng(1))
    assert not drawn["hidden_bias"].any()
    assert drawn["output_bias"] == 0.0


@pytest.mark.parametrize(
    ("rule", "gradient"), [*((rule, MonteCarlo(3)) for rule in DRAWN_RULES), (ovi.NGVI(step=0.1), Linearised())], ids=name
)
def test_any_split_gives_the_same_bits(rule: ovi.Rule, gradient: MonteCarlo | Linearised) -> None:
    X, y = bent(40)
    model = network(rule, gradient)
    start = NETWORK.init(2, np.random.default_rng(1)) if not isinstance(rule, ovi.SVA) else None
    fresh = model.init(NETWORK.zeros(2), start=start, horizon=40)
    whole, trace = model.update_many(fresh, X, y)
    for cuts in ([1, 2, 3], list(range(0, 40, 7))):
        state, losses = fresh, []
        for part_X, part_y in zip(np.split(X, cuts), np.split(y, cuts), strict=True):
            state, part = model.update_many(state, part_X, part_y)
            losses.append(part.loss)
        assert state == whole
        np.testing.assert_array_equal(np.concatenate(losses), trace.loss)
    state = fresh
    for row, label in zip(X, y, strict=True):
        state, _ = model.update(state, row, label)
    assert state == whole


def test_the_size_of_a_block_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = bent(40)
    model, behind = network(ovi.NGVI(step=0.1)), list[int]()
    whole = model.learn(X, y, params=NETWORK.zeros(2)).state
    monkeypatch.setattr(differentiable, "LARGEST_BLOCK", 11)
    assert model.learn(X, y, params=NETWORK.zeros(2), progress=behind.append).state == whole
    assert behind == [11, 22, 33, 40]


@pytest.mark.parametrize("gradient", [MonteCarlo(3), Linearised()], ids=name)
def test_a_prediction_is_what_an_update_records(gradient: MonteCarlo | Linearised) -> None:
    X, y = bent()
    model = network(ovi.NGVI(step=0.1), gradient)
    state = model.learn(X, y, params=NETWORK.zeros(2)).state
    step = model.update(state, X[5], y[5])[1]
    many = model.predict(state, X)
    for law in (model.predict(state, X[5]), (many[0][5], many[1][5])):
        assert law == pytest.approx((step.prediction, step.spread), rel=1e-12)


def test_a_seed_decides_the_draws() -> None:
    X, y = bent()
    model = network(ovi.NGVI(step=0.1))
    runs = [model.learn(X, y, params=NETWORK.zeros(2), seed=seed).state for seed in (3, 3, 4)]
    assert runs[0] == runs[1]
    assert not np.array_equal(runs[0].mean, runs[2].mean)
    assert pickle.loads(pickle.dumps(runs[0])) == runs[0]
    assert model.update(pickle.loads(pickle.dumps(runs[0])), X[0], y[0])[0] == model.update(runs[0], X[0], y[0])[0]


def test_a_point_at_zero_never_leaves_and_one_with_a_start_does() -> None:
    X, y = bent()
    drawn = NETWORK.init(2, np.random.default_rng(0))
    model = network(ovi.OGA(0.05))
    stuck = model.learn(X, y, params=NETWORK.zeros(2))
    assert not stuck.mean.any()
    started = [model.learn(X, y, params=NETWORK.zeros(2), start=start) for start in (drawn, flatten(drawn))]
    assert started[0].state == started[1].state
    assert started[0].average_loss[-1] < stuck.average_loss[-1]
    np.testing.assert_array_equal(model.init(drawn, start=drawn).mean, flatten(drawn))
    assert not model.init(drawn).mean.any(), "params give shapes alone"


def test_the_prior_stays_where_a_start_is_given() -> None:
    """With hardly a gradient, NGVI with a prior term goes back to the prior's mean."""
    model = Differentiable(dot, ovi.Hinge(), ovi.NGVI(step=1.0, rate=1.0), gradient=Linearised())
    trace = model.learn(np.zeros((60, 5)), np.ones(60), params=LINEAR, start=np.full(5, 2.0))
    np.testing.assert_allclose(trace.mean, 0.0, atol=1e-6)


def test_params_come_back_in_their_shapes() -> None:
    X, y = bent()
    trace = network(ovi.SVB()).learn(X, y, params=NETWORK.zeros(2), record="thinned")
    assert {key: np.shape(value) for key, value in trace.params.items()} == {"hidden": (8, 2), "output": (8,)}
    np.testing.assert_array_equal(flatten(trace.params), trace.mean)
    assert trace.mean.shape == trace.std.shape == (24,)


@pytest.mark.parametrize("gradient", [MonteCarlo(10), Linearised()], ids=name)
def test_a_network_learns_what_no_line_can(gradient: MonteCarlo | Linearised) -> None:
    X, y = bent(3000)
    line = np.linalg.lstsq(X, y, rcond=None)[0]
    family = ovi.MeanField(flatten(NETWORK.init(2, np.random.default_rng(0))), prior_std=0.3)
    model = Differentiable(NETWORK, ovi.Squared(), ovi.NGVI(), family, gradient)
    trace = model.learn(X, y, params=NETWORK.zeros(2))
    best_line = np.square(X @ line - y).mean()
    assert trace.average_loss[-1] < 0.25 * best_line
    mean, spread = model.predict(trace.state, X)
    assert np.square(mean - y).mean() < 0.1 * best_line
    assert (spread > 0.0).all()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X, y: X.__setitem__((7, 0), np.nan), "row 7: feature 0 is nan"),
        (lambda X, y: y.__setitem__(7, np.inf), "row 7: label inf"),
        (lambda X, y: y.__setitem__(7, 1e200), "row 7: the step would overflow"),
        (lambda X, y: X.__setitem__((7, 0), -5.0), "row 7: the model predicts nan"),
    ],
)
@pytest.mark.parametrize("rule", [ovi.OGA(0.05), ovi.SVA(0.05)], ids=name)
def test_bad_rows_are_refused_with_their_number(rule: ovi.Rule, spoil, message: str) -> None:  # type: ignore[no-untyped-def]
    X, y = bent(12)
    spoil(X, y)
    family = CALM if rule.gaussian else None
    model = Differentiable(_root, ovi.Squared(), rule, family, MonteCarlo(2))
    fresh = model.init(np.zeros(2), horizon=12)
    with pytest.raises(ovi.BadRow, match=message) as refused:
        model.update_many(fresh, X, y)
    kept = refused.value.trace
    assert (refused.value.row, kept.state.count, len(kept.loss)) == (7, 7, 7)
    assert kept.state == model.update_many(fresh, X[:7], y[:7])[0]
    assert np.isfinite(kept.state.array).all()
    with pytest.raises(ovi.BadRow, match=message.replace("row 7", "row 0")):
        model.update(kept.state, X[7], y[7])


def _root(params: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Not a number for x below −2."""
    return params @ x + jax.numpy.sqrt(2.0 + x[0])


def test_a_weight_of_zero_is_absence() -> None:
    X, y = bent()
    weights = np.where(np.arange(60) % 3 == 1, 0.0, 2.0)
    X[1] = np.nan
    model = network(ovi.SVA(0.05))
    weighted = model.learn(X, y, params=NETWORK.zeros(2), weights=weights)
    absent = model.learn(X[weights > 0], y[weights > 0], params=NETWORK.zeros(2), weights=np.full(40, 2.0))
    assert weighted.state.count == 40
    np.testing.assert_array_equal(weighted.state.array, absent.state.array)
    same, step = model.update(absent.state, X[0], y[0], weight=0.0)
    assert same is absent.state
    assert step.loss == 0.0


def test_an_interrupted_pass_keeps_what_was_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differentiable, "LARGEST_BLOCK", 11)

    def interrupt(behind: int) -> None:
        if behind == 22:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stopped:
        network(ovi.NGVI(step=0.1)).learn(*bent(), params=NETWORK.zeros(2), progress=interrupt)
    assert stopped.value.trace.state.count == len(stopped.value.trace.loss) == 22


SQUARED = network(ovi.SVA(0.05))
X, Y = bent(4)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: SQUARED.learn(X[:0], Y[:0], params=NETWORK.zeros(2)), ValueError, "the stream is empty"),
        (lambda: SQUARED.learn(X, Y, params=NETWORK.zeros(3)), ValueError, "refuses a row of 2 features"),
        (lambda: SQUARED.learn(X, Y[:3], params=NETWORK.zeros(2)), ValueError, "X has 4 rows, y 3 labels"),
        (lambda: SQUARED.learn(X, Y, params={}), ValueError, "params hold no weights"),
        (lambda: SQUARED.learn(X, Y, params=NETWORK.zeros(2), start=np.ones(5)), ValueError, "one flat vector"),
        (lambda: SQUARED.learn(X, Y, params=NETWORK.zeros(2), start=np.ones(24)), ValueError, "SVA takes every step from"),
        (lambda: SQUARED.init(NETWORK.zeros(2), start=np.full(24, 21.0)), ValueError, "lie in the box"),
        (lambda: SQUARED.init(NETWORK.zeros(2), horizon=0), ValueError, "horizon=0"),
        (lambda: SQUARED.predict(SQUARED.init(NETWORK.zeros(2)), [np.nan, 1.0]), ValueError, "not finite"),
        (lambda: SQUARED.update(network(ovi.SVB()).init(NETWORK.zeros(2)), X[0], 1.0), ValueError, "another learner"),
        (lambda: SQUARED.update(SQUARED.init(NETWORK.zeros(2)), X[0], "spam"), TypeError, "'spam'"),
        (lambda: Differentiable(np.add, ovi.Hinge(), ovi.SVA(), ovi.Point()), ValueError, "SVA needs a Gaussian family"),
        (lambda: Differentiable(3, ovi.Hinge(), ovi.SVA()), TypeError, "needs a function"),
        (lambda: Differentiable(NETWORK, ovi.Hinge(), ovi.SVA(), gradient=10), TypeError, r"MonteCarlo\(10\)"),
        (lambda: Differentiable(_Unhashable(), ovi.Hinge(), ovi.SVA()), TypeError, "wrap it in a function"),
        (lambda: Differentiable(lambda p, x: x, ovi.Hinge(), ovi.OGA(0.1)).learn(X, Y, params=X), ValueError, r"shape \(2,\)"),
        (lambda: MonteCarlo(0), ValueError, "samples=0"),
        (lambda: MonteCarlo(centred=True, gauss_newton=True), ValueError, "choose one"),
        (
            lambda: Differentiable(NETWORK, ovi.Hinge(), ovi.SVA(), gradient=MonteCarlo(7, gauss_newton=True)),
            ValueError,
            r"Hinge.* has no curvature at a point.*MonteCarlo\(7, centred=True\)",
        ),
        (lambda: ReLUNetwork(0), ValueError, "width=0"),
    ],
)
def test_bad_calls_say_what_to_try(call, error: type[Exception], message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=message):
        call()


class _Unhashable:
    __hash__ = None  # type: ignore[assignment]

    def __call__(self, params: object, x: object) -> None:
        """Never reached."""


def test_without_jax_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = "onlinevi.autodiff", "onlinevi.learners.differentiable"
    for module in [module for module in sys.modules if module.startswith(parts)]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(ImportError, match=r"onlinevi\[nn\]"):
        import onlinevi.autodiff  # noqa: F401
