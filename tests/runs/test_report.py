"""The report: what it says, that nothing in the data can break it, and that a browser draws it."""

from __future__ import annotations

import itertools
import json
import math
import shutil
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from helpers.report_runs import classes_run, numbers_run, scored
from hypothesis import given
from hypothesis import strategies as st

from onlinevi.runs.charts.of_results import FEWEST, MOST_FEATURES, blocks, charts_of, chosen
from onlinevi.runs.charts.style import log_ticks, percent, short
from onlinevi.runs.charts.with_plotly import CLOSEST, as_text, spread_out
from onlinevi.runs.report.headline import headline
from onlinevi.runs.report.page import as_json, page, write_report
from onlinevi.runs.report.results import (
    CoverageCurve,
    LossCurve,
    PosteriorPath,
    RefusedRow,
    RefusedRows,
    RegretCurve,
    Results,
    Risk,
    SetsCurve,
)
from onlinevi.runs.report.scored import Alarms, MovedColumn, OneAlarm

EVIL = '</script><script>alert(1)</script><img src=x onerror="alert(2)">&amp;\u2028$x$%{y}'
RUNS = {"classes": classes_run, "numbers": numbers_run}


def everything_evil() -> Results:
    """A run whose every text comes from an enemy."""
    run = scored([EVIL, EVIL])
    posterior, names = run.posterior, [f"{EVIL} {k}" for k in range(30)]
    assert posterior is not None
    assert run.summary is not None
    assert run.data is not None
    task = replace(run.head.task, target=EVIL, sentence=EVIL, classes=[EVIL, EVIL])
    source = replace(run.head.source, path=f"rows/{EVIL}", sha256=EVIL)
    bad = RefusedRows(2, {EVIL: 2}, [RefusedRow(1, EVIL, EVIL)])
    return replace(
        run,
        head=replace(run.head, command=EVIL, started=EVIL, version=EVIL, source=source, task=task, settings={EVIL: EVIL}),
        summary=replace(run.summary, bad_rows=bad),
        posterior=replace(posterior, names=names),
        data=[replace(column, name=EVIL, kind=EVIL, holds=EVIL) for column in run.data],
        certificate=EVIL,
        without_posterior=EVIL,
    )


