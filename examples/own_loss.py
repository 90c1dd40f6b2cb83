"""A loss of your own: one method, and it compiles into the loop like the built-in ones.

The exponential loss e^(−yz) of boosting. Under a Gaussian prediction N(a, v²) its expectation is e^(−ya + v²/2), so its
derivatives in a are −y and +1 times that.
"""

# %% The loss
from dataclasses import dataclass

import numpy as np

import onlinevi as ovi
from onlinevi import ns
from onlinevi.engine.types import Expected


@dataclass(frozen=True)
class Exponential(ovi.Loss):
    label_rule = "−1 or +1"

    @staticmethod
    def valid_label(y):
        return y * y == 1.0

    @staticmethod
    def expected(y, a, v):
        value = ns.exp(-y * a + 0.5 * v * v)
        return Expected(value, -y * value, value)


# %% A stream
rng = np.random.default_rng(0)
X = rng.standard_normal((5_000, 3)) / 2
y = np.where(X @ [2.0, -1.0, 0.0] + 0.3 * rng.standard_normal(5_000) > 0, 1.0, -1.0)
trace = ovi.learn(X, y, loss=Exponential(), rule=ovi.NGVI())
print("average loss", trace.average_loss[[9, 99, 999, 4_999]].round(3))
print("weights", trace.mean.round(2), "±", trace.std.round(3))
