"""The compiled loop: against the game played in plain arrays, and its laws over a stream."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest
from helpers.catalogue import GAUSSIAN_RULES, LOSSES, RULES, SPARSE_RULES, learner, name, stream
from helpers.oracles import play
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import onlinevi as ovi
from onlinevi.engine import layout
from onlinevi.engine import loop as linear

EVERY = list(itertools.product(LOSSES, RULES))
SUMS = ("loss", "expected_loss", "product", "gradient_square", "gradient", "mean", "std", "average_mean", "weight", "square")


def assert_equals_play(trace: ovi.Trace, truth: dict, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(trace.loss, truth["losses"], rtol=tolerance, atol=tolerance)
    for what in SUMS:
        want = truth[what] if what != "std" or trace.state.plan.family.gaussian else 0.0
        np.testing.assert_allclose(getattr(trace.state, what), want, rtol=tolerance, atol=tolerance, err_msg=what)


@pytest.mark.parametrize(("loss", "rule"), EVERY, ids=name)
def test_the_loop_plays_the_game(loss: ovi.Loss, rule: ovi.Rule) -> None:
    model = learner(loss, rule)
    X, y = stream(loss)
    trace = ovi.learn(X, y, loss=loss, rule=rule, family=model.family)
    assert_equals_play(trace, play(model, X, y))


@pytest.mark.parametrize("rule", [ovi.OGA(0.1), ovi.SVB()], ids=name)
def test_a_row_of_any_length_is_read_to_its_end(rule: ovi.Rule) -> None:
    """Dense rows are summed in two halves: every remainder of a vector, with and without whole ones before it."""
    for dim in [*range(1, 34), 54, 63, 64, 65]:
        X, y = stream(ovi.Hinge(), 12, dim)
        assert_equals_play(ovi.learn(X, y, loss=ovi.Hinge(), rule=rule), play(learner(ovi.Hinge(), rule), X, y))


@pytest.mark.parametrize("rule", [ovi.OGA(0.5), ovi.SVB(10.0)], ids=name)
def test_an_event_that_costs_and_teaches_nothing_is_counted_alone(rule: ovi.Rule) -> None:
    """Such events take a short way, which weights close: with weights of 1 the long way must lead to the same bits."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 3))
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    X[:, 0] += y
    short, long = (ovi.learn(X, y, loss=ovi.Hinge(), rule=rule, weights=given) for given in (None, np.ones(400)))
    assert 50 < np.count_nonzero(short.loss == 0.0) < 400
    assert short.state == long.state
    for what in ("loss", "prediction", "spread"):
        np.testing.assert_array_equal(getattr(short, what), getattr(long, what))

    model = ovi.Linear(ovi.Hinge(), rule)
    state, row = short.state, np.array([1e4, 0.0, 0.0])
    after, step = model.update(state, row, 1.0)
    assert step.loss == 0.0
    assert (after.count, after.loss, after.mean.tolist()) == (state.count + 1, state.loss, state.mean.tolist())
    for bad, label in (
        (row, 0.0),
        (row, np.nan),
        (row * [1.0, np.nan, 0.0], 1.0),
        (row * [np.inf, 0.0, 0.0], 1.0),
        (1e200 * row, 1.0),
    ):
        with pytest.raises(ovi.BadRow):
            model.update(state, bad, label)


@pytest.mark.parametrize("rule", RULES, ids=name)
def test_ridge_weights_and_boxes_are_part_of_the_game(rule: ovi.Rule) -> None:
    rng = np.random.default_rng(5)
    loss = ovi.Squared(ridge=0.3)
    X, y = stream(loss, count=80, dim=4)
    weights = rng.integers(0, 3, 80) * 0.7
    low, high = np.array([-0.05, -0.02, -20.0, 0.0]), 0.06
    bounds = (low.tolist(), high)
    gaussian = ovi.MeanField(prior_mean=0.03, prior_std=[1.0, 0.5, 2.0, 1.0], box=ovi.Box(mean=bounds, std=(0.1, 1.0)))
    family = gaussian if rule.gaussian else ovi.Point(prior_mean=0.03, box=ovi.Box(mean=bounds))
    model = ovi.Linear(loss=loss, rule=rule, family=family)
    trace = ovi.learn(X, y, loss=loss, rule=rule, family=family, weights=weights)
    assert_equals_play(trace, play(model, X, y, weights))
    assert ((trace.mean >= low) & (trace.mean <= high)).all()
    free = ovi.learn(X, y, loss=loss, rule=rule, weights=weights)
    assert ((free.mean < low) | (free.mean > high)).any(), "without the box it would leave it"


