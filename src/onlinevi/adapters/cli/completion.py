"""``onlinevi completion``: a script by which a shell completes commands and options, made from what they are."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TypeAlias

from onlinevi.adapters.cli.options import Commands
from onlinevi.adapters.cli.outcome import print_json
from onlinevi.adapters.cli.parser import CommandParser, add_json, offered

EXAMPLES = """examples:
  onlinevi completion bash > ~/.local/share/bash-completion/completions/onlinevi
  onlinevi completion zsh > "${fpath[1]}/_onlinevi"
  onlinevi completion fish > ~/.config/fish/completions/onlinevi.fish

For this shell alone: source <(onlinevi completion bash)."""
PROGRAM = "onlinevi"
Purposes: TypeAlias = dict[str, str]
"""What each command is for, in a few words."""


def add(commands: Commands) -> None:
    command = commands.add_parser(
        "completion",
        help="print a script by which a shell completes commands and options",
        description="Print a script by which a shell completes commands, options, their choices, and files.",
        epilog=EXAMPLES,
    )
    command.add_argument("shell", choices=tuple(SCRIPTS), metavar="SHELL", help=", ".join(SCRIPTS))
    add_json(command)
    command.set_defaults(command=_completion, commands=commands)


def _completion(options: argparse.Namespace) -> int:
    purposes = {str(one.dest): str(one.help) for one in options.commands._choices_actions}
    script = SCRIPTS[options.shell](options.commands.choices, purposes)
    if options.json:
        print_json({"shell": options.shell, "script": script})
    else:
        print(script, end="")
    return 0


def _actions(command: CommandParser) -> Iterator[tuple[list[str], argparse.Action]]:
    """The long options of a command, each with its words."""
    for action in dict.fromkeys(command.options.values()):
        yield [name for name in action.option_strings if name.startswith("--")], action


def _first_words(command: CommandParser) -> list[str]:
    """What may stand where no option does: commands below, or the choices of what is told by its place."""
    return [*command.commands, *(str(one) for action in command.positionals for one in action.choices or ())]


def bash(commands: dict[str, CommandParser], _: Purposes) -> str:
    """For bash: words of each command, files where none is asked for. Names of files may hold spaces."""
    lines = [
        f"_{PROGRAM}() {{",
        "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}",
        '    local command="" one words="" first="" values=""',
        '    for one in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
        "        case $one in -*) ;; *) command=$one; break ;; esac",
        "    done",
        "    case $command in",
        f'        "") words="{" ".join([*commands, "--version", "--help"])}" ;;',
    ]
    for name, command in commands.items():
        words = " ".join(word for names, _ in _actions(command) for word in names)
        lines += [f"        {name})", f'            words="{words}" first="{" ".join(_first_words(command))}"']
        chosen = {"|".join(names): offered(action) for names, action in _actions(command) if offered(action)}
        if chosen:
            lines += ["            case $before in"]
            lines += [f'                {names}) values="{" ".join(of)}" ;;' for names, of in chosen.items()]
            lines += ["            esac"]
        lines += ["            ;;"]
    return "\n".join(
        [
            *lines,
            "    esac",
            '    if [[ -n $values ]]; then COMPREPLY=($(compgen -W "$values" -- "$word"))',
            '    elif [[ $word == -* || -z $command ]]; then COMPREPLY=($(compgen -W "$words" -- "$word"))',
            '    elif [[ -n $first ]]; then COMPREPLY=($(compgen -W "$first" -- "$word"))',
            "    else local IFS=$'\\n'; COMPREPLY=($(compgen -f -- \"$word\")); fi",
            "}",
            f"complete -o filenames -F _{PROGRAM} {PROGRAM}\n",
        ]
    )


def zsh(commands: dict[str, CommandParser], purposes: Purposes) -> str:
    """For zsh: with what each command and option is for."""
    lines = [f"#compdef {PROGRAM}", f"_{PROGRAM}() {{", "    local -a commands=("]
    lines += [f"        {_quoted(f'{name}:{purposes[name]}')}" for name in commands]
    lines += ["    )", "    if (( CURRENT == 2 )); then _describe command commands; return; fi", "    case $words[2] in"]
    for name, command in commands.items():
        lines += [f"        {name}) _arguments \\"]
        for names, action in _actions(command):
            takes = "" if action.nargs == 0 else f":{action.dest}:{_zsh_values(action)}"
            lines += [f"            {_quoted(f'{word}[{_bracketed(action.help)}]{takes}')} \\" for word in names]
        words = " ".join(_first_words(command))
        lines += [f"            {_quoted(f'*:what:({words})' if words else '*:file:_files')} ;;"]
    lines += ["    esac", "}", f"compdef _{PROGRAM} {PROGRAM}\n"]
    return "\n".join(lines)


def _zsh_values(action: argparse.Action) -> str:
    return f"({' '.join(offered(action))})" if offered(action) else "_files"


def _bracketed(text: str | None) -> str:
    """A purpose where brackets and colons mean something else."""
    return _purpose(text).replace("[", "(").replace("]", ")").replace(":", ";").replace("\\", "")


def fish(commands: dict[str, CommandParser], purposes: Purposes) -> str:
    """For fish: with what each command and option is for."""
    none = f"not __fish_seen_subcommand_from {' '.join(commands)}"
    lines = []
    for name, command in commands.items():
        lines += [f"complete -c {PROGRAM} -n {_quoted(none)} -f -a {name} -d {_quoted(purposes[name])}"]
        here = f"complete -c {PROGRAM} -n {_quoted(f'__fish_seen_subcommand_from {name}')}"
        for names, action in _actions(command):
            takes = "" if action.nargs == 0 else " -r"
            takes = f" -x -a {_quoted(' '.join(offered(action)))}" if offered(action) else takes
            lines += [f"{here} -l {word.removeprefix('--')}{takes} -d {_quoted(_purpose(action.help))}" for word in names]
        if words := _first_words(command):
            lines += [f"{here} -f -a {_quoted(' '.join(words))}"]
    return "\n".join(lines) + "\n"


def _purpose(text: str | None) -> str:
    """The first words of a description, up to where it goes into detail."""
    line = " ".join((text or "").replace("%%", "%").split())
    for end in (" (default", "; ", ": ", ". "):
        line = line.partition(end)[0]
    return line.rstrip(".")


def _quoted(text: str) -> str:
    """A word of a shell."""
    return "'" + text.replace("'", "’") + "'"


SCRIPTS = {"bash": bash, "zsh": zsh, "fish": fish}
