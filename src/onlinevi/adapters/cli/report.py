"""``onlinevi report``: a run's page, made again."""

from __future__ import annotations

import argparse
from pathlib import Path

from onlinevi.adapters.cli.parser import Commands, run_document


def add(commands: Commands) -> None:
    command = commands.add_parser(
        "report",
        help="make a run's page again",
        description="Write DIR/report.html from DIR/run.json, for a run made where plotly was not installed.",
        epilog='example: onlinevi report out    (needs plotly: pip install "onlinevi[report]")',
    )
    command.add_argument("dir", type=Path, metavar="DIR", help="the --out of a run")
    command.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> int:
    from onlinevi.runs import write_report

    print(write_report(run_document(options.dir), options.dir / "report.html"))
    return 0
