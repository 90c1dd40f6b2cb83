"""Weights that forget when a row stores them: as those that forget at each event, at the cost of what rows store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix, random

import onlinevi as ovi
from onlinevi.engine import using_engine
from onlinevi.learners import buffer_for

RULES = [ovi.OGAEL(0.3), ovi.SVB(0.3), ovi.NGVI(), ovi.Implicit(), ovi.NGVI(floor=0.1), ovi.NGVI(parameters="scale")]
BOX = ovi.MeanField(prior_mean=0.3, prior_std=1.5)
PRIORS = ovi.MeanField(prior_mean=tuple(np.linspace(-1, 1, 12)), prior_std=tuple(np.linspace(0.5, 2, 12)), box=None)


def of(rule: ovi.Rule, family: ovi.Family = BOX, discount: float = 0.9, **more: Any) -> ovi.Linear:
    return ovi.Linear(ovi.Logistic(), rule, family, average=False, discount=discount, lazy=True, **more)


def stream(count: int = 150, dim: int = 12, seed: int = 0) -> tuple[Any, np.ndarray]:
    X = random(count, dim, 0.15, format="csr", random_state=seed)
    return X, np.sign(np.random.default_rng(seed).standard_normal(count))


def same_belief(one: Any, two: Any) -> None:
    np.testing.assert_allclose(one.mean, two.mean, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(one.std, two.std, rtol=1e-12)


@pytest.mark.parametrize("dense", [False, True], ids=["sparse", "dense"])
@pytest.mark.parametrize("family", [BOX, PRIORS], ids=["box", "priors"])
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_it_is_forgetting_at_each_event(rule: ovi.Rule, family: ovi.Family, dense: bool) -> None:
    X, y = stream()
    weights = np.where(np.arange(150) % 7 == 3, 0.0, 1.5)
    late = of(rule, family)
    each = replace(late, lazy=False)
    rows = X.toarray() if dense else X
    (one, said), (two, told) = (learner.update_many(learner.init(12), rows, y, weights=weights) for learner in (late, each))
    same_belief(one, two)
    np.testing.assert_allclose(said.prediction, told.prediction, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(said.spread, told.spread, rtol=1e-12)
    assert one.loss == pytest.approx(two.loss, rel=1e-12)
    np.testing.assert_allclose(late.predict(one, X), each.predict(two, X), rtol=1e-11, atol=1e-13)
    if isinstance(rule, ovi.Implicit):
        assert late.belief_family.kl(one.belief) == pytest.approx(each.belief_family.kl(two.belief), rel=1e-10)


@pytest.mark.parametrize("discount", [1.0, 0.999999, 0.5, 1e-3])
def test_any_memory_and_any_wait(discount: float) -> None:
    """A weight that no row has stored for long is at the prior, one of std 0 stays."""
    X = csr_matrix(np.vstack([np.eye(3), np.tile([0.0, 0.0, 1.0], (300, 1)), np.eye(3)]))
    y = np.sign(np.sin(np.arange(306.0)) + 0.5)
    for rule in (ovi.Implicit(), ovi.OGAEL(50.0)):
        late = of(rule, discount=discount)
        one, two = (learner.update_many(learner.init(3), X, y)[0] for learner in (late, replace(late, lazy=False)))
        np.testing.assert_allclose(one.mean, two.mean, rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(one.std, two.std, rtol=1e-10)


def test_any_split_gives_the_same_bits_and_so_does_looking() -> None:
    X, y = stream()
    learner = of(ovi.Implicit())
    whole, _ = learner.update_many(learner.init(12), X, y)
    state = learner.init(12)
    for low, high in ((0, 1), (1, 40), (40, 41), (41, 150)):
        state, _ = learner.update_many(state, X[low:high], y[low:high])
        _ = state.mean, state.std, learner.predict(state, X), state.vector("belief")
    assert state == whole
    dense, _ = learner.update_many(learner.init(12), X.toarray(), y)
    same_belief(dense, whole)


def test_a_row_that_is_refused_leaves_no_trace() -> None:
    X, y = stream(60)
    learner = of(ovi.Implicit())
    bad = X.copy()
    bad.data = bad.data.copy()
    bad.data[bad.indptr[30]] = np.inf
    for block in (bad, bad.toarray()):
        with pytest.raises(ovi.BadRow) as stopped:
            learner.update_many(learner.init(12), block, y)
        assert stopped.value.row == 30
        rows = block[:30]
        assert stopped.value.trace.state == learner.update_many(learner.init(12), rows, y[:30])[0]


def test_files_merges_and_columns_that_join(tmp_path: Path) -> None:
    X, y = stream()
    late = of(ovi.Implicit())
    each = replace(late, lazy=False)
    half, _ = late.update_many(late.init(12), X[:75], y[:75])
    ovi.save(tmp_path / "half.ovi", late, half)
    again = ovi.load(tmp_path / "half.ovi")
    assert (again.learner, again.state) == (late, half)
    whole, _ = late.update_many(half, X[75:], y[75:])
    assert late.update_many(again.state, X[75:], y[75:])[0] == whole
    merged, told = (
        learner.merge([learner.update_many(learner.init(12), X[part], y[part])[0] for part in (slice(75), slice(75, 150))])
        for learner in (late, each)
    )
    same_belief(merged, told)
    same_belief(*(learner.update_many(state, X, y)[0] for learner, state in ((late, merged), (each, told))))
    narrow, _ = late.update_many(late.init(8), X[:75, :8], y[:75])
    wide = csr_matrix((X[:75, :8].data, X[:75, :8].indices, X[:75, :8].indptr), shape=(75, 12))
    assert late.widen(narrow, 12) == late.update_many(late.init(12), wide, y[:75])[0]


def test_pools_and_what_goes_on_in_place() -> None:
    X, y = stream(80)
    late, each = (
        ovi.Pool(
            [replace(of(ovi.Implicit(), discount=own), lazy=lazy) for own in (1.0, 0.99, 0.9)], rate=1.0, pool="probability"
        )
        for lazy in (True, False)
    )
    assert not late.init(12).plan.fills_rows
    (one, said), (two, told) = (pool.update_many(pool.init(12), X, y) for pool in (late, each))
    np.testing.assert_allclose(one.weights, two.weights, rtol=1e-10)
    np.testing.assert_allclose(said.prediction, told.prediction, rtol=1e-10, atol=1e-12)
    for mine, other in zip(one.learners, two.learners, strict=True):
        same_belief(mine, other)
    for learner in (
        of(ovi.Implicit()),
        ovi.Prepare(ovi.Inputs(), late),
        ovi.Prepare(ovi.Inputs(intercept=False), of(ovi.NGVI())),
    ):
        buffer, rows = buffer_for(learner, learner.init(12)), X.toarray()[:20]
        for row, label in zip(rows, y, strict=False):
            buffer.learn(np.stack([row, np.zeros(12)]), label)
        whole, _ = learner.update_many(learner.init(12), rows, y[:20])
        np.testing.assert_array_equal(buffer.state.mean, whole.mean)


def test_what_must_be_made_up_at_once_is_refused() -> None:
    with pytest.raises(ValueError, match="average=False"):
        ovi.Linear(ovi.Logistic(), ovi.Implicit(), discount=0.9, lazy=True)
    for family in (ovi.FullCovariance(box=None), ovi.LowRank(2), ovi.MeanField(box=ovi.Ball())):
        with pytest.raises(ValueError, match="lazy=True needs a family"):
            of(ovi.Implicit(), family)
    with pytest.raises(ValueError, match="without a ridge"):
        replace(of(ovi.SVB(0.3)), loss=ovi.Squared(ridge=0.1))


@pytest.mark.compiled
def test_the_compiled_loop_is_the_interpreted_one() -> None:
    X, y = stream(400)
    learner = of(ovi.Implicit())
    compiled, _ = learner.update_many(learner.init(12), X, y)
    with using_engine("interpreted"):
        interpreted, _ = learner.update_many(learner.init(12), X, y)
    same_belief(compiled, interpreted)
