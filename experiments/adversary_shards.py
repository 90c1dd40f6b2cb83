"""Tries to break the certificate of merged shards: streams dealt out at random, in a row, by label, by direction, row by row.

python experiments/adversary_shards.py [--trials 10000]
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("ONLINEVI_ENGINE", "interpreted")  # thousands of short streams: compiling would take longer

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from helpers.splits import trial

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=10_000)
    judged, seed = [], 0
    trials = parser.parse_args().trials
    while len(judged) < trials:
        if (verdict := trial(seed)) is not None:
            judged.append((seed, verdict))
        seed += 1
    broken = [number for number, verdict in judged if verdict.broken]
    above = [number for number, verdict in judged if verdict.above_sum]
    worst = max(judged, key=lambda one: one[1].ratio)
    print(f"{len(judged):,} splits of {seed:,} streams: {len(broken)} broken, {len(above)} above the sum of their shards'.")
    print(f"The largest true regret / certificate: {worst[1].ratio:.3f} (seed {worst[0]}). {broken[:5]} {above[:5]}")
