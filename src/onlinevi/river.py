"""Estimators for River; see ``onlinevi.adapters.river``."""

from onlinevi.adapters.river import *
from onlinevi.adapters.river import __all__ as __all__
