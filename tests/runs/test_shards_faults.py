"""Workers that are killed, shards that kill them, and clusters: retried, named, and never counted twice."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future, InvalidStateError, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.killed_shards import LEARNER, play, shards_of_rows

from onlinevi.runs import BadShard, Settings, learn_shards

pytestmark = pytest.mark.usefixtures("all_in_python")


def killing(marker: Path | None, source: Any) -> Any:
    """Ends its process at once: the first time, or where there is no marker to leave, always."""
    if marker is None or not marker.exists():
        if marker is not None:
            marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return source()


def flaky(marker: Path, source: Any) -> Any:
    """Fails as a network does, the first time."""
    if not marker.exists():
        marker.touch()
        raise OSError("the connection was reset")
    return source()


@pytest.fixture(scope="module")
def expected() -> bytes:
    with ThreadPoolExecutor(2) as executor:
        fleet = learn_shards(LEARNER, shards_of_rows(5, 0.0), executor)
    return fleet.state.alone().array.tobytes()


def test_a_worker_that_is_killed_is_replaced(tmp_path: Path, expected: bytes) -> None:
    shards = shards_of_rows(5, 0.0)
    shards[2] = partial(killing, tmp_path / "killed", shards[2])
    shards[4] = partial(flaky, tmp_path / "reset", shards[4])
    fleet = learn_shards(LEARNER, shards, workers=2)
    assert fleet.state.alone().array.tobytes() == expected
    assert fleet.shards[2].attempts == 2
    assert fleet.shards[4].attempts >= 2
    assert max(one.attempts for one in fleet.shards) <= 3


def test_a_shard_that_kills_every_worker_is_named(tmp_path: Path) -> None:
    shards = shards_of_rows(5, 0.0)
    shards[1] = partial(killing, None, shards[1])
    with pytest.raises(BadShard, match="shard 1: its worker died 2 times") as stopped:
        learn_shards(LEARNER, shards, workers=2, attempts=2)
    assert stopped.value.name == "shard 1"
    fleet = learn_shards(LEARNER, shards, workers=2, attempts=2, bad_shards="skip", folder=tmp_path / "kept")
    assert [bool(one.error) for one in fleet.shards] == [False, True, False, False, False]
    assert fleet.state.count == 120
    with ThreadPoolExecutor(2) as executor:
        calm = shards_of_rows(5, 0.0)
        others = learn_shards(LEARNER, {f"{k}": calm[k] for k in (0, 2, 3, 4)}, executor)
    assert fleet.state.alone().array.tobytes() == others.state.alone().array.tobytes()
    with pytest.raises(BadShard, match="all shards have failed"):
        learn_shards(LEARNER, shards[1:2], workers=1, attempts=1, bad_shards="skip")


class Fragile(ThreadPoolExecutor):
    """Breaks as a pool of processes does, with all that is under way, when the deadly shard comes."""

    def __init__(self, deadly: str) -> None:
        super().__init__(3)
        self._deadly, self._under_way = deadly, list[Future[Any]]()

    def submit(self, call: Any, /, *args: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._under_way.append(future)
        super().submit(self._do, call, future)
        return future

    def _do(self, call: Any, future: Future[Any]) -> None:
        deadly = call.arguments[0].name == self._deadly
        time.sleep(0.01 if deadly else 0.03)
        with suppress(InvalidStateError):
            if not deadly:
                future.set_result(call())
        for other in self._under_way if deadly else []:
            with suppress(InvalidStateError):
                other.set_exception(BrokenProcessPool())


@pytest.mark.parametrize("deadly", ["shard 0", "shard 2", "shard 4"])
def test_only_who_is_alone_with_a_dead_worker_is_blamed(deadly: str) -> None:
    """However many were lost with it, and whenever its turn comes."""
    made: list[Fragile] = []

    def make() -> Executor:
        made.append(Fragile(deadly))
        return made[-1]

    fleet = learn_shards(LEARNER.inner, shards_of_rows(5, 0.0), make, bad_shards="skip")
    assert [one.name for one in fleet.bad] == [deadly]
    assert "its worker died 3 times" in fleet.bad[0].error
    assert len(made) <= 5
    for executor in made:
        executor.shutdown()


def one_process() -> ProcessPoolExecutor:
    """No fork of this process, which has threads of others' making, JAX's among them."""
    return ProcessPoolExecutor(1, get_context("forkserver"))


def test_an_executor_that_was_given_is_not_replaced_but_one_that_is_made_is(tmp_path: Path, expected: bytes) -> None:
    shards = shards_of_rows(5, 0.0)
    shards[2] = partial(killing, tmp_path / "killed", shards[2])
    with one_process() as executor, pytest.raises(RuntimeError, match="give a function that makes an executor"):
        learn_shards(LEARNER, shards, executor)
    (tmp_path / "killed").unlink()
    made: list[Executor] = []

    def make() -> Executor:
        made.append(one_process())
        return made[-1]

    assert learn_shards(LEARNER, shards, make).state.alone().array.tobytes() == expected
    assert len(made) == 2


def test_what_no_worker_can_be_sent_is_told() -> None:
    with pytest.raises(TypeError, match="shard 0 cannot be sent to a worker"):
        learn_shards(LEARNER, [lambda: None], workers=1)


# --- Dask


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed", reason='Dask is missing: pip install "onlinevi[dask]"')
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_a_cluster_gives_the_same_bits(client: Any, expected: bytes, tmp_path: Path) -> None:
    fleet = learn_shards(LEARNER, shards_of_rows(5, 0.0), client.get_executor())
    assert fleet.state.alone().array.tobytes() == expected
    assert len({one.worker for one in fleet.shards}) == 2
    shards = shards_of_rows(5, 0.0)
    shards[3] = partial(killing, tmp_path / "killed", shards[3])
    assert learn_shards(LEARNER, shards, client.get_executor()).state.alone().array.tobytes() == expected


def test_collections_of_dask(client: Any) -> None:
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    import dask.array as da
    import dask.bag as db

    rng, executor = np.random.default_rng(0), client.get_executor()
    table = pd.DataFrame({"a": rng.standard_normal(90), "town": rng.choice(["Rome", "Oslo"], 90)})
    table["sold"] = np.where(table.a + (table.town == "Rome") > 0.3, "yes", "no")
    settings = Settings("sold", rule="implicit")
    with ThreadPoolExecutor(1) as threads:
        known = learn_shards(settings, [table[k : k + 30] for k in (0, 30, 60)], threads).state.alone().array.tobytes()
    frame = learn_shards(settings, dd.from_pandas(table, npartitions=3), executor)
    assert [one.name for one in frame.shards] == ["partition 0", "partition 1", "partition 2"]
    bag = learn_shards(settings, db.from_sequence(table.to_dict("records"), npartitions=3), executor)
    assert frame.state.alone().array.tobytes() == bag.state.alone().array.tobytes() == known
    X, y = table[["a"]].to_numpy(), np.where(table.sold == "yes", 1.0, -1.0)
    arrays = learn_shards(LEARNER, (da.from_array(X, chunks=(30, 1)), da.from_array(y, chunks=45)), executor)
    events = db.from_sequence(list(zip(X.tolist(), y.tolist(), strict=True)), npartitions=3)
    assert arrays.state.alone().array.tobytes() == learn_shards(LEARNER, events, executor).state.alone().array.tobytes()
    with pytest.raises(ValueError, match="persisted"):
        learn_shards(settings, client.persist(dd.from_pandas(table, npartitions=3)), executor)
    with pytest.raises(ValueError, match="unknown size"):
        learn_shards(LEARNER, (dd.from_pandas(table[["a"]], npartitions=3).to_dask_array(), da.from_array(y)), executor)


def test_the_command_line_finds_a_cluster(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from onlinevi.adapters.cli import main
    from onlinevi.runs import load_job

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for number in range(3):
        lines = [f"{a!r},{int(a > 0.0)}" for a in rng.standard_normal(40).tolist()]
        (tmp_path / f"part-{number}.csv").write_text("\n".join(["a,sold", *lines]) + "\n")
    call = ["run", str(tmp_path / "part-*.csv"), "--target", "sold", "--rule", "implicit"]
    assert main([*call, "--dask", client.scheduler_info()["address"], "--checkpoint", "cluster.ovi"]) == 0
    assert main([*call, "--workers", "1", "--checkpoint", "processes.ovi"]) == 0
    arrays = [load_job(f"{name}.ovi").state.alone().array.tobytes() for name in ("cluster", "processes")]
    assert arrays[0] == arrays[1]


def test_random_kills_lose_nothing_and_count_nothing_twice() -> None:
    """``python tests/helpers/killed_shards.py 100`` has more of them."""
    pytest.importorskip("distributed", reason='Dask is missing: pip install "onlinevi[dask]"')
    found = play(3, shards=8)
    assert found["kills"] == 3
    assert found["other bits"] == found["lost"] == found["counted twice"] == 0
