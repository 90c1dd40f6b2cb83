"""River's interface: its own checks, exactness in blocks and as features and classes join, and dicts of all kinds."""

from __future__ import annotations

import copy
import math
import pickle
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice, permutations
from typing import Any

import numpy as np
import pytest
from helpers.states import same_bits

import onlinevi as ovi

pytest.importorskip("river")
pd = pytest.importorskip("pandas")

from river import checks, compose, datasets, evaluate, metrics, preprocessing  # noqa: E402

from onlinevi.river import OnlineVIClassifier, OnlineVIRegressor  # noqa: E402

RNG = np.random.default_rng(0)
FEATURES = ("a", "b", "c")
ROWS = (RNG.standard_normal((120, 3)) * [1.0, 1e4, 1e-3] + [5.0, 0.0, 1.0]).tolist()
DICTS = [dict(zip(FEATURES, row, strict=True)) for row in ROWS]
BOOLS = (np.array(ROWS) @ [1.0, 1e-4, 0.0] > 5.0).tolist()
NUMBERS = (1e6 + np.array(ROWS) @ [3e5, -20.0, 1e8] + 1e5 * RNG.standard_normal(120)).tolist()
KINDS = [("one", "two", "three")[(x["a"] > 5.0) + (x["b"] > 0.0)] for x in DICTS]
INPUTS = ovi.Inputs(missing=True)
NGVI, IMPLICIT = ovi.NGVI(), ovi.Implicit(rate=0.5)
FILLED: dict[str, Any] = {"inputs": ovi.Inputs(), "absent": "zero"}  # kernels that other tests have compiled


def learned(model: Any, rows: Any, labels: Any) -> Any:
    for x, y in zip(rows, labels, strict=True):
        model.learn_one(x, y)
    return model


def same(first: Any, second: Any) -> bool:
    """Equal to the bit: the states, the scales and the names."""
    return bool(
        same_bits(first._buffer.state, second._buffer.state) and first.scales == second.scales and first.names == second.names
    )


