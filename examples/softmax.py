"""Several classes by one posterior: a class that joins, sets that hold the class, a bound that holds on any stream."""

# %% Three kinds of plants, and a fourth that nobody has heard of until row 1,000
import numpy as np

import onlinevi as ovi

rng, count = np.random.default_rng(0), 3_000
centres = np.array([[5.0, 30.0], [6.0, 55.0], [7.0, 20.0], [9.0, 60.0]])  # length of a leaf, height
kind = rng.integers(0, np.where(np.arange(count) < 1_000, 3, 4))
X = centres[kind] + rng.standard_normal((count, 2)) * [0.7, 8.0]

# %% One belief over the weights of all classes: its rows in any unit, its features the products of the columns too
belief = ovi.FullCovariance(prior_std=4.0, box=None)
learner = ovi.Sets(
    ovi.SetCalibration(0.9),
    ovi.Prepare(ovi.Inputs(), ovi.Expand(ovi.Products(), ovi.Softmax(known=3, family=belief))),
)
state, trace = learner.update_many(learner.init(dim=2), X, kind)
for start, stop in ((0, 100), (100, 1_000), (1_000, 1_100), (1_100, 3_000)):
    rows = slice(start, stop)
    wrong = np.mean(trace.forecast.guess[rows] != kind[rows])
    print(f"rows {start:>5} to {stop:>5}: {wrong:5.1%} wrong, log loss {trace.loss[rows].mean():.3f}")
print(f"{state.coverage:.1%} of the kinds were in their sets, of {state.size:.2f} kinds each")

# %% What is said of a plant to come
said = learner.forecast(state, [7.9, 40.0])
print("probabilities:", said.probability.round(2).tolist(), "set:", np.flatnonzero(said.set).tolist())

# %% One certificate for all classes together: no fixed weights of these features, of this norm, would have paid much less
live = ovi.certificate(state)
norm = float(np.linalg.norm(state.mean))
print(f"paid {live.loss / live.count:.3f} a row; no fixed weights of norm {norm:.1f} pay less by more than "
      f"{live.within(norm) / live.count:.3f}")  # fmt: skip
print(f"nor do those learned in the end by more than {live.against(state.mean.ravel()) / live.count:.3f}")
