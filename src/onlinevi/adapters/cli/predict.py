"""``onlinevi predict``: what a model says of rows without labels."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from pathlib import Path

from onlinevi.adapters.cli.parser import Commands, bad_rows


def add(commands: Commands) -> None:
    command = commands.add_parser(
        "predict",
        help="what a model says of the rows of a file",
        description="Predict the rows of a file with a model that onlinevi run wrote. Labels are not read.",
        epilog="example: onlinevi predict out/model.ovi new.csv -o said.csv",
    )
    command.add_argument("model", type=Path, metavar="MODEL", help="model.ovi, or the checkpoint, of a run")
    command.add_argument("file", metavar="FILE", help="with the columns of the run's file; - is standard input")
    command.add_argument(
        "-o", "--out", type=Path, metavar="OUT", help=".csv, .ndjson, .parquet or .arrow (default: CSV to standard output)"
    )
    command.add_argument("--bad-rows", default="stop", metavar="WHAT", help="stop, skip, or a file for them (default: stop)")
    command.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> int:
    from onlinevi.data import open_stream
    from onlinevi.runs import (
        LeftOut,
        TextTable,
        absent_columns,
        check_format,
        columns_of,
        load_job,
        open_table,
        predict_stream,
    )

    if options.out is not None:
        check_format(options.out)
    job, left_out = load_job(options.model), LeftOut(options.bad_rows)
    with open_stream(options.file, bad=left_out) as stream, closing(left_out):
        if absent := absent_columns(job, stream):
            print(f"not in {options.file}, so missing in every row: {', '.join(absent)}", file=sys.stderr)
        columns = columns_of(job.kind, labels=False)
        if options.out is None:
            table = TextTable(columns, sys.stdout.write)
            table.head()
            predict_stream(job, stream, table, left_out)
        else:
            with closing(open_table(options.out, columns)) as file:
                try:
                    predict_stream(job, stream, file, left_out)
                finally:  # the rows before a bad one, or before Ctrl-C
                    file.finish()
        left_out.settle()
    if left_out.count:
        print(bad_rows(left_out.count) + " left out", file=sys.stderr)
    return 0
