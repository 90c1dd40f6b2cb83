"""Whether any stream of several classes breaks the certificate of ``Softmax``, and how near it comes.

    python experiments/adversary_softmax.py [--streams 10000]

Streams are random, sorted, switching, of huge rows, of one class, of labels that the learner thinks least or most likely;
beliefs, priors, memories, weights and classes that join are drawn too (tests/helpers/softmax_trials.py). On each a search
looks for the weights whose regret comes nearest to what is certified: certified − regret is convex in
them. The bound of Knowles and Minka is attacked beside it: tangents at random means, stds and α against random scores.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
from scipy.special import logsumexp

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from helpers.softmax_trials import KINDS, bound, trial

ROUNDING = 1e-9
"""Of the size of the sums."""


def tangent_gap(rng: np.random.Generator) -> float:
    """How far a tangent of the bound stays below the loss without spread at other scores, beside its size."""
    k = int(rng.integers(2, 30))
    a, z = rng.standard_normal((2, k)) * 10.0 ** rng.uniform(-1.0, 2.0, (2, 1))
    v, alpha = 10.0 ** rng.uniform(-3.0, 1.5, k), rng.normal(0.3, 1.0, k)
    chance = np.exp(a + (0.5 - alpha) * v**2 - logsumexp(a + (0.5 - alpha) * v**2))
    at, down = bound(a, v, alpha), (alpha**2 + (1.0 - 2.0 * alpha) * chance) @ v**2
    gap = logsumexp(z) - (at + chance @ (z - a) - down)
    return float(gap / (1.0 + abs(at) + abs(down) + np.abs(a).max() + np.abs(z).max()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=10_000)
    streams = parser.parse_args().streams
    margins: dict[str, list[float]] = defaultdict(list)
    broken = []
    for seed in range(streams):
        found = trial(seed)
        margins[found.kind].append(found.margin / max(found.state.weight, 1.0))
        if found.margin < -ROUNDING * found.size:
            broken.append(f"seed {seed}, {found.kind}: certified − regret = {found.margin:.3g}")
    print("certified − regret a row, at the weights where it is least:")
    for kind in KINDS:
        if margins[kind]:
            print(f"  {kind:<13} least {min(margins[kind]):.2e}, median {np.median(margins[kind]):.3f}")
    rng = np.random.default_rng(0)
    gaps = [tangent_gap(rng) for _ in range(10 * streams)]
    broken += [f"a tangent of the bound lies above the loss by {-gap:.3g} of its size" for gap in gaps if gap < -1e-12]
    print(f"tangents of the bound: {len(gaps):,}, the nearest {min(gaps):.2e} of its size below the loss")
    print(*broken or [f"{streams:,} streams: none broken"], sep="\n")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
