"""``onlinevi run`` for what is not two classes by the logistic loss, and the options that say what is learned how."""

from __future__ import annotations

import csv
import itertools
import json
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onlinevi as ovi
from onlinevi import datasets
from onlinevi.adapters.cli import main
from onlinevi.data.schema.task import Task
from onlinevi.engine import named
from onlinevi.learners.choice import rule_of
from onlinevi.runs.checkpoint import load_job
from onlinevi.runs.results import results_of
from onlinevi.runs.run import Places, Run, Stopper
from onlinevi.runs.settings import Settings

pytest.importorskip("pyarrow", reason='pyarrow is missing: pip install "onlinevi[files]"')

SAMPLES = Path(__file__).parents[1] / "samples"
RNG = np.random.default_rng(0)
X = RNG.standard_normal((1500, 2)) * [1.0, 50.0]
SCORE = X @ [0.5, -0.008]
LABELS = {
    "poisson": RNG.poisson(np.exp(0.5 + SCORE)).astype(float),
    "pinball": SCORE + RNG.exponential(size=len(X)),
    "hinge": np.where(SCORE + 0.3 * RNG.standard_normal(len(X)) > 0.0, 1.0, -1.0),
}
LOSSES = {"poisson": ovi.Poisson(), "pinball": ovi.Pinball(0.8), "hinge": ovi.Hinge()}
CALLS = {"poisson": [], "pinball": ["--task", "quantile", "--level", "0.8"], "hinge": ["--loss", "hinge"]}
"""Counts are seen by the labels."""


