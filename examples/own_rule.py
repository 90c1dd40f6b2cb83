"""A rule of your own: one step for one coordinate, and it compiles into the loop like the built-in ones.

Cautious: the step of a natural gradient, but no event moves a weight by more than one of its stds, however wild its label.
"""

# %% The rule
from dataclasses import dataclass

import numpy as np

import onlinevi as ovi
from onlinevi import ns
from onlinevi.engine.types import Belief
from onlinevi.rules.base import RatedRule


@dataclass(frozen=True)
class Cautious(RatedRule):
    """mean' = mean − std·u/(1 + |u|) with u = rate·std·g, and 1/std'² = 1/std² + rate·curvature."""

    rate: ovi.Rate | float = 1.0

    @staticmethod
    def new_belief(belief, gradient, totals, rates, prior):
        u = rates.step * belief.std * gradient.mean
        growth = rates.step * belief.std * belief.std * ns.maximum(gradient.curvature, 0.0)
        return Belief(belief.mean - belief.std * u / (1.0 + ns.absolute(u)), belief.std / ns.sqrt(1.0 + growth))


# %% Check what it promises, event by event, on labels of any size
rng = np.random.default_rng(0)
learner = ovi.Linear(loss=ovi.Squared(), rule=Cautious())
state, largest = learner.init(3), 0.0
for _ in range(1_000):
    new, _ = learner.update(state, rng.standard_normal(3), 1e3 * rng.standard_cauchy())
    largest = max(largest, (np.abs(new.mean - state.mean) / state.std).max())
    state = new
print(f"largest step: {largest:.4f} stds")

# %% A stream where one label in a hundred is nonsense
X = rng.standard_normal((5_000, 3))
y = X @ [1.0, -2.0, 0.5] + 0.1 * rng.standard_normal(5_000)
y = np.where(rng.random(5_000) < 0.01, 100 * rng.standard_normal(5_000), y)
for rule in (Cautious(), ovi.NGVI()):
    trace = ovi.learn(X, y, loss=ovi.Squared(), rule=rule)
    off = np.median(np.abs(trace.prediction - y))
    print(f"{type(rule).__name__:<9} half of the predictions are off by less than {off:.3f}")
