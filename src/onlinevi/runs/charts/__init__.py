"""What a pass leaves behind, drawn with matplotlib."""

from onlinevi.runs.charts.figure import plot

__all__ = ["plot"]
