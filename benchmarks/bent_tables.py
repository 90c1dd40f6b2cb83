"""The tables of the study on streams that bend, made from the results alone. The baselines stand beside every pair."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from bent_peers import BASELINES
from ledger import Result
from printed import Times
from quality_tables import CLOSE, TITLES, Pair, calibration, grouped, headline, number, pairs, per_row, shares, table

SECTION = "bent"
REASONS: dict[str, str] = {
    "phoneme": "the classes lie in small islands, which a hundred hinges and waves blur; less so with effort most",
    "rbf": "moving clouds in ten columns: as phoneme",
    "ring": "two round clouds about nearly one centre: naive Bayes is the truth there",
    "demand": "each half-hour is nearly the one before: that is what `lags=2` is for",
}
"""Why the default loses on a stream, in a few words, where it is understood."""

ByKey = Mapping[tuple[str, str, str], Result]
Peers = Mapping[str, Sequence[str]]


def report(
    results: Iterable[Result],
    ours: str,
    ratios: Iterable[tuple[str, str]],
    peers: Peers,
    parts: Mapping[str, Iterable[str]],
    printed: Mapping[str, Times],
) -> str:
    """Ours against peers and baselines, and its ``ratios`` to what it was and may be, in each part of the streams; times."""
    results = list(results)
    sections = []
    for title, names in parts.items():
        within = set(names)
        sections.append(_part(title, [result for result in results if result.stream in within], ours, ratios, peers))
    everyone = {ours, *(name for names in peers.values() for name in names)}
    chosen = [result for result in results if result.entrant in everyone]
    parts_behind = [_scores(results), calibration(chosen), _times(chosen, printed)]
    return "\n\n".join(part for part in [*sections, *parts_behind] if part) + "\n"


def _part(title: str, results: list[Result], ours: str, ratios: Iterable[tuple[str, str]], peers: Peers) -> str:
    every, by_key = pairs(results, ours, peers), {result.key: result for result in results}
    if not any(result.entrant == ours for result in results):
        return ""
    tables = [f"### {title}"]
    for task, name in TITLES.items():
        chosen = [pair for pair in every if pair.ours.task == task]
        if chosen:
            header = ["Stream", "Variant", "Ours", "Best peer", "Which", "Ratio", "Ours is", *map(str.capitalize, BASELINES)]
            lines = [[*pair.line, *(_cell(by_key, pair, baseline) for baseline in BASELINES)] for pair in chosen]
            tables.append(f"**{name}**\n\n{table(header, lines)}")
    if every:
        tables += [shares(every, "####"), losses(every), _errors(every)]
    tables += [against(results, own, by_key, other) for own, other in ratios]
    return "\n\n".join(part for part in tables if part)


def _cell(by_key: ByKey, pair: Pair, entrant: str) -> str:
    found = by_key.get((pair.ours.stream, pair.ours.variant, entrant))
    return "" if found is None else number(headline(found))


def losses(every: list[Pair]) -> str:
    """To whom, and how many times the other's score ours is."""
    lines = []
    for pair in every:
        own = headline(pair.ours)
        better = [peer for peer in sorted(pair.peers, key=headline) if own > (1.0 + CLOSE) * headline(peer)]
        if better:
            to = "; ".join(f"{peer.entrant} {own / headline(peer):.3f}" for peer in better)
            lines.append([pair.ours.stream, pair.ours.variant, number(own), to, REASONS.get(pair.ours.stream, "")])
    heading = "#### Where it loses, to whom, and how many times their score it pays\n\n"
    return heading + (table(["Stream", "Variant", "Ours", "To", "Why"], lines) if lines else "Nowhere.")


def _errors(every: list[Pair]) -> str:
    """Of classes: who says 0 or 1 is judged by log loss more harshly than it may deserve."""
    lines = []
    for pair in every:
        if "error" not in pair.ours.scores:
            continue
        line = [pair.ours.stream, pair.ours.variant]
        for score, shown in (("error", "{:.1%}".format), ("smoothed", number)):
            peers = [peer for peer in pair.peers if score in peer.scores]
            best = min(peers, key=_by(score))
            line += [shown(pair.ours.scores.get(score, math.inf)), shown(best.scores[score]), best.entrant]
        lines.append(line)
    heading = "#### Errors, and log loss with 1% of uniform probabilities mixed in\n\n"
    header = ["Stream", "Variant", "Our errors", "Fewest", "Whose", "Our log loss", "Least", "Whose"]
    return heading + table(header, lines) if lines else ""


def _by(score: str) -> Callable[[Result], float]:
    return lambda result: result.scores[score]


def against(results: Iterable[Result], own: str, by_key: ByKey, other: str, level: str = "####") -> str:
    """What one of ours has more or less than another."""
    compared = [(result, by_key.get((result.stream, result.variant, other))) for result in results if result.entrant == own]
    ratios = {
        f"{one.stream} {one.variant}": headline(one) / headline(two)
        for one, two in compared
        if two is not None and math.isfinite(headline(two))
    }
    if not ratios:
        return ""
    listed = "; ".join(f"{name} {ratio:.3f}" for name, ratio in sorted(ratios.items(), key=lambda item: -item[1]))
    worst, best = max(ratios, key=lambda name: ratios[name]), min(ratios, key=lambda name: ratios[name])
    mean = math.exp(np.mean(np.log(list(ratios.values()))))
    said = f"Worst {ratios[worst]:.3f} ({worst}), best {ratios[best]:.3f} ({best}), geometric mean {mean:.3f}."
    return f"{level} Ratio of {own} to {other}\n\n{said} From worst to best: {listed}."


def _scores(results: list[Result]) -> str:
    by_pair: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        by_pair.setdefault((result.stream, result.variant), []).append(result)
    lines = [
        [*pair, "; ".join(f"{result.entrant} {_score(result)}" for result in sorted(run, key=_order))]
        for pair, run in by_pair.items()
    ]
    heading = "### Every score on streams that bend\n\nIn brackets: stopped for being slow, and scored up to there.\n\n"
    return heading + table(["Stream", "Variant", "From best to worst"], lines) if lines else ""


def _was_slow(result: Result) -> bool:
    return result.note.startswith("too_slow")


def _order(result: Result) -> tuple[bool, float]:
    return _was_slow(result), headline(result)


def _score(result: Result) -> str:
    value = number(headline(result))
    return f"({value})" if _was_slow(result) else value


def _times(results: list[Result], printed: Mapping[str, Times]) -> str:
    """Over all streams, whose columns are from 2 to 313; of who was not measured, as printed."""
    timed = grouped([result for result in results if result.seconds > 0.0], by="entrant")
    times = {**printed, **{entrant: _timed(run) for entrant, run in timed.items()}}
    lines = [
        [entrant, str(of.streams), f"{of.median:,.0f}", f"{of.most:,.0f}", str(of.slow)]
        for entrant, of in sorted(times.items(), key=lambda item: item[1].median)
    ]
    note = "Microseconds an event to predict and learn; ours as one block, after compilation."
    body = table(["", "Streams", "Median", "Most", "Stopped as too slow on"], lines)
    return f"### Time on streams that bend\n\n{note}\n\n{body}" if lines else ""


def _timed(run: list[Result]) -> Times:
    micros = 1e6 * np.array([per_row(result) for result in run])
    return Times(len(run), float(np.median(micros)), float(micros.max()), sum(map(_was_slow, run)))
