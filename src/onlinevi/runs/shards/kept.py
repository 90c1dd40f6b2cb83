"""Finished shards on disk: what a driver that was killed need not ask for again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onlinevi.data import replace_file, replace_text
from onlinevi.runs.shards.attempts import Done, Outcome
from onlinevi.runs.shards.sources import Shard

MANIFEST, NOTES = "manifest.json", "done.ndjson"


class Kept:
    """A folder with what each shard has told, stage by stage, under the shard's number. Without a folder it keeps nothing.

    ``asked`` is what is asked of the shards, as JSON: what was kept for anything else is not taken for it.
    """

    def __init__(
        self, folder: Path | None, shards: Sequence[Shard], asked: dict[str, Any], *, resume: bool, overwrite: bool
    ) -> None:
        self._folder, self._numbers = folder, {shard.name: number for number, shard in enumerate(shards)}
        self._notes: dict[tuple[str, str], list[Any]] = {}
        if folder is None:
            if resume:
                raise ValueError("nothing to resume from: name the folder where finished shards are kept")
            return
        asked = asked | {"shards": [[shard.name, shard.stamp] for shard in shards]}
        folder.mkdir(parents=True, exist_ok=True)
        manifest = folder / MANIFEST
        if manifest.exists() and resume:
            _check_same(json.loads(manifest.read_text(encoding="utf-8")), asked, folder)
            self._read_notes(folder / NOTES)
            return
        if manifest.exists() and not overwrite:
            raise ValueError(f"{folder} holds finished shards of a run: --resume goes on with it, --overwrite starts anew")
        self.clear()
        replace_text(manifest, json.dumps(asked, ensure_ascii=False))

    def get(self, stage: str, name: str) -> Done | None:
        """What a shard has told in an earlier call, if it has."""
        path = self._path(stage, name)
        if path is None or not path.exists():
            return None
        worker, seconds, attempts = self._notes.get((stage, name), ["", 0.0, 1])
        return Done(Outcome(path.read_bytes(), seconds=seconds, worker=worker), attempts)

    def put(self, stage: str, name: str, done: Done) -> None:
        """Keep what a shard has told. The line about it comes first: a file that is there is whole, and told of."""
        path = self._path(stage, name)
        if path is None or self._folder is None:
            return
        outcome = done.outcome
        with (self._folder / NOTES).open("a", encoding="utf-8") as file:
            line = [stage, name, [outcome.worker, outcome.seconds, done.attempts]]
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
        replace_file(path, lambda file: file.write(outcome.content))

    def clear(self) -> None:
        """Keep nothing any more."""
        if self._folder is not None and self._folder.is_dir():
            for pattern in ("*.part", MANIFEST, NOTES):
                for path in self._folder.glob(pattern):
                    path.unlink()

    def _path(self, stage: str, name: str) -> Path | None:
        return None if self._folder is None else self._folder / f"{stage}-{self._numbers[name]:06d}.part"

    def _read_notes(self, path: Path) -> None:
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        for line in lines:
            try:
                stage, name, note = json.loads(line)
            except ValueError:  # cut where the driver was killed
                continue
            self._notes[stage, name] = note


def _check_same(was: dict[str, Any], now: dict[str, Any], folder: Path) -> None:
    now = json.loads(json.dumps(now))
    for name in now.keys() | was.keys():
        if was.get(name) == now.get(name):
            continue
        what = f"with another {name}"
        if name == "shards":
            before = {tuple(map(str, one)) for one in was.get(name, [])}
            changed = sorted({str(one[0]) for one in now[name] if tuple(map(str, one)) not in before})
            what = f"of other shards: {', '.join(changed[:3]) or 'fewer'} {'is new or has changed' if changed else 'now'}"
        raise ValueError(f"{folder} holds finished shards {what}: resume with the same, or --overwrite to start anew")
