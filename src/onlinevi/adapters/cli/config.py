"""``--config FILE``: options from a TOML file, as if they stood in front of those of the call.

    target = "price"
    drop = ["id", "seller"]
    kinds = { postcode = "category" }

    [run]               # of this command alone
    file = "flats.csv"
    out = "out"

Options of the call win: one that is given there, or excludes another, takes its place.
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from onlinevi.adapters.cli.parser import CommandParser
from onlinevi.engine import did_you_mean

OPTION = "--config"


def with_config(parser: CommandParser, words: Sequence[str]) -> list[str]:
    """The words of a call, with those of its configuration file among them."""
    command, before = _command_of(parser, words)
    given = list(words[before:])
    file = _named(given)
    if command is None or file is None:
        return list(words)
    settings = _settings(Path(file), command, parser.commands)
    places = [_listed(settings.pop(name)) for name in _places(command) if name in settings]
    # As many of them as are lacking, the last first: the call may have told those before.
    for first in reversed(range(len(places) + 1)):
        behind = [word for place in places[first:] for word in place]
        if (asked := command.asked([*given, *behind])) is not None:
            options = [word for name, value in settings.items() for word in _words(file, command, name, value, asked)]
            return [*words[:before], *options, *given, *behind]
    return list(words)


def _named(given: Sequence[str]) -> str | None:
    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    finder.add_argument(OPTION, dest="config")
    try:
        file: str | None = finder.parse_known_args(given)[0].config
    except argparse.ArgumentError:  # no file: the command says so
        return None
    return file


def _places(command: CommandParser) -> list[str]:
    """What is told by its place, by the names that a file has for it."""
    return [one.metavar.lower() if isinstance(one.metavar, str) else one.dest for one in command.positionals]


def _command_of(parser: CommandParser, words: Sequence[str]) -> tuple[CommandParser | None, int]:
    """The command that the words name, and how many of them do."""
    place, found = 0, None
    while parser.commands:
        place = next((k for k in range(place, len(words)) if words[k] in parser.commands), len(words))
        if place == len(words):
            return None, 0
        found = parser = parser.commands[words[place]]
        place += 1
    return found, place


def _settings(path: Path, command: CommandParser, commands: Mapping[str, CommandParser]) -> dict[str, Any]:
    """What the file says for this command: what stands in no table, and what stands in the command's own."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{OPTION} {path}: is no TOML ({error})") from error
    tables = {name: value for name, value in document.items() if name in commands and isinstance(value, dict)}
    own = tables.get(command.prog.split()[1], {})
    settings = {name.replace("_", "-"): value for name, value in (document | own).items() if name not in tables}
    known = [*_places(command), *(name.removeprefix("--") for name in command.options if name.startswith("--"))]
    for name in settings:
        if name not in known:
            meant = did_you_mean(name, [*known, *commands])
            raise ValueError(
                f"{OPTION} {path}: {command.prog} has no option {name!r}{meant}; {command.prog} --help-all has all"
            )
    return settings


def _words(file: str, command: CommandParser, name: str, value: Any, asked: set[str]) -> Iterator[str]:
    """The words of one setting; none where the call says otherwise."""
    option = f"--{name}"
    action = command.options[option]
    if action.dest in asked or command.excluded_by(action) & asked:
        return
    if action.nargs == 0:
        if not isinstance(value, bool):
            raise ValueError(f"{OPTION} {file}: {name} is switched on or off: needs true or false, not {value!r}")
        negative = f"--no-{name}"
        if value:
            yield option
        elif command.options.get(negative) is action:
            yield negative
    elif isinstance(value, bool):
        raise ValueError(f"{OPTION} {file}: {name} needs a value, not {str(value).lower()}")
    elif action.nargs in ("+", "*"):
        yield from (option, *_listed(value))
    elif isinstance(action, argparse._AppendAction):
        yield from (f"{option}={one}" for one in _listed(value))
    else:
        yield f"{option}={','.join(_listed(value))}"


def _listed(value: Any) -> list[str]:
    """A value as words: a list's parts, a table's as name=value."""
    if isinstance(value, dict):
        return [f"{name}={one}" for name, one in value.items()]
    return [str(one) for one in value] if isinstance(value, list) else [str(value)]
