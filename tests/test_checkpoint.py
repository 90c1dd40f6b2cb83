"""A checkpoint gives back the same bits, or is refused: whatever happened to the file, and whenever the machine stopped."""

from __future__ import annotations

import hashlib
import io
import json
import os
import stat
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from catalogue import LOSSES, RULES, name, stream

import onlinevi as ovi
from onlinevi import ewa, linear, ns
from onlinevi.auto import AutoState
from onlinevi.checkpoint import CheckpointError, configs, named, states
from onlinevi.checkpoint import format as container
from onlinevi.checkpoint.configs import Decoder, encode
from onlinevi.classes import ClassesState
from onlinevi.prepared import PreparedState
from onlinevi.types import Expected

SAMPLES = Path(__file__).parent / "samples"

LINEARS = [
    ovi.Linear(ovi.Squared(), ovi.NGVI(), ovi.FullCovariance(box=ovi.Box(mean=(-5.0, np.inf), std=None))),
    ovi.Linear(ovi.Squared(), ovi.Implicit(), ovi.LowRank(rank=2, prior_std=0.5)),
    ovi.Linear(ovi.Logistic(), ovi.Implicit(), discount=0.97),
    ovi.Linear(ovi.Squared(robust=5.0, ridge=0.1), ovi.SVB(ovi.PerSqrt(1.0)), average=False),
    ovi.Linear(ovi.Hinge(), ovi.SVA(ovi.Adaptive())),
    ovi.Linear(ovi.Absolute(), ovi.OGA(ovi.PerHorizon(0.5)), ovi.Point(box=None), missing=True),
]
AUTOS = [ovi.Auto(), ovi.Auto(loss=ovi.Squared(), coverage=0.8), ovi.Auto(loss=ovi.Pinball(0.9))]
POOL = ewa.Aggregate([ovi.Linear(ovi.Absolute(), ovi.SVA(rate)) for rate in (0.1, 0.5)], rate=ewa.AdaHedge())


def begun(one: Any, dim: int = 5) -> Any:
    return one.init(dim) if isinstance(one, ovi.Auto) else one.init(dim, 60)


def rows_for(one: Any) -> tuple[np.ndarray, np.ndarray]:
    X, y = stream(one.learners[0].loss if isinstance(one, ewa.Aggregate) else one.loss)
    if getattr(one, "missing", False):
        X = np.where(np.random.default_rng(1).random(X.shape) < 0.2, np.nan, X)
    return X, y


def arrays_of(state: Any) -> list[np.ndarray]:
    if isinstance(state, AutoState):
        own = [] if state.calibrated is None else [state.calibrated.array, state.calibrated.settings]
        return [state.inputs.array, *own, *arrays_of(state.pooled)]
    if isinstance(state, ClassesState):
        return [state.coupled, *(array for own in (*state.each, state.later) if own for array in arrays_of(own))]
    if isinstance(state, PreparedState):
        return [state.inputs.array, state.learned.array]
    if isinstance(state, ewa.AggregateState):
        return [state.array, state.plan.settings, state.plan.log_prior, *(own.array for own in state.learners)]
    return [state.array]


def same_bits(one: Any, other: Any) -> bool:
    pairs = zip(arrays_of(one), arrays_of(other), strict=True)
    return type(one) is type(other) and all(a.tobytes() == b.tobytes() for a, b in pairs)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.ovi"


@pytest.fixture
def saved(path: Path) -> bytes:
    """The bytes of a small checkpoint, which lies at ``path``."""
    one = LINEARS[2]
    ovi.save(path, one, one.update_many(begun(one), *rows_for(one))[0], extra={"rows": [0, 60]})
    return path.read_bytes()


# --- what is saved comes back


@pytest.mark.parametrize("one", [*LINEARS, *AUTOS, POOL], ids=name)
def test_learning_goes_on_with_the_same_bits(one: Any, path: Path) -> None:
    X, y = rows_for(one)
    state, trace = one.update_many(begun(one), X[:30], y[:30])
    ovi.save(path, one, trace)
    loaded = ovi.load(path)
    assert loaded.learner == one
    assert same_bits(loaded.state, state)
    whole, after = one.update_many(state, X[30:], y[30:])
    again, after_again = loaded.learner.update_many(loaded.state, X[30:], y[30:])
    assert same_bits(again, whole)
    assert after.prediction.tobytes() == after_again.prediction.tobytes()


