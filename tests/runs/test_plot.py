"""The figure of a trace shows what the trace holds."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from helpers.report_runs import classes_run, numbers_run, numbers_trace

import onlinevi as ovi
from onlinevi.learners.reliable import reliability
from onlinevi.runs.charts import Axis, Chart, Line, colour, figure_of, plot_comparison
from onlinevi.runs.charts.of_results import charts_of
from onlinevi.runs.charts.with_plotly import plotly_figure

RNG = np.random.default_rng(0)
X = RNG.standard_normal((400, 3))
Y = np.sign(X @ [1.0, -1.0, 0.0] + 0.3 * RNG.standard_normal(400))


def titles(figure) -> list[str]:
    return [axes.get_title(loc="left") for axes in figure.axes]


def test_the_loss_panel_has_the_trace_and_the_line() -> None:
    trace = ovi.learn(X, Y, loss=ovi.Hinge(), rule=ovi.NGVI())
    best = ovi.hindsight(X, Y, loss=ovi.Hinge())
    figure = ovi.plot(trace, hindsight=best)
    assert titles(figure) == ["Loss", "Weights"]
    curve, line = figure.axes[0].lines
    np.testing.assert_array_equal(curve.get_ydata(), trace.average_loss[9:])
    assert set(line.get_ydata()) == {best.value}


def test_certificates_make_the_regret_panel() -> None:
    learner = ovi.Linear(loss=ovi.Hinge(), rule=ovi.NGVI())
    state, taken = learner.init(3), []
    for start in range(0, 400, 100):
        state, trace = learner.update_many(state, X[start : start + 100], Y[start : start + 100])
        taken.append(ovi.certificate(state))
    best = ovi.hindsight(X, Y, loss=ovi.Hinge())
    figure = ovi.plot(trace, certificates=reversed(taken), hindsight=best)
    assert titles(figure) == ["Loss", "Regret", "Weights"]
    certified, observed = figure.axes[1].lines
    np.testing.assert_allclose(certified.get_xydata(), [(each.count, each.regret / each.count) for each in taken])
    np.testing.assert_allclose(observed.get_xydata(), [(400, state.average_loss - best.value)])
    assert observed.get_ydata()[0] <= certified.get_ydata()[-1]


def test_the_surest_weights_come_first() -> None:
    wide = RNG.standard_normal((200, 30))
    trace = ovi.learn(wide, np.sign(wide[:, 7]), loss=ovi.Hinge(), rule=ovi.NGVI())
    axes = ovi.plot(trace, names=[f"${k}_" for k in range(30)]).axes[1]
    labels = [label.get_text() for label in axes.get_yticklabels()]
    order = np.argsort(-np.abs(trace.mean) / trace.std)[:20]
    assert labels == [f"${k}_" for k in order[::-1]]
    assert labels[-1] == "$7_"
    np.testing.assert_array_equal(axes.lines[1].get_xdata(), trace.mean[order[::-1]])


def test_points_have_no_intervals_and_empty_traces_no_loss() -> None:
    trace = ovi.learn(X, Y, loss=ovi.Hinge(), rule=ovi.OGA(), record="none")
    figure = ovi.plot(trace)
    assert titles(figure) == ["Weights"]
    figure.draw_without_rendering()


def test_intervals_and_coverage_of_numbers() -> None:
    trace, y = numbers_trace()
    figure = ovi.plot(trace, y=y, names=list("abcdef"))
    assert titles(figure) == ["Loss", "Weights", "Intervals", "Coverage"]
    assert {label.get_text() for label in figure.axes[1].get_yticklabels()} == {"intercept", *"abcdef"}
    running, asked = figure.axes[3].lines
    assert running.get_ydata()[-1] == pytest.approx(trace.coverage)
    assert asked.get_ydata()[0] == pytest.approx(0.9)
    inside, outside = figure.axes[2].lines
    assert len(inside.get_xdata()) + len(outside.get_xdata()) == 100
    figure.draw_without_rendering()


@pytest.mark.compiled
def test_probabilities_of_classes() -> None:
    trace = ovi.auto(X, Y)
    axes = ovi.plot(trace, y=Y).axes[2]
    bins = reliability(trace.probability, Y)
    np.testing.assert_allclose(axes.collections[-1].get_offsets(), np.column_stack([bins.predicted, bins.observed]))


def test_reliability_by_brute_force() -> None:
    said = np.concatenate([RNG.uniform(size=2000) ** 3, [0.0, 1.0]])
    y = np.where(RNG.uniform(size=2002) < said, 1.0, -1.0)
    bins = reliability(said, y, bins=7)
    own = [k for k in range(7) if any(int(min(p * 7, 6)) == k for p in said)]
    for place, k in enumerate(own):
        inside = [(p, label) for p, label in zip(said, y, strict=True) if int(min(p * 7, 6)) == k]
        assert bins.count[place] == len(inside)
        assert bins.predicted[place] == pytest.approx(np.mean([p for p, _ in inside]))
        assert bins.observed[place] == pytest.approx(np.mean([label == 1.0 for _, label in inside]))
    chance = 4.0 * np.sqrt(bins.predicted * (1.0 - bins.predicted) / bins.count)
    assert (np.abs(bins.predicted - bins.observed) <= chance + 1e-9).all()


@pytest.mark.parametrize(
    ("said", "y", "complaint"),
    [
        ([0.5], [1.0, 1.0], "needs one label a probability"),
        ([0.5], [0.0], "label 0.0: needs classes"),
        ([1.5], [1.0], "not in"),
        ([float("nan")], [1.0], "not in"),
    ],
)
def test_reliability_refuses(said: list, y: list, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        reliability(said, y)


def test_what_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = ovi.learn(X, Y, loss=ovi.Hinge(), rule=ovi.NGVI())
    with pytest.raises(ValueError, match="2 names for 3 features"):
        ovi.plot(trace, names=["a", "b"])
    with pytest.raises(ValueError, match="gives neither: leave y out"):
        ovi.plot(ovi.learn(X, Y, loss=ovi.Squared(), rule=ovi.NGVI()), y=Y)
    numbers, y = numbers_trace()
    with pytest.raises(ValueError, match=r"\(1999,\) labels for 2000 recorded events"):
        ovi.plot(numbers, y=y[1:])
    for name in ("matplotlib.backends.backend_agg", "matplotlib.figure", "matplotlib"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModuleNotFoundError, match=r"onlinevi\[plot\]"):
        ovi.plot(trace)


@pytest.mark.parametrize("run", [classes_run, numbers_run])
def test_matplotlib_and_plotly_draw_the_same(run) -> None:  # type: ignore[no-untyped-def]
    for chart in charts_of(run()):
        axes, page = figure_of([chart]).axes[0], plotly_figure(chart)
        lines = [trace for trace in page["data"] if trace.get("name") and trace["mode"] != "markers"]
        drawn = [line for line in axes.lines if not line.get_label().startswith("_")]
        assert [line.get_label() for line in drawn] == [line.name for line in chart.lines if line.name]
        for line, trace in zip(drawn, lines, strict=True):
            np.testing.assert_array_equal(line.get_xydata(), np.column_stack([trace["x"], trace["y"]]))
            assert line.get_color() == colour(trace["line"]["color"])
        for which, limits in (("x", axes.get_xlim()), ("y", axes.get_ylim())):
            layout = page[f"{which}axis"]
            ends = np.power(10.0, layout["range"]) if layout.get("type") == "log" else layout["range"]
            np.testing.assert_allclose(limits, ends, rtol=1e-12)
            if "ticktext" in layout:
                shown = [label.get_text() for label in getattr(axes, f"get_{which}ticklabels")()]
                assert shown == layout["ticktext"]


def test_rules_of_one_s_own_have_colours_of_their_own() -> None:
    steps = np.arange(1.0, 101.0)
    names = ["svb", "mine", "sva", "yours"]
    axes = plot_comparison({name: (steps, 1.0 / steps + k) for k, name in enumerate(names)}).axes[0]
    colours = [line.get_color() for line in axes.lines]
    assert colours[0] == colour("svb")
    assert colours[2] == colour("sva")
    assert len(set(colours)) == 4


@pytest.mark.parametrize("panels", [1, 2, 3])
def test_a_legend_below_stays_within_its_figure(panels: int) -> None:
    axis = Axis("t", 1.0, 2.0)
    lines = tuple(Line(f"{name}, certificate", "learner", [1.0, 2.0], [1.0, 2.0]) for name in "abcdefgh")
    figure = figure_of([Chart("a", "A", axis, axis, lines)] * panels, panel=(3.4, 2.95), legend="below")
    figure.draw_without_rendering()
    box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0.0
    assert box.x1 <= figure.bbox.x1


def test_a_legend_for_below_takes_the_place_that_no_chart_has() -> None:
    axis = Axis("t", 1.0, 2.0)
    chart = Chart("a", "A", axis, axis, (Line("a, certificate", "learner", [1.0, 2.0], [1.0, 2.0]),))
    figure = figure_of([chart] * 5, panel=(3.4, 2.95), legend="below")
    *panels, last = figure.axes
    assert not figure.legends
    assert [text.get_text() for text in last.get_legend().get_texts()] == ["a, certificate"]
    assert not last.axison
    assert all(axes.axison for axes in panels)
    assert len(figure_of([chart] * 5).axes) == 5
