"""The paper's experiments in small: same path, fewer rows, and what happens when things go wrong."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import onlinevi as ovi
from onlinevi import datasets
from onlinevi.paper import READINGS, Reading, reproduce
from onlinevi.paper.claims import approach, judge
from onlinevi.paper.experiments import (
    BestWeights,
    Experiment,
    Outcome,
    OutcomeFolder,
    best_in_hindsight,
    run_experiment,
    thinned,
)
from onlinevi.paper.panels import PANELS, SCALINGS, WARM_UP, Stream, ordered, prepared, scaled, scaled_targets

FIELDS = {"data", "rule", "seed", "scaling", "model", "T", "d", "average_loss", "hindsight", "hindsight_gap", "seconds"}


@pytest.fixture(autouse=True)
def coarse_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onlinevi.paper.sheets.POINTS", 41)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """No figures, which take longer than the runs in small."""
    monkeypatch.setattr("onlinevi.paper.reproduction.draw", lambda *_: [])


@pytest.fixture
def no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine with no data sets but those inside packages, and no network."""
    monkeypatch.delenv("ONLINEVI_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def refuse(*arguments: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr("onlinevi.data.catalogue.lookup._bring", refuse)


def numbers(folder: Path) -> list[dict]:
    runs = json.loads((folder / "results.json").read_text())["runs"]
    return [{key: value for key, value in run.items() if key != "seconds"} for run in runs]


@pytest.mark.compiled
def test_the_files_and_their_fields(tmp_path: Path) -> None:
    result = reproduce(tmp_path, data=["toy", "breast"], seeds=2, beside=0)
    assert [claim.holds for claim in result.claims] == [True, True, True], result.claims
    assert {path.name for path in result.paths} == {
        "results.json", "results.csv", "table.md", "figure.png", "figure.pdf", "posterior.png", "posterior.pdf",
        "guarantees.png", "guarantees.pdf",
    }  # fmt: skip
    assert all(path.stat().st_size > 500 for path in result.paths)
    results = json.loads((tmp_path / "results.json").read_text())
    runs = results["runs"]
    assert len(runs) == 2 * 2 * 5
    assert [(each["data"], each["rule"]) for each in results["guarantees"]][:3] == [
        ("toy", "SVA"),
        ("toy", "SVB"),
        ("toy", "NGVI"),
    ]
    for each in results["guarantees"]:
        assert all(np.array(each["regret"]) <= np.array(each["certificate"]))
        assert each["theorem"] is None or all(np.array(each["regret"]) <= np.array(each["theorem"]))
    for run in runs:
        assert set(run) == FIELDS | {"curve"}
        assert len(run["curve"]["t"]) == len(run["curve"]["average_loss"]) <= 1000
        assert run["curve"]["t"][-1] == run["T"]
        assert run["curve"]["average_loss"][-1] == run["average_loss"]
        assert 0.0 <= run["hindsight_gap"] <= 1e-4 * max(run["hindsight"], 0.01)
        assert run["curve"]["average_regret"][-1] == pytest.approx(run["average_loss"] - run["hindsight"], abs=1e-9)
    with (tmp_path / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["data"], row["rule"], float(row["average_loss"])) for row in rows] == [
        (run["data"], run["rule"], run["average_loss"]) for run in runs
    ]
    assert set(rows[0]) == FIELDS
    table = (tmp_path / "table.md").read_text()
    assert "NGVI is the lowest" in table
    assert "| breast | 569 | 30 |" in table


def test_a_run_is_the_paper_s_game() -> None:
    """Breast Cancer, seed 3, SVB: computed here from the public interface alone."""
    from sklearn.datasets import load_breast_cancer

    X, benign = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X = X / np.linalg.norm(X, axis=1)[:, None]
    order = np.random.default_rng(3).permutation(569)
    want = ovi.learn(X[order], np.where(benign == 1, 1.0, -1.0)[order], loss=ovi.Hinge(), rule=ovi.SVB())
    panel, reading = PANELS["breast"], Reading()
    stream = reading.in_order(panel, reading.in_file_order(panel, 3), 3)
    got = ovi.learn(stream.X, stream.y, loss=panel.loss, rule=ovi.SVB())
    np.testing.assert_array_equal(got.average_loss, want.average_loss)