def test_a_state_before_its_first_event_comes_back(path: Path) -> None:
    for one in (LINEARS[0], AUTOS[0], AUTOS[1]):
        ovi.save(path, one, begun(one))
        assert same_bits(ovi.load(path).state, begun(one))


def test_weights_of_a_prior_and_a_share_come_back(path: Path) -> None:
    pool = ewa.Aggregate(POOL.learners, rate=0.5, prior=[1.0, 3.0], share=0.1)
    state, _ = pool.update_many(pool.init(5, 60), *rows_for(pool))
    ovi.save(path, pool, state)
    assert same_bits(ovi.load(path).state, state)


def test_a_widened_state_comes_back(path: Path) -> None:
    one = ovi.Auto()
    state = one.widen(one.update_many(one.init(5), *rows_for(one))[0], 7)
    ovi.save(path, one, state)
    assert same_bits(ovi.load(path).state, state)
    assert ovi.load(path).state.pooled.plan == state.pooled.plan


def test_inputs_and_residuals_come_back(path: Path) -> None:
    rng = np.random.default_rng(0)
    inputs = ovi.Inputs(missing=True)
    scales, _ = inputs.update_many(inputs.init(3), rng.standard_normal((20, 3)))
    ovi.save(path, inputs, scales)
    assert ovi.load(path)[:2] == (inputs, scales)
    calibration = ovi.Calibration(0.8, memory=7.0)
    calibrated, _ = calibration.run(rng.standard_normal(50), np.zeros(50))
    ovi.save(path, calibration, calibrated)
    again = ovi.load(path)
    assert again.learner == calibration
    assert again.state.array.tobytes() == calibrated.array.tobytes()
    assert again.state.settings.tobytes() == calibrated.settings.tobytes()


def test_extra_and_version_come_back_and_the_same_state_gives_the_same_bytes(saved: bytes, path: Path) -> None:
    loaded = ovi.load(str(path))
    assert loaded.extra == {"rows": [0, 60]}
    assert loaded.version == ovi.__version__
    ovi.save(path, *loaded[:2], extra=loaded.extra)
    assert path.read_bytes() == saved


def test_numpy_reads_the_arrays(saved: bytes, path: Path) -> None:
    state = ovi.load(path).state
    with np.load(path, allow_pickle=False) as file:
        assert file["belief"].tobytes() == state.array[state.plan.parts["belief"]].tobytes()
        assert json.loads(file["header.json"])["state"]["sums"]["count"] == 60.0


@pytest.mark.parametrize("extra", [(1, 2), {1: 2}, np.nan, {"a": object}, b"bytes"], ids=repr)
def test_an_extra_that_json_would_change_is_refused(extra: Any, path: Path) -> None:
    with pytest.raises(TypeError, match="extra"):
        ovi.save(path, LINEARS[0], begun(LINEARS[0]), extra=extra)
    assert not path.exists()


# --- configs

CONFIGS = [
    *LOSSES,
    *RULES,
    *(kind(0.3) for kind in (ovi.Constant, ovi.PerHorizon, ovi.PerSqrt, ovi.PerStep, ovi.PaperSVB, ovi.StronglyConvex)),
    *(ovi.Adaptive(), ovi.Adaptive(0.5), ovi.Box(), ovi.Box(mean=([-1.0, -np.inf], 3.0)), ovi.Box(None, None)),
    *(ovi.Point(), ovi.MeanField([0.0, -0.0, 0.0], 0.5), ovi.FullCovariance(prior_std=[2.0] + [0.1] * 50), ovi.LowRank()),
    *(ovi.Squared(ridge=0.1, robust=3.0), ovi.Pinball(np.float64(0.3)), ovi.LowRank(rank=np.int64(3))),
    *(ovi.Inputs(squash=None), ovi.Calibration(memory=np.inf), ewa.AdaHedge(), *LINEARS, *AUTOS, POOL),
]


@pytest.mark.parametrize("config", CONFIGS, ids=name)
def test_a_config_comes_back_equal(config: Any) -> None:
    written = json.dumps(encode(config), allow_nan=False)
    again = Decoder(10_000).decode(json.loads(written))
    assert type(again) is type(config)
    assert again == config
    assert repr(again) == repr(config).replace("np.float64(0.3)", "0.3")  # −0.0 too


