"""The quality study without its peers: scores, variants, the progressive protocol, resuming, and tables."""

from dataclasses import replace

import numpy as np
import ours
import peers
import pytest
import quality
import quality_tables
import scores
from ledger import Ledger, Result
from peers import Scored
from scipy import sparse, stats
from study_streams import BLOWN_FACTOR, CORRUPTED_COUNT, VARIANTS, Stream, streams

import onlinevi as ovi
from onlinevi.learners import Forecast
from onlinevi.learners.default import recipe
from onlinevi.runs.metrics import Metrics


def stream(task="regression", rows=300, columns=4):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns)) * [1e3, 1.0, 1e-3, 0.0][:columns] + 5.0
    y = rng.standard_normal(rows)
    labels = {
        "classification": np.where(y > 0, 1.0, -1.0),
        "counts": rng.poisson(1.0, rows).astype(float),
        "classes": rng.integers(0, 3, rows).astype(float),
    }
    return Stream("made", task, X, labels.get(task, y), labels.get(task, y), "")


def answers(prediction, probability=None, lower=None, upper=None, finished=None, note=""):
    parts = [None if part is None else np.asarray(part, dtype=float) for part in (prediction, probability, lower, upper)]
    return Scored(*parts, 1.0, len(prediction) if finished is None else finished, note)


# --- scores


def test_log_loss_and_error_of_hand_made_answers():
    given = Stream("s", "classification", np.zeros((2, 1)), np.array([1.0, -1.0]), np.array([1.0, -1.0]), "")
    found = scores.score(given, answers([1.0, 1.0], [0.8, 0.6]))
    smoothed = -np.log((0.99 * 0.8 + 0.005) * (0.99 * 0.4 + 0.005)) / 2
    assert found == pytest.approx({"log_loss": -np.log(0.8 * 0.4) / 2, "smoothed": smoothed, "error": 0.5, "ece": 0.4})


def test_of_several_classes_the_probability_of_the_right_one_counts():
    given = Stream("s", "classes", np.zeros((2, 1)), np.array([2.0, 0.0]), np.array([2.0, 0.0]), "")
    probability = [[0.1, 0.1, 0.8], [0.4, 0.6, 0.0]]
    smoothed = -np.log((0.99 * 0.8 + 0.01 / 3) * (0.99 * 0.4 + 0.01 / 3)) / 2
    found = scores.score(given, answers([2.0, 1.0], probability))
    assert found == pytest.approx({"log_loss": -np.log(0.8 * 0.4) / 2, "smoothed": smoothed, "error": 0.5, "ece": 0.4})


def test_calibration_is_measured_as_runs_do():
    draw = np.random.default_rng(0)
    y, p = np.where(draw.random(500) < 0.4, 1.0, -1.0), draw.random(500)
    given = Stream("s", "classification", np.zeros((500, 1)), y, y, "")
    metrics = Metrics("classes")
    metrics.add(y, Forecast(p, None, None, None, p, None, None), np.zeros(500))
    found = scores.score(given, answers(np.where(p >= 0.5, 1.0, -1.0), p))["ece"]
    assert found == pytest.approx(metrics.scores.so_far().learner["ece"])
    results = [Result("s", "scaled", "classification", "us", 500, 1.0, "", {"log_loss": 0.5, "ece": 0.0125})]
    assert "1.25%" in quality_tables.calibration(results)
    assert quality_tables.calibration([]) == ""


def test_a_sure_mistake_costs_much_but_not_all():
    assert scores.log_loss(np.array([1.0]), np.array([0.0])) == pytest.approx(-np.log(1e-15))


def test_pinball_is_least_at_the_quantile():
    assert scores.pinball(np.array([0.0, 2.0]), np.array([1.0, 1.0])) == pytest.approx((0.1 + 0.9) / 2)
    y = np.random.default_rng(0).standard_normal(20_001)
    tried = {q: scores.pinball(y, np.full_like(y, np.quantile(y, q))) for q in (0.85, 0.88, 0.9, 0.92, 0.95)}
    assert min(tried, key=tried.get) == 0.9


