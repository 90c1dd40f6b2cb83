"""Whether any run makes a certificate false: every rule and family, ridges, no boxes, and scales from 1e-6 to 1e6.

    ONLINEVI_ENGINE=interpreted python experiments/adversary_scales.py [--streams 100000] [--first 0] [--longest 24]

The truth is taken from the definitions in long doubles. A row that is refused ends its run, and what was learned before it is
judged. The streams are short, so nothing need be compiled for the hundreds of combinations.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from helpers.wild_runs import wild_run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--longest", type=int, default=24, help="events of the longest stream")
    arguments = parser.parse_args()

    runs: Counter[tuple[str, str]] = Counter()
    useful: Counter[tuple[str, str]] = Counter()
    none = refused = certificates = 0
    false: list[str] = []
    for seed in range(arguments.first, arguments.first + arguments.streams):
        verdict = wild_run(seed, arguments.longest)
        if verdict is None:
            none += 1
            continue
        parts = verdict.rule, verdict.family
        runs[parts] += 1
        useful[parts] += verdict.useful
        refused += verdict.refused
        certificates += verdict.checked
        false += verdict.false

    print(f"{arguments.streams:,} streams, {certificates:,} certificates, false: {len(false)}")
    print(f"Refused at the first row: {none:,}; at a later one: {refused:,}\n")
    print("| rule | family | runs | says more than the loss itself |\n|---|---|---|---|")
    for parts in sorted(runs):
        print(f"| {parts[0]} | {parts[1]} | {runs[parts]:,} | {useful[parts] / runs[parts]:.0%} |")
    if false:
        raise SystemExit("\n".join(false))


if __name__ == "__main__":
    main()
