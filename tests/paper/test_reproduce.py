"""The paper's experiments in small: same path, fewer rows, and what happens when things go wrong."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import onlinevi as ovi
from onlinevi import datasets
from onlinevi.paper import reproduce
from onlinevi.paper.claims import approach, judge
from onlinevi.paper.experiments import BestWeights, Outcome, OutcomeFolder, best_in_hindsight, thinned
from onlinevi.paper.panels import PANELS, SCALINGS, Stream, ordered, prepared, scaled

FIELDS = {"data", "rule", "seed", "scaling", "T", "d", "average_loss", "hindsight", "hindsight_gap", "seconds"}


@pytest.fixture(autouse=True)
def coarse_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onlinevi.paper.sheets.POINTS", 41)


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
    result = reproduce(tmp_path, data=["toy", "breast"], seeds=2)
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
    X = X / np.linalg.norm(X, axis=1)[:, None]
    order = np.random.default_rng(3).permutation(569)
    want = ovi.learn(X[order], np.where(benign == 1, 1.0, -1.0)[order], loss=ovi.Hinge(), rule=ovi.SVB())
    panel = PANELS["breast"]
    stream = ordered(panel, prepared(panel, 3, "row"), 3)
    got = ovi.learn(stream.X, stream.y, loss=panel.loss, rule=ovi.SVB())
    np.testing.assert_array_equal(got.average_loss, want.average_loss)


@pytest.mark.compiled
def test_results_do_not_depend_on_the_number_of_threads(tmp_path: Path) -> None:
    for jobs in (1, 3):
        reproduce(tmp_path / str(jobs), data=["breast"], rules=["SVB", "NGVI"], seeds=2, jobs=jobs)
    assert numbers(tmp_path / "1") == numbers(tmp_path / "3")


@pytest.mark.compiled
def test_an_interrupted_call_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from onlinevi.paper import reproduction as module

    done, play = [], module.run_experiment
    asked = {"data": ["breast"], "rules": ["SVB", "NGVI"], "seeds": 2, "jobs": 1}

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
def test_what_cannot_be_had_is_said_and_the_rest_goes_on(tmp_path: Path, no_data: None) -> None:
    result = reproduce(tmp_path, seeds=1, rules=["NGVI", "SVB"])
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
    with pytest.raises(ValueError, match="scaling"):
        reproduce(tmp_path, scaling="huge")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="seeds=0"):
        reproduce(tmp_path, seeds=0)


def test_a_missing_extra_is_named_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onlinevi.paper.reproduction.find_spec", lambda module: None)
    with pytest.raises(ImportError, match=r"need matplotlib and jax: pip install 'onlinevi\[paper\]'"):
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


def test_the_network_s_data_carry_a_constant_after_scaling(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = np.random.default_rng(0).random((30, 8)) * 100, np.arange(30.0) * 7 + 3
    fake = datasets.Dataset("california", X, y, (), "", "")
    monkeypatch.setattr("onlinevi.data.catalogue.load", lambda name, seed: fake)
    stream = prepared(PANELS["california"], 0, "row")
    assert stream.X.shape == (30, 9)
    np.testing.assert_array_equal(stream.X[:, 8], 1.0)
    np.testing.assert_allclose(np.linalg.norm(stream.X[:, :8], axis=1), 1.0)
    assert (stream.y.min(), stream.y.max()) == (0.0, 1.0)


def test_the_network_runs_and_its_line_is_said_to_be_uncertified(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jax")
    from onlinevi.paper import network
    from onlinevi.rules.oga import OGA
    from onlinevi.rules.svb import SVB

    monkeypatch.setattr(network, "WIDTH", 4)
    monkeypatch.setattr(network, "ITERATIONS", 30)
    monkeypatch.setattr(network, "TRAININGS", 2)
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random((200, 2)), np.ones(200)])
    stream = Stream(X, np.abs(X[:, 0] - 0.5))
    line = best_in_hindsight(PANELS["california"], stream, lambda share: None)
    assert line.gap is None
    assert line.averages(PANELS["california"], stream)[-1] == pytest.approx(line.value, rel=1e-9)
    shares: list[float] = []
    for rule in (OGA(), SVB()):
        averages = network.online(rule, stream, 0, shares.append)
        assert averages.shape == (200,)
        assert np.isfinite(averages).all()
    assert shares[-1] == 1.0


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
    return Outcome(data, rule, seed, "row", 10_000, 2, curve[-1], 0.3, 1e-6, 1.0, 0.0, steps, curve, values)


def test_the_verdicts_can_go_either_way() -> None:
    falling = {"NGVI": lambda t: 0.5 / t**0.5, "SVA": lambda t: t**-0.5}
    claims = judge([made(rule, "toy", curve) for rule, curve in falling.items()])
    assert [claim.holds for claim in claims] == [True, True, True]
    assert approach([made("SVA", "toy", falling["SVA"])]).rate == pytest.approx(-0.5, abs=1e-6)

    stuck = {"NGVI": lambda t: 0.2, "SVA": lambda t: t**-0.5}
    claims = judge([made(rule, "toy", curve) for rule, curve in stuck.items()])
    assert [claim.holds for claim in claims] == [False, False, False]
    assert "toy, NGVI" in claims[0].details[0]

    late = {"NGVI": lambda t: 9e4 / t, "SVA": lambda t: t**-0.5}
    claims = judge([made(rule, "toy", curve) for rule, curve in late.items()])
    assert not claims[0].holds, "falling, but still worse than never to learn"

    network = [made(rule, "california", curve) for rule, curve in stuck.items()]
    assert [claim.holds for claim in judge(network)] == [False, False, False]
    assert "not with NGVI" in judge(network)[-1].details[0]
