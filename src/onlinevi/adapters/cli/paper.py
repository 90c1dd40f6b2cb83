"""``onlinevi reproduce``: the paper's experiments."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from onlinevi.adapters.cli.options import Commands
from onlinevi.adapters.cli.parser import add_json


def add(commands: Commands) -> None:
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
    add_json(command)
    command.set_defaults(command=_reproduce)


def _reproduce(options: argparse.Namespace) -> int:
    from onlinevi.adapters.cli.progress import watching
    from onlinevi.paper import reproduce

    chosen = {name: getattr(options, name) for name in ("seeds", "scaling", "network", "beside", "jobs")}
    chosen |= {"data": _names(options.data), "rules": _names(options.rules)}
    with watching("reproduce", draws=options.voice.draws) as watch:
        result = reproduce(options.out, **chosen, watch=watch)
    if options.json:
        print((options.out / "results.json").read_text(encoding="utf-8").strip())
        return 0
    print((options.out / "table.md").read_text())
    count = len(result.runs) + sum(map(len, result.beside.values()))
    print(f"{count} runs in {result.seconds:.0f} s; wrote " + ", ".join(map(str, result.paths)))
    return 0


def _names(words: Sequence[str] | None) -> list[str] | None:
    """Names apart by spaces or by commas."""
    return [name for word in words for name in word.split(",") if name] if words else None
