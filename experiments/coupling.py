"""How reliable the probabilities of several classes are, by how those of one class against the rest are put together.

``python experiments/coupling.py`` writes the table in docs/sklearn.md anew: 3,000 rows of a softmax model with four classes
and five features are learned from, 6,000 more are predicted.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from onlinevi.sklearn import OnlineVIClassifier

PAGE = Path(__file__).parents[1] / "docs" / "sklearn.md"
WEIGHTS = {"weights of std 1/√5": 1.0, "weights of std 4/√5": 4.0}
"""The weights of the model: classes overlap, or are well apart."""


def written(page: Path, name: str, table: str) -> None:
    """Print a table, and put it where the page has one of this name."""
    place = re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- end -->)", re.DOTALL)
    page.write_text(place.sub(lambda _: table, page.read_text(encoding="utf-8"), count=1), encoding="utf-8")
    print(table, end="")


def unreliability(said: Any, happened: Any) -> float:
    """Mean |said − happened| over ten bins."""
    bins = np.minimum((10.0 * said).astype(int), 9)
    return float(sum(abs((said - happened)[bins == k].sum()) for k in range(10)) / said.size)


def row(apart: float) -> list[str]:
    """The unreliability of probabilities divided by their sum, of a softmax, and of what is done."""
    rng = np.random.default_rng(0)
    X, W = rng.standard_normal((9_000, 5)), apart * rng.standard_normal((5, 4)) / np.sqrt(5.0)
    y = (softmax(X @ W, axis=1).cumsum(axis=1) < rng.random((9_000, 1))).sum(axis=1)
    model = OnlineVIClassifier(rule="ngvi").fit(X[:3_000], y[:3_000])
    odds, happened = model.decision_function(X[3_000:]), y[3_000:, None] == np.arange(4)
    divided = expit(odds) / expit(odds).sum(axis=1, keepdims=True)
    said = divided, softmax(odds, axis=1), model.predict_proba(X[3_000:])
    return [f"{unreliability(one, happened):.3f}" for one in said]


def table() -> str:
    """The table in Markdown."""
    lines = ["| | divided by the sum | softmax | as it is done |", "| --- | --- | --- | --- |"]
    return "\n".join([*lines, *(f"| {name} | {' | '.join(row(apart))} |" for name, apart in WEIGHTS.items())]) + "\n"


if __name__ == "__main__":
    written(PAGE, "coupling", table())
