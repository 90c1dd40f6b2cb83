"""Contextual bandits: decisions by Gaussian posteriors, whose rewards come late, or never. docs/bandits.md begins with one.

``policies`` choose by what is believed of the ``arms``, ``player`` is the game, ``waiting`` what has no reward yet. ``value``
tells of a ``log`` what another policy would have earned, ``replay`` plays data whose rewards are all known.
"""

from onlinevi.bandit.arms import Arm, Arms, Disjoint, Shared
from onlinevi.bandit.chances import Law, chance_of_best
from onlinevi.bandit.log import Decision, LogFile, read_log
from onlinevi.bandit.off_policy import Interval, Value, value
from onlinevi.bandit.played import Replay, replay
from onlinevi.bandit.player import BINARY_MODEL, Bandit, Choice, Play, Tally
from onlinevi.bandit.policies import Greedy, Policy, Thompson, Uniform, UpperBound
from onlinevi.bandit.waiting import Wait

__all__ = [
    "BINARY_MODEL",
    "Arm",
    "Arms",
    "Bandit",
    "Choice",
    "Decision",
    "Disjoint",
    "Greedy",
    "Interval",
    "Law",
    "LogFile",
    "Play",
    "Policy",
    "Replay",
    "Shared",
    "Tally",
    "Thompson",
    "Uniform",
    "UpperBound",
    "Value",
    "Wait",
    "chance_of_best",
    "read_log",
    "replay",
    "value",
]
