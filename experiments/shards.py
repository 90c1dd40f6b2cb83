"""The tables of docs/scale.md: what a merge of shards costs against one pass, on held-out rows.

python experiments/shards.py [--rows 40000] [--auto]

Shards are played one after the other in this process: what is measured is the approximation, not the speed. Rows are prepared
by the moments of all training rows, for the single pass too, as a first pass over the shards does.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import onlinevi as ovi
from onlinevi.runs.shards.preparation import with_fixed_inputs

SHARDS, ROUNDS = (2, 8, 32, 128, 1024), (1, 2, 4)
FAMILIES = {"mean field": ovi.MeanField(box=None), "full": ovi.FullCovariance(box=None), "low rank": ovi.LowRank(box=None)}
HELD_OUT = 10_000


def dense(X: Any) -> np.ndarray:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)


def shuffled(name: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
    data = ovi.datasets.load(name)
    order = np.random.default_rng(0).permutation(len(data.y))[: rows + HELD_OUT]
    return dense(data.X[order]), np.asarray(data.y, dtype=float)[order]


def drifting(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights that turn by half a circle over the training rows; what is held out comes at the end."""
    rng, count = np.random.default_rng(1), rows + HELD_OUT
    X, angle = rng.standard_normal((count, 10)), np.pi * np.minimum(np.arange(count) / rows, 1.0)
    score = 2.0 * (np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1])
    return X, np.where(rng.uniform(size=count) < 1.0 / (1.0 + np.exp(-score)), 1.0, -1.0)


STREAMS = {"Cover Type": lambda rows: shuffled("cover", rows), "a9a": lambda rows: shuffled("a9a", rows), "drifting": drifting}


def played(learner: Any, moments: Any, X: np.ndarray, y: np.ndarray, shards: int, rounds: int) -> Any:
    """The merged state of shards that are cut in a row, in so many rounds."""
    first = learner.init(X.shape[1]).with_inputs(moments)
    parts, start = [np.array_split(part, rounds) for part in np.array_split(np.arange(len(y)), shards)], None
    for number in range(rounds):
        states = [learner.update_many(start or first, X[part[number]], y[part[number]], record="none")[0] for part in parts]
        start = learner.merge(states) if start is None else learner.merge(states, start)
    return start


def held_out(learner: Any, state: Any, X: np.ndarray, y: np.ndarray) -> float:
    """The log loss of the probabilities said, or the loss of the decisions where there are none."""
    forecast = learner.forecast(state, X)
    if learner.loss.odds is not None:
        return float(-np.log(np.where(y > 0.0, forecast.probability, 1.0 - forecast.probability)).mean())
    return float(learner.loss(y, learner.predict(state, X)[0]).value.mean())


def score(learner: Any, moments: Any, X: np.ndarray, y: np.ndarray, shards: int, rounds: int) -> str:
    """Of the last rows, by what the others have taught; or why there is no merge."""
    train, test = slice(0, len(y) - HELD_OUT), slice(len(y) - HELD_OUT, None)
    try:
        state = played(learner, moments, X[train], y[train], shards, rounds)
    except ValueError as error:
        return f"refused: {str(error)[:40]}"
    return f"{held_out(learner, state, X[test], y[test]):.4f}"


def table(rows: int) -> None:
    header = "| loss | family | one pass | " + " | ".join(str(k) for k in SHARDS) + " | rounds 2 | rounds 4 |"
    for name, load in STREAMS.items():
        X, y = load(rows)
        moments = ovi.Inputs().observe(ovi.Inputs().init(X.shape[1]), X[:-HELD_OUT])
        print(f"\n**{name}**, {len(y) - HELD_OUT:,} rows, {X.shape[1]} columns.\n\n{header}\n|{'---|' * (len(SHARDS) + 5)}")
        for loss in (ovi.Logistic(), ovi.Hinge()):
            for kind, family in FAMILIES.items():
                inner = ovi.Linear(loss, ovi.Implicit(), family, average=False)
                given = with_fixed_inputs(ovi.Prepare(ovi.Inputs(), inner)), moments, X, y
                cells = [score(*given, 1, 1), *(score(*given, k, 1) for k in SHARDS)]
                cells += [" / ".join(score(*given, k, rounds) for k in (SHARDS[2], SHARDS[4])) for rounds in ROUNDS[1:]]
                print(f"| {type(loss).__name__.lower()} | {kind} | " + " | ".join(cells) + " |", flush=True)


def autos(rows: int) -> None:
    """The default, learner by learner, against one learner alone."""
    print(f"\n| stream | learner | one pass | {' | '.join(map(str, SHARDS[:4]))} |\n|{'---|' * 7}")
    for name, load in STREAMS.items():
        X, y = load(rows)
        moments = ovi.Inputs().observe(ovi.Inputs().init(X.shape[1]), X[:-HELD_OUT])
        single = ovi.Linear(ovi.Logistic(), ovi.Implicit(), ovi.MeanField(box=None), average=False)
        for kind, own in (("auto", ovi.Auto(ovi.Logistic())), ("implicit", ovi.Prepare(ovi.Inputs(), single))):
            cells = [score(with_fixed_inputs(own), moments, X, y, shards, 1) for shards in (1, *SHARDS[:4])]
            print(f"| {name} | {kind} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--auto", action="store_true", help="the default learner's table instead")
    arguments = parser.parse_args()
    begun = time.monotonic()
    (autos if arguments.auto else table)(arguments.rows)
    print(f"\n{time.monotonic() - begun:.0f} s")
