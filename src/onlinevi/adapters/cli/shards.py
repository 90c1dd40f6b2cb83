"""``onlinevi run`` on several files at once: shards, learned from side by side, as one model."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from onlinevi.adapters.cli.options import settings_of
from onlinevi.adapters.cli.outcome import WRITTEN, make_directory, print_results, write_results
from onlinevi.adapters.cli.voice import Line
from onlinevi.data import is_address
from onlinevi.runs import Fleet, Progress, Stopped, Stopper, is_pattern

KEPT = "shards"
"""The folder of ``--out`` for finished shards, until all are."""


def add_shards(command: argparse.ArgumentParser) -> None:
    """Add the options of shards."""
    shards = command.add_argument_group("shards: several files, a pattern in quotes, or with --workers or --dask any FILE")
    shards.add_argument(
        "--workers", type=int, metavar="N", help="processes that learn from shards side by side (default: one a core)"
    )
    shards.add_argument(
        "--dask", metavar="ADDRESS", help="the scheduler of a Dask cluster to learn on, such as tcp://host:8786"
    )
    shards.add_argument(
        "--rounds",
        type=int,
        default=1,
        metavar="K",
        help="cut each shard into K parts, and begin each round with what all have learned in the last (default: 1)",
    )
    shards.add_argument(
        "--bad-shards",
        choices=("stop", "skip"),
        default="stop",
        help="at a shard that cannot be read, or whose workers die: stop, or learn from the others (default: stop)",
    )


def asks_for_shards(options: argparse.Namespace) -> bool:
    """Whether these options ask for shards."""
    several = len(options.file) > 1 or is_pattern(options.file[0])
    if several or options.workers is not None or options.dask is not None:
        return True
    for name, unset in (("rounds", 1), ("bad_shards", "stop")):
        if getattr(options, name) != unset:
            raise ValueError(f"--{name.replace('_', '-')} is for shards: name several files, or give --workers")
    return False


def run_shards(options: argparse.Namespace) -> int:
    """Learn from shards, and write what one run would."""
    from onlinevi.runs import learn_shards, refuse_overwriting, results_of, save_job, shards_told

    _refuse_others(options)
    model = options.checkpoint or (options.out / "model.ovi" if options.out is not None else None)
    refuse_overwriting(
        {**{f"FILE {path}": path for path in options.file}, "--cost": options.cost, "--prepare-like": options.prepare_like},
        {"--checkpoint": model, **{f"--out {name}:": options.out / name for name in WRITTEN if options.out is not None}},
    )
    settings = settings_of(options, options.rule, options.family, options.expand)
    settings = replace(settings, prepare_like=options.prepare_like, ball=options.ball)
    make_directory(options.out)
    stopper, begun, started = Stopper(), time.monotonic(), datetime.now(UTC).isoformat(timespec="seconds")
    line = ShardLine() if options.voice.draws else None
    with stopper.listening(), ExitStack() as stack:
        executor = None if options.dask is None else _cluster(options.dask, stack)
        try:
            fleet = learn_shards(
                settings,
                options.file,
                executor,
                workers=options.workers,
                rounds=options.rounds,
                bad_rows=options.bad_rows,
                bad_shards=options.bad_shards,
                folder=_folder(options.out, model),
                resume=options.resume,
                overwrite=options.overwrite,
                watch=line,
                waiting=partial(_waiting, stopper),
            )
        except Stopped:
            kept = "; finished shards are kept, --resume learns from the others" if model is not None else ""
            print(f"stopped{kept}", file=sys.stderr)
            return stopper.code
        finally:
            if line is not None:
                line.end()
    job = fleet.job
    assert job is not None
    job.notes |= {"started": started, "command": shlex.join(["onlinevi", *options.arguments]), "ended": "end"}
    job.clock.add(np.array([[job.metrics.count, time.monotonic() - begun]]))
    for one in fleet.bad:
        print(f"left out: {one.name}: {one.error}", file=sys.stderr)
    document = results_of(job, shards=shards_told(fleet)).to_json()
    if model is not None:
        save_job(model, job)
    paths = write_results(options.out, document) if options.out is not None else []
    _forget_kept(fleet, options.out, model)
    print_results(document, paths, as_json=options.json)
    return 0


@contextmanager
def _waiting(stopper: Stopper) -> Iterator[None]:
    """While no shard is done: a signal stops at once, one that came while something was done as well."""
    if stopper.code:
        raise Stopped
    with stopper.waiting():
        yield


def _refuse_others(options: argparse.Namespace) -> None:
    """Refuse what is of one stream."""
    one_stream = {
        "--predictions": options.predictions,
        "--keep-columns": options.keep_columns or None,
        "--from": options.after,
        "--hindsight": options.hindsight,
        "--labels": options.labels,
        "--metrics-port": options.metrics_port is not None,
    }
    for name, given in one_stream.items():
        if given:
            raise ValueError(f"{name} is of one stream, not of shards: leave it out, or name one FILE without --workers")
    if broker := next(filter(is_address, options.file), None):
        raise ValueError(f"{broker}: shards are files; what comes from a broker is one stream: leave out --workers and --dask")
    if options.bad_rows not in ("stop", "skip"):
        raise ValueError(f"--bad-rows {options.bad_rows}: many processes read shards, and none writes it: say stop or skip")
    if "-" in options.file:
        raise ValueError("standard input is one stream: name files for shards")
    if options.dask is not None and options.workers is not None:
        raise ValueError("--workers starts processes here, --dask uses those of a cluster: give one of them")


def _folder(out: Path | None, model: Path | None) -> Path | None:
    if out is not None:
        return out / KEPT
    return None if model is None else model.with_name(f"{model.name}.{KEPT}")


def _forget_kept(fleet: Fleet, out: Path | None, model: Path | None) -> None:
    """The model has it all."""
    folder = _folder(out, model)
    if folder is not None:
        fleet.kept.clear()
        folder.rmdir()


def _cluster(address: str, stack: ExitStack) -> Any:
    from onlinevi.runs import dask_cluster

    executor, client = dask_cluster(address)
    stack.callback(client.close)
    return executor


class ShardLine(Line):
    """Called as shards are done."""

    def __call__(self, progress: Progress) -> None:
        parts = [f"{progress.done:,} of {progress.total:,} shards {progress.stage}"]
        if progress.events:
            parts += [f"{progress.events:,} rows", f"average loss {progress.loss / progress.events:.4g}"]
        if progress.bad:
            parts.append(f"{progress.bad:,} left out")
        self.say(", ".join(parts))
