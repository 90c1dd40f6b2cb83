"""The names of columns: learned from the first table, compared with every later one, and kept wherever a state is kept."""

from __future__ import annotations

import pickle
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onlinevi as ovi

LEAF = ovi.Linear(ovi.Logistic(), ovi.Implicit(), ovi.MeanField(box=None))
LEARNERS: dict[str, ovi.Learner[Any]] = {
    "Linear": LEAF,
    "Pool": ovi.Pool([LEAF, ovi.Linear(ovi.Logistic(), ovi.SVB())], rate=1.0),
    "Prepare": ovi.Prepare(ovi.Inputs(), LEAF),
    "Calibrate": ovi.Calibrate(ovi.Calibration(), ovi.Linear(ovi.Squared(), ovi.Implicit(), ovi.MeanField(box=None))),
    "OneVsRest": ovi.OneVsRest(LEAF, known=2),
    "Auto": ovi.Auto(),
}
RNG = np.random.default_rng(0)
X = RNG.standard_normal((20, 2))


def table(kind: str, names: tuple[str, ...] = ("size", "age"), values: np.ndarray = X) -> Any:
    module = pytest.importorskip(kind)
    columns = dict(zip(names, values.T, strict=True))
    return module.table(columns) if kind == "pyarrow" else module.DataFrame(columns)


def labels(name: str) -> np.ndarray:
    return np.arange(20) % 2 if name == "OneVsRest" else np.where(X[:, 0] > 0.0, 1.0, -1.0)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("name", LEARNERS)
def test_columns_in_another_order_are_refused(name: str, kind: str, tmp_path: Path) -> None:
    learner, y = LEARNERS[name], labels(name)
    start = learner.init(2)
    state, trace = learner.update_many(start, table(kind), y)
    assert (state.columns, trace.state.columns, start.columns) == (("size", "age"), ("size", "age"), ())
    plain, _ = learner.update_many(learner.init(2), X, y)
    np.testing.assert_array_equal(state.mean, plain.mean)
    again = pickle.loads(pickle.dumps(state)), copy(state), learner.update(state, X[0], y[0])[0]
    ovi.save(tmp_path / "m.ovi", learner, state)
    after_an_array, _ = learner.update_many(state, X, y)
    for one in (state, *again, ovi.load(tmp_path / "m.ovi").state, after_an_array):
        assert one.columns == ("size", "age")
        learner.predict(one, table(kind))
        learner.forecast(one, X)
        for ask in (learner.predict, learner.forecast, lambda state, X: learner.update_many(state, X, y)):
            with pytest.raises(ValueError, match=r"column 0 of X is 'age', where the state has learned from 'size'.*order"):
                ask(one, table(kind, ("age", "size")))
    with pytest.raises(ValueError, match="column 1 of X is 'weight', where the state has learned from 'age'"):
        learner.predict(state, table(kind, ("size", "weight")))


def test_what_has_no_names_is_taken_as_it_is() -> None:
    pandas = pytest.importorskip("pandas")
    for rows in (X, X.tolist(), pandas.DataFrame(X)):
        state = ovi.learn(rows, labels(""), loss=ovi.Logistic(), rule=ovi.SVB()).state
        assert state.columns == ()
    named, _ = LEAF.update_many(LEAF.init(2), X, labels(""))
    assert LEAF.update_many(named, table("pandas"), labels(""))[0].columns == ("size", "age"), "from the first table on"
    assert LEAF.update_many(named, table("pandas")[:0], [])[0].columns == named.columns == (), "no row, no news"


def test_new_columns_of_the_default_join_behind_those_known() -> None:
    learner, y = ovi.Auto(), labels("")
    state, _ = learner.update_many(learner.init(2), table("pandas"), y)
    wide = np.column_stack([X, X[:, :1] ** 2])
    with pytest.raises(ValueError, match="column 0 of X is 'new'"):
        learner.update_many(state, table("pandas", ("new", "size", "age"), wide), y)
    state, _ = learner.update_many(state, table("pandas", ("size", "age", "new"), wide), y)
    assert state.columns == ("size", "age", "new")


def test_the_trace_up_to_a_bad_row_knows_them_and_so_do_inputs(tmp_path: Path) -> None:
    frame = table("pandas", values=np.where(np.arange(40).reshape(20, 2) == 20, np.nan, X))
    with pytest.raises(ovi.BadRow) as caught:
        LEAF.update_many(LEAF.init(2), frame, labels(""))
    assert caught.value.trace.state.columns == ("size", "age")
    inputs = ovi.Inputs()
    state, _ = inputs.update_many(inputs.init(2), table("pandas"))
    ovi.save(tmp_path / "i.ovi", inputs, state)
    for one in (pickle.loads(pickle.dumps(state)), ovi.load(tmp_path / "i.ovi").state):
        with pytest.raises(ValueError, match="column 0 of X is 'age'"):
            inputs.apply(one, table("pandas", ("age", "size")))
