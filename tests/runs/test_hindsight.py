"""The best in hindsight, the regret and the theorem of a run: what they are by their definitions, and tried to be broken."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onlinevi as ovi
from onlinevi import bounds, datasets
from onlinevi.adapters.cli import main
from onlinevi.adapters.cli.progress import Ticker
from onlinevi.guarantees import tempered_bound
from onlinevi.runs import hindsight as module
from onlinevi.runs.certainty import certified
from onlinevi.runs.charts.of_results import charts_of
from onlinevi.runs.checkpoint import load_job, save_job
from onlinevi.runs.hindsight import InHindsight, look_back
from onlinevi.runs.job import Job
from onlinevi.runs.metrics import Thinned
from onlinevi.runs.promises import promised_regret
from onlinevi.runs.replay import replay
from onlinevi.runs.report.results import Head, RegretCurve, Results, Source, Task
from onlinevi.runs.results import results_of
from onlinevi.runs.run import Places, Run, Stopper
from onlinevi.runs.settings import Settings
from onlinevi.runs.summary import summarise

pytest.importorskip("pyarrow", reason='pyarrow is missing: pip install "onlinevi[files]"')

BOXED = ("sva", "svb", "oga", "oga-el", "ngvi")
LOSSES = ("numbers", "absolute"), ("classes", "logistic"), ("classes", "hinge")
WITH_THEOREM = ("sva", "svb", "oga", "oga-el")


def write(path: Path, X: Any, y: Iterable[Any], names: str = "") -> Path:
    """Rows as CSV; NaN is an empty cell."""
    head = names or ",".join(f"c{j}" for j in range(len(X[0])))
    lines = [",".join(["" if v != v else str(v) for v in row] + [str(label)]) for row, label in zip(X, y, strict=True)]
    path.write_text(f"{head},y\n" + "\n".join(lines) + "\n")
    return path


def learned(path: Path, settings: Settings, *, any_size: bool = False) -> tuple[Job, InHindsight, Results]:
    with Run(settings, Places(str(path), bad_rows="skip")) as run:
        assert run.go(Stopper()) == ("end", None)
        back = look_back(run.job, str(path), Stopper(), any_size=any_size)
        return run.job, back, results_of(run.job, "end", back)


def words(y: np.ndarray) -> list[str]:
    return ["yes" if label > 0.0 else "no" for label in y]


@pytest.mark.parametrize("rule", ["auto", "ngvi", "oga"])
def test_what_is_likely_of_new_rows_is_that_of_the_rows_as_they_were_prepared(tmp_path: Path, rule: str) -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((24, 2)) * [1.0, 1e3]
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    X[::5, 1] = np.nan
    inputs = ovi.Inputs(missing=True)
    Z = np.nan_to_num(inputs.update_many(inputs.init(2), X)[1])
    path = write(tmp_path / "r.csv", X, words(y))
    job, _, run = learned(path, Settings("y", rule=rule))
    assert run.risk is not None
    assert run.risk.guesses == tempered_bound(1.0 - job.metrics.hit_rate, 0.0, 24, 0.05)
    if rule == "oga":
        assert run.risk.gibbs is None, "a point is infinitely far from any prior"
    else:
        by_hand = ovi.pac_bayes(job.state.deciders()[0], Z, y, adapted=True)
        assert (run.risk.gibbs, run.risk.vote, run.risk.kl) == (by_hand.gibbs_risk, by_hand.vote_risk, by_hand.kl)
    assert summarise(job)["risk"]["guesses"] == run.risk.guesses
    assert Results.from_json(json.loads(json.dumps(run.to_json()))) == run
    job.before = (job.origins[0],)
    assert results_of(job).risk is None, "it may have seen these rows before"


def test_it_is_the_best_of_the_box_on_the_rows_as_they_were_prepared(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3)) * [1.0, 1e3, 1e-3]
    y = np.where(X[:, 0] + rng.standard_normal(300) > 0.0, 1.0, -1.0)
    X[rng.random(X.shape) < 0.1] = np.nan
    inputs = ovi.Inputs(missing=True)
    Z = np.nan_to_num(inputs.update_many(inputs.init(3), X)[1])
    expected = ovi.hindsight(Z, y, loss=ovi.Logistic(), box=20.0)
    job, _, run = learned(write(tmp_path / "r.csv", X, words(y)), Settings("y", rule="svb"))
    assert run.hindsight is not None
    assert run.hindsight.value == pytest.approx(expected.value, rel=1e-9)
    assert 0.0 <= run.hindsight.gap < 1e-4
    assert run.regret is not None
    assert run.regret.observed is not None
    assert run.regret.steps[-1] == 300.0
    assert run.regret.observed[-1] == pytest.approx(job.metrics.average_loss - expected.value, rel=1e-6)
    losses = np.log1p(np.exp(-y * (Z @ expected.mean)))
    paid = {step: average * step for step, average in zip(run.trace.steps, run.trace.average_loss, strict=True)}  # type: ignore[union-attr]
    for step, observed in zip(run.regret.steps, run.regret.observed, strict=True):
        assert observed == pytest.approx((paid[step] - losses[: int(step)].sum()) / step, abs=1e-6)
    assert run.regret.theorem is None, "values were missing: the theorems speak of other comparators"
    assert Results.from_json(json.loads(json.dumps(run.to_json()))) == run


def test_a_ball_is_what_is_compared_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X = np.random.default_rng(0).standard_normal((120, 3))
    y = np.where(X @ [3.0, -2.0, 1.0] > 0.0, 1.0, -1.0)
    path, out = write(tmp_path / "r.csv", X, words(y)), tmp_path / "out"
    assert main(["run", str(path), "--target", "y", "--rule", "sva", "--ball", "0.5", "--out", str(out)]) == 0
    job, run = load_job(out / "model.ovi"), json.loads((out / "run.json").read_text())
    Z = ovi.Inputs().update_many(ovi.Inputs().init(3), X)[1]
    best = ovi.hindsight(Z, y, loss=ovi.Logistic(), box=None, radius=0.5)
    assert run["hindsight"]["value"] == pytest.approx(best.value, rel=1e-9)
    assert run["hindsight"]["among"] == "weights of length 0.5 at most"
    assert np.linalg.norm(job.state.alone().mean) == pytest.approx(0.5, rel=1e-9)
    assert run["regret"]["observed"][-1] <= run["regret"]["certified"][-1]
    assert run["regret"]["observed"][-1] <= run["regret"]["theorem"][-1]
    assert main(["run", str(path), "--target", "y", "--ball", "0.5"]) == 2
    assert "auto chooses its beliefs itself" in capsys.readouterr().err


def test_numbers_of_any_unit_have_their_least_squares(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 2)) * [1e-4, 1e4]
    y = 5e6 + 1e9 * X[:, 0] - X[:, 1] + 1e3 * rng.standard_normal(200)
    inputs = ovi.Inputs(missing=True)
    Z = inputs.update_many(inputs.init(2), X)[1]
    least = np.mean(np.square(y - Z @ np.linalg.lstsq(Z, y, rcond=None)[0]))
    _, _, run = learned(write(tmp_path / "r.csv", X, y), Settings("y", rule="implicit"))
    assert run.hindsight is not None
    assert run.hindsight.value == pytest.approx(least, rel=1e-6)
    assert run.regret is not None
    assert run.regret.certified is None
    assert "±20 times the largest label" in run.hindsight.among


def adversarial(rng: np.random.Generator) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Streams that are bad for fixed weights, for steps, or for scales."""
    count = 60
    turns = np.where(np.arange(count) % 2, 1.0, -1.0)
    plain = rng.standard_normal((count, 2))
    grows = plain * np.exp(np.linspace(0.0, 40.0, count))[:, np.newaxis]
    return {
        "one row": (plain[:1], turns[:1]),
        "two rows": (plain[:2], turns[:2]),
        "constant columns": (np.ones((count, 2)), turns),
        "labels that turn at once": (plain, turns),
        "a law that turns half way": (plain, np.sign(plain[:, 0]) * np.where(np.arange(count) < count // 2, 1.0, -1.0)),
        "values that grow": (grows, np.sign(plain[:, 0])),
        "one huge value": (np.where(np.arange(count) == 30, 1e100, plain.T).T, np.sign(plain[:, 1])),
        "two columns alike": (np.repeat(plain[:, :1], 2, axis=1), np.sign(plain[:, 0])),
        "all of one sign but the last": (plain, np.where(np.arange(count) < count - 1, 1.0, -1.0)),
        "separable": (np.sign(plain) * 5.0, np.sign(plain[:, 0])),
    }


def check_order(run: Results, rule: str, loss: str) -> None:
    """Observed ≤ certified ≤ theorem, at every moment; rounding is below 1e-9 of what is summed."""
    assert run.regret is not None
    assert run.regret.certified is not None
    assert run.regret.observed is not None
    observed, certified = np.array(run.regret.observed), np.array(run.regret.certified)
    assert (observed <= certified + 1e-9 * (1.0 + np.abs(certified))).all(), (rule, loss)
    assert (run.regret.theorem is not None) == (rule in WITH_THEOREM)
    if run.regret.theorem is not None:
        assert (certified <= np.array(run.regret.theorem) * (1.0 + 1e-9)).all(), (rule, loss)


@pytest.mark.parametrize("rule", BOXED)
def test_observed_is_below_certified_is_below_the_theorem(rule: str, tmp_path: Path) -> None:
    for k, (name, (X, y)) in enumerate(adversarial(np.random.default_rng(2)).items()):
        path = write(tmp_path / f"{name}.csv", X, y.astype(int))
        # Losses in turn; one row has no two classes.
        task, loss = LOSSES[(k + BOXED.index(rule)) % 3 if len(y) > 1 else 0]
        run = learned(path, Settings("y", task, loss, rule, missing="zero"))[2]
        assert run.hindsight is not None, (name, run.without_hindsight)
        check_order(run, rule, loss)


@pytest.mark.parametrize("rule", BOXED)
def test_so_it_is_on_real_rows(rule: str) -> None:
    if not datasets.status("pima").available:
        pytest.skip("pima is not on this machine")
    path = Path(str(datasets.path("pima")))
    target = path.read_text().splitlines()[0].split(",")[-1]
    check_order(learned(path, Settings(target, rule=rule, missing="zero"))[2], rule, "logistic")


def test_no_theorem_speaks_of_the_squared_loss_or_of_a_rule_without_a_box(tmp_path: Path) -> None:
    X = np.random.default_rng(3).standard_normal((30, 2))
    squared = learned(write(tmp_path / "n.csv", X, X[:, 0]), Settings("y", "numbers", rule="svb", missing="zero"))[2]
    assert squared.regret is not None
    assert (squared.regret.certified is not None, squared.regret.theorem) == (True, None)
    implicit = learned(write(tmp_path / "c.csv", X, words(X[:, 0])), Settings("y", rule="implicit"))[2]
    assert implicit.regret is not None
    assert (implicit.regret.certified, implicit.regret.theorem) == (None, None)
    assert implicit.regret.observed is not None
    with Run(Settings("y", rule="sva", family="full"), Places(str(tmp_path / "c.csv"))) as run:
        full = run.job
        full.state, full.joins = full.learner.init(2), [[0, 2]]
        assert promised_regret(full) is None


def test_bounds_of_rates_that_fall_as_the_root_are_those_of_their_schedules() -> None:
    own = {"lipschitz": 1.7, "kl": 3.0, "strong_convexity": 0.25}
    for count in (1, 2, 10, 1000):
        rates = 0.6 / np.sqrt(np.arange(1.0, count + 1.0))
        squares = np.full(count, 1.7**2)
        exact = bounds.sva_schedule(rates=rates, gradient_squares=squares, kl=3.0, strong_convexity=0.25).value
        short = bounds.sva_per_sqrt(step=0.6, count=count, **own).value
        assert exact <= short <= 2.0 * exact
        by_steps = 5.0**2 / (2.0 * rates[-1]) + 0.5 * float(rates @ squares)
        assert by_steps <= bounds.oga_el_per_sqrt(step=0.6, count=count, lipschitz=1.7, diameter=5.0).value <= 2.0 * by_steps
    assert short == pytest.approx(exact, rel=0.02)


def late(path: Path, count: int = 400) -> Path:
    """A name that comes half way, a number that has its first value late, and rows that cannot be used."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal(count)
    rows = [
        [f"{x}", "" if t < 2 * count // 3 else f"{-x}", "a" if t < count // 2 else "b", "yes" if x > 0.1 else "no"]
        for t, x in enumerate(X.tolist())
    ]
    rows[20], rows[count // 2 + 10] = ["1"], ["1e200", "", "a", "no"]
    path.write_text("x,late,name,y\n" + "".join(",".join(row) + "\n" for row in rows))
    return path


def test_rows_are_the_same_however_the_run_was_cut(tmp_path: Path) -> None:
    """Columns join at the row that brought them, in the run and in the second pass."""
    path = late(tmp_path / "r.csv")
    lines = path.read_text().splitlines(keepends=True)
    settings, found = Settings("y", rule="implicit"), []
    for cuts in ([], [100, 190, 230], [10, 201, 280]):
        places = Places(str(path), tmp_path / f"{len(found)}{sum(cuts)}.ovi", bad_rows="skip")
        for cut in [*cuts, len(lines)]:
            path.write_text("".join(lines[: cut + 1]))
            with Run(settings, places, resume=True) as run:
                run.go(Stopper())
                job = run.job
        X, _ = replay(job, str(path), Stopper(), None)
        assert X.shape == (398, 5)
        back = look_back(job, str(path), Stopper())
        assert back.best is not None, back.why
        found.append(back.best.value)
    assert found == [found[0]] * 3


def test_sparse_rows_are_compared_too(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    lines, dense = [], np.zeros((120, 9))
    for t in range(120):
        for j in rng.choice(8 if t > 60 else 4, 3, replace=False):
            dense[t, j + 1] = rng.standard_normal()
        values = " ".join(f"{j}:{dense[t, j]!r}" for j in np.flatnonzero(dense[t]).tolist())
        lines.append(f"{'+1' if dense[t].sum() > 0.0 else '-1'} {values}")
    path = tmp_path / "r.libsvm"
    path.write_text("\n".join(lines).replace("np.float64(", "").replace(")", "") + "\n")
    job, back, run = learned(path, Settings("label", loss="hinge", rule="svb", missing="zero"))
    assert back.best is not None, back.why
    X, y = replay(job, str(path), Stopper(), None)
    np.testing.assert_array_equal(np.asarray(X.toarray() != 0.0)[:, 1:], dense != 0.0)
    np.testing.assert_array_equal(y, np.where(dense.sum(axis=1) > 0.0, 1.0, -1.0))
    check_order(run, "svb", "hinge")


def test_a_part_of_the_rows_and_moments_of_another_run(tmp_path: Path) -> None:
    path = late(tmp_path / "r.csv")
    first = tmp_path / "first.ovi"
    with Run(Settings("y", rule="svb", missing="zero", end_row=150), Places(str(path), first, bad_rows="skip")) as run:
        run.go(Stopper())
        inputs, width = run.job.state.inputs, run.job.state.inputs.dim
        assert look_back(run.job, str(path), Stopper()).best is not None
    second = Settings("y", rule="svb", missing="zero", first_row=150, end_row=300, prepare_like=str(first))
    job, back, run_of_part = learned(path, second)
    assert back.best is not None, back.why
    X, y = replay(job, str(path), Stopper(), None)
    assert X.shape == (149, width + 1)
    assert len(y) == job.metrics.count
    x = float(path.read_text().splitlines()[151].split(",")[0])
    assert X[0, 1] == ovi.Inputs(fixed=True).update(inputs, [x, *[0.0] * (width - 1)])[1][1]
    check_order(run_of_part, "svb", "logistic")


@pytest.mark.parametrize("classes_by", ["one-vs-rest", "softmax"])
def test_several_classes_have_a_best_fixed_model_and_regret(tmp_path: Path, classes_by: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 2))
    y = (X @ rng.standard_normal((2, 3)) + rng.gumbel(size=(120, 3))).argmax(axis=1)
    path = write(tmp_path / "three.csv", X, ["abc"[code] for code in y])
    job, back, results = learned(path, Settings("y", rule="implicit", classes_by=classes_by, classes="a,b,c"))
    assert back.best is not None
    assert back.total_loss is not None
    rows, labels = replay(job, str(path), Stopper(), None)
    found = ovi.guarantees.hindsight(rows, labels, loss=ovi.Logistic(), classes=3)
    assert back.best.value == pytest.approx(found.value)
    assert back.total_loss[-1] == pytest.approx(120 * found.value)
    assert results.regret is not None
    assert results.regret.observed is not None
    assert results.regret.observed[-1] == pytest.approx(job.metrics.average_loss - found.value)
    if classes_by == "softmax":
        told = certified(job)
        assert told.regret is not None
        assert "of each class against the rest" not in told.sentence
        live = ovi.certificate(job.state)
        assert live.loss - 120 * found.value <= live.against(found.mean.ravel())


def test_where_there_is_none_it_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    path = late(tmp_path / "r.csv", 60)
    job, back, _ = learned(path, Settings("y", rule="implicit"))
    assert back.best is not None
    assert "through a pipe" in look_back(job, "-", Stopper()).why
    assert "labels came late" in learned(path, Settings("y", rule="implicit", delay=3))[1].why
    three = write(tmp_path / "three.csv", [[float(t)] for t in range(30)], ["a", "b", "c"] * 10)
    assert "this loss has none" in learned(three, Settings("y", rule="svb", loss="hinge"))[1].why
    monkeypatch.setattr(module, "MOST_WORK", 100)
    assert "30 rows with 6 weights" in learned(three, Settings("y", rule="implicit"))[1].why
    interrupted = Stopper()
    interrupted(2)
    assert "interrupted" in look_back(job, str(path), interrupted).why
    monkeypatch.setattr(module, "MOST_VALUES", 100)
    assert "--hindsight looks for it all the same" in look_back(job, str(path), Stopper()).why
    assert look_back(job, str(path), Stopper(), any_size=True).best == back.best
    call = ["run", str(path), "--target", "y", "--rule", "implicit", "--bad-rows", "skip", "--json"]
    for more, known, why in (([], False, True), (["--hindsight"], True, False), (["--no-hindsight"], False, False)):
        assert main([*call, *more]) == 0
        told = json.loads(capsys.readouterr().out)
        assert (told["hindsight"] is not None, told["regret"] is not None, told["no_hindsight"] is not None) == (
            known,
            known,
            why,
        )
    assert main([*call, "--hindsight", "--delay", "3"]) == 0
    assert "no best in hindsight: labels came late" in capsys.readouterr().err
    monkeypatch.undo()
    was = path.read_text()
    path.write_text(was.replace("yes", "Yes", 1))
    assert "not those read before" in look_back(job, str(path), Stopper()).why
    path.write_text(was[:-20])
    assert "it was cut" in look_back(job, str(path), Stopper()).why
    path.write_text(was + "1.0,2.0,a,yes\n")
    assert look_back(job, str(path), Stopper()).best == back.best, "a file may have grown since"
    monkeypatch.setattr(job, "first_schema", replace(job.first_schema, features=job.first_schema.features[::-1]))
    path.write_text(was)
    assert "gave other rows" in look_back(job, str(path), Stopper()).why


def test_what_is_known_of_the_regret_is_told_on_the_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    X = np.random.default_rng(6).standard_normal((200, 2))
    path = write(tmp_path / "r.csv", X, words(X[:, 0]))
    for columns in (200, 60):
        monkeypatch.setenv("COLUMNS", str(columns))
        with Run(Settings("y", rule="svb"), Places(str(path))) as run:
            run.go(Stopper(), Ticker(str(path), 0))
        line = capsys.readouterr().err.removeprefix("\r").removesuffix("\x1b[K")
        assert len(line) < columns
        assert ("above the best in hindsight" in line) == (columns == 200)


def test_speed_is_that_of_stretches_and_survives_a_checkpoint(tmp_path: Path) -> None:
    X = np.random.default_rng(7).standard_normal((10, 2))
    job = learned(write(tmp_path / "r.csv", X, words(X[:, 0])), Settings("y", rule="implicit"))[0]
    assert results_of(job).throughput is None, "one batch makes no curve"
    job.clock, job.metrics.totals[0] = Thinned(256, 2), 30_010.0
    job.clock.add(np.array([[10_000.0, 1.0], [20_000.0, 3.0], [30_000.0, 3.5], [30_010.0, 3.9]]))
    save_job(tmp_path / "m.ovi", job)
    again = load_job(tmp_path / "m.ovi")
    assert again.seconds == 3.9
    speed = results_of(again).throughput
    assert speed is not None
    assert (speed.steps, speed.rows_per_second) == ([10_000.0, 20_000.0, 30_000.0], [10_000.0, 5_000.0, 20_000.0])


def test_a_regret_below_zero_has_no_line_on_a_logarithmic_axis() -> None:
    curve = RegretCurve([1.0, 2.0], [2.0, 1.0], [-1.0, 0.0], [200.0, 100.0])
    (drawn,) = charts_of(Results(Head("", "", "", Source("f"), Task("numbers", "y", "")), regret=curve))
    assert [line.name for line in drawn.lines] == ["certified", "theorem"]
    assert "never above 0" in drawn.caption
