"""A learner composed by hand: rows of any unit, two memories pooled, intervals that cover as often as asked."""

# %% Flats, which become dearer half way
import tempfile
from pathlib import Path

import numpy as np

import onlinevi as ovi

rng, count = np.random.default_rng(0), 2_000
size, rooms = 80.0 + 30.0 * rng.standard_normal(count), rng.integers(1, 6, count)
metre = np.where(np.arange(count) < 1_000, 3_000.0, 4_000.0)
price = metre * size + 20_000.0 * rooms + 10_000.0 * rng.standard_normal(count)
X = np.column_stack([size, rooms])

# %% The leaf is Linear: a loss, a rule, a belief; each combinator keeps its methods
leaves = [
    ovi.Linear(ovi.Squared(), ovi.Implicit(rate=0.5), ovi.FullCovariance(prior_std=1e6, box=None), discount=discount)
    for discount in (1.0, 0.98)
]
pool = ovi.Pool(leaves, rate=ovi.ewa.AdaHedge())
learner = ovi.Calibrate(ovi.Calibration(coverage=0.8), ovi.Prepare(ovi.Inputs(), pool))

# %% One pass, each row predicted before its price is used
state, trace = learner.update_many(learner.init(dim=2), X, price)
for start, stop in ((100, 1_000), (1_000, 1_050), (1_050, 2_000)):
    error = np.median(np.abs(trace.prediction[start:stop] - price[start:stop]))
    print(f"rows {start:>4} to {stop:>4}: half of the errors are below {error:6.0f}")
print(f"{trace.coverage:.1%} of the prices lay in their 80% intervals")
weights = ", ".join(f"{weight:.2f}" for weight in state.deciders()[0].weights)
print(f"weights of the memories of all and of 50 rows: {weights}")

# %% What is known of a flat to come
flat = [100.0, 3.0]
said = learner.forecast(state, flat)
print(f"100 m², 3 rooms: {said.mean:.0f}, between {said.lower:.0f} and {said.upper:.0f}")

# %% Any composition goes into a file
path = Path(tempfile.mkdtemp()) / "flats.ovi"
ovi.save(path, learner, state)
saved = ovi.load(path)
print("the same forecast from the file:", saved.learner.forecast(saved.state, flat) == said)

# %% Several classes are one combinator more
kinds = ovi.OneVsRest(ovi.Prepare(ovi.Inputs(), ovi.Linear(ovi.Logistic(), ovi.NGVI())), 3)
dearness = np.digitize(price, [200_000.0, 400_000.0])  # 0 cheap, 1 fair, 2 dear
told, _ = kinds.update_many(kinds.init(dim=2), X, dearness)
print("cheap, fair, dear:", kinds.forecast(told, flat).probability.round(2).tolist())
