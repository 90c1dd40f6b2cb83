"""Two engines, one source: the compiled loop gives what the interpreted one gives, for every loss × belief × rule that ships.

A loop compiled for each would take minutes. So one loss stands for all: its first parameter says which of them it is, and the
six are compiled once, as a kernel that the loops call. That each is right when compiled into a loop of its own, other tests see.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse
from helpers.catalogue import LOSSES, RULES, labels, name

import onlinevi as ovi
from onlinevi import beliefs, losses, rules
from onlinevi.engine import compose, using_engine
from onlinevi.engine.types import Expected, Real
from onlinevi.learners import Linear, State

pytestmark = pytest.mark.compiled

COUNT, DIM = 40, 9
"""Of rows of nine values one lies behind those that fill vectors."""

KINDS = [ovi.Squared, ovi.Hinge, ovi.Logistic, ovi.Absolute, ovi.Pinball, ovi.Poisson]
squared, hinge, logistic, absolute, pinball, poisson = (kind.expected for kind in KINDS)
signs, numbers, counts = ovi.Hinge.valid_label, ovi.Squared.valid_label, ovi.Poisson.valid_label
hinge_rests = ovi.Hinge.rests


def expected_of_kind(y: Real, a: Real, v: Real, kind: Real, quantile: Real) -> Expected:
    if kind == 0.0:
        return squared(y, a, v)
    if kind == 1.0:
        return hinge(y, a, v)
    if kind == 2.0:
        return logistic(y, a, v)
    if kind == 3.0:
        return absolute(y, a, v)
    if kind == 4.0:
        return pinball(y, a, v, quantile)
    return poisson(y, a, v)


every_loss = compose(expected_of_kind, {})


@dataclass(frozen=True)
class Any(ovi.Loss):
    """The loss of a number in ``KINDS``."""

    kind: float = 0.0
    quantile: float = 0.5

    @staticmethod
    def expected(y: Real, a: Real, v: Real, kind: Real, quantile: Real) -> Expected:  # type: ignore[override]
        return every_loss(y, a, v, kind, quantile)

    @staticmethod
    def valid_label(y: Real, kind: Real, quantile: Real) -> Real:  # type: ignore[override]
        if kind == 1.0 or kind == 2.0:  # noqa: PLR1714  (a loop is compiled from it)
            return signs(y)
        return counts(y) if kind == 5.0 else numbers(y)

    @staticmethod
    def rests(y: Real, a: Real, kind: Real, quantile: Real) -> Real:  # type: ignore[override]
        return kind == 1.0 and hinge_rests(y, a)


PAIRS = []
for rule in (ovi.OGA(0.1), ovi.OGAEL(0.1), ovi.SVA(0.1), ovi.SVB(), ovi.NGVI(), ovi.Implicit()):
    for family in (ovi.Point(), ovi.MeanField(), ovi.FullCovariance(), ovi.LowRank(rank=3)):
        try:
            PAIRS.append((ovi.Linear(Any(), rule, family)))
        except ValueError as e:
            print(rule, family, str(e)[:80])
import time
from numba.core import event
def test_x():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((COUNT, DIM)) / 3.0
    y = np.sign(rng.standard_normal(COUNT))
    print()
    for learner in PAIRS:
        t = time.process_time()
        plan = learner.plan(DIM, COUNT)
        a = learner.update_many(learner.init(DIM, COUNT), X, y)[0]
        t1 = time.process_time()
        with using_engine("interpreted"):
            b = learner.update_many(learner.init(DIM, COUNT), X, y)[0]
        t2 = time.process_time()
        print(type(learner.rule).__name__, type(learner.family).__name__, round(t1 - t, 2), round(t2 - t1, 2), np.max(np.abs(a.array - b.array) / (1e-3 + np.abs(a.array))))
