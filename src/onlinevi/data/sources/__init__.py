"""Where bytes come from: files, folders and pipes, packed or not; how far they were read, and the rows that were refused."""

from onlinevi.data.sources.base import Part, Source
from onlinevi.data.sources.content import PACKED_SUFFIXES, Content, Decoded
from onlinevi.data.sources.files import STANDARD_INPUT, Files, may_pause
from onlinevi.data.sources.position import Digest, Position
from onlinevi.data.sources.refused import BadInput, Collect, Policy, Refused, Skip, Stop

__all__ = [
    "PACKED_SUFFIXES",
    "STANDARD_INPUT",
    "BadInput",
    "Collect",
    "Content",
    "Decoded",
    "Digest",
    "Files",
    "Part",
    "Policy",
    "Position",
    "Refused",
    "Skip",
    "Source",
    "Stop",
    "may_pause",
]
