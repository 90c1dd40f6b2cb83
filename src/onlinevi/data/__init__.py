"""Where rows come from: matrices, tables, files and pipes, what their columns mean, and the paper's own data sets."""

from onlinevi.data import catalogue
from onlinevi.data.catalogue import DataUnavailable
from onlinevi.data.files import MISSING, BadInput, Batch, Collect, Policy, Position, Refused, Skip, Stop, Stream, open_stream
from onlinevi.data.files.extra import arrow
from onlinevi.data.rows import (
    BLOCK_VALUES,
    Events,
    Rows,
    SparseRows,
    as_events,
    as_labels,
    as_rows,
    as_weights,
    blocks,
    one_row,
    typed,
)
from onlinevi.data.schema import MOST_CLASSES, Columns, Encoded, Schema, Task, encode, guess_task
from onlinevi.data.schema.categories import ONE

__all__ = [
    "BLOCK_VALUES",
    "MISSING",
    "MOST_CLASSES",
    "ONE",
    "BadInput",
    "Batch",
    "Collect",
    "Columns",
    "DataUnavailable",
    "Encoded",
    "Events",
    "Policy",
    "Position",
    "Refused",
    "Rows",
    "Schema",
    "Skip",
    "SparseRows",
    "Stop",
    "Stream",
    "Task",
    "arrow",
    "as_events",
    "as_labels",
    "as_rows",
    "as_weights",
    "blocks",
    "catalogue",
    "encode",
    "guess_task",
    "one_row",
    "open_stream",
    "typed",
]
