"""``onlinevi run``: learn from a file or a pipe in one pass."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import ExitStack
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

from onlinevi.cli.parser import Commands, bad_rows

EXAMPLES = """examples:
  onlinevi run patients.csv --target diagnosis --out out
  tail -f clicks.ndjson | onlinevi run - --target clicked --predictions said.csv
  onlinevi run big.csv.gz --target price --checkpoint price.ovi --resume    # the same call starts it and goes on after a stop

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
    command.add_argument(
        "file", metavar="FILE", help="CSV, NDJSON, Parquet, Arrow or LIBSVM, packed or not; - is standard input"
    )
    command.add_argument("--target", required=True, metavar="COL", help="the column to predict; label in LIBSVM files")
    command.add_argument(
        "--task",
        choices=("classes", "numbers", "counts", "quantile"),
        help="default: by the labels; say classes where they are codes such as 1, 2, 3",
    )
    command.add_argument(
        "--loss", choices=("logistic", "hinge", "squared", "absolute", "poisson", "pinball"), help="default: the task's"
    )
    command.add_argument("--level", type=float, default=0.9, metavar="P", help="of the quantile (default: 0.9)")
    command.add_argument(
        "--rule",
        choices=("auto", "sva", "svb", "ngvi", "oga", "oga-el", "implicit"),
        default="auto",
        help="auto needs nothing set; the others are one rule, on the same prepared rows (default: auto)",
    )
    command.add_argument("--out", type=Path, metavar="DIR", help="for run.json, model.ovi and report.html")
    command.add_argument(
        "--predictions", type=Path, metavar="FILE", help="each prediction, made before its label; .csv, .ndjson"
    )
    command.add_argument(
        "--bad-rows", default="stop", metavar="WHAT", help="stop, skip, or a file to write them to (default: stop)"
    )
    command.add_argument("--drop", type=_names, default=(), metavar="A,B", help="columns to leave out")
    command.add_argument("--keep", type=_names, default=(), metavar="A,B", help="the only columns to use")
    command.add_argument("--missing", choices=("nan", "zero", "refuse"), default="nan", help="missing values (default: nan)")
    command.add_argument("--delay", type=int, default=0, metavar="N", help="labels come N rows late (default: 0)")
    command.add_argument(
        "--rows", type=_range, default=(0, None), metavar="A:B", help="only rows A to B − 1, counted from 0 (default: all)"
    )
    command.add_argument(
        "--prepare-like", metavar="MODEL", help="take columns and their scales from a model and keep them; for onlinevi merge"
    )
    command.add_argument("--checkpoint", type=Path, metavar="FILE", help="default: DIR/model.ovi with --out")
    command.add_argument("--every", type=int, default=100_000, metavar="N", help="rows between checkpoints (default: 100000)")
    command.add_argument("--resume", action="store_true", help="go on from the checkpoint, if there is one")
    command.add_argument(
        "--hindsight",
        action=argparse.BooleanOptionalAction,
        help="read the file once more for the best fixed weights and the regret against them; for any size, in memory that "
        "grows with the rows (default: where they have at most 2,097,152 values in 128 columns)",
    )
    command.add_argument("--json", action="store_true", help="print the summary as one JSON object")
    command.set_defaults(command=_run)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _range(text: str) -> tuple[int, int | None]:
    first, colon, end = text.partition(":")
    if not colon:
        raise argparse.ArgumentTypeError(f"{text!r}: needs a first row and an end, such as 0:5000, 5000: or :5000")
    return int(first or 0), int(end) if end else None


