"""What can be a shard: a file, a row group, rows in memory, a function that opens a source, a partition of a Dask collection.

A shard is small and can be sent to a worker, which asks it for its content. Its name is its id: what was learned is kept under
it, and added up in the order of these names.
"""

from __future__ import annotations

import glob
import io
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from onlinevi.data import AnySource, Part, arrow, is_source

Block: TypeAlias = tuple[Any, ...]
"""X, y, and weights where there are any."""

NEEDED = (
    "needs files (names, globs, folders), a list of (X, y), a list of functions that open a source, or a Dask DataFrame, Bag, "
    "or Arrays (X, y)"
)


@dataclass(frozen=True)
class Shard:
    """A part of the rows, by its name."""

    name: str

    def content(self) -> Any:
        """What it holds: a path or a source of ``open_stream``, a table, records, (X, y), or an iterable of such blocks."""
        raise NotImplementedError

    @property
    def stamp(self) -> Any:
        """What tells one that has changed since: a JSON value, or None where nothing does."""
        return None


@dataclass(frozen=True)
class FileShard(Shard):
    """A file."""

    path: Path

    def content(self) -> Any:
        return self.path

    @property
    def stamp(self) -> Any:
        about = self.path.stat()
        return [about.st_size, about.st_mtime_ns]


@dataclass(frozen=True)
class RowGroup(FileShard):
    """One group of rows of a Parquet file."""

    group: int

    def content(self) -> Any:
        with arrow("parquet").ParquetFile(self.path) as file:
            return file.read_row_group(self.group)


@dataclass(frozen=True)
class Given(Shard):
    """Rows in memory, which are sent along."""

    rows: Any = field(repr=False)

    def content(self) -> Any:
        return self.rows


@dataclass(frozen=True)
class Opened(Shard):
    """What a function opens, where it is called."""

    open: Callable[[], Any]

    def content(self) -> Any:
        return self.open()


class InMemory:
    """A table as a source of ``open_stream``."""

    def __init__(self, name: str, table: Any) -> None:
        self.name, self._table = name, table

    def parts(self) -> Generator[Part]:
        file = io.BytesIO()
        with arrow("ipc").new_stream(file, self._table.schema) as stream:
            stream.write_table(self._table)
        file.seek(0)
        yield Part(self.name, file)


def as_source(shard: Shard) -> AnySource:
    """The content of a shard of named columns, as ``open_stream`` takes it."""
    content = shard.content()
    if isinstance(content, str | Path) or is_source(content):
        return content  # type: ignore[no-any-return]
    pa = arrow()
    if hasattr(content, "to_arrow"):  # polars
        content = content.to_arrow()
    elif hasattr(content, "iloc"):  # pandas
        content = pa.Table.from_pandas(content, preserve_index=False)
    elif isinstance(content, Sequence):
        content = pa.Table.from_pylist(list(content))
    if not isinstance(content, pa.Table):
        raise TypeError(
            f"{shard.name} holds {type(content).__name__}: with a target it needs named columns, as a file, a table of "
            "pandas, polars or pyarrow, or a list of dicts"
        )
    return InMemory(shard.name, content)


def as_blocks(shard: Shard) -> Iterator[Block]:
    """The content of a shard of numbers: (X, y) or (X, y, weights), one after the other."""
    content = shard.content()
    for block in [content] if _is_block(content) else content:
        if not _is_block(block):
            raise TypeError(f"{shard.name} holds {type(block).__name__}: without a target it needs (X, y), or (X, y, weights)")
        yield block


def _is_block(content: Any) -> bool:
    return isinstance(content, tuple) and len(content) in (2, 3) and not isinstance(content[0], tuple)


def shards_of(given: Any, *, row_groups: bool | None = None) -> tuple[Shard, ...]:
    """The shards in the order of their names. ``row_groups`` cuts Parquet files; None does where there is one file alone."""
    if _is_dask(given) or (isinstance(given, tuple) and given and all(map(_is_dask, given))):
        from onlinevi.runs.shards.with_dask import partitions_of

        return partitions_of(given)
    if isinstance(given, str | Path):
        given = [given]
    if isinstance(given, Mapping):
        return tuple(_shard(str(name), given[name]) for name in sorted(given, key=str))
    if not isinstance(given, Iterable):
        raise TypeError(f"shards={type(given).__name__}: {NEEDED}")
    each = list(given)
    if not each:
        raise ValueError(f"shards is empty: {NEEDED}")
    if all(isinstance(one, str | Path) for one in each):
        return _files(each, row_groups)
    digits = len(str(len(each) - 1))
    return tuple(_shard(f"shard {number:0{digits}d}", one) for number, one in enumerate(each))


def _shard(name: str, content: Any) -> Shard:
    if isinstance(content, Shard):
        return content
    if isinstance(content, str | Path):
        return FileShard(name, Path(content))
    if callable(content):
        return Opened(name, content)
    if _is_block(content) or hasattr(content, "columns") or hasattr(content, "parts") or isinstance(content, list):
        return Given(name, content)
    raise TypeError(f"{name} is {type(content).__name__}: {NEEDED}")


def _files(given: Sequence[str | Path], row_groups: bool | None) -> tuple[Shard, ...]:
    paths = sorted({path for one in given for path in _paths(one)}, key=str)
    if sum(len(_paths(one)) for one in given) > len(paths):
        raise ValueError("a file is named twice, and would count twice: name each once")
    cut = len(paths) == 1 if row_groups is None else row_groups
    return tuple(shard for path in paths for shard in (_groups(path) if cut else [FileShard(str(path), path)]))


def _groups(path: Path) -> list[FileShard]:
    if path.suffix != ".parquet":
        return [FileShard(str(path), path)]
    with arrow("parquet").ParquetFile(path) as file:
        number = file.num_row_groups
    digits = len(str(number - 1))
    return [RowGroup(f"{path}#{group:0{digits}d}", path, group) for group in range(number)]


def _paths(given: str | Path) -> list[Path]:
    """A file itself, the files of a folder and of those in it, or what a pattern matches."""
    path = Path(given)
    if path.is_dir():
        inside = (one for one in path.rglob("*") if one.is_file())
        found = [one for one in inside if not any(part[0] in "._" for part in one.relative_to(path).parts)]
    elif path.exists():
        found = [path]
    else:
        matching = glob.glob(str(given), recursive=True)  # noqa: PTH207 - a path with a root is a pattern too
        found = [Path(one) for one in matching if Path(one).is_file()]
    if not found:
        raise FileNotFoundError(f"{given}: no such file or folder, and no file fits it as a pattern")
    return found


def is_pattern(given: str) -> bool:
    """Whether a name stands for several files."""
    return glob.has_magic(given) and not Path(given).exists()


def _is_dask(given: Any) -> bool:
    return hasattr(given, "__dask_graph__")
