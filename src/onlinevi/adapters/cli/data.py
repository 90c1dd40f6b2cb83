"""``onlinevi data``: files to try things with, and the paper's data sets."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from onlinevi.adapters.cli.options import Commands
from onlinevi.adapters.cli.outcome import print_json, wrote
from onlinevi.adapters.cli.parser import CommandParser, Named, add_json
from onlinevi.data import samples

EPILOG = """examples:
  onlinevi data --write iris.csv breast.csv
  onlinevi data samples
  onlinevi data fetch boston

Samples come from scikit-learn, or are drawn, and need no network. The paper's data sets are looked for in the directory
ONLINEVI_DATA, the user's cache, installed packages, then downloaded."""


def add(commands: Commands) -> None:
    command = commands.add_parser(
        "data",
        help="write files to try things with; list, fetch or find the paper's data sets",
        description="Files to try things with, and the paper's data sets: where they are, and how to have them here.",
        epilog=EPILOG,
    )
    command.add_argument(
        "--write",
        action=Named,
        known=[f"{name}.csv" for name in samples.SAMPLES],
        nargs="+",
        type=Path,
        default=[],
        metavar="FILE",
        help="write samples, known by their names: iris.csv, say",
    )
    add_json(command)
    command.set_defaults(command=_write)
    actions = command.add_subparsers(metavar="ACTION")
    _add(actions, "samples", _samples, "every sample that --write knows, and what is predicted of it", "onlinevi data samples")
    _add(actions, "list", _list, "every data set of the paper, and where it would come from", "onlinevi data list")
    fetch = _add(
        actions, "fetch", _fetch, "have data sets on this machine, downloading if needed", "onlinevi data fetch boston pima"
    )
    fetch.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    path = _add(actions, "path", _path, "print the file of a data set", "onlinevi data path boston")
    path.add_argument("name", metavar="NAME")


def _add(actions: Commands, name: str, run: Callable[[argparse.Namespace], int], what: str, example: str) -> CommandParser:
    action = actions.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.", epilog=f"example: {example}")
    add_json(action)
    action.set_defaults(command=run)
    return action


def _write(options: argparse.Namespace) -> int:
    if not options.write:
        options.parser.error("needs --write FILE, or one of samples, list, fetch, path")
    paths = [samples.write(path) for path in options.write]
    if options.json:
        print_json({"wrote": [str(path) for path in paths]})
        return 0
    print(wrote(paths))
    for path in paths:
        print(f"  onlinevi run {path} --target {samples.SAMPLES[path.stem].target}")
    return 0


def _samples(options: argparse.Namespace) -> int:
    if options.json:
        print_json(
            {"samples": [{"name": name, "target": one.target, "what": one.what} for name, one in samples.SAMPLES.items()]}
        )
        return 0
    for name, sample in samples.SAMPLES.items():
        print(f"{name + '.csv':14} {sample.target:12} {sample.what}")
    return 0


def _list(options: argparse.Namespace) -> int:
    from onlinevi.data import catalogue as datasets

    found = list(map(datasets.status, datasets.names()))
    if options.json:
        print_json(
            {"data_sets": [{"name": one.name, "here": one.available, "place": str(one.path or one.place)} for one in found]}
        )
        return 0
    for status in found:
        print(f"{status.name:12} {'here' if status.available else 'not here':9} {status.path or status.place}")
    return 0


def _fetch(options: argparse.Namespace) -> int:
    from onlinevi.data import catalogue as datasets

    fetched, failed = {}, {}
    for name in options.names or datasets.names():
        try:
            fetched[name] = str(datasets.fetch(name) or datasets.status(name).place)
            if not options.json:
                print(f"{name:12} {fetched[name]}")
        except datasets.DataUnavailable as error:
            failed[name] = str(error)
            print(f"{name:12} {error}", file=sys.stderr)
    if options.json:
        print_json({"fetched": fetched, "failed": failed})
    return 2 if failed else 0


def _path(options: argparse.Namespace) -> int:
    from onlinevi.data import catalogue as datasets

    file = datasets.path(options.name)
    if file is None:
        raise ValueError(f"{options.name} has no file here: it comes from {datasets.status(options.name).place}")
    if options.json:
        print_json({"name": options.name, "path": str(file)})
    else:
        print(file)
    return 0
