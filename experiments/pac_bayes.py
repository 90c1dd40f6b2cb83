"""The tables of docs/guarantees.md on the risk of a belief: what the bounds say, how often they fail, and what breaks them.

    python experiments/pac_bayes.py [--repetitions 10000] [--skip-data]

Every statement has δ = 0.05. "Failed" counts repetitions in which the true risk is above the bound.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np
from numpy.polynomial.hermite_e import hermegauss

import onlinevi as ovi
from onlinevi import datasets
from onlinevi.guarantees import played_risk
from onlinevi.guarantees.pac_bayesian import kl_price, tempered_bound

DELTA = 0.05
FLIPPED = 0.1
TIMES = (10, 40, 100, 200)


# --- on data


def scaled(X: np.ndarray, scaling: str) -> np.ndarray:
    if scaling == "standardised":
        spread = X.std(axis=0)
        X = (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    return X / np.linalg.norm(X, axis=1)[:, None] if scaling != "as they are" else X


def described(name: str, scaling: str, rule: str, risk: ovi.PacBayes, played: np.ndarray) -> str:
    parts = risk.gibbs_error, risk.gibbs_risk, risk.vote_error, risk.vote_risk, played[-1]
    return f"| {name} | {scaling} | {rule} | {risk.kl:.1f} | " + " | ".join(f"{part:.3f}" for part in parts) + " |"


def on_data() -> Iterator[str]:
    yield "| data | rows | learner | KL | Gibbs error | Gibbs risk ≤ | mean's error | mean's risk ≤ | decisions' risk ≤ |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for name in ("toy", "breast", "pima", "cover"):
        data = datasets.load(name, seed=0)
        order = np.arange(len(data.y)) if name == "toy" else np.random.default_rng(0).permutation(len(data.y))
        X, y = np.asarray(data.X, dtype=float)[order], data.y[order]
        for scaling in ("as they are",) if name == "toy" else ("of length 1", "standardised"):
            Z = scaled(X, scaling)
            shown = scaling + (", length 1" if scaling == "standardised" else "")
            for family in (ovi.MeanField(), ovi.FullCovariance()):
                trace = ovi.learn(Z, y, loss=ovi.Hinge(), rule=ovi.NGVI(), family=family)
                title = f"NGVI, {family.name}"
                yield described(name, shown, title, ovi.pac_bayes(trace, Z, y), played_risk(trace, y, DELTA).decisions)
        trace = ovi.auto(X, y)
        yield described(name, "running moments", "`auto`", ovi.pac_bayes(trace, X, y), played_risk(trace, y, DELTA).decisions)


# --- how often they fail


def worst_of_two(streams: int, count: int, delta: float, chance: float, bound: str, seed: int = 0) -> int:
    """How often a bound fails at any time for any belief, where there are two classifiers and a label is + by chance.

    The prior gives ½ to each; the beliefs are all weights of a grid, and the time and the belief are the worst.
    """
    rng, failed, times = np.random.default_rng(seed), 0, np.arange(1.0, count + 1.0)
    weights = np.concatenate([[0.0], np.linspace(0.05, 0.95, 7), [1.0]])
    with np.errstate(divide="ignore", invalid="ignore"):
        kl = np.nan_to_num(weights * np.log(2.0 * weights)) + np.nan_to_num((1.0 - weights) * np.log(2.0 * (1.0 - weights)))
    for start in range(0, streams, 500):
        plus = np.cumsum(rng.random((min(500, streams - start), count)) < chance, axis=1) / times
        broken = np.zeros(plus.shape, dtype=bool)
        for weight, cost in zip(weights, kl, strict=True):
            errors, risk = weight * (1.0 - plus) + (1.0 - weight) * plus, weight * (1.0 - chance) + (1.0 - weight) * chance
            if bound == "kl":
                broken |= (errors < risk) & (times * _kl(errors, risk) > cost + kl_price(times) - np.log(delta))
            else:
                broken |= tempered_bound(errors, cost, times, delta) < risk
        failed += int(broken.any(axis=1).sum())
    return failed


def _kl(p: np.ndarray, q: float) -> np.ndarray:
    from scipy.special import rel_entr

    return np.asarray(rel_entr(p, q) + rel_entr(1.0 - p, 1.0 - q))


def wedge(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of N(0, I) in the plane, labels the sign of the first coordinate, one in ten flipped."""
    X = rng.standard_normal((count, 2))
    return X, np.where(rng.random(count) < FLIPPED, -1.0, 1.0) * np.sign(X[:, 0])


def wedge_risk(weights: np.ndarray) -> np.ndarray:
    """The true risk of weights, a pair each: by the angle that they are off."""
    off = np.abs(np.arctan2(weights[..., 1], weights[..., 0])) / np.pi
    return FLIPPED + (1.0 - 2.0 * FLIPPED) * off


def wedge_gibbs_risk(mean: np.ndarray, std: np.ndarray) -> float:
    nodes, weights = hermegauss(60)
    grid = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1) * std + mean
    return float(wedge_risk(grid).ravel() @ np.multiply.outer(weights, weights).ravel() / weights.sum() ** 2)


