"""The plot of docs/guarantees.md: how often intervals of 90 % cover, at each of the first rows of many short streams.

    python experiments/early_intervals.py [--streams 300] [--rows 60] [--out docs/img/intervals.png]

The first label has no interval. A stream is a line in one to eight features, with an intercept of its own and noise of std ½.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

import onlinevi as ovi
from onlinevi.runs.charts import Axis, Chart, Line, figure_of

LOW, HIGH = 0.85, 0.97
Noise = Callable[[np.random.Generator, np.ndarray], np.ndarray]

NOISES: Mapping[str, Noise] = {
    "normal noise": lambda draw, X: draw.standard_normal(len(X)),
    "heavy tails (Student's t, 3 degrees)": lambda draw, X: draw.standard_t(3.0, len(X)),
    "noise that grows with a feature": lambda draw, X: np.exp(X[:, 0]) * draw.standard_normal(len(X)),
}


def stream(seed: int, rows: int, noise: Noise) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    X = draw.standard_normal((rows, int(draw.integers(1, 9))))
    return X, X @ draw.standard_normal(X.shape[1]) + 3.0 * draw.standard_normal() + 0.5 * noise(draw, X)


def covered(streams: int, rows: int, noise: Noise = NOISES["normal noise"]) -> np.ndarray:
    """The part of the streams whose label lay in its interval, by row from the second on."""
    learner, hits = ovi.Auto(ovi.Squared()), np.zeros(rows)
    for seed in range(streams):
        X, y = stream(seed, rows, noise)
        said = learner.update_many(learner.init(X.shape[1]), X, y)[1].forecast
        hits += (said.lower <= y) & (y <= said.upper)
    return hits[1:] / streams


def draw(shares: Mapping[str, np.ndarray], streams: int, out: Path) -> None:
    rows, roles = np.arange(2.0, len(next(iter(shares.values()))) + 2.0), ("ngvi", "svb", "implicit")
    ends = np.array([0.0, rows[-1]])
    band = Line("", "reference", ends, np.full(2, 90.0), width=0.8, low=np.full(2, 100.0 * LOW), high=np.full(2, 100.0 * HIGH))
    lines = [Line(name, role, rows, 100.0 * share) for (name, share), role in zip(shares.items(), roles, strict=True)]
    x, y = Axis.rows(*ends), Axis("covered, %", 70.0, 100.0)
    chart = Chart("intervals", f"Intervals of 90 % of ovi.auto, {streams} streams", x, y, (band, *lines))
    out.parent.mkdir(parents=True, exist_ok=True)
    figure_of([chart], panel=(8.0, 3.2)).savefig(out, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=300)
    parser.add_argument("--rows", type=int, default=60)
    parser.add_argument("--out", type=Path, default=Path("docs/img/intervals.png"))
    arguments = parser.parse_args()
    shares = {name: covered(arguments.streams, arguments.rows, noise) for name, noise in NOISES.items()}
    print("| noise | row 2 | 3 to 10 | 11 to 20 | 21 to 60 | least | most |\n|---|---|---|---|---|---|---|")
    for name, share in shares.items():
        parts = [share[0], share[1:9].mean(), share[9:19].mean(), share[19:].mean(), share.min(), share.max()]
        print(f"| {name} | " + " | ".join(f"{100.0 * part:.1f} %" for part in parts) + " |")
    draw(shares, arguments.streams, arguments.out)


if __name__ == "__main__":
    main()
