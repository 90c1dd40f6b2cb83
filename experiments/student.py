"""The table of docs/location_scale.md: what a Student belief costs beside a Gaussian one, in loss and in time.

    python experiments/student.py

The paper's classification data, rows of length 1 (the toy stream as it is), hinge loss, box ±20, the default rates.
"""

from __future__ import annotations

import runpy
import time
from pathlib import Path

import numpy as np

import onlinevi as ovi
from onlinevi import datasets

ROOT = Path(__file__).parents[1]
REPEATS = 5


def main() -> None:
    student = runpy.run_path(str(ROOT / "examples" / "student.py"), run_name="student")["StudentHinge"]()
    print("| data | rule | loss, Gaussian | loss, Student | ns a row, Gaussian | Student |\n|---|---|---|---|---|---|")
    for name in ("toy", "breast", "pima", "cover"):
        data = datasets.load(name, seed=0)
        order = np.arange(len(data.y)) if name == "toy" else np.random.default_rng(0).permutation(len(data.y))
        X, y = np.ascontiguousarray(np.asarray(data.X, dtype=float)[order]), data.y[order]
        if name != "toy":
            X /= np.linalg.norm(X, axis=1)[:, None]
        for rule in (ovi.OGAEL(), ovi.SVA(), ovi.SVB()):
            losses, times = [], []
            for loss in (ovi.Hinge(), student):
                ovi.learn(X[:2], y[:2], loss=loss, rule=rule, record="none")  # compiles
                taken = []
                for _ in range(REPEATS):
                    start = time.perf_counter()
                    trace = ovi.learn(X, y, loss=loss, rule=rule, record="none")
                    taken.append(time.perf_counter() - start)
                losses.append(trace.state.average_loss)
                times.append(1e9 * min(taken) / len(y))
            print(f"| {name} | {rule.name} | " + " | ".join([f"{x:.4f}" for x in losses] + [f"{x:.0f}" for x in times]) + " |")


if __name__ == "__main__":
    main()
