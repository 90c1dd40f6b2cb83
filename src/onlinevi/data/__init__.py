"""Where rows come from: matrices, tables, files and pipes, what their columns mean, and the paper's own data sets."""

from onlinevi.data import catalogue
from onlinevi.data.atomic import replace_figure, replace_file, replace_text
from onlinevi.data.catalogue import DataUnavailable
from onlinevi.data.formats import WRITTEN_AS, Format, ReadOptions
from onlinevi.data.rows import (
    BLOCK_VALUES,
    Events,
    Rows,
    SparseRows,
    as_events,
    as_labels,
    as_row,
    as_rows,
    as_weights,
    blocks,
    one_row,
    typed,
)
from onlinevi.data.schema import MOST_CLASSES, ONE, Columns, Encoded, Schema, Task, encode, guess_task
from onlinevi.data.sources import (
    PACKED_SUFFIXES,
    STANDARD_INPUT,
    BadInput,
    Collect,
    Part,
    Policy,
    Position,
    Refused,
    Skip,
    Source,
    Stop,
)
from onlinevi.data.stream import Batch, Stream, open_stream
from onlinevi.data.values import MISSING, arrow

__all__ = [
    "BLOCK_VALUES",
    "MISSING",
    "MOST_CLASSES",
    "ONE",
    "PACKED_SUFFIXES",
    "STANDARD_INPUT",
    "WRITTEN_AS",
    "BadInput",
    "Batch",
    "Collect",
    "Columns",
    "DataUnavailable",
    "Encoded",
    "Events",
    "Format",
    "Part",
    "Policy",
    "Position",
    "ReadOptions",
    "Refused",
    "Rows",
    "Schema",
    "Skip",
    "Source",
    "SparseRows",
    "Stop",
    "Stream",
    "Task",
    "arrow",
    "as_events",
    "as_labels",
    "as_row",
    "as_rows",
    "as_weights",
    "blocks",
    "catalogue",
    "encode",
    "guess_task",
    "one_row",
    "open_stream",
    "replace_figure",
    "replace_file",
    "replace_text",
    "typed",
]
