"""Several classes: each is its own yes or no, whenever it joins, and together they are probabilities."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.states import bits, same_bits
from sklearn.datasets import load_iris

import onlinevi as ovi
from onlinevi.adapters.cli import main
from onlinevi.checkpoint import CheckpointError
from onlinevi.data import open_stream
from onlinevi.learners import OneVsRest, OneVsRestState, choose
from onlinevi.runs.checkpoint import load_job, save_job
from onlinevi.runs.job import Job
from onlinevi.runs.metrics import Metrics
from onlinevi.runs.results import results_of
from onlinevi.runs.settings import Settings

ONE = choose(ovi.Logistic(), "implicit", None, ovi.Inputs(missing=True))
HINGE = choose(ovi.Hinge(), "oga", None, None)


def rows(count: int = 200, number: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows and classes, of which the first three are there from the start; the last ones come late."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((count, 3))
    classes = (X @ rng.standard_normal((3, number)) + rng.gumbel(size=(count, number))).argmax(axis=1)
    while (late := (classes >= 3) & (np.arange(count) < count // 16 * classes)).any():
        classes[late] -= 3
    return X, np.searchsorted(np.unique(classes), classes)


@cache
def played() -> tuple[np.ndarray, np.ndarray, OneVsRestState, Any]:
    """Rows, classes, and what a learner that knows all five makes of them: several tests look at it."""
    (X, y), learner = rows(), OneVsRest(ONE, 5)
    return X, y, *learner.update_many(learner.init(3), X, y)


def test_a_class_is_a_learner_of_its_own_against_the_rest() -> None:
    X, y, state, trace = played()
    for number, own in enumerate(state.each):
        alone, said = ONE.update_many(ONE.init(3), X, np.where(y == number, 1.0, -1.0))
        assert bits(own) == bits(alone)
        scores = ONE.loss.score(said.prediction, said.spread)
        assert np.array_equal(trace.forecast.prediction[:, number], scores)


def test_a_class_that_joins_is_as_if_known_from_the_start() -> None:
    X, y, known, _ = played()
    late = OneVsRest(ONE, 3)
    joined, trace = late.update_many(late.init(3), X, y)
    assert bits(joined)[:-1] == bits(known)[:-1], "all but what was paid: there were fewer classes to guess from"
    for number in (3, 4):
        first = int(np.argmax(y == number))
        before, _ = late.update_many(late.init(3), X[:first], y[:first])
        assert len(before.each) == number
        assert trace.forecast.guess[first] < number, "what nobody knew cannot be guessed"
        assert (trace.forecast.probability[: first + 1, number] == 0.0).all()
        with_it = OneVsRestState((*before.each, before.later), before.later, before.coupled, (*before.seen, True))
        assert trace.loss[first] == pytest.approx(-np.log(late.forecast(with_it, X[first : first + 1]).probability[0, number]))


@pytest.mark.parametrize("number", [5, 11])
def test_any_split_gives_the_same_bits(number: int) -> None:
    count = 16 * (number - 1) // 2
    X, y = rows(count, number)
    assert len(np.unique(y)) == number
    weights = np.random.default_rng(1).integers(1, 4, count) / 2.0
    learner = OneVsRest(ONE, 3)
    whole, trace = learner.update_many(learner.init(3), X, y, weights=weights)
    for cuts in (range(count + 1), sorted({0, count, *np.random.default_rng(1).integers(0, count, 9).tolist()})):
        state, losses, chances = learner.init(3), [], []
        for start, stop in pairwise(cuts):
            state, part = learner.update_many(state, X[start:stop], y[start:stop], weights=weights[start:stop])
            losses.append(part.loss)
            chances.append(part.forecast.chance)
        assert bits(state) == bits(whole)
        assert np.concatenate(losses).tobytes() == trace.loss.tobytes()
        assert np.concatenate(chances).tobytes() == trace.forecast.chance.tobytes()


def test_probabilities_sum_to_1_and_are_what_is_paid() -> None:
    _, y, _, trace = played()
    said = trace.forecast.probability
    np.testing.assert_allclose(said.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(trace.loss, -np.log(said[np.arange(200), y]), rtol=1e-9)
    assert np.array_equal(trace.forecast.guess[1:], said.argmax(axis=1)[1:])
    assert trace.loss[100:].mean() < np.log(5.0)


def heard_twice() -> ovi.Pool:
    """A pool whose first learner is one too, as that of the default among many: it is heard by itself."""

    def pool(learners: list[Any]) -> ovi.Pool:
        return ovi.Pool(learners, rate=1.0, share=1e-4, pool="probability")

    stds = (0.3, 3.0)
    leaves = [ovi.Linear(ovi.Logistic(), ovi.Implicit(), ovi.MeanField(prior_std=std, box=None)) for std in stds]
    return pool([pool(leaves), ovi.Expand(ovi.Products(), pool(leaves[:1]), intercept=False)])


def test_learners_on_the_columns_are_heard_by_themselves_too(tmp_path: Path) -> None:
    """So all classes together never cost much more than with them alone, though each by itself is better with the rest."""
    (X, y), both = rows(90, 3), heard_twice()
    alone, learner = OneVsRest(both.learners[0], 3), OneVsRest(both, 3)
    state, trace = learner.update_many(learner.init(3), X, y)
    plain, _ = alone.update_many(alone.init(3), X, y)
    assert len(state.coupled) == 21
    assert state.coupled[7:14].tobytes() == plain.coupled.tobytes(), "the same learners, coupled by themselves"
    come = max(int(np.argmax(y == code)) for code in range(3)) + 1
    assert trace.loss[come:].sum() <= state.coupled.min() + np.log(21.0)

    said = trace.forecast
    np.testing.assert_allclose(said.probability.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(trace.loss, -np.log(said.probability[np.arange(90), y]), rtol=1e-9)
    assert np.array_equal(said.guess, said.probability.argmax(axis=1))
    assert np.array_equal(trace.prediction, said.guess)
    half, before = learner.update_many(learner.init(3), X[:40], y[:40])
    looked, foreseen = learner.look(half, X[40:41], y[40:41]), learner.forecast(half, X[40:41])
    np.testing.assert_allclose(looked.loss, trace.loss[40:41], rtol=1e-9)
    np.testing.assert_allclose(foreseen.probability, said.probability[40:41], rtol=1e-9)
    ovi.save(tmp_path / "model.ovi", learner, half)
    again, after = learner.update_many(ovi.load(tmp_path / "model.ovi").state, X[40:], y[40:])
    assert bits(again) == bits(state)
    assert np.concatenate([before.loss, after.loss]).tobytes() == trace.loss.tobytes()

    late = OneVsRest(both, 2)
    joined, trace = late.update_many(late.init(3), X, y)
    first = int(np.argmax(y == 2))
    assert bits(joined)[:-1] == bits(state)[:-1]
    assert (trace.forecast.probability[: first + 1, 2] == 0.0).all()
    assert np.isfinite(trace.loss).all()


@pytest.mark.parametrize("one", [ONE, HINGE], ids=["logistic", "hinge"])
def test_a_look_says_and_costs_what_a_step_does(one: Any) -> None:
    X, y = rows()
    learner, behind = OneVsRest(one, 3), 0
    state, joins = learner.init(3), [int(np.argmax(y == code)) for code in (3, 4)]
    assert joins[0] < joins[1], "in the order of their numbers, one at a time"
    for at in (0, 10, *joins, joins[1] + 9):
        state, _ = learner.update_many(state, X[behind:at], y[behind:at])
        behind = at
        looked = learner.look(state, X[at : at + 1], y[at : at + 1])
        _, played = learner.update_many(state, X[at : at + 1], y[at : at + 1])
        np.testing.assert_allclose(looked.loss, played.loss, rtol=1e-9)
        np.testing.assert_allclose(looked.prediction, played.forecast.prediction[:, : looked.prediction.shape[1]], rtol=1e-9)


def test_a_hinge_loss_has_scores_and_pays_for_every_class() -> None:
    X, y = rows()
    learner = OneVsRest(HINGE, 5)
    _, trace = learner.update_many(learner.init(3), X, y)
    signs = np.where(y[:, None] == np.arange(5), 1.0, -1.0)
    np.testing.assert_allclose(trace.loss, np.maximum(0.0, 1.0 - signs * trace.forecast.prediction).sum(axis=1), rtol=1e-12)
    assert trace.forecast.probability is None
    metrics = Metrics("classes")
    metrics.add(y.astype(float), trace.forecast, trace.loss)
    assert metrics.hit_rate == np.mean(trace.forecast.guess == y)
    assert not metrics.bins.any(), "nothing was said of probabilities"


def test_columns_join_for_every_class() -> None:
    X, y = rows(80)
    learner = OneVsRest(ONE, 3)
    state, _ = learner.update_many(learner.init(3), X, y)
    wide = learner.widen(state, 5)
    assert wide.mean.shape == wide.std.shape == (5, 6)
    assert bits(wide.each[1]) == bits(ONE.widen(state.each[1], 5))
    state, _ = learner.update_many(wide, np.pad(X[:5], ((0, 0), (0, 2))), [0, 1, 5, 2, 5])
    assert len(state.each) == 6


def test_what_is_no_class_is_refused() -> None:
    X, _ = rows(4)
    closed = OneVsRest(ONE, 3, grows=False)
    with pytest.raises(ValueError, match="class 3: there are 3, and none can join"):
        closed.update_many(closed.init(3), X, [0, 1, 2, 3])
    for labels in ([0, 1, 2, 0.5], [0, 1, 2, -1]):
        with pytest.raises(ValueError, match="no class"):
            closed.update_many(closed.init(3), X, labels)
    with pytest.raises(ValueError, match="at least two"):
        OneVsRest(ONE, 1)
    grows = OneVsRest(ONE, 3)
    X[2, 1] = 1e200
    with pytest.raises(ovi.BadRow, match="overflow") as refused:
        grows.update_many(grows.init(3), X, [0, 3, 1, 2])
    assert refused.value.row == 2


@pytest.mark.parametrize("one", [ONE, ovi.Auto()], ids=["rule", "auto"])
def test_a_checkpoint_goes_on_with_the_same_bits(one: Any, tmp_path: Path) -> None:
    half = 5 if isinstance(one, ovi.Auto) else 40
    X, y = rows(2 * half)
    y[half - 2] = 3  # one class has joined
    learner, path = OneVsRest(one, 3), tmp_path / "model.ovi"
    state, _ = learner.update_many(learner.init(3), X[:half], y[:half])
    assert len(state.each) >= 4
    ovi.save(path, learner, state)
    loaded = ovi.load(path)
    assert loaded.learner == learner
    assert bits(loaded.state) == bits(state)
    whole, again = (learner.update_many(own, X[half:], y[half:])[0] for own in (state, loaded.state))
    assert bits(again) == bits(whole)
    other = replace(state, each=state.each[:2], seen=state.seen[:2])
    for wrong in (other, replace(state, later=None)):
        with pytest.raises(CheckpointError, match="another learner"):
            ovi.save(path, learner, wrong)
    with pytest.raises(CheckpointError, match="not finite"):
        ovi.save(path, learner, replace(state, coupled=np.full(len(state.coupled), np.nan)))


@pytest.mark.parametrize("one", [ONE, HINGE, ovi.Auto()], ids=["logistic", "hinge", "auto"])
def test_classes_may_all_be_unknown_at_the_start(one: Any) -> None:
    """As scikit-learn knows them all, and River none: once all have come, both say the same."""
    count = 6 if isinstance(one, ovi.Auto) else 40
    X, y = rows(count, 3)
    y = np.array([list(dict.fromkeys(y)).index(code) for code in y])
    none, all_of_them = OneVsRest(one, 0), OneVsRest(one, 3, grows=False)
    assert none.forecast(none.init(3), X).prediction.shape == (count, 0)
    joined, trace = none.update_many(none.init(3), X, y)
    known, _ = all_of_them.update_many(all_of_them.init(3), X, y)
    assert [same_bits(own, other) for own, other in zip(joined.each, known.each, strict=True)] == [True] * 3
    assert joined.coupled.tobytes() == known.coupled.tobytes()
    assert joined.seen == known.seen == (True,) * 3
    assert np.isneginf(trace.forecast.prediction[0]).all()
    state = none.init(3)
    for x, code in zip(X, y, strict=True):
        state, _ = none.update(state, x, code)
    assert same_bits(state, joined)


def test_rows_may_be_wider_before_the_first_class() -> None:
    learner = OneVsRest(ovi.Auto(), 0)
    state, _ = learner.update_many(learner.init(2), np.ones((1, 3)), [0])
    assert state.inputs.dim == state.later.inputs.dim == 3


# --- from files


def write_rows(path: Path, X: np.ndarray, names: list[str]) -> None:
    lines = [",".join([*map(repr, row), name]) for row, name in zip(X.tolist(), names, strict=True)]
    path.write_text("\n".join([",".join([*"abcdefg"[: X.shape[1]], "kind"]), *lines]) + "\n")


def table(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_a_run_over_iris_is_the_librarys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow", reason='pyarrow is missing: pip install "onlinevi[files]"')
    data, out, said = load_iris(), tmp_path / "out", tmp_path / "said.csv"
    order = np.random.default_rng(0).permutation(150)
    X, y = data.data[order], data.target[order]
    write_rows(tmp_path / "iris.csv", X, data.target_names[y].tolist())
    call = ["run", str(tmp_path / "iris.csv"), "--target", "kind", "--rule", "implicit"]
    assert main([*call, "--out", str(out), "--predictions", str(said), "--json"]) == 0
    printed = capsys.readouterr()
    assert "3 classes: 'setosa', 'versicolor', 'virginica'" in printed.err
    learner = ovi.Sets(ovi.SetCalibration(0.9), OneVsRest(ONE, 3))
    state, trace = learner.update_many(learner.init(4), X, y)
    found = table(said)
    assert [row["label"] for row in found] == data.target_names[y].tolist()
    assert [row["prediction"] for row in found] == data.target_names[trace.forecast.guess].tolist()
    assert [float(row["probability"]) for row in found] == trace.forecast.chance.tolist()
    assert [row["set"] for row in found] == ["|".join(data.target_names[own]) for own in trace.forecast.set]
    assert [float(row["loss"]) for row in found] == trace.loss.tolist()
    summary = json.loads(printed.out)
    assert summary["error_rate"] == pytest.approx(np.mean(trace.forecast.guess != y))
    assert summary["error_rate"] < 0.2
    assert summary["average_loss"] == pytest.approx(trace.loss.mean(), rel=1e-12)

    document = json.loads((out / "run.json").read_text())
    assert document["head"]["task"]["classes"] == data.target_names.tolist()
    assert document["head"]["task"]["sentence"] == "Predict kind (setosa, versicolor or virginica) from 4 columns"
    path = document["posterior"]
    assert (path["names"][5], len(path["names"])) == ("versicolor: b", 12)
    assert sum(document["calibration"]["count"]) == 150
    assert np.dot(document["calibration"]["observed"], document["calibration"]["count"]) == np.sum(trace.forecast.guess == y)
    assert document["regret"]["observed"][-1] == pytest.approx(trace.loss.mean() - document["hindsight"]["value"])

    write_rows(tmp_path / "new.csv", X[:3], ["?"] * 3)
    assert main(["predict", str(out / "model.ovi"), str(tmp_path / "new.csv")]) == 0
    forecast = learner.forecast(state, X[:3])
    told = zip(forecast.guess, forecast.chance.tolist(), forecast.probability.tolist(), strict=True)
    sets = ["|".join(data.target_names[each]) for each in forecast.set]
    lines = [
        ",".join([str(k), data.target_names[code], repr(chance), sets[k], *map(repr, each)])
        for k, (code, chance, each) in enumerate(told)
    ]
    header = ",".join(["row,prediction,probability,set", *(f"probability_{name}" for name in data.target_names)])
    assert capsys.readouterr().out.splitlines() == [header, *lines]
    assert main(["info", str(out / "model.ovi"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    for weight in facts["weights"]:
        number, place = data.target_names.tolist().index(weight["class"]), "abcd".index(weight["name"])
        raw = ONE.inputs.raw_weights(
            state.by_class()[number].inputs, state.by_class()[number].mean, state.by_class()[number].std
        )
        assert (weight["mean"], weight["std"]) == (raw.weights[place], raw.std[place])
    live = ovi.certificate(state.by_class()[2])
    assert (
        f"{live.within(float(np.linalg.norm(state.by_class()[2].mean))) / 150:.4g} (virginica)"
        in facts["certificate"]["sentence"]
    )
    assert main(["info", str(out / "model.ovi")]) == 0
    assert "  setosa: c  " in capsys.readouterr().out


def late_rows(path: Path, start: int) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Rows of which two classes come from a row on, the classes, and where these two come first."""
    X, y = rows(start + 50, 3)
    late = np.arange(len(y)) >= start
    y = np.where(late & (X[:, 0] > 1.0), 3, np.where(late & (X[:, 1] > 1.3), 4, y))
    write_rows(path, X, [f"k{code}" for code in y])
    return X, y, [int(np.argmax(y == code)) for code in (3, 4)]


