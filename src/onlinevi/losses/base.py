"""What every loss is: L̄_t(μ) of the paper's section 3, as three scalars under a Gaussian prediction."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

from onlinevi.engine import Expected, Real, ns

Target: TypeAlias = Literal["classes", "numbers", "counts", "quantile"]
"""The class of task: what is to be said of a label."""


WITHOUT_PROBABILITY = "{} is a loss of classes that gives them no probability: it needs a method probability(self, a, v=0.0)"


class LabelLaw(NamedTuple):
    """The law of a label given its prediction: its variance is noise·unit + extra, where the noise is yet to be learned."""

    mean: Any
    unit: Any
    extra: Any


@dataclass(frozen=True)
class Loss:
    """A loss ℓ(y, z) of a label and a prediction, known by its expectation under z ~ N(a, v²).

    A loss of your own is a subclass with one method, ``expected``, written with operators and ``onlinevi.ns`` only; then
    it compiles into the loop, and works on numpy and JAX arrays. Its fields, if any, are floats and follow ``v`` as
    arguments. ``ridge`` adds ridge/2·‖θ‖² to the loss: ridge-strongly convex (Assumption 4.2). ``robust`` bounds the influence
    of one event on a step: at that many times the usual slope it counts half. What is paid and recorded is the loss itself.

    What a prediction means is the loss's to say: ``target`` is the class of task, ``label_law`` the law of a label, ``score``
    and ``probability`` the link to a probability of classes. ``name`` is what the command line and estimators call it.
    """

    target: ClassVar[Target] = "numbers"

    ridge: float = field(default=0.0, kw_only=True)
    robust: float | None = field(default=None, kw_only=True)

    convex: ClassVar[bool] = True
    nonnegative: ClassVar[bool] = True
    """Whether it is nowhere below 0, so that nobody can be beaten by more than what they lost."""
    at_zero: ClassVar[float] = math.inf
    """The largest loss that the prediction 0 can have, where ``nonnegative`` is False: without it no regret is certain."""
    quadratic: ClassVar[bool] = False
    """Whether it is (y − z)²: sums of products of the data then tell its total at every point."""
    steepest_at_corners: ClassVar[bool] = False
    """Whether |e1| and e2 are largest at a corner of any rectangle of predictions and spreads."""
    metric: ClassVar[str | None] = None
    """The metric of runs by which it is judged, where that is not the first of its task's: "mae", say."""
    label_rule: ClassVar[str] = "a finite number"
    lowest_label: ClassVar[float] = -math.inf
    label_hint: ClassVar[str] = "drop the row, or fill it in"

    def __post_init__(self) -> None:
        if not (self.ridge >= 0.0 and math.isfinite(self.ridge)):
            raise ValueError(f"ridge={self.ridge!r}: a ridge must be ≥ 0 and finite; try 0.01")
        if self.robust is not None and not (self.robust > 1.0 and math.isfinite(self.robust)):
            raise ValueError(
                f"robust={self.robust!r}: needs None or a finite number > 1, in units of the usual slope; try 5.0 "
                "(at 1 or below, what is usual would shrink without end)"
            )

    @staticmethod
    def expected(y: Real, a: Real, v: Real) -> Expected:
        """(E, e1, e2) = (E[ℓ(y, z)], ∂E/∂a, ∂²E/∂a²); at v = 0 the loss itself, a subgradient, and 0 where e2 has none."""
        raise TypeError("a loss needs a static method expected(y, a, v)")

    @staticmethod
    def valid_label(y: Real, *parameters: Real) -> Real:
        """Whether the loss is defined at this label."""
        return ns.isfinite(y)

    @staticmethod
    def is_flat(y: Real, a: Real, *parameters: Real) -> Real:
        """Whether a prediction without spread is known to cost nothing and to move nothing, before anything is computed."""
        return False

    odds: ClassVar[Callable[..., tuple[Real, Real]] | None] = None
    """(a, v, *parameters) → (P(+1), P(−1)), a part of the loop; None for a loss that knows no probabilities."""

    @property
    def level(self) -> float | None:
        """Which quantile of the labels the loss asks for; None where it asks for none."""
        return None

    @property
    def parameters(self) -> tuple[float, ...]:
        """The fields that ``expected`` takes after ``v``."""
        return tuple(float(getattr(self, item.name)) for item in fields(self) if item.name not in ("ridge", "robust"))

    @property
    def lipschitz(self) -> float:
        """The largest |∂ℓ/∂z| over all predictions; infinite where only a bounded range of them has one."""
        return math.inf

    def lipschitz_within(self, y: Real, reach: float) -> float:
        """The largest |∂ℓ/∂z| over |z| ≤ reach at these labels: of a convex loss, at an end."""
        ends = [np.abs(self(y, np.full_like(np.asarray(y, dtype=float), end)).slope).max() for end in (-reach, reach)]
        return float(max(ends))

    def __call__(self, y: Real, a: Real, v: Real = 0.0) -> Expected:
        """(E, e1, e2) for arrays of labels, predictions and spreads, refused where it is not a number.

        >>> from onlinevi import Hinge
        >>> Hinge()(1.0, 0.25).value.item()
        0.75
        """
        labels, predictions, spreads = np.broadcast_arrays(*(np.asarray(value, dtype=float) for value in (y, a, v)))
        with np.errstate(all="ignore"):
            valid = np.asarray(self.valid_label(labels, *self.parameters))
            parts = self.expected(labels, predictions, spreads, *self.parameters)
        result = Expected(*(np.broadcast_to(part, labels.shape) for part in parts))
        if not valid.all():
            raise ValueError(self.refuse_label(labels[~valid].flat[0]))
        if not (spreads >= 0.0).all():
            raise ValueError("a spread v must be ≥ 0: it is a standard deviation")
        if not all(np.isfinite(part).all() for part in result):
            raise ValueError(f"{self}: the loss overflows at these predictions; {self.overflow_hint}")
        return result

    def label_law(self, prediction: Any, within: Any, between: Any) -> LabelLaw:
        """The law of the label where the prediction's variance is noise·within + between."""
        return LabelLaw(prediction, 1.0 + within, between)

    def score(self, a: Any, v: Any) -> Any:
        """What is compared among classes at a prediction N(a, v²): log-odds, where the loss knows probabilities."""
        return a

    def probability(self, a: Any, v: Any = 0.0) -> Any:
        """P(+1) at a prediction N(a, v²), for losses of classes."""
        if self.target == "classes":
            raise TypeError(WITHOUT_PROBABILITY.format(type(self).__name__))
        raise TypeError(f"{type(self).__name__} has no classes, so no probabilities: use Logistic() or Hinge()")

    def probability_of_score(self, score: Any, v: Any) -> Any:
        """P(+1) at a ``score`` whose prediction had the spread v."""
        return self.probability(score, v)

    @classmethod
    def check_probability(cls) -> None:
        """Refuse a loss of classes that does not say how likely they are, where predictions are to be told."""
        if cls.target == "classes" and cls.probability is Loss.probability:
            raise ValueError(WITHOUT_PROBABILITY.format(cls.__name__))

    overflow_hint: ClassVar[str] = "scale the features or the labels down"

    def refuse_label(self, label: object) -> str:
        """The sentence for a label that this loss does not take."""
        return f"label {label!s}: {type(self).__name__} needs {self.label_rule}; {self.label_hint}"


def as_loss(loss: Any) -> Loss:
    """The loss itself; what is none is refused, and a class of losses told how to become one."""
    if isinstance(loss, Loss):
        return loss
    hint = f"; write {loss.__name__}()" if isinstance(loss, type) else ""
    raise TypeError(f"loss={loss!r}: needs a loss object{hint}")