@pytest.mark.filterwarnings("default")  # River's own data sets warn
@pytest.mark.parametrize(
    ("model", "rows", "long"),
    [
        (OnlineVIClassifier(rule=NGVI), 60, 200),
        (OnlineVIRegressor(rule=IMPLICIT), 60, 200),
        pytest.param(OnlineVIClassifier(), 20, 60, marks=pytest.mark.compiled),
        pytest.param(OnlineVIRegressor(), 20, 60, marks=pytest.mark.compiled),
    ],
)
def test_rivers_own_checks(model: Any, rows: int, long: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the first rows of River's 200, and on more where memory is measured."""
    whole = checks._yield_datasets

    def begins(model: Any, **scale: int) -> Iterator[Any]:  # older versions of River have no scale
        return (islice(events, long if scale else rows) for events in whole(model, **scale))

    monkeypatch.setattr(checks, "_yield_datasets", begins)
    checks.check_estimator(model)


def by_hand(learner: ovi.Linear, rows: Any, labels: Any) -> tuple[ovi.State, Any]:
    """The same events through ``Inputs`` and ``Linear``, whose states are values."""
    _, Z = INPUTS.update_many(INPUTS.init(len(rows[0])), rows)
    return learner.update_many(learner.init(INPUTS.dim_out(len(rows[0]))), Z, labels)


def test_it_is_inputs_and_linear_to_the_bit() -> None:
    model = OnlineVIClassifier(rule=ovi.Implicit(), family=ovi.FullCovariance())
    learner = ovi.Linear(ovi.Logistic(), ovi.Implicit(), ovi.FullCovariance(), average=False, missing=True)
    state, trace = by_hand(learner, ROWS, np.where(BOOLS, 1.0, -1.0))
    for x, y, a, v in zip(DICTS, BOOLS, trace.prediction, trace.spread, strict=True):
        said = model.predict_proba_one(x)
        if said:
            assert said[True] == pytest.approx(float(ovi.Logistic().probability(a, v)), rel=1e-12)
        model.learn_one(x, y)
    assert model.states[True] == state


def test_predicting_changes_nothing() -> None:
    quiet = learned(OnlineVIRegressor(rule=IMPLICIT), DICTS, NUMBERS)
    asked = OnlineVIRegressor(rule=IMPLICIT)
    for x, other, y in zip(DICTS, DICTS[::-1], NUMBERS, strict=True):
        asked.predict_one({**other, "new": 1.0, "word": "w"})
        asked.predict_one(x)
        asked.predict_one({"b": None})
        asked.predict_one(x)
        asked.learn_one(x, y)
    assert same(quiet, asked)


def test_a_dict_changed_after_its_prediction_is_learned_as_it_is() -> None:
    model, plain = OnlineVIRegressor(rule=IMPLICIT), learned(OnlineVIRegressor(rule=IMPLICIT), DICTS, NUMBERS)
    for row, y in zip(ROWS, NUMBERS, strict=True):
        x = dict.fromkeys(FEATURES, 7.0)
        model.predict_one(x)
        x.update(zip(FEATURES, row, strict=True))
        model.learn_one(x, y)
    assert same(model, plain)


@pytest.mark.parametrize(
    ("make", "labels", "rule"),
    [(OnlineVIClassifier, BOOLS, NGVI), (OnlineVIClassifier, KINDS, NGVI), (OnlineVIRegressor, NUMBERS, IMPLICIT)],
)
def test_learn_many_is_learn_one_to_the_bit(make: Any, labels: Any, rule: ovi.Rule) -> None:
    one, many = learned(make(rule=rule), DICTS, labels), make(rule=rule)
    for start in range(0, 120, 50):
        many.learn_many(pd.DataFrame(DICTS[start : start + 50]), pd.Series(labels[start : start + 50]))
    assert same(one, many)
    X = pd.DataFrame(DICTS[:5], index=list("vwxyz"))
    assert many.predict_many(X).to_dict() == {i: one.predict_one(x) for i, x in zip("vwxyz", DICTS, strict=False)}


def test_the_order_of_a_dict_and_the_kind_of_its_numbers_do_not_matter() -> None:
    rows = [{"a": float(i % 5), "b": float(i % 2)} for i in range(40)]
    others = [{"b": bool(i % 2), "a": np.int64(i % 5)} if i % 3 else {"a": i % 5, "b": np.float32(i % 2)} for i in range(40)]
    one, other = learned(OnlineVIRegressor(rule=IMPLICIT), rows, range(40)), OnlineVIRegressor(rule=IMPLICIT)
    assert same(one, learned(other, others, range(40)))
    for names in permutations(["b", "a", 2, (1,), (None,)]):  # some have no order among themselves
        assert learned(OnlineVIRegressor(rule=IMPLICIT), [dict.fromkeys(names, 1.0)], [1]).names == [
            "a",
            "b",
            (1,),
            (None,),
            2,
        ]


def test_a_class_that_comes_late_was_known_from_the_start() -> None:
    model = learned(OnlineVIClassifier(rule=NGVI), DICTS, KINDS)
    learner = model._learner.inner
    for kind in set(KINDS):
        state, _ = by_hand(learner, ROWS, np.where(np.array(KINDS) == kind, 1.0, -1.0))
        assert model.states[kind] == state
    said = model.predict_proba_one(DICTS[0])
    assert list(said) == model.classes
    assert sum(said.values()) == pytest.approx(1.0, abs=1e-12)


def test_zeros_that_were_left_out_are_zeros() -> None:
    """With absent="zero" features may join at any time: all is as if they had been there, as 0."""
    ranks = {word: f"w{k:02}" for k, word in enumerate(dict.fromkeys(word for x in WORDS for word in sorted(x) if x[word]))}
    words = [{ranks[word]: count for word, count in x.items() if word in ranks} for x in WORDS]  # in the order of their names
    rows = [{word: count for word, count in x.items() if count} for x in words]
    sparse, full = (learned(OnlineVIClassifier(rule=NGVI, absent="zero"), events, BOOLS) for events in (rows, words))
    assert sparse.names == full.names
    assert sparse.scales == full.scales
    assert np.allclose(sparse.states[True].array, full.states[True].array, rtol=1e-12, atol=1e-12)  # sums of other lengths


WORDS = [{f"w{j}": int(count) for j, count in enumerate(row)} for row in RNG.poisson(0.2, (120, 12))]


def test_a_category_is_columns_of_0_and_1_from_the_start() -> None:
    colours = [("red", "red", "blue", "green")[i % 4] if i < 20 or i % 5 else None for i in range(120)]
    model = learned(OnlineVIClassifier(rule=NGVI), [{"a": x["a"], "k": k} for x, k in zip(DICTS, colours, strict=True)], BOOLS)
    assert model.names == ["a", "k=red", "k=blue", "k=green"]
    columns = [[float(k == colour) if k else math.nan for colour in ("red", "blue", "green")] for k in colours]
    rows = [[x["a"], *column] for x, column in zip(DICTS, columns, strict=True)]
    scales, _ = INPUTS.update_many(INPUTS.init(4), rows)
    assert model.scales == scales
    # None hides every column of its category, and an unknown value is none of those known.
    unsure, unknown = (abs(model.predict_proba_one({"a": 9.0, "k": k})[True] - 0.5) for k in (None, "mauve"))
    assert unsure < unknown


def test_what_is_absent_adds_nothing_and_learns_nothing() -> None:
    model = learned(OnlineVIRegressor(rule=IMPLICIT), DICTS, NUMBERS)
    before = model.state
    model.learn_one({"a": 5.5, "b": 100.0}, NUMBERS[0])
    assert model.scales.counts.tolist() == [121.0, 121.0, 120.0]
    assert (before.mean != model.state.mean).tolist() == [True, True, True, False]
    assert (before.std != model.state.std).tolist() == [True, True, True, False]
    # The prediction is that of a feature at its mean, but for the row's own part in the mean.
    absent, mean = model.predict_one({"a": 5.5, "b": 100.0}), {"a": 5.5, "b": 100.0, "c": float(model.scales.mean[2])}
    assert absent == pytest.approx(model.predict_one(mean), rel=1e-9)


def test_a_missing_value_makes_unsure_and_an_absent_one_does_not() -> None:
    model = learned(OnlineVIClassifier(rule=NGVI), [{"a": x["a"], "b": x["b"]} for x in DICTS], BOOLS)
    absent, missing, nan = ({"a": 9.0}, {"a": 9.0, "b": None}, {"a": 9.0, "b": math.nan})
    assert model.predict_proba_one(missing) == model.predict_proba_one(nan)
    assert 0.5 < model.predict_proba_one(missing)[True] < model.predict_proba_one(absent)[True]


def test_the_unit_of_the_label_does_not_matter() -> None:
    units = [learned(OnlineVIRegressor(rule=IMPLICIT), DICTS, [scale * y for y in NUMBERS]) for scale in (1.0, 2.0**-30)]
    first, second = (model.predict_one(DICTS[0]) for model in units)
    assert first == pytest.approx(second * 2.0**30, rel=1e-9)


def test_losses_of_other_labels() -> None:
    counts = [int(3 + (x["a"] > 5.0)) for x in DICTS]
    poisson = learned(OnlineVIRegressor(loss=ovi.Poisson(), rule=ovi.Implicit(), **FILLED), DICTS, counts)
    assert 2.5 < poisson.predict_one(DICTS[0]) < 4.5
    hinge = learned(OnlineVIClassifier(loss="hinge", rule=NGVI, **FILLED), DICTS, BOOLS)
    assert np.mean([hinge.predict_one(x) == y for x, y in zip(DICTS, BOOLS, strict=True)]) > 0.9


def test_a_hinge_loss_of_several_classes_has_scores_alone() -> None:
    model = OnlineVIClassifier(loss=ovi.Hinge(), rule="ngvi")
    assert model.predict_one(DICTS[0]) is None
    learned(model, DICTS, KINDS)
    learner = ovi.OneVsRest(model._learner, 3)
    codes = [model.classes.index(kind) for kind in KINDS]
    state, _ = learner.update_many(learner.init(3), ROWS, codes)
    guesses = [model.classes[code] for code in learner.forecast(state, np.array(ROWS)).guess]
    assert [model.predict_one(x) for x in DICTS] == guesses == model.predict_many(pd.DataFrame(DICTS)).tolist()
    with pytest.raises(NotImplementedError, match="no probabilities of several classes"):
        model.predict_proba_one(DICTS[0])


def test_names_stand_for_objects() -> None:
    named = OnlineVIClassifier("logistic", "svb", ovi.MeanField(), **FILLED)
    given = OnlineVIClassifier(ovi.Logistic(), ovi.SVB(), ovi.MeanField(), **FILLED)
    assert same(learned(named, DICTS[:20], BOOLS[:20]), learned(given, DICTS[:20], BOOLS[:20]))
    assert OnlineVIRegressor("absolute", "oga")._learner.inner == ovi.Linear(
        ovi.Absolute(), ovi.OGA(ovi.PerSqrt(1.0)), ovi.Point(), average=False, missing=True
    )


def test_auto_behind_it() -> None:
    X = np.array(ROWS[:30])
    model = learned(OnlineVIRegressor(**FILLED), DICTS[:30], NUMBERS[:30])
    learner = ovi.Auto(loss=ovi.Squared())
    state, _ = learner.update_many(learner.init(3), X, NUMBERS[:30])
    assert same_bits(model._buffer.state, state)
    assert model.predict_one(DICTS[70]) == learner.forecast(state, ROWS[70]).mean
    model.learn_one({"a": 1.0, "new": "word"}, 1e6)
    assert model.state.count == 31
    assert model.names == [*FEATURES, "new=word"]
    kinds = learned(OnlineVIClassifier(**FILLED), DICTS[:8], KINDS[:8])
    assert sum(kinds.predict_proba_one(DICTS[0]).values()) == pytest.approx(1.0, abs=1e-12)


def test_the_last_labels_are_columns_where_asked_for() -> None:
    """To the bit what ``Auto`` makes of them; of several classes each has its own."""
    drifting, settings = np.cumsum(np.array(NUMBERS[:25]) - 1e6).tolist(), {**FILLED, "effort": "light", "lags": 2}
    model, learner = OnlineVIRegressor(**settings), ovi.Auto(loss=ovi.Squared(), effort="light", lags=2)
    learned(model, DICTS[:25], drifting)
    state, _ = learner.update_many(learner.init(3), np.array(ROWS[:25]), drifting)
    assert same_bits(model._buffer.state, state)
    assert model.predict_one(DICTS[70]) == learner.forecast(state, ROWS[70]).mean
    assert set(learned(OnlineVIClassifier(**settings), DICTS[:8], KINDS[:8]).predict_proba_one(DICTS[0])) == set(KINDS[:8])
    with pytest.raises(ValueError, match="lags=2: labels of several classes are no columns"):
        OnlineVIClassifier(lags=2, classes_by="softmax")
    with pytest.raises(ValueError, match=r'lags=2: the default takes past labels .* take rule="auto"'):
        OnlineVIRegressor(rule="implicit", lags=2)


@pytest.mark.compiled
def test_its_default_is_the_default() -> None:
    """On River's own data: two classes as ``ovi.auto`` learns them, seven as the default for several."""
    dicts, labels = zip(*datasets.Phishing(), strict=True)
    model, paid = OnlineVIClassifier(), []
    for x, y in zip(dicts, labels, strict=True):
        said = model.predict_proba_one(x)
        paid.append(-math.log(said[y]) if said else math.log(2.0))
        model.learn_one(x, y)
    X = np.array([[x[name] for name in model.names] for x in dicts], dtype=float)
    trace = ovi.auto(X, np.where(labels, 1.0, -1.0), inputs=INPUTS)
    np.testing.assert_allclose(paid, trace.loss, rtol=1e-9)
    assert same_bits(model._buffer.state, trace.state)
    assert np.mean(paid) < 0.25  # a single rule: 0.26; River's scaled logistic regression: 0.33

    dicts, labels = zip(*datasets.ImageSegments().take(150), strict=True)
    several = learned(OnlineVIClassifier(), dicts, labels)
    X = np.array([[x[name] for name in several.names] for x in dicts], dtype=float)
    learner = ovi.Auto(inputs=INPUTS, known=0)
    state, _ = learner.update_many(learner.init(X.shape[1]), X, [several.classes.index(y) for y in labels])
    assert same_bits(several._buffer.state, state)
    said = several.predict_proba_one(dicts[0])
    np.testing.assert_allclose(list(said.values()), learner.forecast(state, X[0]).probability, rtol=1e-9)


def test_copies_and_pickles_go_on_alike_and_apart() -> None:
    model = learned(OnlineVIClassifier(rule=NGVI), DICTS[:60], KINDS[:60])
    twins = copy.deepcopy(model), pickle.loads(pickle.dumps(model))
    learned(model, DICTS[60:], KINDS[60:])
    assert not same(model, twins[0])
    for twin in twins:
        assert same(model, learned(twin, DICTS[60:], KINDS[60:]))


def test_a_refused_event_leaves_no_trace() -> None:
    model = learned(OnlineVIRegressor(rule=IMPLICIT), DICTS, NUMBERS)
    before = pickle.dumps(model)
    with pytest.raises(ovi.BadRow, match="row 120: feature 'b' is inf"):
        model.learn_one({"a": 1.0, "b": math.inf, "c": 0.0}, 1.0)
    with pytest.raises(ovi.BadRow, match="label nan"):
        model.learn_one(DICTS[0], math.nan)
    with pytest.raises(ovi.BadRow, match="overflow"):
        model.learn_one(DICTS[0], 1e200)
    with pytest.raises(TypeError, match=r"feature 'a' is \[1\]: needs a number"):
        model.learn_one({"new": 1.0, "a": [1]}, 1.0)
    with pytest.raises(ovi.BadRow, match="feature 'c' is inf"):
        model.predict_one({"c": math.inf})
    assert pickle.dumps(model) == before
    with pytest.raises(ovi.BadRow, match="row 1: feature 'a' is inf"):
        model.learn_many(pd.DataFrame([DICTS[0], {**DICTS[0], "a": math.inf}]), pd.Series(NUMBERS[:2]))
    with pytest.raises(TypeError, match="label 'much': Squared needs a finite number"):
        model.learn_one(DICTS[0], "much")
    kinds = learned(OnlineVIClassifier(rule=NGVI), DICTS, BOOLS)
    with pytest.raises(TypeError, match="label 'maybe' after bools"):
        kinds.learn_one(DICTS[0], "maybe")


def test_a_refused_event_brings_neither_features_nor_classes() -> None:
    model = OnlineVIClassifier(rule=NGVI)
    for label in (True, "one"):
        with pytest.raises(ovi.BadRow, match="row 0: feature 'new' is inf"):
            model.learn_one({"new": math.inf}, label)
    assert (model.classes, model.names, model.states, model.predict_proba_one(DICTS[0])) == ([], [], {}, {})
    learned(model, DICTS[:30], KINDS[:30])
    before = pickle.dumps(model)
    with pytest.raises(ovi.BadRow, match="row 30: feature 'new' is inf"):
        model.learn_one({**DICTS[0], "new": math.inf}, "four")
    with pytest.raises(ovi.BadRow, match="row 30: feature 'b' is -inf"):
        model.learn_one({**DICTS[0], "b": -math.inf}, "four")
    with pytest.raises(ValueError, match="label None: needs a class"):
        model.learn_one(DICTS[0], None)
    assert pickle.dumps(model) == before
    model.learn_one(DICTS[30], "four")
    assert model.classes[-1] == "four"


def test_an_event_without_features_teaches_the_intercept() -> None:
    model = learned(OnlineVIRegressor(rule=IMPLICIT), [{}, {}, DICTS[0]], [3.0, 3.0, 3.0])
    assert (model.names, model.scales.count, model.state.count) == (list(FEATURES), 3, 3)
    assert model.predict_one({}) == pytest.approx(3.0, abs=0.5)


@pytest.mark.parametrize("nothing", [{}, {"a": None, "b": float("nan")}])
@pytest.mark.parametrize("absent", ["skip", "zero"])
def test_the_default_learns_events_before_any_feature_when_there_is_one(nothing: Any, absent: Any) -> None:
    """As if the columns had been there, and nothing had been said of them."""
    labels, rest = ["x", "y", "x", "z"], [{"a": 1.0, "b": 0.0}, {"a": -1.0, "b": 2.0}]
    model = OnlineVIClassifier(effort="light", absent=absent)
    for label in labels:
        model.learn_one(nothing, label)
    before = pickle.dumps(model)
    with pytest.raises(TypeError, match="needs a number"):
        model.learn_one({"a": []}, "x")
    assert pickle.dumps(model) == before
    learned(pickle.loads(before), rest, ["x", "y"])
    learned(model, rest, ["x", "y"])
    auto = ovi.Auto(inputs=ovi.Inputs(missing=True), effort="light", known=0, grows=True)
    early = np.full((4, 2), 0.0 if absent == "zero" else np.nan)
    X = np.concatenate([early, [list(x.values()) for x in rest]])
    state, _ = auto.update_many(auto.init(2), X, np.array([0.0, 1.0, 0.0, 2.0, 0.0, 1.0]))
    said = auto.forecast(state, X[-1]).probability
    assert list(model.predict_proba_one(rest[-1]).values()) == said.tolist()
    regressor = OnlineVIRegressor(effort="light")
    assert regressor.predict_one({}) == 0.0
    learned(regressor, [{}, {}, {"a": 1.0}], [3.0, 3.0, 3.0])
    assert regressor.scales.count == 3


def test_a_feature_that_cannot_join_is_refused_and_forgotten() -> None:
    """A ridge would have moved the new weight at every event: the state refuses, and the columns must not go ahead of it."""
    model = learned(OnlineVIRegressor(loss=ovi.Squared(ridge=0.1), rule=ovi.NGVI(step=0.1)), DICTS[:9], range(9))
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="ridge"):
        model.learn_one({**DICTS[0], "new": 1.0}, 1.0)
    assert pickle.dumps(model) == before
    model.learn_one(DICTS[9], 1.0)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"rule": "best"}, "rule='best': needs one of 'auto', "),
        ({"loss": "hinge"}, "loss='hinge': needs one of 'absolute', "),
        ({"discount": 0.9}, "leave them out, or give a rule"),
        ({"family": ovi.FullCovariance()}, "leave them out, or give a rule"),
        ({"absent": "mean"}, '"skip"'),
        ({"inputs": ovi.Inputs()}, 'absent="zero"'),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        OnlineVIRegressor(**settings)