def test_a_class_that_comes_late_in_a_run_that_is_stopped(tmp_path: Path) -> None:
    """Cut behind the row where a class joins, or not at all: the same bits."""
    pytest.importorskip("pyarrow", reason='pyarrow is missing: pip install "onlinevi[files]"')
    path, found = tmp_path / "rows.csv", []
    X, y, joins = late_rows(path, 70)
    lines = path.read_text().splitlines(keepends=True)
    for cuts in ([], [min(joins) + 1]):
        folder = tmp_path / f"cut{len(cuts)}"
        folder.mkdir()
        call = ["run", str(path), "--target", "kind", "--rule", "implicit", "--resume", "--out", str(folder), "--look", "60"]
        for cut in [*cuts, len(lines)]:
            path.write_text("".join(lines[: cut + 1]))
            assert main([*call, "--predictions", str(folder / "said.csv")]) == 0
        job = load_job(folder / "model.ovi")
        found.append([bits(job.state), job.metrics.to_json(), job.snapshots.to_json(), (folder / "said.csv").read_bytes()])
    assert found[0] == found[1]
    told = table(folder / "said.csv")
    for place in joins:
        assert told[place]["label"] == f"k{y[place]}" != told[place]["prediction"]
        assert 1.0 < float(told[place]["loss"]) < 50.0
    learner = OneVsRest(ONE, 5)
    state, _ = learner.update_many(learner.init(3), X, [job.class_names.index(f"k{code}") for code in y])
    assert bits(state)[:-1] == bits(job.state.inner)[:-1]
    document = results_of(job)
    assert len(document.posterior.names) == 15
    assert np.isnan(document.posterior.mean[0][9:]).all(), "nothing was said of a class before it joined"


