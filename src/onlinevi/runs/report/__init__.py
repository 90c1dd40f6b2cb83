"""One run as one page: an HTML file that needs no network, for people who were not there."""

from onlinevi.runs.report.page import write_report
from onlinevi.runs.report.results import Results

__all__ = ["Results", "write_report"]
