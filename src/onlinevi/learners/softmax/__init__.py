"""Several classes by one posterior: the softmax of linear scores, under a Gaussian belief over the weights of all classes."""

from onlinevi.learners.softmax.learner import Softmax
from onlinevi.learners.softmax.state import SoftmaxState

__all__ = ["Softmax", "SoftmaxState"]