def test_every_config_that_people_can_name_is_known() -> None:
    kinds = [kind for module in (ovi, ewa) for kind in vars(module).values() if isinstance(kind, type) and is_dataclass(kind)]
    needs = {kind for kind in kinds if issubclass(kind, ovi.Loss | ovi.Rule | ovi.Rate | ovi.Family)} - {ovi.Loss, ovi.Rate}
    assert len(needs) > 20
    assert needs <= set(configs.OURS.values())


def test_repeated_numbers_are_written_once() -> None:
    family = ovi.MeanField(prior_std=(1.0, *[0.1] * 100_000))
    assert len(json.dumps(encode(family))) < 300


@dataclass(frozen=True)
class Cubic(ovi.Loss):
    """A loss of one's own."""

    scale: float = 1.0

    @staticmethod
    def expected(y: Any, a: Any, v: Any, scale: Any) -> Expected:
        gap = ns.absolute(a - y)
        return Expected(scale * gap * gap * gap, 3.0 * scale * gap * (a - y), 6.0 * scale * gap)


def test_a_class_of_ones_own_needs_to_be_registered(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configs, "_registered", {})
    one = ovi.Linear(Cubic(0.5), ovi.SVB(0.1))
    with pytest.raises(CheckpointError, match=r"register\(Cubic\)"):
        ovi.save(path, one, one.init(2))
    assert ovi.checkpoint.register(Cubic) is Cubic
    ovi.save(path, one, one.init(2))
    assert ovi.load(path).learner == one
    monkeypatch.setattr(configs, "_registered", {})
    with pytest.raises(CheckpointError, match="holds a 'Cubic', which this version does not know"):
        ovi.load(path)


def test_a_class_that_no_checkpoint_could_tell_apart_is_not_registered() -> None:
    impostor = type("Hinge", (Cubic,), {})
    with pytest.raises(ValueError, match="rename one"):
        ovi.checkpoint.register(impostor)
    with pytest.raises(TypeError, match="frozen dataclass"):
        ovi.checkpoint.register(type("Bare", (ovi.Rule,), {}))
    with pytest.raises(TypeError, match="frozen dataclass"):
        ovi.checkpoint.register(subprocess.Popen)  # type: ignore[type-var]
    with pytest.raises(CheckpointError, match="do not know"):
        encode(type("Hinge", (ovi.Hinge,), {})())


# --- what does not belong together


def test_a_state_of_another_learner_is_refused(path: Path) -> None:
    squared, classes = AUTOS[1], AUTOS[0]
    for one, state in (
        (LINEARS[0], begun(LINEARS[2])),
        (classes, begun(squared)),
        (squared, begun(replace(squared, coverage=0.7))),
        (replace(squared, inputs=ovi.Inputs(intercept=True, unit_rows=True)), None),
        (POOL, begun(replace(POOL, rate=0.5))),
        (POOL, begun(replace(POOL, learners=POOL.learners[:1]))),
    ):
        with pytest.raises((CheckpointError, TypeError), match=r"another learner|is saved with its"):
            ovi.save(path, one, state)
    with pytest.raises(TypeError, match="holds one of Linear"):
        ovi.save(path, ovi.Hinge(), begun(LINEARS[0]))
    assert not path.exists()


def test_a_state_that_is_not_finite_is_not_written(path: Path) -> None:
    one = LINEARS[0]
    array = begun(one).array.copy()
    array[-1] = np.nan
    with pytest.raises(CheckpointError, match="not finite"):
        ovi.save(path, one, ovi.State(array, begun(one).plan))


# --- versions


def test_the_first_versions_file_still_loads_and_predicts_what_it_did() -> None:
    saved = ovi.load(SAMPLES / "linear_v1.ovi")
    assert saved.learner == ovi.Linear(
        ovi.Squared(robust=5.0), ovi.Implicit(rate=0.5), ovi.FullCovariance(prior_std=[2.0, 1.0, 1.0], box=None), discount=0.99
    )
    assert saved.state.count == 40
    mean, std = saved.learner.predict(saved.state, [1.0, 0.5, -1.0])
    assert (mean, std) == pytest.approx(tuple(saved.extra["prediction"]), rel=1e-12)


