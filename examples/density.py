"""No labels: the density of a stream, by ℓ_t(θ) = −log p_θ(D_t) (section 2 of the paper).

An event is a number D_t. It takes the place of the label, and the row is a 1: a prediction is then the parameter itself. First
the location of a Laplace law, whose −log density |D − θ| + ln 2 is Lipschitz, so that theorem 2 speaks of it; then the
variance of what is left, by a loss of its own that is convex in the logarithm z of the variance.
"""

# %% The losses
import math
from dataclasses import dataclass

import numpy as np

import onlinevi as ovi
from onlinevi import ns
from onlinevi.engine.types import Expected

FURTHEST = 20.0


@dataclass(frozen=True)
class NormalVariance(ovi.Loss):
    """−log N(D; 0, e^z) = ½(z + D²·e^(−z) + ln 2π). E = ½(a + D²·e^(−a + v²/2) + ln 2π)."""

    nonnegative = False
    at_zero = 0.5 * (FURTHEST**2 + math.log(2.0 * math.pi))  # the most that the variance 1 can cost: rounding needs it
    label_rule = f"a number from −{FURTHEST:g} to {FURTHEST:g}"

    @staticmethod
    def valid_label(y):
        return y * y <= FURTHEST**2

    @staticmethod
    def expected(y, a, v):
        square = 0.5 * y * y * ns.exp(-a + 0.5 * v * v)
        return Expected(0.5 * a + square + 0.5 * math.log(2.0 * math.pi), 0.5 - square, square)


# %% A stream of numbers
T = 1_000
numbers = 1.5 + 0.4 * np.random.default_rng(0).laplace(size=T)
ones = np.ones((T, 1))

# %% Where it lies
box = ovi.Box(mean=(-3.0, 3.0))
trace = ovi.learn(ones, numbers, loss=ovi.Absolute(), rule=ovi.SVA(ovi.PerHorizon(3.0)), family=ovi.MeanField(box=box))
best = ovi.hindsight(ones, numbers, loss=ovi.Absolute(), box=3.0)
paid, live = trace.state.average_loss, ovi.certificate(trace)
narrow = 1.0 / math.sqrt(T)
promised = ovi.bounds.before_data(trace, ovi.Belief(best.mean, np.array([narrow])), lipschitz=1.0).value / T
promised += narrow * math.sqrt(2.0 / math.pi)  # E|θ − best| of the comparator: it is a belief, not a point
print(f"location {trace.mean[0]:.3f} ± {trace.std[0]:.3f}, the best in hindsight {best.mean[0]:.3f}")
print(f"−log p: {paid + math.log(2.0):.4f} an event, the best {best.value + math.log(2.0):.4f}")
print(f"regret {paid - best.value:.4f}, certified {live.regret / T:.4f}, by theorem 2 before any number came {promised:.4f}")

# %% How far it spreads, from what each number was off by when it came
left = numbers - trace.prediction
scale = ovi.learn(ones, left, loss=NormalVariance(), rule=ovi.NGVI(), family=ovi.MeanField(box=ovi.Box(mean=(-4.0, 4.0))))
variance = float(np.square(left).mean())
fixed = 0.5 * (math.log(variance) + 1.0 + math.log(2.0 * math.pi))
print(f"std {math.exp(0.5 * scale.mean[0]):.3f}, the best in hindsight {math.sqrt(variance):.3f}")
regret, certified = scale.state.average_loss - fixed, ovi.certificate(scale).within(2.0) / T
print(f"−log p: {scale.state.average_loss:.4f} an event, the best {fixed:.4f}")
print(f"regret {regret:.4f}, certified {certified:.4f} against every variance from e^−2 to e^2")