def test_deviance_is_twice_the_log_likelihood_lost():
    y, rate = np.array([0.0, 1.0, 4.0]), np.array([0.5, 2.0, 3.0])
    lost = stats.poisson.logpmf(y, y) - stats.poisson.logpmf(y, rate)
    assert scores.deviance(y, rate) == pytest.approx(2 * lost.mean())
    assert scores.deviance(y, y) == pytest.approx(0.0, abs=1e-11)


def test_ends_of_an_interval_are_inside():
    y = np.array([0.0, 1.0, 2.0, 3.0])
    found = scores.intervals(y, np.array([0.0, 0.0, 2.5, np.nan]), np.array([1.0, 1.0, 9.0, np.nan]))
    assert found["coverage"] == 0.5


def test_scores_are_against_the_right_labels():
    given = stream()
    corrupted = VARIANTS["corrupted"](given)
    assert scores.score(corrupted, answers(given.y)) == {"mse": 0.0}


def test_what_is_not_finite_has_no_score():
    given = stream()
    assert scores.score(given, answers(np.full_like(given.y, np.nan), note="diverged: not finite from row 0")) == {}


def test_who_is_slow_is_scored_up_to_where_it_was_stopped():
    given = stream()
    prediction = np.where(np.arange(len(given.y)) < 10, given.y + 2.0, np.nan)
    found = scores.score(given, answers(prediction, finished=10, note="too_slow: stopped after 10 of 300 rows"))
    assert found == pytest.approx({"mse": 4.0})


# --- streams


