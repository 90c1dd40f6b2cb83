"""``onlinevi merge``: the models of shards as one."""

from __future__ import annotations

import argparse
from pathlib import Path

from onlinevi.adapters.cli.parser import Commands

EXAMPLES = """example: onlinevi merge a/model.ovi b/model.ovi -o both.ovi

The second shard takes over how the first has prepared its columns:
  onlinevi run big.csv --target price --rule implicit --rows 0:500000 --out a
  onlinevi run big.csv --target price --rule implicit --rows 500000: --prepare-like a/model.ovi --out b

Refused: different priors, columns or ways to prepare them, and shards with rows in common."""


def add(commands: Commands) -> None:
    command = commands.add_parser(
        "merge",
        help="the models of shards as one",
        description="Add up what models have learned from different rows: prior + Σ (model − prior) in natural parameters.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("models", nargs="+", type=Path, metavar="MODEL", help="model.ovi of a run with one rule, or a merge")
    command.add_argument("-o", "--out", type=Path, required=True, metavar="OUT", help="the model to write; it learns no more")
    command.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> int:
    from onlinevi.runs import load_job, merge_jobs, save_job

    merged = merge_jobs({str(path): load_job(path) for path in options.models})
    save_job(options.out, merged)
    print(f"{merged.state.count:,} events of {len(merged.merged)} shards; wrote {options.out}.")
    return 0
