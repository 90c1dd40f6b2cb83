"""More than two classes, each against the rest: ``coupling.py`` makes probabilities of their log-odds."""

from onlinevi.classes.learner import AnyLearner, Classes
from onlinevi.classes.outcome import ClassesState, ClassForecast, ClassTrace

__all__ = ["AnyLearner", "ClassForecast", "ClassTrace", "Classes", "ClassesState"]
