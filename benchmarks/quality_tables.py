"""The tables of the study in Markdown, made from the results alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ledger import Result
from scores import HEADLINE

CLOSE = 0.01
"""This much worse than the best peer still counts as equal."""
LONG = 5000
"""From this many rows on, coverage is that of the calibration rather than of its start."""
SECTION = "quality"
"""What the marks of a document call these tables."""
TITLES = {
    "classification": "Classes: log loss",
    "regression": "Numbers: mean squared error",
    "quantile": "The 0.9 quantile: pinball loss",
    "counts": "Counts: Poisson deviance",
    "classes": "Several classes: log loss",
}


class Pair(NamedTuple):
    """Ours on one stream in one variant, against the peers that answered every row of it."""

    ours: Result
    peers: tuple[Result, ...]
    missing: int
    """How many peers have not been run, or were stopped for being slow."""

    @property
    def best(self) -> Result:
        return min(self.peers, key=headline)

    @property
    def ratio(self) -> float:
        return headline(self.ours) / headline(self.best)

    @property
    def holds(self) -> bool:
        """Whether ours is best, or as good as the best peer."""
        return self.ratio <= 1.0 + CLOSE

    @property
    def verdict(self) -> str:
        if self.ratio <= 1.0:
            return "best"
        return "within 1%" if self.holds else "loses"

    @property
    def line(self) -> list[str]:
        which = self.best.entrant + (f" ({self.missing} not compared)" if self.missing else "")
        scores = number(headline(self.ours)), number(headline(self.best))
        return [self.ours.stream, self.ours.variant, *scores, which, f"{self.ratio:.3f}", self.verdict]


def headline(result: Result) -> float:
    """The score it is compared by; infinite if it diverged."""
    return result.scores.get(HEADLINE[result.task], math.inf)


def pairs(results: Iterable[Result], ours: str, peers: Mapping[str, Sequence[str]]) -> list[Pair]:
    """Every stream and variant that ours and at least one peer have been through, in the order of the results."""
    by_key = {result.key: result for result in results}
    found = []
    for own in (result for result in by_key.values() if result.entrant == ours):
        run = [by_key.get((own.stream, own.variant, name)) for name in peers[own.task]]
        compared = tuple(result for result in run if result is not None and not result.note.startswith("too_slow"))
        if any(map(math.isfinite, map(headline, compared))):
            found.append(Pair(own, compared, len(run) - len(compared)))
    return found


def report(results: Iterable[Result], ours: str, peers: Mapping[str, Sequence[str]]) -> str:
    """Ours against the best peer, the share of pairs, where it loses, every score, intervals and times."""
    results = list(results)
    every = pairs(results, ours, peers)
    parts = [_against_best("### Against the best peer", every), shares(every), _losses(every)]
    parts += [_all_scores(results, ours, peers), _intervals(results), calibration(results), _times(results)]
    return "\n\n".join(part for part in parts if part) + "\n"


def comparison(title: str, results: Iterable[Result], ours: str, peers: Mapping[str, Sequence[str]]) -> str:
    """Ours against the best peer, and how often it holds."""
    every = pairs(results, ours, peers)
    best, holds = sum(pair.ratio <= 1.0 for pair in every), sum(pair.holds for pair in every)
    said = f"Best on {best} of {len(every)} pairs; best or within 1% on {holds}."
    return f"{_against_best(title, every)}\n\n{said}\n" if every else ""


def _against_best(heading: str, every: list[Pair]) -> str:
    parts = [heading]
    for task, title in TITLES.items():
        lines = [pair.line for pair in every if pair.ours.task == task]
        if lines:
            header = ["Stream", "Variant", "Ours", "Best peer", "Which", "Ratio", "Ours is"]
            parts.append(f"**{title}**\n\n{table(header, lines)}")
    return "\n\n".join(parts) if every else ""


def shares(every: list[Pair], level: str = "###") -> str:
    lines = []
    for name, chosen in [(task, [pair for pair in every if pair.ours.task == task]) for task in TITLES] + [("all", every)]:
        if chosen:
            best, holds = sum(pair.ratio <= 1.0 for pair in chosen), sum(pair.holds for pair in chosen)
            lines.append([name, str(len(chosen)), str(best), str(holds), f"{holds / len(chosen):.0%}"])
    return (
        f"{level} Share of pairs\n\n{table(['Task', 'Pairs', 'Best', 'Best or within 1%', 'Share'], lines)}" if lines else ""
    )


def _losses(every: list[Pair]) -> str:
    lines = []
    for pair in every:
        own = headline(pair.ours)
        better = [peer for peer in sorted(pair.peers, key=headline) if own > (1.0 + CLOSE) * headline(peer)]
        if better:
            to = "; ".join(f"{peer.entrant} {number(headline(peer))}" for peer in better)
            lines.append([pair.ours.stream, pair.ours.variant, number(own), to])
    if not every:
        return ""
    return "### Where it loses, to whom\n\n" + (table(["Stream", "Variant", "Ours", "To"], lines) if lines else "Nowhere.")


def _all_scores(results: list[Result], ours: str, peers: Mapping[str, Sequence[str]]) -> str:
    parts = ["### Every score"]
    for task, title in TITLES.items():
        names = [ours, *peers.get(task, ())]
        body = by_variant([result for result in results if result.task == task and result.entrant in names], _score)
        if body:
            parts.append(f"**{title}{' (share of errors)' if task == 'classification' else ''}**\n\n{body}")
    return "\n\n".join(parts)


def _score(result: Result) -> str:
    if result.note.startswith("too_slow"):
        return f"{number(headline(result))}, {result.note.removeprefix('too_slow: ')}"
    if not math.isfinite(headline(result)):
        return "diverged"
    error = f" ({result.scores['error']:.1%})" if "error" in result.scores else ""
    return number(headline(result)) + error


def _intervals(results: list[Result]) -> str:
    body = by_variant([result for result in results if "coverage" in result.scores], _interval)
    note = f"Coverage, asked for 90%, and the median width. \\*: {LONG:,} rows or more."
    return f"### Intervals of numbers\n\n{note}\n\n{body}" if body else ""


def _interval(result: Result) -> str:
    width = number(result.scores["width"]) if "width" in result.scores else "unbounded"
    return f"{result.scores['coverage']:.1%}, {width}"


def calibration(results: list[Result], level: str = "###") -> str:
    """How far probabilities were off; of results from before that was measured there is none."""
    body = by_variant([result for result in results if "ece" in result.scores], lambda one: f"{one.scores['ece']:.2%}")
    note = "ECE in ten bins: of two classes that of the second, of more that of the likeliest."
    return f"{level} Calibration of probabilities\n\n{note}\n\n{body}" if body else ""


def _times(results: list[Result]) -> str:
    chosen = [result for result in results if result.variant == "scaled" and result.seconds > 0.0]
    lines = [
        [stream, "; ".join(f"{result.entrant} {_micros(result)}" for result in sorted(run, key=per_row))]
        for stream, run in grouped(chosen).items()
    ]
    note = (
        "Microseconds an event to predict and learn, scaled variant; ours as one block, after compilation, peers row by row."
    )
    return f"### Time\n\n{note}\n\n{table(['Stream', 'From fast to slow'], lines)}" if lines else ""


def per_row(result: Result) -> float:
    """Seconds. Who was stopped for being slow has done the rows that its note tells."""
    return result.seconds / (int(result.note.split()[3]) if result.note.startswith("too_slow") else result.rows)


def _micros(result: Result) -> str:
    return f"{1e6 * per_row(result):,.0f}"


def ablation(results: Iterable[Result], ours: str, ladder: Sequence[str], without: Sequence[str]) -> str:
    """What each part adds on the way to the default, and what the default loses without it."""
    by_key = {result.key: result for result in results}
    parts = []
    for title, columns in (
        ("### From the paper's step to the default", [*ladder, ours]),
        ("### The default without one part", [ours, ladder[-1], *without]),
    ):
        lines = [
            [result.stream, result.variant, *(_ablated(by_key.get((result.stream, result.variant, name))) for name in columns)]
            for result in by_key.values()
            if result.entrant == ladder[0]
        ]
        if lines:
            parts.append(f"{title}\n\n{table(['Stream', 'Variant', *columns], lines)}")
    return "\n\n".join(parts) + "\n" if parts else ""


def _ablated(result: Result | None) -> str:
    if result is None:
        return ""
    if result.note:
        return "refused row " + result.note.split()[2]
    return number(headline(result))


def by_variant(results: list[Result], cell: Callable[[Result], str]) -> str:
    """A row for each entrant on each stream, a column for each variant."""
    variants = list(dict.fromkeys(result.variant for result in results))
    cells = {result.key: cell(result) for result in results}
    lines = [
        [stream + ("\\*" if run[0].rows >= LONG else ""), name, *(cells.get((stream, each, name), "") for each in variants)]
        for stream, run in grouped(results).items()
        for name in dict.fromkeys(result.entrant for result in run)
    ]
    return table(["Stream", "", *variants], lines) if lines else ""


def grouped(results: list[Result], by: str = "stream") -> dict[str, list[Result]]:
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(getattr(result, by), []).append(result)
    return groups


def table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = [header, ["---"] * len(header), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def number(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "diverged"


def marks(section: str) -> tuple[str, str]:
    """The lines between which a document has a section."""
    return f"<!-- {section}: begin -->", f"<!-- {section}: end -->"


def put_between_marks(path: Path, text: str, section: str = SECTION) -> None:
    """Replace what lies between the marks of a section, and nothing else."""
    document, (begin, end) = path.read_text(), marks(section)
    if document.count(begin) != 1 or document.count(end) != 1:
        raise ValueError(f"{path} needs the lines {begin} and {end} once each, to know where the tables go")
    before, rest = document.split(begin)
    path.write_text(f"{before}{begin}\n\n{text}\n{end}{rest.split(end)[1]}")