@pytest.mark.parametrize("rule", GAUSSIAN_RULES, ids=name)
def test_jax_traces_the_same_rules(rule: ovi.Rule) -> None:
    jax = pytest.importorskip("jax")
    loss = ovi.Hinge()
    X, y = stream(loss, count=8)
    trace = ovi.learn(X, y, loss=loss, rule=rule)
    with jax.enable_x64(True):
        truth = {key: np.asarray(value) for key, value in play(learner(loss, rule), X, y, asarray=jax.numpy.asarray).items()}
    assert_equals_play(trace, truth)


def test_sva_on_a_box_clips_the_sums_not_the_iterate() -> None:
    """Pushed far out of the box and pulled back: the lazy sums remember how far, a clipped iterate would not."""
    X = np.ones((40, 1))
    y = np.concatenate([np.full(20, 5.0), np.full(20, -5.0)])
    family = ovi.MeanField(box=ovi.Box(mean=(-1.0, 1.0)))
    trace = ovi.learn(X, y, loss=ovi.Absolute(), rule=ovi.SVA(0.5), family=family, average=False)
    assert trace.prediction[20] == 1.0
    assert trace.prediction[24] == 1.0, "four steps back, the sum is still outside"
    clipped = ovi.learn(X, y, loss=ovi.Absolute(), rule=ovi.OGAEL(0.5), family=family)
    assert clipped.prediction[24] == pytest.approx(-1.0, abs=1e-4)


@pytest.mark.parametrize(("loss", "rule"), list(itertools.product([ovi.Hinge(), ovi.Squared(ridge=0.1)], RULES)), ids=name)
def test_any_split_gives_the_same_bits(loss: ovi.Loss, rule: ovi.Rule) -> None:
    X, y = stream(loss, count=50, dim=7)
    model = learner(loss, rule)
    state, _ = model.update_many(model.init(7, horizon=50), X, y)
    for cuts in ([1, 2, 3], [10, 49], list(range(50))):
        split = model.init(7, horizon=50)
        for part_X, part_y in zip(np.split(X, cuts), np.split(y, cuts), strict=True):
            split, _ = model.update_many(split, part_X, part_y)
        assert split == state
    single = model.init(7, horizon=50)
    for row, label in zip(X, y, strict=True):
        single, _ = model.update(single, row, label)
    assert single == state


