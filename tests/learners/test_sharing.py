"""Classes share what each would make of the rows: it is made once a block, and says the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

import onlinevi as ovi
from onlinevi.learners.sharing import shared, sharing

RNG = np.random.default_rng(0)
X, CODES = RNG.standard_normal((40, 2)) * [1.0, 50.0], RNG.integers(0, 3, 40)


@dataclass(frozen=True)
class Counted(ovi.Products):
    """Counts how often features are made."""

    name: ClassVar[str] = "counted"
    made: ClassVar[list[int]] = []

    def features(self, Z: Any, start: int) -> Any:
        self.made.append(len(Z))
        return super().features(Z, start)


def learner_of(features: ovi.FeatureMap) -> ovi.OneVsRest:
    leaf = ovi.Linear(ovi.Logistic(), ovi.Implicit(), ovi.MeanField(box=None), average=False)
    pool = ovi.Pool([leaf, ovi.Expand(features, leaf)], rate=1.0, pool="probability")
    return ovi.OneVsRest(ovi.Prepare(ovi.Inputs(), pool), known=3, grows=False)


def test_rows_are_prepared_and_expanded_once_for_all_classes() -> None:
    learner = learner_of(Counted())
    Counted.made.clear()
    state, trace = learner.update_many(learner.init(2), X, CODES)
    assert sum(Counted.made) == len(X)
    alone = [learner.inner.update_many(learner.inner.init(2), X, np.where(k == CODES, 1.0, -1.0))[0] for k in range(3)]
    for own, other in zip(state.each, alone, strict=True):
        np.testing.assert_array_equal(own.mean, other.mean)
        np.testing.assert_array_equal(own.inner.array, other.inner.array)
        np.testing.assert_array_equal(own.inputs.array, other.inputs.array)
    Counted.made.clear()
    said = learner.forecast(state, X).probability
    assert sum(Counted.made) == len(X)
    assert said.shape == trace.probability.shape


def test_nothing_is_kept_behind_a_block() -> None:
    """Rows that were changed where they lie are other rows at the next call."""
    learner, rows = learner_of(ovi.Products()), X.copy()
    state, _ = learner.update_many(learner.init(2), rows, CODES)
    rows[:] = X[::-1] + 1.0
    changed, _ = learner.update_many(state, rows, CODES)
    afresh, _ = learner.update_many(state, X[::-1] + 1.0, CODES)
    np.testing.assert_array_equal(changed.mean, afresh.mean)


def test_what_differs_is_made_for_itself() -> None:
    rows = np.ones((2, 3))
    assert shared(rows, lambda: 1, list) is not shared(rows, lambda: 1, list)
    with sharing():
        one = shared(rows, lambda: 1, lambda: [1])
        assert shared(rows, lambda: 1, lambda: [2]) is one
        assert shared(rows, lambda: 2, lambda: [2]) == [2]
        assert shared(rows[:1], lambda: 1, lambda: [3]) == [3]
        assert shared(rows.T, lambda: 1, lambda: [4]) == [4]
        assert shared("no array", lambda: 1, lambda: [5]) == [5]
