"""Features in any unit, brought to one scale as they come: each row by what was known when it came, itself included."""

from onlinevi.learners.inputs.inputs import Inputs, RawWeights
from onlinevi.learners.inputs.moments import moments_of
from onlinevi.learners.inputs.state import CENTRED, UNCENTRED, InputState

__all__ = ["CENTRED", "UNCENTRED", "InputState", "Inputs", "RawWeights", "moments_of"]
