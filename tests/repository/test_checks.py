"""The public checks pass what ships, and each of them can fail: it says in words what is broken."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from helpers.catalogue import LOSSES, RULES, name

import onlinevi as ovi
from onlinevi import checks
from onlinevi.engine import Belief, Expected
from onlinevi.learners.choice import loss_of
from onlinevi.rules.base import RatedRule


@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_losses_that_ship_keep_the_laws(loss: ovi.Loss) -> None:
    checks.loss(loss, compiled=False)


@pytest.mark.parametrize("rule", [*RULES, ovi.Implicit()], ids=name)
def test_rules_that_ship_keep_the_laws(rule: ovi.Rule) -> None:
    checks.rule(rule, compiled=False)


@pytest.mark.parametrize(
    "family", [ovi.Point(), ovi.MeanField(), ovi.FullCovariance(), ovi.LowRank(rank=2)], ids=lambda own: type(own).__name__
)
def test_families_that_ship_keep_the_laws(family: ovi.Family) -> None:
    checks.family(family, ovi.Implicit(), compiled=False)


LINEAR = ovi.Linear(ovi.Logistic(), ovi.NGVI())
NUMBERS = ovi.Linear(ovi.Squared(), ovi.Implicit())
LEARNERS = [
    LINEAR,
    ovi.Prepare(ovi.Inputs(), LINEAR),
    ovi.Calibrate(ovi.Calibration(), ovi.Prepare(ovi.Inputs(), NUMBERS)),
    ovi.Pool([LINEAR, replace(LINEAR, discount=0.9)], rate=1.0),
    ovi.Prepare(ovi.Inputs(), ovi.Expand(ovi.Fourier(6), NUMBERS)),
    ovi.Pool([LINEAR, ovi.Expand(ovi.Relu(3), ovi.Pool([LINEAR], rate=1.0), intercept=False)], rate=1.0),
    ovi.Clip(NUMBERS),
    ovi.Lag(replace(LINEAR, loss=ovi.Squared()), 2),
    ovi.Recalibrate(ovi.Pool([replace(LINEAR, loss=ovi.Logistic())], rate=1.0, share=1e-3, pool="probability")),
    ovi.Sets(ovi.SetCalibration(0.8), ovi.Prepare(ovi.Inputs(), LINEAR)),
    ovi.OneVsRest(ovi.Prepare(ovi.Inputs(), LINEAR), 2),
    ovi.Sets(ovi.SetCalibration(0.8), ovi.OneVsRest(ovi.Prepare(ovi.Inputs(), LINEAR), 2)),
    ovi.Softmax(2),
    ovi.ClassPool([ovi.Softmax(2), ovi.Expand(ovi.Relu(3), ovi.Softmax(2, discount=0.9), intercept=False)]),
    ovi.Sets(ovi.SetCalibration(0.8), ovi.Prepare(ovi.Inputs(), ovi.Expand(ovi.Fourier(6), ovi.Softmax(0, shared=True)))),
    ovi.Auto(ovi.Squared()),
    ovi.Auto(ovi.Logistic(), lags=1),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda own: type(own).__name__)
def test_learners_that_ship_keep_the_laws(learner: Any) -> None:
    checks.learner(learner, compiled=False)


@pytest.mark.compiled
def test_the_compiled_loop_is_checked_too() -> None:
    checks.family(ovi.FullCovariance(), ovi.Implicit())  # a loop that an example compiles too


IMPORTS = """from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from onlinevi.engine import Expected, Real, ns
from onlinevi.losses import Loss, Target