@pytest.mark.compiled
def test_results_do_not_depend_on_the_number_of_threads(tmp_path: Path, undrawn: None) -> None:
    for jobs in (1, 3):
        reproduce(tmp_path / str(jobs), data=["breast"], rules=["SVB", "NGVI"], seeds=2, beside=0, jobs=jobs)
    assert numbers(tmp_path / "1") == numbers(tmp_path / "3")


@pytest.mark.compiled
def test_an_interrupted_call_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undrawn: None) -> None:
    from onlinevi.paper import reproduction as module

    done, play = [], module.run_experiment
    asked = {"data": ["breast"], "rules": ["SVB", "NGVI"], "seeds": 2, "beside": 0, "jobs": 1}

    def interrupted(job, *rest):  # type: ignore[no-untyped-def]
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(job)
        return play(job, *rest)

    monkeypatch.setattr(module, "run_experiment", interrupted)
    with pytest.raises(KeyboardInterrupt):
        reproduce(tmp_path, **asked)
    kept = {path.name for path in (tmp_path / "runs").iterdir() if path.name.startswith("breast")}
    assert kept == {f"{job}.json" for job in done}

    again = []
    monkeypatch.setattr(module, "run_experiment", lambda job, *rest: (again.append(job), play(job, *rest))[1])
    reproduce(tmp_path, **asked)
    assert len(again) == 2 * 2 - 2
    assert not set(again) & set(done)
    reproduce(tmp_path / "fresh", **asked)
    assert numbers(tmp_path) == numbers(tmp_path / "fresh")


def test_a_kept_run_that_is_damaged_or_of_another_source_is_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = OutcomeFolder(tmp_path)
    folder.save("line", BestWeights(0.5, 1e-6, [1.0, 2.0]))
    assert folder.load("line", BestWeights) == BestWeights(0.5, 1e-6, [1.0, 2.0])
    text = (tmp_path / "line.json").read_text()
    (tmp_path / "line.json").write_text(text[:-5])
    assert folder.load("line", BestWeights) is None
    (tmp_path / "line.json").write_text(text)
    monkeypatch.setattr("onlinevi.paper.experiments.source_digest", lambda: "another")
    assert folder.load("line", BestWeights) is None


@pytest.mark.compiled
def test_what_cannot_be_had_is_said_and_the_rest_goes_on(tmp_path: Path, no_data: None, undrawn: None) -> None:
    result = reproduce(tmp_path, seeds=1, rules=["NGVI", "SVB"], beside=0)
    assert {run.data for run in result.runs} >= {"toy", "breast"}
    assert set(result.missing) >= {"pima", "cover", "california"}
    assert "Not run: pima. To get it: put pima.csv into" in (tmp_path / "table.md").read_text()
    with pytest.raises(datasets.DataUnavailable, match=r"(?s)'pima' cannot be had.*ONLINEVI_DATA.*put pima.csv"):
        reproduce(tmp_path, data=["pima"])


def test_a_named_data_set_or_rule_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no 'iris'; there are toy, breast"):
        reproduce(tmp_path, data=["iris"])
    with pytest.raises(ValueError, match="no 'Adam'; there are OGA"):
        reproduce(tmp_path, rules=["Adam"])
    with pytest.raises(ValueError, match="scaling='huge': needs one of standard-row, running-row"):
        reproduce(tmp_path, scaling="huge")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="network='deep': needs one of width-5, width-50"):
        reproduce(tmp_path, network="deep")
    with pytest.raises(ValueError, match="beside=-1"):
        reproduce(tmp_path, beside=-1)
    with pytest.raises(ValueError, match="seeds=0"):
        reproduce(tmp_path, seeds=0)


