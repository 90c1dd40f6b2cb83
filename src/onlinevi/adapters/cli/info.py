"""``onlinevi info``: what a model has learned."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from onlinevi.adapters.cli.parser import Commands, bad_rows

SHOWN = 30


def add(commands: Commands) -> None:
    command = commands.add_parser(
        "info",
        help="what a model has learned",
        description="What a model that onlinevi run wrote has learned, from what, how well, and what is certain of it.",
        epilog="example: onlinevi info out/model.ovi --json",
    )
    command.add_argument("model", type=Path, metavar="MODEL", help="model.ovi, or the checkpoint, of a run")
    command.add_argument("--json", action="store_true", help="print everything as one JSON object")
    command.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> int:
    from onlinevi.runs import described, load_job

    facts = described(load_job(options.model))
    if options.json:
        print(json.dumps(facts, ensure_ascii=False))
        return 0
    print(f"{facts['task']['sentence']}.")
    print(f"{facts['events']:,} events, average loss {facts['average_loss']:.4g}; {bad_rows(facts['bad_rows'])} left out.")
    print("Settings: " + ", ".join(f"{name} {value}" for name, value in facts["learner"].items()) + ".")
    print(f"Learned from {' + '.join(facts['learned_from'])}, started {facts['started']}.")
    print(facts["certificate"]["sentence"])
    print(f"\nWeights in the units of the data{', the surest first' if len(facts['weights']) > 1 else ''}:")
    for weight in facts["weights"][:SHOWN]:
        name = f"{weight['class']}: {weight['name']}" if "class" in weight else weight["name"]
        print(f"  {name:32} {weight['mean']:>12.4g} ± {weight['std']:.2g}")
    if len(facts["weights"]) > SHOWN:
        print(f"  … and {len(facts['weights']) - SHOWN:,} more; --json has them all")
    return 0
