"""What is certain of a run while it goes on: no data kept, no assumption on the stream."""

import numpy as np

import onlinevi as ovi

toy = ovi.datasets.load("toy", seed=0)
learner = ovi.Linear(loss=ovi.Hinge(), rule=ovi.SVB())
best = ovi.hindsight(toy.X, toy.y, loss=ovi.Hinge())

state, start = learner.init(dim=2), 0
print(f"{'t':>6} {'average loss':>12} {'no fixed weights are below':>27} {'regret a step, certified':>25}")
for stop in (100, 1_000, 5_000, 10_000):
    state, _ = learner.update_many(state, toy.X[start:stop], toy.y[start:stop])
    live, start = ovi.certificate(state), stop
    print(f"{stop:6} {state.average_loss:12.4f} {live.lower_bound:27.4f} {live.regret / stop:25.4f}")

print(f"\nthe best fixed weights have {best.value:.4f}; against them alone the regret is certified to")
print(f"{live.against(best.mean) / stop:.4f} a step, and it was {state.average_loss - best.value:.4f}")

# On rows of length 1 the hinge is 1-Lipschitz: what the theorems promised before any data.
rows = toy.X / np.linalg.norm(toy.X, axis=1)[:, None]
trace = ovi.learn(rows, toy.y, loss=ovi.Hinge(), rule=ovi.SVA())
comparator = ovi.batch_vb(rows, toy.y, loss=ovi.Hinge(), rate=0.01)
slope = ovi.bounds.lipschitz(rows, toy.y, loss=ovi.Hinge())
print(ovi.bounds.before_data(trace, comparator.belief, lipschitz=slope))
print(ovi.bounds.after_data(trace, comparator.belief))
