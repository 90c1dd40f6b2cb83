"""``onlinevi data``: list, fetch or find the data sets."""

from __future__ import annotations

import argparse
import sys

from onlinevi.adapters.cli.parser import Commands


def add(commands: Commands) -> None:
    command = commands.add_parser(
        "data",
        help="list, fetch or find the data sets",
        description="The data sets: where they are, and how to have them here.",
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

    found = datasets.path(options.name)
    if found is None:
        raise ValueError(f"{options.name} has no file here: it comes from {datasets.status(options.name).place}")
    print(found)
    return 0