def played(folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> tuple[list[dict[str, str]], dict[str, Any], Any]:
    """What was predicted, the summary, and the library's own pass over the same rows."""
    path, said, y = folder / "rows.csv", folder / "said.csv", LABELS[name]
    path.write_text("a,b,y\n" + "\n".join(f"{a!r},{b!r},{c:.17g}" for (a, b), c in zip(X.tolist(), y, strict=True)))
    call = ["run", str(path), "--target", "y", "--rule", "implicit", "--missing", "zero", *CALLS[name]]
    assert main([*call, "--predictions", str(said), "--json", "--out", str(folder)]) == 0
    summary = json.loads(capsys.readouterr().out)
    inputs = ovi.Inputs()
    linear = ovi.Linear(LOSSES[name], ovi.Implicit(), ovi.MeanField(box=None))
    trace = linear.update_many(linear.init(3), inputs.update_many(inputs.init(2), X)[1], y)[1]
    with said.open() as file:
        found = list(csv.DictReader(file))
    np.testing.assert_array_equal([float(row["loss"]) for row in found], trace.loss)
    assert summary["average_loss"] == pytest.approx(trace.average_loss[-1], rel=1e-12)
    assert main(["predict", str(folder / "model.ovi"), str(path)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(X) + 1
    assert main(["info", str(folder / "model.ovi")]) == 0
    assert "Certain, whatever the data" in capsys.readouterr().out
    return found, summary, trace


def test_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found, summary, trace = played(tmp_path, "poisson", capsys)
    assert summary["task"] == "counts"
    rates = np.exp(trace.prediction + 0.5 * np.square(trace.spread))
    np.testing.assert_allclose([float(row["prediction"]) for row in found], rates, rtol=1e-12)
    low, high, labels = (np.array([float(row[name]) for row in found]) for name in ("lower", "upper", "label"))
    assert (low >= 0.0).all()
    assert summary["coverage"] == np.mean((low <= labels) & (labels <= high))
    assert summary["coverage"] == pytest.approx(0.9, abs=0.03)
    late = slice(500, None)
    assert np.corrcoef(rates[late], np.exp(0.5 + SCORE)[late])[0, 1] > 0.9, "the rates that made the labels"


def test_a_quantile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found, summary, trace = played(tmp_path, "pinball", capsys)
    assert summary["task"] == "quantile"
    assert list(found[0]) == ["row", "prediction", "label", "loss"]
    np.testing.assert_array_equal([float(row["prediction"]) for row in found], trace.prediction)
    below = LABELS["pinball"] <= trace.prediction
    assert summary["coverage"] == below.mean()
    assert below[500:].mean() == pytest.approx(0.8, abs=0.05)


def test_classes_by_the_hinge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found, summary, trace = played(tmp_path, "hinge", capsys)
    assert summary["task"] == "classes"
    right = np.where(trace.prediction >= 0.0, 1.0, -1.0) == LABELS["hinge"]
    assert summary["error_rate"] == pytest.approx(1.0 - right.mean(), abs=1e-12)
    assert {row["label"] for row in found} == {"-1", "1"}
    assert right[500:].mean() > 0.85


def test_coverage_is_as_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a,b,y\n" + "\n".join(f"{a},{b},{c:g}" for (a, b), c in zip(X, LABELS["poisson"], strict=True)))
    call = ["run", str(path), "--target", "y", "--rule", "implicit", "--missing", "zero", "--json"]
    assert main([*call, "--coverage", "0.5", "--out", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out)["coverage"] == pytest.approx(0.5, abs=0.08)
    assert json.loads((tmp_path / "run.json").read_text())["calibration"]["target"] == 0.5


NO_STEP = {("oga", family) for family in ("mean-field", "full", "low-rank")}
NO_STEP |= {(rule, "point") for rule in ("sva", "svb", "ngvi", "oga-el")} | {
    (rule, "low-rank") for rule in ("sva", "svb", "oga-el", "lazy-oga-el")
}


def test_each_rule_has_the_families_it_has_steps_for() -> None:
    task = Task("classes", ("no", "yes"))
    for rule, family in itertools.product(named(ovi.Rule), named(ovi.Family)):
        if (rule, family) in NO_STEP:
            with pytest.raises(ValueError, match=f"with {rule} choose"):
                Settings("y", rule=rule, family=family)
            continue
        settings = Settings("y", rule=rule, family=family)
        own = settings.learner(task)
        linear = (own.inner if isinstance(own, ovi.Sets) else own).inner  # type: ignore[attr-defined]
        assert (type(linear.family), type(linear.rule)) == (named(ovi.Family)[family], type(rule_of(rule)))
        assert (linear.family.box is None) == (rule == "implicit")
        assert Settings(**json.loads(json.dumps(settings.to_json()))) == settings
    assert Settings("y", rule="ngvi", family="low-rank").learner(task).inner.inner.family.rank == 10  # type: ignore[attr-defined]


def test_settings_that_cannot_be_are_refused() -> None:
    for wrong, answer in (
        ({"family": "full"}, "auto chooses its families itself"),
        ({"family": "round", "rule": "svb"}, "full, low-rank, mean-field, point"),
        ({"coverage": 1.0}, "between 0 and 1"),
        ({"hash_bits": 0}, "needs 1 to 28"),
        ({"max_categories": -1}, "max_categories=-1"),
    ):
        with pytest.raises(ValueError, match=answer):
            Settings("y", **wrong)
    with pytest.raises(ValueError, match="low-rank or mean-field"):
        Settings("y", rule="svb", family="full").check_width(1 << 18)


def test_names_are_hashed_or_share_features_as_asked(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a,town,y\n" + "\n".join(f"{i % 7},t{i % 50},{'yes' if i % 7 > 3 else 'no'}" for i in range(100)))
    for more, width in (({"max_categories": 3}, 1 + 3), ({"hash_bits": 9}, 1 + (1 << 9))):
        settings = Settings("y", rule="implicit", **more)  # type: ignore[arg-type]
        with Run(settings, Places(str(path), tmp_path / "m.ovi")) as run:
            run.go(Stopper())
        job = load_job(tmp_path / "m.ovi")
        assert job.settings == settings
        buckets = {job.schema.name(place) for place in range(job.schema.width) if "town~" in job.schema.name(place)}
        assert job.schema.width - len(buckets) == width
        assert job.state.inputs.dim == job.schema.width
        assert job.schema.sparse == ("hash_bits" in more)
        kinds = {column.name: column.kind for column in results_of(job).data or []}
        assert set(kinds.values()) <= {"number", "category"}
        assert kinds.get("a", "number") == "number"
    numbers = tmp_path / "numbers.csv"
    numbers.write_text("a,y\n1,no\n2,yes\n")
    with Run(Settings("y", hash_bits=20, rule="implicit"), Places(str(numbers))) as run:
        assert run.job.schema.sparse, "2^20 columns a row would fill the memory"


def test_a_column_of_texts_leaves_numbers_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """experiments/text_column.py does it with the default learner, and with more data."""
    if not datasets.status("pima").available:
        pytest.skip("pima is not on this machine")
    data = datasets.load("pima")
    texts = {
        "": [""] * len(data.y),
        "unique": [f",note-{i} word{i}" for i in range(len(data.y))],
        "recurring": [f",name-{k}" for k in np.random.default_rng(1).integers(300, size=len(data.y))],
    }
    summaries, inputs = {}, {}
    for name, column in texts.items():
        header = ",".join(f"x{j}" for j in range(8)) + (",note" if name else "") + ",y\n"
        lines = [f"{','.join(map(repr, x))}{own},{y}\n" for x, own, y in zip(data.X.tolist(), column, data.y, strict=True)]
        path = tmp_path / "rows.csv"
        path.write_text(header + "".join(lines))
        out = tmp_path / f"out{name}"
        call = ["run", str(path), "--target", "y", "--rule", "implicit", "--json", "--hindsight"]
        assert main([*call, "--out", str(out)]) == 0
        told = capsys.readouterr()
        summaries[name], inputs[name] = json.loads(told.out), load_job(out / "model.ovi").state.inputs
        assert ("note has a name of its own in nearly every row, as an id has, and is left out" in told.err) == (
            name == "unique"
        )
        assert summaries[name]["regret"] is not None, "read again, the rows are those learned from"
    assert summaries["unique"]["average_loss"] == summaries[""]["average_loss"]
    assert inputs["unique"] == inputs[""]
    assert inputs["recurring"].centred.tolist() == list(range(8)), "though rows are sparse"
    np.testing.assert_array_equal(inputs["recurring"].mean[:8], inputs[""].mean)
    np.testing.assert_array_equal(inputs["recurring"].std[:8], inputs[""].std)
    assert summaries["recurring"]["error_rate"] < summaries[""]["error_rate"] + 0.03, "of 132 features that are noise"


def test_a_run_of_an_earlier_version_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Written before settings had families, and names numbers of their own."""
    rows, model = tmp_path / "rows.csv", tmp_path / "model.ovi"
    lines = [f"{i % 7},t{i * 3 % 5},{'yes' if i % 7 > 3 else 'no'}\n" for i in range(60)]
    call = ["run", str(rows), "--target", "sold", "--rule", "implicit", "--json"]
    model.write_bytes((SAMPLES / "run_v1.ovi").read_bytes())
    assert load_job(model).settings == Settings("sold", rule="implicit")
    rows.write_text("a,town,sold\n" + "".join(lines))
    assert main([*call, "--checkpoint", str(model), "--resume"]) == 0
    resumed = json.loads(capsys.readouterr().out)
    assert main(call) == 0
    whole = json.loads(capsys.readouterr().out)
    assert (resumed["events"], resumed["error_rate"]) == (60, whole["error_rate"])
    assert resumed["average_loss"] == pytest.approx(whole["average_loss"], rel=1e-9)


def test_an_odd_cell_is_a_bad_row_of_a_column_of_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng, losses = np.random.default_rng(0), []
    X = rng.standard_normal((200, 2))
    rows = [f"{a!r},{b!r},{3 * a - b!r}" for a, b in X.tolist()]
    odd = [*rows[:100], "1.2.3," + rows[100].partition(",")[2], *rows[101:]]
    for lines in (rows[:100] + rows[101:], odd):
        (tmp_path / "r.csv").write_text("a,b,y\n" + "\n".join(lines) + "\n")
        call = ["run", str(tmp_path / "r.csv"), "--target", "y", "--rule", "implicit", "--json"]
        assert main([*call, "--bad-rows", "skip"]) == 0
        told = capsys.readouterr()
        losses.append(json.loads(told.out)["average_loss"])
    assert losses[0] == losses[1]
    assert "a is taken for a number, although 1 of 200 cells is none, as '1.2.3'" in told.err
    assert json.loads(told.out)["bad_rows"] == 1
    assert main(call) == 2, "where bad rows stop a run"
    assert "row 100, column 'a': needs a finite number; it reads '1.2.3'" in capsys.readouterr().err


def test_odd_cells_may_be_taken_as_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng, summaries = np.random.default_rng(0), []
    X = rng.standard_normal((1100, 2))
    rows = [f"{a!r},{b!r},2024-01-{1 + t % 28:02},{3 * a - b!r}".split(",") for t, (a, b) in enumerate(X.tolist())]
    call = ["run", str(tmp_path / "r.csv"), "--target", "y", "--rule", "implicit"]
    for odd in (("", "", ""), ("1.2.3", "12O", "no date")):
        rows[100][0], rows[1020][1], rows[1050][2] = odd  # two behind the first look
        rows[1080][3] = "?!"
        (tmp_path / "r.csv").write_text("a,b,day,y\n" + "".join(",".join(row) + "\n" for row in rows))
        out = tmp_path / f"out{len(summaries)}"
        assert main([*call, "--json", "--bad-rows", "missing", "--out", str(out)]) == 0
        told = capsys.readouterr()
        summaries.append(json.loads(told.out))
    assert [one["cells_as_missing"] for one in summaries] == [0, 3]
    for one in summaries:
        assert (one["events"], one["bad_rows"]) == (1099, 1), "a row without a label is left out"
        assert one["regret"] == summaries[0]["regret"] is not None, "read again, the cells are missing too"
        assert one["average_loss"] == summaries[0]["average_loss"]
    assert "although 1 of 1,000 cells is none, as '1.2.3': such cells are taken as missing" in told.err
    assert "3 cells are not of their column&#x27;s kind, and taken as missing." in (out / "report.html").read_text()
    # Where a bad cell has stopped a run, it goes on so.
    again = tmp_path / "again"
    assert main([*call, "--json", "--out", str(again)]) == 2
    assert "row 100, column 'a'" in capsys.readouterr().err
    assert main([*call, "--out", str(again), "--bad-rows", "missing", "--resume"]) == 0
    assert "3 cells are not of their column's kind, and taken as missing." in capsys.readouterr().out
    states = [load_job(folder / "model.ovi").state.inner for folder in (out, again)]
    np.testing.assert_array_equal(states[0].mean, states[1].mean)
    assert main(["predict", str(out / "model.ovi"), str(tmp_path / "r.csv"), "--bad-rows", "missing"]) == 0
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 1101
    assert "3 cells are not" in said.err
    assert main(["compare", *call[1:4], "--rules", "implicit", "--bad-rows", "missing"]) == 0
    assert "3 cells are not of their column's kind, and taken as missing." in capsys.readouterr().out


def test_columns_are_told_and_may_be_told_otherwise(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal(200)
    lines = [f"{x:.3f};u{t};{'ja' if x > 0 else 'nein'}".replace(".", ",") for t, x in enumerate(X.tolist())]
    (tmp_path / "r.csv").write_bytes(("größe;id;y\n" + "\n".join(lines) + "\n").encode("latin-1"))
    call = [str(tmp_path / "r.csv"), "--target", "y", "--encoding", "latin-1"]
    assert main(["look", *call]) == 0
    looked = capsys.readouterr().out
    assert main(["run", *call, "--rule", "implicit", "--out", str(tmp_path / "o"), "--json"]) == 0
    ran = capsys.readouterr()
    assert json.loads(ran.out)["hindsight"] is None or json.loads(ran.out)["events"] == 200
    for line in ("größe  decimal-comma        0", "id     id                   0      200", "! id has a name of its own"):
        assert line in looked
        assert line in ran.err
    assert main(["run", *call, "--rule", "implicit", "--kinds", "größe=number,id=drop", "--json"]) == 0
    dropped = capsys.readouterr()
    assert json.loads(dropped.out)["error_rate"] < 0.15
    assert json.loads(dropped.out)["hindsight"] is not None, "read once more in the same way"
    assert main(["predict", str(tmp_path / "o" / "model.ovi"), str(tmp_path / "r.csv")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 201
    assert main(["look", *call[:1], "--encoding", "latin-1", "--json"]) == 0
    assert [column["name"] for column in json.loads(capsys.readouterr().out)["columns"]] == ["größe", "id", "y"]
    with pytest.raises(SystemExit):
        main(["run", *call, "--kinds", "id=colour"])
    assert "needs column=kind" in capsys.readouterr().err


def test_a_file_without_a_header_can_be_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.csv").write_text("".join(f"{t % 7},{t % 3},{t % 2}\n" for t in range(60)))
    call = ["run", str(tmp_path / "r.csv"), "--rule", "implicit", "--json"]
    assert main([*call, "--target", "column_2"]) == 2
    assert "--no-header" in capsys.readouterr().err
    assert main([*call, "--target", "column_2", "--no-header"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert main([*call, "--target", "y", "--names", "a,b,y", "--delimiter", ","]) == 0
    assert json.loads(capsys.readouterr().out)["average_loss"] == first["average_loss"]


def test_numbers_and_dates_as_people_write_them_are_as_good_as_plain_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Real rows in the plain form, and as a spreadsheet in Europe and a bank in America write them."""
    if not datasets.status("pima").available:
        pytest.skip("pima is not on this machine")
    data, rng = datasets.load("pima"), np.random.default_rng(0)
    start = datetime(2023, 1, 1)
    when = [start + timedelta(minutes=int(minutes)) for minutes in rng.integers(0, 500_000, len(data.y))]
    plain, european, american = [], [], []
    for x, t, y in zip(data.X.tolist(), when, np.where(data.y > 0.0, "ja", "nein"), strict=True):
        amount, share, rest = 97.53 * x[1] + 0.25, x[5] / 100.0, x[2:5] + x[6:]
        plain.append(
            f"{x[0]!r},{amount:.2f},{100.0 * share:.2f},{','.join(map(repr, rest))},{t:%Y-%m-%d},{t:%Y-%m-%dT%H:%M},{y}"
        )
        spelled = [f"{x[0]:.1f}", f"{amount:,.2f}".replace(",", "_"), f"{100.0 * share:.2f}%", *map(repr, rest)]
        numbers = [value.replace(".", ",").replace("_", ".") for value in spelled]
        european.append(";".join([*numbers, f"{t:%d.%m.%Y}", f"{t:%d.%m.%Y %H:%M}", y]))
        numbers = [spelled[0], f'"${amount:,.2f}"', *spelled[2:]]
        american.append(",".join([*numbers, f"{t:%m/%d/%Y}", f"{t:%m/%d/%Y %I:%M %p}", y]))
    header = ["count", "amount", "share", *(f"x{k}" for k in range(len(rest))), "day", "time", "y"]
    summaries = []
    for delimiter, lines in ((",", plain), (";", european), (",", american)):
        (tmp_path / "r.csv").write_text(delimiter.join(header) + "\n" + "\n".join(lines) + "\n")
        assert main(["run", str(tmp_path / "r.csv"), "--target", "y", "--rule", "implicit", "--json"]) == 0
        summaries.append(json.loads(capsys.readouterr().out))
    assert summaries[0]["error_rate"] < 0.3
    for one in summaries[1:]:
        assert (one["events"], one["bad_rows"]) == (len(data.y), 0)
        assert (one["average_loss"], one["error_rate"]) == (summaries[0]["average_loss"], summaries[0]["error_rate"])


def test_cover_type_has_no_header_and_is_run_all_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not datasets.status("cover").available:
        pytest.skip("cover is not on this machine")
    call = ["run", str(datasets.path("cover")), "--rows", "0:200", "--rule", "implicit", "--task", "classes", "--json"]
    assert main([*call, "--target", "kind"]) == 2
    assert "--no-header" in capsys.readouterr().err
    names = ",".join([*(f"x{k}" for k in range(54)), "kind"])
    summaries = []
    for more in (["--no-header", "--target", "column_54"], ["--names", names, "--target", "kind"]):
        assert main([*call, *more]) == 0
        summaries.append(json.loads(capsys.readouterr().out))
    assert summaries[0]["events"] == 200
    assert summaries[0]["average_loss"] == summaries[1]["average_loss"]
    assert summaries[0]["error_rate"] < 0.6, "of seven classes, in the order of the file"


def test_where_all_is_told_no_row_is_waited_for(tmp_path: Path) -> None:
    from onlinevi.data import open_stream

    (tmp_path / "r.csv").write_text("a,b,y\n" + "1,x,0\n" * 30)
    told = Settings("y", classes=("0", "1"), kinds={"a": "number", "b": "drop"})
    with open_stream(tmp_path / "r.csv") as stream:
        assert sum(map(len, told.first_rows(stream))) == 1
        for less in (replace(told, kinds={"a": "number"}), replace(told, classes=()), replace(told, look=20)):
            assert sum(map(len, less.first_rows(stream))) == (1 if less.classes and len(less.kinds) == 2 else 30)
    assert Settings(**json.loads(json.dumps(told.to_json()))) == told