def learned(repetitions: int) -> tuple[int, int, int]:
    """Of so many runs of NGVI: how often the bounds of Gibbs, of the mean and of the decisions fail, at any time looked at."""
    gibbs = mean = decisions = 0
    learner = ovi.Linear(ovi.Hinge(), ovi.NGVI())
    for seed in range(repetitions):
        X, y = wedge(np.random.default_rng(seed), TIMES[-1])
        state, broken, means = learner.init(2), [False, False], np.zeros((40, 2))
        for start, stop in zip((0, *TIMES), TIMES, strict=False):
            state, _ = learner.update_many(state, X[start:stop], y[start:stop], record="none")
            risk = ovi.pac_bayes(state, X[:stop], y[:stop], delta=DELTA)
            broken[0] |= wedge_gibbs_risk(state.mean, state.std) > risk.gibbs_risk
            broken[1] |= float(wedge_risk(state.mean)) > risk.vote_risk
        gibbs, mean = gibbs + broken[0], mean + broken[1]
        _, trace = learner.update_many(learner.init(2), X[:40], y[:40])
        state = learner.init(2)
        for t in range(40):
            means[t] = state.mean
            state, _ = learner.update(state, X[t], y[t])
        risks = np.where((means == 0.0).all(axis=1), 1.0, wedge_risk(means))  # a sign that is none is wrong
        averages = np.cumsum(risks) / np.arange(1, 41)
        decisions += bool((averages > played_risk(trace, y[:40], DELTA).decisions).any())
    return gibbs, mean, decisions


# --- what breaks them: labels are coins, so that the risk of every classifier is ½, and a bound below it is false


def coins(seed: int, count: int = 100, dim: int = 20) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((count, dim)), rng.choice([-1.0, 1.0], count)


def fairly(seed: int) -> float:
    X, y = coins(seed)
    return ovi.pac_bayes(ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.NGVI(), record="none"), X, y, delta=DELTA).gibbs_risk


def scaled_by_the_file(seed: int) -> float:
    X, y = coins(seed)
    X = scaled(X, "standardised")
    return ovi.pac_bayes(ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.NGVI(), record="none"), X, y, delta=DELTA).gibbs_risk


def best_of_rates(seed: int) -> float:
    """Ten rates tried with one prior, and the least bound reported: no fault."""
    X, y = coins(seed)
    tried = [ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.NGVI(rate), record="none") for rate in np.geomspace(0.01, 10.0, 10)]
    return min(ovi.pac_bayes(trace, X, y, delta=DELTA).gibbs_risk for trace in tried)


def prior_from_the_rows(seed: int) -> float:
    """A second run whose prior is what the first has learned from the same rows."""
    X, y = coins(seed)
    first = ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.NGVI(), record="none")
    family = ovi.MeanField(prior_mean=first.mean.tolist(), prior_std=first.std.tolist())
    trace = ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.NGVI(0.01), family=family, record="none")
    return ovi.pac_bayes(trace, X, y, delta=DELTA).gibbs_risk


def columns_by_labels(seed: int) -> float:
    """The 5 of 2,000 columns that go best with the labels."""
    X, y = coins(seed, dim=2000)
    X = X[:, np.argsort(-np.abs(y @ X))[:5]]
    return ovi.pac_bayes(ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.NGVI(), record="none"), X, y, delta=DELTA).gibbs_risk


def rows_twice(seed: int) -> float:
    """Every row counted ten times, as if they were ten times as many."""
    X, y = (np.repeat(part, 10, axis=0) for part in coins(seed))
    return ovi.pac_bayes(ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.NGVI(), record="none"), X, y, delta=DELTA).gibbs_risk


CASES: dict[str, Callable[[int], float]] = {
    "as it should be": fairly,
    "the best of ten rates, one prior": best_of_rates,
    "columns scaled by the whole file": scaled_by_the_file,
    "prior learned from the same rows": prior_from_the_rows,
    "columns picked by their labels": columns_by_labels,
    "each row counted ten times": rows_twice,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=10_000)
    parser.add_argument("--skip-data", action="store_true", help="leave out the table of the data sets")
    arguments = parser.parse_args()
    if not arguments.skip_data:
        print(*on_data(), "", sep="\n")
    number = arguments.repetitions
    print("The worst time up to 300 and the worst belief, two classifiers; failed of", number)
    for chance in (0.5, 0.1, 0.01):
        found = [f"{bound} {worst_of_two(number, 300, DELTA, chance, bound)}" for bound in ("kl", "tempered")]
        print(f"  labels + with chance {chance:g}: {', '.join(found)}")
    gibbs, mean, decisions = learned(number)
    print(
        f"NGVI, behind {TIMES} rows; failed of {number}: Gibbs {gibbs}, mean {mean}; decisions, at each of 40 rows {decisions}"
    )
    few = max(number // 10, 1)
    print("Labels are coins; bounds below ½, of", few)
    for title, case in CASES.items():
        print(f"  {title}: {sum(case(seed) < 0.5 for seed in range(few))}")


if __name__ == "__main__":
    main()
