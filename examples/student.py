"""A belief that is not Gaussian (proposition 1): Student's law with 2 degrees of freedom, m + scale·ε for all weights at once.

Such a belief is elliptical, so a prediction is a + v·ε again, two numbers, and P(ε ≤ r) = ½ + r/(2√(2 + r²)). The expected
hinge loss is then ½(u + √(u² + 2v²)), u = 1 − ya: no error function. By proposition 1 it is convex in (mean, scale), which is
all that certificates and gradient steps need. What the loop calls curvature is (∂E/∂v)/v; for Gaussians alone that is ∂²E/∂a².
"""

# %% The losses under such a belief
from dataclasses import dataclass

import numpy as np

import onlinevi as ovi
from onlinevi import ns
from onlinevi.engine.types import Expected


@dataclass(frozen=True)
class StudentHinge(ovi.Loss):
    """E = ½(u + √(u² + 2v²)), u = 1 − ya; its gradient in (mean, scale) is at most ‖x‖ long, as that of Gaussians."""

    label_rule = "−1 or +1"
    lipschitz = 1.0

    @staticmethod
    def valid_label(y):
        return y * y == 1.0

    @staticmethod
    def expected(y, a, v):
        u = 1.0 - y * a
        root = ns.sqrt(u * u + 2.0 * v * v)
        inverse = ns.where(root > 0.0, 1.0 / ns.where(root > 0.0, root, 1.0), 0.0)
        return Expected(0.5 * (u + root), -0.5 * y * (1.0 + u * inverse), ns.where(v > 0.0, inverse, 0.0))


@dataclass(frozen=True)
class StudentAbsolute(ovi.Loss):
    """E = √(u² + 2v²), u = a − y; its gradient is at most √2·‖x‖ long, where that of Gaussians is at most ‖x‖."""

    lipschitz = 1.0

    @staticmethod
    def expected(y, a, v):
        u = a - y
        root = ns.sqrt(u * u + 2.0 * v * v)
        inverse = ns.where(root > 0.0, 1.0 / ns.where(root > 0.0, root, 1.0), 0.0)
        return Expected(root, u * inverse, ns.where(v > 0.0, 2.0 * inverse, 0.0))


# %% The toy stream under both beliefs
if __name__ == "__main__":
    toy = ovi.datasets.load("toy", seed=0)
    X, y = toy.X[:1000], toy.y[:1000]
    family = ovi.MeanField(box=ovi.Box(mean=(-2.0, 2.0)))
    best = ovi.hindsight(X, y, loss=ovi.Hinge(), box=2.0)
    for name, loss in (("Gaussian", ovi.Hinge()), ("Student", StudentHinge())):
        for rule in (ovi.OGAEL(), ovi.SVA(), ovi.SVB()):
            trace = ovi.learn(X, y, loss=loss, rule=rule, family=family)
            paid, live = trace.state.average_loss, ovi.certificate(trace).regret / len(y)
            print(f"{name:8} {rule.name:6} loss {paid:.4f}  regret {paid - best.value:.4f}  certified {live:.4f}")
    print("weights", trace.mean.round(2), "scales", np.asarray(trace.std).round(3))
