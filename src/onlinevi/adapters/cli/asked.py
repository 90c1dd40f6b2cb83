"""The options that say what the data is and what is asked of it, for every command that learns from a file."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onlinevi.runs import Settings

RULES = ("auto", "sva", "svb", "ngvi", "oga", "oga-el", "implicit")
ASKED = ("target", "task", "loss", "level", "coverage", "missing", "keep", "drop", "delay", "max_categories", "hash_bits")


def add_asked(command: argparse.ArgumentParser) -> None:
    """The file, the target, and the options of ``ASKED``, ``--rows`` and ``--bad-rows``."""
    command.add_argument(
        "file",
        metavar="FILE",
        help="CSV, NDJSON, Parquet, Arrow or LIBSVM, packed or not, or a folder; - is standard input",
    )
    task = command.add_argument_group("what to predict")
    task.add_argument("--target", required=True, metavar="COL", help="the column to predict; label in LIBSVM files")
    task.add_argument(
        "--task",
        choices=("classes", "numbers", "counts", "quantile"),
        help="what the labels are (default: by their looks); say classes where they are codes such as 1, 2, 3",
    )
    task.add_argument(
        "--loss",
        choices=("logistic", "hinge", "squared", "absolute", "poisson", "pinball"),
        help="of classes the first two, of numbers the next two, of counts poisson, of quantiles pinball "
        "(default: the task's first)",
    )
    task.add_argument(
        "--level", type=float, default=0.9, metavar="P", help="of the quantile: the part of labels below it (default: 0.9)"
    )
    task.add_argument(
        "--coverage", type=float, default=0.9, metavar="P", help="part of numbers or counts in their intervals (default: 0.9)"
    )
    task.add_argument("--delay", type=int, default=0, metavar="N", help="labels come N rows late (default: 0)")
    columns = command.add_argument_group("columns and rows")
    columns.add_argument("--drop", type=names, default=(), metavar="A,B", help="columns to leave out")
    columns.add_argument("--keep", type=names, default=(), metavar="A,B", help="the only columns to use")
    columns.add_argument(
        "--missing",
        choices=("nan", "zero", "refuse"),
        default="nan",
        help="missing values are unknown (the default), 0, or a bad row",
    )
    columns.add_argument(
        "--max-categories",
        type=int,
        default=100,
        metavar="N",
        help="names of a column that have a feature each; later ones share 32 (default: 100)",
    )
    columns.add_argument(
        "--hash-bits", type=int, metavar="N", help="hash the names of all columns into 2^N features instead; 18 is common"
    )
    columns.add_argument(
        "--rows", type=_range, default=(0, None), metavar="A:B", help="only rows A to B − 1, counted from 0 (default: all)"
    )
    columns.add_argument(
        "--bad-rows", default="stop", metavar="WHAT", help="stop, skip, or a file to write them to (default: stop)"
    )


def add_family(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--family",
        choices=("mean-field", "full", "low-rank", "point"),
        help="what a rule keeps of its weights: stds, all covariances, those of 10 directions, or neither "
        "(default: mean-field; oga: point)",
    )


def settings_of(options: argparse.Namespace, rule: str = "auto", family: str | None = None) -> Settings:
    """What is asked, of this rule and family."""
    from onlinevi.runs import Settings

    first, end = options.rows
    return Settings(**{name: getattr(options, name) for name in ASKED}, rule=rule, family=family, first_row=first, end_row=end)


def names(text: str) -> tuple[str, ...]:
    """Names apart by commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _range(text: str) -> tuple[int, int | None]:
    first, colon, end = text.partition(":")
    if not colon:
        raise argparse.ArgumentTypeError(f"{text!r}: needs a first row and an end, such as 0:5000, 5000: or :5000")
    return int(first or 0), int(end) if end else None