@pytest.mark.parametrize("rule", RULES, ids=name)
def test_layouts_and_kinds_of_matrix_agree(rule: ovi.Rule) -> None:
    X, y = stream(ovi.Squared(), count=40, dim=6)
    X = X.astype(np.float32).astype(float)
    run = lambda X: ovi.learn(X, y, loss=ovi.Squared(), rule=rule).state.array  # noqa: E731
    want = run(X)
    np.testing.assert_array_equal(run(np.asfortranarray(X)), want)
    np.testing.assert_array_equal(run(np.repeat(X, 2, axis=1)[:, ::2]), want)
    np.testing.assert_array_equal(run(X.tolist()), want)
    if rule in (RULES[0], RULES[-1]):  # a loop of its own: one for each family, which reads the rows for its rules
        np.testing.assert_allclose(run(X.astype(np.float32)), want, rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(run((X * 8).round().astype(int)), run((X * 8).round()))


# A loss sees the law of a prediction alone, never the row: a second one will do.
@pytest.mark.parametrize(
    ("loss", "rule"), [*((ovi.Hinge(), rule) for rule in SPARSE_RULES), (ovi.Squared(), ovi.SVB())], ids=name
)
def test_a_sparse_step_equals_the_dense_one(loss: ovi.Loss, rule: ovi.Rule) -> None:
    rng = np.random.default_rng(1)
    X, y = stream(loss, count=200, dim=12)
    X = X * (rng.random(X.shape) < 0.25)
    model = learner(loss, rule)
    dense = model.init(12, horizon=200)
    for i in range(40):
        after_dense, _ = model.update_many(dense, X[i : i + 1], y[i : i + 1])
        after_sparse, _ = model.update_many(dense, sparse.csr_matrix(X[i : i + 1]), y[i : i + 1])
        np.testing.assert_allclose(after_sparse.array, after_dense.array, rtol=1e-13, atol=1e-13)
        dense = after_dense
    if rule.gaussian:
        start = model.init(12, horizon=200)
        whole = [model.update_many(start, matrix, y)[0].array for matrix in (X, sparse.csr_matrix(X))]
        np.testing.assert_allclose(whole[1], whole[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("rule", "dtype"), [*((rule, "float64") for rule in SPARSE_RULES), (ovi.NGVI(), "float32")], ids=name)
def test_any_split_of_sparse_rows_gives_the_same_bits(rule: ovi.Rule, dtype: str) -> None:
    """A long block is learned from a copy of the state, side by side, a short one in the state itself."""
    X, y = stream(ovi.Hinge(), count=60, dim=150)
    rows = sparse.csr_array(X * (np.random.default_rng(2).random(X.shape) < 0.6))  # longer than ns.SCRATCH
    model = ovi.Linear(loss=ovi.Hinge(), rule=rule, dtype=dtype)
    start = model.init(150, horizon=60)
    assert rows.nnz > layout.PAYS * len(start.array) > rows[:9].nnz
    whole, _ = model.update_many(start, rows, y)
    for size in (1, 9):
        split = start
        for i in range(0, 60, size):
            split, _ = model.update_many(split, rows[i : i + size], y[i : i + size])
        assert split == whole
    assert start == model.init(150, horizon=60)
    rows.data[rows.indptr[50]] = np.nan
    with pytest.raises(ovi.BadRow, match="row 50: feature") as refused:
        model.update_many(start, rows, y)
    assert refused.value.trace.state == model.update_many(start, rows[:50], y[:50])[0]


@pytest.mark.parametrize("rule", [r for r in RULES if r.moves_without_gradient], ids=name)
@pytest.mark.parametrize("ridge", [0.0, 0.2])
def test_rules_that_move_everything_take_sparse_rows_too(rule: ovi.Rule, ridge: float) -> None:
    loss = ovi.Hinge(ridge=ridge)
    X, y = stream(loss, count=60, dim=9)
    X[np.random.default_rng(0).random(X.shape) < 0.7] = 0.0
    X[3] = 0.0
    dense, filled = (ovi.learn(matrix, y, loss=loss, rule=rule).state for matrix in (X, sparse.csr_matrix(X)))
    assert dense == filled


def test_unsorted_and_repeated_sparse_entries_are_summed() -> None:
    repeated = sparse.coo_matrix(([1.0, 2.0, 4.0], ([0, 0, 0], [2, 0, 2])), shape=(1, 3))
    raw = sparse.csr_matrix((np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    want = ovi.learn(repeated.toarray(), [1.0], loss=ovi.Squared(), rule=ovi.SVB()).state
    for matrix in (repeated, raw):
        assert ovi.learn(matrix, [1.0], loss=ovi.Squared(), rule=ovi.SVB()).state == want


@pytest.mark.parametrize("rule", [ovi.OGA(0.1), ovi.SVA(0.1), ovi.SVB()], ids=name)
def test_a_state_too_wide_for_a_cache_learns_as_a_narrow_one(rule: ovi.Rule) -> None:
    """Beyond ``linear.NEAR`` memory is asked ahead of time; the columns in use are the same, only far apart."""
    X, y = stream(ovi.Hinge(), 40, 4)
    narrow, places = sparse.csr_array(X), np.array([0, 1, 150_000, 299_999])
    assert linear.NEAR < 2 * 300_000
    wide = sparse.csr_array((narrow.data, places[narrow.indices], narrow.indptr), shape=(40, 300_000))
    few, many = (ovi.learn(rows, y, loss=ovi.Hinge(), rule=rule) for rows in (narrow, wide))
    np.testing.assert_array_equal(many.mean[places], few.mean)
    np.testing.assert_array_equal(many.std[places], few.std)
    assert np.flatnonzero(many.mean).tolist() == places.tolist()


@pytest.mark.parametrize(("loss", "rule"), list(itertools.product([ovi.Logistic(), ovi.Absolute()], RULES)), ids=name)
def test_permuting_coordinates_permutes_the_belief(loss: ovi.Loss, rule: ovi.Rule) -> None:
    X, y = stream(loss, count=100, dim=6)
    order = np.random.default_rng(9).permutation(6)
    straight, mixed = (ovi.learn(matrix, y, loss=loss, rule=rule) for matrix in (X, X[:, order]))
    np.testing.assert_allclose(mixed.mean, straight.mean[order], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(mixed.std, straight.std[order], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("rule", RULES, ids=name)
def test_a_weight_multiplies_the_loss_and_zero_is_absence(rule: ovi.Rule) -> None:
    X, y = stream(ovi.Absolute(), count=30, dim=3)
    weights = np.where(np.arange(30) % 3 == 1, 0.0, 2.0)
    run = lambda *data, **more: ovi.learn(*data, loss=ovi.Absolute(), rule=rule, horizon=20, **more)  # noqa: E731
    weighted, absent = run(X, y, weights=weights), run(X[weights > 0], y[weights > 0], weights=np.full(20, 2.0))
    assert weighted.state == absent.state
    np.testing.assert_array_equal(weighted.loss, absent.loss)

    doubled = ovi.learn(X[:1], y[:1], loss=ovi.Absolute(), rule=rule, weights=[2.0]).state
    single = ovi.learn(X[:1], y[:1], loss=ovi.Absolute(), rule=rule).state
    assert doubled.loss == 2 * single.loss
    np.testing.assert_allclose(doubled.gradient, 2 * single.gradient)


@given(seed=st.integers(0, 2**32), rule=st.sampled_from(GAUSSIAN_RULES), loss=st.sampled_from(LOSSES))
@settings(max_examples=60, deadline=None)
def test_spreads_never_grow_along_a_convex_stream(seed: int, rule: ovi.Rule, loss: ovi.Loss) -> None:
    if rule.prior_rate or (isinstance(rule, ovi.SVA) and rule.step_rate.varies):
        rule = ovi.SVA(0.1)
    X, y = stream(loss, count=25, seed=seed)
    model = learner(loss, rule)
    state = model.init(5, horizon=25)
    for row, label in zip(X, y, strict=True):
        after, _ = model.update(state, row, label)
        assert (after.std <= state.std).all()
        assert (after.std >= 0.0).all()
        state = after


def test_svb_survives_a_spread_whose_square_underflows() -> None:
    """With the paper's rate and a kink at the prediction, a std squares at each step until its variance is exactly 0."""
    trace = ovi.learn(np.ones((100, 1)), np.zeros(100), loss=ovi.Absolute(), rule=ovi.SVB())
    assert trace.std[0] ** 2 == 0.0
    assert np.isfinite(trace.state.array).all()
    model = ovi.Linear(loss=ovi.Absolute(), rule=ovi.SVB())
    after, step = model.update(trace.state, [1.0], 3.0)
    assert step.spread == 0.0
    assert after.mean[0] > 0.0, "the mean still learns"


@pytest.mark.compiled
def test_the_gil_is_released_during_a_pass() -> None:
    X, y = stream(ovi.Hinge(), count=200_000, dim=20)
    state = ovi.Linear(loss=ovi.Hinge(), rule=ovi.NGVI()).init(20)  # a loop that others compile too
    plan, array = state.plan, state.array.copy()
    arguments = (np.empty(0), array, plan.sizes, plan.settings, plan.prior_and_box, plan.parameters, np.empty((0, 3)))
    plan.dense_kernel(X[:1], y[:1], *arguments)
    running, ticks = threading.Event(), 0

    def work() -> None:
        running.set()
        plan.dense_kernel(X, y, *arguments)

    thread = threading.Thread(target=work)
    thread.start()
    running.wait()
    while thread.is_alive():
        ticks += 1
    assert ticks > 100, "this thread ran while the other computed"
