"""The study of experiments/features.py in small: its streams bend, and its tables have a row for every map."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import onlinevi as ovi

sys.path.append(str(Path(__file__).resolve().parents[2] / "experiments"))

import features


def test_a_ring_needs_curves() -> None:
    X, y = features.ring(200)
    X = X[:, :2]  # the others do not matter
    (alone, _), (curves, spent) = (features.played(X, y, ovi.Logistic(), one) for one in (None, ovi.Splines()))
    assert curves < 0.8 * alone
    assert spent > 0.0


@pytest.mark.parametrize("make", [features.ring, features.friedman, features.planes])
def test_streams_are_the_same_every_time(make: object) -> None:
    (X, y), (again, labels) = make(50), make(50)  # type: ignore[operator]
    assert X.tobytes() == again.tobytes()
    assert y.tobytes() == labels.tobytes()
    assert len(X) == len(y) == 50


def test_the_cost_of_every_map_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    features.show_cost(rows=10, rounds=1)
    told = capsys.readouterr().out
    assert all(f"| {name} |" in told for name, one in features.MAPS.items() if one is not None)
