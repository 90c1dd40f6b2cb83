"""The network panel under other readings of the paper: prior, width, number of draws, way of differentiating.

    python experiments/network_readings.py [--seeds 3] [--jobs 2]

Prints a table in Markdown: final average loss, mean over the orders, and in brackets that of the last 2000 events, which
forgets how a run began. Needs the California data set and JAX.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

import onlinevi as ovi
from onlinevi.autodiff import Differentiable, Linearised, MonteCarlo, ReLUNetwork, flatten
from onlinevi.paper import RULES
from onlinevi.paper.panels import PANELS, Stream, ordered, prepared

LAST = 2000


@dataclass(frozen=True)
class Reading:
    """One way to read the paper's settings."""

    text: str
    width: int = 50
    gradient: MonteCarlo | Linearised = MonteCarlo(10)  # noqa: RUF009
    prior_std: float = 1.0
    around_draw: bool = False


READINGS = [
    Reading("as printed: N(0, 1), width 50, 10 draws"),
    Reading("1 draw", gradient=MonteCarlo(1)),
    Reading("width 10", width=10),
    Reading("width 10, 1 draw", width=10, gradient=MonteCarlo(1)),
    Reading("N(0, 0.1²)", prior_std=0.1),
    Reading("N(small draw, 0.1²)", prior_std=0.1, around_draw=True),
    Reading("N(small draw, 1), linearised", gradient=Linearised(), around_draw=True),
]


def average_losses(reading: Reading, rule: ovi.Rule, stream: Stream, seed: int) -> tuple[float, float]:
    """Over all events, and over the last 2000."""
    network, dim = ReLUNetwork(reading.width), stream.X.shape[1]
    draw = network.init(dim, np.random.default_rng(seed))
    centre = flatten(draw) if reading.around_draw else 0.0
    family = ovi.MeanField(prior_mean=centre, prior_std=reading.prior_std) if rule.gaussian else ovi.Point()
    learner = Differentiable(network, loss=ovi.Squared(), rule=rule, family=family, gradient=reading.gradient)
    start = None if rule.gaussian else draw
    loss = learner.learn(stream.X, stream.y, params=draw, start=start, seed=seed).loss
    return float(loss.mean()), float(loss[-LAST:].mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    panel = PANELS["california"]
    plain = prepared(panel, 0, "row")
    streams = [ordered(panel, plain, seed) for seed in range(options.seeds)]
    print("| reading | " + " | ".join(RULES) + " |", "|---" * (len(RULES) + 1) + "|", sep="\n", flush=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        for reading in READINGS:
            cells = []
            for rule in RULES.values():
                work = [pool.submit(average_losses, reading, rule, stream, seed) for seed, stream in enumerate(streams)]
                whole, last = np.mean([task.result() for task in work], axis=0)
                cells.append(f"{whole:.4g} ({last:.4g})")
            print(f"| {reading.text} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
