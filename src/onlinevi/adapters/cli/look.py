"""``onlinevi look``: what the columns of a file are taken for, without learning."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from onlinevi.adapters.cli.brokers import add_brokers, follow_of
from onlinevi.adapters.cli.options import Commands, add_import, add_settings, settings_of
from onlinevi.adapters.cli.outcome import print_json
from onlinevi.adapters.cli.parser import add_json
from onlinevi.adapters.cli.voice import Voice
from onlinevi.data import Seen

EXAMPLES = """examples:
  onlinevi look flats.csv
  onlinevi look covtype.csv --no-header --target column_54
  onlinevi look umsatz.csv --encoding latin-1 --decimal , --kinds plz=category"""
SHOWN, LONGEST = 40, 32
"""Columns that a table shows, and how many characters of their names."""


def add(commands: Commands) -> None:
    command = commands.add_parser(
        "look",
        help="show what the columns of a file are taken for",
        description="What each column of a file is taken for by its first rows, as onlinevi run takes it with the same "
        "options; nothing is learned.",
        epilog=EXAMPLES,
        first=("--target", "--drop", "--kinds", "--decimal", "--delimiter", "--json"),
    )
    add_settings(command)
    add_import(command)
    add_json(command)
    add_brokers(command)
    command.set_defaults(command=_look)


def _look(options: argparse.Namespace) -> int:
    from onlinevi.adapters.cli.progress import awaited
    from onlinevi.data import first_look, open_stream
    from onlinevi.runs import Rejected

    follow = follow_of(options, [options.file])
    settings = settings_of(argparse.Namespace(**{**vars(options), "target": options.target or ""}))
    with (
        open_stream(
            options.file, bad=Rejected("skip"), skip_rows=settings.first_row, follow=follow, **settings.reading
        ) as stream,
        awaited(options.voice, options.file, settings.look),
    ):
        seen = stream.peek(settings.look)
    schema = settings.columns.learn(seen) if options.target is None else settings.schema(seen)
    columns = first_look(schema, seen)
    rows = sum(map(len, seen))
    if options.json:
        told = schema.task and schema.task.why
        print_json({"rows": rows, "task": told, "columns": [column._asdict() for column in columns]})
        return 0
    if schema.task is not None:
        print(f"{options.target}: {schema.task.why}")
    print(f"{options.file}: the first {rows:,} rows")
    print("\n".join(told_columns(columns)))
    return 0


def tell_columns(voice: Voice, columns: Sequence[Seen], look: int) -> None:
    """Say what columns were taken for, and what is odd about them; by how many rows, where there may be more."""
    if any(column.rows >= look for column in columns):
        voice.say(f"by the first {look:,} rows:")
    for line in told_columns(columns):
        voice.say(line)


def told_columns(columns: Sequence[Seen]) -> list[str]:
    """A table of what columns were taken for, and a line for each warning."""
    width = min(max([6, *(len(column.name) for column in columns)]), LONGEST)
    kinds = max([13, *(len(column.kind or "") for column in columns)])
    lines = [f"  {'column':{width}} {'taken for':{kinds}} {'missing':>8} {'distinct':>8}"] if columns else []
    for column in columns[:SHOWN]:
        kind = column.kind or "no value yet"
        name = column.name if len(column.name) <= width else f"{column.name[: width - 1]}…"
        lines.append(f"  {name:{width}} {kind:{kinds}} {column.missing:>8,} {column.distinct:>8,}")
    if len(columns) > SHOWN:
        lines.append(f"  … and {len(columns) - SHOWN:,} more; onlinevi look --json has them all")
    return lines + [f"  ! {warning}" for column in columns for warning in column.warnings]
