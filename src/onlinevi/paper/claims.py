"""The paper's claims about Figure 1 (caption and section 5.2), each computed from the runs: true, false, or in part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onlinevi.paper.experiments import Outcome
from onlinevi.paper.panels import PANELS


@dataclass(frozen=True)
class Approach:
    """How the average regret of one rule falls in one panel, on the mean of its seeds.

    Regret at t is against the weights that are best at T, over the same t events: their luck is its luck.
    """

    data: str
    rule: str
    regret: float
    """A_T − line."""
    earlier: float
    """The same at T/10."""
    rate: float
    """p in regret ≈ c·t^p, fitted from T/100 on."""
    trivial: float
    """The regret at T of who learns nothing from the features (``Outcome.trivial``)."""

    def __str__(self) -> str:
        return f"average regret {self.earlier:.4f} at T/10, {self.regret:.4f} at T, as t^{self.rate:.2f}"

    @property
    def holds(self) -> bool:
        """Falling at the end, by a power of t that is not nearly 0, and better than never learning."""
        return self.regret < self.earlier and self.rate < -0.1 and self.regret < self.trivial


@dataclass(frozen=True)
class Claim:
    """What the paper says, whether it came out, and the numbers."""

    text: str
    holds: bool
    details: tuple[str, ...]


def group(runs: Sequence[Outcome], data: str, rule: str | None = None) -> list[Outcome]:
    """The runs on this data set, of one rule if it is given."""
    return [run for run in runs if run.data == data and rule in (None, run.rule)]


def approach(runs: Sequence[Outcome]) -> Approach:
    """How the average regret of one rule in one panel falls, from its runs."""
    steps, regret = np.array(runs[0].steps), np.mean([run.regret for run in runs], axis=0)
    T = steps[-1]
    late = (steps >= T / 100) & (regret > 0.0)
    rate = np.polyfit(np.log(steps[late]), np.log(regret[late]), 1)[0] if late.sum() > 2 else np.nan
    earlier = regret[np.searchsorted(steps, T / 10)]
    trivial = np.mean([run.trivial - run.hindsight for run in runs])
    return Approach(runs[0].data, runs[0].rule, float(regret[-1]), float(earlier), float(rate), float(trivial))


def judge(runs: Sequence[Outcome]) -> list[Claim]:
    """Every claim that these runs can speak to."""
    present = [name for name in PANELS if group(runs, name)]
    rules = list(dict.fromkeys(run.rule for run in runs))
    convex = [name for name in present if not PANELS[name].network]
    claims = [_approaches([approach(group(runs, data, rule)) for data in convex for rule in rules])] if convex else []
    if "NGVI" in rules and len(rules) > 1:
        claims += _lowest(runs, present, rules)
    claims += [_network(runs, name, rules) for name in present if PANELS[name].network]
    return claims


def _approaches(found: list[Approach]) -> Claim:
    missed = [f"{each.data}, {each.rule}" for each in found if not each.holds]
    details = tuple(f"{each.data}, {each.rule}: {each}" for each in found)
    text = "Every rule's average loss approaches the best in hindsight (convex panels)"
    verdict = (f"not in {len(missed)} of {len(found)}: {'; '.join(missed)}",) if missed else ()
    return Claim(text, not missed, verdict + details)


def _lowest(runs: Sequence[Outcome], present: list[str], rules: list[str]) -> list[Claim]:
    """By the mean over the orders; in how many of them it is so is said with it."""
    wins, details = 0, []
    for data in present:
        losses = {rule: [run.average_loss for run in group(runs, data, rule)] for rule in rules}
        final = {rule: float(np.mean(values)) for rule, values in losses.items()}
        ranked = sorted(final, key=final.__getitem__)
        orders = [min(each) for each in zip(*losses.values(), strict=True)]
        own = sum(loss == lowest for loss, lowest in zip(losses["NGVI"], orders, strict=True))
        wins += ranked[0] == "NGVI"
        means = ", ".join(f"{rule} {final[rule]:.4f}" for rule in ranked)
        details.append(f"{data}: {means}; NGVI in {own} of {len(orders)} orders")
    count = f"{wins} of {len(present)} panels"
    return [
        Claim("NGVI is the lowest in most panels (the figure's caption)", 2 * wins > len(present), (count, *details)),
        Claim("NGVI is the lowest in all panels (the paper's conclusions)", wins == len(present), (count,)),
    ]


def _network(runs: Sequence[Outcome], data: str, rules: list[str]) -> Claim:
    found = [approach(group(runs, data, rule)) for rule in rules]
    details = tuple(f"{each.rule}: {each}" for each in found)
    missed = [each.rule for each in found if not each.holds]
    verdict: tuple[str, ...] = (f"not with {', '.join(missed)}",) if missed else ()
    stuck = [each.rule for each in found if each.regret >= each.trivial]
    if stuck:
        constant = np.mean([run.trivial for run in group(runs, data)])
        verdict += (f"no better than the best constant prediction, {constant:.4f}: {', '.join(stuck)}",)
    text = "The network panel converges, to the best found offline, though its loss is not convex"
    return Claim(text, not missed, verdict + details)
