"""The command line: each command parses, makes one call and prints.

Exit codes: 0 done; 1 failed; 2 a wrong call, data that cannot be had, or a bad row; 130 interrupted; 143 terminated.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from onlinevi.adapters.cli import bounds, compare, completion, data, look, models, paper, run, serve, value, warm
from onlinevi.adapters.cli.config import with_config
from onlinevi.adapters.cli.options import import_parts
from onlinevi.adapters.cli.parser import CommandParser, add_manners
from onlinevi.adapters.cli.voice import Voice
from onlinevi.engine import __version__

EXAMPLE = "example: onlinevi run patients.csv --target diagnosis --out out"
EXITS = """Exit codes: 0 done; 1 failed; 2 a wrong call, data that cannot be had, or a bad row;
130 interrupted; 143 terminated."""

NOT_THE_CALL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE})
"""What a system refuses whatever it was asked for: another call would fail as well."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit code."""
    _mend_streams()
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        parser = command_parser()
        if not given:
            _tell(parser.format_help().rstrip())
            return 2
        words = with_config(parser, given)
        options = parser.parse(words)
        options.arguments, options.voice = given, Voice.asked_for(options)
        if words != given:
            options.voice.detail(f"with {options.config}: onlinevi {' '.join(words)}")
        import_parts(options)
        code = int(options.command(options))
        sys.stdout.flush()  # a full disk is to be heard of here
    except KeyboardInterrupt as stopped:
        _tell("interrupted: what was written before is kept, and the same call goes on behind it (run: with --resume)")
        return stopped.args[0] if stopped.args and isinstance(stopped.args[0], int) else 130
    except BrokenPipeError:  # a reader such as head has seen enough
        _drop_output()
        return 0
    except Exception as error:
        if "--debug" in given:
            _tell(traceback.format_exc().rstrip())
        code, message = _explained(error)
        _tell(f"onlinevi: {message}")
        try:
            sys.stdout.flush()
        except OSError:
            _drop_output()
    return code


def _explained(error: Exception) -> tuple[int, str]:
    """The exit code of an error, and what to say of it: what can be mended by another call, and what cannot."""
    match error:
        case OSError(strerror=str(reason)):
            place = "" if error.filename is None else f"{error.filename}: "
            return 1 if error.errno in NOT_THE_CALL else 2, f"{place}{reason}"
        case MemoryError():
            return 1, f"out of memory{f' ({error})' if str(error) else ''}: use fewer columns, or another --family"
        case KeyError() | IndexError() | UnicodeError():  # never raised as messages to people
            pass
        case LookupError() | ValueError() | ImportError() | FileNotFoundError():
            return 2, str(error)
    return 1, f"{type(error).__name__}: {error}. This should not happen: --debug shows where it did"


def _mend_streams() -> None:
    """Standard streams that take any text: one that is closed is none, and what its encoding lacks is spelled out."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        elif getattr(stream, "errors", None) == "strict" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _tell(text: str) -> None:
    with suppress(OSError):
        print(text, file=sys.stderr)


def _drop_output() -> None:
    """Whatever waits to be printed goes nowhere, without a word at the end of the process."""
    with suppress(OSError, ValueError):  # not of the operating system
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def command_parser() -> CommandParser:
    """The parser of all commands."""
    parser = CommandParser(
        prog="onlinevi",
        description="Online Bayesian learning with guarantees: a model of any stream in one pass, and how sure it is. "
        "Begin with run; onlinevi COMMAND --help says more of each.",
        epilog=f"{EXAMPLE}\n\n{EXITS}",
    )
    parser.add_argument("--version", action="version", version=f"onlinevi {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in (run, look, compare, models, serve, value, bounds, data, paper, warm, completion):
        command.add(commands)
    for command_itself in commands.choices.values():
        for one in (command_itself, *command_itself.commands.values()):
            add_manners(one)
    return parser
