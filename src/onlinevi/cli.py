"""The command line: each command parses, makes one call and prints.

Exit codes: 0 done; 1 failed; 2 a wrong call, or data that cannot be had; 130 interrupted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from onlinevi import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit code."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.command(options))
    except KeyboardInterrupt:
        print("interrupted: finished runs are kept, the same call goes on after them", file=sys.stderr)
        return 130
    except (LookupError, ValueError, ImportError) as error:
        print(f"onlinevi: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="onlinevi", description="Online Bayesian learning with guarantees.")
    parser.add_argument("--version", action="version", version=f"onlinevi {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_reproduce(commands)
    _add_data(commands)
    _add_bounds(commands)
    return parser


def _add_reproduce(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from onlinevi.reproduce.panels import PANELS, SCALINGS
    from onlinevi.reproduce.runs import RULES

    command = commands.add_parser(
        "reproduce",
        help="repeat the paper's experiments and draw its figure",
        description="Repeat section 5 of the paper: the figure, a table, the results, and a verdict on each claim.",
        epilog="example: onlinevi reproduce --out out --data toy boston --seeds 2",
    )
    command.add_argument("--out", type=Path, default=Path("out"), metavar="DIR", help="where to write (default: out)")
    command.add_argument(
        "--data", nargs="+", metavar="NAME", help=f"data sets, of {', '.join(PANELS)} (default: all to be had)"
    )
    command.add_argument("--rules", nargs="+", metavar="NAME", help=f"rules, of {', '.join(RULES)} (default: all)")
    command.add_argument("--seeds", type=int, default=5, metavar="N", help="orders of each data set (default: 5)")
    command.add_argument(
        "--scaling", choices=SCALINGS, default="row", help="of the features; toy data stay raw (default: row)"
    )
    command.add_argument("--jobs", type=int, metavar="N", help="threads; the numbers do not depend on it (default: all cores)")
    command.set_defaults(command=_reproduce)


def _reproduce(options: argparse.Namespace) -> int:
    from onlinevi.progress import watching
    from onlinevi.reproduce import reproduce

    chosen = {"data": options.data, "rules": options.rules, "seeds": options.seeds, "scaling": options.scaling}
    chosen |= {name: _names(chosen[name]) for name in ("data", "rules")}
    with watching("reproduce") as watch:
        result = reproduce(options.out, **chosen, jobs=options.jobs, watch=watch)
    print((options.out / "table.md").read_text())
    print(f"{len(result.runs)} runs in {result.seconds:.0f} s; wrote " + ", ".join(map(str, result.paths)))
    return 0


def _names(words: Sequence[str] | None) -> list[str] | None:
    """Names apart by spaces or by commas."""
    return [name for word in words for name in word.split(",") if name] if words else None


def _add_data(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "data",
        help="list, fetch or find the data sets",
        description="The data sets: where they are, and how to have them here.",
        epilog="Looked for in the directory ONLINEVI_DATA, the user's cache, installed packages, then downloaded.",
    )
    actions = command.add_subparsers(required=True, metavar="ACTION")
    actions.add_parser("list", help="every data set, and where it would come from").set_defaults(command=_data_list)
    fetch = actions.add_parser("fetch", help="have data sets on this machine, downloading if needed")
    fetch.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    fetch.set_defaults(command=_data_fetch)
    path = actions.add_parser("path", help="print the file of a data set")
    path.add_argument("name", metavar="NAME")
    path.set_defaults(command=_data_path)


def _data_list(options: argparse.Namespace) -> int:
    from onlinevi import datasets

    for status in map(datasets.status, datasets.names()):
        print(f"{status.name:12} {'here' if status.available else 'not here':9} {status.path or status.place}")
    return 0


def _data_fetch(options: argparse.Namespace) -> int:
    from onlinevi import datasets

    failed = 0
    for name in options.names or datasets.names():
        try:
            print(f"{name:12} {datasets.fetch(name) or datasets.status(name).place}")
        except datasets.DataUnavailable as error:
            failed += 1
            print(f"{name:12} {error}", file=sys.stderr)
    return 2 if failed else 0


def _data_path(options: argparse.Namespace) -> int:
    from onlinevi import datasets

    found = datasets.path(options.name)
    if found is None:
        raise ValueError(f"{options.name} has no file here: it comes from {datasets.status(options.name).place}")
    print(found)
    return 0


def _add_bounds(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "bounds",
        help="what the theorems promise, before any data",
        description="Every bound of the paper that speaks of a rule: its terms, its rate, and from which T on it is of use.",
        epilog="example: onlinevi bounds --T 10000 --dim 54 --loss hinge --rule sva",
    )
    command.add_argument("--T", type=int, required=True, metavar="N", help="number of events")
    command.add_argument("--dim", type=int, required=True, metavar="N", help="number of features")
    command.add_argument(
        "--loss", choices=("hinge", "logistic", "absolute", "pinball"), default="hinge", help="default: hinge"
    )
    command.add_argument("--rule", choices=("ewa", "oga-el", "sva", "svb", "ngvi"), required=True)
    command.add_argument("--rate", type=float, metavar="R", help="default: the paper's")
    command.add_argument("--ridge", type=float, default=0.0, metavar="R", help="ridge/2·‖θ‖² added to the loss (default: 0)")
    command.add_argument("--row-norm", type=float, default=1.0, metavar="R", help="length of the longest row (default: 1)")
    command.add_argument("--distance", type=float, default=1.0, metavar="R", help="of the best weights from 0 (default: 1)")
    command.add_argument("--prior-std", type=float, default=1.0, metavar="S", help="default: 1")
    command.add_argument("--reach", type=float, default=20.0, metavar="R", help="weights lie in [−R, R] (default: 20)")
    command.add_argument("--loss-bound", type=float, metavar="B", help="losses lie in [0, B]; for ewa")
    command.set_defaults(command=_bounds)


def _bounds(options: argparse.Namespace) -> int:
    from onlinevi import losses
    from onlinevi.bounds.calculator import Setting, calculate

    loss = getattr(losses, options.loss.capitalize())(ridge=options.ridge)
    setting = Setting(options.T, options.dim, loss, options.row_norm, options.distance, options.prior_std, options.reach)
    entries = calculate(setting, options.rule, rate=options.rate, loss_bound=options.loss_bound)
    for entry in entries:
        a_step = "" if entry.bound.name.endswith("risk") else f", or {entry.bound.value / options.T:.4g} a step"
        print(f"{entry.bound.name}, {entry.rate}: {entry.bound.value:.6g}{a_step}")
        print("  = " + " + ".join(f"{value:.6g} ({name})" for name, value in entry.bound.terms.items()))
        since = f"from T = {entry.informative_from:,} on" if entry.informative_from else "at no T"
        print(f"  below what never learning has {since}" + ("; vacuous here" if entry.bound.vacuous else ""))
    if not entries:
        print(f"No theorem of the paper bounds the regret of {options.rule}; onlinevi.certificate bounds it as it runs.")
    return 0
