"""``onlinevi warm``: compile ahead, where a first row must not wait."""

from __future__ import annotations

import argparse

from onlinevi.adapters.cli.options import TASKS, Commands, add_family, add_import, add_rule
from onlinevi.adapters.cli.outcome import print_json
from onlinevi.adapters.cli.parser import add_json


def add(commands: Commands) -> None:
    command = commands.add_parser(
        "warm",
        help="compile ahead what runs will need",
        description="Compile the loops of runs for this machine, so that the first of them starts at once; in an image, say.",
        epilog="example: onlinevi warm --task classes numbers",
    )
    command.add_argument("--task", nargs="+", choices=TASKS, default=list(TASKS), help="what will be predicted (default: all)")
    add_rule(command)
    command.add_argument("--sparse", action="store_true", help="for rows with text, hashed names or from LIBSVM files, too")
    add_family(command)
    add_import(command)
    add_json(command)
    command.set_defaults(command=_warm)


def _warm(options: argparse.Namespace) -> int:
    from onlinevi.runs import Settings, warm_task

    compiled = 0
    for task in options.task:
        settings = Settings("label", task=task, rule=options.rule, family=options.family)
        for sparse in (False, True) if options.sparse else (False,):
            compiled += warm_task(settings, task, options.voice.compiling, sparse=sparse)
    if options.json:
        print_json({"compiled": compiled})
        return 0
    print(f"{compiled} loops compiled." if compiled else "Everything was compiled already.")
    return 0
