"""The plot of docs/guarantees.md: true regret and certificate over time, on the toy stream.

python experiments/guarantees.py [--out docs/img/certificate.png]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import onlinevi as ovi
from onlinevi.guarantees import certificate, hindsight
from onlinevi.runs.charts import Axis, Chart, Line, figure_of

RULES = {"SVB": ovi.SVB(), "NGVI": ovi.NGVI()}
LOSS, RADIUS = ovi.Hinge(), 2.0


def points(count: int) -> list[int]:
    """Where to look: evenly spaced on a logarithmic axis."""
    return sorted({round(t) for t in np.geomspace(10, count, 60)})


def best_so_far(X: np.ndarray, y: np.ndarray, times: list[int]) -> np.ndarray:
    """The least total loss over the box, at each time."""
    return np.array([t * hindsight(X[:t], y[:t], loss=LOSS, tolerance=1e-3).value for t in times])


def curves(X: np.ndarray, y: np.ndarray, rule: ovi.Rule, times: list[int]) -> np.ndarray:
    """Rows: the total loss, the certificate for the box, and that for ‖u‖ ≤ RADIUS."""
    learner, rows = ovi.Linear(loss=LOSS, rule=rule), []
    state = learner.init(X.shape[1])
    for start, stop in zip([0, *times], times, strict=False):
        state, _ = learner.update_many(state, X[start:stop], y[start:stop], record="none")
        live = certificate(state)
        rows.append((live.loss, live.regret, live.within(RADIUS)))
    return np.array(rows).T


def draw(out: Path) -> None:
    toy = ovi.datasets.load("toy")
    times = points(len(toy.y))
    t, best, charts = np.array(times), best_so_far(toy.X, toy.y, times), []
    for name, rule in RULES.items():
        loss, regret, near = curves(toy.X, toy.y, rule, times)
        lines = (
            Line("certified: box ±20", rule.name, t, regret / t),
            Line(f"certified: ‖u‖ ≤ {RADIUS:g}", rule.name, t, near / t, dash="dash"),
            Line("true regret", "reference", t, (loss - best) / t),
            Line("trivial: the loss itself", "exact", t, loss / t, dash="dot"),
        )
        y = Axis("regret a step", 1e-3, 6.0, log=True)
        charts.append(Chart(name, name, Axis.rows(t[0], t[-1], log=True, title="t"), y, lines))
        last = [f"{value / t[-1]:.4f}" for value in (loss[-1] - best[-1], regret[-1], near[-1], loss[-1])]
        print(f"{name}, T = {t[-1]}: true {last[0]}, box {last[1]}, ball {last[2]}, loss {last[3]} an event")
    out.parent.mkdir(parents=True, exist_ok=True)
    figure_of(charts, panel=(4.6, 3.2)).savefig(out, dpi=110)


def first_informative() -> None:
    """From when on the certificate is below the loss itself, looked at after every tenth event."""
    toy, learner = ovi.datasets.load("toy"), ovi.Linear(loss=LOSS, rule=ovi.SVB())
    state, below = learner.init(2), {}
    for start in range(0, len(toy.y), 10):
        state, _ = learner.update_many(state, toy.X[start : start + 10], toy.y[start : start + 10], record="none")
        below[state.count] = certificate(state).lower_bound > 0.0
    always = max(t for t, yes in below.items() if not yes) + 10
    print(f"SVB says something first at t = {min(t for t, yes in below.items() if yes)}, and from t = {always} on always")


def with_ridge() -> None:
    """What the ridge's curvature is worth: it needs the average decision."""
    toy = ovi.datasets.load("toy")
    for average in (False, True):
        trace = ovi.learn(toy.X, toy.y, loss=ovi.Hinge(ridge=0.01), rule=ovi.NGVI(), average=average)
        live = certificate(trace)
        print(f"NGVI, ridge 0.01, average={average}: {live.regret / live.count:.3f} an event ({live.form})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/img/certificate.png"))
    draw(parser.parse_args().out)
    first_informative()
    with_ridge()


if __name__ == "__main__":
    main()
