"""Where rows come from: files, folders and pipes, packed or not, and tables in memory; how far they were read, and the rows
that were refused.
"""

from onlinevi.data.sources.base import (
    AnySource,
    ByteSource,
    Part,
    Piece,
    Reader,
    ReadOptions,
    Source,
    Trail,
    is_source,
)
from onlinevi.data.sources.content import PACKED_SUFFIXES, Content, Decoded
from onlinevi.data.sources.files import STANDARD_INPUT, Files, may_pause
from onlinevi.data.sources.memory import IN_MEMORY, Memory, source_of
from onlinevi.data.sources.position import Digest, Kept, Mark, Position, Sums
from onlinevi.data.sources.refused import BadInput, Collect, Policy, Refused, Skip, Stop

__all__ = [
    "IN_MEMORY",
    "PACKED_SUFFIXES",
    "STANDARD_INPUT",
    "AnySource",
    "BadInput",
    "ByteSource",
    "Collect",
    "Content",
    "Decoded",
    "Digest",
    "Files",
    "Kept",
    "Mark",
    "Memory",
    "Part",
    "Piece",
    "Policy",
    "Position",
    "ReadOptions",
    "Reader",
    "Refused",
    "Skip",
    "Source",
    "Stop",
    "Sums",
    "Trail",
    "is_source",
    "may_pause",
    "source_of",
]
