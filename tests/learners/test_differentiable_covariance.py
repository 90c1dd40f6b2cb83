"""A full covariance over a model's weights: against a dense extended Kalman filter, and the compiled loop."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.catalogue import name, stream
from test_linear import SUMS

import onlinevi as ovi

jax = pytest.importorskip("jax")

from onlinevi.autodiff import Differentiable, Linearised, MonteCarlo, ReLUNetwork, flatten  # noqa: E402

WIDTH, FEATURES = 5, 3
DIM = WIDTH * (FEATURES + 1)
NETWORK = ReLUNetwork(WIDTH)
START = NETWORK.init(FEATURES, np.random.default_rng(1))
FAMILY = ovi.FullCovariance(flatten(START), prior_std=0.5)
NOISE = 0.5  # the loss (y − z)² is, up to a constant, minus the log density of N(z, 1/2)


def dot(params: np.ndarray, x: np.ndarray) -> np.ndarray:
    return params @ x


def smooth(params: dict, x: np.ndarray) -> np.ndarray:
    return params["output"] @ jax.numpy.tanh(params["hidden"] @ x)


def tangent(model: object, flat: np.ndarray, x: np.ndarray) -> tuple[float, np.ndarray]:
    """f and ∂f/∂weights of either network, by hand."""
    hidden, output = flat[: WIDTH * FEATURES].reshape(WIDTH, FEATURES), flat[WIDTH * FEATURES :]
    below = hidden @ x
    value = np.tanh(below) if model is smooth else np.maximum(below, 0.0)
    slope = 1.0 - value**2 if model is smooth else (below > 0.0).astype(float)
    return float(output @ value), np.concatenate([np.outer(output * slope, x).ravel(), value])


def bent(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(-1.5, 1.5, (count, FEATURES - 1)), np.ones(count)])
    return X, np.abs(X[:, 0]) + 0.1 * rng.standard_normal(count)


def network(model: object = NETWORK, rule: ovi.Rule | None = None) -> Differentiable:
    return Differentiable(model, ovi.Squared(), rule or ovi.NGVI(), FAMILY, Linearised(), average=True)  # type: ignore[arg-type]


@pytest.mark.parametrize("model", [NETWORK, smooth], ids=["relu", "tanh"])
def test_with_the_squared_loss_it_is_the_extended_kalman_filter(model: object) -> None:
    X, y = bent(50)
    mean, covariance = flatten(START), 0.25 * np.eye(DIM)
    predictions, spreads = np.empty(50), np.empty(50)
    for i in range(50):
        predictions[i], jacobian = tangent(model, mean, X[i])
        variance = jacobian @ covariance @ jacobian
        spreads[i] = np.sqrt(variance)
        gain = covariance @ jacobian / (variance + NOISE)
        mean = mean + gain * (y[i] - predictions[i])
        rest = np.eye(DIM) - np.outer(gain, jacobian)
        covariance = rest @ covariance @ rest.T + NOISE * np.outer(gain, gain)
    trace = network(model).learn(X, y, params=START)
    np.testing.assert_allclose(trace.prediction, predictions, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(trace.spread, spreads, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(trace.mean, mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(trace.state.belief.covariance, covariance, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(trace.std, np.sqrt(np.diag(covariance)), rtol=1e-9)
    assert np.abs(covariance - np.diag(np.diag(covariance))).max() > 0.05, "the weights are correlated"


def assert_is_linear(trace: ovi.Trace, truth: ovi.Trace) -> None:
    for what in SUMS:
        got, want = getattr(trace.state, what), getattr(truth.state, what)
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10, err_msg=what)
    np.testing.assert_allclose(trace.state.belief.factor, truth.state.belief.factor, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(trace.state.array, truth.state.array, rtol=1e-10, atol=1e-10)
    for what in ("steps", "prediction", "spread", "loss", "average_loss"):
        np.testing.assert_allclose(getattr(trace, what), getattr(truth, what), rtol=1e-10, atol=1e-10, err_msg=what)


# Of the logistic loss, which takes JAX longest, the mean-field loop has been shown the same; here a kink and a curve will do.
@pytest.mark.parametrize("loss", [ovi.Squared(), ovi.Hinge(), ovi.Poisson()], ids=name)
def test_a_linear_model_is_the_compiled_loop(loss: ovi.Loss) -> None:
    X, y = stream(loss, count=60)
    X[3] = 0.0  # no spread there: nothing moves
    family, rule = ovi.FullCovariance(), ovi.NGVI()
    trace = Differentiable(dot, loss, rule, family, Linearised(), average=True).learn(X, y, params=np.zeros(5))
    assert_is_linear(trace, ovi.learn(X, y, loss=loss, rule=rule, family=family))


def test_weights_boxes_priors_and_rates_are_part_of_the_game() -> None:
    loss, rule, rng = ovi.Squared(), ovi.NGVI(step=ovi.PerSqrt(0.7)), np.random.default_rng(5)
    X, y = stream(loss, count=60)
    low, high = np.array([-0.05, -0.02, -20.0, 0.0, -1.0]), 0.06
    box = ovi.Box(mean=(low.tolist(), high), std=None)
    family = ovi.FullCovariance(0.03, [1.0, 0.5, 2.0, 1.0, 1.0], box)
    weights = rng.integers(0, 3, 60) * 0.7
    trace = Differentiable(dot, loss, rule, family, Linearised(), average=True).learn(
        X, y, params=np.zeros(5), weights=weights
    )
    assert_is_linear(trace, ovi.learn(X, y, loss=loss, rule=rule, family=family, weights=weights))
    assert ((trace.mean >= low) & (trace.mean <= high)).all()
    assert ((trace.mean == low) | (trace.mean == high)).any(), "without the box it would leave it"


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_a_covariance_stays_one_and_only_shrinks(scale: float) -> None:
    X, y = bent(500)
    model = network(smooth)
    state = model.init(START)
    for part in np.split(np.arange(500), 5):
        before, state = state, model.update_many(state, scale * X[part], y[part])[0]
        factor = state.belief.factor
        assert np.array_equal(factor, np.triu(factor))
        assert (np.diag(factor) > 0.0).all()
        loss_of_variance = before.belief.covariance - state.belief.covariance
        assert np.linalg.eigvalsh(loss_of_variance).min() > -1e-12
    assert np.linalg.eigvalsh(state.belief.covariance).min() > 0.0


def test_a_prediction_has_the_spread_of_the_whole_belief() -> None:
    X, y = bent(80)
    model = network()
    state = model.learn(X, y, params=START).state
    means, spreads = model.predict(state, X)
    for i in (0, 7, 79):
        prediction, jacobian = tangent(NETWORK, state.mean, X[i])
        spread = np.sqrt(jacobian @ state.belief.covariance @ jacobian)
        step = model.update(state, X[i], y[i])[1]
        for law in ((means[i], spreads[i]), model.predict(state, X[i]), (step.prediction, step.spread)):
            assert law == pytest.approx((prediction, spread), rel=1e-10)
    alone = np.sqrt(np.square(tangent(NETWORK, state.mean, X[0])[1] * state.std).sum())
    assert abs(alone / spreads[0] - 1.0) > 0.1, "covariances matter here"


def test_any_split_gives_the_same_bits() -> None:
    X, y = bent(40)
    model = network(rule=ovi.NGVI(step=ovi.PerSqrt(1.0)))
    fresh = model.init(START)
    whole, trace = model.update_many(fresh, X, y)
    for cuts in ([1, 2, 3], list(range(0, 40, 7)), list(range(1, 40))):
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


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X, y: X.__setitem__((7, 1), np.nan), "row 7: feature 1 is nan"),
        (lambda X, y: y.__setitem__(7, np.nan), "row 7: label nan"),
        (lambda X, y: y.__setitem__(7, 1e200), "row 7: the step would overflow"),
        (lambda X, y: X.__setitem__(7, 1e200), "row 7: the step would overflow"),
    ],
)
def test_a_bad_row_leaves_the_state_as_it_was(spoil, message: str) -> None:  # type: ignore[no-untyped-def]
    X, y = bent(12)
    spoil(X, y)
    model = network()
    fresh = model.init(START)
    with pytest.raises(ovi.BadRow, match=message) as refused:
        model.update_many(fresh, X, y)
    kept = refused.value.trace.state  # type: ignore[union-attr]
    assert kept == model.update_many(fresh, X[:7], y[:7])[0]
    assert (fresh.count, kept.count) == (0, 7)
    before = kept.array.copy()
    with pytest.raises(ovi.BadRow, match=message.replace("row 7", "row 0")):
        model.update(kept, X[7], y[7])
    np.testing.assert_array_equal(kept.array, before)


def refused(rule: ovi.Rule, family: ovi.Family | None = FAMILY, gradient: object = None, ridge: float = 0.0) -> None:
    Differentiable(NETWORK, ovi.Squared(ridge=ridge), rule, family, gradient or Linearised())  # type: ignore[arg-type]


class _Unknown(ovi.Family):
    """A family that the loop over a model does not know."""

    gaussian = True


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: refused(ovi.Implicit()), ValueError, r"linear predictors only: .* NGVI\(\) and gradient=Linearised\(\)"),
        (lambda: refused(ovi.Implicit(), None), ValueError, "linear predictors only"),
        (lambda: refused(ovi.Implicit(), ovi.Point()), ValueError, r"OGA\(\) for a point"),
        (lambda: refused(ovi.SVA(0.1)), ValueError, r"full covariance over the weights of a model: use NGVI\(\)"),
        (lambda: refused(ovi.SVB()), ValueError, r"full covariance over the weights of a model: use NGVI\(\)"),
        (lambda: refused(ovi.OGAEL(0.1)), ValueError, r"full covariance over the weights of a model: use NGVI\(\)"),
        (lambda: refused(ovi.OGA(0.1)), ValueError, r"OGA needs Point\(\)"),
        (lambda: refused(ovi.NGVI(rate=2.0)), ValueError, "the prior term costs"),
        (lambda: refused(ovi.NGVI(), gradient=MonteCarlo(10)), ValueError, "needs the model's Jacobian"),
        (lambda: refused(ovi.NGVI(), ridge=0.1), ValueError, "takes no ridge"),
        (lambda: refused(ovi.NGVI(), _Unknown()), TypeError, r"takes MeanField\(\), FullCovariance\(\) or Point\(\)"),
    ],
)
def test_what_is_not_offered_says_what_is(call, error: type[Exception], message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=message):
        call()
