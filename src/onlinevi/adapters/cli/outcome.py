"""What a run leaves and says: files in its directory, and a summary."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from onlinevi.adapters.cli.options import bad_rows, write_json, wrote

WRITTEN = ("run.json", "report.html")
"""The files of ``--out`` beside the checkpoint."""


def write_results(out: Path, document: dict[str, Any]) -> list[Path]:
    """Write what a run leaves in its directory beside the model; the files that are there then."""
    paths = [write_json(out / "run.json", document), out / "model.ovi"]
    if find_spec("plotly") is not None:
        from onlinevi.runs import write_report

        paths.append(write_report(document, out / "report.html"))
    return [path for path in paths if path.exists()]


def print_results(document: dict[str, Any], paths: list[Path], *, as_json: bool) -> None:
    """Say what came of a run, in words or as JSON."""
    summary, task = document["summary"], document["head"]["task"]
    if as_json:
        facts = {name: value for name, value in summary.items() if name != "bad_rows"}
        facts |= {"bad_rows": summary["bad_rows"]["count"], "cells_as_missing": summary["bad_rows"]["as_missing"]}
        facts |= {"task": task["kind"], "target": task["target"]}
        best, regret = document["hindsight"], document["regret"] or {}
        facts["hindsight"] = best["value"] if best else None
        facts["no_hindsight"] = document["without_hindsight"] or None
        for name, part in (("regret", "observed"), ("certified_regret", "certified")):
            facts[name] = values[-1] if (values := regret.get(part)) else None
        facts["risk"] = document["risk"]
        if (shards := document["shards"]) is not None:
            facts["shards"], facts["certificate"] = len(shards["each"]), shards["certificate"]
            facts["bad_shards"] = [one["name"] for one in shards["each"] if one["error"]]
        print(json.dumps(facts | {"wrote": [str(path) for path in paths]}, ensure_ascii=False))
        return
    print(f"{task['sentence']}.")
    from onlinevi.runs import Results, headline

    print("\n".join(headline(Results.from_json(document))))
    if summary["average_loss"] is not None and task["kind"] == "classes":
        print(f"Average loss {summary['average_loss']:.4g}.")
    if summary["bad_rows"]["count"]:
        print(bad_rows(summary["bad_rows"]["count"]) + " left out.")
    if summary["seconds"]:
        print(f"{summary['seconds']:.1f} s.")
    if paths:
        print(wrote(paths))
