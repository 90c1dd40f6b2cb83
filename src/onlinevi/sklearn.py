"""Estimators for scikit-learn; see ``onlinevi.adapters.sklearn``."""

from onlinevi.adapters.sklearn import *
from onlinevi.adapters.sklearn import __all__ as __all__
