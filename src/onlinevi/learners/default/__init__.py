"""The recommended default: no rate, no horizon, no scale to choose, on streams that may change.

Rows are prepared online, many learners of different priors and memories run in one pass, exponential weights pool them, and
residuals calibrate what they say. ``recipe.py`` holds the choices, docs/choosing.md the study behind them.
"""

from onlinevi.learners.default.learner import Auto, AutoState, auto
from onlinevi.learners.default.recipe import Effort

__all__ = ["Auto", "AutoState", "Effort", "auto"]
