"""Whether a stream breaks Theorem 2 for Gaussians with a full covariance N(m, CᵀC), and how near streams come to it.

    python experiments/adversary_covariance.py [--streams 480]

Eight adversaries, five losses, three priors, and SVA and OGA-EL at the best rate, at five times that and at rates that fall.
The comparators have spreads of the prior, of the data, at random and nearly none, around good means, far ones and the prior's.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from helpers.full_trials import verdicts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, default=480)
    streams = parser.parse_args().streams
    ratios: dict[str, list[float]] = defaultdict(list)
    broken = 0
    for seed in range(streams):
        for verdict in verdicts(seed, count=[12, 40][seed % 2], dim=2):
            ratios[verdict.name].append(verdict.ratio)
            broken += verdict.broken
    for name, found in sorted(ratios.items()):
        print(f"{name:24} {len(found):7,} comparisons, largest regret / bound {max(found):.3f}")
    print(f"{streams:,} streams, {broken} broken")
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
