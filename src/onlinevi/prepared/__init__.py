"""A rule of one's choice behind prepared rows, by name or as an object: what the estimators and the command line run."""

from onlinevi.prepared.choice import Learner, begin, choose, named
from onlinevi.prepared.prepared import Prepared, PreparedState, PreparedTrace

__all__ = ["Learner", "Prepared", "PreparedState", "PreparedTrace", "begin", "choose", "named"]
