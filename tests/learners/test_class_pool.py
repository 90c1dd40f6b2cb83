"""Learners of several classes pooled by Bayes' rule: what is said, what it costs, and the bound on it."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from helpers.states import same_bits

import onlinevi as ovi

LEAVES = [ovi.Softmax(3, ovi.MeanField(prior_std=std, box=None)) for std in (0.2, 2.0)]
POOL = ovi.ClassPool(LEAVES)
LOGISTIC = ovi.Linear(ovi.Logistic(), ovi.Implicit(), ovi.MeanField(box=None))


def rows(count: int = 60, classes: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((count, 2))
    return X, (2.0 * X @ rng.standard_normal((2, classes)) + rng.gumbel(size=(count, classes))).argmax(axis=1) * 1.0


def test_it_is_bayes_rule_over_learners_and_boldness() -> None:
    X, y = rows(25)
    pool = replace(POOL, boldness=(0.5, 1.0, 2.0), share=0.0)
    state, trace = pool.update_many(pool.init(2), X, y)
    tables = [leaf.update_many(leaf.init(2), X, y)[1].probability for leaf in LEAVES]
    opinions = [table**bold / (table**bold).sum(axis=1, keepdims=True) for table in tables for bold in pool.boldness]
    log_weights = np.full(6, -math.log(6.0))
    for t, label in enumerate(y.astype(int)):
        weights = np.exp(log_weights)
        said = sum(weight * opinion[t] for weight, opinion in zip(weights, opinions, strict=True))
        assert np.allclose(trace.probability[t], said, rtol=1e-10)
        assert trace.loss[t] == pytest.approx(-math.log(said[label]))
        log_weights += [math.log(opinion[t, label]) for opinion in opinions]
        log_weights -= np.logaddexp.reduce(log_weights)
    assert np.allclose(state.opinions.ravel(), np.exp(log_weights), rtol=1e-8)
    assert state.weights.sum() == pytest.approx(1.0)


def test_it_loses_no_more_than_the_bound_whatever_the_labels() -> None:
    rng = np.random.default_rng(1)
    for share in (0.0, 0.01):
        pool = replace(POOL, share=share)
        for stream in range(6):
            X, y = rows(40, seed=stream)
            state = pool.init(2)
            for x, label in zip(X, y, strict=True):  # every second stream is chosen against the pool
                said = pool.forecast(state, x).probability
                state, _ = pool.update(state, x, float(said.argmin()) if stream % 2 else label)
            assert state.regret <= state.switching_bound(0) + 1e-9
    assert state.switching_bound(2) > state.switching_bound(0)
    weighed, _ = POOL.update_many(POOL.init(2), X, y, weights=rng.uniform(0.5, 2.0, 40))
    assert math.isnan(weighed.switching_bound(0))
    with pytest.raises(ValueError, match="set share"):
        replace(POOL, share=0.0).init(2).switching_bound(1)


def test_row_weights_count_as_in_the_learners() -> None:
    X, y = rows(30)
    weights = np.random.default_rng(2).choice([0.5, 1.0, 3.0], 30)
    mixed = ovi.ClassPool([LEAVES[0], ovi.OneVsRest(ovi.Linear(ovi.Logistic(), ovi.Implicit()), 3)], boldness=(1.0,))
    state, trace = mixed.update_many(mixed.init(2), X, y, weights=weights)
    assert state.loss == pytest.approx(trace.loss.sum())
    for k, learner in enumerate(mixed.learners):
        alone = learner.update_many(learner.init(2), X, y, weights=weights)[1].loss
        assert state.losses[k, 0] == pytest.approx(alone @ weights if learner.counts_once else alone.sum())


def test_classes_join_splits_and_events_in_place_give_the_same_bits() -> None:
    X, y = rows(40, classes=5)
    pool = ovi.ClassPool([ovi.Softmax(0), ovi.Expand(ovi.Relu(3), ovi.Softmax(0, discount=0.9), intercept=False)])
    whole, trace = pool.update_many(pool.init(2), X, y)
    state = pool.init(2)
    for low, high in pairwise([0, 1, 2, 9, 40]):
        state, _ = pool.update_many(state, X[low:high], y[low:high])
    assert same_bits(state, whole)
    live = pool.live(pool.init(2))
    for x, label in zip(X, y, strict=True):
        live.foresee(x[np.newaxis])
        live.learn(x[np.newaxis], label)
    assert np.array_equal(live.state.array, whole.array)
    assert trace.probability[1:].sum(axis=1) == pytest.approx(1.0)
    new = pool.look(whole, X[:2], np.array([5.0, 0.0])).loss
    assert new[0] == pytest.approx(pool.update(whole, X[0], 5.0)[1].loss)
    assert new[1] == pytest.approx(pool.update(whole, X[1], 0.0)[1].loss)


def test_shards_multiply_weights_and_certificates_speak_of_the_pool() -> None:
    X, y = rows(80)
    shards = [POOL.update_many(POOL.init(2), X[k::2], y[k::2])[0] for k in range(2)]
    merged = POOL.merge(shards)
    assert merged.loss == pytest.approx(sum(shard.loss for shard in shards))
    expected = shards[0].opinions * shards[1].opinions
    assert np.allclose(merged.opinions, expected / expected.sum())
    assert math.isnan(merged.switching_bound(0))
    state, _ = POOL.update_many(POOL.init(2), X, y)
    before, _ = POOL.update_many(POOL.init(2), X[:30], y[:30])
    best = ovi.guarantees.hindsight(X, y, loss=ovi.Logistic(), classes=3, box=None, radius=3.0)
    live = ovi.certificate(state)
    assert live.loss - 80 * best.value <= live.against(best.mean.ravel()) <= live.within(3.0) + 1e-9
    assert ovi.certificate(state, since=before).count == 50


def test_nested_pools_begin_where_no_class_is_known_and_say_no_more_than_1() -> None:
    """A mean of probabilities that are certain rounds to more than 1, which sets would refuse."""
    X = np.repeat([[30.0, 0.0], [0.0, 30.0], [-30.0, -30.0]], 20, axis=0)
    y = np.repeat([0.0, 1.0, 2.0], 20)
    pool = ovi.ClassPool([ovi.ClassPool([ovi.Softmax(0), ovi.Softmax(0, discount=0.9)]), ovi.OneVsRest(LOGISTIC, 0)])
    learner = ovi.Sets(ovi.SetCalibration(0.9), pool)
    _, trace = learner.update_many(learner.init(2), np.tile(X, (2, 1)), np.tile(y, 2))
    assert np.isfinite(trace.loss).all()
    assert (trace.probability[0] == 0.0).all()
    assert trace.probability.max() <= 1.0
    assert trace.probability[-1].sum() == pytest.approx(1.0)


def test_columns_join_around_learners_of_every_kind() -> None:
    X, y = rows(40)
    pool = ovi.ClassPool([LEAVES[0], ovi.OneVsRest(ovi.Pool([LOGISTIC], rate=1.0, pool="probability"), 3)])
    narrow, _ = pool.update_many(pool.init(1), X[:20, :1], y[:20])
    wide = narrow.widened(2)
    again, _ = wide.plan.update_many(wide, X[20:], y[20:])
    zeros = np.column_stack([X[:, 0], np.where(np.arange(40) < 20, 0.0, X[:, 1])])
    whole, _ = pool.update_many(pool.init(2), zeros, y)
    assert again.loss == pytest.approx(whole.loss, rel=1e-9)
    assert again.mean.shape == (3, 2), "of the learner that has scores of all classes"
    np.testing.assert_allclose(again.mean, again.learners[0].mean)


def test_a_pool_without_a_posterior_over_all_classes_has_no_certificate() -> None:
    X, y = rows(20)
    pool = ovi.ClassPool([ovi.OneVsRest(LOGISTIC, 3)])
    state, _ = pool.update_many(pool.init(2), X, y)
    with pytest.raises(ValueError, match="put a Softmax among them"):
        ovi.certificate(state)


def test_what_makes_no_pool_is_refused() -> None:
    hinge = ovi.OneVsRest(ovi.Linear(ovi.Hinge(), ovi.SVB()), 3)
    for learners, options, message in (
        ([], {}, "one learner of several classes"),
        ([ovi.Linear(ovi.Logistic(), ovi.NGVI())], {}, "one learner of several classes"),
        ([hinge], {}, "no probabilities"),
        (LEAVES, {"share": 1.0}, "0 ≤ share < 1"),
        (LEAVES, {"boldness": ()}, "numbers > 0"),
        (LEAVES, {"boldness": (0.0,)}, "numbers > 0"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            ovi.ClassPool(learners, **options)
