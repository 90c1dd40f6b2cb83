"""The one list of losses, rules and labels that all tests draw from."""

from __future__ import annotations

import numpy as np

import onlinevi as ovi

LOSSES = [
    ovi.Squared(),
    ovi.Hinge(),
    ovi.Logistic(),
    ovi.Absolute(),
    ovi.Pinball(0.1),
    ovi.Pinball(0.75),
    ovi.Poisson(),
]
GAUSSIAN_RULES = [
    ovi.OGAEL(0.1),
    ovi.SVA(0.1),
    ovi.SVA(ovi.PerSqrt(0.3)),
    ovi.SVB(0.2),
    ovi.SVB(),
    ovi.SVB(ovi.StronglyConvex(2.0)),
    ovi.NGVI(),
    ovi.NGVI(step=0.5, rate=2.0),
    ovi.NGVI(floor=0.3),
    ovi.NGVI(ovi.PaperSVB(0.5), 2.0, parameters="scale"),
]
RULES = [ovi.OGA(0.1), *GAUSSIAN_RULES]
SPARSE_RULES = [rule for rule in RULES if not rule.moves_without_gradient]


def name(part: object) -> str:
    if isinstance(part, type):
        return part.__name__
    return repr(part).replace("ridge=0.0, robust=None, ", "").replace("ridge=0.0, robust=None", "")


def labels(loss: ovi.Loss, rng: np.random.Generator, count: int) -> np.ndarray:
    if loss.target == "classes":
        return np.where(rng.random(count) < 0.6, 1.0, -1.0)
    if loss.target == "counts":
        return rng.poisson(1.5, count).astype(float)
    return rng.standard_normal(count)


def stream(loss: ovi.Loss, count: int = 60, dim: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A short stream with rows of length about 1."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((count, dim)) / np.sqrt(dim), labels(loss, rng, count)


def learner(loss: ovi.Loss, rule: ovi.Rule, *, unbounded: bool = False) -> ovi.Linear:
    family = ovi.MeanField if rule.gaussian else ovi.Point
    return ovi.Linear(loss=loss, rule=rule, family=family(box=None) if unbounded else family())
