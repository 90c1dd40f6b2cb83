"""``onlinevi bounds``: what the theorems promise, before any data."""

from __future__ import annotations

import argparse
import math
from typing import Any

from onlinevi.adapters.cli.options import Commands
from onlinevi.adapters.cli.outcome import print_json
from onlinevi.adapters.cli.parser import add_json
from onlinevi.engine import named
from onlinevi.losses import Loss


def add(commands: Commands) -> None:
    command = commands.add_parser(
        "bounds",
        help="print what the theorems promise, before any data",
        description="Every bound of the paper that speaks of a rule, on regret and for i.i.d. events on risk: its terms, its "
        "rate, and from which T on it is of use.",
        epilog="example: onlinevi bounds --T 10000 --dim 54 --loss hinge --rule sva",
    )
    command.add_argument("--T", type=int, required=True, metavar="N", help="number of events")
    command.add_argument("--dim", type=int, required=True, metavar="N", help="number of features")
    lipschitz = [name for name, kind in named(Loss).items() if math.isfinite(kind().lipschitz)]
    command.add_argument("--loss", choices=lipschitz, default="hinge", help="a Lipschitz loss (default: hinge)")
    command.add_argument("--rule", choices=("ewa", "oga-el", "sva", "svb", "ngvi"), required=True, help="whose bounds")
    command.add_argument("--rate", type=float, metavar="R", help="default: the paper's")
    command.add_argument("--ridge", type=float, default=0.0, metavar="R", help="ridge/2·‖θ‖² added to the loss (default: 0)")
    command.add_argument("--row-norm", type=float, default=1.0, metavar="R", help="length of the longest row (default: 1)")
    command.add_argument("--distance", type=float, default=1.0, metavar="R", help="of the best weights from 0 (default: 1)")
    command.add_argument("--prior-std", type=float, default=1.0, metavar="S", help="default: 1")
    command.add_argument("--reach", type=float, default=20.0, metavar="R", help="weights lie in [−R, R] (default: 20)")
    command.add_argument("--ball", type=float, metavar="R", help="weights lie in the ball of radius R about 0 instead")
    command.add_argument("--loss-bound", type=float, metavar="B", help="losses lie in [0, B]; for ewa")
    add_json(command)
    command.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> int:
    from onlinevi.guarantees import Setting, calculate

    loss = named(Loss)[options.loss](ridge=options.ridge)
    known = options.row_norm, options.distance, options.prior_std, options.reach, options.ball
    setting = Setting(options.T, options.dim, loss, *known)
    entries = calculate(setting, options.rule, rate=options.rate, loss_bound=options.loss_bound)
    if options.json:
        print_json({"bounds": [_plain(entry, options.T) for entry in entries]})
        return 0
    for entry in entries:
        a_step = "" if entry.bound.name.endswith("risk") else f", or {entry.bound.value / options.T:.4g} a step"
        print(f"{entry.bound.name}, {entry.rate}: {entry.bound.value:.6g}{a_step}")
        print("  = " + " + ".join(f"{value:.6g} ({name})" for name, value in entry.bound.terms.items()))
        since = f"from T = {entry.informative_from:,} on" if entry.informative_from else "at no T"
        print(f"  below what never learning has {since}" + ("; vacuous here" if entry.bound.vacuous else ""))
    if options.rule == "ngvi":
        print(
            "They are of ngvi(floor=…) and ngvi(parameters=scale), not the paper's. As it stands NGVI has linear regret on "
            "some streams; onlinevi.certificate bounds it as it runs."
        )
    return 0


def _plain(entry: Any, steps: int) -> dict[str, Any]:
    """An entry of the table of bounds as JSON values."""
    bound = entry.bound
    facts = {"name": bound.name, "rate": entry.rate, "value": bound.value, "terms": dict(bound.terms)}
    facts |= {} if bound.name.endswith("risk") else {"per_step": bound.value / steps}
    return facts | {"vacuous": bound.vacuous, "informative_from": entry.informative_from}