@pytest.mark.parametrize("delay", [0, 3])
def test_batches_of_any_size_give_the_same_bits(delay: int, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason='pyarrow is missing: pip install "onlinevi[files]"')
    _, y, joins = late_rows(tmp_path / "rows.csv", 10)
    found, told = [], []
    with open_stream(tmp_path / "rows.csv") as stream:
        batch, position = next(stream), stream.position
    settings = Settings("kind", rule="implicit", delay=delay)
    for cuts in ([], [joins[0], joins[1]], [joins[0] + 1, joins[1] + 1], range(1, 60)):
        job = Job(settings, settings.schema([batch.slice(0, 10)]))
        for start, stop in pairwise([0, *sorted(cuts), 60]):
            job.on_rows = lambda _, forecast, loss, parts: told.append(loss)
            job.take(batch.slice(start, stop), position._replace(rows=stop))
            if len(cuts) == 2:
                save_job(tmp_path / "model.ovi", job)
                job = load_job(tmp_path / "model.ovi")
        found.append((bits(job.state), job.metrics.to_json(), job.snapshots.to_json()))
        assert len(job.late.rows if delay else ()) == delay
    assert all(own == found[0] for own in found[1:])
    assert np.isfinite(np.concatenate(told[-59:])).all()
    assert sorted(set(y[: -delay or None].tolist())) == list(range(len(job.state.inner.each)))


