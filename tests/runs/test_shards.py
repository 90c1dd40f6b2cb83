"""Many shards, one posterior: the sum of what each has learned, prepared alike, with the same bits however it is done."""

from __future__ import annotations

import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onlinevi as ovi
from onlinevi.learners import unpack
from onlinevi.runs import BadShard, Progress, Settings, learn_shards, load_job, save_job, shards_of, summarise

pytest.importorskip("pyarrow", reason='pyarrow is missing: pip install "onlinevi[files]"')

FULL = ovi.Linear(ovi.Squared(), ovi.NGVI(step=1.0), ovi.FullCovariance(box=None))
PREPARED = ovi.Prepare(ovi.Inputs(), ovi.Linear(ovi.Logistic(), ovi.Implicit(), ovi.MeanField(box=None)))


def rows(count: int = 240, dim: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((count, dim)) * [1.0, 50.0, 0.1][:dim] + [0.0, 7.0, 1.0][:dim]
    return X, np.sign(X[:, 0] + 0.02 * X[:, 1] - 0.14 + 0.5 * rng.standard_normal(count))


def cut(X: np.ndarray, y: np.ndarray, shards: int) -> list[tuple[np.ndarray, np.ndarray]]:
    return list(zip(np.array_split(X, shards), np.array_split(y, shards), strict=True))


class AtOnce(Executor):
    """Runs each call when it is handed in, the first ones last where it is told so: any order of arrival."""

    def __init__(self, *, backwards: bool = False, twice: bool = False) -> None:
        self._backwards, self._twice, self._held = backwards, twice, list[tuple[Future[Any], Any]]()

    def submit(self, fn: Any, /, *args: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._held.append((future, fn))
        if not self._backwards or len(self._held) == 4:
            for waiting, call in reversed(self._held):
                call() if self._twice else None  # a duplicate
                waiting.set_result(call())
            self._held.clear()
        return future


@pytest.fixture
def executor() -> Any:
    with ThreadPoolExecutor(2) as pool:
        yield pool


def test_squared_loss_and_covariances_are_one_pass_to_ten_digits(executor: Executor) -> None:
    X, _ = rows(300)
    y = X @ [1.0, 0.02, -5.0] + np.random.default_rng(1).standard_normal(300)
    prepared = ovi.Prepare(ovi.Inputs(), FULL)
    moments = ovi.Inputs().observe(ovi.Inputs().init(3), X)
    for shards, rounds in ((2, 1), (7, 1), (7, 3), (60, 1)):
        fleet = learn_shards(prepared, cut(X, y, shards), executor, rounds=rounds)
        np.testing.assert_allclose(fleet.state.inputs.array, moments.array, rtol=1e-11)
        whole, _ = fleet.learner.update_many(fleet.learner.init(4 - 1).with_inputs(fleet.state.inputs), X, y)
        np.testing.assert_allclose(fleet.state.mean, whole.mean, rtol=1e-10)
        ours, its = fleet.state.alone().belief.covariance, whole.alone().belief.covariance
        np.testing.assert_allclose(ours, its, rtol=1e-10, atol=1e-10 * its.max())
        assert fleet.state.count == 300


@pytest.mark.parametrize("learner", [PREPARED, ovi.Prepare(ovi.Inputs(), FULL)], ids=["logistic", "squared"])
def test_the_same_bits_whatever_the_executor_does(learner: Any) -> None:
    X, y = rows()
    shards = cut(X, y, 4)
    found = []
    for executor in (AtOnce(), AtOnce(backwards=True), AtOnce(twice=True), ThreadPoolExecutor(1), ThreadPoolExecutor(3)):
        fleet = learn_shards(learner, shards, executor, rounds=2)
        found.append((fleet.state.alone().array.tobytes(), fleet.state.inputs.array.tobytes()))
        executor.shutdown()
    assert len(set(found)) == 1


@pytest.mark.usefixtures("all_in_python")
def test_processes_give_the_same_bits() -> None:
    X, y, learner = *rows(80), ovi.Prepare(ovi.Inputs(), FULL)
    with ThreadPoolExecutor(2) as executor:
        threads = learn_shards(learner, cut(X, y, 3), executor)
    told: list[Progress] = []
    processes = learn_shards(learner, cut(X, y, 3), workers=2, watch=told.append)
    assert processes.state.alone().array.tobytes() == threads.state.alone().array.tobytes()
    assert {one.worker for one in processes.shards}.isdisjoint(one.worker for one in threads.shards)
    assert [one.attempts for one in processes.shards] == [1, 1, 1]
    assert (told[-1].done, told[-1].total, told[0].stage) == (3, 3, "surveyed")


def test_a_fleet_tells_of_its_shards_and_goes_on(executor: Executor, tmp_path: Path) -> None:
    X, y = rows()
    fleet = learn_shards(PREPARED, cut(X, y, 3), executor)
    assert [one.name for one in fleet.shards] == ["shard 0", "shard 1", "shard 2"]
    assert sum(one.loss for one in fleet.shards) == pytest.approx(fleet.state.loss)
    assert fleet.certificate.count == fleet.state.count == 240
    assert repr(fleet) == "Fleet(shards=3, rounds=1, events=240)"
    ovi.save(tmp_path / "model.ovi", fleet.learner, fleet.state)
    saved = ovi.load(tmp_path / "model.ovi")
    state, trace = saved.learner.update_many(saved.state, X, y)
    assert state.count == 480
    assert trace.loss.mean() < fleet.state.average_loss
    merged = fleet.learner.merge([fleet.state, learn_shards(fleet.learner, cut(X, y, 2), executor, prepare_like=fleet).state])
    assert merged.count == 480


def test_one_pass_is_enough_where_moments_are_given_or_none_are_needed(executor: Executor) -> None:
    X, y = rows()
    stages: list[Progress] = []
    first = learn_shards(PREPARED, cut(X, y, 3), executor, watch=stages.append)
    assert {one.stage for one in stages} == {"surveyed", "learned from"}
    stages.clear()
    again = learn_shards(PREPARED, cut(X, y, 3), executor, prepare_like=first.state, watch=stages.append)
    assert {one.stage for one in stages} == {"learned from"}
    assert again.state.alone().array.tobytes() == first.state.alone().array.tobytes()
    stages.clear()
    bare = learn_shards(PREPARED.inner, cut(X, y, 3), executor, watch=stages.append)
    assert {one.stage for one in stages} == {"learned from"}
    assert bare.state.count == 240
    with pytest.raises(TypeError, match="needs a state whose rows were prepared"):
        learn_shards(PREPARED, cut(X, y, 3), executor, prepare_like=bare.state)


def test_blocks_functions_names_and_weights(executor: Executor) -> None:
    X, y = rows(120)
    weights = np.tile([1.0, 0.0, 2.0], 40)
    expected = learn_shards(PREPARED, [(X[:60], y[:60], weights[:60]), (X[60:], y[60:], weights[60:])], executor)
    blocks = [
        partial(iter, [(X[s : s + 30], y[s : s + 30], weights[s : s + 30]) for s in starts]) for starts in ((0, 30), (60, 90))
    ]
    assert learn_shards(PREPARED, blocks, executor).state.mean == pytest.approx(expected.state.mean, rel=1e-12)
    named = {"b": (X[60:], y[60:], weights[60:]), "a": (X[:60], y[:60], weights[:60])}
    fleet = learn_shards(PREPARED, named, executor)
    assert [one.name for one in fleet.shards] == ["a", "b"]
    assert fleet.state.alone().array.tobytes() == expected.state.alone().array.tobytes()
    with_empty = learn_shards(PREPARED, [*cut(X, y, 2), (X[:0], y[:0])], executor)
    assert [one.events for one in with_empty.shards] == [60, 60, 0]
    assert (
        with_empty.state.alone().array.tobytes()
        == learn_shards(PREPARED, cut(X, y, 2), executor).state.alone().array.tobytes()
    )


def test_sparse_rows_stay_sparse(executor: Executor) -> None:
    from scipy.sparse import csr_matrix

    X, y = rows(120)
    X[np.abs(X) < 0.5] = 0.0
    moments, _ = ovi.Inputs().update_many(ovi.Inputs().init(3), csr_matrix(X))
    shards = [(csr_matrix(part), labels) for part, labels in cut(X, y, 3)]
    fleet = learn_shards(PREPARED, shards, executor)
    np.testing.assert_allclose(fleet.state.inputs.array, moments.array, rtol=1e-12)


def test_bad_rows_stop_a_shard_or_are_left_out(executor: Executor) -> None:
    X, y = rows(90)
    X[40, 1] = np.inf
    y[70] = 3.0
    with pytest.raises(BadShard, match=r"shard 1: row 10: column 1 is inf.*bad_rows='skip'"):
        learn_shards(PREPARED, cut(X, y, 3), executor)
    fleet = learn_shards(PREPARED, cut(X, y, 3), executor, bad_rows="skip")
    assert [(one.events, one.refused) for one in fleet.shards] == [(30, 0), (29, 1), (29, 1)]
    assert np.isfinite(fleet.state.inputs.array).all()
    fleet = learn_shards(PREPARED, cut(X, y, 3), executor, bad_shards="skip")
    assert [bool(one.error) for one in fleet.shards] == [False, True, True]
    assert fleet.state.count == 30
    assert "2 bad" in repr(fleet)
    with pytest.raises(ValueError, match="no fair sample"):
        learn_shards(PREPARED.inner, cut(X, y, 3), executor, bad_shards="skip").risk_bound(bound=5.0)


def test_the_risk_bound_holds_for_decisions_that_saw_no_row_to_come(executor: Executor) -> None:
    X, y = np.random.default_rng(0).choice([-1.0, 1.0], (400, 2)), None
    y = X[:, 0]
    box = ovi.MeanField(box=ovi.Box(mean=(-2.0, 2.0)))
    bare = learn_shards(ovi.Linear(ovi.Hinge(), ovi.NGVI(), box), cut(X, y, 4), executor)
    assert bare.losses[0].total / 100 < bare.risk_bound(bound=5.0) < 0.5
    with pytest.raises(ValueError, match="give bound="):
        bare.risk_bound()
    prepared = ovi.Prepare(ovi.Inputs(), ovi.Linear(ovi.Hinge(), ovi.NGVI(), box))
    fleet = learn_shards(prepared, cut(X, y, 4), executor)
    with pytest.raises(ValueError, match="knew of rows to come"):
        fleet.risk_bound()
    other, _ = prepared.update_many(prepared.init(2), X[:50], y[:50])
    known = learn_shards(prepared, cut(X, y, 4), executor, prepare_like=other)
    longest = np.sqrt(1 + 2 * 9.0)
    assert known.risk_bound() == pytest.approx(known.risk_bound(bound=1.0 + 2.0 * np.sqrt(3) * longest), rel=1e-6)
    pooled = learn_shards(ovi.Pool([prepared.inner], rate=1.0), cut(X, y, 2), executor)
    with pytest.raises(ValueError, match="several learners"):
        pooled.risk_bound(bound=5.0)


def test_rounds_start_from_what_all_have_learned(executor: Executor) -> None:
    X, y = rows(120)
    fleet = learn_shards(PREPARED, cut(X, y, 2), executor, rounds=2)
    learner, first = fleet.learner, fleet.learner.init(3).with_inputs(fleet.state.inputs)
    halves = [[(X[s : s + 30], y[s : s + 30]) for s in starts] for starts in ((0, 60), (30, 90))]
    merged = learner.merge([learner.update_many(first, *part)[0] for part in halves[0]])
    merged = learner.merge([learner.update_many(merged, *part)[0] for part in halves[1]], merged)
    assert fleet.state.alone().array.tobytes() == merged.alone().array.tobytes()
    assert fleet.certificate.count == 120
    forgets = ovi.Linear(ovi.Hinge(), ovi.Implicit(), discount=0.99)
    with pytest.raises(ValueError, match="merge in one round"):
        learn_shards(forgets, cut(X, y, 2), executor, rounds=2)
    with pytest.raises(ValueError, match="SVA makes each belief anew"):
        learn_shards(ovi.Linear(ovi.Hinge(), ovi.SVA(0.1)), cut(X, y, 2), executor, rounds=2)


@pytest.mark.parametrize("family", [ovi.MeanField(box=None), ovi.FullCovariance(box=None), ovi.LowRank(rank=2, box=None)])
def test_a_second_merge_counts_what_all_began_with_once(family: Any) -> None:
    X, _ = rows(90)
    X = X / [1.0, 50.0, 0.1]
    y = X @ [1.0, 0.5, -1.0]
    learner = ovi.Linear(ovi.Squared(), ovi.NGVI(step=1.0), family)
    states = [learner.update_many(learner.init(3), *part)[0] for part in cut(X[:45], y[:45], 3)]
    start = learner.merge(states)
    assert family.merge([start.belief, start.belief], start.belief).mean == pytest.approx(start.mean, rel=1e-9)
    merged = learner.merge([learner.update_many(start, *part)[0] for part in cut(X[45:], y[45:], 3)], start)
    precision = [family.natural(own.belief) for own in (start, merged)]
    if isinstance(family, ovi.FullCovariance):
        whole, _ = learner.update_many(learner.init(3), X, y)
        np.testing.assert_allclose(merged.mean, whole.mean, rtol=1e-9)
    assert merged.count == 90
    assert (merged.std <= start.std * (1.0 + 1e-9)).all()
    assert len(precision) == 2


def test_pools_merge_learner_by_learner(executor: Executor, tmp_path: Path) -> None:
    X, y = rows(120)
    leaf = ovi.Linear(ovi.Logistic(), ovi.Implicit(), ovi.MeanField(box=None), average=False)
    near = ovi.Linear(ovi.Logistic(), ovi.Implicit(), ovi.MeanField(prior_std=0.1, box=None), average=False)
    for pool in (
        ovi.Pool([leaf, near], rate=1.0, pool="probability"),
        ovi.Pool([leaf, near], rate=1.0, share=0.01, pool="probability"),
        ovi.Pool([leaf, near], rate=ovi.ewa.AdaHedge()),
    ):
        fleet = learn_shards(ovi.Prepare(ovi.Inputs(), pool), cut(X, y, 3), executor)
        (state,) = fleet.state.deciders()
        alone = learn_shards(ovi.Prepare(ovi.Inputs(), leaf), cut(X, y, 3), executor)
        assert state.learners[0].array.tobytes() == alone.state.alone().array.tobytes()
        assert (state.count, state.shards) == (120, 3)
        assert state.weights.sum() == pytest.approx(1.0)
        assert state.loss == pytest.approx(sum(one.loss for one in fleet.shards))
        assert np.isnan(state.regret_bound)
        with pytest.raises(ValueError, match="apart"):
            state.switching_bound(1)
        u = np.array([0.0, 1.0, 1.0, 0.0])
        Z = fleet.learner.inputs.apply(fleet.state.inputs, X)
        assert fleet.certificate.against(u) >= state.loss - ovi.Logistic()(y, Z @ u).value.sum()
        ovi.save(tmp_path / "pool.ovi", fleet.learner, fleet.state)
        assert ovi.load(tmp_path / "pool.ovi").state.deciders()[0].shards == 3
        later, _ = fleet.learner.update_many(fleet.state, X, y)
        assert later.deciders()[0].shards == 3


def test_the_default_merges(executor: Executor) -> None:
    X, y = rows(60, dim=2)
    for loss, labels in ((ovi.Logistic(), y), (ovi.Squared(), X[:, 0])):
        fleet = learn_shards(ovi.Auto(loss), cut(X, labels, 2), executor)
        assert fleet.state.count == 60
        assert np.isfinite(fleet.learner.forecast(fleet.state, X).mean).all()
        assert unpack_again(fleet).count == 60
    with pytest.raises(ValueError, match="merge in one round"):
        learn_shards(ovi.Auto(), cut(X, y, 2), executor, rounds=2)


def unpack_again(fleet: ovi.Fleet) -> Any:
    from onlinevi.learners import pack

    return unpack(pack(fleet.learner, fleet.state)).state


# --- files


def write_parts(folder: Path, parts: int = 3, count: int = 180) -> None:
    """Each part has a town of its own, the first lacks a column's values, and the towns of the second are many."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((count, 2)) * [1.0, 100.0]
    sold = X[:, 0] - 0.01 * X[:, 1] + rng.standard_normal(count) > 0.0
    for number, own in enumerate(np.array_split(np.arange(count), parts)):
        towns = [["Oslo", "Rome"][k % 2] if number == 0 else f"town {k % (6 if number == 1 else 2)}" for k in own]
        late = ["" if number == 0 else f"{value:.3f}" for value in rng.standard_normal(len(own))]
        cells = zip(X[own].tolist(), towns, late, sold[own], strict=True)
        lines = [f"{a!r},{b!r},{town},{c},{'yes' if y else 'no'}" for (a, b), town, c, y in cells]
        (folder / f"part-{number}.csv").write_text("\n".join(["a,b,town,late,sold", *lines]) + "\n")


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    write_parts(tmp_path)
    return tmp_path


SOLD = Settings("sold", rule="implicit", max_categories=4)


def test_columns_and_names_of_all_shards_whatever_the_order(parts: Path, executor: Executor) -> None:
    fleet = learn_shards(SOLD, str(parts / "part-*.csv"), executor)
    job = fleet.job
    assert job is not None
    names = [part for column, part in job.schema.features if column == "town"]
    assert names[:4] == ["=Oslo", "=Rome", "=town 0", "=town 1"]
    assert all(part.startswith("~") for part in names[4:])
    later = learn_shards(SOLD, [parts / f"part-{k}.csv" for k in (2, 0, 1)], AtOnce())
    assert later.state.alone().array.tobytes() == fleet.state.alone().array.tobytes()
    assert later.job is not None
    assert later.job.schema == job.schema
    # The moments are those of one pass over all rows with these columns.
    from onlinevi.data import encode, open_stream

    inputs, moments = ovi.Inputs(missing=True), None
    for number in range(3):
        with open_stream(parts / f"part-{number}.csv") as stream:
            for batch in stream:
                grown, encoded = encode(job.schema, batch)
                assert grown.features == job.schema.features
                moments = inputs.observe(moments or inputs.init(job.schema.width), encoded.X)
    assert moments is not None
    np.testing.assert_allclose(fleet.state.inputs.array, moments.array, rtol=1e-9, atol=1e-12)


def test_numbers_are_centred_beside_names_that_make_rows_sparse(tmp_path: Path, executor: Executor) -> None:
    draw, sizes = np.random.default_rng(4), []
    for number in range(3):
        size = 100.0 + 3.0 * draw.standard_normal(300)
        names = [f"n{draw.integers(0, 400)}" for _ in size]
        lines = [f"{x!r},{name},{x + draw.standard_normal()!r}" for x, name in zip(size.tolist(), names, strict=True)]
        (tmp_path / f"part-{number}.csv").write_text("\n".join(["size,name,price", *lines]) + "\n")
        sizes.append(size)
    fleet = learn_shards(Settings("price", rule="implicit"), str(tmp_path / "part-*.csv"), executor)
    moments, size = fleet.state.inputs, np.concatenate(sizes)
    (place,) = moments.centred
    assert (moments.mean[place], moments.std[place]) == pytest.approx((size.mean(), size.std()), rel=1e-12)
    assert not np.delete(moments.mean, place).any(), "names are not centred: their zeros are not stored"


def test_a_model_of_shards_predicts_tells_and_goes_on(parts: Path, executor: Executor) -> None:
    fleet = learn_shards(SOLD, parts, executor)
    assert fleet.job is not None
    save_job(parts / "model.ovi", fleet.job)
    job = load_job(parts / "model.ovi")
    assert job.metrics.count == job.state.count == 180
    facts = summarise(job)
    assert facts["certificate"]["regret"] > 0.0
    assert "not of what the merged model will decide" in facts["certificate"]["sentence"]
    assert len(facts["learned_from"]) == 3
    twice = learn_shards(
        Settings("sold", rule="implicit", max_categories=4, prepare_like=str(parts / "model.ovi")), parts / "part-0.csv"
    )
    assert twice.state.inputs == fleet.state.inputs


def test_learners_of_named_columns(parts: Path, executor: Executor) -> None:
    with pytest.raises(ValueError, match="brings them to one scale"):
        learn_shards(FULL, parts, executor, target="sold")
    inner = ovi.Linear(ovi.Logistic(), ovi.Implicit(), ovi.MeanField(box=None), average=False, missing=True)
    fleet = learn_shards(ovi.Prepare(ovi.Inputs(missing=True), inner), parts, executor, target="sold")
    assert fleet.job is not None
    assert fleet.job.settings.rule == "implicit"
    assert (
        fleet.state.alone().array.tobytes()
        == learn_shards(Settings("sold", rule="implicit"), parts, executor).state.alone().array.tobytes()
    )
    for wrong, message in (
        (Settings("sold", rule="implicit", delay=3), "late"),
        (Settings("sold", rule="implicit", end_row=9), "not of shards"),
    ):
        with pytest.raises(ValueError, match=message):
            learn_shards(wrong, parts, executor)


def test_several_classes_that_only_some_shards_have(tmp_path: Path, executor: Executor) -> None:
    rng = np.random.default_rng(0)
    for number, names in enumerate(("xyz", "xy", "wz")):
        X = rng.standard_normal((40, 2))
        lines = [f"{a!r},{b!r},{names[k % len(names)]}" for k, (a, b) in enumerate(X.tolist())]
        (tmp_path / f"part-{number}.csv").write_text("\n".join(["a,b,kind", *lines]) + "\n")
    fleet = learn_shards(Settings("kind", rule="implicit"), tmp_path, executor, rounds=2)
    assert fleet.job is not None
    assert fleet.job.class_names == ("w", "x", "y", "z")
    assert len(fleet.state.by_class()) == 4
    assert fleet.job.metrics.count == 120
    assert fleet.job.learner.forecast(fleet.state, np.zeros((1, 2))).probability.shape == (1, 4)


def test_row_groups_tables_and_records_are_shards(parts: Path, executor: Executor) -> None:
    import pandas as pd

    table = pd.concat([pd.read_csv(parts / f"part-{k}.csv") for k in range(3)], ignore_index=True)
    table.to_parquet(parts / "all.parquet", row_group_size=60)
    expected = learn_shards(SOLD, [parts / f"part-{k}.csv" for k in range(3)], executor).state
    fleets = {
        "row groups": learn_shards(SOLD, parts / "all.parquet", executor),
        "tables": learn_shards(SOLD, [table[k : k + 60] for k in (0, 60, 120)], executor),
        "functions": learn_shards(SOLD, [partial(Path, parts / f"part-{k}.csv") for k in range(3)], executor),
    }
    for name, fleet in fleets.items():
        assert len(fleet.shards) == 3, name
        np.testing.assert_allclose(fleet.state.mean, expected.mean, rtol=1e-9)
    assert [shard.name[-2:] for shard in shards_of(parts / "all.parquet")] == ["#0", "#1", "#2"]
    assert len(shards_of(parts / "all.parquet", row_groups=False)) == 1
    for wrong, message in (([], "is empty"), ([3.0], "needs files"), (3, "needs files")):
        with pytest.raises((TypeError, ValueError), match=message):
            shards_of(wrong)
    with pytest.raises(ValueError, match="named twice"):
        shards_of([parts / "part-0.csv", str(parts / "part-*.csv")])
    with pytest.raises(FileNotFoundError, match="as a pattern"):
        shards_of(str(parts / "none-*.csv"))


# --- what is kept


def count_calls(log: Path, name: str, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    with log.open("a") as file:
        file.write(f"{name}\n")
    return X, y


def test_finished_shards_are_learned_from_no_more(tmp_path: Path, executor: Executor) -> None:
    X, y = rows(120)
    log, folder = tmp_path / "log", tmp_path / "kept"
    shards = {str(k): partial(count_calls, log, str(k), *part) for k, part in enumerate(cut(X, y, 4))}
    whole = learn_shards(PREPARED, shards, executor, folder=folder)
    assert log.read_text().split() == ["0", "1", "2", "3"] * 2 or sorted(log.read_text().split()) == sorted("01230123")
    log.unlink()
    with pytest.raises(ValueError, match="--resume"):
        learn_shards(PREPARED, shards, executor, folder=folder)
    with pytest.raises(ValueError, match="with another rounds"):
        learn_shards(PREPARED, shards, executor, folder=folder, resume=True, rounds=2)
    (folder / "round-1-000002.part").unlink()
    with (folder / "done.ndjson").open("a") as file:
        file.write('["round-1", "2", ["half')
    again = learn_shards(PREPARED, shards, executor, folder=folder, resume=True)
    assert log.read_text().split() == ["2"]
    assert again.state.alone().array.tobytes() == whole.state.alone().array.tobytes()
    assert [one.events for one in again.shards] == [30] * 4
    assert again.shards[0].worker == whole.shards[0].worker
    learn_shards(PREPARED, shards, executor, folder=folder, overwrite=True)
    with pytest.raises(ValueError, match="name the folder"):
        learn_shards(PREPARED, shards, executor, resume=True)


def test_a_file_that_has_changed_is_no_finished_shard(parts: Path, executor: Executor) -> None:
    learn_shards(SOLD, str(parts / "part-*.csv"), executor, folder=parts / "kept")
    text = (parts / "part-1.csv").read_text()
    (parts / "part-1.csv").write_text(text + text.splitlines()[-1] + "\n")
    with pytest.raises(ValueError, match=r"part-1.csv is new or has changed"):
        learn_shards(SOLD, str(parts / "part-*.csv"), executor, folder=parts / "kept", resume=True)


def slow(seconds: float, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    time.sleep(seconds)
    return X, y


def test_a_slow_shard_holds_up_no_other(executor: Executor) -> None:
    X, y = rows(80)
    told: list[int] = []
    shards = [partial(slow, 0.5 if k == 0 else 0.0, *part) for k, part in enumerate(cut(X, y, 4))]
    learn_shards(PREPARED.inner, shards, executor, watch=lambda progress: told.append(progress.done))
    assert told == [0, 1, 2, 3, 4]


def test_bytes_are_the_same_however_often_a_state_is_packed() -> None:
    X, y = rows(30)
    from onlinevi.learners import pack

    state, _ = PREPARED.update_many(PREPARED.init(3), X, y)
    content = pack(PREPARED, state, extra={"rows": 30})
    assert content == pack(PREPARED, state, extra={"rows": 30})
    assert unpack(content).extra == {"rows": 30}
    with pytest.raises(ovi.checkpoint.CheckpointError):
        unpack(content[:-1])
