"""Rows of two classes in a file, and what a run over them wrote."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROWS = 3000
OF_A_PIPE = [sys.executable, "-m", "onlinevi", "run", "-", "--target", "sold", "--rule", "implicit"]
"""A run over such rows as they come in, in a process of its own."""


def write_rows(path: Path, count: int = ROWS, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two numbers, a town whose names come one after the other, and a class; the numbers and the classes as ±1."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((count, 2)) * [1.0, 100.0]
    town = [f"t{min(int(own), 20)}" for own in rng.exponential(np.linspace(0.5, 6.0, count))]
    y = np.where(X[:, 0] - 0.01 * X[:, 1] + rng.standard_normal(count) > 0.0, 1.0, -1.0)
    lines = [
        f"{a!r},{b!r},{own},{'yes' if label > 0 else 'no'}" for (a, b), own, label in zip(X.tolist(), town, y, strict=True)
    ]
    path.write_text("a,b,town,sold\n" + "\n".join(lines) + "\n")
    return X, y


def table(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def told(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    return json.loads(capsys.readouterr().out.splitlines()[-1])
