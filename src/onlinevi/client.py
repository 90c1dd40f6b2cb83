"""A client of ``onlinevi serve``; see ``onlinevi.adapters.client``."""

from onlinevi.adapters.client import *
from onlinevi.adapters.client import __all__ as __all__
