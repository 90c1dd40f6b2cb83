"""What the commands share: options that mean the same everywhere, and what is read of them."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path
from typing import TypeAlias, get_args

from onlinevi.adapters.cli.parser import CommandParser, Named
from onlinevi.beliefs import Family
from onlinevi.data import FIRST_LOOK, KINDS
from onlinevi.engine import did_you_mean, named
from onlinevi.learners import Beside, ClassesBy, Effort, FeatureMap, losses_of
from onlinevi.losses import Target
from onlinevi.rules import Rule
from onlinevi.runs import DEFAULT_LOSS, DROP, Costs, Settings, read_costs

Commands: TypeAlias = "argparse._SubParsersAction[CommandParser]"
"""What a command is added to."""

TASKS: tuple[Target, ...] = get_args(Target)
SETTINGS = (
    "target",
    "task",
    "classes",
    "classes_by",
    "loss",
    "level",
    "coverage",
    "missing",
    "keep",
    "drop",
    "delay",
    "max_categories",
    "hash_bits",
    "look",
    "kinds",
    "decimal",
    "delimiter",
    "encoding",
    "names",
    "weight",
    "class_weight",
    "window",
    "alarm",
    "cost",
    "abstain",
)
"""The options that are settings of a run under the same name."""
OF_AUTO = ("effort", "lags")
"""Those of the default, which not every command has."""
OF_YOURS = "or one of yours as package.module:Class"
WITH_SETTINGS = "settings may follow, as in 'ngvi(floor=0.1)' or 'svb(rate=PerSqrt(2))'"


def rules() -> tuple[str, ...]:
    """The rules by their names, the default first."""
    return ("auto", *named(Rule))


def add_settings(command: argparse.ArgumentParser, *, shards: bool = False) -> None:
    """Add the file, or files that are shards, the target, and the options of ``SETTINGS``, ``--rows`` and ``--bad-rows``."""
    command.add_argument(
        "file",
        metavar="FILE",
        nargs="+" if shards else None,
        help="CSV, NDJSON, Parquet, Arrow or LIBSVM, packed or not, or a folder of such files; - is standard input; topics "
        "and streams, as kafka://localhost:9092/clicks or redis://localhost:6379/clicks"
        + ("; several, or a pattern, are shards" if shards else ""),
    )
    task = command.add_argument_group("what to predict")
    task.add_argument("--target", metavar="COL", help="the column to predict; label in LIBSVM files")
    task.add_argument(
        "--task",
        choices=TASKS,
        help="what the labels are (default: by their looks); say classes where they are codes such as 1, 2, 3",
    )
    task.add_argument(
        "--classes",
        type=names,
        default=(),
        metavar="A,B",
        help="the labels in the order of their codes: of two, the probability is that of the second (default: those of the "
        "first rows, and others join)",
    )
    task.add_argument(
        "--loss",
        action=Named,
        known=[name for kind in TASKS for name in losses_of(kind)],
        metavar="NAME",
        help=f"what a prediction costs: {_losses()}; {OF_YOURS} (default: the first of its task)",
    )
    task.add_argument(
        "--level",
        type=float,
        default=0.9,
        metavar="P",
        help="with --task quantile: the part of the labels that is to lie below it (default: 0.9)",
    )
    task.add_argument(
        "--coverage",
        type=float,
        default=0.9,
        metavar="P",
        help="the part of the labels that is to lie in their intervals, or of classes in their sets (default: 0.9)",
    )
    task.add_argument(
        "--cost",
        type=Path,
        metavar="FILE",
        help="decide for the class of the least expected cost: a CSV file whose header has the classes that can be decided, "
        "and whose first column those that come; these are all the classes",
    )
    task.add_argument("--abstain", action="store_true", help="decide only where the set has one class")
    task.add_argument("--delay", type=int, default=0, metavar="N", help="labels come N rows late (default: 0)")
    task.add_argument(
        "--window",
        type=int,
        default=Settings.window,
        metavar="N",
        help=f"metrics are told of the last N rows beside those of all (default: {Settings.window})",
    )
    alarm = task.add_mutually_exclusive_group()
    alarm.add_argument(
        "--alarm",
        type=float,
        default=Settings.alarm,
        metavar="DELTA",
        help="ring where large losses become more frequent; false alarms have at most the chance DELTA, over a stream without "
        f"end (default: {Settings.alarm})",
    )
    alarm.add_argument("--no-alarm", dest="alarm", action="store_const", const=None, help="watch no losses")
    task.add_argument("--weight", metavar="COL", help="the column that says how often a row counts; 0 is only predicted")
    task.add_argument(
        "--class-weight",
        type=_class_weight,
        metavar="WHAT",
        help="how often rows of a class count: balanced, by what has come of each so far, or A=5,B=1 (default: once each)",
    )
    columns = command.add_argument_group("columns and rows")
    columns.add_argument("--drop", type=names, default=(), metavar="A,B", help="columns to leave out")
    columns.add_argument("--keep", type=names, default=(), metavar="A,B", help="the only columns to use")
    columns.add_argument(
        "--missing",
        choices=("nan", "zero", "refuse"),
        default="nan",
        help="take missing values as unknown (nan, the default) or as 0 (zero), or the row as a bad one (refuse)",
    )
    columns.add_argument(
        "--max-categories",
        type=int,
        default=100,
        metavar="N",
        help="of a column of names, the first N have a feature each; later ones share 32 (default: 100)",
    )
    columns.add_argument(
        "--hash-bits", type=int, metavar="N", help="hash the names of all columns into 2^N features instead; 18 is common"
    )
    columns.add_argument(
        "--look",
        type=int,
        default=FIRST_LOOK,
        metavar="N",
        help="look at N rows, or all if there are fewer, before the first is learned from, to tell what columns and labels "
        f"are; a pipe is waited for (default: {FIRST_LOOK})",
    )
    columns.add_argument(
        "--rows", type=_range, default=(0, None), metavar="A:B", help="only rows A to B − 1, counted from 0 (default: all)"
    )
    add_bad_rows(columns)
    add_reading(columns)


def add_reading(columns: argparse._ActionsContainer) -> None:
    """Add how a file is written, and what its columns hold."""
    add_kinds(columns)
    columns.add_argument(
        "--decimal", choices=(".", ","), help="what numbers have before their decimals (default: by their looks)"
    )
    columns.add_argument(
        "--delimiter", metavar="C", help="what stands between the columns of a CSV file (default: by its header)"
    )
    columns.add_argument("--encoding", metavar="NAME", help="of a CSV file that is not UTF-8, as latin-1, cp1252 or utf-16")
    header = columns.add_mutually_exclusive_group()
    header.add_argument("--names", type=names, metavar="A,B", help="the columns of a CSV file without a header")
    header.add_argument(
        "--no-header",
        dest="names",
        action="store_const",
        const=(),
        help="the CSV file has no header: its columns are column_0, column_1, …",
    )


def add_kinds(columns: argparse._ActionsContainer) -> None:
    columns.add_argument(
        "--kinds",
        type=_kinds,
        default={},
        metavar="A=KIND,B=KIND",
        help=f"what columns hold, where the guess is wrong: {', '.join(KINDS)}, or {DROP} to leave one out",
    )


def _kinds(text: str) -> dict[str, str]:
    pairs, known = [part.rpartition("=") for part in names(text)], (*KINDS, DROP)
    wrong = next((kind for name, _, kind in pairs if not name or kind not in known), None)
    if wrong is not None:
        meant = did_you_mean(wrong, known)
        raise argparse.ArgumentTypeError(f"{text!r}{meant}: needs column=kind, the kind one of {', '.join(known)}")
    return {name.strip(): kind for name, _, kind in pairs}


def _class_weight(text: str) -> str | dict[str, float]:
    if text == "balanced":
        return text
    pairs = [part.rpartition("=") for part in names(text)]
    try:
        if pairs and all(name for name, _, _ in pairs):
            return {name.strip(): float(weight) for name, _, weight in pairs}
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r}: needs balanced, or class=weight at commas, as yes=5,no=1")


def _losses() -> str:
    """The losses of each task, its default first."""
    of_tasks = {kind: dict.fromkeys([DEFAULT_LOSS[kind], *losses_of(kind)]) for kind in TASKS}
    return "; ".join(f"{' or '.join(known)} for {kind}" for kind, known in of_tasks.items())


def add_bad_rows(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--bad-rows",
        default="stop",
        metavar="WHAT",
        help="at a row that cannot be used: stop, skip it, or the file, topic or stream to write it to; missing skips them, "
        "but takes cells that are not of their column's kind, as 12O in one of numbers, as missing values (default: stop)",
    )


def add_beside(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--keep-columns",
        type=names,
        default=(),
        metavar="A,B",
        help="columns of the rows that stand beside their predictions, such as an id; they are used as without it",
    )
    group.add_argument(
        "--explain",
        action="store_true",
        help="what each column adds to each prediction: base and all of from_… are the score, on the scale of the loss "
        "(in a run one row at a time, so slower)",
    )


def add_rule(group: argparse._ActionsContainer) -> None:
    told = f"{', '.join(rules())}, {OF_YOURS} (default: auto)"
    group.add_argument("--rule", action=Named, known=rules(), metavar="NAME", default="auto", help=told)


def add_family(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--family",
        action=Named,
        known=named(Family),
        metavar="NAME",
        help=f"what a rule keeps of its weights: {', '.join(named(Family))}, {OF_YOURS}; mean-field has a std each, full all "
        "covariances, low-rank those of 10 directions, point neither (default: mean-field; of oga: point)",
    )


def add_expand(group: argparse._ActionsContainer) -> None:
    known = [name for name in named(FeatureMap) if name != Beside.name]  # type: ignore[type-abstract]
    group.add_argument(
        "--expand",
        action=Named,
        known=known,
        metavar="NAME",
        help="features that a rule learns of beside the columns, for boundaries that bend: "
        f"{', '.join(known)}, {OF_YOURS}; settings in brackets, several at commas, as 'fourier(count=200), splines'; fourier "
        "bends every way, splines each column by itself, products take pairs; best with --rule implicit --family full",
    )


def add_effort(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--effort",
        choices=get_args(Effort),
        default="default",
        help="of auto, how much an event may cost: light draws straight boundaries alone, in some 3 to 10 µs; default bent "
        "ones too, in 30 to 70; most in some hundreds (default: default)",
    )
    group.add_argument(
        "--classes-by",
        choices=get_args(ClassesBy),
        help="how more than two classes are told apart: all by one posterior with one certificate, which takes rule auto or "
        "implicit, or each by a learner of its own (default: softmax where auto learns probabilities, else one-vs-rest)",
    )
    group.add_argument(
        "--lags",
        type=int,
        default=0,
        metavar="N",
        help="of auto: the last N labels are columns too, for streams in time order whose labels come before the next row "
        "(default: 0)",
    )


def add_import(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--import",
        dest="imports",
        action="append",
        default=[],
        metavar="PACKAGE.MODULE",
        help="a module with losses, rules, families, maps or sources of yours, which are then known by their names; may be "
        "repeated",
    )


def import_parts(options: argparse.Namespace) -> None:
    """Import what ``--import`` names; modules of yours may lie in the working directory."""
    modules: list[str] = getattr(options, "imports", [])
    if modules or any(":" in str(getattr(options, name, "")) for name in ("loss", "rule", "rules", "family", "expand")):
        sys.path.append(str(Path.cwd()))  # last: no file there takes the place of a package
    for module in modules:
        try:
            import_module(module)
        except ImportError as error:
            raise ValueError(
                f"--import {module}: cannot be imported ({error}); call from where it lies, or set PYTHONPATH"
            ) from error


def settings_of(
    options: argparse.Namespace, rule: str = "auto", family: str | None = None, expand: str | None = None
) -> Settings:
    """The settings that the options ask for, with this rule, family and map."""
    if options.target is None:
        raise ValueError("which column is to be predicted? name it: --target COL")
    first, end = options.rows
    chosen = {name: getattr(options, name) for name in (*SETTINGS, *OF_AUTO) if hasattr(options, name)}
    chosen["cost"] = costs_of(options)
    return Settings(**chosen, rule=rule, family=family, expand=expand, first_row=first, end_row=end)


def costs_of(options: argparse.Namespace) -> Costs | None:
    """The costs in the file of ``--cost``."""
    return None if options.cost is None else read_costs(options.cost)


def names(text: str) -> tuple[str, ...]:
    """Split names at commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _range(text: str) -> tuple[int, int | None]:
    first, colon, end = text.partition(":")
    try:
        if colon:
            return int(first or 0), int(end) if end else None
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r}: needs a first row and an end, such as 0:5000, 5000: or :5000")
