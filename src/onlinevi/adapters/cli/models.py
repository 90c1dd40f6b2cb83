"""``onlinevi predict``, ``info``, ``merge`` and ``report``: what is done with what a run has left."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import closing
from pathlib import Path

from onlinevi.adapters.cli.options import Commands, add_bad_rows, add_import, bad_rows

SHOWN = 30
"""Weights that ``info`` prints."""

MERGE_EXAMPLES = """example: onlinevi merge a/model.ovi b/model.ovi -o both.ovi

The second shard takes over how the first has prepared its columns:
  onlinevi run big.csv --target price --rule implicit --rows 0:500000 --out a
  onlinevi run big.csv --target price --rule implicit --rows 500000: --prepare-like a/model.ovi --out b

Refused: different priors, columns or ways to prepare them, and shards with rows in common."""


def add(commands: Commands) -> None:
    _add_predict(commands)
    _add_info(commands)
    _add_merge(commands)
    _add_report(commands)


def _add_predict(commands: Commands) -> None:
    command = commands.add_parser(
        "predict",
        help="predict the rows of a file with a model",
        description="Predict the rows of a file with a model that onlinevi run wrote. Labels are not read.",
        epilog="example: onlinevi predict out/model.ovi new.csv -o predictions.csv",
    )
    command.add_argument("model", type=Path, metavar="MODEL", help="model.ovi, or the checkpoint, of a run")
    command.add_argument("file", metavar="FILE", help="with the columns of the run's file; - is standard input")
    command.add_argument(
        "-o", "--out", type=Path, metavar="OUT", help=".csv, .ndjson, .parquet or .arrow (default: CSV to standard output)"
    )
    add_bad_rows(command)
    add_import(command)
    command.set_defaults(command=_predict)


def _predict(options: argparse.Namespace) -> int:
    from onlinevi.data import open_stream
    from onlinevi.runs import (
        Rejected,
        TextTable,
        absent_columns,
        bad_rows_file,
        cells_as_missing,
        check_format,
        columns_of,
        load_job,
        open_table,
        predict_stream,
        print_rows,
        refuse_overwriting,
    )

    check_format(options.out)
    refuse_overwriting(
        {"MODEL": options.model, "FILE": options.file}, {"-o": options.out, "--bad-rows": bad_rows_file(options.bad_rows)}
    )
    job, rejected = load_job(options.model), Rejected(options.bad_rows)
    job.take_odd(rejected.odd)
    with closing(rejected), open_stream(options.file, bad=rejected, **job.settings.reading) as stream:
        if absent := absent_columns(job, stream):
            print(f"not in {options.file}, so missing in every row: {', '.join(absent)}", file=sys.stderr)
        columns = columns_of(job.kind, labels=False)
        if options.out is None:
            table = TextTable(columns, print_rows)
            table.head()
            predict_stream(job, stream, table, rejected)
        else:
            with closing(open_table(options.out, columns)) as file:
                try:
                    predict_stream(job, stream, file, rejected)
                finally:  # the rows before a bad one, or before Ctrl-C
                    file.finish()
        rejected.settle()
    if rejected.count:
        print(bad_rows(rejected.count) + " left out", file=sys.stderr)
    if rejected.as_missing:
        print(cells_as_missing(rejected.as_missing), file=sys.stderr)
    return 0


def _add_info(commands: Commands) -> None:
    command = commands.add_parser(
        "info",
        help="show what a model has learned",
        description="What a model that onlinevi run wrote has learned, from what, how well, and what is certain of it.",
        epilog="example: onlinevi info out/model.ovi --json",
    )
    command.add_argument("model", type=Path, metavar="MODEL", help="model.ovi, or the checkpoint, of a run")
    command.add_argument("--json", action="store_true", help="print everything as one JSON object")
    add_import(command)
    command.set_defaults(command=_info)


def _info(options: argparse.Namespace) -> int:
    from onlinevi.runs import load_job, summarise

    facts = summarise(load_job(options.model))
    if options.json:
        print(json.dumps(facts, ensure_ascii=False))
        return 0
    print(f"{facts['task']['sentence']}.")
    print(f"{facts['events']:,} events, average loss {facts['average_loss']:.4g}; {bad_rows(facts['bad_rows'])} left out.")
    print("Settings: " + ", ".join(f"{name} {value}" for name, value in facts["learner"].items()) + ".")
    print(f"Learned from {' + '.join(facts['learned_from'])}, started {facts['started']}.")
    print(facts["certificate"]["sentence"])
    if facts["risk"] and facts["risk"]["sentence"]:
        print(facts["risk"]["sentence"])
    mapped = any("importance" in weight for weight in facts["weights"])
    what = "How much each column matters, Σ |weight| of its features" if mapped else "Weights in the units of the data"
    order = ("the largest" if mapped else "the surest") + " first"
    print(f"\n{what}{f', {order}' if len(facts['weights']) > 1 else ''}:")
    for weight in facts["weights"][:SHOWN]:
        name = f"{weight['class']}: {weight['name']}" if "class" in weight else weight["name"]
        size = f"{weight['importance']:>12.4g}" if mapped else f"{weight['mean']:>12.4g} ± {weight['std']:.2g}"
        print(f"  {name:32} {size}")
    if len(facts["weights"]) > SHOWN:
        print(f"  … and {len(facts['weights']) - SHOWN:,} more; --json has them all")
    return 0


def _add_merge(commands: Commands) -> None:
    command = commands.add_parser(
        "merge",
        help="make one model of those of several parts of the data",
        description="Add up what models have learned from different rows: prior + Σ (model − prior) in natural parameters.",
        epilog=MERGE_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("models", nargs="+", type=Path, metavar="MODEL", help="model.ovi of a run, or a merge")
    command.add_argument("-o", "--out", type=Path, required=True, metavar="OUT", help="the model to write")
    add_import(command)
    command.set_defaults(command=_merge)


def _merge(options: argparse.Namespace) -> int:
    from onlinevi.runs import load_job, merge_jobs, refuse_overwriting, save_job

    refuse_overwriting({str(path): path for path in options.models}, {"-o": options.out})
    merged = merge_jobs({str(path): load_job(path) for path in options.models})
    save_job(options.out, merged)
    print(f"{merged.state.count:,} events of {len(merged.merged)} shards; wrote {options.out}.")
    return 0


def _add_report(commands: Commands) -> None:
    command = commands.add_parser(
        "report",
        help="make a run's page again",
        description="Write DIR/report.html from DIR/run.json, for a run made where plotly was not installed.",
        epilog='example: onlinevi report out    (needs plotly: pip install "onlinevi[report]")',
    )
    command.add_argument("dir", type=Path, metavar="DIR", help="the --out of a run")
    command.set_defaults(command=_report)


def _report(options: argparse.Namespace) -> int:
    from onlinevi.runs import write_report

    source = options.dir / "run.json"
    if not source.exists():
        raise ValueError(f"{source} is not there: name the directory that onlinevi run had as --out")
    try:
        page = write_report(json.loads(source.read_text(encoding="utf-8")), options.dir / "report.html")
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"{source} is not as onlinevi run wrote it ({type(error).__name__}: {error}): run again") from error
    print(page)
    return 0
