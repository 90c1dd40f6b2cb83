"""What a pass leaves behind, drawn with matplotlib."""

from onlinevi.plot.figure import plot

__all__ = ["plot"]
