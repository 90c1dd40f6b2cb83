"""Shards learned from apart, as one model: the sum of what each has learned, and never of what should not be added."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import onlinevi as ovi
from onlinevi.adapters.cli import main
from onlinevi.data import open_stream
from onlinevi.runs.checkpoint import load_job
from onlinevi.runs.job import Job

pytest.importorskip("pyarrow", reason='pyarrow is missing: pip install "onlinevi[files]"')

ROWS, CUT = 400, 150


def write_rows(path: Path, seed: int = 0, header: str = "a,b,town,sold") -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((ROWS, 2)) * [1.0, 100.0]
    sold = X[:, 0] - 0.01 * X[:, 1] + rng.standard_normal(ROWS) > 0.0
    towns = rng.choice(["Rome", "Oslo"], ROWS)
    lines = [f"{a!r},{b!r},{town},{own}" for (a, b), town, own in zip(X.tolist(), towns, sold.astype(int), strict=True)]
    path.write_text("\n".join([header, *lines]) + "\n")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a file, and the model of its first rows."""
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "rows.csv")
    run("a.ovi", "--rows", f":{CUT}")
    return tmp_path


def run(model: str, *options: str, source: str = "rows.csv", rule: str = "implicit") -> Job:
    assert main(["run", source, "--target", "sold", "--rule", rule, "--checkpoint", model, *options]) == 0
    return load_job(model)


def merge(*models: str, out: str = "merged.ovi") -> Job:
    assert main(["merge", *models, "-o", out]) == 0
    return load_job(out)


def refused(capsys: pytest.CaptureFixture[str], *models: str) -> str:
    capsys.readouterr()
    assert main(["merge", *models, "-o", "none.ovi"]) == 2
    assert not Path("none.ovi").exists()
    return capsys.readouterr().err


def test_fixed_moments_and_full_covariances_merge_to_exact_bayes_on_all_rows() -> None:
    rng = np.random.default_rng(1)
    X, weights = rng.standard_normal((300, 3)) * [1.0, 50.0, 0.1] + [0.0, 7.0, 1.0], np.array([1.0, 0.02, -5.0])
    y = X @ weights + rng.standard_normal(300)
    moments, _ = ovi.Inputs().update_many(ovi.Inputs().init(3), X[:40])
    inputs, family = ovi.Inputs(fixed=True), ovi.FullCovariance(box=None)
    linear = ovi.Linear(ovi.Squared(), ovi.NGVI(step=1.0), family)

    def learned(start: int, stop: int) -> ovi.State:
        same, Z = inputs.update_many(moments, X[start:stop])
        assert same is moments
        return linear.update_many(linear.init(4), Z, y[start:stop])[0]

    merged = family.merge([learned(0, 100).belief, learned(100, 130).belief, learned(130, 300).belief])
    whole = learned(0, 300).belief
    np.testing.assert_allclose(merged.mean, whole.mean, rtol=1e-9)
    np.testing.assert_allclose(merged.covariance, whole.covariance, rtol=1e-8, atol=1e-14)
    # Bayes with noise of variance ½, which is what the squared loss means.
    Z = inputs.update_many(moments, X)[1]
    np.testing.assert_allclose(merged.mean, np.linalg.solve(2.0 * Z.T @ Z + np.eye(4), 2.0 * Z.T @ y), rtol=1e-8)


def test_fixed_inputs_need_moments() -> None:
    inputs = ovi.Inputs(fixed=True)
    with pytest.raises(ValueError, match="needs moments"):
        inputs.update_many(inputs.init(1), [[1.0]])


