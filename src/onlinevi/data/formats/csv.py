"""CSV with a header. Each block of whole records is parsed by pyarrow; a row with the wrong number of fields is refused.

A quote opens a field only at the field's start, and is doubled within it. Columns are text, or floats where asked for: types
guessed from a first block would have to be taken back later.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from onlinevi.data.formats.base import Format, text_blocks
from onlinevi.data.sources import BadInput, Content, Decoded, Piece, ReadOptions, Refused
from onlinevi.data.values import MISSING, arrow

DELIMITERS = (",", ";", "\t", "|")
LONGEST_RUN = 1 << 20
"""A quoted field closes within so many bytes of a quote; else its opening quote is a mistake, and costs one line."""
UNCLOSED = "a quote that never closes"


_LONE_RETURN = re.compile(rb'("[^"]*+")|\r(?!\n)')
"""A quoted field, which may hold any, or a carriage return that ends a line alone."""


class CSV(Format):
    """CSV is what every text without another format's marks is read as.

    The columns in ``options.numbers`` come as floats in every block where all their fields are numbers.
    """

    name = "csv"
    suffixes = (".csv", ".tsv")
    written_suffixes = (".csv",)

    def read(self, content: Content, options: ReadOptions) -> Iterator[Piece]:
        if options.encoding is not None:
            content = Decoded(content, options.encoding)
        grammar = _grammar(options.delimiter or _sniffed(content))
        names = _checked(content, options.names) if options.names else None
        line = 1
        for block in text_blocks(content, grammar.cut):
            line += block.count(b"\n")
            if names is None and options.names is None:
                names, block = _header(content, grammar, block)
            elif names is None:
                names = _places(grammar, block)
            if names is not None:
                piece = _piece(_Block(content.name, line - block.count(b"\n"), block, names, grammar), options.numbers)
                if piece.count:
                    yield piece
        if names is None:
            raise BadInput(f"{content.name}: empty; CSV needs a header line")


class _Grammar(NamedTuple):
    delimiter: str
    records: re.Pattern[bytes]
    record: re.Pattern[bytes]
    hopeless: re.Pattern[bytes]

    def cut(self, data: bytes, last: bool) -> int:
        if b'"' not in data:
            return len(data) if last else data.rfind(b"\n") + 1
        if end := _plain_end(data, self.delimiter):
            return end
        match = self.records.match(data)
        end = match.end() if match else 0
        # An unclosed quote that stands first is a block of its own, up to its line's end.
        return end or (data.find(b"\n") + 1 if last or self.hopeless.match(data) else 0)


def _plain_end(data: bytes, delimiter: str) -> int:
    """Where the last record ends if all quotes enclose whole fields, as in most files; 0 if not, or if none ends."""
    characters = np.frombuffer(b"\n" + data + b"\n", dtype=np.uint8)
    quotes = np.flatnonzero(characters == ord('"'))
    opening, closing = quotes[: len(quotes) // 2 * 2 : 2], quotes[1::2]
    begins = np.isin(characters[quotes[::2] - 1], list(f'\n"{delimiter}'.encode())).all()
    ends = np.isin(characters[closing + 1], list(f'\n\r"{delimiter}'.encode())).all()
    if not (begins and ends) or (closing - opening).max(initial=0) > LONGEST_RUN:
        return 0
    end = data.rfind(b"\n")
    while (before := int(np.searchsorted(quotes, end + 1))) % 2:  # within a field
        end = data.rfind(b"\n", 0, int(quotes[before - 1]) - 1)
    return end + 1


@lru_cache
def _grammar(delimiter: str) -> _Grammar:
    stop = re.escape(delimiter).encode()
    run = rb'[^"]{0,%d}+' % LONGEST_RUN
    opened = rb'"' + run + rb'(?:""' + run + rb")*+"
    field = rb'(?:%b"[^%b\n]*+|[^"%b\n][^%b\n]*+)?+' % (opened, stop, stop, stop)
    record = rb'(?:[^"\n]*+\n|%b(?:%b%b)*+\n)' % (field, stop, field)
    hopeless = rb'(?:%b%b)*+%b[^"]' % (field, stop, opened)
    return _Grammar(delimiter, re.compile(record + rb"*+"), re.compile(record), re.compile(hopeless))


class _Block(NamedTuple):
    source: str
    line: int
    content: bytes
    names: tuple[str, ...]
    grammar: _Grammar

    def records(self) -> list[tuple[int, bytes]]:
        """Line and content of each record that is not blank."""
        records, line = [], self.line
        for record in self.grammar.record.findall(self.content):
            if record.strip(b"\r\n"):
                records.append((line, record))
            line += record.count(b"\n")
        return records


def _piece(block: _Block, numbers: Set[str]) -> Piece:
    if not block.content.strip(b"\r\n"):
        return Piece(0, {})
    if block.content.count(b"\r") > block.content.count(b"\r\n"):  # pyarrow ends a row there, so records have to as well
        block = block._replace(content=_LONE_RETURN.sub(lambda found: found[1] or b"\n", block.content))
    if b'"' in block.content and not block.grammar.record.match(block.content):
        text = block.content.decode(errors="replace").rstrip()
        return Piece(1, {}, refused=[Refused(block.source, 0, None, UNCLOSED, text, block.line)])
    try:
        return _parsed(block, numbers)
    except UnicodeDecodeError:
        return _parsed_utf8(block, numbers)


def _parsed(block: _Block, numbers: Set[str]) -> Piece:
    if not block.content.isascii():
        block.content.decode()
    try:
        table, bad = _table(block, numbers)
    except arrow().ArrowInvalid:
        table, bad = _table(block, frozenset())  # some field is no number: the schema says which, and what then
    columns = {name: table[name].combine_chunks() for name in block.names}
    if not bad:
        return Piece(table.num_rows, columns)
    records, refused = block.records(), []
    for number, fields, text in bad:
        reason = f"{fields} fields, the header has {len(block.names)}"
        refused.append(Refused(block.source, number, None, reason, text, records[number][0]))
    return Piece(table.num_rows + len(bad), columns, refused=refused)


def _parsed_utf8(block: _Block, numbers: Set[str]) -> Piece:
    """The rows that are UTF-8; the others are refused."""
    refused, good, places = [], [], []
    for number, (line, record) in enumerate(records := block.records()):
        try:
            record.decode()
        except UnicodeDecodeError as error:
            reason = f"not UTF-8 at byte {error.start}; tell its encoding, as --encoding latin-1"
            refused.append(Refused(block.source, number, None, reason, record.decode(errors="replace").rstrip(), line))
        else:
            good.append(record)
            places.append(number)
    piece = _piece(block._replace(content=b"".join(good)), numbers)
    moved = [bad._replace(row=places[bad.row], line=records[places[bad.row]][0]) for bad in piece.refused]
    return replace(piece, count=len(records), refused=sorted(refused + moved, key=lambda bad: bad.row))


def _table(block: _Block, numbers: Set[str]) -> tuple[Any, list[tuple[int, int, str]]]:
    pa, reader = arrow(), arrow("csv")
    bad: list[tuple[int, int, str]] = []

    def skip(row: Any) -> str:
        bad.append((row.number - 1, row.actual_columns, row.text))
        return "skip"

    quoted = b'"' in block.content
    table = reader.read_csv(
        pa.BufferReader(block.content),
        # One thread: only then are bad rows numbered.
        read_options=reader.ReadOptions(column_names=list(block.names), use_threads=False, block_size=len(block.content) + 1),
        parse_options=reader.ParseOptions(
            delimiter=block.grammar.delimiter,
            quote_char='"' if quoted else False,
            newlines_in_values=quoted,
            invalid_row_handler=skip,
        ),
        convert_options=reader.ConvertOptions(
            column_types={name: pa.float64() if name in numbers else pa.string() for name in block.names},
            null_values=list(MISSING),
            strings_can_be_null=False,
        ),
    )
    return table, bad


def _sniffed(content: Content) -> str:
    """The delimiter that the header has most of, outside quotes."""
    header = re.sub(r'"[^"]*"?', "", content.first_line().decode(errors="replace"))
    return max(DELIMITERS, key=header.count)


def _header(content: Content, grammar: _Grammar, block: bytes) -> tuple[tuple[str, ...] | None, bytes]:
    """The names, and the rows behind them; no names yet where the block is blank."""
    block = block.lstrip(b"\r\n")
    if not block:
        return None, block
    match = grammar.record.match(block)
    if match is None:
        raise BadInput(f"{content.name}: the header has {UNCLOSED}")
    header = match.group().rstrip(b"\r\n")
    if b"\r" in header and b'"' not in header:
        raise BadInput(f"{content.name}: its lines end in carriage returns alone: convert it, for instance by tr '\\r' '\\n'")
    try:
        names = next(csv.reader([header.decode(errors="replace")], delimiter=grammar.delimiter))
    except csv.Error as error:
        raise BadInput(f"{content.name}: its first line is no header ({error})") from error
    if all(_is_number(name) for name in names):
        raise BadInput(
            f"{content.name}: the first line holds numbers, no header: name the {len(names)} columns by names= (--names A,B), "
            "or take their places for names by names=() (--no-header)"
        )
    return _checked(content, names), block[match.end() :]


def _places(grammar: _Grammar, block: bytes) -> tuple[str, ...] | None:
    """Names for the columns of a file that has none, as many as its first row has fields; no names yet where that is blank."""
    match = grammar.record.match(block.lstrip(b"\r\n"))
    if match is None or not match.group().strip(b"\r\n"):
        return None
    fields = next(csv.reader([match.group().decode(errors="replace")], delimiter=grammar.delimiter))
    return tuple(f"column_{place}" for place in range(len(fields)))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _checked(content: Content, names: Sequence[str]) -> tuple[str, ...]:
    """Names that tell columns apart; a column without one gets its place."""
    names = tuple(name.strip() or f"column_{place}" for place, name in enumerate(names))
    seen = set[str]()
    twice = next((name for name in names if name in seen or seen.add(name)), None)  # type: ignore[func-returns-value]
    if twice is not None:
        raise BadInput(f"{content.name}: two columns are called {twice!r}: rename one")
    return names