"""


def test_the_loss_that_the_guide_for_contributors_adds_keeps_the_laws(tmp_path: Path, monkeypatch: Any) -> None:
    guide = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n((?:(?!```).)*class Exponential.*?)```", guide, re.DOTALL)
    (tmp_path / "loss_of_the_guide.py").write_text(IMPORTS + block, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    kind: Any = import_module("loss_of_the_guide").Exponential
    try:
        checks.loss(kind())
        kind.check_probability()
    finally:
        del kind.name  # no other test is to know it
    a = np.array([-1.3, 0.4])
    p = kind().probability(a)
    np.testing.assert_allclose(p * np.exp(-a), (1.0 - p) * np.exp(a), rtol=1e-12)  # at the prediction that costs least
    draws = kind().probability(a[:, None] + 0.8 * np.random.default_rng(0).standard_normal((2, 100_000)))
    np.testing.assert_allclose(kind().probability(a, 0.8), draws.mean(axis=1), atol=0.02)


def test_a_loss_of_classes_without_probabilities_is_refused_before_it_predicts() -> None:
    class Margin(ovi.Loss):
        target = "classes"

    for refused in (Margin.check_probability, lambda: loss_of(Margin(), "classes")):
        with pytest.raises(ValueError, match=r"Margin is a loss of classes .* needs a method probability\(self, a, v=0.0\)"):
            refused()


# --- each check can fail


@dataclass(frozen=True)
class Gap(ovi.Loss):
    """(y − z)², with one thing wrong in each class below."""

    @staticmethod
    def expected(y: Any, a: Any, v: Any) -> Expected:
        return Expected((y - a) * (y - a) + v * v, 2.0 * (a - y), 2.0 + 0.0 * a)


class WrongSlope(Gap):
    @staticmethod
    def expected(y: Any, a: Any, v: Any) -> Expected:
        return Expected((y - a) * (y - a) + v * v, a - y, 1.0 + 0.0 * a)


class WrongCurvature(Gap):
    @staticmethod
    def expected(y: Any, a: Any, v: Any) -> Expected:
        return Expected((y - a) * (y - a) + v * v, 2.0 * (a - y), 1.0 + 0.0 * a)


class WrongMean(Gap):
    @staticmethod
    def expected(y: Any, a: Any, v: Any) -> Expected:
        return Expected((y - a) * (y - a), 2.0 * (a - y), 2.0 + 0.0 * a)


class Infinite(Gap):
    @staticmethod
    def expected(y: Any, a: Any, v: Any) -> Expected:
        return Expected((y - a) * (y - a) + v * v, 2.0 * (a - y), 2.0 * v / v)


class Concave(Gap):
    @staticmethod
    def expected(y: Any, a: Any, v: Any) -> Expected:
        return Expected(-(y - a) * (y - a) - v * v, -2.0 * (a - y), -2.0 + 0.0 * a)


class TakesAnything(Gap):
    @staticmethod
    def valid_label(y: Any, *parameters: Any) -> Any:
        return y == y or y != y if np.ndim(y) == 0 else np.ones(np.shape(y), dtype=bool)


class FlatEverywhere(Gap):
    @staticmethod
    def is_flat(y: Any, a: Any, *parameters: Any) -> Any:
        return y == y


class TooSteep(Gap):
    @property
    def lipschitz(self) -> float:
        return 0.5


class Certain(Gap):
    target: ClassVar[Any] = "classes"

    def probability(self, a: Any, v: Any = 0.0) -> Any:
        return 2.0 + 0.0 * np.asarray(a)


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (WrongSlope, "the slope is not the derivative"),
        (WrongCurvature, "the curvature is not the derivative"),
        (WrongMean, "E is not the mean of the loss at v = 0"),
        (Infinite, r"expected\(y, a, 0\) is not finite"),
        (Concave, "convex=True"),
        (TakesAnything, "valid_label takes NaN"),
        (FlatEverywhere, "is_flat is true where"),
        (TooSteep, "steeper than lipschitz"),
        (Certain, r"leaves \[0, 1\]"),
    ],
)
def test_a_broken_loss_is_found(kind: type[ovi.Loss], sentence: str) -> None:
    checks.loss(Gap(), compiled=False)
    with pytest.raises(checks.Broken, match=sentence):
        checks.loss(kind(), compiled=False)


@dataclass(frozen=True)
class Step(RatedRule):
    """The step of a natural gradient, with one thing wrong in each class below."""

    rate: Any = 0.1

    @staticmethod
    def new_belief(belief: Any, gradient: Any, totals: Any, rates: Any, prior: Any) -> Belief:
        size = rates.step * belief.std * belief.std
        return Belief(belief.mean - size * gradient.mean, belief.std / (1.0 + size * gradient.curvature))


class Negative(Step):
    @staticmethod
    def new_belief(belief: Any, gradient: Any, totals: Any, rates: Any, prior: Any) -> Belief:
        return Belief(belief.mean, belief.std - 1.0)


class Wild(Step):
    @staticmethod
    def new_belief(belief: Any, gradient: Any, totals: Any, rates: Any, prior: Any) -> Belief:
        with np.errstate(all="ignore"):
            return Belief(belief.mean + 0.0 / (0.0 * np.asarray(gradient.mean)), belief.std)


class Drifting(Step):
    """Moves every coordinate at every event, and does not say so."""

    @staticmethod
    def new_belief(belief: Any, gradient: Any, totals: Any, rates: Any, prior: Any) -> Belief:
        return Belief(0.9 * belief.mean + 0.1, belief.std)


class OneNumber(Step):
    """Takes the first coordinate's slope for all."""

    @staticmethod
    def new_belief(belief: Any, gradient: Any, totals: Any, rates: Any, prior: Any) -> Belief:
        slope = gradient.mean if np.ndim(gradient.mean) == 0 else gradient.mean[0]
        return Belief(belief.mean - rates.step * slope, belief.std)


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (Negative, "makes a std negative"),
        (Wild, "not finite for finite gradients"),
        (Drifting, "sparse rows and dense ones give different weights"),
        (OneNumber, "numbers one by one and arrays"),
    ],
)
def test_a_broken_rule_is_found(kind: type[ovi.Rule], sentence: str) -> None:
    checks.rule(Step(), compiled=False)
    with pytest.raises(checks.Broken, match=sentence):
        checks.rule(kind(), compiled=False)


