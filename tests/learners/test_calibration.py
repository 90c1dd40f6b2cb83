"""Intervals and noise learned from residuals: the identity behind the coverage, on streams made to break it."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.integrate import quad
from scipy.stats import norm
from scipy.stats import t as student_t

import onlinevi as ovi
from onlinevi.learners.calibration import Calibrated

sys.path.append(str(Path(__file__).resolve().parents[2] / "experiments"))
import early_intervals

COUNT = 4_000


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


NASTY = {
    "cauchy": rng(1).standard_cauchy(COUNT),
    "jumps": rng(2).standard_normal(COUNT) * np.where(np.arange(COUNT) // 500 % 2, 1e3, 1.0),
    "trend": np.linspace(0.0, 1e6, COUNT) + rng(3).standard_normal(COUNT),
    "alternating": np.where(np.arange(COUNT) % 2, 1e6, 1e-6) * rng(4).standard_normal(COUNT),
    "growing": np.exp(np.linspace(-100.0, 100.0, COUNT)) * rng(5).standard_normal(COUNT),
}


def shortfall(start: Calibrated, end: Calibrated, step: float) -> float:
    """What the identity says the rate of misses exceeds 1 − coverage by, times the number of intervals."""
    return float(np.log(end.ratio) - np.log(start.ratio)) / step


@pytest.mark.parametrize("name", NASTY)
@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.99])
def test_misses_are_what_the_ratio_says_and_coverage_is_as_asked(name: str, coverage: float) -> None:
    calibration, y = ovi.Calibration(coverage), NASTY[name]
    start = calibration.init()
    end, bands = calibration.update_many(start, y, np.zeros(COUNT))
    missed = (y[1:] < bands.lower[1:]) | (y[1:] > bands.upper[1:])  # the first label has no interval
    excess = missed.sum() - (1.0 - coverage) * (COUNT - 1)
    assert excess == pytest.approx(shortfall(start, end, calibration.step), abs=1e-7)
    assert end.coverage == pytest.approx(1.0 - missed.mean(), abs=1e-12)
    assert end.coverage == pytest.approx(coverage, abs=0.04)


class Adversary:
    """Sees the interval, then puts the label just where it hurts."""

    def __init__(self, side: Callable[[int], float]) -> None:
        self.side = side

    def play(self, calibration: ovi.Calibration, count: int) -> Calibrated:
        state = calibration.update_many(calibration.init(), [1.0], [0.0])[0]
        for t in range(count):
            band = calibration.bands(state, np.zeros(1))
            label = self.side(t) * float(band.upper[0])
            state = calibration.update_many(state, [label], [0.0])[0]
        return state


@pytest.mark.parametrize("side", [lambda t: 1.001, lambda t: 0.999, lambda t: 1.001 if t % 10 == 0 else 0.5])
def test_an_adversary_pays_for_misses_with_ever_larger_labels(side: Callable[[int], float]) -> None:
    calibration, count = ovi.Calibration(0.9), 400
    end = Adversary(side).play(calibration, count)
    asked = 1.0 - end.coverage - 0.1
    if end.ratio > 1.001e-4:
        assert asked * count == pytest.approx(shortfall(calibration.init(), end, calibration.step), abs=1e-7)
    else:
        assert asked * count <= shortfall(calibration.init(), end, calibration.step) + 1e-7
    assert np.isfinite(end.array).all()


@pytest.mark.compiled
@pytest.mark.parametrize("noise", early_intervals.NOISES)
def test_intervals_are_honest_at_each_of_the_first_rows(noise: str) -> None:
    shares = early_intervals.covered(300, 60, early_intervals.NOISES[noise])
    assert shares.min() >= early_intervals.LOW
    assert shares.max() <= early_intervals.HIGH


def test_an_interval_after_two_residuals_is_students() -> None:
    state, _ = ovi.Calibration(0.9).run([2.0, 1.0], [0.0, 0.0], [1e6, 1.0])  # the first belief was of no use
    band = ovi.Calibration(0.9).bands(state, 0.0, unit=1e-9)
    assert band.std == pytest.approx(np.sqrt((0.25 * 4.0 + 1.0) / 1.25 * (1.0 - 1e-4)))
    drawn = state.ratio / norm.ppf(0.95) * float(student_t.ppf(0.95, 1.5)) * band.std
    assert (band.lower, band.upper) == pytest.approx((-drawn, drawn))


def test_what_held_the_first_intervals_open_fades_out() -> None:
    calibration, units = ovi.Calibration(0.9), np.r_[1.0, np.full(199, 1e-6)]
    state, _ = calibration.run(1e-3 * rng(8).standard_normal(200), np.zeros(200), units)
    band = calibration.bands(state, 0.0, unit=1e-12)
    assert band.upper == pytest.approx(state.ratio * np.sqrt(state.noise * 1e-12))


def test_a_stuck_sensor_leaves_an_interval_that_recovers() -> None:
    calibration = ovi.Calibration(0.9)
    stuck, bands = calibration.run(np.full(50_000, 3.0), np.full(50_000, 3.0))
    assert stuck.noise == 0.0
    assert stuck.coverage == 1.0
    assert stuck.ratio == pytest.approx(1e-4)
    assert bands.std[-1] == 0.0
    y = rng().standard_normal(1_000)
    later = calibration.update_many(stuck, y, np.zeros(1_000))[1]
    assert np.mean(np.abs(y[500:]) <= later.upper[500:]) == pytest.approx(0.9, abs=0.03)


@pytest.mark.parametrize("power", [-60, 7, 200])
def test_units_do_not_matter(power: int) -> None:
    scale = 2.0**power
    y, prediction, extra = rng().standard_normal((3, 500))
    plain = ovi.Calibration().run(y, prediction, 2.0, extra**2)[1]
    scaled = ovi.Calibration().run(scale * y, scale * prediction, 2.0, scale**2 * extra**2)[1]
    for name in ("std", "lower", "upper"):
        np.testing.assert_array_equal(getattr(scaled, name), scale * getattr(plain, name))


def test_the_noise_is_found_beside_what_is_not_noise() -> None:
    draw, count = rng(6), 60_000
    unit, extra = 1.0 + draw.random(count), 3.0 * draw.random(count)
    y = np.sqrt(4.0 * unit + extra) * draw.standard_normal(count)
    calibration = ovi.Calibration(0.9, memory=1e6)
    end, bands = calibration.run(y, np.zeros(count), unit, extra)
    assert end.noise == pytest.approx(4.0, rel=0.04)
    np.testing.assert_allclose(bands.std[-1000:], np.sqrt(4.0 * unit + extra)[-1000:], rtol=0.03)
    assert end.ratio == pytest.approx(norm.ppf(0.95), rel=0.25), "the normal law needs no correction"


def test_poor_predictions_of_the_start_are_soon_forgotten() -> None:
    residuals = rng(7).standard_normal(100)
    residuals[0] = 1e3
    assert ovi.Calibration().run(residuals, np.zeros(100))[0].noise < 10.0, "an average over all would be 10,000"


def test_outliers_do_not_pass_for_noise_and_a_change_does() -> None:
    draw = rng(9)
    residuals = draw.standard_normal(2_000)
    wild = residuals + np.where(np.arange(2_000) % 50 == 49, 1e4, 0.0)
    assert ovi.Calibration().run(wild, np.zeros(2_000))[0].noise < 10.0, "their own mean square is 2,000,000"
    changed = residuals * np.where(np.arange(2_000) < 1_000, 1.0, 1e4)
    bands = ovi.Calibration().run(changed, np.zeros(2_000))[1]
    assert bands.std[1_010] > 1e3
    assert np.mean(np.abs(changed[1_010:]) <= bands.upper[1_010:]) > 0.88


@given(arrays(float, (30, 2), elements=st.floats(-1e6, 1e6)), st.integers(0, 30), st.integers(0, 30))
@settings(max_examples=25)
def test_any_split_gives_the_same_bits_and_bands_are_those_of_the_next_event(pairs: np.ndarray, one: int, two: int) -> None:
    calibration, (y, prediction) = ovi.Calibration(), pairs.T
    whole, bands = calibration.run(y, prediction, 1.5, 0.5)
    state = calibration.init()
    for part in np.split(np.arange(30), sorted((one, two))):
        if len(part):
            ahead = calibration.bands(state, prediction[part[:1]], 1.5, 0.5)
            for name in ("std", "lower", "upper", "noise"):
                assert getattr(ahead, name)[0] == pytest.approx(getattr(bands, name)[part[0]], rel=1e-12, nan_ok=True)
        state, _ = calibration.update_many(state, y[part], prediction[part], 1.5, 0.5)
    np.testing.assert_array_equal(state.array, whole.array)


@given(arrays(float, (20, 2), elements=st.floats(allow_nan=False, allow_infinity=False)), st.floats(1e-300, 1e300))
@settings(max_examples=40)
def test_nothing_infinite_enters_the_state(pairs: np.ndarray, unit: float) -> None:
    calibration = ovi.Calibration()
    end, bands = calibration.run(pairs[:, 0], 0.5 * pairs[:, 1], unit, np.abs(pairs[:, 1]))
    assert np.isfinite(end.array).all()
    assert not np.isnan(bands.std).any()
    assert end.noise >= 0.0


def test_before_and_at_the_first_event() -> None:
    calibration = ovi.Calibration(0.8)
    start = calibration.init()
    assert np.isnan([start.noise, start.coverage]).all()
    assert start.ratio == pytest.approx(norm.ppf(0.9))
    empty, bands = calibration.update_many(start, [], [])
    assert empty.count == 0
    assert len(bands.std) == 0
    one, bands = calibration.update_many(start, [3.0], [1.0])
    assert (bands.lower[0], bands.upper[0]) == (-np.inf, np.inf)
    assert one.noise == 4.0
    assert np.isnan(one.coverage)
    for twin in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one)):
        assert not twin.array.flags.writeable
        np.testing.assert_array_equal(twin.array, one.array)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"coverage": 1.0}, "strictly between"),
        ({"coverage": np.nan}, "strictly between"),
        ({"step": 0.0}, "0 < step < 1"),
        ({"memory": 0.5}, "at least one event"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ovi.Calibration(**settings)


def test_bad_events_are_refused() -> None:
    calibration = ovi.Calibration()
    for event in (([np.nan], [0.0]), ([0.0], [np.inf]), ([0.0], [0.0], 0.0), ([0.0], [0.0], 1.0, -1.0)):
        with pytest.raises(ValueError, match="must be finite"):
            calibration.run(*event)
    with pytest.raises(ValueError, match="one label an event"):
        calibration.run([[0.0]], [[0.0]])


# --- probabilities of classes


@pytest.mark.parametrize("v", [0.0, 1e-6, 0.3, 2.0, 30.0])
@pytest.mark.parametrize("a", [-40.0, -3.0, 0.0, 0.7, 12.0])
def test_the_logistic_probability_is_the_mean_of_the_sigmoid(a: float, v: float) -> None:
    def sigmoid(z: float) -> float:
        return 1.0 / (1.0 + np.exp(-z)) if z > 0.0 else np.exp(z) / (1.0 + np.exp(z))

    exact = sigmoid(a)
    if v > 0.0:
        points = sorted({float(np.clip(-a / v, -12.0, 12.0)), 0.0})
        exact = quad(lambda u: norm.pdf(u) * sigmoid(a + v * u), -12.0, 12.0, points=points, epsabs=1e-13, limit=200)[0]
    assert ovi.Logistic().probability(a, v) == pytest.approx(exact, abs=1e-9)


def test_the_hinge_probability_is_the_part_of_the_votes() -> None:
    votes = 0.4 + 1.3 * rng(8).standard_normal(400_000) > 0.0
    hinge = ovi.Hinge()
    assert hinge.probability(0.4, 1.3) == pytest.approx(votes.mean(), abs=0.004)
    np.testing.assert_array_equal(hinge.probability([-2.0, 0.0, 2.0], 0.0), [0.0, 0.5, 1.0])
    np.testing.assert_allclose(hinge.probability([0.0, 1.0], [3.0, 0.5]), [0.5, norm.cdf(2.0)])


@pytest.mark.parametrize("loss", [ovi.Squared(), ovi.Absolute(), ovi.Pinball(0.3), ovi.Poisson()])
def test_numbers_have_no_probabilities(loss: ovi.Loss) -> None:
    with pytest.raises(TypeError, match="has no classes"):
        loss.probability(0.0)


def against_intervals(events: int, largest: float) -> tuple[ovi.learners.Calibrated, float]:
    """Each label just outside of the interval that was said, where it may be so large; else as predicted."""
    calibration, most = ovi.Calibration(0.9), 0.0
    state, _ = calibration.update_many(calibration.init(), [1.0], [0.0])
    for _ in range(events):
        bands = calibration.bands(state, 0.0)
        end = 1.001 * float(bands.upper)
        label = end if end <= largest else 0.0
        most = max(most, label / float(bands.std))
        state, _ = calibration.update_many(state, [label], [0.0])
    return state, most


@pytest.mark.parametrize("largest", [1.0, 1e6, np.inf])
def test_the_identity_holds_against_an_adversary_who_sees_the_intervals(largest: float) -> None:
    """docs/guarantees.md: with labels of any size he is never covered, with bounded ones as often as asked, or nearly."""
    events, calibration = 600, ovi.Calibration(0.9)
    state, most = against_intervals(events, largest)
    first = calibration.init().ratio
    moved = np.log(state.ratio / first)
    assert 1.0 - state.coverage - 0.1 == pytest.approx(moved / (calibration.step * events), abs=1e-12)
    if np.isinf(largest):
        assert state.coverage == 0.0
    else:
        short = (np.log(most / first) + calibration.step) / (calibration.step * events)
        assert 0.9 - short <= state.coverage
        assert state.coverage > 0.85


def test_a_spread_beyond_all_numbers_is_infinite_and_warns_of_nothing() -> None:
    """As of labels of 1e145 in the default, whose first beliefs in bent features are wide."""
    leaf = ovi.Linear(ovi.Squared(), ovi.Implicit(), ovi.MeanField(box=None))
    learner = ovi.Calibrate(ovi.Calibration(), ovi.Pool([leaf], rate=ovi.ewa.AdaHedge()))
    state, y = learner.init(dim=1), 1e145 * np.array([1.0, -1.0, 1.0])
    _, events = learner.inner.play(state.inner, np.zeros((3, 1)), y, np.ones(3))
    _, told = learner._told_by(state.calibrated, replace(events, within=np.array([1.0, 1.0, 1e20])), y)
    assert told.spread[-1] == np.inf
    assert told.upper[-1] == np.inf
