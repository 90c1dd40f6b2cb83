"""Section 5 of the paper, made to run: ``onlinevi reproduce``."""

from onlinevi.paper.experiments import RULES
from onlinevi.paper.network import NETWORKS
from onlinevi.paper.panels import PANELS, SCALINGS
from onlinevi.paper.readings import READINGS, Reading
from onlinevi.paper.reproduction import Reproduction, Watcher, reproduce

__all__ = ["NETWORKS", "PANELS", "READINGS", "RULES", "SCALINGS", "Reading", "Reproduction", "Watcher", "reproduce"]
