"""What a reproduction writes for people and for machines: results.json, results.csv, table.md."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from onlinevi.data import replace_text
from onlinevi.paper.claims import Claim, approach, group, judge
from onlinevi.paper.experiments import RULES, Outcome
from onlinevi.paper.panels import PANELS
from onlinevi.paper.readings import Reading

COLUMNS = ("data", "rule", "seed", "scaling", "model", "T", "d", "average_loss", "hindsight", "hindsight_gap", "seconds")
SCALED = {
    "standard-row": "columns standardised by the whole file, then rows of length 1; regression targets centred",
    "running-row": "columns standardised by the rows so far, targets by the labels before, then rows of length 1",
    "row": "rows of length 1, regression targets in [0, 1]",
    "minmax-row": "columns brought to [0, 1], then rows of length 1; regression targets in [0, 1]",
    "none": "raw features, regression targets in [0, 1]",
}
NETWORK = {
    "width-5": "width 5, biases in both layers, all means at 0, curvature E[2J²]",
    "width-50": "width 50, a constant feature for the biases, OGA from a small draw, curvature from draws",
}
WIDTH_NOTE = "The paper gives no width: 5 was chosen because it works, and 50 is beside it."


def write(
    reading: Reading,
    runs: Sequence[Outcome],
    claims: Sequence[Claim],
    beside: Mapping[Reading, Sequence[Outcome]],
    missing: Mapping[str, str],
    extra: dict[str, Any],
    folder: Path,
) -> list[Path]:
    """Write the three files."""
    results = {
        **asdict(reading),
        "runs": [_as_json(run) for run in runs],
        "claims": [asdict(claim) for claim in claims],
        "beside": [
            {**asdict(other), "runs": [_as_json(run) for run in own], "claims": [asdict(claim) for claim in judge(own)]}
            for other, own in beside.items()
        ],
        "missing": dict(missing),
        **extra,
    }
    paths = [folder / name for name in ("results.json", "results.csv", "table.md")]
    sheet = io.StringIO(newline="")
    writer = csv.DictWriter(sheet, COLUMNS, extrasaction="ignore")
    writer.writeheader()
    writer.writerows(asdict(run) for run in runs)
    text = table(reading, runs, claims, missing) + (readings_table(reading, runs, beside) if beside else "")
    for path, content in zip(paths, (json.dumps(results, indent=1), sheet.getvalue(), text), strict=True):
        replace_text(path, content)
    return paths


def _as_json(run: Outcome) -> dict[str, Any]:
    record = asdict(run)
    return {name: record[name] for name in COLUMNS} | {
        "curve": {"t": run.steps, "average_loss": run.curve, "average_regret": run.regret}
    }


def table(reading: Reading, runs: Sequence[Outcome], claims: Sequence[Claim], missing: Mapping[str, str]) -> str:
    """Final average losses with their spread over the seeds, then the verdict on each claim."""
    rules = _rules(runs)
    lines = [
        f"Final average loss A_T, mean ± standard deviation over {_orders(runs)}. `{reading.scaling}`: "
        f"{SCALED[reading.scaling]} (toy data stay raw). Bold is the lowest. "
        "The hindsight line is certified to the gap given; for the network it is the best found offline.",
        "",
        "| data | T | d | " + " | ".join(rules) + " | hindsight | gap |",
        "|---" * (len(rules) + 5) + "|",
    ]
    for own, finals, best in _finals(runs):
        cells = [_bold(f"{finals[rule].mean():.4f} ± {finals[rule].std():.4f}", rule == best) for rule in rules]
        gaps = [run.hindsight_gap for run in own]
        gap = "best found" if None in gaps else f"{max(gap for gap in gaps if gap is not None):.1e}"
        line = np.mean([run.hindsight for run in own])
        lines.append(f"| {own[0].data} | {own[0].T} | {own[0].d} | " + " | ".join(cells) + f" | {line:.5f} | {gap} |")
    if any(PANELS[run.data].network for run in runs):
        lines += ["", f"The network, `{reading.network}`: {NETWORK[reading.network]}. {WIDTH_NOTE}"]
    lines += ["", *(f"Not run: {name}. {reason.splitlines()[-1]}" for name, reason in missing.items())]
    lines += ["", "## The paper's claims", ""]
    for claim in claims:
        lines.append(f"- **{'Holds' if claim.holds else 'Does not hold'}**: {claim.text}.")
        lines += [f"  - {detail}" for detail in claim.details]
    return "\n".join(lines) + "\n"


def readings_table(reading: Reading, runs: Sequence[Outcome], beside: Mapping[Reading, Sequence[Outcome]]) -> str:
    """The verdicts under every reading of the settings, then its final average losses, those of the main one included."""
    rules, every = _rules(runs), {reading: runs, **beside}
    lines = [
        "",
        "## Other readings of the settings",
        "",
        f"What the paper does not state, read otherwise: {_orders(next(iter(beside.values())))}. "
        "A rule approaches where its average regret falls and is less than that of learning nothing.",
        "",
        "| scaling | network | convex: rules that approach | convex: NGVI lowest | network: NGVI lowest; who converges |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {each.scaling} | {each.network} | " + " | ".join(_verdicts(own, rules)) + " |" for each, own in every.items()
    ]
    lines += ["", "| scaling | data | " + " | ".join(rules) + " | hindsight |", "|---" * (len(rules) + 3) + "|"]
    shown = set()  # two readings may differ in the network alone
    for each, own in every.items():
        fresh = [run for run in own if not PANELS[run.data].drawn and (run.data, run.scaling, run.model) not in shown]
        shown |= {(run.data, run.scaling, run.model) for run in fresh}
        for panel_runs, finals, best in _finals(fresh):
            cells = [_bold(f"{finals[rule].mean():.4g}", rule == best) for rule in rules]
            first, line = panel_runs[0], np.mean([run.hindsight for run in panel_runs])
            name = f"{first.data}, {first.model}" if PANELS[first.data].network else first.data
            lines.append(f"| {each.scaling} | {name} | " + " | ".join(cells) + f" | {line:.4g} |")
    used = {each.scaling: SCALED[each.scaling] for each in every} | {each.network: NETWORK[each.network] for each in every}
    lines += ["", *(f"- `{name}`: {text}." for name, text in used.items())]
    return "\n".join(lines) + "\n"


def _verdicts(runs: Sequence[Outcome], rules: Sequence[str]) -> list[str]:
    present = list(_finals(runs))
    convex = [(own[0].data, best) for own, _, best in present if not PANELS[own[0].data].network]
    found = [approach(group(runs, data, rule)).holds for data, _ in convex for rule in rules]
    cells = [f"{sum(found)} of {len(found)}", f"{sum(best == 'NGVI' for _, best in convex)} of {len(convex)}"]
    network = [(own[0].data, best) for own, _, best in present if PANELS[own[0].data].network]
    for data, best in network:
        good = [rule for rule in rules if approach(group(runs, data, rule)).holds]
        cells.append(f"{'yes' if best == 'NGVI' else f'no, {best}'}; {', '.join(good) or 'none'}")
    return cells if network else [*cells, "not run"]


def _finals(runs: Sequence[Outcome]) -> Iterator[tuple[list[Outcome], dict[str, np.ndarray], str]]:
    """Of each panel that was run: its runs, the final average losses of each rule, and the rule with the lowest mean."""
    for name in PANELS:
        if own := group(runs, name):
            finals = {rule: np.array([run.average_loss for run in own if run.rule == rule]) for rule in _rules(runs)}
            yield own, finals, min(finals, key=lambda rule: finals[rule].mean())


def _rules(runs: Sequence[Outcome]) -> list[str]:
    return [rule for rule in RULES if any(run.rule == rule for run in runs)]


def _orders(runs: Sequence[Outcome]) -> str:
    """How many orders of each panel: the most, and those that have fewer."""
    counts = {name: len({run.seed for run in own}) for name in PANELS if (own := group(runs, name))}
    most = max(counts.values(), default=0)
    fewer = "".join(f", {count} of {name}" for name, count in counts.items() if count < most)
    return f"{most} order{'s' if most != 1 else ''}{fewer}"


def _bold(text: str, lowest: bool) -> str:
    return f"**{text}**" if lowest else text
