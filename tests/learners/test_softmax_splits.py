"""Blocks of any length come to the same bits: long ones have their covariances laid out anew, and leave nothing undone."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from helpers.states import same_bits

import onlinevi as ovi
from onlinevi.learners.softmax.beliefs import MANY

FULL = ovi.FullCovariance(prior_std=2.0, box=None)


@pytest.mark.compiled
@pytest.mark.parametrize("shared", [False, True], ids=["each", "shared"])
@pytest.mark.parametrize("dim", [1, 6, 8, 19])
def test_any_split_gives_the_same_bits_however_long_its_blocks(dim: int, shared: bool) -> None:
    rng, count = np.random.default_rng(dim), 3 * MANY
    X, y = rng.standard_normal((count, dim)), rng.integers(0, 3, count) * 1.0
    for discount in (1.0, 0.999, 0.9, 0.3):
        learner = ovi.Softmax(3, FULL, shared=shared, discount=discount, grows=False)
        whole, trace = learner.update_many(learner.init(dim), X, y)
        state, losses = learner.init(dim), []
        for low, high in pairwise([0, 1, 3, 3 + MANY, 4 + MANY, count]):
            state, part = learner.update_many(state, X[low:high], y[low:high])
            losses += part.loss.tolist()
        assert same_bits(state, whole)
        assert trace.loss.tolist() == losses
        live = learner.live(learner.init(dim))
        for x, label in zip(X, y, strict=True):
            live.learn(x[np.newaxis], label)
        assert np.array_equal(live.state.array, whole.array)
        together, alone = learner.forecast(whole, X[:MANY]), learner.forecast(whole, X[3])
        assert np.array_equal(together.probability[3], alone.probability)


@pytest.mark.parametrize("shared", [False, True], ids=["each", "shared"])
def test_rows_before_a_refused_one_are_in_the_state(shared: bool) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((MANY + 5, 3)), rng.integers(0, 3, MANY + 5) * 1.0
    learner = ovi.Softmax(3, FULL, shared=shared, discount=0.9, grows=False)
    before, _ = learner.update_many(learner.init(3), X[:-2], y[:-2])
    X[-2, 0] = np.inf
    with pytest.raises(ovi.BadRow) as refused:
        learner.update_many(learner.init(3), X, y)
    assert same_bits(refused.value.trace.state, before)
