"""``onlinevi report``: a run's page, made again."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from onlinevi.cli.parser import Commands


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
    from onlinevi.report import write_report

    source = options.dir / "run.json"
    if not source.exists():
        raise ValueError(f"{source} is not there: name the directory that onlinevi run had as --out")
    print(write_report(json.loads(source.read_text(encoding="utf-8")), options.dir / "report.html"))
    return 0