def test_codes_and_odd_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow", reason='pyarrow is missing: pip install "onlinevi[files]"')
    path = tmp_path / "rows.csv"
    X, _ = rows(60)
    y = np.arange(60) % 5
    X[:, 2] = 7.0  # a column that never varies
    X[3, 0] = np.nan
    write_rows(path, X, [f"{code}.0" if k % 2 else str(code) for k, code in enumerate(y.tolist())])
    with path.open("a") as file:
        file.write("1,1,1,\n1e200,1,1,9\n1,1,1,8\n")
    call = ["run", str(path), "--target", "kind", "--rule", "implicit", "--json"]
    assert main([*call, "--task", "classes", "--bad-rows", "skip", "--out", str(tmp_path)]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["task"], summary["events"], summary["bad_rows"]) == ("classes", 61, 2)
    job = load_job(tmp_path / "model.ovi")
    assert job.class_names == ("0", "1", "2", "3", "4", "8", "9")


def test_columns_of_another_run_take_new_classes_and_merge_with_it(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason='pyarrow is missing: pip install "onlinevi[files]"')
    X, y = rows(60, 3)
    models = [str(tmp_path / f"{name}.ovi") for name in "ab"]
    for model, names, more in zip(models, ("xyz", "xyw"), ([], ["--prepare-like", models[0]]), strict=True):
        write_rows(tmp_path / "rows.csv", X, [names[code] for code in y])
        call = ["run", str(tmp_path / "rows.csv"), "--target", "kind", "--rule", "implicit", "--checkpoint", model, *more]
        assert main(call) == 0
    first, second = map(load_job, models)
    assert second.class_names == (*first.class_names, "w")
    assert (first.state.inputs, len(second.state.inner.each)) == (second.state.inputs, 4)
    assert all(own.inputs == first.state.inputs for own in (*second.state.inner.each, second.state.inner.later))
    assert main(["merge", *models, "-o", str(tmp_path / "all.ovi")]) == 0
    merged = load_job(tmp_path / "all.ovi")
    assert (merged.class_names, len(merged.state.inner.each)) == (second.class_names, 4)
    # What the first run would have said of the class it never met is what it has learned of a class that never came.
    unmet = first.state.inner.later.std**-2.0 + second.state.inner.each[3].std ** -2.0 - 1.0
    np.testing.assert_allclose(merged.state.inner.each[3].std ** -2.0, unmet, rtol=1e-12)
