"""What an adversary who sees each interval before he chooses the label can do to its coverage.

    ONLINEVI_ENGINE=interpreted python experiments/adversary_intervals.py [--events 4000]

He always chooses a label just outside, as long as his labels may be that large; else he agrees with the prediction.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

import onlinevi as ovi


def attack(calibration: ovi.Calibration, events: int, largest: float) -> tuple[ovi.learners.Calibrated, float]:
    """The state after labels up to ``largest``, all just outside of their intervals where that allows; and the largest."""
    state, used = calibration.update_many(calibration.init(), [1.0], [0.0])[0], 1.0
    for _ in range(events):
        end = 1.001 * float(calibration.bands(state, 0.0).upper)
        label = end if end <= largest else 0.0
        used = max(used, label)
        state, _ = calibration.update_many(state, [label], [0.0])
    return state, used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=4000)
    arguments = parser.parse_args()

    calibration = ovi.Calibration(0.9)
    start = math.log(calibration.init().ratio)
    print(f"{arguments.events:,} events, intervals of 90 %, the first label 1\n")
    print("| labels at most | the largest label | covered | by the identity |\n|---|---|---|---|")
    for largest in (1.0, 1e3, 1e6, 1e12, np.inf):
        state, used = attack(calibration, arguments.events, largest)
        owed = (math.log(state.ratio) - start) / (calibration.step * arguments.events)
        limit = "any" if np.isinf(largest) else f"{largest:g}"
        print(f"| {limit} | {used:.1e} | {100.0 * state.coverage:.1f} % | {100.0 * (0.9 - owed):.1f} % |")


if __name__ == "__main__":
    main()