def test_a_missing_extra_is_named_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onlinevi.paper.reproduction.find_spec", lambda module: None)
    with pytest.raises(ImportError, match=r"need matplotlib and threadpoolctl and jax: pip install 'onlinevi\[paper\]'"):
        reproduce(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("scaling", SCALINGS)
def test_scalings(scaling: str) -> None:
    X = np.array([[3.0, 4.0, 7.0], [0.0, 0.0, 7.0], [6.0, 8.0, 7.0], [0.0, 1.0, 7.0]])
    got = scaled(X, scaling)  # type: ignore[arg-type]
    assert np.isfinite(got).all(), "a constant column breaks nothing"
    if scaling != "none":
        lengths = np.linalg.norm(got, axis=1)
        np.testing.assert_allclose(lengths[got.any(axis=1)], 1.0)
    np.testing.assert_array_equal(scaled(np.zeros((2, 2)), scaling), 0.0)  # type: ignore[arg-type]


def test_running_moments_look_at_nothing_ahead() -> None:
    """Each row by the rows up to it, each label by the labels before it; what comes later changes no bit."""
    rng = np.random.default_rng(0)
    X, y = rng.gamma(2.0, 3.0, (60, 3)), rng.gamma(2.0, 3.0, 60) + 1e4
    rows = scaled(X, "running-row")
    targets = {by_range: scaled_targets(y, "running-row", by_range=by_range) for by_range in (False, True)}
    for t in (WARM_UP, 45, 59):
        standard = (X[t] - X[: t + 1].mean(axis=0)) / X[: t + 1].std(axis=0)
        np.testing.assert_allclose(rows[t], standard / np.linalg.norm(standard), rtol=1e-9)
        centred = y[t] - y[:t].mean()
        np.testing.assert_allclose(targets[False][t - WARM_UP], centred / y[:t].std(), rtol=1e-7)
        np.testing.assert_allclose(targets[True][t - WARM_UP], centred / np.ptp(y[:t]), rtol=1e-7)
    np.testing.assert_array_equal(scaled(np.vstack([X[:50], 1e9 * X[50:]]), "running-row")[:50], rows[:50])
    later = np.append(y[:50], 1e9 * y[50:])
    np.testing.assert_array_equal(
        scaled_targets(later, "running-row", by_range=False)[: 50 - WARM_UP], targets[False][: 50 - WARM_UP]
    )


def test_regression_targets() -> None:
    y = np.array([5.0, 50.0, 20.0, 13.0])
    whole = scaled_targets(y, "standard-row", by_range=False)
    np.testing.assert_allclose([whole.mean(), whole.std()], [0.0, 1.0], atol=1e-15)
    ranged = scaled_targets(y, "standard-row", by_range=True)
    np.testing.assert_allclose([ranged.mean(), np.ptp(ranged)], [0.0, 1.0], atol=1e-15)
    for scaling in ("row", "minmax-row", "none"):
        got = scaled_targets(y, scaling, by_range=True)  # type: ignore[arg-type]
        assert (got.min(), got.max()) == (0.0, 1.0)


def test_the_network_s_data_in_each_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = np.random.default_rng(0).random((50, 8)) * 100, np.arange(50.0) * 7 + 3
    fake = datasets.Dataset("california", X, y, (), "", "")
    monkeypatch.setattr("onlinevi.data.catalogue.load", lambda name, seed: fake)
    panel = PANELS["california"]
    earlier = Reading("row", "width-50").in_file_order(panel, 0)
    assert earlier.X.shape == (50, 9)
    np.testing.assert_array_equal(earlier.X[:, 8], 1.0)
    np.testing.assert_allclose(np.linalg.norm(earlier.X[:, :8], axis=1), 1.0)
    assert (earlier.y.min(), earlier.y.max()) == (0.0, 1.0)
    main = Reading().in_file_order(panel, 0)
    assert main.X.shape == (50, 8), "the network has biases of its own"
    running = Reading("running-row")
    stream = running.in_order(panel, running.in_file_order(panel, 0), 2)
    want = prepared(panel, ordered(panel, Stream(X, y), 2), "running-row")
    np.testing.assert_array_equal(stream.X, want.X)
    np.testing.assert_array_equal(stream.y, want.y)
    assert stream.X.shape == (50 - WARM_UP, 8)


def test_the_network_runs_and_its_line_is_said_to_be_uncertified(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jax")
    from onlinevi.paper import network

    small = network.Network(2, biases=True, gauss_newton=True, drawn_start=False)
    monkeypatch.setitem(network.NETWORKS, "small", small)
    monkeypatch.setattr(network, "ITERATIONS", 30)
    monkeypatch.setattr(network, "TRAININGS", 2)
    X = np.random.default_rng(0).random((200, 2))
    stream = Stream(X, np.abs(X[:, 0] - 0.5))
    line = best_in_hindsight(PANELS["california"], "small", stream, lambda share: None)
    assert line.gap is None
    assert line.averages(PANELS["california"], stream)[-1] == pytest.approx(line.value, rel=1e-9)
    assert line.value < stream.y.var(), "better than the best constant"
    shares: list[float] = []
    constant = ovi.learn(np.ones((200, 1)), stream.y, loss=ovi.Squared(), rule=ovi.OGA()).average_loss
    outcome = run_experiment(Experiment("california", "OGA", 0, "row", "small"), stream, line, shares.append)
    at = np.array(outcome.steps) - 1
    np.testing.assert_allclose(outcome.curve, constant[at], rtol=1e-12, err_msg="from 0, OGA learns the output's bias alone")
    assert outcome.trivial == pytest.approx(stream.y.var(), rel=1e-12), "the best constant"
    assert shares[-1] == 1.0
    from_draw = network.online(replace(small, drawn_start=True), ovi.OGA(), stream, 0, shares.append)
    assert from_draw[0] != outcome.curve[0]
    averages = network.online(small, ovi.NGVI(), stream, 0, shares.append)
    assert averages.shape == (200,)
    assert np.isfinite(averages).all()


def test_other_readings_stand_beside_with_their_verdicts(tmp_path: Path, undrawn: None) -> None:
    result = reproduce(tmp_path, data=["breast"], rules=["SVB", "NGVI"], seeds=1, beside=1, scaling="row")
    assert list(result.beside) == [reading for reading in READINGS if reading != Reading("row")]
    table = (tmp_path / "table.md").read_text().split("## Other readings of the settings")[1]
    finals = {"row": result.runs} | {reading.scaling: runs for reading, runs in result.beside.items()}
    for scaling, runs in finals.items():
        SVB, NGVI = (next(run for run in runs if run.rule == rule) for rule in ("SVB", "NGVI"))
        assert NGVI.average_loss < SVB.average_loss
        assert f"| {scaling} | breast | {SVB.average_loss:.4g} | **{NGVI.average_loss:.4g}** | {SVB.hindsight:.4g} |" in table
    assert "| standard-row | width-5 | 2 of 2 | 1 of 1 | not run |" in table
    assert "| none | width-5 | 0 of 2 | 1 of 1 | not run |" in table
    kept = json.loads((tmp_path / "results.json").read_text())["beside"]
    assert [(each["scaling"], each["network"]) for each in kept] == [
        (reading.scaling, reading.network) for reading in result.beside
    ]


def test_thinned_times_are_few_and_reach_the_end() -> None:
    for count in (1, 2, 50, 999, 581_012):
        times = thinned(count)
        assert times[0] == 1
        assert times[-1] == count
        assert len(times) <= 1000


def made(rule: str, data: str, regret, seed: int = 0) -> Outcome:  # type: ignore[no-untyped-def]
    steps = thinned(10_000)
    values = [float(regret(t)) for t in steps]
    curve = [0.3 + value for value in values]
    return Outcome(data, rule, seed, "row", "linear", 10_000, 2, curve[-1], 0.3, 1e-6, 1.0, 0.0, steps, curve, values)


def test_the_verdicts_can_go_either_way() -> None:
    falling = {"NGVI": lambda t: 0.5 / t**0.5, "SVA": lambda t: t**-0.5}
    claims = judge([made(rule, "toy", curve) for rule, curve in falling.items()])
    assert [claim.holds for claim in claims] == [True, True, True]
    assert approach([made("SVA", "toy", falling["SVA"])]).rate == pytest.approx(-0.5, abs=1e-6)

    better_once = [made("NGVI", "toy", lambda t: 0.1), made("NGVI", "toy", lambda t: 0.4, seed=1)]
    others = [made("SVA", "toy", lambda t: 0.3, seed=seed) for seed in (0, 1)]
    by_mean = judge(better_once + others)[1]
    assert by_mean.holds
    assert by_mean.details[1].endswith("NGVI in 1 of 2 orders")

    stuck = {"NGVI": lambda t: 0.2, "SVA": lambda t: t**-0.5}
    claims = judge([made(rule, "toy", curve) for rule, curve in stuck.items()])
    assert [claim.holds for claim in claims] == [False, False, False]
    assert "toy, NGVI" in claims[0].details[0]

    late = {"NGVI": lambda t: 9e4 / t, "SVA": lambda t: t**-0.5}
    claims = judge([made(rule, "toy", curve) for rule, curve in late.items()])
    assert not claims[0].holds, "falling, but still worse than never to learn"

    network = [made(rule, "california", curve) for rule, curve in stuck.items()]
    assert [claim.holds for claim in judge(network)] == [False, False, False]
    assert judge(network)[-1].details[0] == "not with NGVI"
    at_constant = [made("NGVI", "california", lambda t: 0.7 + 1.0 / t), made("SVA", "california", lambda t: t**-0.5)]
    assert judge(at_constant)[-1].details[:2] == ("not with NGVI", "no better than the best constant prediction, 1.0000: NGVI")
