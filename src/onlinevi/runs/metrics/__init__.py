"""What a run keeps of its rows for reports, in flat memory.

``account.py`` adds up losses and hits, and has ``scores.py`` measure what was predicted in the metrics that people know, over
all rows and over the last ones: of classes in ``classes.py``, of numbers, counts and quantiles in ``numbers.py``.
``baselines.py`` says what one would predict without a model, which is measured beside it. ``thinned.py`` keeps curves,
``snapshots.py`` the weights.
"""

from onlinevi.runs.metrics.account import BOUNDED, HIT, LOSS, STEP, WIDTH, Metrics
from onlinevi.runs.metrics.scores import Measured, Scores
from onlinevi.runs.metrics.snapshots import WIDEST, Snapshots, certified_regret
from onlinevi.runs.metrics.thinned import Thinned

__all__ = [
    "BOUNDED",
    "HIT",
    "LOSS",
    "STEP",
    "WIDEST",
    "WIDTH",
    "Measured",
    "Metrics",
    "Scores",
    "Snapshots",
    "Thinned",
    "certified_regret",
]
