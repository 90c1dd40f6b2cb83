"""Section 5 of the paper, made to run: ``onlinevi reproduce``."""

from onlinevi.paper.experiments import RULES
from onlinevi.paper.panels import PANELS, SCALINGS
from onlinevi.paper.reproduction import Reproduction, Watcher, reproduce

__all__ = ["PANELS", "RULES", "SCALINGS", "Reproduction", "Watcher", "reproduce"]
