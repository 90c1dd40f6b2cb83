"""The plot of docs/guarantees.md: true regret and certificate over time, on the toy stream.

python experiments/guarantees.py [--out docs/img/certificate.png]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import onlinevi as ovi
from onlinevi.guarantees import certificate, hindsight

RULES = {"SVB": (ovi.SVB(), "#8e44ad"), "NGVI": (ovi.NGVI(), "#2ca02c")}
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
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    toy = ovi.datasets.load("toy")
    times = points(len(toy.y))
    best = best_so_far(toy.X, toy.y, times)
    figure = Figure(figsize=(8.0, 3.2), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (name, (rule, colour)) in zip(figure.subplots(1, 2, sharey=True), RULES.items(), strict=True):
        loss, regret, near = curves(toy.X, toy.y, rule, times)
        t = np.array(times)
        axes.plot(t, regret / t, color=colour, label="certified: box ±20")
        axes.plot(t, near / t, color=colour, linestyle="--", label=f"certified: ‖u‖ ≤ {RADIUS:g}")
        axes.plot(t, (loss - best) / t, color="black", label="true regret")
        axes.plot(t, loss / t, color="#999999", linestyle=":", label="trivial: the loss itself")
        axes.set(xscale="log", yscale="log", xlabel="t", title=name)
        axes.grid(color="#e4e4e4", linewidth=0.6)
        axes.legend(frameon=False, fontsize=8)
        last = [f"{value / t[-1]:.4f}" for value in (loss[-1] - best[-1], regret[-1], near[-1], loss[-1])]
        print(f"{name}, T = {t[-1]}: true {last[0]}, box {last[1]}, ball {last[2]}, loss {last[3]} an event")
    figure.axes[0].set_ylabel("regret / t")
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=110)


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
