"""Two engines, one source: the compiled loop gives what the interpreted one gives, for every loss × belief × rule that ships.

A loop compiled for each would take many minutes. So one loss stands for all, in loops compiled for every belief and rule; two
losses are compiled into loops of their own, as users have them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from helpers.any_loss import KINDS, standing_for
from helpers.catalogue import LOSSES, labels, name

import onlinevi as ovi
from onlinevi import beliefs, losses, rules
from onlinevi.engine import using_engine
from onlinevi.engine.packed import SUM

pytestmark = pytest.mark.compiled

COUNT, DIM = 40, 9
"""Of nine values eight fill vectors, and one is left over."""


def rows_for(loss: ovi.Loss, *, sparse: bool, missing: bool) -> tuple[Any, np.ndarray, np.ndarray]:
    """A short stream and its weights, of which some are 0."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((COUNT, DIM)) / np.sqrt(DIM)
    if sparse:
        X[rng.random(X.shape) < 0.6] = 0.0
    if missing:
        X[(rng.random(X.shape) < 0.1) & (X != 0.0)] = np.nan
    weights = rng.choice([0.0, 0.5, 1.0, 2.0], COUNT)
    return scipy.sparse.csr_matrix(X) if sparse else X, labels(loss, rng, COUNT), weights


def played(learner: ovi.Linear, X: Any, y: np.ndarray, weights: np.ndarray) -> tuple[list[np.ndarray], ovi.State]:
    """What is recorded of a stream, half of it weighed, and the state behind it."""
    half, records, state = COUNT // 2, [], learner.init(DIM, horizon=COUNT)
    for part, given in ((slice(None, half), None), (slice(half, None), weights[half:])):
        state, trace = learner.update_many(state, X[part], y[part], weights=given)
        records.append(np.column_stack([trace.prediction, trace.spread, trace.loss]))
    return records, state


def hold(learner: ovi.Linear, X: Any, y: np.ndarray, weights: np.ndarray) -> None:
    """The compiled engine to the interpreted one. In float32 each rounds every step to seven digits, in its own order."""
    close = {"rtol": 1e-12, "atol": 1e-13} if learner.dtype == "float64" else {"rtol": 2e-5, "atol": 2e-6}
    records, state = played(learner, X, y, weights)
    with using_engine("interpreted"):
        want_records, want = played(learner, X, y, weights)
    for got, wanted in zip(records, want_records, strict=True):
        np.testing.assert_allclose(got, wanted, **close)
    np.testing.assert_allclose(state.array[: len(SUM)], want.array[: len(SUM)], **close)
    for vector in ("belief", "totals", "drift"):
        np.testing.assert_allclose(state.vector(vector), want.vector(vector), **close)
    assert state.count > COUNT // 2
    assert not np.array_equal(state.mean, learner.init(DIM, horizon=COUNT).mean), "something must have been learned"


PLAIN = [
    (ovi.Point(), ovi.OGA(0.1)),
    (ovi.Point(), ovi.LazyOGAEL(0.1)),
    (ovi.Point(), ovi.Implicit()),
    (ovi.MeanField(), ovi.OGAEL(0.1)),
    (ovi.MeanField(), ovi.LazyOGAEL(0.1)),
    (ovi.MeanField(), ovi.SVA(0.1)),
    (ovi.MeanField(), ovi.SVB()),
    (ovi.MeanField(), ovi.NGVI(0.5, 2.0, parameters="scale")),
    (ovi.MeanField(), ovi.NGVI(step=0.5, rate=2.0)),
    (ovi.MeanField(), ovi.Implicit()),
    (ovi.FullCovariance(), ovi.OGAEL(0.1)),
    (ovi.FullCovariance(), ovi.LazyOGAEL(0.1)),
    (ovi.FullCovariance(), ovi.SVA(0.1)),
    (ovi.FullCovariance(), ovi.SVB(ovi.PerSqrt(0.2))),
    (ovi.FullCovariance(), ovi.NGVI(0.2, parameters="scale")),
    (ovi.FullCovariance(), ovi.NGVI()),
    (ovi.FullCovariance(), ovi.Implicit()),
    (ovi.LowRank(rank=3), ovi.NGVI()),
    (ovi.LowRank(rank=3), ovi.Implicit()),
]
OWN_STDS = np.linspace(0.5, 1.5, DIM)
"""A prior std of its own for each coordinate."""


@dataclass(frozen=True)
class Case:
    """A loop with more compiled in."""

    family: ovi.Family
    rule: ovi.Rule
    sparse: bool = False
    robust: float | None = None
    ridge: float = 0.0
    more: tuple[tuple[str, Any], ...] = ()

    def __repr__(self) -> str:
        parts = [type(self.family).__name__, type(self.rule).__name__, "sparse" if self.sparse else "dense"]
        parts += [name for name in ("robust", "ridge") if getattr(self, name)]
        return "-".join([*parts, *(f"{key}={value}" for key, value in self.more)])


