"""How good are the predictions? Progressive evaluation of the default and of its peers over streams, in two studies.

    python benchmarks/quality.py [--streams breast,boston] [--variants raw] [--peers onlinevi,VW] [--quick] [--fresh]
    python benchmarks/quality.py --held-out
    python benchmarks/quality.py --ablation
    python benchmarks/quality.py --bent [--held-out]
    python benchmarks/quality.py --write docs/choosing.md

The first study has 13 streams in 4 variants, and linear peers. ``--bent`` has streams on which boundaries bend and change, and
forests, neighbours and networks among the peers; the first study's streams are in it too, scaled and corrupted.

Results are kept in out/quality as they come, and an interrupted run goes on where it stopped. ``--peers`` takes beginnings of
names, ours included. ``--held-out`` is for other streams, by which the default was not chosen. ``--write`` runs nothing: it
puts the tables of what is there between the marks of a document. Peers that were not measured are as they were printed once
(``printed.py``): so ours can be run alone, in minutes.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import bent_tables
import quality_tables
import timing  # noqa: F401  (one thread, said before numpy is imported)
from bent_peers import BENT_PEERS, is_here
from bent_streams import ALSO_FIRST, BENT_BASES, BENT_HELD_OUT, variants_of
from held_out import HELD_OUT
from ledger import Key, Ledger, Result
from ours import ABLATION, ALL_OURS, BEFORE, LADDER, LIGHT, MOST, NOT_RECALIBRATED, NOT_ROBUST, OURS, WITHOUT
from peers import PEERS, Scored
from printed import FOLDER, printed, printed_times, together
from quality_tables import put_between_marks
from scores import score
from study_streams import BASES, VARIANTS, Stream, streams

from onlinevi.adapters.cli.progress import watching

Entrants = Mapping[str, Mapping[str, Callable[[Stream], Scored]]]
Bases = Mapping[str, Callable[[], Stream]]

QUICK_ROWS = 300
ABLATED_VARIANTS = ("scaled", "raw", "corrupted")  # to a default that standardises, blown is raw once more


@dataclass(frozen=True)
class Study:
    """Streams, some of them held out, and who runs on them; what its file and its section of a document are called."""

    file: str
    section: str
    bases: Bases
    held_out: Bases
    peers: Entrants
    variants_of: Callable[[str], Iterable[str]]
    tables: Callable[[Iterable[Result], Path], str]
    """Of results, and of the folder where those of peers are printed."""

    @property
    def everyone(self) -> Entrants:
        return {task: {**ALL_OURS[task], **peers} for task, peers in self.peers.items()}

    @property
    def names(self) -> dict[str, list[str]]:
        """Of the peers, by task."""
        return {task: list(peers) for task, peers in self.peers.items()}

    def chosen(self, names: Iterable[str], variants: Iterable[str]) -> dict[str, list[str]]:
        """In which variants each stream is to be run."""
        return {name: [variant for variant in variants if variant in self.variants_of(name)] for name in names}

    def streams(self, chosen: Mapping[str, list[str]]) -> Iterator[Stream]:
        for name, variants in chosen.items():
            yield from streams([name], variants, {**self.bases, **self.held_out})

    def written(self, ledger: Ledger, folder: Path) -> str:
        """The tables of what was measured, and of peers that were not as they are printed; nothing where nothing was."""
        measured = list(ledger)
        return self.tables(together(printed(folder / f"{self.section}.csv"), measured), folder) if measured else ""

    def ordered(self, results: Iterable[Result]) -> list[Result]:
        """In the order of the streams and of the peers, ours first, whatever order they were run in."""
        names, variants = [*self.bases, *self.held_out], list(VARIANTS)
        entrants = {task: [*run, *ABLATION.get(task, ())] for task, run in self.everyone.items()}

        def place(result: Result) -> tuple[int, ...]:
            who = entrants[result.task].index(result.entrant)
            return names.index(result.stream), variants.index(result.variant), who

        known = (result for result in results if result.stream in names and result.entrant in entrants.get(result.task, ()))
        return sorted(known, key=place)


def main(arguments: list[str] | None = None) -> None:
    options = _options(arguments)
    if options.write is not None:
        for study in (FIRST, BENT):
            text = study.written(Ledger(options.out / study.file), options.printed)
            if text:
                put_between_marks(options.write, text, study.section)
        return
    study = BENT if options.bent else FIRST
    ledger = Ledger(options.out / (f"quick-{study.file}" if options.quick else study.file))
    entrants = _chosen(ABLATION if options.ablation else study.everyone, options.peers)
    if options.fresh:
        ledger.forget({result.key for result in ledger if _is_chosen(result, options, entrants)})
    chosen = study.chosen(options.streams, options.variants)
    with watching("quality study") as bars:
        if bars is not None:
            bars.plan(sum(map(len, chosen.values())))
        found = study.streams(chosen)
        measure(ledger, map(shortened, found) if options.quick else found, entrants, bars)
    print(study.tables(ledger, options.printed) if options.quick else study.written(ledger, options.printed))


def measure(ledger: Ledger, chosen: Iterable[Stream], entrants: Entrants, bars: Any = None) -> None:
    """Every entrant on every stream, but those that the ledger has."""
    for stream in chosen:
        runs = entrants.get(stream.task, {})
        pending = {name: run for name, run in runs.items() if _key(stream, name) not in ledger}
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


def _first_tables(found: Iterable[Result], folder: Path) -> str:
    results = FIRST.ordered(found)
    parts = [result for result in results if result.entrant == OURS or result.entrant in ABLATION[result.task]]
    run = [result for result in results if result.entrant == OURS or result.entrant in PEERS[result.task]]
    compared = [result for result in run if result.stream in BASES]
    held_out = [result for result in run if result.stream in HELD_OUT]
    by_key = {result.key: result for result in results}
    sections = [
        quality_tables.report(compared, OURS, FIRST.names),
        bent_tables.against(compared, OURS, by_key, BEFORE, "###"),
        bent_tables.against([result for result in results if result.stream in BASES], LIGHT, by_key, BEFORE, "###"),
        quality_tables.comparison("### Streams held out", held_out, OURS, FIRST.names),
        quality_tables.ablation(parts, OURS, list(LADDER), [*WITHOUT, *NOT_ROBUST, NOT_RECALIBRATED]),
    ]
    return "\n".join(section for section in sections if section) if results else ""


def _bent_tables(found: Iterable[Result], folder: Path) -> str:
    parts = {
        "Streams that bend": list(BENT_BASES),
        "Streams that bend, held out": list(BENT_HELD_OUT),
        "The first study's streams, against peers that bend": list(ALSO_FIRST),
    }
    results, times = BENT.ordered(found), printed_times(folder / "bent_times.csv")
    more = [(OURS, BEFORE), (MOST, OURS)]
    return bent_tables.report(results, OURS, more, BENT.names, parts, times) if results else ""


FIRST = Study("results.jsonl", quality_tables.SECTION, BASES, HELD_OUT, PEERS, lambda name: VARIANTS, _first_tables)
BENT = Study("bent.jsonl", bent_tables.SECTION, BENT_BASES | ALSO_FIRST, BENT_HELD_OUT, BENT_PEERS, variants_of, _bent_tables)


def _chosen(entrants: Entrants, beginnings: list[str] | None) -> Entrants:
    """Those whose names begin so, without those that are not installed and need not be."""
    every = [name for runs in entrants.values() for name in runs]
    for beginning in beginnings or ():
        if not any(name.startswith(beginning) for name in every):
            raise SystemExit(f"--peers {beginning}: no name begins so; there are {'; '.join(dict.fromkeys(every))}")
    begins = tuple(beginnings or [""])
    return {
        task: {name: run for name, run in runs.items() if name.startswith(begins) and is_here(name)}
        for task, runs in entrants.items()
    }


def _is_chosen(result: Result, options: argparse.Namespace, entrants: Entrants) -> bool:
    within = result.stream in options.streams and result.variant in options.variants
    return within and result.entrant in entrants.get(result.task, ())


def _key(stream: Stream, name: str) -> Key:
    return stream.name, stream.variant, name


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = [*BASES, *HELD_OUT, *BENT_BASES, *BENT_HELD_OUT]
    parser.add_argument("--streams", type=_names(dict.fromkeys(every)), help="names, with commas between them")
    parser.add_argument("--variants", type=_names(VARIANTS), help="names, with commas between them")
    parser.add_argument("--peers", type=lambda text: text.split(","), help="beginnings of names, with commas between them")
    parser.add_argument("--quick", action="store_true", help=f"the first {QUICK_ROWS} rows, in a file of its own")
    parser.add_argument("--fresh", action="store_true", help="measure what is chosen anew")
    parser.add_argument("--bent", action="store_true", help="the study on streams that bend")
    parser.add_argument("--held-out", action="store_true", help="the streams that the default was not chosen by")
    parser.add_argument("--ablation", action="store_true", help="take the default apart instead")
    parser.add_argument("--out", type=Path, default=Path("out/quality"), help="where results are kept")
    parser.add_argument("--printed", type=Path, default=FOLDER, help="where scores of peers are that were not measured here")
    parser.add_argument("--write", type=Path, metavar="DOCUMENT", help="only put the tables into a document")
    options = parser.parse_args(arguments)
    if options.bent and options.ablation:
        parser.error("--ablation: the default is taken apart on the streams of the first study; leave --bent out")
    study = BENT if options.bent else FIRST
    bases, others = (study.held_out, study.bases) if options.held_out else (study.bases, study.held_out)
    options.streams = list(bases) if options.streams is None else options.streams
    for name in options.streams:
        if name in others:
            parser.error(f"--streams {name}: {'without' if options.held_out else 'held out; add'} --held-out")
        if name not in bases:
            parser.error(f"--streams {name}: it is in the other study, {'without' if options.bent else 'with'} --bent")
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
