"""Features that say almost the same, in their own units: what a full covariance and the implicit step are for."""

import numpy as np

import onlinevi as ovi

rng = np.random.default_rng(0)
room = 20.0 + 5.0 * rng.standard_normal(3_000)  # two thermometers in one room, and a draught
X = np.column_stack([room + 0.1 * rng.standard_normal(3_000), room + 0.1 * rng.standard_normal(3_000), rng.random(3_000)])
y = X @ [0.3, 0.2, -1.0] + 0.5 * rng.standard_normal(3_000)

print("average loss over the stream (0.25 is the noise):")
for name, rule, family in [
    ("SVB, the paper's step", ovi.SVB(), ovi.MeanField()),
    ("implicit, mean field", ovi.Implicit(), ovi.MeanField()),
    ("implicit, low rank", ovi.Implicit(), ovi.LowRank(rank=1)),
    ("implicit, full", ovi.Implicit(), ovi.FullCovariance()),
]:
    trace = ovi.learn(X, y, loss=ovi.Squared(), rule=rule, family=family)
    print(f"  {name:<22} {trace.average_loss[-1]:12.3f}")

# At rate 1 the implicit step is Bayes' rule: the belief knows the sum of the two weights, not their difference.
family = ovi.FullCovariance(prior_std=1.0)
belief = ovi.learn(X, y, loss=ovi.Squared(), rule=ovi.Implicit(), family=family).state.belief
for name, direction in (("sum", [1.0, 1.0, 0.0]), ("difference", [1.0, -1.0, 0.0])):
    mean, variance = family.predict(belief, np.array(direction))
    print(f"{name:<11} {mean:6.3f} ± {np.sqrt(variance):.4f}")
