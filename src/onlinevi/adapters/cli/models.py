"""``onlinevi predict``, ``info``, ``merge`` and ``report``: what is done with what a run has left."""

from __future__ import annotations

import argparse
import json
from contextlib import closing
from pathlib import Path

from onlinevi.adapters.cli.brokers import add_brokers, follow_of
from onlinevi.adapters.cli.options import Commands, add_bad_rows, add_beside, add_import
from onlinevi.adapters.cli.outcome import bad_rows, print_json
from onlinevi.adapters.cli.parser import add_json
from onlinevi.adapters.cli.voice import between_words

SHOWN = 30
"""Weights that ``info`` prints."""

MERGE_EXAMPLES = """example: onlinevi merge a/model.ovi b/model.ovi -o both.ovi

The second shard takes over how the first has prepared its columns:
  onlinevi run big.csv --target price --rule implicit --rows 0:500000 --out a
  onlinevi run big.csv --target price --rule implicit --rows 500000: \\
      --prepare-like a/model.ovi --out b

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
    add_beside(command)
    add_bad_rows(command)
    add_import(command)
    add_json(command)
    add_brokers(command)
    command.set_defaults(command=_predict)


def _predict(options: argparse.Namespace) -> int:
    from onlinevi.data import open_stream
    from onlinevi.runs import (
        Asked,
        JSONRows,
        Layout,
        Rejected,
        TextTable,
        absent_columns,
        bad_rows_file,
        cells_as_missing,
        check_format,
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
    job, rejected, follow = load_job(options.model), Rejected(options.bad_rows), follow_of(options, [options.file])
    with closing(rejected), open_stream(options.file, bad=rejected, follow=follow, **job.settings.reading) as stream:
        rejected.place_of = stream.place
        if absent := absent_columns(job, stream):
            options.voice.say(f"not in {options.file}, so missing in every row: {', '.join(absent)}")
        layout = Layout(job, Asked(options.keep_columns, options.explain), stream, labels=False)
        columns = layout.columns
        if options.out is None:
            table = (JSONRows if options.json else TextTable)(columns, print_rows)
            table.head()
            predict_stream(job, stream, table, rejected, layout)
        else:
            with closing(open_table(options.out, columns)) as file:
                try:
                    predict_stream(job, stream, file, rejected, layout)
                finally:  # the rows before a bad one, or before Ctrl-C
                    file.finish()
        rejected.settle()
    if options.json:
        facts = {"bad_rows": rejected.count, "cells_as_missing": rejected.as_missing}
        if options.out is not None:
            print_json(facts | {"wrote": [str(options.out)]})
        elif isinstance(table, JSONRows):
            table.end(**facts)
    if rejected.count:
        options.voice.say(bad_rows(rejected.count) + " left out")
    if rejected.as_missing:
        options.voice.say(cells_as_missing(rejected.as_missing))
    return 0


def _add_info(commands: Commands) -> None:
    command = commands.add_parser(
        "info",
        help="show what a model has learned",
        description="What a model that onlinevi run wrote has learned, from what, how well, and what is certain of it.",
        epilog="example: onlinevi info out/model.ovi --json",
    )
    command.add_argument("model", type=Path, metavar="MODEL", help="model.ovi, or the checkpoint, of a run")
    add_json(command)
    add_import(command)
    command.set_defaults(command=_info)


def _info(options: argparse.Namespace) -> int:
    from onlinevi.runs import charts, load_job, summarise

    facts = summarise(load_job(options.model))
    if options.json:
        print_json(facts)
        return 0
    print(f"{facts['task']['sentence']}.")
    loss, left_out = charts.number(facts["average_loss"]), bad_rows(facts["bad_rows"])
    print(f"{facts['events']:,} events, average loss {loss}; {left_out} left out.")
    if facts["beside"]:
        print(between_words(facts["beside"]))
    print("Settings: " + ", ".join(f"{name} {value}" for name, value in facts["learner"].items()) + ".")
    started = f", started {facts['started']}" if facts["started"] else ""
    print(f"Learned from {' + '.join(facts['learned_from'])}{started}.")
    print(between_words(facts["certificate"]["sentence"]))
    if facts["risk"] and facts["risk"]["sentence"]:
        print(between_words(facts["risk"]["sentence"]))
    _print_parts(
        "How much each column matters, its share in the variance of what is predicted",
        "the most",
        [(part["name"], f"{100.0 * part['value']:>10.1f} % ± {100.0 * part['std']:.1f}") for part in facts["importance"]],
    )
    _print_parts(
        "Weights in the units of the data",
        "the surest",
        [
            (f"{weight['class']}: {weight['name']}" if "class" in weight else weight["name"], _of_weight(weight))
            for weight in facts["weights"]
            if "mean" in weight  # those of features of columns are not to be read one by one
        ],
    )
    return 0


def _of_weight(weight: dict[str, float]) -> str:
    from onlinevi.runs import charts

    return charts.uncertain(weight["mean"], weight["std"]).rjust(21)


def _print_parts(what: str, which: str, parts: list[tuple[str, str]]) -> None:
    """A title, and names with what is told of each; nothing where there is nothing."""
    if parts:
        print(f"\n{what}{f', {which} first' if len(parts) > 1 else ''}:")
    for name, told in parts[:SHOWN]:
        print(f"  {name:32} {told}")
    if len(parts) > SHOWN:
        print(f"  … and {len(parts) - SHOWN:,} more; --json has them all")


def _add_merge(commands: Commands) -> None:
    command = commands.add_parser(
        "merge",
        help="make one model of those of several parts of the data",
        description="Add up what models have learned from different rows: prior + Σ (model − prior) in natural parameters.",
        epilog=MERGE_EXAMPLES,
    )
    command.add_argument("models", nargs="+", type=Path, metavar="MODEL", help="model.ovi of a run, or a merge")
    command.add_argument("-o", "--out", type=Path, required=True, metavar="OUT", help="the model to write")
    add_import(command)
    add_json(command)
    command.set_defaults(command=_merge)


def _merge(options: argparse.Namespace) -> int:
    from onlinevi.runs import load_job, merge_jobs, refuse_overwriting, save_job

    refuse_overwriting({str(path): path for path in options.models}, {"-o": options.out})
    merged = merge_jobs({str(path): load_job(path) for path in options.models})
    save_job(options.out, merged)
    if options.json:
        print_json({"events": merged.state.count, "shards": len(merged.merged), "wrote": [str(options.out)]})
        return 0
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
    add_json(command)
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
    if options.json:
        print_json({"wrote": [str(page)]})
    else:
        print(page)
    return 0
