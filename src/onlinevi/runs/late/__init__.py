"""Labels that come later: so many rows later, or by key from a source of their own.

``wait.py`` says how long rows wait, ``feed.py`` reads records with their times and keys, ``labels.py`` labels among them, and
``merge.py`` has both in turns. ``late.py`` has the rules, and ``kept.py`` what waits, in few bytes.
"""

from onlinevi.runs.late.kept import KeptRow, WaitingRow, rows_from_json, rows_to_json
from onlinevi.runs.late.labels import Labels
from onlinevi.runs.late.late import Arrivals, Counts, Late
from onlinevi.runs.late.merge import Merge
from onlinevi.runs.late.wait import Wait, label_of

__all__ = [
    "Arrivals",
    "Counts",
    "KeptRow",
    "Labels",
    "Late",
    "Merge",
    "Wait",
    "WaitingRow",
    "label_of",
    "rows_from_json",
    "rows_to_json",
]
