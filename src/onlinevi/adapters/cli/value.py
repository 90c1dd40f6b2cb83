"""``onlinevi value``: what another policy would have earned on the decisions of a log."""

from __future__ import annotations

import argparse
from typing import Any

from onlinevi.adapters.cli.options import Commands
from onlinevi.adapters.cli.outcome import print_json
from onlinevi.adapters.cli.parser import add_json

EXAMPLES = """examples:
  onlinevi value log.ndjson --arm red
  onlinevi value log.csv --chosen new_arm --range 0 50
  onlinevi value log.parquet --chance new_probability --confidence 0.99"""


def add(commands: Commands) -> None:
    command = commands.add_parser(
        "value",
        help="say what another policy would have earned on logged decisions",
        description="What a policy would have earned on the decisions of a log, by what was chosen with which probability: an "
        "estimate, and an interval that holds at all times. A row is a decision with the columns arm, propensity and reward; "
        "docs/bandits.md has the others. Without a policy it is the log's own.",
        epilog=EXAMPLES,
    )
    command.add_argument("file", metavar="FILE", help="NDJSON, CSV, Parquet or Arrow; - for standard input")
    policy = command.add_mutually_exclusive_group()
    policy.add_argument("--arm", metavar="ARM", help="the policy that always chooses this arm")
    policy.add_argument("--chosen", metavar="COLUMN", help="the policy that chooses the arm in this column")
    policy.add_argument(
        "--chance", metavar="COLUMN", help="the policy that gives this probability to the arm which was chosen"
    )
    command.add_argument(
        "--range", nargs=2, type=float, default=(0.0, 1.0), metavar=("LOW", "HIGH"), help="of the rewards (default: 0 1)"
    )
    command.add_argument("--confidence", type=float, default=0.95, metavar="P", help="of the intervals (default: 0.95)")
    add_json(command)
    command.set_defaults(command=_value)


def _value(options: argparse.Namespace) -> int:
    from onlinevi.bandit import read_log, value

    log = read_log(options.file)
    found = value(log, _policy(options, log), bounds=tuple(options.range), confidence=options.confidence)
    if options.json:
        print_json({**vars(found), "gain": found.gain._asdict()})
        return 0
    print(f"{found}.")
    gain, sure = found.gain, f"with {found.confidence:.0%} confidence"
    print(f"More than the log's own policy was to earn by {gain.lower:.4g} to {gain.upper:.4g} a decision, {sure}.")
    if found.missing:
        print(f"{found.missing:,} decisions have no reward: the intervals hold whatever it was.")
    if found.left_out:
        print(f"{found.left_out:,} rows are left out: they stand behind a number that is not in the log.")
    if found.covered < 1.0:
        print(f"The log could have made {found.covered:.1%} of the policy's choices.")
    return 0


def _policy(options: argparse.Namespace, log: list[Any]) -> Any:
    if options.arm is not None:
        return _arm(options.arm, log)
    column = options.chosen or options.chance
    if column is None:
        return None
    if not isinstance(log[0].context, dict) or column not in log[0].context:
        raise ValueError(f"the log has no column {column!r} beside those of a decision")
    if options.chance is not None:
        return lambda one: _chance(one, column)
    return lambda one: _arm(one.context[column], log)


def _chance(one: Any, column: str) -> float:
    told = one.context[column]
    if isinstance(told, str):
        raise ValueError(f"decision {one.number} has {told!r} in the column {column!r}: needs a probability")
    return float(told)


def _arm(told: Any, log: list[Any]) -> Any:
    """An arm by how it is written: in some logs they are numbers, and in contexts whatever looks like one is."""
    whole = int(told) if isinstance(told, float) and told.is_integer() else told
    if type(log[0].arm) is str:
        return str(whole)
    try:
        return int(whole)
    except (TypeError, ValueError):
        return str(whole)