class Elements(HTMLParser):
    """The elements of a page with their attributes, and the text of each script."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.words: list[str] = []
        self.inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self.inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside == "script":
            self.scripts[-1] += data
        else:
            self.words.append(data)


@pytest.mark.parametrize("name", RUNS)
def test_a_document_survives_json(name: str) -> None:
    run = RUNS[name]()
    text = json.dumps(run.to_json(), allow_nan=False)
    assert Results.from_json(json.loads(text)) == run
    assert Results.from_json(json.loads(text) | {"of a later version": 1}) == run


def test_arrays_and_nan_become_plain() -> None:
    curve = CoverageCurve(np.array([1.0, 2.0]), [math.nan, 1.0], 0.9, [math.inf, 2.0])  # type: ignore[arg-type]
    plain = replace(classes_run(), calibration=curve).to_json()["calibration"]
    assert plain == {"steps": [1.0, 2.0], "coverage": [None, 1.0], "target": 0.9, "width": [None, 2.0]}
    read = Results.from_json(replace(classes_run(), calibration=curve).to_json()).calibration
    assert isinstance(read, CoverageCurve)
    assert math.isnan(read.coverage[0])


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"head": None}, "results.head is 'None': needs a dict"),
        ({"trace": {"steps": [1.0]}}, "results.trace.loss is missing"),
        ({"trace": {"steps": [1.0], "loss": [1.0, 2.0], "average_loss": [1.0]}}, "results.trace.*loss has 2"),
        ({"trace": {"steps": "many", "loss": [], "average_loss": []}}, "results.trace.steps is 'many': needs a list"),
        ({"hindsight": {"value": "low", "gap": 0.0}}, "results.hindsight.value is 'low': needs a number"),
        ({"summary": {"events": 1.5, "average_loss": 1.0}}, "summary.events is '1.5': needs a whole number"),
        ({"summary": {"events": 1, "average_loss": 1.0, "stopped": "soon"}}, "'soon': needs 'end' or 'interrupted'"),
        ({"posterior": {"names": ["a"], "steps": [1.0], "mean": [[1.0, 2.0]], "std": [[1.0]]}}, "2 values for 1 features"),
    ],
)
def test_a_bad_document_is_refused_by_place(change: dict, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Results.from_json(classes_run().to_json() | change)


def test_no_text_of_the_data_becomes_a_tag() -> None:
    elements = Elements(page(everything_evil(), "var Plotly;"))
    scripts = [attributes for tag, attributes in elements.found if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "figures"}, {}, {}, {}]
    assert elements.scripts[1] == "var Plotly;"
    assert not any("alert" in script for script in elements.scripts[1:])
    assert not any(tag == "img" for tag, _ in elements.found)
    assert not any(name.startswith("on") for _, attributes in elements.found for name in attributes)
    figures = json.loads(elements.scripts[0])
    names = [trace["name"] for trace in figures["posterior"]["data"][1::2]]
    assert all(name.startswith("&lt;/script&gt;") for name in names)  # plotly reads tags in names
    assert elements.words.count(EVIL) >= 40  # shown as it is


def test_json_cannot_end_its_script() -> None:
    assert "<" not in as_json([EVIL])
    assert json.loads(as_json([EVIL])) == [EVIL]


@pytest.mark.parametrize("name", RUNS)
def test_nothing_is_loaded_from_elsewhere(name: str) -> None:
    elements = Elements(page(RUNS[name](), "var Plotly;"))
    policy = next(own["content"] for tag, own in elements.found if tag == "meta" and "http-equiv" in own)
    assert policy is not None
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert not {"src", "href", "action", "data", "srcset"} & {name for _, own in elements.found for name in own}


def test_a_library_cannot_end_its_script() -> None:
    assert len(Elements(page(classes_run(), 'var a = "</script>";')).scripts) == 4


def test_only_the_head_is_needed() -> None:
    bare = Results(classes_run().head)
    assert charts_of(bare) == []
    assert headline(bare) == []
    assert "Predict diagnosis" in page(bare, "")


def test_many_columns_are_cut() -> None:
    run = classes_run()
    assert run.data is not None
    many = replace(run, data=[replace(run.data[0], name=f"column {k} of many") for k in range(201)])
    words = Elements(page(many, "")).words
    assert "201 columns, of which the first 200 are shown." in words
    assert sum(word.endswith(" of many") for word in words) == 200


def test_metrics_are_told_beside_what_needs_no_model() -> None:
    run = scored(["cat", "dog", "owl"])
    assert [chart.name for chart in charts_of(run)][:1] == ["compared"]
    chart = charts_of(run)[0]
    assert [line.name for line in chart.lines] == ["this model", "always the same", "same as last time"]
    words = Elements(page(run, "")).words
    assert words[words.index("metric") :][:5] == ["metric", "all rows", "last 100", "always the same", "same as last time"]
    assert words[words.index("log loss") :][:5] == ["log loss", "0.4", "0.4", "0.7", "0.7"]
    assert "a sentence." in " ".join(words)
    numbers = page(scored(["a"], numbers=True), "")
    assert "RMSE" in numbers
    assert "chart-residuals" in numbers


def test_alarms_are_told_with_what_moved() -> None:
    run = scored(["cat", "dog"])
    assert "Did the stream change?" not in page(run, "")
    assert "No alarm rang" in page(replace(run, alarms=Alarms(0.01, 0, [])), "")
    moved = [MovedColumn(EVIL, 0.0, 2.0, 1.5)]
    rang = replace(run, alarms=Alarms(0.01, 70, [OneAlarm(2050, 2000, 41.8, 0.17, 0.66, moved)]))
    text = page(rang, "")
    assert "An alarm rang 70 times" in text
    assert "The last 1 are shown" in text
    words = Elements(text).words
    assert words[words.index("2,000") :][:4] == ["2,000", "41.8", "17 %", "66 %"]
    assert all(script.count("alert(1)") == 0 for script in Elements(text).scripts[1:]), "names are no scripts"


def test_few_classes_are_a_table_and_of_many_the_mistakes_are_told() -> None:
    few = page(scored(["cat", "dog"]), "")
    assert few.count('class="right"') == few.count('class="wrong"') == 2
    many = Elements(page(scored([f"c{k}" for k in range(20)]), "")).words
    told = many[many.index("The commonest mistakes among 20 classes.") : many.index("Rows left out")]
    assert told[1:4] == ["was", "taken for", "rows"]
    assert told[6::3][:12] == ["2"] * 12, "as many as are shown, the most first"


def test_columns_are_shown_with_their_uncertainty_and_none_is_more_than_all() -> None:
    run = scored(["a", "b"])
    (chart,) = [chart for chart in charts_of(run) if chart.name == "importance"]
    assert chart.y.names == ("b column", "a column"), "the most above"
    np.testing.assert_allclose(chart.points[0].x, [45.0, 45.0])
    np.testing.assert_allclose(chart.points[0].across, [20.0, 20.0])
    assert run.importance is not None
    unsure = replace(run, importance=replace(run.importance, std=[9.0, 9.0]))
    (chart,) = [chart for chart in charts_of(unsure) if chart.name == "importance"]
    assert chart.x.high < 104.0


@pytest.mark.parametrize("count", [3, 40, 5_000])
def test_no_line_leaves_its_frame(count: int) -> None:
    rng = np.random.default_rng(count)
    steps = np.arange(1.0, count + 1.0)
    losses = rng.exponential(size=count) * np.where(steps < 30, 20.0, 1.0)
    wide = 1000.0 / steps + 5.0
    held = np.cumsum(rng.random(count) < 0.9) / steps
    curve = LossCurve(steps.tolist(), losses.tolist(), (np.cumsum(losses) / steps).tolist())
    numbers = CoverageCurve(steps.tolist(), held.tolist(), 0.9, wide.tolist())
    sets = SetsCurve(steps.tolist(), held.tolist(), 0.9, (wide / 10.0).tolist(), np.clip(1.3 * held, 0.0, 1.0).tolist())
    run = replace(scored(["a", "b"]), trace=curve, calibration=numbers, sets=sets)
    charts = [chart for chart in charts_of(run) if chart.name in ("loss", "coverage", "width", "sets", "set-size")]
    assert len(charts) == 5
    for chart in charts:
        for line in chart.lines:
            assert chart.x.low <= min(line.steps) <= max(line.steps) <= chart.x.high
            assert chart.y.low <= np.nanmin(chart.y.shown(line.values))
            assert np.nanmax(chart.y.shown(line.values)) <= chart.y.high
        assert max(max(line.steps) for line in chart.lines) == count
    (width,) = [chart for chart in charts if chart.name == "width"]
    assert width.x.low <= max(50.0, count / 50.0)


def test_empty_parts_draw_nothing() -> None:
    empty = {"steps": [], "certified": [], "coverage": [], "target": 0.9, "loss": [], "average_loss": [], "names": []}
    empty |= {"mean": [], "std": [], "rows_per_second": []}
    parts = dict.fromkeys(("trace", "regret", "posterior", "calibration", "throughput"), empty)
    assert (
        charts_of(Results.from_json({"head": classes_run().head.__dict__ | {"source": {"path": "a"}, "task": TASK}} | parts))
        == []
    )


TASK = {"kind": "classes", "target": "t", "sentence": "s"}


def test_of_one_row_nothing_is_drawn_that_needs_a_course() -> None:
    one = LossCurve([1.0], [0.7], [0.7])
    run = replace(
        classes_run(),
        trace=one,
        regret=RegretCurve([1.0], [-1.0], [0.0]),
        posterior=PosteriorPath(["a"], [1.0], [[0.0]], [[0.0]]),
        calibration=CoverageCurve([1.0], [math.nan], 0.9, [math.inf]),
    )
    json.dumps(run.to_json(), allow_nan=False)
    assert [chart.name for chart in charts_of(run)] == ["throughput"]
    assert "NaN" not in page(run, "")


def test_the_headline_says_how_well_and_how_surely() -> None:
    said = " ".join(headline(classes_run()))
    assert "569 rows" in said
    assert "right for 96.7 %" in said
    assert "no fixed model of its kind would have beaten it by more than 0.0962 a row" in said
    numbers = numbers_run()
    assert isinstance(numbers.calibration, CoverageCurve)
    held = percent(numbers.calibration.coverage[-1])
    assert f"meant to hold the answer 90 % of the time; it held {held} of the time" in " ".join(headline(numbers))


def test_the_headline_does_not_boast() -> None:
    run = classes_run()
    assert run.summary is not None
    loose = RegretCurve([569.0], [run.summary.average_loss])
    assert "says little" in headline(replace(run, regret=loose))[-1]
    assert "interrupted" in headline(replace(run, summary=replace(run.summary, stopped="interrupted")))[-1]
    better = replace(run, summary=replace(run.summary, average_loss=0.01))
    assert any("below that of the best fixed model" in sentence for sentence in headline(better))
    likely = headline(replace(run, risk=Risk(0.05, 0.1, 0.2, 0.6, 9.0)))[-1]
    assert "95 % confidence each no more than these shares of new rows are got wrong: 10 % (its guesses" in likely
    assert "20 % (weights drawn" in likely
    assert "60 %" not in likely, "a coin does better"
    assert headline(replace(run, risk=Risk(0.05, 0.7))) == headline(run)
    assert percent(0.99999) == "more than 99.9 %"
    assert percent(1e-9) == "less than 0.1 %"
    assert (percent(1.0), percent(0.0), percent(0.905)) == ("100 %", "0 %", "90.5 %")


def test_the_surest_and_the_most_moved_features_are_chosen() -> None:
    mean, std = np.zeros((3, 20)), np.ones((3, 20))
    mean[-1, 4], std[-1, 4] = 1.0, 0.01
    mean[1, 7] = 50.0
    picked = chosen(PosteriorPath([str(k) for k in range(20)], [1.0, 2.0, 3.0], mean.tolist(), std.tolist()))
    assert picked[:2] == [(4, "surest"), (7, "moved most")]
    assert len({index for index, _ in picked}) == len(picked) == MOST_FEATURES


@given(st.lists(st.floats(0.0, 1.0), max_size=6).map(sorted))
def test_labels_keep_apart_and_in_order(places: list[float]) -> None:
    moved = spread_out(places)
    assert all(high - low >= CLOSEST - 1e-12 for low, high in itertools.pairwise(moved))
    assert all(place <= 1.0 for place in moved)
    if all(high - low >= CLOSEST for low, high in itertools.pairwise(places)):
        assert moved == pytest.approx(places)


def test_blocks_are_means_of_the_rows_between() -> None:
    rng = np.random.default_rng(0)
    losses = rng.exponential(size=5000)
    at, means = blocks(LossCurve(list(np.arange(1.0, 5001.0)), losses.tolist(), losses.tolist()), 10.0)
    edges = np.array([0, *at], dtype=int)
    assert np.diff(edges).min() >= min(FEWEST, 10)
    assert len(at) <= 70
    expected = [losses[low:high].mean() for low, high in itertools.pairwise(edges)]
    np.testing.assert_allclose(means, expected, rtol=1e-12)


@given(st.floats(1e-12, 1e9), st.floats(1.2, 1e12))
def test_log_ticks_lie_on_the_axis_and_are_few(low: float, ratio: float) -> None:
    ticks = log_ticks(low, low * ratio)
    assert len(ticks) <= 12
    assert all(low * (1 - 1e-8) <= tick <= low * ratio * (1 + 1e-8) for tick in ticks)
    assert ticks or ratio < 1.6


def test_short_numbers() -> None:
    assert [short(value) for value in (0.003, 250.0, 1000.0, 2.5e4, 3e6)] == ["0.003", "250", "1k", "25k", "3M"]


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "plotly", None)
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install \"onlinevi\[report\]\""):
        write_report(classes_run(), tmp_path / "report.html")
    assert not list(tmp_path.iterdir())


CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def opened(path: Path, folder: Path) -> tuple[Elements, list[str]]:
    """The page after its scripts ran, and what they wrote to the console."""
    options = "--headless --no-sandbox --disable-gpu --disable-background-networking --no-first-run --enable-logging=stderr"
    command = [str(CHROMIUM), *options.split(), f"--user-data-dir={folder}", "--virtual-time-budget=5000", "--dump-dom"]
    done = subprocess.run([*command, path.as_uri()], capture_output=True, text=True, timeout=120, check=True)
    return Elements(done.stdout), [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: install chromium to see the report drawn")
def test_a_browser_draws_every_chart(tmp_path: Path) -> None:
    pytest.importorskip("plotly", reason='plotly is missing: pip install "onlinevi[report]"')
    for name, run in {"evil": everything_evil(), "numbers": scored(["a", "b"], numbers=True)}.items():
        path = write_report(run.to_json(), tmp_path / f"{name}.html")
        assert path.stat().st_size < 6_000_000
        elements, console = opened(path, tmp_path / "profile")
        assert console == []
        drawn = {own["id"] for _, own in elements.found if own.get("data-drawn") == "yes"}
        assert drawn == {f"chart-{chart.name}" for chart in charts_of(run)}
        lines = [own for tag, own in elements.found if tag == "path" and own.get("class") == "js-line"]
        assert len(lines) >= len(drawn) - 1
        assert all("NaN" not in str(own.get("d")) for own in lines)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: install chromium to see the report drawn")
def test_a_broken_page_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "broken.html"
    path.write_text(page(classes_run(), "throw new Error('broken');"))
    elements, console = opened(path, tmp_path / "profile")
    assert any("broken" in line for line in console)
    assert not any(own.get("data-drawn") for _, own in elements.found)


def test_the_run_shown_keeps_its_promises() -> None:
    regret = classes_run().regret
    assert regret is not None
    assert regret.observed is not None
    assert regret.theorem is not None
    assert (np.array(regret.observed) <= np.array(regret.certified)).all()
    assert regret.certified[-1] <= regret.theorem[-1]


def test_long_names_that_begin_alike_are_told_apart() -> None:
    shown = [as_text(f"temperature of the sensor number {number}") for number in (7, 12)]
    assert shown == ["temperature of… number 7", "temperature of…number 12"]
