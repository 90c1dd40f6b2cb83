"""Runs whose classes are told apart by one posterior: classes that join, labels that come late, going on, shards, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onlinevi as ovi
from onlinevi.adapters.cli import main
from onlinevi.data import Task
from onlinevi.runs import Settings
from onlinevi.runs.checkpoint import load_job

pytest.importorskip("pyarrow", reason='pyarrow is missing: pip install "onlinevi[files]"')

ASKED = ["--target", "kind", "--rule", "implicit", "--classes-by", "softmax"]


def rows(path: Path, low: int = 0, high: int = 160) -> Path:
    """The fourth class comes from row 100 on."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((160, 2))
    y = (X @ rng.standard_normal((2, 4)) + rng.gumbel(size=(160, 4))).argmax(axis=1)
    y[:100] %= 3
    lines = [f"{x[0]:.6f},{x[1]:.6f},{'abcd'[code]}\n" for x, code in zip(X[low:high], y[low:high], strict=True)]
    path.write_text("p,q,kind\n" + "".join(lines))
    return path


def test_a_run_has_one_certificate_and_goes_on_to_the_same_bits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = tmp_path / "rows.csv"
    rows(whole)
    assert main(["run", str(whole), *ASKED, "--look", "50", "--out", str(tmp_path / "out")]) == 0
    capsys.readouterr()
    job = load_job(tmp_path / "out" / "model.ovi")
    assert job.class_names == ("a", "b", "c", "d")
    assert len(job.state.by_class()) == 4
    assert main(["info", str(tmp_path / "out" / "model.ovi"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    live = ovi.certificate(job.state)
    norm = float(np.linalg.norm(job.state.mean))
    assert facts["certificate"]["regret"] == pytest.approx(live.within(norm) / 160)
    assert {weight["class"] for weight in facts["weights"]} == set("abcd")

    model = ovi.fit(rows(tmp_path / "first.csv", 0, 70), "kind", rule="implicit", classes_by="softmax", look=50)
    model.learn(rows(tmp_path / "second.csv", 70, 160))
    assert np.array_equal(model.job.state.mean, job.state.mean)
    assert model.metrics["events"] == 160


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({}, ovi.Auto),
        ({"effort": "light"}, ovi.Auto),
        ({"classes_by": "one-vs-rest"}, ovi.OneVsRest),
        ({"lags": 2}, ovi.OneVsRest),
        ({"loss": "hinge"}, ovi.OneVsRest),
        ({"rule": "implicit"}, ovi.OneVsRest),
        ({"rule": "implicit", "classes_by": "softmax"}, ovi.Prepare),
    ],
    ids=str,
)
def test_one_posterior_is_the_default_where_auto_learns_probabilities(options: dict[str, Any], kind: type) -> None:
    learner: Any = Settings("kind", **options).learner(Task("classes", ("a", "b", "c")))
    assert type(getattr(learner, "inner", learner) if isinstance(learner, ovi.Sets) else learner) is kind


def test_labels_may_come_late(tmp_path: Path) -> None:
    said = tmp_path / "said.csv"
    call = ["run", str(rows(tmp_path / "rows.csv")), *ASKED, "--delay", "3", "--look", "50", "--predictions", str(said)]
    assert main(call) == 0
    assert len(said.read_text().splitlines()) == 161


def test_shards_of_different_classes_are_merged(tmp_path: Path) -> None:
    like = tmp_path / "like"
    assert main(["run", str(rows(tmp_path / "rows.csv")), *ASKED, "--out", str(like)]) == 0
    for name, low, high in (("one", 0, 90), ("two", 90, 160)):
        path = rows(tmp_path / f"{name}.csv", low, high)
        call = ["run", str(path), *ASKED, "--prepare-like", str(like / "model.ovi"), "--out", str(tmp_path / name)]
        assert main(call) == 0
    both = [str(tmp_path / name / "model.ovi") for name in ("one", "two")]
    assert main(["merge", *both, "--out", str(tmp_path / "merged.ovi")]) == 0
    merged = load_job(tmp_path / "merged.ovi")
    assert merged.state.count == 160
    assert ovi.certificate(merged.state).count == 160


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rule", "svb"], "use 'auto' or 'implicit'"),
        (["--loss", "hinge"], "use Logistic()"),
        (["--family", "low-rank"], "needs FullCovariance"),
        (["--ball", "2"], "scores of classes have no box"),
        (["--rule", "auto", "--lags", "2"], "labels of several classes are no columns"),
        (["--classes-by", "votes"], "needs one of softmax, one-vs-rest"),
    ],
)
def test_what_does_not_go_together_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    try:
        code = main(["run", str(rows(tmp_path / "rows.csv")), *ASKED, *options])
    except SystemExit as stopped:
        code = stopped.code
    assert code == 2
    told = capsys.readouterr().err
    assert message in told
    assert "Traceback" not in told
