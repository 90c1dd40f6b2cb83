"""A stream that changes and has outliers: forgetting follows it, a bounded influence keeps the outliers out."""

import numpy as np

import onlinevi as ovi

rng = np.random.default_rng(0)
count = 6_000
X = rng.standard_normal((count, 3))
angle = 2.0 * np.pi * np.arange(count) / count  # the weights go once around a circle
clean = X[:, 0] * np.cos(angle) + X[:, 1] * np.sin(angle) + 0.5 * X[:, 2]
y = clean + 0.2 * rng.standard_normal(count)
y = np.where(rng.random(count) < 0.02, 20.0 * rng.standard_normal(count), y)  # one label in fifty is nonsense

print("mean squared error of the predictions, against the labels without noise and outliers:")
print(f"{'':<12} {'discount 1':>12} {'discount 0.98':>14}")
for name, loss in (("plain", ovi.Squared()), ("robust=5", ovi.Squared(robust=5.0))):
    errors = []
    for discount in (1.0, 0.98):
        trace = ovi.learn(X, y, loss=loss, rule=ovi.NGVI(), family=ovi.FullCovariance(), discount=discount)
        errors.append(np.mean((trace.prediction - clean) ** 2))
    print(f"{name:<12} {errors[0]:12.3f} {errors[1]:14.3f}")
print(f"usual slope at the end {trace.state.usual_slope:.2f}; {trace.state.std.round(2)} is how well the weights are known")
