"""One loss that stands for all, so that a loop is compiled once for a belief and a rule, and not once for each loss too.

The losses are compiled once, as a kernel that the loop calls. Tests of long streams take it: they share the loops by which the
two engines are compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import onlinevi as ovi
from onlinevi.engine import compose
from onlinevi.engine.types import Expected, Real

KINDS = [ovi.Squared, ovi.Hinge, ovi.Logistic, ovi.Absolute, ovi.Pinball, ovi.Poisson]
squared, hinge, logistic, absolute, pinball, poisson = (kind.expected for kind in KINDS)
is_number, is_sign, is_count = ovi.Squared.valid_label, ovi.Hinge.valid_label, ovi.Poisson.valid_label
hinge_is_flat = ovi.Hinge.is_flat


def expected_of(y: Real, a: Real, v: Real, kind: Real, quantile: Real) -> Expected:
    if kind == 0.0:
        return squared(y, a, v)
    if kind == 1.0:
        return hinge(y, a, v)
    if kind == 2.0:
        return logistic(y, a, v)
    if kind == 3.0:
        return absolute(y, a, v)
    if kind == 4.0:
        return pinball(y, a, v, quantile)
    return poisson(y, a, v)


any_expected = compose(expected_of, {})


@dataclass(frozen=True)
class AnyLoss(ovi.Loss):
    """The loss that has this number in ``KINDS``."""

    kind: float = 0.0
    quantile: float = 0.5

    @staticmethod
    def expected(y: Real, a: Real, v: Real, kind: Real, quantile: Real) -> Expected:  # type: ignore[override]
        return any_expected(y, a, v, kind, quantile)  # type: ignore[no-any-return]

    @staticmethod
    def valid_label(y: Real, kind: Real, quantile: Real) -> Real:  # type: ignore[override]
        if 1.0 <= kind <= 2.0:
            return is_sign(y)
        return is_count(y) if kind == 5.0 else is_number(y)

    @staticmethod
    def is_flat(y: Real, a: Real, kind: Real, quantile: Real) -> Real:  # type: ignore[override]
        return kind == 1.0 and hinge_is_flat(y, a)


def standing_for(loss: ovi.Loss, **settings: Any) -> AnyLoss:
    """The same loss, by its number."""
    return AnyLoss(float(KINDS.index(type(loss))), *loss.parameters, **settings)