def test_the_first_versions_default_goes_on_with_its_own_learners() -> None:
    """Its pool has two learners, unlike any recipe of the default."""
    saved = ovi.load(SAMPLES / "auto_v1.ovi")
    assert len(saved.state.pooled.learners) == 2
    forecast = saved.learner.forecast(saved.state, [1.0])
    assert (forecast.mean, forecast.std, forecast.upper) == pytest.approx(tuple(saved.extra["forecast"]), rel=1e-12)
    state, _ = saved.learner.update(saved.state, [1.0], 2.0)
    assert state.count == saved.state.count + 1


def test_the_first_file_of_several_classes_still_loads_and_goes_on() -> None:
    saved = ovi.load(SAMPLES / "classes_v1.ovi")
    assert (saved.learner.known, len(saved.state.each), saved.state.count) == (3, 4, 40)
    said = saved.learner.forecast(saved.state, np.array([[1.0, -0.5]])).probability
    np.testing.assert_allclose(said[0], saved.extra["probability"], rtol=1e-12)
    state, _ = saved.learner.update_many(saved.state, np.array([[1.0, 0.0]]), [4])
    assert len(state.each) == 5


def test_every_sum_has_a_name() -> None:
    assert sorted(states.SUMS.values()) == list(range(linear.HEAD))
    assert sorted(states.RESIDUAL_SUMS.values()) == list(range(len(ovi.Calibration().init().array)))


