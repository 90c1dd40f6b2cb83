"""The page: headline, charts, tables, in one file. Whatever comes from data is escaped here, and only here."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from onlinevi.data import replace_text
from onlinevi.runs.charts.chart import Chart
from onlinevi.runs.charts.of_results import charts_of
from onlinevi.runs.charts.style import ROLES, number, percent
from onlinevi.runs.charts.with_plotly import has_key, plotly_figure
from onlinevi.runs.report.document import to_plain
from onlinevi.runs.report.headline import headline
from onlinevi.runs.report.results import Column, Head, RefusedRows, Results, Shards
from onlinevi.runs.report.tables import alarms, classes, confusion, metrics, table, told_by

COLUMNS_SHOWN = SHARDS_SHOWN = 200
OPTION = re.compile(r"--[a-z-]+|\bonlinevi [a-z]+")


def write_report(results: Results | Mapping[str, Any], path: str | Path) -> Path:
    """Write one run's results as one HTML file of about 5 MB that opens anywhere, without a network."""
    own = results if isinstance(results, Results) else Results.from_json(results)
    target = Path(path)
    replace_text(target, page(own, plotly_script()))
    return target


def plotly_script() -> str:
    """The source of plotly.js as its Python package carries it, 4.8 MB: no request is made to draw a chart."""
    try:
        from plotly.offline import get_plotlyjs
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError('a report needs plotly for its charts: pip install "onlinevi[report]"') from error
    return str(get_plotlyjs())


def page(results: Results, library: str) -> str:
    """The whole document. ``library`` is the source of plotly.js."""
    charts = charts_of(results)
    scripts = [library.replace("</script", r"<\/script"), _asset("charts.js"), _asset("page.js")]
    # Only these scripts run, whatever a column is called, and nothing at all is loaded.
    allowed = " ".join(f"'{_digest(script)}'" for script in scripts)
    policy = f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:"
    figures = as_json({chart.name: plotly_figure(chart) for chart in charts})
    task = results.head.task
    body = [
        _headline(results),
        metrics(results),
        alarms(results),
        _certain(results),
        *map(_chart, charts),
        _no_weights(results),
        classes(results),
        told_by(results),
        confusion(results),
        _shards(results.shards) if results.shards else "",
        _refused(results.summary.bad_rows) if results.summary else "",
        _data(results.data, results.head) if results.data else "",
        _settings(results),
    ]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(task.target)} · onlinevi</title>",
            f"<style>{page_style()}</style></head><body><main>",
            *filter(None, body),
            "<noscript><p>The charts need JavaScript.</p></noscript></main>",
            f'<script type="application/json" id="figures">{figures}</script>',
            *(f"<script>{script}</script>" for script in scripts),
            "</body></html>\n",
        ]
    )


def parts_of(results: Results) -> dict[str, Any]:
    """What the page shows of results that still change, as plain values for a page that draws them anew."""
    charts = charts_of(results)
    return {
        "title": results.head.task.sentence,
        "sentences": headline(results),
        "cards": [list(card) for card in _figures_of_merit(results)],
        "charts": [_told_of(chart) for chart in charts],
        "figures": to_plain({chart.name: plotly_figure(chart) for chart in charts}),
        "without_weights": results.without_posterior if results.posterior is None else "",
    }


def _told_of(chart: Chart) -> dict[str, Any]:
    """What stands around a chart: its texts, a key where there is no room in it, and switches of its lines."""
    return {
        "name": chart.name,
        "title": chart.question or chart.title,
        "caption": chart.caption,
        "height": _height(chart),
        "key": [{"name": line.name, "role": line.role, "dash": line.dash} for line in chart.lines] if has_key(chart) else [],
        "switches": [
            {"name": line.name, "role": line.role, "why": line.why, "on": k < chart.switched_on}
            for k, line in enumerate(chart.lines)
        ]
        if chart.switched_on is not None
        else [],
    }


