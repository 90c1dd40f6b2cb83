"""What was learned, how well and how surely, in words that need no statistics."""

from __future__ import annotations

import math

from onlinevi.runs.charts.style import number, percent
from onlinevi.runs.report.measures import beside, rang
from onlinevi.runs.report.results import CoverageCurve, ReliabilityBins, Results

ENDS = {
    "end": "",
    "interrupted": "The run was interrupted; this is what it knew by then.",
    "running": "The run goes on; this is what it knows so far.",
    "bad row": "The run stopped at a row that it could not use; this is what it knew by then.",
}


def headline(results: Results) -> list[str]:
    """Plain sentences, not yet escaped; only those that the results can back."""
    found = [_learned(results), *_late(results), beside(results.metrics) if results.metrics else ""]
    found += [_odd(results), _sure(results), _sets(results), _decided(results)]
    found += [*rang(results.alarms), _against_best(results), _certified(results)]
    found += [*_shards(results), likely(results), _ended(results)]
    return [sentence for sentence in found if sentence]


def _learned(results: Results) -> str:
    summary, task = results.summary, results.head.task
    if summary is None:
        return ""
    if not summary.events:
        return "No row could be used: nothing was predicted, and nothing learned."
    rows = "The one row" if summary.events == 1 else f"Every one of {summary.events:,} rows"
    delay = results.head.settings.get("delay")
    after = "when that came" if summary.late else f"when it came, {delay} later" if delay else "right after"
    start = f"{rows} was predicted before its answer was seen, and learned from {after}."
    if task.kind == "classes" and summary.error_rate is not None:
        return f"{start} The guess of “{task.target}” was right for {percent(1.0 - summary.error_rate)} of them."
    if results.metrics is not None and "rmse" in results.metrics.so_far.learner:
        scored = results.metrics.so_far.learner
        r2 = f" (R²\N{NO-BREAK SPACE}{number(scored['r2'])})" if math.isfinite(scored.get("r2", math.nan)) else ""
        return f"{start} The root of the mean squared error was {number(scored['rmse'])}{r2}."
    return f"{start} The average loss was {number(summary.average_loss)}."


def _late(results: Results) -> list[str]:
    """What became of rows and labels that came apart."""
    late = results.summary.late if results.summary else None
    if late is None:
        return []
    of_rows = {
        "labelled": "had their label",
        "otherwise": f"were learned as “{late.otherwise}” after {late.wait} without one",
        "left_out": f"were left out after {late.wait} without one",
        "crowded": "were left out because too many waited",
        "repeated": "came under the key of one that waited, and were left out",
    }
    of_labels = {
        "early": "came before their row",
        "duplicates": "came again",
        "too_late": "came too late",
        "orphans": "had no row",
    }
    rows = [f"{count:,} {of_rows[name]}" for name, count in late.rows.items() if count or name == "labelled"]
    rows += [f"{late.waiting:,} wait still"] if late.waiting else []
    labels = [f"{count:,} {of_labels[name]}" for name, count in late.labels.items() if count]
    labels += [f"{late.waiting_labels:,} wait for a row"] if late.waiting_labels else []
    found = [f"Of the rows, {'; '.join(rows)}.", f"Of the labels, {'; '.join(labels)}." if labels else ""]
    if late.out_of_order:
        found.append(f"{late.out_of_order:,} came behind later ones, and were taken as coming then.")
    return [sentence for sentence in found if sentence]


def cells_as_missing(count: int) -> str:
    """How many cells were not of their column's kind, where these are taken as missing."""
    cells, their = ("cell is", "its") if count == 1 else ("cells are", "their")
    return f"{count:,} {cells} not of {their} column's kind, and taken as missing."


def _odd(results: Results) -> str:
    count = results.summary.bad_rows.as_missing if results.summary else 0
    return cells_as_missing(count) if count else ""


def _sure(results: Results) -> str:
    match results.calibration:
        case CoverageCurve(coverage=coverage, target=target) if coverage and math.isfinite(coverage[-1]):
            return (
                f"Each prediction came with a range meant to hold the answer {percent(target)} of the time; it held "
                f"{percent(coverage[-1])} of the time."
            )
        case ReliabilityBins() as bins if sum(bins.count) > 0.0:
            return f"Its probabilities were off by {100.0 * calibration_error(bins):.1f} percentage points on average."
    return ""


