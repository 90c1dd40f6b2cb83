"""A checkpoint gives back the same bits, or is refused; so do the files of older versions."""

from __future__ import annotations

import json
import math
import subprocess
from collections import namedtuple
from dataclasses import dataclass, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.catalogue import LOSSES, RULES, name
from helpers.checkpoints import AUTOS, LINEARS, POOL, SAMPLES, begun, rewrite, rows_for
from helpers.states import same_bits
from hypothesis import given
from hypothesis import strategies as st

import onlinevi as ovi
from onlinevi import ewa
from onlinevi.checkpoint import CheckpointError
from onlinevi.engine import SUM, ns, positions
from onlinevi.engine.types import Expected
from onlinevi.learners import calibration, described
from onlinevi.learners import linear as leaf
from onlinevi.learners import state as plans
from onlinevi.learners.store import configs
from onlinevi.learners.store import format as store_format
from onlinevi.learners.store.configs import Decoder, encode

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


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3),
    lambda inside: st.lists(inside, max_size=7) | st.dictionaries(st.text(max_size=2), inside, max_size=3),
    max_leaves=20,
)


@given(JSON_VALUES)
def test_a_text_in_pieces_is_that_of_the_whole(value: Any) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(store_format, "PIECE", 3)
        assert store_format.as_json(value) == json.dumps(value)


ODD_EXTRAS: list[Any] = [
    *(math.nan, [math.nan], [math.inf, -math.inf], {"a": [math.inf]}, (1, 2), {"a": (1,)}, {1: 2}, {"a": {None: 1}}),
    *({1, 2}, [b"x"], 10**5000),
]


@pytest.mark.parametrize("extra", ODD_EXTRAS, ids=lambda extra: str(type(extra)))
def test_what_json_does_not_give_back_is_refused(path: Path, extra: Any) -> None:
    with pytest.raises(TypeError, match="extra"):
        ovi.save(path, LINEARS[0], begun(LINEARS[0]), extra=extra)
    assert not path.exists()


def test_large_numbers_and_circles_beside_a_learner(path: Path) -> None:
    extra = {"large": [1 << 200, -(1 << 80)], "sum": [1e308, 1e308], "own": np.float64(0.1)}
    ovi.save(path, LINEARS[0], begun(LINEARS[0]), extra=extra)
    assert ovi.load(path).extra == extra
    extra["round"] = extra
    with pytest.raises(TypeError, match="extra"):
        ovi.save(path, LINEARS[0], begun(LINEARS[0]), extra=extra)


def test_a_state_before_its_first_event_comes_back(path: Path) -> None:
    for one in (LINEARS[0], AUTOS[0], AUTOS[1]):
        ovi.save(path, one, begun(one))
        assert same_bits(ovi.load(path).state, begun(one))


def test_weights_of_a_prior_and_a_share_come_back(path: Path) -> None:
    pool = ovi.Pool(POOL.learners, rate=0.5, prior=[1.0, 3.0], share=0.1)
    state, _ = pool.update_many(pool.init(5, 60), *rows_for(pool))
    ovi.save(path, pool, state)
    assert same_bits(ovi.load(path).state, state)


def test_a_widened_state_comes_back(path: Path) -> None:
    one = ovi.Auto()
    state = one.widen(one.update_many(one.init(5), *(part[:15] for part in rows_for(one)))[0], 7)
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
        assert json.loads(file["header.json"])["state"]["facts"]["sums"]["count"] == 60.0


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
    *(ovi.Explicit(0.3), ovi.SVA(ovi.Explicit(2.0)), ovi.SVB(ovi.Explicit(2.0))),
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
    assert needs <= set(configs.known().values())


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
    with pytest.raises(TypeError, match="a checkpoint holds a learner"):
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
    assert sorted(leaf.SUMS.values()) == list(range(len(SUM)))
    assert sorted(calibration.SUMS.values()) == list(range(len(ovi.Calibration().init().array)))


def test_a_file_without_the_magnitude_of_products_has_one_that_is_large_enough(saved: bytes, path: Path) -> None:
    known = ovi.load(path).state
    rewrite(path, saved, lambda header: header["state"]["facts"]["sums"].pop("magnitude"))
    found = ovi.load(path).state
    assert 0.0 < known.magnitude <= found.magnitude < np.inf
    others = np.setdiff1d(np.arange(len(known.array)), [SUM.magnitude])
    np.testing.assert_array_equal(found.array[others], known.array[others])


def test_an_older_file_loads_after_the_head_has_grown(saved: bytes, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The head grows by a sum in front of all others: places change, names do not."""
    before = ovi.load(path)
    grown = positions(namedtuple("Grown", ("fresh", *SUM._fields)))
    for module in (leaf, plans):
        monkeypatch.setattr(module, "SUM", grown)
    monkeypatch.setattr(leaf, "SUMS", grown._asdict())
    one = replace(before.learner, average=not before.learner.average)  # a plan that was not made yet
    rewrite(path, saved, lambda header: header["learner"].update(average=one.average), drop={"drift"})
    with pytest.raises(CheckpointError, match="lacks 'fresh'"):
        ovi.load(path)
    monkeypatch.setattr(described, "ADDED_SINCE", frozenset({"fresh"}))
    after = ovi.load(path).state
    old = before.state.array
    assert after.array.tolist() == [0.0, *old[: before.state.plan.parts["totals"].stop].tolist()]


def test_a_newer_file_is_refused_by_name(saved: bytes, path: Path) -> None:
    rewrite(path, saved, lambda header: header.update(version=3, package="9.9"))
    with pytest.raises(CheckpointError, match=r"version 3, by onlinevi 9\.9.*upgrade"):
        ovi.load(path)
    rewrite(path, saved, lambda header: header["learner"].update(colour="red"))
    with pytest.raises(CheckpointError, match=r"make no Linear \(.*colour"):
        ovi.load(path)
    rewrite(path, saved, lambda header: header["state"]["facts"]["sums"].update(karma=1.0))
    with pytest.raises(CheckpointError, match="'karma', which this version does not know"):
        ovi.load(path)
    rewrite(path, saved, lambda header: None, add={"more": np.zeros(3)})
    with pytest.raises(CheckpointError, match="such as 'more': upgrade"):
        ovi.load(path)
