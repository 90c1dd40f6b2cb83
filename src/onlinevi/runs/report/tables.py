"""Tables of a page: what is beside each other on a wide screen, and below each other on a narrow one."""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape

from onlinevi.runs.charts.style import number, percent, shortened
from onlinevi.runs.report.measures import NAMES, by_whose, what_moved
from onlinevi.runs.report.results import Results

MOST_CLASSES = 12
"""A table of more classes than these is none that can be read: then the commonest mistakes are told."""
MISTAKES = 12
LONGEST = 16
"""How many characters of the name of a class are shown beside the table of mistakes."""
LONG = 24
"""Rows of a table that stand on the page as they are."""


def table(head: Iterable[str], rows: Iterable[Iterable[str]], numeric: int = 0) -> str:
    """``numeric`` columns at the end are set to the right. A long one scrolls in a frame."""
    names, lines = list(head), list(rows)
    cell = ["" if k < len(names) - numeric else ' class="number"' for k in range(len(names))]
    top = "".join(f"<th{kind}>{escape(name)}</th>" for name, kind in zip(names, cell, strict=True))
    # Where there is no room for columns side by side, each cell says what it is.
    body = "".join(
        "<tr>"
        + "".join(
            f'<td{kind} data-name="{escape(name)}">{escape(value)}</td>'
            for value, kind, name in zip(row, cell, names, strict=True)
        )
        + "</tr>"
        for row in lines
    )
    kind = "scroll long" if len(lines) > LONG else "scroll"
    across = 2 if numeric in (2, 4) else 3
    told = f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="{kind}" style="--across: {across}">{told}</div>'


def metrics(results: Results) -> str:
    """What the model scores, over all rows and of late, beside what needs no model."""
    told = results.metrics
    if told is None:
        return ""
    scored = by_whose(told)
    named = [(NAMES.get(name, name), name) for name in told.so_far.learner]
    rows = ([title, *(number(whose.get(name, math.nan)) for whose in scored.values())] for title, name in named)
    since = f" Rows before row {told.since:,} were not measured." if told.since else ""
    note = "Of predictions made before their answers were seen, beside what needs no model, over all rows."
    told_as = table(["metric", *scored], rows, numeric=len(scored))
    return f"<section><h2>How good it is</h2><p>{note}{since}</p>{told_as}</section>"


def classes(results: Results) -> str:
    """Each class by itself."""
    told = results.metrics.classes if results.metrics is not None else None
    if not told:
        return ""
    with_sets = any(math.isfinite(one.coverage) for one in told)
    weighed = any(one.weight is not None for one in told)
    head = ["class", "rows", "precision", "recall", "F1", "calibration error"]
    head += (["in its set", "set size"] if with_sets else []) + (["weight"] if weighed else [])
    rows = []
    for one in told:
        shares = [_share(one.precision), _share(one.recall), _share(one.f1), _share(one.ece)]
        sets = [_share(one.coverage), number(one.set_size)] if with_sets else []
        rows.append([one.name, f"{one.rows:,}", *shares, *sets, *([number(one.weight)] if weighed else [])])
    note = (
        "Precision is how many of those taken for a class were of it, recall how many of it were taken for it. The "
        "calibration error is how far off its probability was."
    )
    note += " Sets are to hold the answer as often as asked over all classes together, not in each." if with_sets else ""
    return f"<section><h2>How good it is at each class</h2><p>{note}</p>{table(head, rows, numeric=len(head) - 1)}</section>"


def told_by(results: Results) -> str:
    """By which columns each class is told from the rest."""
    if not results.told_by:
        return ""
    rows = (
        [one.name, ", ".join(f"{name} {percent(share)}" for name, share in zip(one.columns, one.share, strict=True) if share)]
        for one in results.told_by
    )
    note = "The columns that matter most to telling each class from the rest, and their shares in it."
    return f"<section><h2>What tells each class</h2><p>{note}</p>{table(['class', 'told by'], rows)}</section>"


def _share(value: float) -> str:
    return percent(value) if math.isfinite(value) else number(None)


def alarms(results: Results) -> str:
    """When large losses became more frequent, and which columns moved with it."""
    told = results.alarms
    if told is None:
        return ""
    title, sure = (
        "<section><h2>Did the stream change?</h2>",
        f"False alarms have a chance of at most {told.delta:g}, all together.",
    )
    if not told.count:
        return (
            f"{title}<p>No alarm rang: large losses did not become more frequent, as far as can be told. {sure}</p></section>"
        )
    rows = (
        [
            f"behind row {one.row:,}",
            what_moved(one, told),
            f"{one.since:,}",
            number(one.level),
            percent(one.before),
            percent(one.after),
        ]
        for one in told.rang
    )
    times = "once" if told.count == 1 else f"{told.count:,} times"
    note = f"An alarm rang {times}: large losses became more frequent. {sure}"
    note += f" The last {len(told.rang)} are shown." if len(told.rang) < told.count else ""
    head = ["it rang", "moved most", "since row", "loss above", "before", "since"]
    return f"{title}<p>{note}</p>{table(head, rows, numeric=4)}</section>"


def confusion(results: Results) -> str:
    """Which classes were taken for which."""
    counts = results.metrics.confusion if results.metrics is not None else None
    names = results.head.task.classes or []
    if not counts or len(counts) != len(names):
        return ""
    title = "<section><h2>What was taken for what</h2>"
    if len(names) > MOST_CLASSES:
        found = [(counts[i][j], names[i], names[j]) for i in range(len(names)) for j in range(len(names)) if i != j]
        worst = sorted(found, key=lambda each: -each[0])[:MISTAKES]
        rows = ([was, said, f"{count:,}"] for count, was, said in worst if count)
        note = f"The commonest mistakes among {len(names)} classes."
        return f"{title}<p>{note}</p>{table(['was', 'taken for', 'rows'], rows, numeric=1)}</section>"
    # A name that is cut is told in full where it is pointed at.
    titles = {name: f'<th title="{escape(name)}">{escape(shortened(name, LONGEST))}</th>' for name in names}
    body = ""
    for name, row in zip(names, counts, strict=True):
        total = sum(row)
        cells = "".join(_cell(count, total, right=names[place] == name) for place, count in enumerate(row))
        body += f"<tr>{titles[name]}{cells}</tr>"
    note = "A row is what it was, a column what was said; the stronger the colour, the larger the part of its row."
    return (
        f'{title}<p>{note}</p><div class="matrix"><table><thead><tr><th></th>{"".join(titles.values())}</tr></thead>'
        f"<tbody>{body}</tbody></table></div></section>"
    )


def _cell(count: int, total: int, *, right: bool) -> str:
    share = count / total if total else 0.0
    kind = "right" if right else "wrong"
    told = percent(share).replace("less than", "<") if total else number(None)
    return f'<td class="{kind}" style="--share: {100.0 * share:.0f}%">{count:,}<small>{escape(told)}</small></td>'
