"""What regret is measured from: the best fixed weights in hindsight, with a certified gap, and how they are found.

``newton`` is Newton's method with a bound below at every visit, ``feasible_set`` where its points may lie; ``smoothed`` lets
it minimise losses with kinks. The variational posterior of all data at once, ``guarantees.posterior``, is found by the same.
"""

from onlinevi.guarantees.comparator.best_point import Hindsight, hindsight
from onlinevi.guarantees.comparator.classes import MOST_WEIGHTS
from onlinevi.guarantees.comparator.feasible_set import NUMPY_UP_TO

__all__ = ["MOST_WEIGHTS", "NUMPY_UP_TO", "Hindsight", "hindsight"]
