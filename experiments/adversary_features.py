"""Whether any stream breaks a certificate that speaks of features.

    python experiments/adversary_features.py [--streams 200]

Each stream is played through every map, by every rule, for every loss; the true regret is measured from the best point of the
box of the features' weights in hindsight. How it is searched for beyond that is in adversary.py.
"""

from __future__ import annotations

import argparse

import numpy as np
from adversary import BOX, LOSSES, OBLIVIOUS, RULES, Tightness, family

import onlinevi as ovi
from onlinevi.guarantees import hindsight

MAPS = (ovi.Fourier(4), ovi.Products(), ovi.Products(buckets=3), ovi.Splines(2, degree=1), ovi.Relu(4), ovi.Trees(2, 2))
COUNT, DIM, REACH = 30, 3, 3.0


def attack(streams: int, seed: int = 0) -> Tightness:
    """Random streams of the oblivious kind, as ``Inputs`` would bound them: within ±3."""
    found, rng = Tightness(), np.random.default_rng(seed)
    for number in range(streams):
        loss, adversary = LOSSES[number % len(LOSSES)], OBLIVIOUS[int(rng.integers(len(OBLIVIOUS)))]
        X, y = adversary(loss, rng, COUNT, DIM)
        X = np.clip(X, -REACH, REACH)
        for one in MAPS:
            best = None
            for name, rule in RULES.items():
                learner = ovi.Expand(one, ovi.Linear(loss, rule, family(rule)), intercept=False)
                state, _ = learner.update_many(learner.init(DIM, COUNT), X, y, record="none")
                best = best or hindsight(state.space.of(X), y, loss=loss, box=BOX)
                found.add(loss, name, state, best, f"{adversary.__name__} through {one}")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=200)
    told = attack(parser.parse_args().streams)
    largest = max(max(ratios) for ratios in told.ratios.values())
    print(f"{told.checked:,} certificates of features, {len(told.broken)} broken; true regret at most {largest:.3f} of one")
    for line in told.broken:
        print(line)
