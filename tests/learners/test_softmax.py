"""One posterior over the weights of all classes: its step, its beliefs, what it says, and every law of a learner."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.softmax_trials import bound, expected
from helpers.states import same_bits
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import expit, logsumexp

import onlinevi as ovi
from onlinevi.engine import SUM
from onlinevi.learners import SoftmaxState
from onlinevi.learners.softmax import loops

APART = ovi.Softmax(3, ovi.MeanField(box=None), grows=False)
EACH = ovi.Softmax(3, grows=False)
SHARED = ovi.Softmax(3, shared=True, grows=False)
KINDS = [APART, EACH, SHARED]


def rows(count: int = 60, dim: int = 3, classes: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((count, dim))
    return X, (X @ rng.standard_normal((dim, classes)) + rng.gumbel(size=(count, classes))).argmax(axis=1) * 1.0


def name(learner: ovi.Softmax) -> str:
    return f"{learner.family.name}{' shared' * learner.shared}"  # type: ignore[attr-defined]


def stepped(a: Any, v: Any, own: int, weight: float) -> loops.Room:
    """A step in the scores alone."""
    room = loops.new_room(len(a))
    room.score[:], room.variance[:] = a, np.square(v)
    loops.step(room, len(a), own, weight)
    return room


# --- the step


@pytest.mark.parametrize("seed", range(12))
def test_a_step_is_the_minimum_of_its_problem(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k, weight = int(rng.integers(2, 7)), float(rng.choice([0.1, 1.0, 7.0]))
    a, v, own = 3.0 * rng.standard_normal(k), 10.0 ** rng.uniform(-2.0, 2.0, k), int(rng.integers(k))

    def problem(z: Any) -> tuple[float, Any]:
        chance = np.exp(z - logsumexp(z))
        value = weight * (logsumexp(z) - z[own]) + 0.5 * np.sum(np.square((z - a) / v))
        chance[own] -= 1.0
        return value, weight * chance + (z - a) / np.square(v)

    room = stepped(a, v, own, weight)
    found = minimize(problem, a, jac=True, method="BFGS", options={"gtol": 1e-10, "maxiter": 5000})
    assert problem(room.moved)[0] <= found.fun + 1e-9 * (1.0 + abs(found.fun))
    assert np.abs(v * problem(room.moved)[1]).max() < 1e-7 * (1.0 + v.max())


@pytest.mark.parametrize("v", [0.3, 1.0, 20.0])
def test_a_step_of_two_classes_is_that_of_the_logistic_loss(v: float) -> None:
    """In the difference of the scores, whose variance is 2v²: its proximal step."""
    room = stepped([0.4, 1.7], [v, v], 0, 1.0)
    found = minimize(lambda d: np.logaddexp(0.0, d[0]) + (d[0] - 1.3) ** 2 / (4.0 * v * v), [1.3], options={"gtol": 1e-9})
    assert room.moved[1] - room.moved[0] == pytest.approx(found.x[0], abs=1e-5)
    assert room.moved.sum() == pytest.approx(2.1), "what both share stays"


def test_a_step_never_overshoots_however_wide_the_belief() -> None:
    for v in (1.0, 1e3, 1e6, 1e50):
        room = stepped([0.0, 0.0, 0.0], [v, v, v], 0, 1.0)
        assert room.moved[0] > 0.0 > room.moved[1] == room.moved[2]
        assert np.isfinite(room.moved).all()
        assert room.moved[0] - room.moved[1] < 2.0 * np.log(2.0 + v) + 2.0


def test_scores_without_spread_stay() -> None:
    room = stepped([1.0, 2.0], [0.0, 0.0], 0, 1.0)
    assert room.moved.tolist() == [1.0, 2.0]
    assert np.isfinite(room.pull).all()


@pytest.mark.parametrize("learner", KINDS, ids=name)
def test_the_belief_after_an_event_is_that_of_the_formulas(learner: ovi.Softmax) -> None:
    X, y = rows(20)
    before, _ = learner.update_many(learner.init(3), X[:-1], y[:-1])
    after, _ = learner.update(before, X[-1], y[-1], 0.7)
    x, own = X[-1], int(y[-1])
    dense = [np.diag(before.scale(c)) if before.scale(c).ndim == 1 else before.scale(c) for c in range(3)]
    v2 = np.array([x @ dense[c] @ x for c in range(3)])
    room = stepped(before.mean @ x, np.sqrt(v2), own, 0.7)
    for c in range(3):
        pull = (room.score[c] - room.moved[c]) / v2[c]  # the step ends where the means say
        assert np.allclose(after.mean[c], before.mean[c] - pull * dense[c] @ x, rtol=1e-8)
        curvature = room.change.mean() if learner.shared else room.change[c]
        precision = np.linalg.inv(dense[c]) + curvature * np.outer(x, x)
        if learner is APART:  # the diagonal of the precision
            assert np.allclose(after.scale(c), 1.0 / np.diag(precision), rtol=1e-10)
        else:
            assert np.allclose(np.linalg.inv(after.scale(c)), precision, rtol=1e-8)


def test_forgetting_moves_precisions_to_the_prior() -> None:
    X, y = rows(30)
    learner = replace(APART, discount=0.9, family=ovi.MeanField(prior_std=2.0, box=None))
    before, _ = learner.update_many(learner.init(3), X[:-1], y[:-1])
    kept, _ = replace(learner, discount=1.0).update(
        SoftmaxState(np.array(before.array), replace(before.plan, discount=1.0)), X[-1], y[-1]
    )
    after, _ = learner.update(before, X[-1], y[-1])
    precision = 0.9 / kept.vector("scale") + 0.1 / 4.0
    assert np.allclose(1.0 / after.vector("scale"), precision, rtol=1e-12)
    assert np.allclose(after.mean, 0.9 * kept.mean / kept.vector("scale") / precision, rtol=1e-12)


@pytest.mark.parametrize("learner", [EACH, SHARED], ids=name)
@pytest.mark.parametrize("discount", [0.95, 0.3])
def test_covariances_forget_by_turns(learner: ovi.Softmax, discount: float) -> None:
    """What the prior lost comes back to each coordinate by turns: a precision is never far below the prior's."""
    learner, (X, y) = replace(learner, discount=discount), rows(40)
    state, _ = learner.update_many(learner.init(3), X, y)
    silent, _ = learner.update_many(state, np.zeros((200, 3)), np.zeros(200))
    for c in range(3):
        least = np.linalg.eigvalsh(np.linalg.inv(silent.scale(c)))
        assert least.min() >= 0.5 - 1e-9
        assert least.max() <= 1.0 + 1e-3
        assert np.linalg.eigvalsh(state.scale(c)).max() <= 2.0 + 1e-9
    assert np.abs(silent.mean).max() < 0.02 * np.abs(state.mean).max()


