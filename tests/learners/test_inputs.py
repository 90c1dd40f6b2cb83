"""Rows of any unit, prepared online: against the definition row by row, to the bit under any split, and never a NaN."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

import onlinevi as ovi
from onlinevi.learners.inputs.passes import compiled

KINDS = [
    ovi.Inputs(),
    ovi.Inputs(squash=None),
    ovi.Inputs(intercept=False, unit_rows=True),
    ovi.Inputs(standardise=False),
    ovi.Inputs(missing=True, squash=2.0),
]


def table(count: int = 40, dim: int = 7, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((count, dim)) + rng.standard_normal(dim)) * 10.0 ** rng.uniform(-8, 8, dim)


def by_definition(inputs: ovi.Inputs, X: np.ndarray, *, centre: bool = True) -> np.ndarray:
    """Each row from all rows up to it, in 80-bit floats, nothing running."""
    result = []
    for t in range(1, len(X) + 1):
        z = X[t - 1].astype(np.longdouble)
        for j in range(X.shape[1] if inputs.standardise else 0):
            seen = X[:t, j][~np.isnan(X[:t, j])].astype(np.longdouble)
            mean = seen.mean() if centre and len(seen) else 0.0
            std = np.sqrt(np.square(seen - mean).mean()) if len(seen) else 0.0
            z[j] = (z[j] - mean) / std if std > 0.0 else np.where(np.isnan(z[j]), np.nan, 0.0)
        if inputs.squash is not None:
            beyond = np.maximum(3 * np.abs(z) / inputs.squash - 2, 0)
            z = np.where(beyond > 0, np.sign(z) * inputs.squash / 3 * (2 + beyond / np.sqrt(1 + beyond**2)), z)
        if inputs.unit_rows and np.any(z):
            z = z / np.linalg.norm(z)
        result.append([1.0, *z] if inputs.intercept else z)
    return np.array(result, dtype=float)


def through(inputs: ovi.Inputs, X: object) -> np.ndarray:
    return inputs.update_many(inputs.init(X.shape[1]), X)[1]  # type: ignore[attr-defined]


@pytest.mark.parametrize("inputs", KINDS, ids=str)
def test_rows_are_as_defined(inputs: ovi.Inputs) -> None:
    X = table()
    if inputs.missing:
        X[np.random.default_rng(1).random(X.shape) < 0.3] = np.nan
    np.testing.assert_allclose(through(inputs, X), by_definition(inputs, X), rtol=1e-9, atol=1e-12)
    # 32-bit rows are read as the numbers they are.
    small = X.astype(np.float32)
    np.testing.assert_allclose(through(inputs, small), through(inputs, small.astype(float)), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("inputs", KINDS, ids=str)
def test_sparse_rows_are_divided_by_their_root_mean_square(inputs: ovi.Inputs) -> None:
    X = np.where(np.random.default_rng(2).random((40, 7)) < 0.4, table(), 0.0)
    if inputs.missing:
        X[::9, 2] = np.nan
    Z = through(inputs, sparse.csr_matrix(X))
    assert sparse.issparse(Z)
    assert Z.nnz == np.count_nonzero(X) + inputs.intercept * len(X), "zeros stay left out"
    np.testing.assert_allclose(Z.toarray(), by_definition(inputs, X, centre=False), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("inputs", KINDS, ids=str)
def test_columns_that_are_told_are_centred_beside_sparse_ones(inputs: ovi.Inputs) -> None:
    X = np.where(np.random.default_rng(2).random((40, 7)) < 0.4, table(), 0.0)
    X[:, 5] += 3.0  # stored in all rows; columns 0 and 2 have zeros
    if inputs.missing:
        X[::9, 2] = np.nan
    told = [0, 2, 5]
    alone = by_definition(inputs, X[:, told])
    start = inputs.init(7, centred=told)
    state, Z = inputs.update_many(start, sparse.csr_matrix(X))
    if not inputs.unit_rows:  # where every column has its part in the row's length
        first = int(inputs.intercept)
        found = Z.toarray()[:, [*range(first), *(first + j for j in told)]]
        np.testing.assert_allclose(found, alone, rtol=1e-9, atol=1e-12)
        others = [j for j in range(7) if j not in told]
        uncentred = by_definition(inputs, X[:, others], centre=False)[:, first:]
        np.testing.assert_allclose(Z.toarray()[:, [first + j for j in others]], uncentred, rtol=1e-9, atol=1e-12)
    # Zeros that are stored, any split, and each row alone: the same bits.
    rows = np.repeat(np.arange(40), 7), np.tile(np.arange(7), 40)
    stored = sparse.csr_matrix((X.ravel(), rows), shape=X.shape)
    parts, moments = [], start
    for low, high in ((0, 1), (1, 1), (1, 23), (23, 40)):
        ahead = inputs.apply(moments, sparse.csr_matrix(X[low:high]))
        moments, part = inputs.update_many(moments, stored[low:high])
        assert np.array_equal(ahead[:1].toarray(), part[:1].toarray(), equal_nan=True)
        parts.append(part.toarray())
    assert np.array_equal(np.concatenate(parts), Z.toarray(), equal_nan=True)
    assert moments == state
    assert pickle.loads(pickle.dumps(state)) == state != ovi.Inputs().init(7)
    assert state.widened(9, centred=[8]).centred.tolist() == [0, 2, 5, 8]


def test_a_state_with_centred_columns_is_saved(tmp_path: Path) -> None:
    inputs = ovi.Inputs()
    state, _ = inputs.update_many(inputs.init(7, centred=[1, 4]), sparse.csr_matrix(table()))
    ovi.save(tmp_path / "inputs.ovi", inputs, state)
    assert ovi.load(tmp_path / "inputs.ovi").state == state
    for wrong in ([4, 1], [1, 7], [-1], [0.5], [True]):
        facts = {"count": 40, "rows_seen": "sparse", "centred": wrong}
        with pytest.raises(ovi.checkpoint.CheckpointError, match="centred columns"):
            inputs.restore(_Stored(facts, state))
    with pytest.raises(ValueError, match="from 0 to 6"):
        inputs.init(7, centred=[7])


class _Stored:
    """What a file tells of a state."""

    def __init__(self, facts: dict[str, object], state: ovi.learners.InputState) -> None:
        self.facts, self._state = facts, state

    def length(self, name: str) -> int:
        return len(getattr(self._state, name))

    def fill(self, name: str, vector: np.ndarray) -> None:
        vector[:] = getattr(self._state, name)


@pytest.mark.compiled
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("inputs", KINDS, ids=str)
def test_any_split_gives_the_same_bits_and_apply_those_of_the_next_row(inputs: ovi.Inputs, kind) -> None:  # type: ignore[no-untyped-def]
    X = kind(np.where(np.random.default_rng(3).random((60, 7)) < 0.5, table(60), 0.0))

    def dense(Z) -> np.ndarray:  # type: ignore[no-untyped-def]
        return Z.toarray() if sparse.issparse(Z) else Z

    whole, Z = inputs.update_many(inputs.init(7), X)
    state = inputs.init(7)
    one_pass = compiled(sparse.issparse(X)).on("compiled")
    learned = list(one_pass.signatures)
    for low, high in ((0, 1), (1, 1), (1, 23), (23, 60)):
        before = state.array.copy()
        ahead = inputs.apply(state, X[low:high])
        assert np.array_equal(state.array, before)
        state, part = inputs.update_many(state, X[low:high])
        assert np.array_equal(dense(part), dense(Z[low:high]))
        assert np.array_equal(dense(ahead[:1]), dense(part[:1]))
        for i in range(low, high):  # each row by itself
            alone = inputs.apply(inputs.update_many(inputs.init(7), X[:low])[0], X[i : i + 1])
            assert np.array_equal(dense(alone), dense(ahead[i - low : i - low + 1]))
    assert state == whole
    assert pickle.loads(pickle.dumps(state)) == whole
    assert one_pass.signatures == learned, "the pass that learns is the one that applies"


def test_one_row_is_a_vector() -> None:
    inputs, X = ovi.Inputs(), table()
    state, _ = inputs.update_many(inputs.init(7), X[:-1])
    after, z = inputs.update(state, X[-1])
    assert np.array_equal(z, through(inputs, X)[-1])
    assert np.array_equal(inputs.apply(state, X[-1].tolist()), z)
    assert (state.count, after.count, z.shape) == (39, 40, (8,))
    np.testing.assert_allclose(after.mean, X.mean(axis=0))
    np.testing.assert_allclose(after.std, X.std(axis=0))
    with pytest.raises(ValueError, match="read-only"):
        after.mean[0] = 1.0


def test_the_first_row_is_zero_but_for_the_intercept() -> None:
    assert through(ovi.Inputs(), np.array([[3.0, -1e17, 0.1]])).tolist() == [[1.0, 0.0, 0.0, 0.0]]


@pytest.mark.parametrize("constant", [0.0, 0.1, -1e17, 1e140, 1e-200, 1 / 3])
def test_a_constant_column_is_exactly_zero(constant: float) -> None:
    assert not through(ovi.Inputs(intercept=False), np.full((1000, 2), constant)).any()


def test_a_column_that_varies_by_rounding_is_constant() -> None:
    X = 1e17 + 16.0 * np.random.default_rng(0).integers(0, 2, (1000, 1))
    assert not through(ovi.Inputs(intercept=False, squash=None), X).any()


@pytest.mark.parametrize("factor", [1e4, 2.0**40, -(2.0**-33)])
def test_units_do_not_matter(factor: float) -> None:
    X = np.random.default_rng(0).standard_normal((500, 5)) + 3.0
    Z, other = (through(ovi.Inputs(intercept=False), X * scale) for scale in (1.0, factor))
    if factor == 1e4:
        np.testing.assert_allclose(other, Z, rtol=1e-11, atol=1e-13)
    else:
        assert np.array_equal(other, np.sign(factor) * Z)


def test_a_column_that_starts_late_and_a_rare_one_stay_bounded() -> None:
    X = np.zeros((20_000, 2))
    X[10_000:, 0] = np.random.default_rng(0).standard_normal(10_000) * 1e6
    X[::5_000, 1] = 1.0
    plain, bent = through(ovi.Inputs(squash=None), X), through(ovi.Inputs(), X)
    assert np.abs(plain[10_000, 1]) > 90.0
    assert np.abs(bent[:, 1:]).max() < 3.0
    assert not bent[:10_000, 1].any()


def test_a_large_mean_costs_few_digits() -> None:
    X = 1e8 + np.random.default_rng(0).standard_normal((5_000, 2))
    inputs = ovi.Inputs(squash=None, intercept=False)
    state, Z = inputs.update_many(inputs.init(2), X)
    exact = X.astype(np.longdouble)
    np.testing.assert_allclose(state.std, exact.std(axis=0).astype(float), rtol=1e-7)
    np.testing.assert_allclose(Z[-1], ((exact[-1] - exact.mean(axis=0)) / exact.std(axis=0)).astype(float), atol=1e-6)


VALUES = st.floats(-1e145, 1e145) | st.sampled_from([0.0, 1.0, -1.0, 0.1, 1e-300, 5e-324, 1e145, -1e145])


@given(X=arrays(float, st.tuples(st.integers(1, 12), st.integers(1, 6)), elements=VALUES | st.just(np.nan)), data=st.data())
@settings(max_examples=300)
def test_nothing_leaves_the_bounds(X: np.ndarray, data: st.DataObject) -> None:
    c = data.draw(st.sampled_from([0.5, 3.0, 10.0]))
    inputs = ovi.Inputs(missing=True, squash=c, intercept=False)
    for rows in (X, sparse.csr_matrix(X)):
        state, Z = inputs.update_many(inputs.init(X.shape[1]), rows)
        Z = Z.toarray() if sparse.issparse(Z) else Z
        assert np.isfinite(state.array).all()
        assert np.array_equal(np.isnan(Z), np.isnan(X))
        assert (np.abs(Z[~np.isnan(Z)]) < c).all()


@given(X=arrays(float, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.floats(-1e308, 1e308)))
def test_unit_rows_have_length_one_whatever_their_size(X: np.ndarray) -> None:
    inputs = ovi.Inputs(standardise=False, squash=None, unit_rows=True, intercept=False)
    Z = through(inputs, X)
    tiny = np.abs(X).max(axis=1) <= 1e-290
    np.testing.assert_allclose(np.linalg.norm(Z[~tiny], axis=1), 1.0, rtol=1e-12)
    assert np.array_equal(Z[tiny], X[tiny]), "whose lengths floats cannot divide by"
    assert (np.sign(Z) * np.sign(X) >= 0.0).all()


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize(
    ("value", "inputs", "match"),
    [
        (np.nan, ovi.Inputs(), r"row 3: column 2 is nan: needs finite numbers; give Inputs\(missing=True\)"),
        (np.nan, ovi.Inputs(standardise=False), "row 3: column 2 is nan"),
        (np.inf, ovi.Inputs(missing=True), "row 3: column 2 is inf: needs finite numbers; drop the row"),
        (-np.inf, ovi.Inputs(standardise=False), "row 3: column 2 is -inf"),
        (1e300, ovi.Inputs(), r"row 3: column 2 is 1e\+300: beyond ±1e\+145 sums of squares overflow"),
    ],
)
def test_bad_values_are_refused_by_row_and_column(value, inputs, match, kind) -> None:  # type: ignore[no-untyped-def]
    X = table(6)
    X[3, 2] = value
    for bad in (kind(X), kind(np.asarray(X))):
        with pytest.raises(ovi.BadRow, match=match) as caught:
            inputs.update_many(inputs.init(7), bad)
        assert caught.value.row == 3
    with pytest.raises(ovi.BadRow, match="row 0"):
        inputs.apply(inputs.init(7), kind(X)[3:])


def test_huge_values_are_squashed_where_nothing_is_summed() -> None:
    Z = through(ovi.Inputs(standardise=False, intercept=False), np.array([[1e300, -1e300, 3.0]]))
    np.testing.assert_allclose(Z, [[3.0, -3.0, 2.0 + np.sqrt(0.5)]])


def test_new_columns_join_as_if_never_seen() -> None:
    inputs, X = ovi.Inputs(), table()
    state = inputs.widen(inputs.update_many(inputs.init(4), X[:15, :4])[0], 7)
    assert state.counts.tolist() == [15.0] * 4 + [0.0] * 3
    state, Z = inputs.update_many(state, X[15:])
    np.testing.assert_array_equal(Z[:, :5], through(inputs, X)[15:, :5])
    np.testing.assert_allclose(Z[:, 5:], through(inputs, X[15:])[:, 5:], rtol=1e-12)
    with pytest.raises(ValueError, match="none can leave"):
        inputs.widen(state, 6)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_weights_read_back_in_the_units_of_the_data(kind) -> None:  # type: ignore[no-untyped-def]
    inputs, rng = ovi.Inputs(squash=None), np.random.default_rng(0)
    X = table(50)
    X[:, 3] = 5.0  # a column that says nothing
    state, Z = inputs.update_many(inputs.init(7), kind(X))
    mean, std = rng.standard_normal(8), rng.random(8)
    raw = inputs.raw_weights(state, mean, std)
    np.testing.assert_allclose(raw.intercept + X[-1] @ raw.weights, Z[-1] @ mean, rtol=1e-10)
    np.testing.assert_allclose(raw.std * state.std, std[1:] * (raw.weights != 0.0), rtol=1e-12)
    with pytest.raises(ValueError, match="needs 8 weights"):
        inputs.raw_weights(state, mean[1:])
    with pytest.raises(ValueError, match="no linear map"):
        ovi.Inputs(unit_rows=True).raw_weights(state, mean)


def test_bad_settings_and_rows_of_another_kind_are_refused() -> None:
    for squash in (0.0, np.nan, 1e300):
        with pytest.raises(ValueError, match=r"squash=.*try 3\.0"):
            ovi.Inputs(squash=squash)
    with pytest.raises(ValueError, match="needs standardise=True"):
        ovi.Inputs(missing=True, standardise=False)
    with pytest.raises(ValueError, match="no known length"):
        ovi.Inputs(missing=True, unit_rows=True)
    inputs, X = ovi.Inputs(), table()
    with pytest.raises(ValueError, match="at least one column"):
        inputs.init(0)
    state, _ = inputs.update_many(inputs.init(7), X)
    with pytest.raises(ValueError, match="seen dense rows"):
        inputs.apply(state, sparse.csr_matrix(X))
    with pytest.raises(ValueError, match="seen sparse rows"):
        inputs.update_many(inputs.update_many(inputs.init(7), sparse.csr_matrix(X))[0], X)
    with pytest.raises(ValueError, match=r"X has 6 columns, the state 7.*widen"):
        inputs.update_many(state, X[:, 1:])
    with pytest.raises(ValueError, match="use update_many"):
        inputs.update(state, X)


def test_a_stream_in_wild_units_is_learned_as_well_as_in_good_ones() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3_000, 4))
    y = np.where(X @ [1.0, -2.0, 0.5, 0.0] + 0.5 * rng.standard_normal(3_000) > 0.3, 1.0, -1.0)
    wild = X * [1e-6, 1e9, 3.0, 1.0] + [0.0, 1e9, 50.0, -1e3]
    Z, good = through(ovi.Inputs(), wild), np.column_stack([np.ones(3_000), X])
    found, best, lost = (ovi.learn(rows, y, loss=ovi.Logistic(), rule=ovi.NGVI()) for rows in (Z, good, wild))
    assert found.average_loss[-1] < 1.05 * best.average_loss[-1] < 0.1 * lost.average_loss[-1]
