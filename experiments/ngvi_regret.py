"""The figure and the numbers of docs/ngvi.md: where natural gradients have linear regret, and where they have a bound.

    python experiments/ngvi_regret.py [--longest 100000] [--out docs/img/ngvi.png]

Four panels: |y − θ| that turns once; squared losses along two rows in turn; fair coins, beside the bounds with a floor and in
scale parameters; and the squared loss under all covariances, beside d·log T.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import onlinevi as ovi
from onlinevi import bounds
from onlinevi.guarantees import SquaredSums, certificate
from onlinevi.runs.charts import Axis, Chart, Line, figure_of

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from helpers.adversaries import Stream, crossing, recurring, turning

Rules = dict[str, tuple[str, Callable[[int], ovi.Rule]]]
"""By their names: the role that gives a colour, and the rule for a stream of this length."""

SEEDS = 20
"""Streams of coins for each length."""
FLOOR = 0.5
DIMENSIONS = {2: "feature-0", 8: "feature-2", 32: "feature-3"}

NATURAL: Rules = {
    "NGVI": ("ngvi", lambda T: ovi.NGVI()),
    "NGVI, step 1/√T": ("recent", lambda T: ovi.NGVI(ovi.PerHorizon(1.0))),
    "Implicit": ("implicit", lambda T: ovi.Implicit()),
}
BOUNDED: Rules = {
    "NGVI(floor=0.1)": ("own-0", lambda T: ovi.NGVI(floor=0.1)),
    "NGVI in scale parameters": (
        "own-1",
        lambda T: ovi.NGVI(ovi.PaperSVB(1.0), math.sqrt(T), parameters="scale"),
    ),
    "SVB": ("svb", lambda T: ovi.SVB()),
}


def lengths(longest: int, first: int = 100) -> list[int]:
    """Evenly spaced on a logarithmic axis."""
    return sorted({4 * round(T / 4) for T in np.geomspace(first, longest, 16)})


def run(data: Stream, loss: ovi.Loss, rule: ovi.Rule, family: ovi.Family | None = None) -> ovi.State:
    return ovi.learn(*data, loss=loss, rule=rule, family=family, record="none", average=False).state


def chart(title: str, y: Axis, lines: Sequence[Line]) -> Chart:
    counts = lines[0].steps
    return Chart("ngvi", title, Axis.rows(counts[0], counts[-1], log=True, title="events T"), y, tuple(lines))


def turned(counts: list[int]) -> Chart:
    """The regret an event to θ = 1 where labels turn from 0 to 1 after a quarter."""
    lines = []
    for name, (role, rule) in (NATURAL | BOUNDED).items():
        states = [run(turning(T), ovi.Absolute(), rule(T)) for T in counts]
        regrets = [(state.loss - T / 4) / T for T, state in zip(counts, states, strict=True)]
        certified = certificate(states[-1]).against([1.0]) / counts[-1]
        print(f"|y − θ|, {name}, T = {counts[-1]:,}: regret {regrets[-1]:.4f} an event, certified {certified:.4f}")
        lines.append(Line(name, role, counts, regrets, width=1.4))
    return chart("|y − θ|, labels that turn once", Axis("regret / T", -0.3, 1.05, zero=True), lines)


def crossed(counts: list[int]) -> Chart:
    """The average loss where the weights (½, −½) pay nothing."""
    entrants: dict[str, tuple[str, ovi.Rule, ovi.Family]] = {
        "NGVI, mean field": ("ngvi", ovi.NGVI(), ovi.MeanField()),
        "Implicit, mean field": ("implicit", ovi.Implicit(), ovi.MeanField()),
        "both, full covariance": ("own-2", ovi.NGVI(), ovi.FullCovariance()),
    }
    lines = []
    for width, (name, (role, rule, family)) in zip((3.0, 1.2, 1.4), entrants.items(), strict=True):
        losses = [run(crossing(T), ovi.Squared(), rule, family).loss / T for T in counts]
        print(f"(y − ⟨θ, x⟩)², {name}, T = {counts[-1]:,}: regret {losses[-1]:.6f} an event; 63/768 = {63 / 768:.6f}")
        lines.append(Line(name, role, counts, losses, width=width))
    values = np.concatenate([line.values for line in lines])
    return chart("Squared loss, two rows in turn", Axis.around("regret / T", values, log_if_positive=1.0), lines)


def coins(counts: list[int]) -> Chart:
    """Labels ±1 at random, |y − θ| on [−1, 1]: the regret of the worst of some streams, over √T, beside what is promised."""
    box, found = ovi.Box((-1.0, 1.0)), dict[str, list[float]]()
    for T in counts:
        narrow = ovi.MeanField(prior_std=2.0 / math.sqrt(T), box=box)
        known = {"count": T, "lipschitz": 1.0, "reach": 2.0 / (FLOOR * narrow.prior_std), "prior_std": narrow.prior_std}
        step = bounds.ngvi_floor_best_step(**known)
        wide = ovi.MeanField(box=box)
        domain = bounds.box_domain(wide, 1)
        scale, eta = bounds.svb_best_step(lipschitz=1.0, domain=domain), math.sqrt(T)
        entrants = {
            "NGVI": (ovi.NGVI(), wide),
            f"NGVI(floor={FLOOR})": (ovi.NGVI(step, floor=FLOOR), narrow),
            "NGVI in scale parameters": (ovi.NGVI(ovi.PaperSVB(scale), eta, parameters="scale"), wide),
        }
        for name, (rule, family) in entrants.items():
            worst = -math.inf
            for seed in range(SEEDS):
                y = np.random.default_rng(seed).choice([-1.0, 1.0], T)
                loss = run((np.ones((T, 1)), y), ovi.Absolute(), rule, family).loss
                worst = max(worst, loss - (T - abs(float(y.sum()))))
            found.setdefault(name, []).append(worst / math.sqrt(T))
        floor = bounds.ngvi_floor(step=step, **known).value
        kl = wide.kl(ovi.Belief(np.ones(1), np.full(1, 1.0 / math.sqrt(T))))
        promised = bounds.ngvi_scale(step=scale, count=T, lipschitz=1.0, domain=domain, kl=kl, rate=eta).value
        found.setdefault(f"theorem, floor {FLOOR}", []).append(floor / math.sqrt(T))
        found.setdefault("theorem, scale", []).append((promised + math.sqrt(T)) / math.sqrt(T))  # N(u, 1/T) pays √T more
    roles = ["ngvi", "own-0", "own-1", "own-0", "own-1"]
    lines = [
        Line(name, role, counts, values, "dash" if "theorem" in name else "solid", 1.4)
        for (name, values), role in zip(found.items(), roles, strict=True)
    ]
    for line in lines:
        print(f"coins, {line.name}, T = {counts[-1]:,}: {line.values[-1]:.3f}·√T")
    return chart(f"|y − θ|, fair coins, the worst of {SEEDS}", Axis("regret / √T", 0.0, 17.0), lines)


def squared(counts: list[int]) -> Chart:
    """What NGVI pays beyond the best penalised weights, a dimension, beside the bound: both grow as log T."""
    lines = []
    for dim, role in DIMENSIONS.items():
        excess, promised, rng = [], [], np.random.default_rng(dim)
        X = rng.standard_normal((counts[-1], dim)) / math.sqrt(dim)
        y = np.clip(X @ rng.standard_normal(dim), -1.0, 1.0) + rng.choice([-1.0, 1.0], counts[-1])
        for T in counts:
            trace = ovi.learn(X[:T], y[:T], loss=ovi.Squared(), rule=ovi.NGVI(), family=ovi.FullCovariance(box=None))
            largest, sums = math.sqrt(float(trace.loss.max())), SquaredSums.empty(dim).update(X[:T], y[:T])
            bound = bounds.squared_total_loss(trace, sums, largest_residual=largest)
            excess.append((trace.state.loss - bound.terms["best"]) / dim)
            promised.append(bound.terms["log determinant"] / dim)
        print(f"squared loss, d = {dim}, T = {counts[-1]:,}: beyond the best {excess[-1]:.3f}·d, bound {promised[-1]:.3f}·d")
        lines.append(Line(f"d = {dim}", role, counts, excess, width=1.4))
        lines.append(Line(f"bound, d = {dim}", role, counts, promised, "dash", 1.4))
    most = max(float(np.max(line.values)) for line in lines)
    return chart("Squared loss, full covariance", Axis("loss beyond the best / d", 0.0, 1.6 * most), lines)


def with_the_prior_term() -> None:
    """A prior term at rate √T forgets within √T events; turned over in time, it has linear regret all the same."""
    for exponent, ones in ((4, 2.0), (5, 3.0), (6, 4.0), (7, 5.0)):
        count = 10**exponent
        for name, data in (("turning once", turning(count)), (f"1.5·√T zeros, {ones:g}·√T ones", recurring(count, ones))):
            paid = run(data, ovi.Absolute(), ovi.NGVI(1.0, rate=math.sqrt(count))).loss
            best = min(float(data[1].sum()), count - float(data[1].sum()))
            print(f"|y − θ|, NGVI(1, rate=√T), {name}, T = {count:,}: regret {(paid - best) / count:.4f} an event")


def of_the_default(count: int) -> None:
    """What ``ovi.auto`` pays on the first two streams beyond the best fixed weights."""
    for name, data, loss, best in (
        ("|y − θ|", turning(count), ovi.Absolute(), 0.25 * count),
        ("(y − ⟨θ, x⟩)²", crossing(count), ovi.Squared(), 0.0),
    ):
        trace = ovi.auto(*data, loss=loss)
        paid = float(np.sum(loss(data[1], trace.prediction).value))
        print(f"ovi.auto, {name}, T = {count:,}: regret {(paid - best) / count:.4f} an event")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--longest", type=int, default=100_000, help="events of the longest stream")
    parser.add_argument("--out", type=Path, default=Path("docs/img/ngvi.png"))
    options = parser.parse_args()
    counts = lengths(options.longest)
    charts = [turned(counts), crossed(counts), coins(counts), squared([T for T in counts if T <= 20_000])]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    figure_of(charts, panel=(5.0, 3.6)).savefig(options.out, dpi=110)
    with_the_prior_term()
    of_the_default(min(options.longest, 10_000))
    print(f"Wrote {options.out}.")


if __name__ == "__main__":
    main()
