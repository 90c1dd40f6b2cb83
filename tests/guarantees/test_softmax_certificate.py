"""One live certificate for all classes together: no stream, and no fixed weights, break it."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.softmax_trials import KINDS, attacked, losses, trial

import onlinevi as ovi


@pytest.mark.parametrize("seed", range(2 * len(KINDS)))
def test_no_stream_and_no_weights_break_it(seed: int) -> None:
    found = trial(seed, most=25)
    assert found.margin >= -1e-9 * found.size, found.kind


def test_the_attack_finds_a_certificate_that_is_wrong() -> None:
    """With slopes of half their size it is broken."""
    found = trial(0, most=60)
    array = np.array(found.state.array)
    place = found.state.plan.places["total"]
    array[place] *= 0.5
    broken = type(found.state)(array, found.state.plan)
    assert attacked("broken", broken, found.X, found.y, found.weights).margin < -1e-6 * found.size


def test_it_speaks_of_what_was_said_and_of_segments() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 2))
    y = (X @ [[2.0, -1.0, 0.0], [0.0, 1.0, -1.0]] + rng.gumbel(size=(150, 3))).argmax(axis=1)
    learner = ovi.Softmax(3, grows=False)
    before, _ = learner.update_many(learner.init(2), X[:50], y[:50])
    after, trace = learner.update_many(before, X[50:], y[50:])
    whole, part = ovi.certificate(after), ovi.certificate(after, since=before)
    paid = -np.log(trace.probability[np.arange(100), y[50:]])
    assert part.count == 100
    assert part.loss == pytest.approx(paid.sum())
    u = after.mean
    for live, rows in ((whole, slice(None)), (part, slice(50, None))):
        assert live.loss - losses(X[rows], y[rows], u).sum() <= live.against(u.ravel())
        assert live.against(u.ravel()) <= live.within(np.linalg.norm(u)) + 1e-9
    assert not whole.bounded
    assert "within" in repr(whole)


def test_a_window_may_begin_before_classes_joined() -> None:
    rng = np.random.default_rng(1)
    X, learner = rng.standard_normal((60, 2)), ovi.Softmax(2)
    y = np.where(np.arange(60) < 30, np.arange(60) % 2, np.arange(60) % 4)
    before, _ = learner.update_many(learner.init(2), X[:30], y[:30])
    after, _ = learner.update_many(before, X[30:], y[30:])
    live, u = ovi.certificate(after, since=before), rng.standard_normal((4, 2))
    assert live.loss - losses(X[30:], y[30:], u).sum() <= live.against(u.ravel())


def test_merged_certificates_add_up() -> None:
    rng = np.random.default_rng(2)
    X, learner = rng.standard_normal((80, 2)), ovi.Softmax(2)
    y = rng.integers(0, 4, 80)
    shards = [learner.update_many(learner.init(2), X[k::2], y[k::2])[0] for k in range(2)]
    merged, u = learner.merge(shards), rng.standard_normal((4, 2))
    live = ovi.certificate(merged)
    assert live.loss - losses(X, y, u).sum() <= live.against(u.ravel())
