"""How a call is read: what is wrong with it is said in one line, and help begins with what most calls need."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence
from copy import copy
from itertools import groupby
from typing import Any, NoReturn

from onlinevi.engine import did_you_mean

ALL = "--help-all"
INDENT, HEADING = "  ", 22


class _Help(argparse.HelpFormatter):
    """Prose is broken between words, and indented lines stand as they are: they are typed."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = list[str]()
        for typed, found in groupby(text.splitlines(), lambda line: not line or line.startswith(INDENT)):
            part = list(found)
            lines += part if typed else textwrap.wrap(" ".join(part), width, break_long_words=False, break_on_hyphens=False)
        return "".join(f"{indent}{line}\n" for line in lines)


class CommandParser(argparse.ArgumentParser):
    """A parser whose help, where there are many options, explains the ``first`` alone and names the others.

    All of it has ``more`` below. What it parses has the parser of the command as ``parser``.
    """

    def __init__(self, *arguments: Any, first: Sequence[str] = (), more: str = "", **settings: Any) -> None:
        settings.setdefault("formatter_class", _Help)
        super().__init__(*arguments, **settings)
        self.first, self.more = tuple(first), more
        self.whole = not first
        """Whether help explains every option."""
        self.set_defaults(parser=self)
        if first:
            self.add_argument(ALL, action=_HelpAll, help="show this help with all options explained, and exit")

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """What the words ask for; those that mean nothing are refused, with the option that may have been meant."""
        options, left = self.parse_known_args(words)
        if left:
            parser: CommandParser = options.parser
            unknown = next((word for word in left if word.startswith("-") and len(word) > 1), left[0])
            if unknown in parser.options:
                parser.error(f"{unknown} is an option of the command: let it stand behind the command's name")
            meant = did_you_mean(unknown.partition("=")[0], parser.options)
            what = "option" if unknown.startswith("-") else "argument"
            parser.error(f"no such {what}: {unknown if meant else ' '.join(left)}{meant}")
        return options

    @property
    def options(self) -> dict[str, argparse.Action]:
        """The options by the words that ask for them."""
        return dict(self._option_string_actions)

    @property
    def positionals(self) -> list[argparse.Action]:
        """What is told by its place, the names of commands aside."""
        return [one for one in self._get_positional_actions() if not isinstance(one, argparse._SubParsersAction)]

    @property
    def commands(self) -> dict[str, CommandParser]:
        """The commands below this one, by their names."""
        below = [action for action in self._actions if isinstance(action, argparse._SubParsersAction)]
        return {name: parser for action in below for name, parser in action.choices.items()}

    def asked(self, words: Sequence[str]) -> set[str] | None:
        """What these words ask for, by destination; None where something is missing or wrong."""
        # A list, since options that may be repeated copy what they find and add to the copy.
        unset, probe = list[Any](), copy(self)
        probe.error = _refuse  # type: ignore[method-assign]
        blank = argparse.Namespace(**{action.dest: unset for action in self._actions})
        try:
            options, _ = probe.parse_known_args(list(words), blank)
        except argparse.ArgumentError:
            return None
        return {name for name, value in vars(options).items() if value is not unset}

    def excluded_by(self, action: argparse.Action) -> set[str]:
        """What may not be asked for beside this action."""
        groups = [group._group_actions for group in self._mutually_exclusive_groups if action in group._group_actions]
        return {one.dest for group in groups for one in group if one is not action}

    def error(self, message: str) -> NoReturn:
        """Refuse the call, in one line."""
        self.exit(2, f"{self.prog}: {message}; {self.prog} --help shows what there is\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = [str(one) for one in action.choices]
            raise argparse.ArgumentError(
                action, f"{value!r} is unknown{did_you_mean(str(value), known)}: needs one of {', '.join(known)}"
            )

    def format_usage(self) -> str:
        """The line of usage; where there are many options it names none of them."""
        return self._usage_line() if self.first else super().format_usage()

    def format_help(self) -> str:
        """The help: of many options the first explained and the others named, or all explained."""
        formatter = self._get_formatter()
        if not self.first:
            return super().format_help()
        formatter.add_text(self.description)
        formatter.start_section(None)
        formatter.add_arguments(self.positionals)
        formatter.end_section()
        if self.whole:
            for group in self._action_groups:
                formatter.start_section(group.title)
                formatter.add_arguments([one for one in group._group_actions if one.option_strings])
                formatter.end_section()
        else:
            formatter.start_section("what most calls need")
            formatter.add_arguments([self.options[name] for name in self.first])
            formatter.end_section()
            formatter.add_text(self._others())
        formatter.add_text(self.epilog)
        formatter.add_text(self.more if self.whole else None)
        return f"{self._usage_line()}\n{formatter.format_help()}"

    def _usage_line(self) -> str:
        forms = {"+": "{0} [{0} ...]", "?": "[{0}]"}
        told = " ".join(forms.get(str(one.nargs), "{0}").format(one.metavar) for one in self.positionals)
        return f"usage: {self.prog} {told} [options]\n"

    def _others(self) -> str:
        """The names of the options that are not explained, by their headings."""
        width = max(argparse.HelpFormatter("")._width, 40)
        lines = [f"more, which {ALL} explains:"]
        for group in self._action_groups:
            unexplained = [one for one in group._group_actions if one.option_strings and not self._is_explained(one)]
            names = [next(word for word in one.option_strings if word.startswith("--")) for one in unexplained]
            title = (group.title or "").partition(":")[0].partition(",")[0]
            if names:
                text = textwrap.wrap(" ".join(names), width - HEADING - 2 * len(INDENT), break_on_hyphens=False)
                heads = [f"{INDENT}{title}", *[""] * (len(text) - 1)]
                lines += [f"{head:{HEADING + len(INDENT)}}{INDENT}{part}" for head, part in zip(heads, text, strict=True)]
        return "\n".join(lines)

    def _is_explained(self, action: argparse.Action) -> bool:
        return isinstance(action, _HelpAll) or action.dest == "help" or bool(set(action.option_strings) & set(self.first))


def _refuse(message: str) -> NoReturn:
    raise argparse.ArgumentError(None, message)


class _HelpAll(argparse.Action):
    """Shows the help with every option explained."""

    def __init__(self, option_strings: Sequence[str], dest: str, **settings: Any) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, default=argparse.SUPPRESS, help=settings.get("help"))

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        parser.whole = True  # type: ignore[attr-defined]
        parser.print_help()
        parser.exit()