def _sets(results: Results) -> str:
    """How often sets held the class, and how large they were."""
    sets = results.sets
    if sets is None or not sets.steps:
        return ""
    return (
        f"Each prediction came with a set of classes meant to hold the answer {percent(sets.target)} of the time; it held "
        f"{percent(sets.coverage[-1])} of the time, with {number(sets.size[-1])} classes on average."
    )


def _decided(results: Results) -> str:
    """What was decided, and what that cost beside the plain guess."""
    scored = {} if results.metrics is None else results.metrics.so_far.learner
    told = []
    if "decided" in scored and math.isfinite(scored["decided"]):
        told.append(f"It decided {percent(scored['decided'])} of the rows, rightly {percent(scored['decided_right'])} of them")
    if "cost" in scored and math.isfinite(scored["cost"]):
        told.append(f"{'its' if told else 'Its'} decisions cost {number(scored['cost'])} each")
        told[-1] += f", where the likeliest class would have cost {number(scored['cost_of_guess'])}"
    return f"{'; '.join(told)}." if told else ""


def calibration_error(bins: ReliabilityBins) -> float:
    """Mean |predicted − observed| over the events."""
    parts = zip(bins.predicted, bins.observed, bins.count, strict=True)
    return sum(abs(predicted - observed) * count for predicted, observed, count in parts) / sum(bins.count)


def _against_best(results: Results) -> str:
    if results.summary is None or results.hindsight is None:
        return ""
    ours, best = results.summary.average_loss, results.hindsight.value
    if ours <= best:
        return (
            f"Its average loss of {number(ours)} is below that of the best fixed model chosen with all answers known, "
            f"{number(best)}: learning on the way cost nothing."
        )
    return (
        f"The best fixed model, chosen with all answers known, would have an average loss of {number(best)}; learning on the "
        f"way cost {number(ours - best)} more a row."
    )


def _certified(results: Results) -> str:
    certified = results.regret.certified if results.regret is not None else None
    if not certified or not math.isfinite(certified[-1]):
        return ""
    most = certified[-1]
    if most <= 0.0:
        return "It is certain, whatever the data, that no fixed model of its kind would have done better."
    # No loss but that of counts falls below 0, so none can be beaten by more than itself.
    if results.summary is not None and results.head.task.kind != "counts" and most >= results.summary.average_loss:
        return f"What is certain whatever the data, a regret of at most {number(most)} a row, says little so far."
    return (
        f"It is certain, whatever the data, that no fixed model of its kind would have beaten it by more than {number(most)} "
        "a row."
    )


def _shards(results: Results) -> list[str]:
    """How many there were, and what is certain of all of them."""
    if results.shards is None:
        return []
    each, rounds = results.shards.each, results.shards.rounds
    bad = sum(bool(one.error) for one in each)
    number = f"{len(each):,} {'shard was' if len(each) == 1 else 'shards were'} learned from side by side"
    number += f", in {rounds} rounds" if rounds > 1 else ""
    number += f"; {bad:,} could not be used" if bad else ""
    return [f"{number}.", results.shards.certificate]


def likely(results: Results) -> str:
    """What is likely of new rows; it does not boast of what a coin can do."""
    risk, classes = results.risk, len(results.head.task.classes or ()) or 2
    bounds = (
        []
        if risk is None
        else [
            (risk.guesses, "its guesses along the way, on average"),
            (risk.gibbs, "weights drawn from its belief in the end"),
            (risk.vote, "the likelier of their answers"),
        ]
    )
    told = [f"{percent(most)} ({whose})" for most, whose in bounds if most is not None and most < 1.0 - 1.0 / classes]
    if risk is None or not told:
        return ""
    return (
        f"If rows come independently from one law, then with {percent(1.0 - risk.delta)} confidence each no more than these "
        f"shares of new rows are got wrong: {', '.join(told)}."
    )


def _ended(results: Results) -> str:
    return ENDS[results.summary.stopped] if results.summary else ""
