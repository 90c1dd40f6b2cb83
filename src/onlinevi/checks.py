"""The laws that parts of onlinevi keep, to try on parts of one's own: each check says in words what is broken.

>>> import onlinevi as ovi
>>> from onlinevi import checks
>>> checks.loss(ovi.Hinge(), compiled=False)
>>> checks.rule(ovi.SVB(), compiled=False)
>>> checks.learner(ovi.Linear(ovi.Squared(), ovi.NGVI()), compiled=False)
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from onlinevi.beliefs import Family, MeanField, Point
from onlinevi.engine import Belief, Expected, Gradient, Prior, Rates, Totals, Vector, using_engine
from onlinevi.learners import BadRow, Learner, Linear, load, save, store
from onlinevi.losses import Loss, Squared
from onlinevi.rules import SVB, Rule

__all__ = ["Broken", "family", "learner", "loss", "rule"]

LABELS = {
    "classes": (-1.0, 1.0),
    "numbers": (-2.0, 0.0, 1.5),
    "counts": (0.0, 1.0, 3.0),
    "quantile": (-2.0, 0.0, 1.5),
}
"""Labels of each class of task."""
CODES = (0.0, 1.0, 2.0)
"""Labels of learners of several classes."""


class Broken(AssertionError):
    """Laws that a part does not keep; ``laws`` has a sentence for each."""

    def __init__(self, part: object, laws: list[str]) -> None:
        self.part, self.laws = part, laws
        super().__init__(
            "\n".join([f"{part!r} breaks {len(laws)} law{'s' if len(laws) > 1 else ''}:", *(f"- {law}" for law in laws)])
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.part, self.laws)


class _Findings:
    """Collects what is broken, so that one call tells all of it."""

    def __init__(self, part: object) -> None:
        self.part, self.laws = part, list[str]()

    def law(self, kept: Any, sentence: str) -> None:
        if not bool(np.all(kept)):
            self.laws.append(sentence)

    @contextmanager
    def trying(self, what: str) -> Iterator[None]:
        """An error is a finding too."""
        try:
            yield
        except Exception as error:
            self.laws.append(f"{what} raises {type(error).__name__}: {error}")

    def tell(self) -> None:
        if self.laws:
            raise Broken(self.part, self.laws)


def _engines(compiled: bool) -> list[Any]:
    return [using_engine("interpreted"), *([using_engine("compiled")] if compiled else [])]


# --- losses


def loss(given: Loss, *, compiled: bool = True) -> None:
    """Check a loss: E, its slope and its curvature belong together, at every spread and however it is called.

    ``compiled=False`` leaves out the compiled loop, which takes seconds.
    """
    findings = _Findings(given)
    y, a, v = (
        part.ravel() for part in np.meshgrid(LABELS[given.target], np.linspace(-3.0, 3.0, 13), [0.3, 1.0, 2.5], indexing="ij")
    )
    with findings.trying("expected(y, a, v) on arrays"):
        _check_derivatives(findings, given, y, a, v)
        _check_expectation(findings, given, y, a, v)
        _check_points(findings, given, y, a)
    with findings.trying("a label that is no number"):
        findings.law(
            not np.any(given.valid_label(np.array([np.nan, np.inf]), *given.parameters)),
            "valid_label takes NaN or infinity for a label",
        )
    if given.target == "classes":
        with findings.trying("probability(a, v)"):
            said, other = (np.asarray(given.probability(sign * a, v)) for sign in (1.0, -1.0))
            findings.law((said >= 0.0) & (said <= 1.0), "probability(a, v) leaves [0, 1]")
            findings.law(np.isclose(said + other, 1.0, atol=1e-6), "probability(a, v) and probability(−a, v) do not sum to 1")
    if not findings.laws:
        _check_engines(findings, given, compiled=compiled)
    findings.tell()


def _at(given: Loss, y: Vector, a: Vector, v: Vector) -> Expected:
    with np.errstate(all="ignore"):
        return Expected(*(np.broadcast_to(part, y.shape) for part in given.expected(y, a, v, *given.parameters)))


def _check_derivatives(findings: _Findings, given: Loss, y: Vector, a: Vector, v: Vector) -> None:
    step = 1e-5
    low, here, high = (_at(given, y, a + shift, v) for shift in (-step, 0.0, step))
    findings.law([np.isfinite(part).all() for part in here], "expected(y, a, v) is not finite at spreads from 0.3 to 2.5")
    slope, curvature = (high.value - low.value) / (2.0 * step), (high.slope - low.slope) / (2.0 * step)
    findings.law(np.isclose(here.slope, slope, rtol=1e-5, atol=1e-6), "the slope is not the derivative of E in a")
    findings.law(
        np.isclose(here.curvature, curvature, rtol=1e-5, atol=1e-6), "the curvature is not the derivative of the slope in a"
    )
    if given.convex:
        findings.law(here.curvature >= -1e-12, "it says convex=True, and its curvature is below 0 somewhere")


def _check_expectation(findings: _Findings, given: Loss, y: Vector, a: Vector, v: Vector) -> None:
    """E is the integral of the loss at v = 0 over N(a, v²): by the trapezoidal rule, which is exact enough for a kink."""
    nodes = np.linspace(-9.0, 9.0, 6001)
    weights = np.exp(-0.5 * nodes * nodes)
    z = a[:, None] + v[:, None] * nodes
    points = _at(given, np.broadcast_to(y[:, None], z.shape), z, np.zeros_like(z)).value
    integral = (points * weights).sum(axis=1) / weights.sum()
    findings.law(
        np.isclose(_at(given, y, a, v).value, integral, rtol=1e-4, atol=1e-4),
        "E is not the mean of the loss at v = 0 over N(a, v²)",
    )


def _check_points(findings: _Findings, given: Loss, y: Vector, a: Vector) -> None:
    for spread in (0.0, 1e-300, 1e-12):
        found = _at(given, y, a, np.full_like(a, spread))
        findings.law([np.isfinite(part).all() for part in found], f"expected(y, a, {spread:g}) is not finite")
    at_point = _at(given, y, a, np.zeros_like(a))
    flat = np.broadcast_to(given.is_flat(y, a, *given.parameters), y.shape)
    findings.law(
        [(part[flat] == 0.0).all() for part in at_point], "is_flat is true where the loss, its slope or its curvature is not 0"
    )
    findings.law(np.abs(at_point.slope) <= given.lipschitz * (1.0 + 1e-12), "a slope is steeper than lipschitz")
    one_by_one = [given.expected(*row, *given.parameters) for row in zip(y, a, np.full_like(a, 0.7), strict=True)]
    together = np.stack(_at(given, y, a, np.full_like(a, 0.7)), axis=1)
    findings.law(
        np.allclose(np.array(one_by_one, dtype=float), together, rtol=1e-12),
        "numbers one by one and arrays give different results",
    )


def _check_engines(findings: _Findings, given: Loss, *, compiled: bool) -> None:
    X, y = _stream(LABELS[given.target])
    traces = []
    for engine in _engines(compiled):
        with findings.trying("learning with SVB"), engine:
            one = Linear(given, SVB(0.1))
            traces.append(one.update_many(one.init(X.shape[1], len(y)), X, y)[1])
    if len(traces) == 2:
        findings.law(
            np.allclose(traces[0].loss, traces[1].loss, rtol=1e-9, atol=1e-12),
            "the compiled loop and the interpreted one differ",
        )


def _stream(labels: tuple[float, ...], count: int = 40, dim: int = 3, seed: int = 0) -> tuple[Vector, Vector]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((count, dim)) / np.sqrt(dim), rng.choice(labels, count)


# --- rules and families


def rule(given: Rule, *, compiled: bool = True) -> None:
    """Check a rule: its step is pure and the same for numbers and arrays, and keeps what it says of itself in a learner."""
    findings = _Findings(given)
    with findings.trying("new_belief(belief, gradient, totals, rates, prior)"):
        _check_step(findings, given)
    if not findings.laws:
        with findings.trying("with_rate(0.1)"):
            findings.law(type(given.with_rate(0.1)) is type(given), "with_rate gives another rule")
        family_of = MeanField() if given.gaussian else Point()
        with findings.trying(f"a Linear learner of it with {family_of!r}"):
            _learns(findings, Linear(Squared(), given, family_of), compiled=compiled, sparse=not given.moves_without_gradient)
    findings.tell()


def _check_step(findings: _Findings, given: Rule) -> None:
    rng = np.random.default_rng(0)
    mean, slope = rng.standard_normal((2, 20))
    std = rng.uniform(0.1, 1.0, 20) if given.gaussian else np.zeros(20)
    curvature = rng.uniform(0.0, 3.0, 20)
    rates = Rates(0.1, 0.0, given.step_rate.per_variance)
    prior = Prior(np.zeros(20), np.ones(20))

    def step(pick: Callable[[Vector], Any]) -> Belief:
        belief, gradient = Belief(pick(mean), pick(std)), Gradient(pick(slope), pick(curvature))
        totals = Totals(pick(slope), pick(curvature * std))
        return given.new_belief(belief, gradient, totals, rates, Prior(*map(pick, prior)))

    together = step(np.array)
    findings.law([np.isfinite(part).all() for part in together], "the step is not finite for finite gradients")
    findings.law(np.asarray(together.std) >= 0.0, "the step makes a std negative")
    one_by_one = [step(lambda array, k=k: array[k]) for k in range(20)]  # type: ignore[misc]
    findings.law(
        np.allclose([[one.mean, one.std] for one in one_by_one], np.stack(np.broadcast_arrays(*together), axis=1), rtol=1e-12),
        "numbers one by one and arrays give different steps: select with ns.where, and write no +=",
    )


def family(given: Family, made_for: Rule, *, compiled: bool = True) -> None:
    """Check a family of beliefs with a rule that it has a step for: packing, prediction, merging, and learning."""
    findings = _Findings(given)
    with findings.trying("init, pack and unpack"):
        start = given.init(4)
        packed = given.pack(start)
        findings.law(len(packed) == given.belief_size(4), "pack gives another number of values than belief_size says")
        again = given.unpack(packed, 4)
        findings.law([np.array_equal(one, two) for one, two in zip(start, again, strict=True)], "unpack does not undo pack")
        mean, variance = given.predict(start, np.eye(4))
        findings.law(np.allclose(mean, start.mean), "predict at a unit row is not the mean of its weight")
        findings.law(np.asarray(variance) >= 0.0, "predict gives a negative variance")
    if given.gaussian and not findings.laws:
        with findings.trying("merge"):
            merged = given.merge([start, start])
            findings.law(
                np.allclose(merged.mean, start.mean) and np.allclose(merged.std, start.std),
                "a merge of priors is not the prior",
            )
    if not findings.laws:
        with findings.trying(f"a Linear learner of it with {made_for!r}"):
            _learns(findings, Linear(Squared(), made_for, given), compiled=compiled, sparse=not given.correlated)
    findings.tell()


def _learns(findings: _Findings, one: Linear, *, compiled: bool, sparse: bool) -> None:
    """Learn with both engines, from dense and sparse rows: the same."""
    from scipy.sparse import csr_matrix

    X, y = _stream(LABELS[one.loss.target], dim=4)
    X[np.abs(X) < 0.2] = 0.0
    means = []
    for engine in _engines(compiled):
        with engine:
            start = one.init(4, len(y))
            state, _ = one.update_many(start, X, y)
            means.append(state.mean)
            findings.law(
                [np.isfinite(array).all() for array in (state.mean, state.std)], "learning leaves numbers that are not finite"
            )
            findings.law(state.std >= 0.0, "learning makes a std negative")
            if sparse:
                found, _ = one.update_many(start, csr_matrix(X), y)
                findings.law(
                    np.allclose(found.mean, state.mean, rtol=1e-9, atol=1e-12),
                    "sparse rows and dense ones give different weights: does it move coordinates without a gradient?",
                )
    if len(means) == 2:
        alike = np.allclose(means[0], means[1], rtol=1e-9, atol=1e-12)
        findings.law(alike, "the compiled loop and the interpreted one differ")


# --- learners


def learner(given: Learner[Any], *, dim: int = 3, compiled: bool = True) -> None:
    """Check a learner of any composition: any split gives the same bits, states are values, and files bring them back."""
    findings = _Findings(given)
    X, y = _stream(CODES if given.several else LABELS[given.loss.target], dim=dim)
    with using_engine("compiled") if compiled else nullcontext():
        with findings.trying("init and update_many"):
            start = given.init(dim, len(y))
            before = _bits(given, start)
            whole, trace = given.update_many(start, X, y)
            findings.law(_bits(given, start) == before, "update_many changes the state that it was given")
            findings.law(whole.count == len(y), "the state after n events does not count n")
            if whole.space is None:
                findings.law(np.shape(whole.std) == np.shape(whole.mean), "there are not as many stds of weights as means")
        if not findings.laws:
            for check in (_check_splits, _check_forecasts, _check_weights, _check_refusals, _check_copies):
                with findings.trying(check.__name__.removeprefix("_check_")):
                    check(findings, given, X, y, whole, trace)
    findings.tell()


def _bits(given: Learner[Any], state: Any) -> Any:
    facts, arrays = store.take_apart(given, state)
    return facts, {name: array.tobytes() for name, array in arrays.items()}


def _check_splits(findings: _Findings, given: Learner[Any], X: Vector, y: Vector, whole: Any, trace: Any) -> None:
    for size in (1, 7):
        state, losses = given.init(X.shape[1], len(y)), []
        for start in range(0, len(y), size):
            state, part = given.update_many(state, X[start : start + size], y[start : start + size])
            losses.append(part.loss)
        findings.law(_bits(given, state) == _bits(given, whole), f"blocks of {size} rows give other bits than one block")
        findings.law(
            np.array_equal(np.concatenate(losses), trace.loss), f"blocks of {size} rows cost other losses than one block"
        )


def _check_forecasts(findings: _Findings, given: Learner[Any], X: Vector, y: Vector, whole: Any, trace: Any) -> None:
    half = len(y) // 2
    state, _ = given.update_many(given.init(X.shape[1], len(y)), X[:half], y[:half])
    before = _bits(given, state)
    forecast = given.forecast(state, X[half : half + 1])
    findings.law(_bits(given, state) == before, "forecast changes the state")
    said = given.update_many(state, X[half : half + 1], y[half : half + 1])[1].forecast
    findings.law(
        np.allclose(
            np.asarray(forecast.prediction, dtype=float), np.asarray(said.prediction, dtype=float), rtol=1e-9, atol=1e-9
        ),
        "forecast says something else than what is recorded when the row is learned from",
    )


def _check_weights(findings: _Findings, given: Learner[Any], X: Vector, y: Vector, whole: Any, trace: Any) -> None:
    weights = np.ones(len(y))
    weights[::3] = 0.0
    start, there = given.init(X.shape[1], len(y)), weights > 0.0
    with_zeros, _ = given.update_many(start, X, y, weights=weights)
    without, _ = given.update_many(start, X[there], y[there], weights=weights[there])
    findings.law(_bits(given, with_zeros) == _bits(given, without), "a row of weight 0 is not as if it were absent")


def _check_refusals(findings: _Findings, given: Learner[Any], X: Vector, y: Vector, whole: Any, trace: Any) -> None:
    bad = X.copy()
    bad[5, 0] = np.inf
    try:
        given.update_many(given.init(X.shape[1], len(y)), bad, y)
        findings.law(False, "an infinite feature is not refused")
    except BadRow as refused:
        findings.law(refused.row == 5, f"row 5 is bad, and row {refused.row} is refused")
        findings.law(refused.trace is not None and refused.trace.state.count == 5, "what was learned before a bad row is lost")


def _check_copies(findings: _Findings, given: Learner[Any], X: Vector, y: Vector, whole: Any, trace: Any) -> None:
    findings.law(_bits(given, pickle.loads(pickle.dumps(whole))) == _bits(given, whole), "a pickled state is another")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.ovi"
        save(path, given, whole)
        saved = load(path)
    findings.law(saved.learner == given, "a file brings back another learner")
    findings.law(_bits(saved.learner, saved.state) == _bits(given, whole), "a file brings back another state")