def _run(options: argparse.Namespace) -> int:
    from onlinevi.cli.ticker import Ticker
    from onlinevi.job import Settings, results
    from onlinevi.job.looking_back import LookedBack, look_back
    from onlinevi.job.running import Places, Run
    from onlinevi.job.stopper import Stopped, Stopper

    own = ("target", "task", "loss", "rule", "level", "missing", "keep", "drop", "delay", "prepare_like")
    first, end = options.rows
    settings = Settings(**{name: getattr(options, name) for name in own}, first_row=first, end_row=end)
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
    checkpoint = options.checkpoint or (options.out / "model.ovi" if options.out is not None else None)
    places = Places(options.file, checkpoint, options.predictions, options.bad_rows, options.every)
    stopper = Stopper()
    with stopper.listening(), ExitStack() as stack:
        try:
            with stopper.waiting():
                run = stack.enter_context(Run(settings, places, resume=options.resume))
        except Stopped:
            print("stopped before the first row", file=sys.stderr)
            return stopper.code
        job = run.job
        job.notes.setdefault("started", datetime.now(UTC).isoformat(timespec="seconds"))
        job.notes.setdefault("command", "onlinevi " + " ".join(options.arguments))
        print(
            f"resumed behind {job.account.count:,} events" if run.resumed else f"{settings.target}: {job.why}", file=sys.stderr
        )
        ticker = Ticker(options.file, job.account.count) if sys.stderr.isatty() else None
        ended, why = run.go(stopper, ticker)
        back = LookedBack()
        if ended == "end" and job.account.count and options.hindsight is not False:
            if ticker is not None:
                ticker.say("looking for the best in hindsight; Ctrl-C leaves it out")
            back = look_back(job, options.file, stopper, any_size=options.hindsight is True)
        if ticker is not None:
            ticker.end()
        document = results(job, ended, back).to_json()
    if back.why and options.hindsight:
        print(f"no best in hindsight: {back.why}", file=sys.stderr)
    if why is not None:
        print(f"onlinevi: {why}", file=sys.stderr)
    elif not document["summary"]["events"]:
        raise ValueError(f"{options.file} has no row that can be used")
    wrote = _write(options.out, document) if options.out is not None else []
    _tell(document, wrote, as_json=options.json)
    return 2 if why is not None else stopper.code


def _write(out: Path, document: dict[str, Any]) -> list[Path]:
    from onlinevi.checkpoint.atomic import replace_file

    def write(file: BinaryIO) -> None:
        file.write(json.dumps(document, ensure_ascii=False).encode())

    replace_file(out / "run.json", write)
    wrote = [out / "run.json", out / "model.ovi"]
    if find_spec("plotly") is not None:
        from onlinevi.report import write_report

        wrote.append(write_report(document, out / "report.html"))
    return [path for path in wrote if path.exists()]


def _tell(document: dict[str, Any], wrote: list[Path], *, as_json: bool) -> None:
    summary, task = document["summary"], document["head"]["task"]
    if as_json:
        told = {name: value for name, value in summary.items() if name != "bad_rows"}
        told |= {"bad_rows": summary["bad_rows"]["count"], "task": task["kind"], "target": task["target"]}
        best, regret = document["hindsight"], document["regret"] or {}
        told["hindsight"] = best["value"] if best else None
        told["no_hindsight"] = document["without_hindsight"] or None
        for name, part in (("regret", "observed"), ("certified_regret", "certified")):
            told[name] = values[-1] if (values := regret.get(part)) else None
        print(json.dumps(told | {"wrote": [str(path) for path in wrote]}, ensure_ascii=False))
        return
    print(f"{task['sentence']}.")
    from onlinevi.report.headline import headline
    from onlinevi.report.results import Results

    print("\n".join(headline(Results.from_json(document))))
    if summary["average_loss"] is not None and task["kind"] == "classes":
        print(f"Average loss {summary['average_loss']:.4g}.")
    if summary["bad_rows"]["count"]:
        print(bad_rows(summary["bad_rows"]["count"]) + " left out.")
    if summary["seconds"]:
        print(f"{summary['seconds']:.1f} s.")
    if wrote:
        print("Wrote " + ", ".join(map(str, wrote)) + ".")
