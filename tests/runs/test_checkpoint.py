"""Stored runs as someone would forge them: every digest is right, what is in them is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.checkpoints import SAMPLES, places, rewrite

from onlinevi.learners import CheckpointError
from onlinevi.runs.checkpoint import load_job, save_job

STRANGE = [None, True, -1, 0, 2**60, 10**400, 0.5, 1e308, "inf", "", [], {}, [1.0], [[None]], {"is": "Auto"}]


def forged(path: Path, raw: bytes, edit: Any) -> Path:
    rewrite(path, raw, lambda header: edit(header["extra"]))
    return path


def test_strange_values_anywhere_in_a_run_are_refused_or_do_no_harm(tmp_path: Path) -> None:
    raw, draw, refused, tries = (SAMPLES / "run_v1.ovi").read_bytes(), np.random.default_rng(0), 0, 150

    def edit(extra: dict[str, Any]) -> None:
        everywhere = places(extra)
        container, key = everywhere[draw.integers(len(everywhere))]
        container[key] = STRANGE[draw.integers(len(STRANGE))]

    for _ in range(tries):
        path = forged(tmp_path / "forged.ovi", raw, edit)
        try:
            job = load_job(path)
        except CheckpointError:
            refused += 1
            continue
        save_job(tmp_path / "again.ovi", job)
    assert tries / 2 < refused < tries


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("account", {"totals": "x"}, "the 'account' of its run is not what onlinevi writes"),
        ("schema", "{}", "its run is damaged"),
        ("waiting", [[0, {"width": 1, "at": [3], "values": [1.0]}, [1.0]]], "the 'waiting' of its run"),
        ("moments", {"stride": 0, "steps": [], "weights": [], "certified": []}, "the 'moments' of its run"),
        ("settings", {"target": "y", "delay": 10**400}, "the setting 'delay' of its run is not what onlinevi writes"),
        ("settings", {"target": "y", "colour": "red"}, "its run is damaged .*colour"),
    ],
)
def test_what_is_wrong_is_named(name: str, value: Any, words: str, tmp_path: Path) -> None:
    path = forged(tmp_path / "forged.ovi", (SAMPLES / "run_v1.ovi").read_bytes(), lambda extra: extra.update({name: value}))
    with pytest.raises(CheckpointError, match=words):
        load_job(path)
