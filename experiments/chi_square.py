"""Weights by χ² beside AdaHedge's: how near tables of losses come to the bound, and what each loses to the best expert.

    python experiments/chi_square.py [--tables 400]

Tables have 2 to 6 experts and 20 to 200 events: bounded, heavy (Pareto, 1.1), Cauchy and growing losses, and two experts that
lose in turn. Regrets are in units of √(Σ variances of an event's losses).
"""

from __future__ import annotations

import argparse

import numpy as np

import onlinevi as ovi
from onlinevi.ewa import AdaHedge, Experts, Pool

KINDS = ("bounded", "heavy", "Cauchy", "growing", "in turn")


def table(kind: str, rng: np.random.Generator) -> np.ndarray:
    count, number = int(rng.integers(20, 201)), int(rng.integers(2, 7))
    match kind:
        case "bounded":
            return rng.random((count, number)) + 0.1 * rng.random(number)
        case "heavy":
            return rng.pareto(1.1, (count, number)) * (1.0 + 0.1 * rng.random(number))
        case "Cauchy":
            return rng.standard_cauchy((count, number))
        case "growing":
            return rng.random((count, number)) * 1.03 ** np.arange(count)[:, None]
    return np.column_stack([np.arange(count) % 2 == 0, np.arange(count) % 2 == 1]) * rng.exponential(1.0, (count, 1))


def ratio(losses: np.ndarray, rate: float) -> float:
    """The largest regret / bound over the experts."""
    state = Experts(rate, None, "chi-square").run(losses).state
    bounds = np.array([state.regret_bound(k) for k in range(losses.shape[1])])
    return float(((state.loss - state.totals) / bounds).max())


def best_rate(losses: np.ndarray) -> float:
    """The rate that makes the bound least, known only in hindsight: 2·√((N − 1)/Σ variances)."""
    return float(2.0 * np.sqrt((losses.shape[1] - 1.0) / losses.var(axis=1).sum()))


def adahedge(losses: np.ndarray) -> float:
    """The regret of AdaHedge: predictions of the label 0 under the absolute loss, by learners that never learn."""
    number = losses.shape[1]
    experts = [
        ovi.Linear(ovi.Absolute(), ovi.OGA(5e-324), ovi.Point(prior_mean=unit), average=False) for unit in np.eye(number)
    ]
    return float(Pool(experts, rate=AdaHedge()).run(losses - losses.min(axis=1)[:, None], np.zeros(len(losses))).state.regret)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=400)
    tables, rng = parser.parse_args().tables, np.random.default_rng(0)
    broken = 0
    print("| losses | largest regret/bound, any rate | at the best rate | mean regret, χ² at its best rate | AdaHedge |")
    print("|---|---|---|---|---|")
    for kind in KINDS:
        found = []
        for _ in range(tables):
            losses = table(kind, rng)
            best = best_rate(losses)
            state = Experts(best, None, "chi-square").run(losses).state
            unit = np.sqrt(losses.var(axis=1).sum())  # regrets beside the size of the losses
            any_rate = ratio(losses, best * float(np.exp(rng.normal(0.0, 2.0))))
            found.append([any_rate, ratio(losses, best), (state.loss - state.totals.min()) / unit, adahedge(losses) / unit])
        each = np.array(found)
        broken += int((each[:, :2] > 1.0 + 1e-12).sum())
        print(
            f"| {kind} | {each[:, 0].max():.3f} | {each[:, 1].max():.3f} | {each[:, 2].mean():.3f} | {each[:, 3].mean():.3f} |"
        )
    print(f"{2 * tables * len(KINDS):,} bounds, broken: {broken}")


if __name__ == "__main__":
    main()
