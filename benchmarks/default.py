"""The default, in blocks of rows: its efforts, numbers and seven classes, against River's scaled regression and its forest.

    python benchmarks/default.py [--tiny]

All predict each row before they learn it. Processor time of a row, all in turns, on made rows whose boundary is straight;
River's forest of ten trees, which grows, once over rows whose boundary bends, as long as a minute of it lasts.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from made import bent_rows, unit_rows
from section import Size, left_out, main
from timing import Work, nanoseconds_a_row

import onlinevi as ovi
from onlinevi.learners import Learner

DIMS, CLASSES = (5, 20, 54), 7
ROWS, ROUNDS = 4_000, 5
BENT_ROWS, LONGEST = 10_000, 60.0
"""Of rows whose boundary bends, and the seconds that a forest may take over them."""
FOREST, SCALED = "River ARF, 10 trees", "River StandardScaler | LogisticRegression"


def measure(size: Size) -> dict[str, Any]:
    absent, rows = left_out("River"), size.rows(ROWS)
    straight, bent = {}, {}
    for dim in DIMS:
        works = _works(*unit_rows(rows, dim), river=not absent)
        straight[str(dim)] = nanoseconds_a_row(works, 1 if size.tiny else ROUNDS, time.process_time)
        bent[str(dim)] = _bent(*bent_rows(size.rows(BENT_ROWS), dim), river=not absent)
    found = {"rows": rows, "ns a row": straight, "bent": bent, "left out": absent}
    for line in lines(found):
        print(*(f"{cell:>12}" if k else f"{cell:45}" for k, cell in enumerate(line)))
    return found


def lines(found: dict[str, Any]) -> list[list[str]]:
    """µs a row, a column for each number of features, and how many times as long others take as the default."""
    straight, bent = found["ns a row"], found["bent"]
    table = [[name, *(f"{each[name] / 1e3:.3g}" for each in straight.values())] for name in straight[str(DIMS[0])]]
    table += [
        [name if "rows" in name else f"{name}, bent rows", *(f"{each[name]:,.0f}" for each in bent.values())]
        for name in bent[str(DIMS[0])]
    ]
    ratios = [f"Auto(), {CLASSES} classes", *([SCALED] if SCALED in straight[str(DIMS[0])] else [])]
    table += [[f"{name} ÷ Auto()", *(f"{each[name] / each['Auto()']:.3g}" for each in straight.values())] for name in ratios]
    if SCALED in ratios:
        own = "Auto(effort='light')"
        table.append([f"{SCALED} ÷ {own}", *(f"{each[SCALED] / each[own]:.3g}" for each in straight.values())])
        table.append([f"{FOREST} ÷ Auto(), bent rows", *(f"{each[FOREST] / each['Auto()']:.3g}" for each in bent.values())])
    return table


def _works(X: np.ndarray, y: np.ndarray, *, river: bool) -> dict[str, Work]:
    numbers = X[:, 0] + 0.3 * y
    works = {
        "Auto(effort='light')": _passing(ovi.Auto(effort="light"), X, y),
        "Auto()": _passing(ovi.Auto(), X, y),
        "Auto(effort='light'), numbers": _passing(ovi.Auto(ovi.Squared(), effort="light"), X, numbers),
        "Auto(), numbers": _passing(ovi.Auto(ovi.Squared()), X, numbers),
        f"Auto(), {CLASSES} classes": _passing(ovi.Auto(known=CLASSES, grows=False), X, np.arange(len(y)) % CLASSES),
    }
    if river:
        import rivals

        works[SCALED] = rivals.river_pass(X, y, scaled=True)
    return works


def _passing(learner: Learner[Any], X: np.ndarray, y: np.ndarray) -> Work:
    return Work(len(y), lambda: learner.update_many(learner.init(X.shape[1]), X, y))


def _bent(X: np.ndarray, y: np.ndarray, *, river: bool) -> dict[str, float]:
    """µs a row, and how many rows the forest got."""
    learner = ovi.Auto()
    found = {"Auto()": nanoseconds_a_row({"own": _passing(learner, X, y)}, 1, time.process_time)["own"] / 1e3}
    if river:
        import rivals

        rows, seconds = rivals.forest_for(X, y, LONGEST, time.process_time)
        found |= {FOREST: 1e6 * seconds / rows, "rows that the forest got": float(rows)}
    return found


if __name__ == "__main__":
    main("default", __doc__, measure)
