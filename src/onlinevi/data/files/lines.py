"""Text in blocks of whole records, each as soon as it is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from onlinevi.data.files.refused import BadInput
from onlinevi.data.files.source import Source

CHUNK = 1 << 20
"""How many bytes are asked for at once: memory stays at a few of these."""
LONGEST = 1 << 24
BOM = b"\xef\xbb\xbf"

Cut = Callable[[bytes, bool], int]
"""Where the last whole record of these bytes ends, 0 if none does; told whether the bytes are the last."""


def whole_lines(data: bytes, last: bool) -> int:
    """The cut of formats whose records are lines."""
    return len(data) if last else data.rfind(b"\n") + 1


def blocks(source: Source, cut: Cut = whole_lines) -> Iterator[bytes]:
    """The content in order, cut where records end. Every block ends in a line end."""
    rest = _without_bom(source)
    while chunk := source.read(CHUNK):
        rest += chunk
        while end := cut(rest, False):
            yield rest[:end]
            rest = rest[end:]
        if len(rest) > LONGEST:
            raise BadInput(f"{source.name}: no record ends within {LONGEST >> 20} MiB: is the format right?")
    if rest and not rest.endswith(b"\n"):
        rest += b"\n"
    while rest:
        end = cut(rest, True)
        yield rest[:end]
        rest = rest[end:]


def _without_bom(source: Source) -> bytes:
    head = b""
    while len(head) < len(BOM) and BOM.startswith(head) and (more := source.read(len(BOM) - len(head))):
        head += more
    return b"" if head == BOM else head
