"""The command line: each command parses, makes one call and prints.

Exit codes: 0 done; 1 failed; 2 a wrong call, data that cannot be had, or a bad row; 130 interrupted; 143 terminated.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from onlinevi.adapters.cli import bounds, compare, look, models, paper, run
from onlinevi.adapters.cli.options import import_parts
from onlinevi.engine import __version__

EXAMPLE = "example: onlinevi run patients.csv --target diagnosis --out out"
EXITS = """Exit codes: 0 done; 1 failed; 2 a wrong call, data that cannot be had, or a bad row;
130 interrupted; 143 terminated."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit code."""
    options = command_parser().parse_args(arguments)
    options.arguments = sys.argv[1:] if arguments is None else list(arguments)
    try:
        import_parts(options)
        return int(options.command(options))
    except KeyboardInterrupt:
        print("interrupted: finished runs are kept, the same call goes on after them", file=sys.stderr)
        return 130
    except BrokenPipeError:  # a reader such as head has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (LookupError, ValueError, ImportError, FileNotFoundError) as error:
        print(f"onlinevi: {error}", file=sys.stderr)
        return 2


def command_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="onlinevi",
        description="Online Bayesian learning with guarantees: a model of any stream in one pass, and how sure it is.\n"
        "Begin with run; onlinevi COMMAND --help says more of each.",
        epilog=f"{EXAMPLE}\n\n{EXITS}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"onlinevi {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in (run, look, compare, models, paper, bounds):
        command.add(commands)
    return parser
