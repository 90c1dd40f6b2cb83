"""What crosses to another process: learners, states, traces, forecasts and every error."""

from __future__ import annotations

import copy
import pickle
from multiprocessing import get_context

import numpy as np
import pytest

import onlinevi as ovi
from onlinevi import checks
from onlinevi.data import BadInput, DataUnavailable, Refused
from onlinevi.learners import CheckpointError, OneVsRest

X = np.random.default_rng(0).standard_normal((12, 3))
Y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
REFUSED = Refused("rows.csv", 3, "age", "not a number", "x,y", 5)
ERRORS = [
    ovi.BadRow(3, "feature 0 is nan"),
    BadInput("rows.csv: cut", REFUSED),
    CheckpointError("no checkpoint"),
    DataUnavailable("not here"),
    checks.Broken("Bent()", ["its slope is not the derivative"]),
]
LEARNERS = [
    ovi.Linear(ovi.Hinge(), ovi.SVB()),
    ovi.Linear(ovi.Squared(), ovi.NGVI(), ovi.MeanField(), dtype="float32"),
    ovi.Pool([ovi.Linear(ovi.Hinge(), ovi.OGA(rate)) for rate in (0.1, 1.0)], rate=1.0),
    ovi.Auto(loss=ovi.Hinge()),
    OneVsRest(ovi.Linear(ovi.Logistic(), ovi.NGVI()), 2),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_comes_back_as_it_was(error: Exception) -> None:
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(other) is type(error)
        assert str(other) == str(error)
        assert vars(other) == vars(error)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
def test_a_learner_goes_on_from_what_comes_back(learner: ovi.Learner) -> None:
    labels = (Y > 0.0).astype(int) if isinstance(learner, OneVsRest) else Y
    state, trace = learner.update_many(learner.init(3), X, labels)
    forecast = learner.forecast(state, X)
    for again in (lambda one: pickle.loads(pickle.dumps(one)), copy.copy, copy.deepcopy):
        other, begun, told, said = again(learner), again(state), again(trace), again(forecast)
        assert other == learner
        assert np.array_equal(told.loss, trace.loss)
        assert np.array_equal(said.prediction, forecast.prediction)
        _, want = learner.update_many(state, X, labels)
        _, got = other.update_many(begun, X, labels)
        assert np.array_equal(got.loss, want.loss)


def fail(row: int) -> None:
    X_of = X.copy()
    X_of[row, 0] = np.nan
    ovi.learn(X_of, Y, loss=ovi.Hinge(), rule=ovi.SVB())


def test_a_bad_row_in_a_pool_of_processes_is_raised_and_does_not_hang() -> None:
    with get_context("spawn").Pool(1) as pool:
        pending = pool.map_async(fail, [4])
        with pytest.raises(ovi.BadRow, match="row 4: feature 0 is nan") as raised:
            pending.get(timeout=60)
    assert raised.value.row == 4
    assert len(raised.value.trace.loss) == 4
