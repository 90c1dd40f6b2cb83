"""A disk that loses power: what was written and not synced is there or not, as chance has it, or in part.

``python tests/helpers/power_loss.py 1000`` loses power 1,000 times under a journal and prints what was found.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import apsw

SECTOR = 512


class PowerLost(Exception):
    """The machine is off."""


class Disk(apsw.VFS):
    """The files of SQLite on a disk that loses power at a given write or sync."""

    def __init__(self, until: int, draw: random.Random) -> None:
        self.left: float = until
        self.draw, self.files, self.title = draw, dict[str, File](), f"disk-{id(self)}"
        super().__init__(self.title, "")

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802
        return File(self, name, flags)

    def used(self) -> None:
        """One more write or sync; the power may be gone with it."""
        self.left -= 1
        if self.left < 0:
            raise PowerLost

    def lose_power(self) -> None:
        """What is on the disk afterwards: of each write since the last sync nothing, all, or the first sectors."""
        for path, file in self.files.items():
            if not Path(path).exists():
                continue
            with open(path, "r+b") as real:  # noqa: PTH123
                for offset, before, after in reversed(file.unsynced):
                    kept = self.draw.choice((0, len(after), SECTOR * self.draw.randint(0, len(after) // SECTOR)))
                    real.seek(offset)
                    real.write(after[:kept] + before[kept:])


class File(apsw.VFSFile):
    """A file that remembers what was there before each write since the last sync."""

    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        self.disk, self.unsynced = disk, list[tuple[int, bytes, bytes]]()
        self.path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if self.path is not None:
            disk.files[self.path] = self
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        size = super().xFileSize()
        there = bytes(super().xRead(min(len(data), max(0, size - offset)), offset)) if size > offset else b""
        self.unsynced.append((offset, there.ljust(len(data), b"\0"), bytes(data)))
        super().xWrite(data, offset)
        self.disk.used()

    def xSync(self, flags: int) -> None:  # noqa: N802
        self.disk.used()
        super().xSync(flags)
        self.unsynced.clear()


def main(losses: int) -> dict[str, int]:
    """Lose power so many times under a journal; what was found behind it."""
    from helpers.served import IN_MEMORY

    from onlinevi.adapters.serve.journal import Journal

    found = {"losses": losses, "acknowledged": 0, "rows_kept": 0, "lost": 0, "in_part": 0, "damaged": 0}
    for trial in range(losses):
        draw = random.Random(trial)
        root = Path(tempfile.mkdtemp(dir=IN_MEMORY))
        path = root / "journal.sqlite"
        Journal(path).close()  # the model was made before
        disk = Disk(draw.randint(0, 90), draw)
        groups, said, number, kept = [], 0, 0, list[str]()
        connection = apsw.Connection(str(path), vfs=disk.title)
        try:
            journal = Journal(path, lambda _, opened=connection: opened)
            if trial % 2:  # the log is written back every few pages, and begins anew
                connection.execute("PRAGMA wal_autocheckpoint=4")
            while True:
                group = [f"{trial}-{number + k}" for k in range(draw.randint(1, 6))]
                groups.append(group)
                with journal.writing():
                    for one in group:
                        journal.add(one, json.dumps({"a": draw.random(), "text": "x" * draw.randint(0, 900)}), 0.0)
                number += len(group)
                said = number
                row = f"{trial}-waits-{len(kept)}"
                with journal.writing():
                    journal.wait(row, "{}", 0.0)
                kept.append(row)
        except PowerLost:
            pass
        disk.lose_power()
        for leftover in root.glob("*-shm"):  # it was in memory
            leftover.unlink()
        after = root / "after"
        shutil.copytree(root, after)
        disk.left = float("inf")
        connection.close(True)
        try:
            behind = Journal(after / "journal.sqlite")
            behind.check()
            there = [event.id for block in behind.events() for event in block]
            found["rows_kept"] += len(kept)
            found["lost"] += sum(behind.waiting_line(row) is None for row in kept)
            behind.close()
        except ValueError:
            found["damaged"] += 1
            continue
        finally:
            shutil.rmtree(root)
        expected = [one for group in groups for one in group]
        ends = {sum(map(len, groups[:k])) for k in range(len(groups) + 1)}
        found["acknowledged"] += said
        found["lost"] += len(set(expected[:said]) - set(there))
        found["in_part"] += int(there != expected[: len(there)] or len(there) not in ends)
    return found


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    print(json.dumps(main(int(sys.argv[1]))))
