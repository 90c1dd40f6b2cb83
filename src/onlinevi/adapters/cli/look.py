"""``onlinevi look``: what the columns of a file are taken for, without learning."""

from __future__ import annotations

import argparse
import json

from onlinevi.adapters.cli.options import Commands, add_settings, settings_of, told_columns

EXAMPLES = """examples:
  onlinevi look flats.csv
  onlinevi look covtype.csv --no-header --target column_54
  onlinevi look umsatz.csv --encoding latin-1 --decimal , --kinds plz=category"""


def add(commands: Commands) -> None:
    command = commands.add_parser(
        "look",
        help="show what the columns of a file are taken for",
        description="What each column of a file is taken for by its first rows, as onlinevi run takes it with the same "
        "options; nothing is learned.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_settings(command)
    command.add_argument("--json", action="store_true", help="print it as one JSON object")
    command.set_defaults(command=_look)


def _look(options: argparse.Namespace) -> int:
    from onlinevi.adapters.cli.progress import awaited
    from onlinevi.data import first_look, open_stream
    from onlinevi.runs import Rejected

    settings = settings_of(argparse.Namespace(**{**vars(options), "target": options.target or ""}))
    with (
        open_stream(options.file, bad=Rejected("skip"), skip_rows=settings.first_row, **settings.reading) as stream,
        awaited(options.file, settings.look),
    ):
        seen = stream.peek(settings.look)
    schema = settings.columns.learn(seen) if options.target is None else settings.schema(seen)
    columns = first_look(schema, seen)
    rows = sum(map(len, seen))
    if options.json:
        facts = {"rows": rows, "task": schema.task and schema.task.why, "columns": [column._asdict() for column in columns]}
        print(json.dumps(facts, ensure_ascii=False))
        return 0
    if schema.task is not None:
        print(f"{options.target}: {schema.task.why}")
    print(f"{options.file}: the first {rows:,} rows")
    print("\n".join(told_columns(columns)))
    return 0
