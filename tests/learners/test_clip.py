"""Predictions between the labels so far: by hand, and never dearer for it where labels keep between those of before."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.states import bits, same_bits

import onlinevi as ovi
from onlinevi.ewa import AdaHedge

LEAF = ovi.Linear(ovi.Squared(), ovi.Implicit(), ovi.FullCovariance(prior_std=10.0, box=None))
LEARNER = ovi.Clip(LEAF)


def stream(count: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Labels between bounds, which straight lines go beyond."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(count), 3.0 * rng.standard_t(2, (count, 2))])
    return X, np.clip(X @ [1.0, 2.0, -1.0], -4.0, 4.0) + 0.1 * rng.standard_normal(count)


@pytest.mark.parametrize("loss", [ovi.Squared(), ovi.Absolute(), ovi.Pinball(0.9)], ids=lambda own: own.name)
def test_what_is_said_is_clipped_by_hand(loss: ovi.Loss) -> None:
    (X, y), weights = stream(), np.random.default_rng(1).integers(0, 4, 60) / 2.0
    leaf = ovi.Linear(loss, ovi.Implicit(), ovi.FullCovariance(prior_std=10.0, box=None))
    used, learner = weights > 0.0, ovi.Clip(leaf)
    plain = leaf.update_many(leaf.init(3), X, y, weights=weights)[1].prediction
    state, trace = learner.update_many(learner.init(3), X, y, weights=weights)
    seen, wanted = y[used], plain.copy()
    for t in range(1, len(wanted)):
        wanted[t] = min(max(plain[t], seen[:t].min()), seen[:t].max())
    assert (wanted != plain).sum() >= 3
    np.testing.assert_array_equal(trace.prediction, wanted)
    np.testing.assert_allclose(trace.loss, np.asarray(loss(seen, wanted).value) * weights[used], rtol=1e-13)
    assert state.loss == pytest.approx(trace.loss.sum(), rel=1e-13)
    assert (state.low, state.high) == (seen.min(), seen.max())


@pytest.mark.parametrize("seed", range(3))
def test_a_label_between_those_of_before_never_costs_more(seed: int) -> None:
    X, y = stream(seed=seed)
    clipped = LEARNER.update_many(LEARNER.init(3), X, y)[1].loss
    plain = LEAF.update_many(LEAF.init(3), X, y)[1].loss
    within = np.array([t > 0 and y[:t].min() <= y[t] <= y[:t].max() for t in range(len(y))])
    assert (clipped[within] <= plain[within]).all()
    assert (clipped[within] < plain[within]).any()


def test_event_by_event_in_blocks_and_from_a_file_it_is_the_same(tmp_path: Path) -> None:
    X, y = stream()
    whole, trace = LEARNER.update_many(LEARNER.init(3), X, y)
    half, before = LEARNER.update_many(LEARNER.init(3), X[:17], y[:17])
    ovi.save(tmp_path / "model.ovi", LEARNER, half)
    loaded = ovi.load(tmp_path / "model.ovi").state
    state, after = LEARNER.update_many(loaded, X[17:], y[17:])
    assert bits(state) == bits(whole)
    assert (state.low, state.high, state.loss) == (whole.low, whole.high, whole.loss)
    assert np.concatenate([before.prediction, after.prediction]).tobytes() == trace.prediction.tobytes()
    live = LEARNER.live(LEARNER.init(3))
    for row, label, said in zip(X, y.tolist(), trace.prediction, strict=True):
        assert live.foresee(row[None, :]).prediction[0] == pytest.approx(said, rel=1e-9, abs=1e-9)
        assert live.learn(row[None, :], label).prediction[0] == said
    assert same_bits(live.state, whole)
    assert live.state.loss == whole.loss


def test_shards_have_one_range() -> None:
    X, y = stream()
    parts = [LEARNER.update_many(LEARNER.init(3), X[cut], y[cut])[0] for cut in (slice(0, 20), slice(20, 60))]
    merged = LEARNER.merge(parts)
    assert (merged.low, merged.high) == (y.min(), y.max())
    assert merged.loss == pytest.approx(sum(part.loss for part in parts))


def test_a_pool_is_not_bound_by_the_range_of_one_of_its_learners() -> None:
    """Labels that rise for ever: what is clipped never foretells the next one, and the pool goes with the other."""
    X = np.column_stack([np.ones(200), np.arange(200.0)])
    pool = ovi.Pool([LEAF, LEARNER], rate=AdaHedge())
    state, trace = pool.update_many(pool.init(2), X, X[:, 1])
    assert state.losses[1] > 100.0
    assert state.regret <= state.regret_bound < 10.0
    assert abs(trace.prediction[-1] - 199.0) < 0.1


def test_only_numbers_are_clipped() -> None:
    for loss in (ovi.Logistic(), ovi.Poisson()):
        with pytest.raises(ValueError, match="only numbers are clipped"):
            ovi.Clip(ovi.Linear(loss, ovi.Implicit()))
