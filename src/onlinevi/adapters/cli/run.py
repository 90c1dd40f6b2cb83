"""``onlinevi run``: learn from a file or a pipe in one pass."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack, redirect_stdout
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from onlinevi.adapters.cli.options import (
    OF_YOURS,
    SETTINGS,
    WITH_SETTINGS,
    Commands,
    add_effort,
    add_expand,
    add_family,
    add_import,
    add_settings,
    make_directory,
    rules,
    settings_of,
    tell_columns,
)
from onlinevi.adapters.cli.outcome import WRITTEN, print_results, write_results
from onlinevi.adapters.cli.shards import add_shards, asks_for_shards, run_shards
from onlinevi.runs import STANDARD_OUTPUT, Settings, load_job

EXAMPLES = """examples:
  onlinevi run patients.csv --target diagnosis --out out
  tail -f clicks.ndjson | onlinevi run - --target clicked --predictions predictions.ndjson
  onlinevi run flats.parquet --target price --task quantile --level 0.5 --predictions predictions.parquet
  onlinevi run big.csv.gz --target price --checkpoint price.ovi --resume    # the same call starts it and goes on after a stop
  onlinevi run tuesday.csv --from monday/model.ovi --out tuesday            # goes on with what a model has learned
  onlinevi run 'part-*.parquet' --target price --workers 4 --out out        # shards side by side, as one model
  onlinevi run big.parquet --target price --dask tcp://host:8786 --out out  # its row groups, on a cluster