def test_a_merge_is_the_prior_and_what_each_shard_has_added(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shards = [load_job("a.ovi")]
    for name, rows in (("b.ovi", "150:250"), ("c.ovi", "250:")):
        shards.append(run(name, "--rows", rows, "--prepare-like", "a.ovi"))
        assert shards[-1].state.inputs == shards[0].state.inputs
    merged = merge("a.ovi", "b.ovi", "c.ovi")
    precisions = [np.square(job.state.std) ** -1.0 for job in shards]
    precision = 1.0 + sum(own - 1.0 for own in precisions)
    first = sum(own * job.state.mean for own, job in zip(precisions, shards, strict=True))
    np.testing.assert_allclose(merged.state.std, precision**-0.5, rtol=1e-12)
    np.testing.assert_allclose(merged.state.mean, first / precision, rtol=1e-12)
    assert merged.state.count == merged.metrics.count == ROWS
    losses = [job.metrics.average_loss * job.metrics.count for job in shards]
    assert merged.metrics.average_loss == pytest.approx(sum(losses) / ROWS)
    assert merged.metrics.bins[2].sum() == ROWS

    merge("c.ovi", "b.ovi", out="late.ovi")
    nested = merge("late.ovi", "a.ovi", out="nested.ovi")
    np.testing.assert_allclose(nested.state.mean, merged.state.mean, rtol=1e-10)

    capsys.readouterr()
    assert main(["predict", "merged.ovi", "rows.csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == ROWS + 1
    assert main(["info", "merged.ovi"]) == 0
    told = capsys.readouterr().out
    assert "rows 150 to 249 of rows.csv" in told
    assert "It speaks of the decisions that 3 shards made" in told
    assert main(["run", "rows.csv", "--target", "sold", "--rule", "implicit", "--checkpoint", "merged.ovi", "--resume"]) == 2
    assert "go on with new rows by --from merged.ovi" in capsys.readouterr().err


def test_several_classes_merge_class_by_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 2))
    lines = [f"{a!r},{b!r},{'xyz'[int(a > 0.0) + int(b > 0.0)]}" for a, b in X.tolist()]
    (tmp_path / "rows.csv").write_text("\n".join(["a,b,sold", *lines]) + "\n")
    shards = [run("a.ovi", "--rows", ":40"), run("b.ovi", "--rows", "40:", "--prepare-like", "a.ovi")]
    merged = merge("a.ovi", "b.ovi").state
    assert len(merged.by_class()) == 3
    for own, *theirs in zip(merged.by_class(), *(job.state.by_class() for job in shards), strict=True):
        np.testing.assert_allclose(own.std**-2.0, sum(state.std**-2.0 for state in theirs) - 1.0, rtol=1e-12)
    np.testing.assert_allclose(merged.inner.coupled, sum(job.state.inner.coupled for job in shards))
    assert merged.covered.count == 90
    assert merged.coverage == pytest.approx(sum(job.state.coverage * job.state.covered.count for job in shards) / 90)


def test_merged_shards_predict_about_as_well_as_one_run(shop: Path) -> None:
    run("b.ovi", "--rows", f"{CUT}:", "--prepare-like", "a.ovi")
    merge("a.ovi", "b.ovi")
    run("all.ovi")
    write_rows(shop / "new.csv", seed=5)
    wrong = {}
    for model in ("a.ovi", "merged.ovi", "all.ovi"):
        assert main(["predict", model, "new.csv", "-o", "said.ndjson"]) == 0
        said = [json.loads(line)["probability"] for line in Path("said.ndjson").read_text().splitlines()]
        y = np.array([line.split(",")[-1] for line in Path("new.csv").read_text().splitlines()[1:]], dtype=float)
        wrong[model] = float(np.mean(np.logaddexp(0.0, (1.0 - 2.0 * y) * np.log(said / (1.0 - np.array(said))))))
    assert wrong["merged.ovi"] <= wrong["a.ovi"] + 0.002
    assert wrong["merged.ovi"] <= wrong["all.ovi"] + 0.01


def test_rows_in_common_are_refused(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    like = ("--prepare-like", "a.ovi")
    run("one_more.ovi", "--rows", f"{CUT - 1}:", *like)
    assert f"rows {CUT - 1} to {ROWS - 1} of rows.csv" in refused(capsys, "a.ovi", "one_more.ovi")
    # A copy is the same source; so is one that has grown since.
    text = (shop / "rows.csv").read_text()
    (shop / "copy.csv").write_text(text)
    run("copy.ovi", "--rows", ":10", *like, source="copy.csv")
    assert "rows in common" in refused(capsys, "a.ovi", "copy.ovi")
    (shop / "grown.csv").write_text(text + text.split("\n", 1)[1])
    run("grown.ovi", "--rows", "100:", *like, source="grown.csv")
    assert "rows in common" in refused(capsys, "a.ovi", "grown.ovi")
    run("rest.ovi", "--rows", f"{CUT}:", *like, source="grown.csv")
    merge("a.ovi", "rest.ovi")
    assert "rows in common" in refused(capsys, "merged.ovi", "rest.ovi")
    # Another file with the same numbers of rows is not.
    write_rows(shop / "other.csv", seed=9)
    run("other.ovi", *like, source="other.csv")
    merge("a.ovi", "other.ovi")


def test_what_does_not_add_up_is_refused(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, like = ("--rows", f"{CUT}:"), ("--prepare-like", "a.ovi")
    run("own.ovi", *rows)
    assert "by the same means and stds: run one shard first" in refused(capsys, "a.ovi", "own.ovi")
    run("svb.ovi", *rows, *like, rule="svb")
    assert "the same learner and prior" in refused(capsys, "a.ovi", "svb.ovi")
    run("auto.ovi", "--rows", f"{CUT}:{CUT + 20}", *like, rule="auto")
    assert "have not the same learner and prior, implicit and auto" in refused(capsys, "a.ovi", "auto.ovi")
    run("less.ovi", *rows, "--drop", "b")
    assert "not the same columns, they differ in how" in refused(capsys, "a.ovi", "less.ovi")
    assert "at least two" in refused(capsys, "a.ovi")
    assert "at least two" in refused(capsys, "a.ovi", "a.ovi")


def test_a_model_to_prepare_like_must_fit(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["run", "rows.csv", "--target", "sold", "--rule", "implicit", "--prepare-like", "a.ovi"]
    assert main([*call, "--drop", "town"]) == 2
    assert "made with drop=(), not ('town',)" in capsys.readouterr().err
    write_rows(shop / "renamed.csv", header="a,c,town,sold")
    assert main([*call[:1], "renamed.csv", *call[2:]]) == 2
    assert "lacks columns of a.ovi: b" in capsys.readouterr().err


def test_defaults_merge_learner_by_learner(shop: Path) -> None:
    one = run("one.ovi", "--rows", ":40", rule="auto")
    two = run("two.ovi", "--rows", "40:70", "--prepare-like", "one.ovi", rule="auto")
    merged = merge("one.ovi", "two.ovi")
    assert merged.state.count == 70
    pool, parts = merged.state.inner.pooled, [job.state.inner.pooled for job in (one, two)]
    np.testing.assert_allclose(pool.losses, sum(part.losses for part in parts))
    assert pool.weights.sum() == pytest.approx(1.0)
    assert main(["predict", "merged.ovi", "rows.csv"]) == 0


def test_a_merge_goes_on_with_new_rows(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("b.ovi", "--rows", "150:250", "--prepare-like", "a.ovi")
    before = merge("a.ovi", "b.ovi")
    capsys.readouterr()
    assert main(["run", "rows.csv", "--rows", "250:", "--from", "merged.ovi", "--checkpoint", "later.ovi"]) == 0
    later = load_job("later.ovi")
    assert later.state.count == later.metrics.count == ROWS
    assert [str(origin) for origin in later.origins][-1] == "rows 250 to 399 of rows.csv"
    assert later.state.loss > before.state.loss
    assert later.state.inputs == before.state.inputs
    assert main(["info", "later.ovi"]) == 0
    assert "Certain, whatever the data" in capsys.readouterr().out


def test_names_that_the_model_never_met_say_nothing(shop: Path) -> None:
    write_rows(shop / "new.csv", seed=3)
    text = (shop / "new.csv").read_text()
    (shop / "far.csv").write_text(text.replace("Oslo", "Lima"))
    job = run("far.ovi", "--prepare-like", "a.ovi", source="far.csv")
    assert job.schema == load_job("a.ovi").schema
    merge("a.ovi", "far.ovi")


def test_a_range_of_rows_is_a_file_of_those_rows(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = (shop / "rows.csv").read_text().splitlines()
    lines[10] = "1.0,2.0"  # row 9, outside the range
    lines[205] = "1.0,2.0"
    (shop / "bad.csv").write_text("\n".join(lines) + "\n")
    (shop / "part.csv").write_text("\n".join([lines[0], *lines[101:301]]) + "\n")
    part = run("part.ovi", "--bad-rows", "skip", source="part.csv")
    ranged = run("range.ovi", "--bad-rows", "skip", "--rows", "100:300", source="bad.csv")
    np.testing.assert_array_equal(ranged.state.alone().array, part.state.alone().array)
    assert ranged.rejected.count == 1
    assert ranged.rejected.first[0]["row"] == 204
    # It stops at the end of the range, and goes on there too.
    begun = run("range.ovi", "--bad-rows", "skip", "--rows", "100:300", "--resume", source="bad.csv")
    np.testing.assert_array_equal(begun.state.alone().array, part.state.alone().array)
    capsys.readouterr()
    for rows, message in (("300:100", "an end behind it"), ("900:", "empty")):
        assert main(["run", "rows.csv", "--target", "sold", "--rows", rows]) == 2
        assert message in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["run", "rows.csv", "--target", "sold", "--rows", "7"])


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_stream_ends_where_it_is_told_to(tmp_path: Path, size: int) -> None:
    write_rows(tmp_path / "rows.csv")
    with open_stream(tmp_path / "rows.csv", batch_rows=size, skip_rows=3, end_row=11) as stream:
        assert [row for batch in stream for row in batch.rows.tolist()] == list(range(3, 11))
        assert stream.position.rows == 11


def test_residuals_of_shards_keep_the_identity_of_coverage() -> None:
    rng = np.random.default_rng(0)
    calibration = ovi.Calibration(0.8)
    states = [calibration.run(scale * rng.standard_normal(n), np.zeros(n))[0] for n, scale in ((200, 1.0), (500, 2.0))]
    merged = calibration.merge(states)
    assert merged.count == 700
    missed = [(1.0 - state.coverage) * (state.count - 1) for state in states]
    assert 1.0 - merged.coverage == pytest.approx(sum(missed) / 699)
    assert min(state.ratio for state in states) <= merged.ratio <= max(state.ratio for state in states)
    assert min(state.noise for state in states) <= merged.noise <= max(state.noise for state in states)
