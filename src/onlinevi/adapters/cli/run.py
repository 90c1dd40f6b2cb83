"""``onlinevi run``: learn from a file or a pipe in one pass."""

from __future__ import annotations

import argparse
import shlex
import sys
from contextlib import ExitStack, redirect_stdout
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from onlinevi.adapters.cli.brokers import add_brokers, follow_of
from onlinevi.adapters.cli.late import add_late, every, wait_of
from onlinevi.adapters.cli.look import tell_columns
from onlinevi.adapters.cli.options import (
    OF_YOURS,
    SETTINGS,
    WITH_SETTINGS,
    Commands,
    add_beside,
    add_effort,
    add_expand,
    add_family,
    add_import,
    add_settings,
    costs_of,
    rules,
    settings_of,
)
from onlinevi.adapters.cli.outcome import WRITTEN, make_directory, print_results, write_results
from onlinevi.adapters.cli.parser import Named, add_json
from onlinevi.adapters.cli.shards import add_shards, asks_for_shards, run_shards
from onlinevi.adapters.cli.voice import versions
from onlinevi.runs import STANDARD_OUTPUT, Job, Settings, load_job

EXAMPLES = """examples:
  onlinevi run patients.csv --target diagnosis --out out
  onlinevi run big.csv.gz --target price --out out --resume
  onlinevi run tuesday.csv --from monday/model.ovi --out tuesday
  tail -f clicks.ndjson | onlinevi run - --target clicked --predictions -

A stop by Ctrl-C or SIGTERM waits for the batch, writes what is known, and exits with 130 or 143. A bad row with
--bad-rows stop does the same and exits with 2."""

MORE = """more examples:
  onlinevi run flats.parquet --target price --task quantile --level 0.5
  onlinevi run shown.csv --labels clicks.csv --target clicked --key id \\
      --time when --within 30m --otherwise 0
  onlinevi run kafka://localhost:9092/clicks --target clicked --out out --resume
  onlinevi run 'part-*.parquet' --target price --workers 4 --out out
  onlinevi run big.parquet --target price --dask tcp://host:8786 --out out

Files that a pattern fits are shards, learned from side by side as one model; with --dask a file's row groups are."""

FIRST = ("--target", "--task", "--drop", "--out", "--predictions", "--resume")
"""What help explains first: what most calls need."""


def add(commands: Commands) -> None:
    command = commands.add_parser(
        "run",
        help="learn from a file or a pipe in one pass",
        description="Predict each row of a file before its label is seen, then learn from it, in memory that does not grow.",
        epilog=EXAMPLES,
        more=MORE,
        first=FIRST,
    )
    add_settings(command, shards=True)
    learner = command.add_argument_group("learner")
    rule = learner.add_mutually_exclusive_group()
    rule.add_argument(
        "--rule",
        action=Named,
        known=rules(),
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
        metavar="FILE",
        help="the file for what was predicted of each row before its label was used: .csv, .ndjson, .parquet or .arrow; - is "
        "standard output, as CSV; or a topic or stream, as kafka://localhost:9092/said",
    )
    add_beside(files)
    files.add_argument(
        "--checkpoint",
        type=Path,
        metavar="FILE",
        help="the file for all that is learned, to go on from and to predict with (default: DIR/model.ovi)",
    )
    files.add_argument(
        "--every",
        type=every,
        default="100000",
        metavar="N",
        help="rows between checkpoints, or seconds as 10s, or both as 100000,10s: whichever comes first (default: 100000)",
    )
    going_on = files.add_mutually_exclusive_group()
    going_on.add_argument("--resume", action="store_true", help="go on from the checkpoint, if there is one")
    going_on.add_argument("--overwrite", action="store_true", help="start anew in the place of a run that was stopped")
    files.add_argument(
        "--hindsight",
        action=argparse.BooleanOptionalAction,
        help="read the file once more for the best fixed weights and the regret against them; for any size, in memory that "
        "grows with the rows (default: where they have at most 2,097,152 values in 128 columns)",
    )
    files.add_argument(
        "--metrics-port",
        type=int,
        metavar="N",
        help="a port of this machine where Prometheus reads how the run goes, at /metrics; 0 takes a free one",
    )
    add_json(files)
    add_brokers(command)
    add_late(command)
    add_shards(command)
    command.set_defaults(command=_run, unset=command.get_default)