@pytest.mark.compiled
def test_a_short_memory_stays_a_belief() -> None:
    """Of two entries that should be the same, rounding's difference would grow by 1/discount at every event."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((3000, 30)), rng.integers(0, 3, 3000)
    learner = ovi.Softmax(3, ovi.FullCovariance(prior_std=20.0, box=None), discount=0.95)
    state, _ = learner.update_many(learner.init(30), X, y)
    for c in range(3):
        variances = np.linalg.eigvalsh(state.scale(c))
        assert variances[0] > 0.0
        assert variances[-1] <= 2.0 * 400.0


# --- what is said, and what the belief would pay


@pytest.mark.parametrize("v", [0.0, 0.3, 1.0, 3.0])
def test_two_classes_are_said_as_the_logistic_loss_says_them(v: float) -> None:
    """A difference of two scores is one score; of its variance half is a shift of both."""
    room, line = loops.new_room(2), np.empty(2)
    room.score[:], room.variance[:] = [0.4, 1.7], v * v
    loops.speak(room, 2, line)
    points, mass = np.polynomial.hermite_e.hermegauss(200)
    exact = mass @ expit(1.3 + v * points) / mass.sum()
    assert np.exp(line).sum() == pytest.approx(1.0)
    assert abs(np.exp(line[1]) - exact) < 0.011


@pytest.mark.parametrize("seed", range(8))
def test_the_bound_is_above_what_the_belief_would_pay_and_near(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, v = 2.0 * rng.standard_normal(3), rng.uniform(0.0, 2.0, 3)
    room, line = loops.new_room(3), np.empty(3)
    room.score[:], room.variance[:] = a, v * v
    loops.speak(room, 3, line)
    ours, exact = loops.bound(room, 3, line), expected(a, v)
    assert ours == pytest.approx(bound(a, v, np.exp(line)), rel=1e-12)
    assert logsumexp(a) <= exact <= ours + 1e-9
    assert ours - exact < 0.05 + 0.3 * np.square(v).max()


def test_the_bound_is_convex_at_any_alpha_and_the_loss_without_spread() -> None:
    rng = np.random.default_rng(0)
    for _ in range(500):
        k = int(rng.integers(2, 6))
        (a, v), (b, w) = ((5.0 * rng.standard_normal(k), rng.exponential(2.0, k)) for _ in range(2))
        alpha = rng.normal(0.3, 1.0, k)
        ends = 0.5 * bound(a, v, alpha) + 0.5 * bound(b, w, alpha)
        assert bound(0.5 * (a + b), 0.5 * (v + w), alpha) <= ends + 1e-12 * abs(ends)
        assert bound(a, 0.0 * v, alpha) == pytest.approx(logsumexp(a), rel=1e-12)


def test_the_state_keeps_what_the_belief_would_have_paid() -> None:
    X, y = rows(15)
    state, total = EACH.init(3), 0.0
    for x, label in zip(X, y, strict=True):
        v = np.sqrt([x @ state.scale(c) @ x for c in range(3)])
        total += expected(state.mean @ x, v) - state.mean[int(label)] @ x
        state, _ = EACH.update(state, x, label)
    assert total <= state.expected_loss < 1.3 * total


# --- classes that join


@pytest.mark.parametrize("learner", KINDS, ids=name)
def test_a_class_that_joins_begins_as_one_that_was_known(learner: ovi.Softmax) -> None:
    """The line of those to come has been one more class in every step; from then on there is a next such line."""
    X, y = rows(40)
    y[30::2] = 3.0
    first = int(np.argmax(y == 3.0))
    grown = replace(learner, known=3, grows=True)
    known = replace(learner, known=4, grows=False)
    one, _ = grown.update_many(grown.init(3), X[:first], y[:first])
    other, _ = known.update_many(known.init(3), X[:first], y[:first])
    assert np.array_equal(one.vector("mean"), other.vector("mean"))
    assert np.array_equal(one.vector("scale"), other.vector("scale"))
    after, trace = grown.update_many(one, X[first:], y[first:])
    assert after.known == 4
    assert np.isfinite(trace.loss).all()
    assert trace.forecast.prediction[0, 3] == -np.inf
    assert trace.probability[0, 3] == 0.0
    assert trace.probability.sum(axis=1) == pytest.approx(1.0)


def test_nobody_need_be_known_and_splits_give_the_same_bits() -> None:
    X, y = rows(40, classes=5)
    learner = ovi.Softmax(0, discount=0.9)
    whole, trace = learner.update_many(learner.init(3), X, y)
    state, losses = learner.init(3), []
    for x, label in zip(X, y, strict=True):
        state, step = learner.update(state, x, label)
        losses.append(step.loss)
    assert same_bits(whole, state)
    assert trace.loss.tolist() == losses
    assert whole.known == 5
    live = learner.live(learner.init(3))
    for x, label in zip(X, y, strict=True):
        live.foresee(x[np.newaxis])
        live.learn(x[np.newaxis], label)
    assert np.array_equal(live.state.array, whole.array)


def test_labels_of_classes_that_join_later_have_a_price_before() -> None:
    X, y = rows(30)
    learner = ovi.Softmax(3)
    state, _ = learner.update_many(learner.init(3), X, y)
    seen, new = (learner.look(state, X[:4], np.full(4, code)).loss for code in (2.0, 3.0))
    assert np.allclose(seen, -np.log(learner.forecast(state, X[:4]).probability[:, 2]))
    assert np.array_equal(new, [learner.update(state, x, 3.0)[1].loss for x in X[:4]])
    assert learner.look(ovi.Softmax(0).init(3), X[:1], y[:1]).loss.shape == (1,)


# --- rows and columns


@pytest.mark.parametrize("learner", KINDS, ids=name)
def test_sparse_rows_are_learned_as_dense_ones(learner: ovi.Softmax) -> None:
    X, y = rows()
    X[np.abs(X) < 0.6] = 0.0
    dense, sparse = (learner.update_many(learner.init(3), given, y)[0] for given in (X, csr_matrix(X)))
    assert np.allclose(dense.array, sparse.array, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("learner", KINDS, ids=name)
def test_a_missing_value_widens_what_is_said_and_moves_no_weight(learner: ovi.Softmax) -> None:
    X, y = rows()
    learner = replace(learner, missing=True)
    state, _ = learner.update_many(learner.init(3), X, y)
    whole, gap = np.array([3.0, 0.0, 0.0]), np.array([3.0, np.nan, 0.0])
    sure, unsure = (learner.forecast(state, row).probability.max() for row in (whole, gap))
    assert unsure < sure
    after, _ = learner.update(state, gap, 0.0)
    zero, _ = learner.update(state, whole, 0.0)
    assert np.array_equal(after.mean, zero.mean)
    assert np.array_equal(after.vector("scale"), zero.vector("scale"))


@pytest.mark.parametrize("learner", KINDS, ids=name)
def test_columns_that_join_were_0_so_far(learner: ovi.Softmax) -> None:
    X, y = rows(dim=4)
    first, rest = slice(0, 30), slice(30, None)
    narrow, _ = learner.update_many(learner.init(2), X[first, :2], y[first])
    wide, _ = learner.update_many(learner.widen(narrow, 4), X[rest], y[rest])
    zeros = X.copy()
    zeros[first, 2:] = 0.0
    known, _ = learner.update_many(learner.init(4), zeros, y)
    assert np.allclose(wide.array, known.array, rtol=1e-9, atol=1e-12)


# --- shards and files


@pytest.mark.parametrize("learner", [*KINDS, replace(EACH, discount=0.98)], ids=name)
def test_shards_add_up_in_natural_parameters(learner: ovi.Softmax) -> None:
    X, y = rows(90)
    learner = replace(learner, known=2, grows=True)
    shards = [learner.update_many(learner.init(3), X[k::3], y[k::3])[0] for k in range(3)]
    merged = learner.merge(shards)
    assert merged.count == 90
    assert merged.known == 3
    for line in range(4):
        precisions, firsts = np.eye(3), np.zeros(3)
        for shard in shards:
            own = shard.against_classes(3)
            dense = own.scale(line) if own.scale(line).ndim == 2 else np.diag(own.scale(line))
            precisions = precisions + np.linalg.inv(dense) - np.eye(3)
            firsts = firsts + np.linalg.solve(dense, own.vector("mean")[line])
        if learner.discount == 1.0:
            assert np.allclose(merged.vector("mean")[line], np.linalg.solve(precisions, firsts), rtol=1e-7)
    assert np.allclose(merged.gradient, sum(shard.against_classes(3).gradient for shard in shards))
    assert merged.loss == pytest.approx(sum(shard.loss for shard in shards))


def test_a_second_round_counts_what_all_began_with_once() -> None:
    X, y = rows(90)
    start, _ = APART.update_many(APART.init(3), X[:30], y[:30])
    shards = [APART.update_many(start, X[k::2], y[k::2])[0] for k in (30, 31)]
    merged = APART.merge(shards, start)
    assert merged.count == 30 + sum(shard.count - 30 for shard in shards)
    precision = sum(1.0 / shard.vector("scale") for shard in shards) - 1.0 / start.vector("scale")
    assert np.allclose(1.0 / merged.vector("scale"), precision, rtol=1e-9)
    with pytest.raises(ValueError, match="merge in one round"):
        replace(APART, discount=0.9).merge(shards, start)


@pytest.mark.parametrize("learner", KINDS, ids=name)
def test_files_bring_back_classes_that_joined(learner: ovi.Softmax, tmp_path: Path) -> None:
    X, y = rows(classes=4)
    learner = replace(learner, known=2, grows=True)
    state, _ = learner.update_many(learner.init(3), X, y)
    ovi.save(tmp_path / "model.ovi", learner, state)
    saved = ovi.load(tmp_path / "model.ovi")
    assert saved.learner == learner
    assert same_bits(saved.state, state)


def test_what_makes_no_sense_is_refused_in_a_sentence() -> None:
    for kind, message in (
        (lambda: ovi.Softmax(1), "at least two classes"),
        (lambda: ovi.Softmax(0, grows=False), "at least two classes"),
        (lambda: ovi.Softmax(3, ovi.MeanField()), "box=None"),
        (lambda: ovi.Softmax(3, ovi.MeanField(box=None), shared=True), "needs FullCovariance"),
        (lambda: ovi.Softmax(3, ovi.Point()), "needs FullCovariance"),
        (lambda: ovi.Softmax(3, discount=0.0), "0 < discount"),
        (lambda: ovi.Softmax(3, ovi.FullCovariance(prior_std=1e200, box=None)), "up to 1e"),
        (lambda: EACH.init(0), "at least one feature"),
        (lambda: EACH.update(EACH.init(2), [1.0, 2.0], 3.0), "none can join"),
        (lambda: EACH.update(EACH.init(2), [1.0, 2.0], 0.5), "no class"),
        (lambda: EACH.update(EACH.init(2), [1.0, 2.0], np.nan), "no class"),
        (lambda: EACH.update(EACH.init(2), [1.0, np.nan], 1.0), "missing=True"),
        (lambda: EACH.update(EACH.init(2), [1e200, 1.0], 1.0), "too large to square"),
        (lambda: EACH.update(EACH.init(2), [1.0, 1.0], 1.0, -1.0), "weight must be"),
        (lambda: EACH.update(EACH.init(2), [1.0], 1.0), "same columns"),
        (lambda: EACH.update(APART.init(2), [1.0, 1.0], 1.0), "another learner"),
        (lambda: EACH.widen(EACH.init(2), 1), "none can leave"),
        (lambda: EACH.merge([EACH.init(2), EACH.init(3)]), "do not add up"),
        (lambda: EACH.forecast(EACH.init(2), [np.inf, 1.0]), "not finite"),
    ):
        with pytest.raises(ValueError, match=message):
            kind()


def test_rows_before_a_bad_one_are_learned() -> None:
    X, y = rows(20)
    X[7, 1] = np.inf
    with pytest.raises(ovi.BadRow, match="row 7: feature 1 is inf") as refused:
        EACH.update_many(EACH.init(3), X, y)
    assert refused.value.trace.state.count == 7
    state, _ = EACH.update_many(EACH.init(3), np.empty((0, 3)), np.empty(0))
    assert state.count == 0
    assert not state.array[: len(SUM)].any()


@pytest.mark.compiled
def test_wide_priors_cost_little() -> None:
    """Where explicit steps collapse: at a prior four, and sixteen, times as wide about as many are right."""
    X, y = rows(3000, dim=8, classes=6, seed=3)
    wrong = {}
    for std in (1.0, 4.0, 16.0):
        learner = ovi.Softmax(6, ovi.FullCovariance(prior_std=std, box=None))
        trace = learner.update_many(learner.init(8), X, y)[1]
        wrong[std] = float((trace.forecast.guess != y).mean())
    assert max(wrong.values()) < wrong[1.0] + 0.02, wrong


@pytest.mark.compiled
@pytest.mark.parametrize("learner", KINDS, ids=name)
def test_both_engines_learn_the_same(learner: ovi.Softmax) -> None:
    from onlinevi.engine import using_engine

    learner, (X, y) = replace(learner, discount=0.97, known=2, grows=True), rows()
    compiled, _ = learner.update_many(learner.init(3), X, y)
    with using_engine("interpreted"):
        interpreted, _ = learner.update_many(learner.init(3), X, y)
    assert np.allclose(compiled.array, interpreted.array, rtol=1e-9, atol=1e-12)
