"""More than two classes, each against the rest: ``coupling.py`` makes probabilities of their log-odds."""

from onlinevi.learners.one_vs_rest.learner import AnyLearner, Classes
from onlinevi.learners.one_vs_rest.outcome import ClassesState, ClassForecast, ClassTrace

__all__ = ["AnyLearner", "ClassForecast", "ClassTrace", "Classes", "ClassesState"]