class Named(argparse.Action):
    """Takes a name, or names: those that are ``known`` are offered by shells, and others may be given."""

    def __init__(self, *arguments: Any, known: Sequence[str], **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.known = tuple(known)

    def __call__(self, _: Any, namespace: argparse.Namespace, values: Any, __: str | None = None) -> None:
        setattr(namespace, self.dest, values)


def offered(action: argparse.Action) -> list[str]:
    """What a shell may offer for an option."""
    choices, known = action.choices, getattr(action, "known", ())
    return [str(one) for one in (known if choices is None else choices)]


def add_manners(command: argparse.ArgumentParser) -> None:
    """Add what each command takes, wherever in the call it is said."""
    manners = command.add_argument_group("manners")
    manners.add_argument("--config", metavar="FILE", help="take options from a TOML file; those of the call win over them")
    loud = manners.add_mutually_exclusive_group()
    loud.add_argument("-q", "--quiet", action="store_true", help="say nothing on the way; results and errors are still given")
    loud.add_argument("-v", "--verbose", action="store_true", help="say more on the way, such as what takes how long")
    manners.add_argument("--debug", action="store_true", help="show the traceback of an error")


def add_json(command: argparse._ActionsContainer) -> None:
    """Add the choice of a result for programs."""
    command.add_argument("--json", action="store_true", help="print the result as one JSON document")
