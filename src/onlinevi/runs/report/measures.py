"""What metrics say in words and as a table: of the learner, and of what needs no model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import accumulate, islice

from onlinevi.runs.charts.style import number, percent
from onlinevi.runs.report.scored import Alarms, Metrics, OneAlarm, Scored

WIDEST = 127
"""Characters that a line of a table of metrics has at most."""
MOST_TOLD = 3
"""Alarms that are told of in sentences."""
BASELINES = {"constant": "always saying the same", "last_label": "saying the same as last time"}
NAMES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "f1": "F1",
    "auc": "AUC",
    "log_loss": "log loss",
    "brier": "Brier score",
    "ece": "calibration error",
    "rmse": "RMSE",
    "r2": "R²",
    "mae": "MAE",
    "deviance": "deviance",
    "pinball": "pinball loss",
    "coverage": "coverage",
    "width": "width",
    "set_size": "set size",
    "decided": "decided",
    "decided_right": "decided rightly",
    "cost": "cost",
    "cost_of_guess": "cost of guesses",
}
"""What metrics are called."""
HIGHER_IS_BETTER = frozenset({"accuracy", "balanced_accuracy", "f1", "auc", "r2"})


def skill(scored: Scored, name: str, against: str) -> float:
    """How much better the learner is in one metric, of errors squared: 1 is all there is to gain, 0 nothing, below 0 worse."""
    own, other = scored.learner[name], getattr(scored, against)[name]
    if name in HIGHER_IS_BETTER:
        own, other = 1.0 - own, 1.0 - other
    if name == "rmse":
        own, other = own * own, other * other
    return float(1.0 - own / other) if other > 0.0 else (0.0 if own == other else -math.inf)


def verdict(so_far: Scored, recent: Scored | None, lead: str) -> str:
    """What the learner does not beat, in a sentence; empty where it beats both, over all rows and over the last ones."""
    for scored, rows in ((so_far, ""), (recent, "of the last {:,} rows ")):
        if scored is None or not scored.events:
            continue
        skills = {who: skill(scored, lead, who) for who in BASELINES}
        worst = min(skills, key=lambda who: skills[who])
        if skills[worst] <= 0.0:
            own, other = number(scored.learner[lead]), number(getattr(scored, worst)[lead])
            return (
                f"The model does not beat {BASELINES[worst]}{' of late' if rows else ''}: its {NAMES[lead]} "
                f"{rows.format(scored.events)}is {own}, and {other} of {BASELINES[worst]}."
            )
    return ""


def by_whose(metrics: Metrics) -> dict[str, dict[str, float]]:
    """The metrics by whose they are: the learner's over all rows and over the last ones, and what needs no model."""
    so_far, recent = metrics.so_far, metrics.recent
    found = {f"since row {metrics.since:,}" if metrics.since else "all rows": so_far.learner}
    if recent is not None and recent.events < so_far.events:
        found[f"last {recent.events:,}"] = recent.learner
    return found | {"always the same": so_far.constant, "same as last time": so_far.last_label}


def beside(metrics: Metrics) -> str:
    """How far the learner is from what needs no model, in a sentence."""
    if metrics.verdict:
        return metrics.verdict
    lead, scored = metrics.lead, metrics.so_far
    others = [f"{number(getattr(scored, who)[lead])} of {name}" for who, name in BASELINES.items()]
    return f"Its {NAMES[lead]} of {number(scored.learner[lead])} compares with {' and '.join(others)}."


def rang(alarms: Alarms | None) -> list[str]:
    """The alarms in sentences, the last ones."""
    if alarms is None or not alarms.count:
        return []
    told = [_rang(one, what_moved(one, alarms)) for one in alarms.rang[-MOST_TOLD:]]
    more = f" The last {len(told)} of them:" if len(told) < alarms.count else ""
    times = "An alarm rang" if alarms.count == 1 else f"Alarms rang {alarms.count:,} times"
    return [f"{times}: large losses have become more frequent.{more} " + " ".join(told)]


def what_moved(one: OneAlarm, alarms: Alarms) -> str:
    """The columns that moved with an alarm, in words."""
    if one.moved:
        return ", ".join(f"{each.name} by {_stds(each.stds)} stds" for each in one.moved)
    return "no column by itself" if alarms.columns else "not told of more than 100 columns"


def _stds(value: float) -> str:
    """A distance in stds, with two digits; an outlier may be millions of them away."""
    return f"{value:+.2g}" if abs(value) < 100.0 else f"{'+' if value > 0.0 else '-'}{number(float(f'{abs(value):.2g}'))}"


def _rang(one: OneAlarm, moved: str) -> str:
    return (
        f"Behind row {one.row:,}: losses above {number(one.level)} came in {percent(one.after)} of the rows since row "
        f"{one.since:,}, in {percent(one.before)} before; moved most: {moved}."
    )


def table(metrics: Metrics, widest: int = WIDEST) -> list[str]:
    """The metrics as lines of text, one each, by whose they are."""
    scored = by_whose(metrics)
    rows = {
        NAMES.get(name, name): {title: whose.get(name) for title, whose in scored.items()} for name in metrics.so_far.learner
    }
    return _lines(rows, {title: title for title in scored}, widest)


def side_by_side(rows: Mapping[str, Mapping[str, float | None]], widest: int = WIDEST) -> list[str]:
    """Metrics by who has them, a line each under their names; the first has all of them."""
    return _lines(rows, {name: NAMES.get(name, name) for name in next(iter(rows.values()))}, widest)


def _lines(rows: Mapping[str, Mapping[str, float | None]], head: Mapping[str, str], widest: int) -> list[str]:
    """A line for each row behind its name, under the names of columns; columns for which there is no room go below."""
    widths = {name: max(9, len(told)) for name, told in head.items()}
    first, lines, left = max(map(len, rows)), list[str](), [*head]
    while left:
        ends = accumulate((widths[name] + 2 for name in left), initial=first)
        fitting = [name for name, end in zip(left, islice(ends, 1, None), strict=True) if end <= widest] or left[:1]
        lines.append(" " * first + "".join(f"  {head[name]:>{widths[name]}}" for name in fitting))
        for who, values in rows.items():
            if any(name in values for name in fitting):
                lines.append(f"{who:{first}}" + "".join(f"  {number(values.get(name)):>{widths[name]}}" for name in fitting))
        left = [name for name in left if name not in fitting]
    return lines
