"""The network panel under other readings of the paper: width, biases, curvature, scaling, prior, number of draws.

    python experiments/network_readings.py [--seeds 5] [--jobs 2]

Prints a table in Markdown: final average loss, mean over the orders, in brackets that of the last 2000 events, which forgets
how a run began, and after a slash in how many of the orders a rule ended above 1, where it has diverged. Needs the California
data set and JAX.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

import onlinevi as ovi
from onlinevi.autodiff import Differentiable, Linearised, MonteCarlo, ReLUNetwork, flatten
from onlinevi.paper import RULES
from onlinevi.paper.panels import PANELS, Scaling, Stream, loaded, ordered, prepared

LAST = 2000
DIVERGED = 1.0
"""Average losses above this: labels are at most 1 apart."""
GAUSS_NEWTON = MonteCarlo(10, gauss_newton=True)


@dataclass(frozen=True)
class Setting:
    """One way to read the paper's settings."""

    text: str
    width: int = 50
    biases: bool = False
    scaling: Scaling = "row"
    gradient: MonteCarlo | Linearised = MonteCarlo(10)  # noqa: RUF009
    prior_std: float = 1.0
    around_draw: bool = False
    """Whether the prior's means are a small draw; else they are 0."""


def biased(text: str, width: int, gradient: MonteCarlo | Linearised = GAUSS_NEWTON) -> Setting:
    return Setting(text, width, biases=True, scaling="standard-row", gradient=gradient)


SETTINGS = [
    biased("`width-5`: biases, standardised, E[2J²]", 5),
    biased("the same, curvature from the draws", 5, MonteCarlo(10)),
    biased("the same, 100 draws", 5, MonteCarlo(100, gauss_newton=True)),
    Setting("the same, a constant feature for biases", 5, scaling="standard-row", gradient=GAUSS_NEWTON),
    Setting("the same, rows of length 1 only", 5, biases=True, gradient=GAUSS_NEWTON),
    biased("the same, width 10", 10),
    biased("the same, width 50", 50),
    Setting("`width-50`: constant feature, rows of length 1"),
    Setting("the same, width 10", width=10),
    Setting("the same, N(0, 0.1²)", prior_std=0.1),
    Setting("the same, N(small draw, 0.1²)", prior_std=0.1, around_draw=True),
    Setting("the same, N(small draw, 1), linearised", gradient=Linearised(), around_draw=True),
]


def average_losses(setting: Setting, rule: ovi.Rule, stream: Stream, seed: int) -> tuple[float, float]:
    """Over all events, and over the last 2000. Without an output bias OGA starts at a small draw: at 0 it would stay."""
    network, dim = ReLUNetwork(setting.width, setting.biases), stream.X.shape[1]
    draw = network.init(dim, np.random.default_rng(seed))
    centre = flatten(draw) if setting.around_draw else 0.0
    family = ovi.MeanField(prior_mean=centre, prior_std=setting.prior_std) if rule.gaussian else ovi.Point()
    learner = Differentiable(network, loss=ovi.Squared(), rule=rule, family=family, gradient=setting.gradient)
    start = None if rule.gaussian or setting.biases else draw
    loss = learner.learn(stream.X, stream.y, params=draw, start=start, seed=seed).loss
    return float(loss.mean()), float(loss[-LAST:].mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--first", type=int, default=len(SETTINGS), help="only so many of the readings")
    options = parser.parse_args()
    panel = PANELS["california"]
    file_order = loaded(panel, 0)
    print("| reading | " + " | ".join(RULES) + " |", "|---" * (len(RULES) + 1) + "|", sep="\n", flush=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        for setting in SETTINGS[: options.first]:
            data = prepared(panel, file_order, setting.scaling, constant=not setting.biases)
            streams = [ordered(panel, data, seed) for seed in range(options.seeds)]
            cells = []
            for rule in RULES.values():
                work = [pool.submit(average_losses, setting, rule, stream, seed) for seed, stream in enumerate(streams)]
                found = np.array([task.result() for task in work])
                whole, last = found.mean(axis=0)
                diverged = int((found[:, 0] > DIVERGED).sum())
                cells.append(f"{whole:.4g} ({last:.4g})" + (f" / {diverged}" if diverged else ""))
            print(f"| {setting.text} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
