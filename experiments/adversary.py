"""How tight the live certificate gets, and whether any stream breaks it.

    python experiments/adversary.py [--streams 1000] [--climbs 150]

Each stream is played by every rule, for every loss; the true regret is measured from the best point of the box in
hindsight. A second search climbs from random short streams towards the largest ratio of true regret to certificate.
The same for the theorems' bounds is in adversary_bounds.py.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np

import onlinevi as ovi
from onlinevi.guarantees import certificate, hindsight

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from helpers.adversaries import BOX, OBLIVIOUS, Greedy, extremes, family, unit_rows

LOSSES = [ovi.Squared(), ovi.Hinge(), ovi.Logistic(), ovi.Absolute(), ovi.Pinball(0.1), ovi.Poisson()]
RULES = {
    "OGA": ovi.OGA(ovi.PerSqrt(0.5)),
    "OGA-EL": ovi.OGAEL(ovi.PerSqrt(0.5)),
    "SVA": ovi.SVA(ovi.PerSqrt(0.5)),
    "SVB": ovi.SVB(),
    "NGVI": ovi.NGVI(),
    "NGVI, prior": ovi.NGVI(step=0.5, rate=2.0),
}
GREEDY_SHARE = 25
"""One stream in so many sees the decisions; it is played event by event, and has its own best point in hindsight."""


class Tightness:
    """True regret over certificate, per loss and rule: the largest, the median, and how many were broken."""

    def __init__(self) -> None:
        self.ratios: dict[tuple[str, str], list[float]] = defaultdict(list)
        self.broken: list[str] = []
        self.checked = 0

    def add(self, loss: ovi.Loss, rule: str, source: ovi.Trace | ovi.State, best: ovi.Hindsight, stream: str) -> None:
        live = certificate(source)
        self.checked += 1
        regret = live.loss - live.count * best.value
        if regret > live.regret + live.rounding():
            self.broken.append(f"{loss}, {rule}, {stream}: regret {regret} > certified {live.regret}")
        if live.regret > 0.0:  # below 0 the decisions are certified to beat every fixed point, and a ratio says nothing
            self.ratios[type(loss).__name__, rule].append(regret / live.regret)

    def table(self, summary: Callable[[list[float]], float]) -> str:
        names = [type(loss).__name__ for loss in LOSSES]
        lines = ["| rule | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
        for rule in RULES:
            cells = [f"{summary(self.ratios[name, rule] or [np.nan]):.3f}" for name in names]
            lines += ["| " + " | ".join([rule, *cells]) + " |"]
        return "\n".join(lines)


def study(streams: int) -> Tightness:
    """``streams`` streams for every loss, each played by every rule."""
    found = Tightness()
    for seed in range(streams):
        rng = np.random.default_rng(seed)
        count, dim = int(rng.integers(10, 200)), int(rng.integers(1, 6))
        adversary = OBLIVIOUS[seed % len(OBLIVIOUS)]
        for loss in LOSSES:
            if seed % GREEDY_SHARE == 0:
                for rule_name, rule in RULES.items():
                    learner = ovi.Linear(loss=loss, rule=rule, family=family(rule))
                    state, (X, y) = Greedy(length=rng.choice([0.3, 1.0])).play(learner, rng, min(count, 40), dim)
                    found.add(loss, rule_name, state, hindsight(X, y, loss=loss, box=BOX), f"greedy, seed {seed}")
                continue
            X, y = adversary(loss, rng, count, dim)
            best = hindsight(X, y, loss=loss, box=BOX)
            for rule_name, rule in RULES.items():
                trace = ovi.learn(X, y, loss=loss, rule=rule, family=family(rule), record="none", average=False)
                found.add(loss, rule_name, trace, best, f"{adversary.__name__}, seed {seed}")
    return found


def climb(loss: ovi.Loss, rule_name: str, steps: int, rng: np.random.Generator, found: Tightness) -> None:
    """Change one row or label of a short stream, or lengthen a row, and keep what raises the ratio."""
    rule, count, dim = RULES[rule_name], int(rng.integers(2, 12)), int(rng.integers(1, 3))
    X, y = unit_rows(rng, count, dim), rng.choice(extremes(loss), count)
    ratio = -np.inf
    for _ in range(steps):
        tried_X, tried_y, where = X.copy(), y.copy(), int(rng.integers(count))
        match int(rng.integers(3)):
            case 0:
                tried_X[where] += 0.5 * rng.standard_normal(dim)
            case 1:
                tried_X[where] *= np.exp(rng.standard_normal())
            case 2:
                tried_y[where] = rng.choice(extremes(loss))
        if np.linalg.norm(tried_X, axis=1).max() > 4.0:
            continue
        trace = ovi.learn(tried_X, tried_y, loss=loss, rule=rule, family=family(rule), record="none", average=False)
        best = hindsight(tried_X, tried_y, loss=loss, box=BOX)
        found.add(loss, rule_name, trace, best, "climbing")
        ratios = found.ratios[type(loss).__name__, rule_name]
        if ratios and ratios[-1] > ratio:
            ratio, X, y = ratios[-1], tried_X, tried_y


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=1000, help="streams for each loss")
    parser.add_argument("--climbs", type=int, default=150, help="steps of the climb for each loss and rule")
    arguments = parser.parse_args()

    found = study(arguments.streams)
    print(f"## {arguments.streams} streams × {len(LOSSES)} losses × {len(RULES)} rules: {found.checked} certificates\n")
    print(f"Broken: {len(found.broken)}\n\nLargest true regret / certificate:\n\n{found.table(max)}\n")
    print(f"Median:\n\n{found.table(lambda ratios: float(np.median(ratios)))}\n")

    climbed = Tightness()
    for number, loss in enumerate(LOSSES):
        for rule_name in RULES:
            climb(loss, rule_name, arguments.climbs, np.random.default_rng(number), climbed)
    print(f"## {arguments.climbs} steps of climbing each\n")
    print(f"Broken: {len(climbed.broken)}\n\nLargest true regret / certificate:\n\n{climbed.table(max)}")
    broken = found.broken + climbed.broken
    if broken:
        raise SystemExit("\n".join(broken))


if __name__ == "__main__":
    main()
