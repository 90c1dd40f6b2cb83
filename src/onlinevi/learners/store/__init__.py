"""A learner and its state in one file: no pickle, every byte sealed, written all or not at all. docs/checkpoints.md has it.

``atomic.py`` puts a file in place, ``format.py`` is the container, ``configs.py`` and ``states.py`` say what goes in by name.
"""

from onlinevi.learners.store.configs import register
from onlinevi.learners.store.format import CheckpointError
from onlinevi.learners.store.saved import Saved, load, save

__all__ = ["CheckpointError", "Saved", "load", "register", "save"]