def _run(options: argparse.Namespace) -> int:
    if asks_for_shards(options):
        return run_shards(options)
    (options.file,) = options.file
    from onlinevi.adapters.cli.endless import Exporter, Rewriter
    from onlinevi.adapters.cli.progress import all_of, awaited, ticker_for
    from onlinevi.runs import (
        Asked,
        InHindsight,
        Places,
        Run,
        Stopped,
        Stopper,
        bad_rows_file,
        look_back,
        place_of,
        refuse_overwriting,
        results_of,
        warm_for,
        weighing,
    )

    predictions = None if options.predictions is None else place_of(options.predictions)
    checkpoint = options.checkpoint or (options.out / "model.ovi" if options.out is not None else None)
    refuse_overwriting(
        {
            "FILE": options.file,
            "--labels": options.labels,
            "--cost": options.cost,
            "--from": options.after,
            "--prepare-like": options.prepare_like,
        },
        {
            "--predictions": predictions,
            "--checkpoint": checkpoint,
            "--bad-rows": bad_rows_file(options.bad_rows),
            **{f"--out {name}:": options.out / name for name in WRITTEN if options.out is not None},
        },
    )
    voice, settings = options.voice, _settings(options)
    follow = follow_of(options, [options.file, options.labels])
    make_directory(options.out)
    asked = Asked(options.keep_columns, options.explain)
    rows, seconds = options.every
    beside = {"labels": options.labels, "every_seconds": seconds}
    places = Places(options.file, checkpoint, predictions, options.bad_rows, rows, asked, follow=follow, **beside)
    stopper = Stopper()
    with stopper.listening(), ExitStack() as stack:
        exporter = None if options.metrics_port is None else stack.enter_context(Exporter(options.metrics_port))
        if exporter is not None:
            voice.say(f"metrics at {exporter.address}")
        try:
            with stopper.waiting(), awaited(voice, options.file, settings.look):
                run = stack.enter_context(
                    Run(settings, places, resume=options.resume, overwrite=options.overwrite, after=options.after)
                )
            job = run.job
            if run.resumed or run.begun_with:
                voice.say(f"{'resumed' if run.resumed else 'goes on'} behind {run.begun_with:,} events")
            else:
                voice.say(f"{settings.target}: {job.why}")
                if settings.weighs:
                    voice.say(f"weights of rows: {weighing(job)}")
                tell_columns(voice, run.columns, settings.look)
            with stopper.waiting():
                warm_for(job, run.stream, voice.compiling)
        except Stopped:
            print("stopped before the first row", file=sys.stderr)
            return stopper.code
        job.notes.setdefault("started", datetime.now(UTC).isoformat(timespec="seconds"))
        job.notes.setdefault("command", shlex.join(["onlinevi", *options.arguments]))
        voice.detail(versions())
        ticker = ticker_for(voice, options.file, job.metrics.count, options.rows)
        rewriter = None if options.out is None else Rewriter(options.out)
        if exporter is not None and run.resumed:
            exporter.publish(job)
        watchers = [ticker, None if exporter is None else lambda job, _: exporter.publish(job), rewriter]
        watch = all_of([one for one in watchers if one is not None])
        ended, why = run.go(stopper, watch, None if rewriter is None else rewriter.saved)
        if ticker is not None:
            ticker.done(job, all_read=ended == "end")
        back = InHindsight()
        if ended == "end" and job.metrics.count and options.hindsight is not False:
            with voice.meanwhile("looking for the best in hindsight; Ctrl-C leaves it out"):
                back = look_back(job, options.file, stopper, any_size=options.hindsight is True)
        document = results_of(job, ended, back).to_json()
    if back.why and options.hindsight:
        print(f"no best in hindsight: {back.why}", file=sys.stderr)
    if why is not None:
        print(f"onlinevi: {why}", file=sys.stderr)
    elif not document["summary"]["events"] and not (stopper.code and settings.wait):
        raise ValueError(_nothing(options, job))
    paths = write_results(options.out, document) if options.out is not None else []
    # What is said of the run does not go among its predictions.
    said = sys.stderr if str(options.predictions) == STANDARD_OUTPUT else sys.stdout
    with redirect_stdout(said):
        print_results(document, paths, as_json=options.json)
    return 2 if why is not None else stopper.code


def _nothing(options: argparse.Namespace, job: Job) -> str:
    """Why a run has come to its end and has learned nothing."""
    if job.late is None or job.position is None:
        return f"{options.file} has no row that can be used"
    return (
        f"no row of {options.file} has had its label from {options.labels}: {len(job.late.rows):,} rows and "
        f"{len(job.late.labels):,} labels wait still; is --key the same in both, and --time?"
    )


def _settings(options: argparse.Namespace) -> Settings:
    """What the options ask for; behind a model its own, and none that are others."""
    if options.after is None:
        chosen = settings_of(options, options.rule, options.family, options.expand)
        return replace(chosen, prepare_like=options.prepare_like, ball=options.ball, wait=wait_of(options))
    first, end = options.rows
    kept = load_job(options.after).settings
    if (wait := wait_of(options, kept)) != kept.wait:
        raise ValueError(
            f"{options.after} was made with labels {kept.wait or 'in its rows'}, not {wait or 'in theirs'}: "
            "ask for the same, or start without --from"
        )
    for name in (*SETTINGS, "rule", "family", "ball", "expand", "prepare_like"):
        asked, was = costs_of(options) if name == "cost" else getattr(options, name), getattr(kept, name)
        if asked not in (was, options.unset(name)):
            raise ValueError(
                f"{options.after} was made with {name}={was!r}, not {asked!r}: leave it out, or start without --from"
            )
    return replace(kept, first_row=first, end_row=end)