def test_an_older_file_loads_after_the_head_has_grown(saved: bytes, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The head grows by a sum in front of all others: places change, names do not."""
    before = ovi.load(path)
    names = sorted(states.SUMS, key=lambda one: states.SUMS[one])
    monkeypatch.setattr(linear, "HEAD", linear.HEAD + 1)
    monkeypatch.setattr(states, "SUMS", {"fresh": 0} | {one: 1 + k for k, one in enumerate(names)})
    one = replace(before.learner, average=not before.learner.average)  # a plan that was not made yet
    rewrite(path, saved, lambda header: header["learner"].update(average=one.average), drop={"drift"})
    with pytest.raises(CheckpointError, match="lacks 'fresh'"):
        ovi.load(path)
    monkeypatch.setattr(named, "ADDED_SINCE", frozenset({"fresh"}))
    after = ovi.load(path).state
    old = before.state.array
    assert after.array.tolist() == [0.0, *old[: before.state.plan.parts["totals"].stop].tolist()]


def test_a_newer_file_is_refused_by_name(saved: bytes, path: Path) -> None:
    rewrite(path, saved, lambda header: header.update(version=2, package="9.9"))
    with pytest.raises(CheckpointError, match=r"version 2, by onlinevi 9\.9.*upgrade"):
        ovi.load(path)
    rewrite(path, saved, lambda header: header["learner"].update(colour="red"))
    with pytest.raises(CheckpointError, match=r"make no Linear \(.*colour"):
        ovi.load(path)
    rewrite(path, saved, lambda header: header["state"]["sums"].update(karma=1.0))
    with pytest.raises(CheckpointError, match="'karma', which this version does not know"):
        ovi.load(path)
    rewrite(path, saved, lambda header: None, add={"more": np.zeros(3)})
    with pytest.raises(CheckpointError, match="such as 'more': upgrade"):
        ovi.load(path)


# --- damage


def test_any_flipped_bit_is_found(saved: bytes, path: Path) -> None:
    rng = np.random.default_rng(0)
    for place in range(len(saved)):
        damaged = bytearray(saved)
        damaged[place] ^= 1 << int(rng.integers(8))
        with pytest.raises(CheckpointError):
            load_bytes(damaged)


def test_any_cut_is_found(saved: bytes, path: Path) -> None:
    for size in [*range(0, len(saved), 37), *range(len(saved) - 80, len(saved))]:
        with pytest.raises(CheckpointError):
            load_bytes(saved[:size])
    with pytest.raises(CheckpointError):
        load_bytes(saved + b"\0")


def test_foreign_files_are_refused(path: Path) -> None:
    np.savez(path.with_suffix(".npz"), belief=np.zeros(3))
    for raw, why in (
        (b"", "some other file"),
        (b"\x80\x04pickle", "some other file"),
        (b'{"format": "onlinevi checkpoint"}', "some other file"),
        (path.with_suffix(".npz").read_bytes(), "does not end in a seal"),
    ):
        path.write_bytes(raw)
        with pytest.raises(CheckpointError, match=why) as refused:
            ovi.load(path)
        assert str(path) in str(refused.value)
    with pytest.raises(FileNotFoundError):
        ovi.load(path.with_name("nowhere"))


# --- forgery: the seal fits, what it seals was made up


def load_bytes(raw: bytes | bytearray) -> Any:
    archive = container.Archive(io.BytesIO(raw))
    with container.refusing():
        return ovi.checkpoint.saved._restored(archive)


def sealed(raw: bytes | bytearray) -> bytes:
    body = bytes(raw[: -container.DIGEST_SIZE])
    return body + hashlib.sha256(body).hexdigest().encode()


def rewrite(
    path: Path,
    raw: bytes,
    edit: Callable[[dict[str, Any]], object],
    *,
    drop: set[str] = frozenset(),  # type: ignore[assignment]
    add: dict[str, np.ndarray] | None = None,
    table: Callable[[dict[str, Any]], object] = lambda table: None,
    **options: Any,
) -> None:
    """A checkpoint with another header, as someone would forge it: every digest is right."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        header = json.loads(archive.read("header.json"))
        arrays = {one[:-4]: np.load(io.BytesIO(archive.read(one))) for one in archive.namelist()[1:] if one[:-4] not in drop}
    arrays |= add or {}
    header["arrays"] = {
        one: {"values": len(array), "sha256": hashlib.sha256(array.tobytes()).hexdigest()} for one, array in arrays.items()
    }
    edit(header)
    table(header["arrays"])
    with zipfile.ZipFile(path, "w", **options) as archive:
        archive.comment = b"sha256:" + b"0" * 64
        archive.writestr("header.json", json.dumps(header))
        for one, array in arrays.items():
            archive.writestr(f"{one}.npy", container.npy_head(len(array)) + array.tobytes())
    path.write_bytes(sealed(path.read_bytes()))


def test_a_forged_file_is_refused_or_loads_a_finite_state(saved: bytes) -> None:
    """Bytes anywhere are changed and the file is sealed anew."""
    rng, loaded = np.random.default_rng(1), 0
    for _ in range(3_000):
        forged = bytearray(saved)
        for place in rng.integers(0, len(saved), rng.integers(1, 4)):
            forged[place] = rng.integers(256)
        try:
            state = load_bytes(sealed(forged)).state
        except CheckpointError:
            continue
        assert np.isfinite(state.array).all()
        loaded += 1
    assert 0 < loaded < 2_000  # some bytes of a zip file mean nothing


@contextmanager
def little_memory(most: int = 4_000_000) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


HUGE = 10**15
FORGERIES: dict[str, Callable[[dict[str, Any]], object]] = {
    "dim": lambda header: header["state"].update(dim=HUGE),
    "dim not whole": lambda header: header["state"].update(dim=5.0),
    "negative dim": lambda header: header["state"].update(dim=-5),
    "horizon": lambda header: header["state"].update(horizon="soon"),
    "a rank and a dim": lambda header: (
        header["learner"].update(family={"is": "LowRank", "rank": HUGE}),
        header["state"].update(dim=HUGE),
    ),
    "a run": lambda header: header["learner"]["family"].update(prior_std={"runs": [[1.0, HUGE]]}),
    "many runs": lambda header: header["learner"]["family"].update(prior_std=[{"runs": [[1.0, 3_000]]}] * 1_000),
    "a negative run": lambda header: header["learner"]["family"].update(prior_std={"runs": [[1.0, -5]]}),
    "a class that is not ours": lambda header: header["learner"].update(loss={"is": "Popen", "args": "true"}),
    "a config that is none": lambda header: header.update(learner={"is": ["Linear"]}),
    "a loss as learner": lambda header: header.update(learner={"is": "Hinge"}),
    "a bad setting": lambda header: header["learner"].update(discount=7.0),
    "a setting of another type": lambda header: header["learner"].update(discount=[1.0]),
    "sums": lambda header: header["state"]["sums"].update(count="3"),
    "no sums": lambda header: header["state"].pop("sums"),
    "another format": lambda header: header.update(format="tar"),
    "version": lambda header: header.update(version=True),
    "no arrays": lambda header: header.update(arrays=[]),
    "not a number": lambda header: header["state"]["sums"].update(loss=float("nan")),
}


@pytest.mark.parametrize("forgery", FORGERIES.values(), ids=FORGERIES.keys())
def test_a_forged_header_is_refused_before_memory_is_taken(forgery: Any, saved: bytes, path: Path) -> None:
    rewrite(path, saved, forgery)
    with little_memory(), pytest.raises(CheckpointError):
        ovi.load(path)


STRANGE = [None, True, -1, 0, 3, HUGE, 10**400, 0.5, -0.0, 1e308, "inf", "", [], {}, [1.0], {"is": "Auto"}, {"float": "nan"}]


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in a JSON value."""
    own = list(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else [])
    return [(value, key) for key, _ in own] + [place for _, inner in own for place in places(inner)]


@pytest.mark.parametrize(("sample", "tries"), [("auto_v1.ovi", 400), ("classes_v1.ovi", 200)])
def test_strange_values_anywhere_in_a_header_are_refused_or_do_no_harm(sample: str, tries: int, path: Path) -> None:
    """In the largest headers there are: of a default with a pool, inputs and residuals, and of several classes."""
    raw = (SAMPLES / sample).read_bytes()
    rng, refused = np.random.default_rng(2), 0

    def edit(header: dict[str, Any]) -> None:
        everywhere = [place for part in ("learner", "state") for place in places(header[part])]
        container, key = everywhere[rng.integers(len(everywhere))]
        container[key] = STRANGE[rng.integers(len(STRANGE))]

    for _ in range(tries):
        rewrite(path, raw, edit)
        try:
            state = ovi.load(path).state
        except CheckpointError:
            refused += 1
            continue
        assert all(np.isfinite(array).all() for array in arrays_of(state))
    assert tries / 2 < refused < tries


def test_a_forged_pool_is_refused_before_memory_is_taken(path: Path) -> None:
    raw = (SAMPLES / "auto_v1.ovi").read_bytes()
    load_bytes(raw)  # the compiler is imported here
    rewrite(path, raw, lambda header: header["state"]["pool"]["state"].update(dim=HUGE))
    with little_memory(), pytest.raises(CheckpointError, match="features, but has a belief of"):
        ovi.load(path)
    rewrite(path, raw, lambda header: header["state"]["pool"]["learner"]["learners"].extend([{"is": "AdaHedge"}] * 1_000))
    with little_memory(), pytest.raises(CheckpointError, match="make no Aggregate"):
        ovi.load(path)


def test_a_header_nested_deeper_than_python_goes_is_refused() -> None:
    with zipfile.ZipFile(buffer := io.BytesIO(), "w") as archive:
        archive.comment = b"sha256:" + b"0" * 64
        archive.writestr("header.json", "[" * 100_000)
    with pytest.raises(CheckpointError, match="RecursionError"):
        load_bytes(sealed(buffer.getvalue()))


def test_forged_sizes_and_contents_of_arrays_are_refused(saved: bytes, path: Path) -> None:
    for values in (HUGE, -1, 9.0, True, 11):
        rewrite(path, saved, lambda header: None, table=lambda table, v=values: table["belief"].update(values=v))  # type: ignore[misc]
        with little_memory(), pytest.raises(CheckpointError, match="claims"):
            ovi.load(path)
    rewrite(path, saved, lambda header: None, table=lambda table: table["belief"].update(sha256="0" * 64))
    with pytest.raises(CheckpointError, match="another sha256"):
        ovi.load(path)
    rewrite(path, saved, lambda header: None, add={"belief": np.full(10, np.inf)})
    with pytest.raises(CheckpointError, match="not finite"):
        ovi.load(path)
    rewrite(path, saved, lambda header: None, add={"belief": np.ones(12)})
    with pytest.raises(CheckpointError, match="5 features, but has a belief of 12 values"):
        ovi.load(path)
    rewrite(path, saved, lambda header: None, drop={"totals"})
    with pytest.raises(CheckpointError, match="'totals' has 0 values"):
        ovi.load(path)


def test_a_zip_bomb_is_refused(saved: bytes, path: Path) -> None:
    rewrite(path, saved, lambda header: None, add={"bomb": np.zeros(3_000_000)}, compression=zipfile.ZIP_DEFLATED)
    with little_memory(), pytest.raises(CheckpointError, match="compressed"):
        ovi.load(path)


def test_overlapping_parts_are_refused(saved: bytes) -> None:
    """Two names for the bytes of one array would claim more than the file has, again and again."""
    with zipfile.ZipFile(buffer := io.BytesIO(saved), "a") as archive:
        archive.comment = b"sha256:" + b"0" * 64
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("belief.npy", b"")
    with pytest.raises(CheckpointError, match="names other arrays"):
        load_bytes(sealed(buffer.getvalue()))
    with zipfile.ZipFile(buffer := io.BytesIO(saved), "a") as archive:
        archive.comment = b"sha256:" + b"0" * 64
        archive.infolist()[1].file_size = archive.infolist()[1].compress_size = len(saved)
        archive._didModify = True  # type: ignore[attr-defined]
    with pytest.raises(CheckpointError, match="larger than the file"):
        load_bytes(sealed(buffer.getvalue()))


# --- the machine stops


class Stopped(OSError):
    """As if the power had gone."""


def test_a_failure_at_any_moment_leaves_the_old_file_or_the_new_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = LINEARS[2]
    old, (new, _) = begun(one), one.update_many(begun(one), *rows_for(one))
    ovi.save(path, one, old)
    calls = {"left": 0}

    def step(function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            calls["left"] -= 1
            if calls["left"] == 0:
                raise Stopped(function.__name__)
            return function(*arguments, **options)

        return counted

    class Failing(io.BufferedRandom):
        write = step(io.BufferedRandom.write)  # type: ignore[assignment]
        flush = step(io.BufferedRandom.flush)  # type: ignore[assignment]

    monkeypatch.setattr(os, "fdopen", lambda handle, mode: Failing(io.FileIO(handle, "r+b")))
    for function in (os.open, os.fsync, os.replace):
        monkeypatch.setattr(os, function.__name__, step(function))
    failures = 0
    while True:
        calls["left"] = failures + 1
        try:
            ovi.save(path, one, new)
            break
        except Stopped:
            failures += 1
        loaded = ovi.load(path).state
        assert same_bits(loaded, old) or same_bits(loaded, new)
        assert os.listdir(path.parent) == [path.name]  # noqa: PTH208
    assert failures > 20
    assert same_bits(ovi.load(path).state, new)


KILLED_WHILE_SAVING = """
import os, random, signal, sys, time, numpy as np, onlinevi as ovi
learner, path, last = ovi.Linear(ovi.Squared(), ovi.NGVI(), ovi.FullCovariance()), sys.argv[1], 0
array, plan = learner.init(200).array, learner.init(200).plan
def save(count):
    array[:1] = count
    ovi.save(path, learner, ovi.State(array.copy(), plan))
array, began = array.copy(), time.perf_counter()
save(0)
pace = time.perf_counter() - began
random.seed(0)
for _ in range(40):
    if (child := os.fork()) == 0:
        while True:
            last += 1
            save(last)
    time.sleep(random.uniform(0.0, 3.0 * pace))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    count = ovi.load(path).state.count
    assert count >= last
    last = count
print(last)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="has no fork")
def test_a_process_killed_while_saving_leaves_a_file_that_loads(path: Path) -> None:
    run = [sys.executable, "-c", KILLED_WHILE_SAVING, str(path)]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert int(done.stdout) >= 10


