"""A learner and its state in one file: no pickle, every byte sealed, written all or not at all. docs/checkpoints.md has it.

``format.py`` is the container, ``configs.py`` says what goes in by name; a state is what
its learner describes.
"""

from onlinevi.learners.described import CheckpointError
from onlinevi.learners.store.configs import encode, register
from onlinevi.learners.store.saved import Saved, load, pack, save, take_apart, unpack

__all__ = ["CheckpointError", "Saved", "encode", "load", "pack", "register", "save", "take_apart", "unpack"]
