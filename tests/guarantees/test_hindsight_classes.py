"""The best fixed weights of several classes: scipy's, with a gap that is certified."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.softmax_trials import losses
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

import onlinevi as ovi
from onlinevi.guarantees import hindsight


def rows(count: int = 80, dim: int = 3, classes: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((count, dim))
    return X, (X @ rng.standard_normal((dim, classes)) + rng.gumbel(size=(count, classes))).argmax(axis=1)


def test_it_is_multinomial_logistic_regression() -> None:
    X, y = rows()
    weights = np.random.default_rng(1).choice([0.0, 1.0, 3.0], 80)
    best = hindsight(X, y, loss=ovi.Logistic(), classes=4, weights=weights)
    used = weights > 0.0
    found = minimize(
        lambda u: weights @ losses(X, y, u.reshape(4, 3)) / used.sum(), np.zeros(12), method="BFGS", options={"gtol": 1e-8}
    )
    assert best.value == pytest.approx(found.fun, rel=1e-7)
    assert best.mean.shape == (4, 3)
    assert best.gap < 1e-8
    sparse = hindsight(csr_matrix(X), y, loss=ovi.Logistic(), classes=4, weights=weights)
    assert sparse.value == pytest.approx(best.value)
    assert weights @ best.losses(X, y) / used.sum() == pytest.approx(best.value)


@pytest.mark.parametrize("domain", [{"box": 0.4}, {"box": None, "radius": 1.0}], ids=str)
def test_no_point_of_the_domain_is_below_its_bound(domain: dict[str, float]) -> None:
    X, y = rows()
    best = hindsight(X, y, loss=ovi.Logistic(), classes=4, **domain)
    rng = np.random.default_rng(2)
    for _ in range(200):
        u = best.mean + 0.3 * rng.standard_normal((4, 3))
        u = np.clip(u, -0.4, 0.4) if domain["box"] else u / max(1.0, float(np.linalg.norm(u)))
        assert losses(X, y, u).mean() >= best.lower_bound
    assert best.gap <= 1e-8


def test_classes_that_can_be_told_apart_go_to_the_edge() -> None:
    X = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    best = hindsight(X, [0, 1, 2], loss=ovi.Logistic(), classes=3)
    assert 0.0 <= best.value < 1e-6
    assert best.gap <= 1e-6
    assert 15.0 < np.abs(best.mean).max() <= 20.0


def test_two_classes_are_those_of_the_logistic_loss() -> None:
    X, y = rows(classes=2)
    two = hindsight(X, np.where(y == 1, 1.0, -1.0), loss=ovi.Logistic(), box=20.0)
    several = hindsight(X, y, loss=ovi.Logistic(), classes=2, box=20.0)
    assert several.value == pytest.approx(two.value, rel=1e-8)
    assert np.allclose(several.mean[1] - several.mean[0], two.mean, atol=1e-4)


def test_what_has_none_is_refused() -> None:
    X, y = rows()
    for options, message in (
        ({"loss": ovi.Hinge(), "classes": 4}, "Logistic"),
        ({"loss": ovi.Logistic(ridge=0.1), "classes": 4}, "without a ridge"),
        ({"loss": ovi.Logistic(), "classes": 1}, "at least two"),
        ({"loss": ovi.Logistic(), "classes": 2}, "labels are their numbers, 0 to 1"),
        ({"loss": ovi.Logistic(), "classes": 1000}, "at most 2"),
    ):
        with pytest.raises(ValueError, match=message):
            hindsight(X, y, **options)
