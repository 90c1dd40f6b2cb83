"""How good are the predictions? Progressive evaluation of the default and of its peers over 13 streams in 4 variants.

    python benchmarks/quality.py [--streams breast,boston] [--variants raw] [--peers onlinevi,VW] [--quick] [--fresh]
    python benchmarks/quality.py --held-out
    python benchmarks/quality.py --ablation
    python benchmarks/quality.py --write docs/choosing.md

Results are kept in out/quality as they come, and an interrupted run goes on where it stopped. ``--peers`` takes beginnings of
names, ours included. ``--held-out`` is for thirteen other streams, by which the default was not chosen. ``--write`` runs
nothing: it puts the tables of what is there between the marks of a document.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import timing  # noqa: F401  (one thread, said before numpy is imported)
from held_out import HELD_OUT
from ledger import Key, Ledger, Result
from ours import ABLATION, DEFAULT, LADDER, NOT_ROBUST, OURS, WITHOUT
from peers import PEERS, Scored
from quality_tables import ablation, comparison, put_between_marks, report
from scores import score
from streams import BASES, VARIANTS, Stream, streams

from onlinevi.adapters.cli.progress import watching

Entrants = Mapping[str, Mapping[str, Callable[[Stream], Scored]]]

QUICK_ROWS = 300
ABLATED_VARIANTS = ("scaled", "raw", "corrupted")  # to a default that standardises, blown is raw once more


def main(arguments: list[str] | None = None) -> None:
    options = _options(arguments)
    ledger = Ledger(options.out / ("quick.jsonl" if options.quick else "results.jsonl"))
    if options.write is None:
        entrants = _chosen(ABLATION if options.ablation else _everyone(), options.peers)
        if options.fresh:
            ledger.forget({result.key for result in ledger if _is_chosen(result, options, entrants)})
        chosen = streams(options.streams, options.variants, HELD_OUT if options.held_out else BASES)
        with watching("quality study") as bars:
            if bars is not None:
                bars.plan(len(options.streams) * len(options.variants))
            study(ledger, map(shortened, chosen) if options.quick else chosen, entrants, bars)
    text = tables(ledger)
    if options.write is None:
        print(text)
    else:
        put_between_marks(options.write, text)


def study(ledger: Ledger, chosen: Iterable[Stream], entrants: Entrants, bars: Any = None) -> None:
    """Every entrant on every stream, but those that the ledger has."""
    for stream in chosen:
        pending = {name: run for name, run in entrants[stream.task].items() if _key(stream, name) not in ledger}
        title = f"{stream.name} {stream.variant}"
        for done, (name, run) in enumerate(pending.items()):
            if bars is not None:
                bars.progress(title, done / len(pending))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of numbers that overflow in a peer: its score says it
                ledger.add(measured(stream, name, run(stream)))
        if bars is not None:
            bars.progress(title, 1.0)


def measured(stream: Stream, name: str, scored: Scored) -> Result:
    rows, scores = len(stream.y), score(stream, scored)
    return Result(stream.name, stream.variant, stream.task, name, rows, round(scored.seconds, 4), scored.note, scores)


def shortened(stream: Stream) -> Stream:
    """The first rows alone, to see that everything runs."""
    first = slice(0, QUICK_ROWS)
    return replace(stream, X=stream.X[first], y=stream.y[first], clean=stream.clean[first])


def tables(ledger: Ledger) -> str:
    """In the order of the streams and of the peers, ours first, whatever order they were run in."""
    names, variants, everyone = [*BASES, *HELD_OUT], list(VARIANTS), _everyone()
    peers = {task: list(entrants) for task, entrants in PEERS.items()}
    compared = [result for result in ledger if result.stream in BASES and result.entrant in everyone[result.task]]
    held_out = [result for result in ledger if result.stream in HELD_OUT and result.entrant in everyone[result.task]]
    parts = [result for result in ledger if result.entrant == OURS or result.entrant in ABLATION[result.task]]

    def place(result: Result) -> tuple[int, ...]:
        entrants = list(everyone[result.task] | ABLATION[result.task])
        return names.index(result.stream), variants.index(result.variant), entrants.index(result.entrant)

    sections = [
        report(sorted(compared, key=place), OURS, peers),
        comparison("### Streams held out", sorted(held_out, key=place), OURS, peers),
        ablation(sorted(parts, key=place), OURS, list(LADDER), [*WITHOUT, *NOT_ROBUST]),
    ]
    return "\n".join(section for section in sections if section)


def _everyone() -> Entrants:
    return {task: {**DEFAULT[task], **PEERS[task]} for task in PEERS}


def _chosen(entrants: Entrants, beginnings: list[str] | None) -> Entrants:
    if beginnings is None:
        return entrants
    every = [name for runs in entrants.values() for name in runs]
    for beginning in beginnings:
        if not any(name.startswith(beginning) for name in every):
            raise SystemExit(f"--peers {beginning}: no name begins so; there are {'; '.join(dict.fromkeys(every))}")
    begins = tuple(beginnings)
    return {task: {name: run for name, run in runs.items() if name.startswith(begins)} for task, runs in entrants.items()}


def _is_chosen(result: Result, options: argparse.Namespace, entrants: Entrants) -> bool:
    within = result.stream in options.streams and result.variant in options.variants
    return within and result.entrant in entrants[result.task]


def _key(stream: Stream, name: str) -> Key:
    return stream.name, stream.variant, name


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=_names([*BASES, *HELD_OUT]), help="names, with commas between them")
    parser.add_argument("--variants", type=_names(VARIANTS), help="names, with commas between them")
    parser.add_argument("--peers", type=lambda text: text.split(","), help="beginnings of names, with commas between them")
    parser.add_argument("--quick", action="store_true", help=f"the first {QUICK_ROWS} rows, in a file of its own")
    parser.add_argument("--fresh", action="store_true", help="measure what is chosen anew")
    parser.add_argument("--held-out", action="store_true", help="the streams that the default was not chosen by")
    parser.add_argument("--ablation", action="store_true", help="take the default apart instead")
    parser.add_argument("--out", type=Path, default=Path("out/quality"), help="where results are kept")
    parser.add_argument("--write", type=Path, metavar="DOCUMENT", help="only put the tables into a document")
    options = parser.parse_args(arguments)
    bases = HELD_OUT if options.held_out else BASES
    options.streams = list(bases) if options.streams is None else options.streams
    if not set(options.streams) <= set(bases):
        parser.error(f"--streams {','.join(options.streams)}: {'without' if options.held_out else 'held out; add'} --held-out")
    if options.variants is None:
        options.variants = list(ABLATED_VARIANTS if options.ablation else VARIANTS)
    return options


def _names(known: Iterable[str]) -> Callable[[str], list[str]]:
    def names(text: str) -> list[str]:
        chosen = text.split(",")
        for name in chosen:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name}: there are {', '.join(known)}")
        return chosen

    return names


if __name__ == "__main__":
    main()