def test_a_loss_of_another_task_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Hinge.*: this estimator needs one of .*squared"):
        OnlineVIRegressor(ovi.Hinge())
    with pytest.raises(TypeError, match=r"Squared.*: this estimator needs one of .*logistic"):
        OnlineVIClassifier(ovi.Squared())


def test_in_a_pipeline_under_evaluation() -> None:
    model = compose.Pipeline(compose.Discard("is_popular"), preprocessing.MinMaxScaler(), OnlineVIClassifier(rule=NGVI))
    assert evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy()).get() > 0.87
    score = evaluate.progressive_val_score(datasets.Phishing(), OnlineVIClassifier(rule=NGVI), metrics.LogLoss()).get()
    assert score < 0.27  # River's scaled logistic regression: 0.33


def test_without_river_it_says_what_to_install() -> None:
    code = "import sys, onlinevi; sys.modules['river'] = None; import onlinevi.river"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert 'ImportError: onlinevi.river needs River: pip install "onlinevi[river]"' in done.stderr


@pytest.mark.parametrize("bools", [True, False])
def test_sets_hold_the_class_as_often_as_asked(bools: bool) -> None:
    draw = np.random.default_rng(0)
    model, plain, held = OnlineVIClassifier(rule="implicit", coverage=0.8), OnlineVIClassifier(rule="implicit"), 0
    for x in draw.standard_normal((400, 2)).tolist():
        row, label = {"a": x[0], "b": x[1]}, bool(x[0] > x[1]) if bools else "xyz"[int(x[0] > 0.0) + int(x[1] > 0.5)]
        if draw.random() < 0.2:
            label = (not label) if bools else "x"
        held += label in model.predict_set_one(row)
        model.learn_one(row, label)
        plain.learn_one(row, label)
    assert held / 400 == pytest.approx(0.8, abs=0.05)
    assert model.predict_proba_one(row) == pytest.approx(plain.predict_proba_one(row))
    again = pickle.loads(pickle.dumps(model))
    assert again.predict_set_one(row) == model.predict_set_one(row)
    with pytest.raises(ValueError, match="coverage=None"):
        plain.predict_set_one(row)
    with pytest.raises(ValueError, match="no probabilities to make sets of"):
        OnlineVIClassifier("hinge", rule="implicit", coverage=0.9)


def test_classes_by_one_posterior() -> None:
    rng = np.random.default_rng(0)
    model = OnlineVIClassifier(rule="implicit", classes_by="softmax")
    right = 0
    for k in range(120):
        kind = ("low", "mid", "high")[int(rng.integers(3 if k > 30 else 2))]
        x = {"size": {"low": -2.0, "mid": 0.0, "high": 2.0}[kind] + 0.3 * rng.standard_normal()}
        right += model.predict_one(x) == kind
        model.learn_one(x, kind)
    assert model.classes[-1] == "high"
    assert right > 90
    assert sum(model.predict_proba_one({"size": 0.1}).values()) == pytest.approx(1.0)
    assert set(model.states) == {"low", "mid", "high"}
    again = pickle.loads(pickle.dumps(model))
    assert again.predict_proba_one({"size": 1.0}) == model.predict_proba_one({"size": 1.0})
    with pytest.raises(ValueError, match="use 'auto' or 'implicit'"):
        OnlineVIClassifier(rule="ngvi", classes_by="softmax")
