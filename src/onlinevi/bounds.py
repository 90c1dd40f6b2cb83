"""The paper's theorems as functions; see ``onlinevi.guarantees.bounds``."""

from onlinevi.guarantees.bounds import *
from onlinevi.guarantees.bounds import __all__ as __all__
