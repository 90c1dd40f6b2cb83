"""Learners of several classes, pooled by Bayes' rule."""

from onlinevi.learners.class_pool.learner import ClassPool
from onlinevi.learners.class_pool.state import ClassPoolState

__all__ = ["ClassPool", "ClassPoolState"]
