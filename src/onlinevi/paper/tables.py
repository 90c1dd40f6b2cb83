"""What a reproduction writes for people and for machines: results.json, results.csv, table.md."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from onlinevi.data import replace_text
from onlinevi.paper.claims import Claim, group
from onlinevi.paper.experiments import RULES, Outcome
from onlinevi.paper.panels import PANELS

COLUMNS = ("data", "rule", "seed", "scaling", "T", "d", "average_loss", "hindsight", "hindsight_gap", "seconds")


def write(
    runs: Sequence[Outcome], claims: Sequence[Claim], missing: Mapping[str, str], extra: dict[str, Any], folder: Path
) -> list[Path]:
    """Write the three files."""
    results = {
        "runs": [_as_json(run) for run in runs],
        "claims": [asdict(claim) for claim in claims],
        "missing": dict(missing),
        **extra,
    }
    paths = [folder / name for name in ("results.json", "results.csv", "table.md")]
    sheet = io.StringIO(newline="")
    writer = csv.DictWriter(sheet, COLUMNS, extrasaction="ignore")
    writer.writeheader()
    writer.writerows(asdict(run) for run in runs)
    for path, text in zip(paths, (json.dumps(results, indent=1), sheet.getvalue(), table(runs, claims, missing)), strict=True):
        replace_text(path, text)
    return paths


def _as_json(run: Outcome) -> dict[str, Any]:
    record = asdict(run)
    return {name: record[name] for name in COLUMNS} | {
        "curve": {"t": run.steps, "average_loss": run.curve, "average_regret": run.regret}
    }


def table(runs: Sequence[Outcome], claims: Sequence[Claim], missing: Mapping[str, str]) -> str:
    """Final average losses with their spread over the seeds, then the verdict on each claim."""
    rules = [rule for rule in RULES if any(run.rule == rule for run in runs)]
    seeds = len({run.seed for run in runs})
    scaling = runs[0].scaling if runs else ""
    lines = [
        f"Final average loss A_T, mean ± standard deviation over {seeds} orders, scaling `{scaling}` (toy data stay raw). "
        "Bold is the lowest. The hindsight line is certified to the gap given; for the network it is the best found offline.",
        "",
        "| data | T | d | " + " | ".join(rules) + " | hindsight | gap |",
        "|---" * (len(rules) + 5) + "|",
    ]
    for name in (name for name in PANELS if group(runs, name)):
        own = group(runs, name)
        finals = {rule: np.array([run.average_loss for run in own if run.rule == rule]) for rule in rules}
        best = min(finals, key=lambda rule: finals[rule].mean())
        cells = [_cell(finals[rule], bold=rule == best) for rule in rules]
        gaps = [run.hindsight_gap for run in own]
        gap = "best found" if None in gaps else f"{max(gap for gap in gaps if gap is not None):.1e}"
        line = np.mean([run.hindsight for run in own])
        lines.append(f"| {name} | {own[0].T} | {own[0].d} | " + " | ".join(cells) + f" | {line:.5f} | {gap} |")
    lines += ["", *(f"Not run: {name}. {reason.splitlines()[-1]}" for name, reason in missing.items())]
    lines += ["", "## The paper's claims", ""]
    for claim in claims:
        lines.append(f"- **{'Holds' if claim.holds else 'Does not hold'}**: {claim.text}.")
        lines += [f"  - {detail}" for detail in claim.details]
    return "\n".join(lines) + "\n"


def _cell(values: np.ndarray, *, bold: bool) -> str:
    text = f"{values.mean():.4f} ± {values.std():.4f}"
    return f"**{text}**" if bold else text