def test_scaled_columns_have_mean_0_and_variance_1_and_constants_stay():
    scaled = VARIANTS["scaled"](stream()).X
    np.testing.assert_allclose(scaled[:, :3].mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(scaled[:, :3].std(axis=0), 1.0)
    assert (scaled[:, 3] == 5.0).all()


@pytest.mark.parametrize("columns", [1, 2, 3, 4])
def test_half_of_few_columns_are_blown(columns):
    base = stream(columns=columns)
    factor = VARIANTS["blown"](base).X[0] / VARIANTS["scaled"](base).X[0]
    assert sorted(factor.round(6)) == sorted([1.0] * (columns // 2) + [BLOWN_FACTOR] * ((columns + 1) // 2))


@pytest.mark.parametrize("task", ["classification", "regression", "quantile", "counts", "classes"])
def test_one_label_in_a_hundred_is_corrupted(task):
    base = stream(task)
    corrupted = VARIANTS["corrupted"](base)
    hit = corrupted.y != base.y
    assert hit.sum() == 3
    assert corrupted.clean is base.clean
    change = corrupted.y[hit] - base.y[hit]
    if task == "classification":
        assert (corrupted.y[hit] == -base.y[hit]).all()
    elif task == "counts":
        assert (change == CORRUPTED_COUNT).all()
    elif task == "classes":
        assert set(corrupted.y) == {0.0, 1.0, 2.0}
    else:
        np.testing.assert_allclose(np.abs(corrupted.y[hit] - base.y.mean()), 10 * base.y.std())


def test_sparse_rows_stay_sparse_in_every_variant():
    base = replace(stream("classification"), X=sparse.csr_array(np.eye(300)[:, :30]))
    for variant in VARIANTS.values():
        assert isinstance(variant(base).X, sparse.csr_array)
    assert set(VARIANTS["blown"](base).X.data) == {1.0, BLOWN_FACTOR}


def test_a_stream_comes_in_every_variant_in_one_order():
    found = list(streams(["toy"]))
    assert [each.variant for each in found] == list(VARIANTS)
    assert all((each.clean == found[0].clean).all() and each.X.shape == found[0].X.shape for each in found)


# --- the progressive protocol, with stubs for peers


class Last:
    """Says the label before; remembers what it was asked, in which order."""

    def __init__(self):
        self.calls, self.last = [], 0.5

    def events(self, given):
        yield from zip(given.X, given.y, strict=True)

    def predict(self, row):
        self.calls.append("predict")
        return (self.last,)

    def learn(self, row, label):
        self.calls.append("learn")
        self.last = label


def failing(error):
    class Failing(Last):
        def learn(self, row, label):
            if len(self.calls) > 10:
                raise error
            super().learn(row, label)

    return Failing


def test_peers_predict_before_they_learn():
    given, peer = stream(), Last()
    scored = peers.progressive(lambda: peer, given)
    assert peer.calls == ["predict", "learn"] * 300
    np.testing.assert_array_equal(scored.prediction, [0.5, *given.y[:-1]])
    assert (scored.finished, scored.note) == (300, "")


@pytest.mark.parametrize("error", [OverflowError("math range error"), ValueError("Input contains infinity")])
def test_a_peer_that_overflows_is_stopped_and_said_to_diverge(error):
    scored = peers.progressive(failing(error), stream())
    assert scored.note.startswith("diverged: stopped at row 5 of 300")
    assert scores.score(stream(), scored) == {}


def test_a_peer_used_wrongly_does_not_pass_for_divergence():
    with pytest.raises(ValueError, match="needs 3 columns"):
        peers.progressive(failing(ValueError("needs 3 columns")), stream())


def test_a_slow_peer_is_stopped(monkeypatch):
    monkeypatch.setattr(peers, "TOO_SLOW", -1.0)
    assert peers.progressive(Last, stream()).note == "too_slow: stopped after 1 of 300 rows"


# --- ours


def test_ours_predicts_as_the_library_does():
    given = stream("classification", rows=60)
    scored = ours.DEFAULT["classification"][ours.OURS](given)
    trace = ovi.auto(given.X, given.y)
    np.testing.assert_allclose(scores.score(given, scored)["log_loss"], trace.average_loss[-1])


def test_a_refused_row_is_said_and_not_scored():
    given = stream("regression", rows=50)

    def refusing(some):
        if len(some.y) < 50:
            return ovi.learn(some.X, some.y, loss=ovi.Squared(), rule=ovi.Implicit())
        labels = np.where(np.arange(50) == 30, np.inf, some.y)
        return ovi.learn(some.X, labels, loss=ovi.Squared(), rule=ovi.Implicit())

    scored = ours.progressive(refusing, given)
    assert scored.note.startswith("diverged: row 30 of 50 refused")
    assert (scored.finished, scores.score(given, scored)) == (30, {})


@pytest.mark.parametrize("loss", ours.LOSSES.values(), ids=ours.LOSSES)
def test_each_variation_takes_out_its_part_and_no_other(loss):
    pool = recipe.pool(recipe.Chosen(loss, "default"), 5)

    def leaves(of):
        if isinstance(of, ovi.Linear):
            return [of]
        return [leaf for own in (of.learners if isinstance(of, ovi.Pool) else [of.inner]) for leaf in leaves(own)]

    without = {name: run.keywords["vary"](pool) for name, run in ours.WITHOUT.items() if "vary" in run.keywords}
    assert all(isinstance(leaf.rule, ovi.NGVI) for leaf in leaves(without["explicit steps"]))
    assert all(isinstance(leaf.family, ovi.MeanField) for leaf in leaves(without["no covariance"]))
    assert {leaf.discount for leaf in leaves(without["no forgetting"])} == {1.0}
    assert len(leaves(without["explicit steps"])) == len(leaves(without["no covariance"])) == len(leaves(pool))
    kept = [leaf for leaf in leaves(pool) if leaf.discount == 1.0]
    assert len(leaves(without["no forgetting"])) == len(kept) < len(leaves(pool))
    maps = {type(own.map) for own in pool.learners if isinstance(own, ovi.Expand)}
    assert without["no maps"].learners == tuple(recipe.linear(recipe.Chosen(loss, "default"), 5))
    for name, kind in {"splines": ovi.Splines, "products": ovi.Products, "hinges": ovi.Relu, "waves": ovi.Fourier}.items():
        assert {type(own.map) for own in without[f"no {name}"].learners if isinstance(own, ovi.Expand)} == maps - {kind}
    if isinstance(loss, ovi.Squared):
        assert all(leaf.loss.robust is not None for leaf in leaves(pool))
        plain = ours.NOT_ROBUST["not robust"].keywords["vary"](pool)
        assert all(leaf.loss.robust is None for leaf in leaves(plain))
        assert "Clip" not in repr(ours.NOT_ROBUST["not clipped"].keywords["vary"](pool))
        assert "Clip" in repr(pool)


@pytest.mark.compiled
def test_what_is_not_recalibrated_is_the_pool_alone():
    given = stream("classification", rows=60)
    bare = ours.NOT_RECALIBRATED["not recalibrated"](given)
    assert isinstance(bare.state.inner, ovi.learners.PoolState)
    assert np.isfinite(bare.prediction).all()


# --- resuming


def result(entrant, mse, stream="s", variant="raw", task="regression", note="", **more):
    return Result(stream, variant, task, entrant, 100, 0.5, note, {} if mse is None else {"mse": mse} | more)


def test_a_ledger_keeps_what_it_is_told_and_the_last_word_counts(tmp_path):
    path = tmp_path / "new" / "results.jsonl"
    ledger = Ledger(path)
    for told in (result("a", 1.0), result("b", 2.0), result("a", 3.0)):
        ledger.add(told)
    assert list(Ledger(path)) == list(ledger) == [result("a", 3.0), result("b", 2.0)]
    ledger.forget({result("a", 0.0).key})
    assert list(Ledger(path)) == [result("b", 2.0)]


def test_a_line_cut_off_is_measured_again(tmp_path):
    path = tmp_path / "results.jsonl"
    Ledger(path).add(result("a", 1.0))
    with path.open("a") as file:
        file.write('{"stream": "s", "vari')
    ledger = Ledger(path)
    assert list(ledger) == [result("a", 1.0)]
    ledger.add(result("b", 2.0))
    assert list(Ledger(path)) == [result("a", 1.0), result("b", 2.0)]


def test_an_interrupted_study_goes_on_where_it_stopped(tmp_path):
    given, runs = replace(stream(), variant="raw"), []

    def entrant(name, stop=False):
        def run(some):
            runs.append(name)
            if stop:
                raise KeyboardInterrupt
            return answers(some.y)

        return run

    path = tmp_path / "results.jsonl"
    with pytest.raises(KeyboardInterrupt):
        quality.measure(Ledger(path), [given], {"regression": {"a": entrant("a"), "b": entrant("b", stop=True)}})
    quality.measure(Ledger(path), [given], {"regression": {"a": entrant("a"), "b": entrant("b"), "c": entrant("c")}})
    assert runs == ["a", "b", "b", "c"]
    assert [each.entrant for each in Ledger(path)] == ["a", "b", "c"]


def test_a_name_that_nobody_has_is_refused(capsys):
    with pytest.raises(SystemExit, match="no name begins so; there are onlinevi"):
        quality.main(["--peers", "Nobody"])
    with pytest.raises(SystemExit):
        quality.main(["--streams", "nowhere"])
    assert "nowhere: there are breast, pima" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        quality.main(["--streams", "bananas"])
    assert "held out; add --held-out" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        quality.main(["--streams", "magic"])
    assert "it is in the other study, with --bent" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        quality.main(["--bent", "--ablation"])
    assert "leave --bent out" in capsys.readouterr().err


# --- tables

PEERS = {task: ["p", "q"] for task in quality_tables.TITLES}


def verdict(ours, p, q):
    every = [result("us", ours), p, q]
    return quality_tables.pairs([each for each in every if each], "us", PEERS)


@pytest.mark.parametrize(("mse", "says"), [(1.0, "best"), (2.0, "best"), (2.019, "within 1%"), (2.021, "loses")])
def test_verdicts(mse, says):
    (pair,) = verdict(mse, result("p", 2.0), result("q", 3.0))
    assert (pair.verdict, pair.best.entrant, pair.holds, pair.missing) == (says, "p", says != "loses", 0)


def test_who_diverged_is_beaten_and_who_was_slow_is_not_compared():
    slow = result("q", 0.1, note="too_slow: stopped after 5 of 100 rows")
    (pair,) = verdict(1.0, result("p", None, note="diverged"), result("q", 2.0))
    assert (pair.best.entrant, pair.missing) == ("q", 0)
    (pair,) = verdict(1.0, result("p", 2.0), slow)
    assert (pair.best.entrant, pair.missing) == ("p", 1)
    (pair,) = verdict(None, result("p", 2.0), None)
    assert (pair.verdict, pair.missing) == ("loses", 1)
    assert verdict(1.0, None, None) == []


def test_the_report_says_where_it_loses_and_how_often():
    results = [result("us", 1.0), result("p", 2.0), result("q", 3.0, coverage=0.5, width=2.0)]
    results += [result("us", 4.0, "t"), result("p", 2.0, "t"), result("q", 3.0, "t"), result("other", 0.0)]
    text = quality_tables.report(results, "us", PEERS)
    assert "| s | raw | 1 | 2 | p | 0.500 | best |" in text
    assert "| all | 2 | 1 | 1 | 50% |" in text
    assert "| t | raw | 4 | p 2; q 3 |" in text
    assert "| s | q | 50.0%, 2 |" in text


def test_a_comparison_counts_pairs_and_says_nothing_of_none():
    results = [result("us", 1.0), result("p", 2.0), result("us", 2.01, "t"), result("p", 2.0, "t")]
    text = quality_tables.comparison("### Others", results, "us", PEERS)
    assert "| t | raw | 2.01 | 2 | p (1 not compared) | 1.005 | within 1% |" in text
    assert "Best on 1 of 2 pairs; best or within 1% on 2." in text
    assert quality_tables.comparison("### Others", [], "us", PEERS) == ""


def test_ablation_says_which_row_was_refused():
    results = [result("one", None, note="diverged: row 7 of 100 refused: too large"), result("us", 1.0), result("two", 3.0)]
    text = quality_tables.ablation(results, "us", ["one", "two"], ["three"])
    assert "| s | raw | refused row 7 | 3 | 1 |" in text
    assert "| s | raw | 1 | 3 |  |" in text


def test_tables_are_put_between_the_marks_and_nowhere_else(tmp_path):
    path = tmp_path / "page.md"
    begin, end = quality_tables.marks(quality_tables.SECTION)
    path.write_text(f"before\n{begin}\nold\n{end}\nafter\n")
    ledger = Ledger(tmp_path / "results.jsonl")
    for told in (result(ours.OURS, 1.0, "toy"), result("VW", 2.0, "toy")):
        ledger.add(told)
    for _ in range(2):
        quality.main(["--write", str(path), "--out", str(tmp_path), "--printed", str(tmp_path)])
        text = path.read_text()
        assert text.startswith(f"before\n{begin}\n")
        assert text.endswith(f"\n{end}\nafter\n")
        assert "old" not in text
        assert text.count("| toy | raw | 1 | 2 | VW (8 not compared) | 0.500 | best |") == 1
    path.write_text("no marks")
    with pytest.raises(ValueError, match="needs the lines"):
        quality.main(["--write", str(path), "--out", str(tmp_path), "--printed", str(tmp_path)])
