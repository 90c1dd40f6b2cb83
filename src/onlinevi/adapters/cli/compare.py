"""``onlinevi compare``: rules side by side on one file."""

from __future__ import annotations

import argparse
import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onlinevi.adapters.cli.asked import RULES, add_asked, add_family, names, settings_of
from onlinevi.adapters.cli.parser import Commands, bad_rows, write_json

if TYPE_CHECKING:
    from onlinevi.runs import Comparison

EXAMPLES = """examples:
  onlinevi compare patients.csv --target diagnosis
  onlinevi compare flats.parquet --target price --rules auto,implicit,ngvi --out out

The file is read once, and every rule has the same rows. Losses are those that onlinevi run gives. A row that one rule refuses
is counted for that rule alone. Seconds are those of predicting and learning, without reading and compiling.
Ctrl-C or SIGTERM waits for the batch, prints the table so far, and exits with 130 or 143."""


def add(commands: Commands) -> None:
    command = commands.add_parser(
        "compare",
        help="rules side by side on one file, in one pass",
        description="Which rule does best on a file: one pass for all of them, each row predicted before its label is seen.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_asked(command)
    learners = command.add_argument_group("learners")
    learners.add_argument(
        "--rules", type=names, default=RULES, metavar="A,B", help=f"of {', '.join(RULES)} (default: all of them)"
    )
    add_family(learners)
    files = command.add_argument_group("what to write")
    files.add_argument("--out", type=Path, metavar="DIR", help="for compare.json and compare.png")
    files.add_argument("--json", action="store_true", help="print the table as one JSON object")
    command.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> int:
    from onlinevi.adapters.cli.ticker import Ticker
    from onlinevi.runs import Comparison, Stopped, Stopper

    settings, stopper = settings_of(options), Stopper()
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
    with stopper.listening():
        try:
            with stopper.waiting():
                comparison = Comparison(
                    settings, options.rules, options.file, family=options.family, bad_rows=options.bad_rows
                )
        except Stopped:
            print("stopped before the first row", file=sys.stderr)
            return stopper.code
        with comparison:
            print(f"{settings.target}: {comparison.contestants[0].job.why}", file=sys.stderr)
            ticker = Ticker(options.file, 0) if sys.stderr.isatty() else None

            def watch(now: Comparison) -> None:
                if ticker is not None:
                    ticker(now.leader.job, now.stream, f"{now.leader.job.settings.rule} leads: ")

            ended, why = comparison.go(stopper, watch)
            if ticker is not None:
                ticker.end()
            document = comparison.to_json(ended)
    if why is not None:
        print(f"onlinevi: {why}", file=sys.stderr)
    elif not comparison.curves:
        raise ValueError(f"{options.file} has no row that can be used")
    wrote = _write(options.out, comparison, document) if options.out is not None else []
    _tell(document, wrote, as_json=options.json)
    return 2 if why is not None else stopper.code


def _write(out: Path, comparison: Comparison, document: dict[str, Any]) -> list[Path]:
    wrote = [write_json(out / "compare.json", document)]
    if find_spec("matplotlib") is not None and comparison.curves:
        from onlinevi.runs import plot_comparison

        plot_comparison(comparison.curves).savefig(out / "compare.png", dpi=200)
        wrote.append(out / "compare.png")
    return wrote


def _tell(document: dict[str, Any], wrote: list[Path], *, as_json: bool) -> None:
    rules = document["rules"]
    if as_json:
        short = [{name: value for name, value in own.items() if name != "curve"} for own in rules]
        print(json.dumps(document | {"rules": short, "wrote": [str(path) for path in wrote]}, ensure_ascii=False))
        return
    classes = document["task"]["kind"] == "classes"
    print(f"{document['task']['sentence']}; {document['loss']}.")
    share = "wrong" if classes else "covered"
    print(f"{'rule':9} {'rows':>11} {'loss':>10} {share:>8} {'certified':>10} {'seconds':>8} {'refused':>8}")
    for own in rules:
        share = _shown(own["error_rate" if classes else "coverage"], ".2%")
        loss, certified = _shown(own["average_loss"], ".4g"), _shown(own["certified_regret"], ".4g")
        line = f"{own['rule']:9} {own['events']:>11,} {loss:>10} {share:>8} {certified:>10} {own['seconds']:>8.2f}"
        print(f"{line} {own['refused']:>8,}")
    for own in rules:
        if own["why"]:
            print(f"{own['rule']}: {own['why']}")
    if any(own["certified_regret"] is not None for own in rules):
        print("certified: whatever the data, no fixed weights in the rule's box have an average loss lower by more than this.")
    if document["bad_rows"]:
        print(bad_rows(document["bad_rows"]) + " left out for all.")
    if document["stopped"] == "interrupted":
        print("Interrupted; this is what was known by then.")
    if wrote:
        print("Wrote " + ", ".join(map(str, wrote)) + ".")


def _shown(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)