@pytest.mark.skipif(sys.platform == "win32", reason="has no umask")
def test_permissions_are_those_of_a_new_file_or_of_the_one_replaced(path: Path) -> None:
    one = LINEARS[0]
    before = os.umask(0o027)
    try:
        ovi.save(path, one, begun(one))
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o600)
        ovi.save(path, one, begun(one))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        os.umask(before)


def test_a_link_stays_a_link(path: Path) -> None:
    link = path.with_name("latest")
    link.symlink_to(path)
    ovi.save(link, LINEARS[0], begun(LINEARS[0]))
    assert link.is_symlink()
    assert ovi.load(path).learner == LINEARS[0]


def test_saving_a_large_state_takes_no_second_copy_of_it(path: Path) -> None:
    one = ovi.Linear(ovi.Hinge(), ovi.OGA(0.1))
    state = one.init(1_000_000)
    size = state.array.nbytes
    with little_memory(size // 2):
        ovi.save(path, one, state)
    with little_memory(2 * size):
        loaded = ovi.load(path)
    assert same_bits(loaded.state, state)


def test_fields_of_a_plan_are_those_of_a_learner() -> None:
    """What makes the default's pool savable: each plan knows all that its learner was made of."""
    plan = begun(LINEARS[0]).plan
    assert {item.name for item in fields(ovi.Linear)} <= {item.name for item in fields(plan)}