A stop by Ctrl-C or SIGTERM waits for the batch, writes what is known, and exits with 130 or 143. A bad row with
--bad-rows stop does the same and exits with 2."""


def add(commands: Commands) -> None:
    command = commands.add_parser(
        "run",
        help="learn from a file or a pipe in one pass",
        description="Predict each row of a file before its label is seen, then learn from it, in memory that does not grow.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_settings(command, shards=True)
    learner = command.add_argument_group("learner")
    rule = learner.add_mutually_exclusive_group()
    rule.add_argument(
        "--rule",
        metavar="NAME",
        default="auto",
        help=f"{', '.join(rules())}, {OF_YOURS}; {WITH_SETTINGS}; auto needs nothing set, the others are one rule on the same "
        "prepared rows (default: auto)",
    )
    rule.add_argument("--auto", dest="rule", action="store_const", const="auto", help="the same as --rule auto")
    add_family(learner)
    learner.add_argument(
        "--ball",
        type=float,
        metavar="R",
        help="keep the weights of a rule in the ball of radius R about 0, all of them together (default: each in [−20, 20]; "
        "of implicit anywhere)",
    )
    add_effort(learner)
    add_expand(learner)
    add_import(learner)
    learner.add_argument(
        "--from",
        dest="after",
        type=Path,
        metavar="MODEL",
        help="begin with what a model has learned, and go on with the rows of FILE: its settings, its columns by their names, "
        "and new ones join",
    )
    learner.add_argument(
        "--prepare-like", metavar="MODEL", help="take columns and their scales from a model and keep them; for onlinevi merge"
    )
    files = command.add_argument_group("what to write")
    files.add_argument("--out", type=Path, metavar="DIR", help="the directory to write run.json, model.ovi and report.html to")
    files.add_argument(
        "--predictions",
        type=Path,
        metavar="FILE",
        help="the file for what was predicted of each row before its label was used: .csv, .ndjson, .parquet or .arrow; - is "
        "standard output, as CSV",
    )
    files.add_argument(
        "--checkpoint",
        type=Path,
        metavar="FILE",
        help="the file for all that is learned, to go on from and to predict with (default: DIR/model.ovi)",
    )
    files.add_argument("--every", type=int, default=100_000, metavar="N", help="rows between checkpoints (default: 100000)")
    going_on = files.add_mutually_exclusive_group()
    going_on.add_argument("--resume", action="store_true", help="go on from the checkpoint, if there is one")
    going_on.add_argument("--overwrite", action="store_true", help="start anew in the place of a run that was stopped")
    files.add_argument(
        "--hindsight",
        action=argparse.BooleanOptionalAction,
        help="read the file once more for the best fixed weights and the regret against them; for any size, in memory that "
        "grows with the rows (default: where they have at most 2,097,152 values in 128 columns)",
    )
    files.add_argument("--json", action="store_true", help="print the summary as one JSON object")
    add_shards(command)
    command.set_defaults(command=_run, unset=command.get_default)


def _run(options: argparse.Namespace) -> int:
    if asks_for_shards(options):
        return run_shards(options)
    (options.file,) = options.file
    from onlinevi.adapters.cli.progress import Ticker, awaited, say_compiling
    from onlinevi.runs import (
        InHindsight,
        Places,
        Run,
        Stopped,
        Stopper,
        bad_rows_file,
        look_back,
        refuse_overwriting,
        results_of,
        warm_for,
    )

    checkpoint = options.checkpoint or (options.out / "model.ovi" if options.out is not None else None)
    refuse_overwriting(
        {"FILE": options.file, "--from": options.after, "--prepare-like": options.prepare_like},
        {
            "--predictions": options.predictions,
            "--checkpoint": checkpoint,
            "--bad-rows": bad_rows_file(options.bad_rows),
            **{f"--out {name}:": options.out / name for name in WRITTEN if options.out is not None},
        },
    )
    settings = _settings(options)
    make_directory(options.out)
    places = Places(options.file, checkpoint, options.predictions, options.bad_rows, options.every)
    stopper = Stopper()
    with stopper.listening(), ExitStack() as stack:
        try:
            with stopper.waiting(), awaited(options.file, settings.look):
                run = stack.enter_context(
                    Run(settings, places, resume=options.resume, overwrite=options.overwrite, after=options.after)
                )
            job = run.job
            if run.resumed or run.begun_with:
                print(f"{'resumed' if run.resumed else 'goes on'} behind {run.begun_with:,} events", file=sys.stderr)
            else:
                print(f"{settings.target}: {job.why}", file=sys.stderr)
                tell_columns(run.columns)
            with stopper.waiting():
                warm_for(job, run.stream, say_compiling)
        except Stopped:
            print("stopped before the first row", file=sys.stderr)
            return stopper.code
        job.notes.setdefault("started", datetime.now(UTC).isoformat(timespec="seconds"))
        job.notes.setdefault("command", "onlinevi " + " ".join(options.arguments))
        ticker = Ticker(options.file, job.metrics.count) if sys.stderr.isatty() else None
        ended, why = run.go(stopper, ticker)
        back = InHindsight()
        if ended == "end" and job.metrics.count and options.hindsight is not False:
            if ticker is not None:
                ticker.say("looking for the best in hindsight; Ctrl-C leaves it out")
            back = look_back(job, options.file, stopper, any_size=options.hindsight is True)
        if ticker is not None:
            ticker.end()
        document = results_of(job, ended, back).to_json()
    if back.why and options.hindsight:
        print(f"no best in hindsight: {back.why}", file=sys.stderr)
    if why is not None:
        print(f"onlinevi: {why}", file=sys.stderr)
    elif not document["summary"]["events"]:
        raise ValueError(f"{options.file} has no row that can be used")
    paths = write_results(options.out, document) if options.out is not None else []
    # What is said of the run does not go among its predictions.
    said = sys.stderr if str(options.predictions) == STANDARD_OUTPUT else sys.stdout
    with redirect_stdout(said):
        print_results(document, paths, as_json=options.json)
    return 2 if why is not None else stopper.code


def _settings(options: argparse.Namespace) -> Settings:
    """What the options ask for; behind a model its own, and none that are others."""
    if options.after is None:
        chosen = settings_of(options, options.rule, options.family, options.expand)
        return replace(chosen, prepare_like=options.prepare_like, ball=options.ball)
    first, end = options.rows
    kept = load_job(options.after).settings
    for name in (*SETTINGS, "rule", "family", "ball", "expand", "prepare_like"):
        asked, was = getattr(options, name), getattr(kept, name)
        if asked not in (was, options.unset(name)):
            raise ValueError(
                f"{options.after} was made with {name}={was!r}, not {asked!r}: leave it out, or start without --from"
            )
    return replace(kept, first_row=first, end_row=end)
