"""Features in wild units, with holes: prepared online, learned in one pass, and read back in the units of the data."""

import numpy as np

import onlinevi as ovi

rng = np.random.default_rng(0)
income, age, rate = 50_000 * rng.lognormal(size=5_000), rng.uniform(20, 70, 5_000), 1e-4 * rng.standard_normal(5_000)
X = np.column_stack([income, age, rate])
y = np.where(0.05 * (age - 45) + 1e4 * rate + rng.logistic(size=5_000) > 0, 1.0, -1.0)
X[rng.random(X.shape) < 0.2] = np.nan

inputs = ovi.Inputs(missing=True)
learner = ovi.Linear(loss=ovi.Logistic(), rule=ovi.Implicit(), missing=True)
scales, state = inputs.init(3), learner.init(inputs.dim_out(3))
for start in range(0, 5_000, 500):
    block = slice(start, start + 500)
    scales, Z = inputs.update_many(scales, X[block])
    state, trace = learner.update_many(state, Z, y[block])
print(f"average loss {state.average_loss:.3f}; knowing nothing it is {np.log(2):.3f}")

raw = inputs.raw_weights(scales, state.mean, state.std)
for name, weight, std in zip(("income", "age", "rate"), raw.weights, raw.std, strict=True):
    print(f"{name:<7} {weight:12.4g} ± {std:.2g} a unit")

for x in ([30_000.0, 60.0, 1e-4], [30_000.0, 60.0, np.nan], [np.nan, np.nan, np.nan]):
    mean, std = learner.predict(state, inputs.apply(scales, x))
    print(f"{x!s:<24} log-odds {mean:5.2f} ± {std:.2f}")