@dataclass(frozen=True)
class Shifted(ovi.MeanField):
    """Unpacks something else than was packed."""

    def unpack(self, packed: Any, dim: int) -> Belief:
        return Belief(packed[:dim] + 1.0, packed[dim:])


@dataclass(frozen=True)
class Doubled(ovi.MeanField):
    """A merge that counts the prior twice."""

    def merge(self, beliefs: Sequence[Any]) -> Any:
        return Belief(beliefs[0].mean, beliefs[0].std / 2.0)


@pytest.mark.parametrize(("kind", "sentence"), [(Shifted, "unpack does not undo pack"), (Doubled, "merge of priors")])
def test_a_broken_family_is_found(kind: type[Any], sentence: str) -> None:
    with pytest.raises(checks.Broken, match=sentence):
        checks.family(kind(), ovi.NGVI(), compiled=False)


@dataclass(frozen=True)
class Forgetful(ovi.Linear):
    """Begins anew at every block."""

    def update_many(self, state: Any, X: Any, y: Any, **options: Any) -> Any:
        return super().update_many(self.init(len(X[0]), 40), X, y, **options)


@dataclass(frozen=True)
class Boastful(ovi.Linear):
    """Says more than it knows."""

    def foresee(self, state: Any, X: Any) -> Any:
        events = super().foresee(state, X)
        return replace(events, prediction=events.prediction + 1.0)


@dataclass(frozen=True)
class Swallows(ovi.Linear):
    """Takes what is infinite for 0."""

    def update_many(self, state: Any, X: Any, y: Any, **options: Any) -> Any:
        return super().update_many(state, np.where(np.isfinite(X), X, 0.0), y, **options)


@dataclass(frozen=True)
class Greedy(ovi.Linear):
    """Learns from rows of weight 0."""

    def update_many(self, state: Any, X: Any, y: Any, *, weights: Any = None, **options: Any) -> Any:
        return super().update_many(state, X, y, **options)


@dataclass(frozen=True)
class Lossy(ovi.Linear):
    """Saves a state that has forgotten its sums."""

    def restore(self, stored: Any) -> Any:
        state = super().restore(stored)
        return self.init(state.plan.dim, state.plan.horizon)


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (Forgetful, "blocks of 7 rows give other bits"),
        (Boastful, "forecast says something else"),
        (Swallows, "an infinite feature is not refused"),
        (Greedy, "a row of weight 0 is not as if"),
        (Lossy, "a file brings back another state"),
    ],
)
def test_a_broken_learner_is_found(kind: type[ovi.Linear], sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from onlinevi.learners.store import configs

    known = configs.known()
    monkeypatch.setattr(configs, "known", lambda: known | {kind.__name__: kind})
    with pytest.raises(checks.Broken, match=sentence):
        checks.learner(kind(ovi.Squared(), ovi.NGVI()), compiled=False)


def test_everything_that_is_broken_is_told_at_once() -> None:
    with pytest.raises(checks.Broken) as found:
        checks.loss(WrongSlope(), compiled=False)
    assert len(found.value.laws) >= 1
    assert str(found.value).startswith("WrongSlope(")
    assert all(f"- {law}" in str(found.value) for law in found.value.laws)
