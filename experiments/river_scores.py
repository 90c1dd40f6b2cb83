"""Progressive scores on streams that River carries, ours beside River's own: ``python experiments/river_scores.py`` writes
the table in docs/river.md anew. It takes some ten seconds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from coupling import written
from river import datasets, evaluate, linear_model, metrics, preprocessing

from onlinevi import NGVI, Implicit
from onlinevi.river import OnlineVIClassifier, OnlineVIRegressor

PAGE = Path(__file__).parents[1] / "docs" / "river.md"
STREAMS = {
    "Phishing, log loss": (datasets.Phishing, metrics.LogLoss),
    "TrumpApproval, MAE": (datasets.TrumpApproval, metrics.MAE),
    "ChickWeights, MAE": (datasets.ChickWeights, metrics.MAE),
}


def models(*, classes: bool) -> dict[str, Any]:
    """River's, one rule, and the default."""
    scaled = preprocessing.StandardScaler()
    if classes:
        ours, theirs, rule = OnlineVIClassifier, scaled | linear_model.LogisticRegression(), NGVI()
    else:
        ours, theirs, rule = OnlineVIRegressor, scaled | linear_model.LinearRegression(), Implicit(rate=0.5)
    return {
        "River's `StandardScaler()` and linear model": theirs,
        "one rule: `NGVI()` for classes, `Implicit(rate=0.5)` for numbers": ours(rule=rule),
        '`effort="light"`': ours(effort="light"),
        "the default": ours(),
    }


def table() -> str:
    """The table in Markdown, a stream a column."""
    lines = {name: [f"| {name}"] for name in models(classes=True)}
    for dataset, metric in STREAMS.values():
        for name, model in models(classes=metric is metrics.LogLoss).items():
            score = evaluate.progressive_val_score(dataset(), model, metric())
            lines[name].append(f"{score.get():.3g}")
    head = [f"| | {' | '.join(STREAMS)} |", "| --- |" + " --- |" * len(STREAMS)]
    return "\n".join([*head, *(" | ".join(line) + " |" for line in lines.values())]) + "\n"


if __name__ == "__main__":
    written(PAGE, "scores", table())
