"""Features in any unit, brought to one scale as they come: each row by what was known when it came, itself included."""

from onlinevi.inputs.inputs import Inputs, RawWeights
from onlinevi.inputs.state import InputState

__all__ = ["InputState", "Inputs", "RawWeights"]
