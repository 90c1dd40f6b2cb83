"""A boundary that bends: the columns alone, then the same learner with features of them."""

# %% River's bananas, two bent clouds; without river, points inside and outside of a ring
import numpy as np

import onlinevi as ovi

try:
    from river.datasets import Bananas

    rows = [([float(value) for value in x.values()], label) for x, label in Bananas().take(2_000)]
    X, y = np.array([x for x, _ in rows]), np.where([label for _, label in rows], 1.0, -1.0)
except ImportError:
    X = np.random.default_rng(0).standard_normal((2_000, 2))
    y = np.where((X**2).sum(axis=1) < 1.4, 1.0, -1.0)

# %% The map is fixed before any label is seen, and stands behind Inputs, which bring columns to one scale
linear = ovi.Linear(ovi.Logistic(), ovi.Implicit(), ovi.FullCovariance(box=None))
learners = {
    "columns alone": ovi.Prepare(ovi.Inputs(), linear),
    "splines": ovi.Prepare(ovi.Inputs(), ovi.Expand(ovi.Splines(), linear)),
    "100 waves": ovi.Prepare(ovi.Inputs(), ovi.Expand(ovi.Fourier(100), linear)),
}
for name, learner in learners.items():
    state, trace = learner.update_many(learner.init(dim=2), X, y)
    wrong = np.mean(trace.prediction[500:] * y[500:] < 0.0)
    print(f"{name:<14} {wrong:6.1%} wrong from row 500 on, average loss {state.average_loss:.3f}")

# %% What is certain speaks of weights of the features
live = ovi.certificate(trace)
print(f"against {live.space}:")
print(f"no weights up to a norm of 5 are better by more than {live.within(5.0) / live.count:.2f} an event")

# %% How much each column matters, through its features
sizes = state.space.by_column(np.abs(state.mean))
print("columns matter as", " : ".join(f"{size:.0f}" for size in sizes))
