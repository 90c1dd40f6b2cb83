"""``onlinevi compare``: rules side by side on one file."""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onlinevi.adapters.cli.brokers import add_brokers, follow_of
from onlinevi.adapters.cli.look import tell_columns
from onlinevi.adapters.cli.options import (
    OF_YOURS,
    WITH_SETTINGS,
    Commands,
    add_family,
    add_import,
    add_settings,
    rules,
    settings_of,
)
from onlinevi.adapters.cli.outcome import bad_rows, make_directory, print_json, write_json, wrote
from onlinevi.adapters.cli.parser import Named, add_json
from onlinevi.adapters.cli.voice import between_words, room, versions
from onlinevi.rules import split_outside

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
        first=("--target", "--task", "--drop", "--rules", "--out", "--json"),
    )
    add_settings(command)
    learners = command.add_argument_group("learners")
    learners.add_argument(
        "--rules",
        action=Named,
        known=rules(),
        type=split_outside,
        metavar="A,B",
        help=f"some of {', '.join(rules())}, {OF_YOURS}; {WITH_SETTINGS} (default: all that are known)",
    )
    add_family(learners)
    add_import(learners)
    files = command.add_argument_group("what to write")
    files.add_argument("--out", type=Path, metavar="DIR", help="the directory to write compare.json and compare.png to")
    add_json(files)
    add_brokers(command)
    command.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> int:
    from onlinevi.adapters.cli.progress import awaited, ticker_for
    from onlinevi.runs import Comparison, Stopped, Stopper, bad_rows_file, refuse_overwriting

    outputs = {"--bad-rows": bad_rows_file(options.bad_rows)}
    if options.out is not None:
        outputs |= {f"--out {name}:": options.out / name for name in ("compare.json", "compare.png")}
    refuse_overwriting({"FILE": options.file, "--cost": options.cost}, outputs)
    voice, settings, stopper = options.voice, settings_of(options), Stopper()
    follow = follow_of(options, [options.file])
    chosen = rules() if options.rules is None else options.rules
    make_directory(options.out)
    with stopper.listening():
        try:
            with stopper.waiting(), awaited(voice, options.file, settings.look):
                how = {"family": options.family, "bad_rows": options.bad_rows, "follow": follow}
                comparison = Comparison(settings, chosen, options.file, **how)
        except Stopped:
            print("stopped before the first row", file=sys.stderr)
            return stopper.code
        with comparison:
            voice.say(f"{settings.target}: {comparison.entrants[0].job.why}")
            tell_columns(voice, comparison.columns, settings.look)
            voice.detail(versions())
            ticker = ticker_for(voice, options.file, 0, options.rows)

            def watch(now: Comparison) -> None:
                if ticker is not None:
                    ticker(now.leader.job, now.stream, _leads(now))

            ended, why = comparison.go(stopper, watch)
            if ticker is not None and comparison.curves:
                ticker.done(comparison.leader.job, all_read=ended == "end", who=_leads(comparison))
            document = comparison.to_json(ended)
    if why is not None:
        print(f"onlinevi: {why}", file=sys.stderr)
    elif not comparison.curves:
        raise ValueError(f"{options.file} has no row that can be used")
    paths = _write(options.out, comparison, document) if options.out is not None else []
    _print(document, paths, settings.window, as_json=options.json)
    return 2 if why is not None else stopper.code


def _leads(comparison: Comparison) -> str:
    return f"{comparison.leader.job.settings.rule} leads: "


def _write(out: Path, comparison: Comparison, document: dict[str, Any]) -> list[Path]:
    paths = [write_json(out / "compare.json", document)]
    if find_spec("matplotlib") is not None and comparison.curves:
        from onlinevi.data import replace_figure
        from onlinevi.runs import plot_comparison

        replace_figure(out / "compare.png", plot_comparison(comparison.curves), dpi=200)
        paths.append(out / "compare.png")
    return paths


def _print(document: dict[str, Any], paths: list[Path], window: int, *, as_json: bool) -> None:
    standings = document["rules"]
    if as_json:
        short = [{name: value for name, value in standing.items() if name != "curve"} for standing in standings]
        print_json(document | {"rules": short, "wrote": [str(path) for path in paths]})
        return
    from onlinevi.runs import charts, side_by_side

    classes = document["task"]["kind"] == "classes"
    print(f"{document['task']['sentence']}; {document['loss']}.")
    share = "wrong" if classes else "covered"
    width = max(9, *(len(standing["rule"]) for standing in standings))
    print(f"{'rule':{width}} {'rows':>11} {'loss':>10} {share:>8} {'certified':>10} {'seconds':>8} {'refused':>8}")
    for one in standings:
        part = one["error_rate" if classes else "coverage"]
        share = "–" if part is None else f"{part:.2%}"
        loss, certified = charts.number(one["average_loss"]), charts.number(one["certified_regret"])
        line = f"{one['rule']:{width}} {one['events']:>11,} {loss:>10} {share:>8} {certified:>10} {one['seconds']:>8.2f}"
        print(f"{line} {one['refused']:>8,}")
    if measured := {one["rule"]: one["metrics"] for one in standings if one["metrics"]}:
        print("\n".join(side_by_side(measured | document["baselines"], room())))
    if lately := {one["rule"]: one["recent"] for one in standings if one["recent"]}:
        print("\n".join([f"of the last {window:,} rows:", *side_by_side(lately | document["recent_baselines"], room())]))
    for one in standings:
        if one["why"]:
            print(f"{one['rule']}: {one['why']}")
    if any(one["certified_regret"] is not None for one in standings):
        told = "whatever the data, no fixed weights in the rule's box have an average loss lower by more than this."
        print(between_words(f"certified: {told}"))
    if document["bad_rows"]:
        print(bad_rows(document["bad_rows"]) + " left out for all.")
    if document["cells_as_missing"]:
        from onlinevi.runs import cells_as_missing

        print(cells_as_missing(document["cells_as_missing"]))
    if document["stopped"] == "interrupted":
        print("Interrupted; this is what was known by then.")
    if paths:
        print(wrote(paths))
