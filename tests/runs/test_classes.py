"""Sets, decisions and what is told of each class, in runs: against scikit-learn's metrics, in any split, in older files."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.run_files import write_rows
from sklearn import metrics as textbook

import onlinevi as ovi
from onlinevi.adapters.cli import main
from onlinevi.learners import Forecast
from onlinevi.runs import Decisions, Settings, as_costs, load_job, read_costs, results_of
from onlinevi.runs.metrics import Metrics
from onlinevi.runs.writers import joined_names

COUNT, WINDOW = 1300, 300
NAMES = ("a", "b", "c", "d")
COSTS = np.array([[0.0, 1.0, 2.0, 1.0], [4.0, -1.0, 1.0, 1.0], [1.0, 1.0, 0.0, 9.0], [2.5, 1.0, 1.0, 0.0]])


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def stream(classes: int, *, joins: bool = False) -> tuple[np.ndarray, Forecast, np.ndarray]:
    """Labels and what was said of them, sets too; the last class may join half way, and nothing was said of it before."""
    draw = rng(classes)
    codes = draw.integers(0, classes - joins, COUNT)
    if joins:
        codes[(draw.random(COUNT) < 0.2) & (np.arange(COUNT) >= COUNT // 2)] = classes - 1
    scores = 1.5 * (draw.standard_normal((COUNT, classes)) + 1.5 * (codes[:, None] == np.arange(classes)))  # honest ones
    if joins:
        scores[: int(np.argmax(codes == classes - 1)) + 1, -1] = -np.inf
    p = np.exp(scores)
    p /= p.sum(axis=1, keepdims=True)
    _, sets = ovi.SetCalibration(0.8).run(codes, p, scores > -np.inf)
    if classes == 2:
        odds = scores[:, 1] - scores[:, 0]
        return 2.0 * codes - 1.0, Forecast(odds, None, 2.0 * p[:, 1] - 1.0, None, p[:, 1], None, None, sets), np.ones(COUNT)
    return codes.astype(float), Forecast(scores, None, None, None, p, None, None, sets), np.ones(COUNT)


def measured(data: Any, cuts: Any = (), **settings: Any) -> Metrics:
    """The metrics of a stream, cut at these rows, written down and read again at each."""
    y, forecast, loss = data
    metrics = Metrics("classes", window=WINDOW, **settings)
    for start, stop in zip([0, *cuts], [*cuts, len(y)], strict=True):
        part = Forecast(*(None if value is None else value[start:stop] for value in forecast))
        metrics.add(y[start:stop], part, loss[start:stop])
        if stop < len(y):
            again = Metrics("classes", window=WINDOW, **settings)
            again.restore(json.loads(json.dumps(metrics.to_json(), allow_nan=False)))
            metrics = again
    return metrics


def codes_of(y: np.ndarray, forecast: Forecast) -> np.ndarray:
    return y.astype(int) if forecast.several else (y > 0.0).astype(int)


@pytest.mark.parametrize(("classes", "joins"), [(2, False), (4, False), (4, True)])
def test_what_is_told_of_each_class_is_what_scikit_learn_has(classes: int, joins: bool) -> None:
    y, forecast, _ = data = stream(classes, joins=joins)
    codes, guess, p = codes_of(y, forecast), forecast.guess, forecast.of_classes
    scores = measured(data).scores
    scores.settle()
    confusion = scores.confusion[0]
    from onlinevi.runs.metrics.by_class import precision_recall_f1

    theirs = textbook.precision_recall_fscore_support(codes, guess, labels=range(classes))
    np.testing.assert_allclose(precision_recall_f1(confusion), theirs[:3])
    assert confusion.sum(axis=1).tolist() == theirs[3].tolist()
    held = forecast.set[np.arange(COUNT), codes]
    np.testing.assert_allclose(
        scores.by_class.coverage(),
        textbook.recall_score(codes, np.where(held, codes, -1), average=None, labels=range(classes)),
    )
    sizes = forecast.set.sum(axis=1)
    np.testing.assert_allclose(scores.by_class.set_size(), [sizes[codes == k].mean() for k in range(classes)])
    for k, error in enumerate(scores.by_class.calibration_errors()):
        bins = np.minimum((p[:, k] * 10).astype(int), 9)
        gaps = [abs(p[bins == j, k].sum() - (codes[bins == j] == k).sum()) for j in range(10)]
        assert error == pytest.approx(sum(gaps) / COUNT)
    for found, rows in ((scores.so_far(), slice(None)), (scores.lately(), slice(COUNT - WINDOW, None))):
        assert found.learner["coverage"] == pytest.approx(held[rows].mean())
        assert found.learner["set_size"] == pytest.approx(sizes[rows].mean())
    steps, sets, kept, of = scores.sets_over_time()
    assert kept.tolist() == np.cumsum(held)[steps.astype(int) - 1].tolist()
    assert of.tolist() == np.cumsum(sizes)[steps.astype(int) - 1].tolist()
    assert sets.tolist() == steps.tolist()


@pytest.mark.parametrize("abstain", [False, True])
@pytest.mark.parametrize("classes", [2, 4])
def test_decisions_are_of_the_least_expected_cost_and_paid_as_they_were_made(classes: int, abstain: bool) -> None:
    y, forecast, _ = data = stream(classes)
    codes, p = codes_of(y, forecast), forecast.of_classes
    costs = COSTS[:classes, :classes]
    decisions = Decisions(costs, abstain)
    expected = np.array([[sum(row[was] * costs[was, said] for was in range(classes)) for said in range(classes)] for row in p])
    decided = (forecast.set.sum(axis=1) == 1) if abstain else np.ones(COUNT, dtype=bool)
    made = np.where(decided, expected.argmin(axis=1), -1)
    assert decisions.made(forecast).tolist() == made.tolist()
    for rows in (slice(None), slice(COUNT - WINDOW, None)):
        scores = measured(data, decisions=decisions).scores
        found = scores.so_far() if rows.start is None else scores.lately()
        there = decided[rows]
        truth, said, guess = (part[rows][there] for part in (codes, made, forecast.guess))
        for name, own in (("cost", said), ("cost_of_guess", guess)):
            table = textbook.confusion_matrix(truth, own, labels=range(classes))
            assert found.learner[name] == pytest.approx((table * costs).sum() / there.sum(), rel=1e-6)
        if abstain:
            assert found.learner["decided"] == pytest.approx(there.mean())
            assert found.learner["decided_right"] == pytest.approx(textbook.accuracy_score(truth, said))
    assert found.learner["cost"] < found.learner["cost_of_guess"]
    only = measured(data, decisions=Decisions(None, True)).scores.so_far().learner
    assert "cost" not in only
    assert {"decided", "decided_right"} <= only.keys()


def test_of_decisions_that_cost_the_same_the_likelier_is_made() -> None:
    forecast = stream(4)[1]
    assert Decisions(1.0 - np.eye(4)).made(forecast).tolist() == forecast.guess.tolist()
    assert Decisions(np.zeros((4, 4))).made(forecast).tolist() == forecast.guess.tolist()


@pytest.mark.parametrize(("classes", "joins"), [(2, False), (4, True)])
def test_any_split_gives_the_same_bits(classes: int, joins: bool) -> None:
    data = stream(classes, joins=joins)
    settings = {} if joins else {"decisions": Decisions(COSTS[:classes, :classes], True)}
    whole = measured(data, **settings)
    for cuts in ([1, 2, 3, 700], range(1, COUNT, 400)):
        split = measured(data, cuts, **settings)
        assert split.to_json() == whole.to_json()
        assert (split.scores.so_far(), split.scores.lately()) == (whole.scores.so_far(), whole.scores.lately())


def test_files_of_before_go_on_and_their_sets_begin_there() -> None:
    data = y, forecast, loss = stream(4)
    whole, old = measured(data), measured(_first(data, 600))
    saved = json.loads(json.dumps(old.to_json()))
    scores = saved["scores"]
    from onlinevi.runs.metrics.thinned import array_of, text_of

    for part in ("totals",):
        scores[part] = text_of(array_of(scores[part], 17)[:, :10])
    for part in ("kept", "last"):
        scores["curve"][part] = text_of(array_of(scores["curve"][part], 17)[:, :10])
    scores["recent"] = text_of(array_of(scores["recent"], scores.pop("said"), "<f4")[:, :11], "<f4")
    del scores["own"]["by_class"]
    decided = Metrics("classes", window=WINDOW, decisions=Decisions(COSTS))
    decided.restore(saved)
    decided.add(y[600:700], _part(forecast, slice(600, 700)), loss[600:700])
    costs = COSTS[y[600:700].astype(int), Decisions(COSTS).made(_part(forecast, slice(600, 700)))]
    for scored in (decided.scores.so_far(), decided.scores.lately()):
        assert scored.learner["cost"] == pytest.approx(costs.mean(), rel=1e-6)
    metrics = Metrics("classes", window=WINDOW)
    metrics.restore(saved)
    assert "coverage" not in metrics.scores.so_far().learner
    metrics.add(y[600:], _part(forecast, slice(600, None)), loss[600:])
    found, held = metrics.scores.so_far().learner, forecast.set[np.arange(COUNT), y.astype(int)]
    assert found["coverage"] == pytest.approx(held[600:].mean())
    assert {name: found[name] for name in ("accuracy", "log_loss", "f1")} == {
        name: whole.scores.so_far().learner[name] for name in ("accuracy", "log_loss", "f1")
    }
    assert metrics.scores.lately() == whole.scores.lately()
    assert metrics.scores.sets_over_time()[0][0] > 600


def _part(forecast: Forecast, rows: slice) -> Forecast:
    return Forecast(*(None if value is None else value[rows] for value in forecast))


def _first(data: Any, count: int) -> Any:
    y, forecast, loss = data
    return y[:count], _part(forecast, slice(count)), loss[:count]


# --- runs


def write_costs(path: Path, names: tuple[str, ...] = ("no", "yes"), more: str = "") -> Path:
    lines = [",".join(["", *names]), *(",".join([was, *(str(int(was != said)) for said in names)]) for was in names)]
    path.write_text("\n".join(lines) + more + "\n")
    return path


def test_a_run_says_sets_and_decisions_wherever_it_says_classes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "rows.csv", 600)
    Path("costs.csv").write_text("was,no,yes\nno,0,1\nyes,5,0\n")
    call = ["run", "rows.csv", "--target", "sold", "--rule", "implicit", "--cost", "costs.csv", "--abstain"]
    assert main([*call, "--out", ".", "--predictions", "said.csv", "--coverage", "0.8", "--window", "100", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    with Path("said.csv").open() as file:
        said = list(csv.DictReader(file))
    sets = [row["set"].split("|") if row["set"] else [] for row in said]
    held = [row["label"] in own for row, own in zip(said, sets, strict=True)]
    learner = facts["metrics"]["so_far"]["learner"]
    assert learner["coverage"] == pytest.approx(np.mean(held))
    assert abs(np.mean(held) - 0.8) < 0.03
    assert learner["set_size"] == pytest.approx(np.mean([len(own) for own in sets]))
    assert [bool(row["decision"]) for row in said] == [len(own) == 1 for own in sets]
    paid = [
        5.0 * (row["label"] == "yes") if row["decision"] == "no" else 1.0 * (row["label"] == "no")
        for row in said
        if row["decision"]
    ]
    assert learner["cost"] == pytest.approx(np.mean(paid))
    document = json.loads(Path("run.json").read_text())
    by_class = {one["name"]: one for one in document["metrics"]["classes"]}
    for name in ("no", "yes"):
        own = [k for k, row in enumerate(said) if row["label"] == name]
        assert by_class[name]["coverage"] == pytest.approx(np.mean([held[k] for k in own]))
        assert by_class[name]["rows"] == len(own)
    assert document["sets"]["coverage"][-1] == pytest.approx(np.mean(held))
    assert document["sets"]["target"] == 0.8
    assert document["sets"]["recent"][-1] == pytest.approx(np.mean(held[-100:]))
    assert document["metrics"]["recent"]["learner"]["coverage"] == pytest.approx(np.mean(held[-100:]))
    assert results_of(load_job("model.ovi")).to_json()["metrics"] == document["metrics"]
    assert "How good it is at each class" in Path("report.html").read_text()
    capsys.readouterr()
    assert main(["predict", "model.ovi", "rows.csv", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)["predictions"][0]
    assert set(row["set"]) <= {"no", "yes"}
    assert row["decision"] in ("no", "yes", None)


def test_a_model_says_sets_in_the_types_of_its_labels() -> None:
    draw = rng()
    X = draw.standard_normal((300, 2))
    rows = [{"a": a, "b": b, "kind": int(a > 0) + int(b > 0)} for a, b in X.tolist()]
    model = ovi.fit(
        rows, target="kind", task="classes", rule="implicit", cost={k: {j: abs(k - j) for j in range(3)} for k in range(3)}
    )
    said = model.predict(rows[:20])
    assert all(set(row["set"]) <= {0, 1, 2} and row["decision"] in (0, 1, 2) for row in said)
    told = {one.name: one for one in results_of(model.job).told_by or ()}
    assert list(told) == ["0", "1", "2"]
    assert {*told["2"].columns} == {"a", "b"}
    assert sum(told["2"].share) == pytest.approx(1.0)
    assert model.metrics["cost"] <= model.metrics["cost_of_guess"] + 0.05
    assert {one["name"]: one["rows"] for one in model.metrics["classes"]} == {
        str(k): sum(row["kind"] == k for row in rows) for k in range(3)
    }


def test_a_run_of_before_sets_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    sample = Path(__file__).parents[1] / "samples" / "run_v1.ovi"
    job = load_job(sample)
    assert job.kind == "classes"
    assert job.state.covered.count == 0
    before = job.metrics.count
    names = list(job.schema.kinds)
    lines = [
        ",".join([*names, job.settings.target]),
        *(",".join([*(["0.5"] * len(names)), job.class_names[k % 2]]) for k in range(40)),
    ]
    Path("new.csv").write_text("\n".join(lines) + "\n")
    model = ovi.open(sample)
    model.learn([dict(zip([*names, job.settings.target], line.split(","), strict=True)) for line in lines[1:]])
    assert (model.count, model.state.covered.count) == (before + 40, 40)
    assert {"coverage", "set_size"} <= model.metrics.keys()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "needs a header of class names"),
        ("was\n", "needs a header of class names"),
        ("was,no,yes\nno,0,1\n", "'yes' can be decided, but has no row of its own"),
        ("was,no\nno,0\nyes,1\n", "the cost of deciding 'yes' is missing"),
        ("was,no,yes\nno,0\nyes,5,0\n", "the row of 'no' has 1 costs for 2 classes"),
        ("was,no,no\nno,0,1\nno,5,0\n", "class 'no' stands twice in the header"),
        ("was,no,yes\nno,0,1\nno,5,0\n", "class 'no' has two rows"),
        ("was,no,yes\nno,0,dear\nyes,5,0\n", "the cost of 'yes' where 'no' comes is 'dear'"),
        ("was,no,yes\nno,0,nan\nyes,5,0\n", "needs a number up to 1e+30"),
        ("was,no,yes\nno,0,inf\nyes,5,0\n", "needs a number up to 1e+30"),
        ("was,no\nno,0\n", "needs at least two classes"),
    ],
)
def test_costs_that_are_none_are_refused_by_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "costs.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message.replace("+", r"\+")) as refused:
        read_costs(path)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_what_cannot_be_decided_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "rows.csv", 60)
    write_costs(Path("costs.csv"))
    write_costs(Path("other.csv"), ("no", "perhaps"))
    call = ["run", "rows.csv", "--rule", "implicit"]
    for more, message in (
        (["--target", "sold", "--cost", "absent.csv"], "absent.csv"),
        (["--target", "sold", "--cost", "other.csv"], "none of the classes that have costs, 'no', 'perhaps'"),
        (["--target", "sold", "--cost", "costs.csv", "--classes", "no,maybe"], "'maybe' is in classes or in the costs alone"),
        (["--target", "sold", "--cost", "costs.csv", "--task", "numbers"], "cost with task='numbers'"),
        (["--target", "sold", "--cost", "costs.csv", "--loss", "hinge"], "has no probabilities of them"),
        (["--target", "a", "--abstain"], "abstain: 'a' has no classes"),
        (["--target", "sold", "--cost", "costs.csv", "--predictions", "costs.csv"], "would overwrite"),
    ):
        assert main([*call, *more]) == 2, more
        assert message in capsys.readouterr().err, more
    assert Path("costs.csv").read_text().startswith(",no,yes")
    for wrong in (3, {"a": 1}, {"a": {"a": 0.0}}, {"a": {"a": 0, "b": True}, "b": {"a": 0, "b": 0}}):
        with pytest.raises(ValueError, match="cost"):
            Settings("y", cost=wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="needs True or False"):
        Settings("y", abstain="yes")  # type: ignore[arg-type]


def test_costs_may_be_a_table_of_pandas_and_classes_keep_their_order() -> None:
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame([[0, 1], [5, 0]], index=["no", "yes"], columns=["no", "yes"])
    assert as_costs(table) == {"no": {"no": 0.0, "yes": 1.0}, "yes": {"no": 5.0, "yes": 0.0}}
    settings = Settings("y", cost=table, classes=("yes", "no"))
    decisions = Decisions.of(settings.cost, abstain=False, names=("yes", "no"))
    assert decisions is not None
    assert decisions.costs.tolist() == [[0.0, 5.0], [1.0, 0.0]]  # type: ignore[union-attr]


def test_names_in_one_cell_can_be_told_apart() -> None:
    assert joined_names(["a|b", "c\\", ""]) == "a\\|b|c\\\\|"
