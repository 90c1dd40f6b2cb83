"""A stream that comes in blocks, stops, and goes on: the same bits as one pass."""

import pickle

import numpy as np

import onlinevi as ovi

toy = ovi.datasets.load("toy", seed=1)
learner = ovi.Linear(loss=ovi.Logistic(), rule=ovi.NGVI(step=1.0), family=ovi.MeanField(prior_std=2.0))

state = learner.init(dim=2)
for start in range(0, 4_000, 500):
    block = slice(start, start + 500)
    state, trace = learner.update_many(state, toy.X[block], toy.y[block], record="none")
print("after 4000 events:", state)

state = pickle.loads(pickle.dumps(state))  # tomorrow, in another process
for x, y in zip(toy.X[4_000:4_010], toy.y[4_000:4_010], strict=True):
    prediction, spread = learner.predict(state, x)
    state, step = learner.update(state, x, y)
print(f"last event: predicted {step.prediction:.2f} ± {step.spread:.2f}, label {y:+.0f}, loss {step.loss:.3f}")

whole, _ = learner.update_many(learner.init(dim=2), toy.X[:4_010], toy.y[:4_010])
print("same bits as one pass:", np.array_equal(whole.array, state.array))
