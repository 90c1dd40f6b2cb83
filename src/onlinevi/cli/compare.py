"""``onlinevi compare``: runs side by side."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from onlinevi.cli.parser import Commands, run_document


def add(commands: Commands) -> None:
    command = commands.add_parser(
        "compare",
        help="runs side by side",
        description="The losses of several runs of one task, the lowest first.",
        epilog="example: onlinevi compare out-auto out-svb",
    )
    command.add_argument("dirs", nargs="+", type=Path, metavar="DIR", help="the --out of a run")
    command.add_argument("--json", action="store_true", help="print them as a JSON list")
    command.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> int:
    from onlinevi.report.results import Results

    runs = {folder: Results.from_json(run_document(folder)) for folder in options.dirs}
    found = sorted((_facts(folder, run) for folder, run in runs.items()), key=lambda own: own["average_loss"])
    for what in ("target", "task", "loss"):
        different = sorted({own[what] for own in found})
        if len(different) > 1:
            raise ValueError(f"these runs differ in their {what}, {' and '.join(different)}: their losses cannot be compared")
    if len({(own["sha256"], own["events"]) for own in found}) > 1:
        print("not all of these runs had the same rows: their losses are not of the same events", file=sys.stderr)
    if options.json:
        print(json.dumps(found, ensure_ascii=False))
        return 0
    wide = max(len(own["run"]) for own in found)
    print(f"{'run':{wide}} {'learner':>9} {'events':>12} {'loss':>10} {'wrong':>8} {'covered':>8}")
    for own in found:
        parts = (own["error_rate"], own["coverage"])
        shares = " ".join(f"{'–' if part is None else format(part, '.2%'):>8}" for part in parts)
        print(f"{own['run']:{wide}} {own['learner']:>9} {own['events']:>12,} {own['average_loss']:>10.4g} {shares}")
    return 0


def _facts(folder: Path, run: Any) -> dict[str, Any]:
    head, summary = run.head, run.summary
    if summary is None:
        raise ValueError(f"{folder / 'run.json'} has no summary: let the run come to an end")
    return {
        "run": str(folder),
        "target": head.task.target,
        "task": head.task.kind,
        "learner": head.settings.get("learner", "?"),
        "loss": head.settings.get("loss", "?"),
        "events": summary.events,
        "average_loss": summary.average_loss,
        "error_rate": summary.error_rate,
        "coverage": summary.coverage,
        "sha256": head.source.sha256,
    }