def _height(chart: Chart) -> str | None:
    """The height of a chart that has a line for each name; None for that of any other."""
    return f"{5 + 1.6 * len(chart.y.names):.0f}rem" if chart.y.names else None


def charts_script() -> str:
    """The source that draws figures with plotly.js, in the page's own colours."""
    return _asset("charts.js")


def page_style() -> str:
    """The style sheet of the page, its colours included."""
    return _colours() + _asset("page.css")


def as_json(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(to_plain(value), allow_nan=False, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _digest(script: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


def _asset(name: str) -> str:
    return (files("onlinevi.runs.report") / name).read_text(encoding="utf-8")


def _colours() -> str:
    """The colour of each role as a variable of the style sheet, on light and on dark paper."""
    light, dark = ("".join(f"--{role}: {hues[k]}; " for role, hues in ROLES.items()) for k in (0, 1))
    return f":root {{ {light}}}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark}}} }}\n"


def _headline(results: Results) -> str:
    head, sentences = results.head, headline(results)
    told = f'<p class="lead">{escape(sentences[0])}</p>' if sentences else ""
    told += f'<ul class="told">{"".join(f"<li>{escape(each)}</li>" for each in sentences[1:])}</ul>' if sentences[1:] else ""
    cards = "".join(
        f"<div><dt>{escape(label)}</dt><dd>{escape(value)}</dd></div>" for label, value in _figures_of_merit(results)
    )
    origin = " · ".join(filter(None, [Path(head.source.path).name, head.started[:16].replace("T", " ")]))
    return (
        f'<header><p class="source">{escape(origin)}</p><h1>{escape(head.task.sentence)}</h1>{told}'
        + (f'<dl class="cards">{cards}</dl>' if cards else "")
        + "</header>"
    )


def _figures_of_merit(results: Results) -> Iterable[tuple[str, str]]:
    summary = results.summary
    if summary is None:
        return
    yield "rows", f"{summary.events:,}"
    if summary.error_rate is not None:
        yield "wrong", percent(summary.error_rate)
    if summary.coverage is not None:
        yield "in range", percent(summary.coverage)
    if results.sets is not None and results.sets.steps:
        yield "in its set", percent(results.sets.coverage[-1])
        yield "set size", number(results.sets.size[-1])
    scored = {} if results.metrics is None else results.metrics.so_far.learner
    if "cost" in scored:
        yield "cost a row", number(scored["cost"])
    if "rmse" in scored:  # what a squared loss is paid in says nothing to people
        yield "RMSE", number(scored["rmse"])
    else:
        yield "average loss", number(summary.average_loss)
    if results.hindsight is not None and "rmse" not in scored:
        yield "in hindsight", number(results.hindsight.value)
    if summary.rows_per_second is not None:
        yield "rows a second", f"{summary.rows_per_second:,.0f}"
    if summary.bad_rows.count:
        yield "rows left out", f"{summary.bad_rows.count:,}"


def _sentences(text: str) -> str:
    """Text in which an option of the command line stays in one piece."""
    return OPTION.sub(r"<code>\g<0></code>", escape(text))


def _chart(chart: Chart) -> str:
    title, switches = escape(chart.question or chart.title), ""
    if chart.switched_on is not None:
        buttons = (
            f'<button type="button" style="--own: var(--{line.role})" data-feature="{k}" '
            f'aria-pressed="{"true" if k < chart.switched_on else "false"}" '
            f'title="{escape(line.name)}: {escape(line.why)}">{escape(line.name)}</button>'
            for k, line in enumerate(chart.lines)
        )
        switches = f'<div class="switches" role="group" aria-label="features shown">{"".join(buttons)}</div>'
    height = "" if (tall := _height(chart)) is None else f' style="height: {tall}"'
    names = (f'<li class="{line.dash}" style="--own: var(--{line.role})">{escape(line.name)}</li>' for line in chart.lines)
    key = f'<ul class="key">{"".join(names)}</ul>' if has_key(chart) else ""
    return (
        f"<section><h2>{title}</h2><p>{_sentences(chart.caption)}</p>{key}{switches}"
        f'<div class="chart" id="chart-{chart.name}"{height} role="img" aria-label="{title}"></div></section>'
    )


def _certain(results: Results) -> str:
    if not results.certificate:
        return ""
    return f"<section><h2>What is certain</h2><p>{escape(results.certificate)}</p></section>"


def _no_weights(results: Results) -> str:
    if results.posterior is not None or not results.without_posterior:
        return ""
    return f"<section><h2>What it believes</h2><p>No weights are shown: {_sentences(results.without_posterior)}.</p></section>"


def _shards(shards: Shards) -> str:
    """Those that were left out first."""
    each = sorted(shards.each, key=lambda one: not one.error)[:SHARDS_SHOWN]
    names = ["shard", "left out because", "rows", "average loss", "seconds", "attempts", "bad rows"]
    rows = (
        [one.name, one.error or "–", f"{one.events:,}", number(one.average_loss), number(one.seconds), *counts]
        for one in each
        for counts in [(f"{one.attempts:,}", f"{one.refused:,}")]
    )
    note = f"{len(shards.each):,} {'part' if len(shards.each) == 1 else 'parts'} of the rows"
    note += f", of which {SHARDS_SHOWN} are shown." if len(shards.each) > SHARDS_SHOWN else "."
    return f"<section><h2>Shards</h2><p>{note}</p>{table(names, rows, numeric=5)}</section>"


def _refused(bad: RefusedRows) -> str:
    if not bad.count:
        return ""
    reasons = sorted(bad.reasons.items(), key=lambda reason: -reason[1])
    found = "<section><h2>Rows left out</h2><p>"
    found += f"{bad.count:,} {'row was' if bad.count == 1 else 'rows were'} not learned from.</p>"
    if reasons:
        found += table(["reason", "rows"], ([reason, f"{count:,}"] for reason, count in reasons), numeric=1)
    if bad.first:
        first = ([f"{each.row:,}", each.column or "–", each.reason] for each in bad.first)
        found += f"<details><summary>The first of them</summary>{table(['row', 'column', 'reason'], first)}</details>"
    return f"{found}</section>"


def _data(columns: list[Column], head: Head) -> str:
    rows = ([each.name, each.kind, each.holds, *_moments(each), f"{each.missing:,}"] for each in columns[:COLUMNS_SHOWN])
    count = max(len(columns), head.of_columns)
    note = f"{count:,} {'column' if count == 1 else 'columns'}"
    note += f", of which the first {COLUMNS_SHOWN} are shown" if count > COLUMNS_SHOWN else ""
    note += f"; {head.features:,} features were made of them" if head.features > count else ""
    told = table(["column", "kind", "holds", "mean", "std", "missing"], rows, numeric=3)
    return f"<section><h2>Data</h2><p>{note}.</p>{told}</section>"


def _moments(column: Column) -> tuple[str, str]:
    """The mean and the std; nothing where it is told otherwise what a column holds."""
    return ("", "") if column.holds and column.mean is None else (number(column.mean), number(column.std))


def _settings(results: Results) -> str:
    head, source = results.head, results.head.source
    rows = list(head.settings.items())
    if head.task.classes:
        rows.append(("classes", ", ".join(head.task.classes)))
    rows.append(("file", source.path))
    if source.first_row is not None and source.last_row is not None:
        rows.append(("rows of the file", f"{source.first_row:,} to {source.last_row:,}"))
    if source.sha256:
        rows.append(("SHA-256", source.sha256))
    if results.summary and results.summary.seconds is not None:
        rows.append(("seconds", number(results.summary.seconds)))
    rows += [("started", head.started), ("command", head.command), ("onlinevi", head.version)]
    terms = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in rows if value)
    return f'<section><h2>Settings</h2><dl class="settings">{terms}</dl></section>'
