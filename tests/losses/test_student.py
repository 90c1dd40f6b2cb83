"""A belief that is Student's, not Gaussian: closed forms by quadrature, proposition 1, and the theorems that carry over."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import t as student

import onlinevi as ovi
from onlinevi import bounds
from onlinevi.guarantees import certificate

EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "student.py"), run_name="student")
HINGE, ABSOLUTE = EXAMPLE["StudentHinge"](), EXAMPLE["StudentAbsolute"]()
PLAIN = {HINGE: ovi.Hinge(), ABSOLUTE: ovi.Absolute()}
LOSSES = pytest.mark.parametrize("loss", PLAIN, ids=lambda loss: type(loss).__name__)


@LOSSES
def test_the_expectation_is_that_under_two_degrees_of_freedom(loss: Any) -> None:
    for a, v in ((0.3, 0.5), (4.0, 0.1)):

        def integrand(r: float, a: float = a, v: float = v) -> float:
            return float(PLAIN[loss](1.0, a + v * r).value) * float(student.pdf(r, 2))

        kink = (1.0 - a) / v
        parts = (quad(integrand, *ends, limit=200, epsabs=1e-10)[0] for ends in ((-np.inf, kink), (kink, np.inf)))
        assert float(loss(1.0, a, v).value) == pytest.approx(sum(parts), rel=1e-6)
        h = 1e-6
        slope = (loss(1.0, a + h, v).value - loss(1.0, a - h, v).value) / (2.0 * h)
        widening = (loss(1.0, a, v + h).value - loss(1.0, a, v - h).value) / (2.0 * h)
        assert float(loss(1.0, a, v).slope) == pytest.approx(float(slope), abs=1e-8)
        assert float(loss(1.0, a, v).curvature) == pytest.approx(float(widening) / v, rel=1e-7), "not ∂²E/∂a²"
    assert loss(1.0, 0.25, 0.0)[:2] == PLAIN[loss](1.0, 0.25)[:2]
    assert np.isfinite(loss(1.0, [1.0, 1.0 + 1e-300, 1e150], [0.0, 1e-300, 0.0])).all()


@LOSSES
def test_proposition_1_and_2(loss: Any) -> None:
    """Jointly convex in (a, v), by chords; gradients in (mean, scale) at most ‖x‖, for the absolute loss √2·‖x‖."""
    rng = np.random.default_rng(0)
    (a, v), (b, w) = ((rng.normal(0.0, 2.0, 3000), rng.exponential(1.0, 3000)) for _ in range(2))
    label, share = rng.choice([-1.0, 1.0], 3000), rng.random(3000)
    middle = loss(label, share * a + (1.0 - share) * b, share * v + (1.0 - share) * w).value
    assert (middle <= share * loss(label, a, v).value + (1.0 - share) * loss(label, b, w).value + 1e-12).all()
    _, slope, curvature = loss(label, a, v)
    length = np.sqrt(slope**2 + (curvature * v) ** 2).max()
    assert length <= (1.0 if loss is HINGE else np.sqrt(2.0)) + 1e-12
    assert length > (0.99 if loss is HINGE else 1.4)


@LOSSES
@pytest.mark.parametrize("rule", [ovi.OGAEL(0.2), ovi.SVA(0.2)], ids=lambda rule: type(rule).__name__)
def test_certificates_and_theorems_hold_for_student_beliefs(loss: Any, rule: Any) -> None:
    """Theorem 4 as it is; theorem 2 with KL(N(m, s)‖prior) for what regularises, whatever the belief."""
    rng = np.random.default_rng(1)
    family = ovi.MeanField(box=ovi.Box(mean=(-1.0, 1.0)))
    for trial in range(6):
        x = rng.standard_normal((25, 2))
        x /= np.linalg.norm(x, axis=1)[:, None]
        y = rng.choice([-1.0, 1.0], 25) if trial % 2 else 1.0 - 2.0 * (np.arange(25) % 2)
        trace = ovi.learn(x, y, loss=loss, rule=rule, family=family)
        live = certificate(trace)
        corners = np.array(np.meshgrid([-1.0, 0.0, 1.0], [-1.0, 0.0, 1.0])).reshape(2, -1).T
        for u in corners:
            total = float(loss(y, x @ u).value.sum())
            assert trace.state.loss - total <= live.against(u) + 1e-12
            comparator = ovi.Belief(u, np.array([0.1, 0.1]))
            spread = np.sqrt((0.1**2 * x**2).sum(axis=1))
            gap = trace.state.expected_loss - float(loss(y, x @ u, spread).value.sum())
            assert gap <= bounds.before_data(trace, comparator, lipschitz=1.0 if loss is HINGE else 2.0**0.5).value
            assert gap <= bounds.after_data(trace, comparator).value
