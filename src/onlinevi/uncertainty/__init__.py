"""How sure a prediction is: a noise variance learned online, and intervals that keep their promise on any stream."""

from onlinevi.uncertainty.calibration import Bands, Calibrated, Calibration
from onlinevi.uncertainty.reliability import Reliability, reliability

__all__ = ["Bands", "Calibrated", "Calibration", "Reliability", "reliability"]
