"""More than two classes, each against the rest: ``coupling.py`` makes probabilities of their log-odds."""

from onlinevi.learners.one_vs_rest.learner import OneVsRest, OneVsRestState, for_classes

__all__ = ["OneVsRest", "OneVsRestState", "for_classes"]
