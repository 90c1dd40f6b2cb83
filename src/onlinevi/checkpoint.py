"""A learner and its state in one file; see ``onlinevi.learners.store``."""

from onlinevi.learners.store import *
from onlinevi.learners.store import __all__ as __all__
