"""Nothing to tune: a table in wild units with holes, outliers and a change half way, learned in one pass."""

import numpy as np

import onlinevi as ovi

rng, count = np.random.default_rng(0), 4_000
income, age, rate = 50_000 * rng.lognormal(size=count), rng.uniform(20, 70, count), 1e-4 * rng.standard_normal(count)
X = np.column_stack([income, age, rate])
slope = np.where(np.arange(count) < 2_000, 3.0, -1.0)  # what age is worth changes
price = 1_000 + slope * age + 2e5 * rate + 5 * rng.standard_normal(count)
price[rng.random(count) < 0.01] += 1e4  # now and then someone mistypes
X[rng.random(X.shape) < 0.05] = np.nan

inputs = ovi.Inputs(missing=True)
trace = ovi.auto(X, price, loss=ovi.Absolute(), inputs=inputs)
for start, stop in ((100, 2_000), (2_000, 2_100), (2_100, 4_000)):
    print(f"events {start:>4} to {stop:>4}: half of the errors are below {np.median(trace.loss[start:stop]):5.1f}")
print(f"{trace.coverage:.1%} of the labels lay in their 90% intervals")

learner = ovi.Auto(loss=ovi.Absolute(), inputs=inputs)
said = learner.forecast(trace.state, [30_000.0, 60.0, 1e-4])
print(f"someone of 60: {said.mean:.0f} ± {said.spread:.0f}, the price itself between {said.lower:.0f} and {said.upper:.0f}")
raw = inputs.raw_weights(trace.state.inputs, trace.state.mean, trace.state.std)
print(f"a year of age adds {raw.weights[1]:.2f} ± {raw.std[1]:.2f}")

classes = ovi.auto(X, np.where(price > 1_100, 1.0, -1.0), inputs=inputs)  # labels ±1: probabilities
print(f"P(price above 1100) at the last row: {classes.probability[-1]:.2f}, and it was {price[-1]:.0f}")
