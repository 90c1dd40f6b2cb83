"""``onlinevi reproduce``: repeat the paper's experiments and draw its figure."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from onlinevi.adapters.cli.parser import Commands


def add(commands: Commands) -> None:
    from onlinevi.paper import PANELS, RULES, SCALINGS

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
    command.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> int:
    from onlinevi.adapters.progress import watching
    from onlinevi.paper import reproduce

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
