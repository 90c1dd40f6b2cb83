"""Shards learned from apart and merged: beliefs that began at the same prior are multiplied, and the prior is counted once."""

# %% Rows in two files
import os
import shlex
import tempfile
from pathlib import Path

import numpy as np

import onlinevi as ovi
from onlinevi.adapters.cli import main

os.chdir(tempfile.mkdtemp())
print("$ cd", Path.cwd(), flush=True)


def shell(command):
    print("$ onlinevi", command)
    main(shlex.split(command))


rng = np.random.default_rng(0)
X = rng.standard_normal((4_000, 3)) @ [[1.0, 0.8, 0.0], [0.0, 0.6, 0.0], [0.0, 0.0, 1.0]]  # the first two are correlated
y = X @ [0.5, -1.0, 2.0] + 0.5 * rng.standard_normal(4_000)
for name, rows in (("one", slice(0, 2_000)), ("two", slice(2_000, 4_000))):
    lines = [f"{a:.4f},{b:.4f},{c:.4f},{label > 0}" for (a, b, c), label in zip(X[rows], y[rows], strict=True)]
    Path(f"{name}.csv").write_text("a,b,c,up\n" + "\n".join(lines) + "\n")

# %% Each by itself, the second on the scale of the first; then one model
shell("run one.csv --target up --rule implicit --out one")
shell("run two.csv --target up --rule implicit --prepare-like one/model.ovi --out two")
shell("merge one/model.ovi two/model.ovi -o both.ovi")
shell("info both.ovi")

# %% In Python, with all covariances and the squared loss: exactly Bayes' rule, as if one machine had seen all rows
family = ovi.FullCovariance(box=None)
learner = ovi.Linear(loss=ovi.Squared(), rule=ovi.Implicit(rate=2.0), family=family)  # noise variance 1/(2·rate) = 0.25
shards = np.array_split(np.arange(4_000), 4)
beliefs = [learner.update_many(learner.init(3), X[rows], y[rows])[0].belief for rows in shards]
merged = family.merge(beliefs)

precision = np.eye(3) + X.T @ X / 0.25
exact = np.linalg.solve(precision, X.T @ y / 0.25)
print("first of four  ", beliefs[0].mean.round(4), "±", beliefs[0].std.round(4))
print("merged         ", merged.mean.round(4), "±", merged.std.round(4))
print("exact posterior", exact.round(4), "±", np.sqrt(np.diag(np.linalg.inv(precision))).round(4))
print("equal to ten digits:", np.allclose(merged.mean, exact, rtol=1e-10))
