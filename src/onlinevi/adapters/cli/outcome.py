"""What a run leaves and says: files in its directory, and a summary."""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from onlinevi.adapters.cli.voice import between_words, room
from onlinevi.data import replace_text
from onlinevi.runs import to_plain

WRITTEN = ("run.json", "report.html")
"""The files of ``--out`` beside the checkpoint."""


def print_json(document: Any) -> None:
    """Print one JSON document, with null for what is no number."""
    print(json.dumps(to_plain(document), ensure_ascii=False))


def write_results(out: Path, document: dict[str, Any]) -> list[Path]:
    """Write what a run leaves in its directory beside the model; the files that are there then."""
    paths = [write_json(out / "run.json", document), out / "model.ovi"]
    if find_spec("plotly") is not None:
        from onlinevi.runs import write_report

        paths.append(write_report(document, out / "report.html"))
    return [path for path in paths if path.exists()]


def facts_of_metrics(metrics: dict[str, Any] | None) -> dict[str, Any] | None:
    """The metrics without what is for charts."""
    return metrics and {name: value for name, value in metrics.items() if name not in ("over_time", "last_rows")}


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
        facts["risk"], facts["metrics"] = document["risk"], facts_of_metrics(document["metrics"])
        facts["alarms"] = document["alarms"]
        if (shards := document["shards"]) is not None:
            facts["shards"], facts["certificate"] = len(shards["each"]), shards["certificate"]
            facts["bad_shards"] = [one["name"] for one in shards["each"] if one["error"]]
        print_json(facts | {"wrote": [str(path) for path in paths]})
        return
    print(between_words(f"{task['sentence']}."))
    from onlinevi.runs import Results, charts, headline, metrics_table

    results = Results.from_json(document)
    lines = headline(results)
    table = [] if results.metrics is None else metrics_table(results.metrics, room())
    print("\n".join([*map(between_words, lines), *table]))
    loss = charts.number(summary["average_loss"])
    if summary["average_loss"] is not None and not any(loss in line for line in lines):  # it need not be said twice
        print(f"Average loss {loss}.")
    if summary["bad_rows"]["count"]:
        print(bad_rows(summary["bad_rows"]["count"]) + " left out.")
    if summary["seconds"]:
        print(f"{summary['seconds']:.1f} s.")
    if paths:
        print(wrote(paths))


def make_directory(out: Path | None) -> None:
    """Make the directory that ``--out`` names, if it does."""
    if out is None:
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise ValueError(f"--out {out}: there is a file of this name; name a directory") from error


def write_json(path: Path, document: dict[str, Any]) -> Path:
    """Put a document in the place of the file, as a whole."""
    replace_text(path, json.dumps(document, ensure_ascii=False))
    return path


def bad_rows(count: int) -> str:
    """How many bad rows there were, in words."""
    return f"{count:,} bad {'row' if count == 1 else 'rows'}"


def wrote(paths: Iterable[Path]) -> str:
    """Which files were written, in words."""
    return "Wrote " + ", ".join(map(str, paths)) + "."
