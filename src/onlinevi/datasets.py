"""The paper's data sets and two more, found on this machine or downloaded; see ``onlinevi.data.catalogue``."""

from onlinevi.data.catalogue import *
from onlinevi.data.catalogue import __all__ as __all__