MISSING, FORGETS, SINGLE = ("missing", True), ("discount", 0.95), ("dtype", "float32")
SCALE = ovi.NGVI(ovi.PaperSVB(0.2), 2.0, parameters="scale")
FEATURES = [
    Case(ovi.Point(), ovi.OGA(ovi.Adaptive()), sparse=True, robust=3.0, more=(MISSING,)),
    Case(ovi.MeanField(prior_std=OWN_STDS), ovi.SVA(ovi.Adaptive()), sparse=True, more=(MISSING,)),
    Case(ovi.MeanField(), ovi.SVB(), sparse=True, more=(SINGLE,)),
    Case(ovi.MeanField(prior_std=OWN_STDS), ovi.NGVI(), sparse=True, robust=3.0),
    Case(ovi.FullCovariance(prior_std=OWN_STDS), ovi.NGVI(0.1, parameters="scale"), sparse=True, more=(MISSING,)),
    Case(ovi.LowRank(rank=3), ovi.Implicit(), sparse=True, robust=3.0, more=(MISSING,)),
    Case(ovi.Point(), ovi.OGA(0.1), ridge=0.1, more=(MISSING, FORGETS, SINGLE)),
    Case(ovi.MeanField(), ovi.NGVI(floor=0.6), more=(FORGETS,)),
    Case(ovi.MeanField(), SCALE, robust=3.0, ridge=0.1, more=(MISSING, FORGETS)),
    Case(ovi.FullCovariance(), ovi.NGVI(), more=(FORGETS,)),
    Case(ovi.LowRank(rank=3), ovi.NGVI(), more=(FORGETS,)),
    Case(ovi.MeanField(prior_std=OWN_STDS), ovi.Implicit(), robust=3.0, more=(MISSING, FORGETS, SINGLE)),
]


@pytest.mark.parametrize("loss", LOSSES, ids=name)
@pytest.mark.parametrize(("family", "rule"), PLAIN, ids=lambda part: type(part).__name__)
def test_every_loss_belief_and_rule(family: ovi.Family, rule: ovi.Rule, loss: ovi.Loss) -> None:
    hold(ovi.Linear(standing_for(loss), rule, family), *rows_for(loss, sparse=False, missing=False))


@pytest.mark.parametrize("rule", [ovi.OGAEL(0.1), ovi.SVA(0.1), ovi.NGVI()], ids=name)
def test_a_ridge(rule: ovi.Rule) -> None:
    for loss in (ovi.Hinge(), ovi.Squared()):
        hold(ovi.Linear(standing_for(loss, ridge=0.1), rule), *rows_for(loss, sparse=False, missing=False))


@pytest.mark.parametrize("loss", LOSSES, ids=name)
@pytest.mark.parametrize("case", FEATURES, ids=repr)
def test_what_is_compiled_in_where_it_is_asked_for(case: Case, loss: ovi.Loss) -> None:
    own = replace(standing_for(loss), robust=case.robust, ridge=case.ridge)
    learner = ovi.Linear(own, case.rule, case.family, **dict(case.more))
    hold(learner, *rows_for(loss, sparse=case.sparse, missing=learner.missing))


@pytest.mark.parametrize(("loss", "rule"), [(ovi.Hinge(), ovi.NGVI()), (ovi.Logistic(), ovi.Implicit())], ids=name)
def test_losses_in_loops_of_their_own(loss: ovi.Loss, rule: ovi.Rule) -> None:
    hold(ovi.Linear(loss, rule), *rows_for(loss, sparse=False, missing=False))


def shipped(package: Any, kind: type) -> list[type]:
    found = (getattr(package, one) for one in package.__all__)
    return [one for one in found if isinstance(one, type) and issubclass(one, kind) and one is not kind]


def test_nothing_that_ships_is_left_out() -> None:
    assert set(shipped(losses, ovi.Loss)) == set(KINDS)
    pairs = set()
    for family in shipped(beliefs, ovi.Family):
        for rule in shipped(rules, ovi.Rule):
            for settings in ({}, {"rate": 0.1}):  # some rates are for some beliefs
                try:
                    ovi.Linear(ovi.Squared(), rule(**settings), family())
                except (TypeError, ValueError):
                    continue
                pairs.add((family, rule))
    compiled = [*PLAIN, *((case.family, case.rule) for case in FEATURES)]
    assert pairs == {(type(family), type(rule)) for family, rule in compiled}
