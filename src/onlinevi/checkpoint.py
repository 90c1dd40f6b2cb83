"""A learner and its state in one file; see ``onlinevi.learners.store``."""

from onlinevi.learners.store import CheckpointError, Saved, load, register, save

__all__ = ["CheckpointError", "Saved", "load", "register", "save"]
