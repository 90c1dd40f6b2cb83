"""The peers of the study on streams that bend: forests, trees, neighbours and a network beside linear models.

As in ``peers.py`` each has its documented defaults. Random numbers have a fixed seed. What measures distances, or takes steps
as trees of numbers do in their leaves, has a scaler in front; trees of classes take columns as they are. A Mondrian forest
splits long ranges first: River's manual scales its columns to the range so far for numbers, for classes not at all, so that
a second entry standardises them. Two baselines look at no column.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from peers import STARTED, Peer, River, ScikitLearn, Scored, VowpalWabbit, progressive
from scipy import special
from study_streams import SEED, Stream, peer_package

LIMIT = 60.0
"""Seconds of processor time, after which a peer is stopped."""
LONGER = 120.0
PATIENTLY = ("River ARF", "River AMF", "River AMF, standardised")
"""Who gets as long as that."""
STANDARD = "StandardScaler"


class Constant:
    """How often each class was right so far, with one more of each, or the mean of the numbers so far."""

    def events(self, stream: Stream) -> Iterator[tuple[None, int | float]]:
        self.is_classifier, self.is_binary = stream.task != "regression", stream.task == "classification"
        self.counts, self.mean, self.seen = np.ones(stream.classes if self.is_classifier else 0), 0.0, 0
        labels = (stream.y > 0 if self.is_binary else stream.y).tolist()
        for label in labels:
            yield None, int(label) if self.is_classifier else label

    def predict(self, row: None) -> tuple[float, ...]:
        if not self.is_classifier:
            return (self.mean,)
        shares = self.counts / self.counts.sum()
        return (shares[1],) if self.is_binary else tuple(shares)

    def learn(self, row: None, label: int | float) -> None:
        if self.is_classifier:
            self.counts[int(label)] += 1.0
        self.seen += 1
        self.mean += (label - self.mean) / self.seen


class LastLabel(Constant):
    """The last label once more. Of classes it says how often that was right so far; the others share what is left."""

    def events(self, stream: Stream) -> Iterator[tuple[None, int | float]]:
        self.last: int | float | None = None
        self.same, self.pairs = 0, 0
        yield from super().events(stream)

    def predict(self, row: None) -> tuple[float, ...]:
        if not self.is_classifier:
            return (0.0 if self.last is None else self.last,)
        classes = len(self.counts)
        again = (self.same + 1) / (self.pairs + classes)
        shares = np.full(classes, 1.0 / classes if self.last is None else (1.0 - again) / (classes - 1))
        if self.last is not None:
            shares[int(self.last)] = again
        return (shares[1],) if self.is_binary else tuple(shares)

    def learn(self, row: None, label: int | float) -> None:
        if self.last is not None:
            self.same, self.pairs = self.same + (label == self.last), self.pairs + 1
        self.last = label


class RiverModel(River):
    """Any model of River. Classes that it has not seen have the probability 0, and all the same one while it says nothing."""

    def __init__(self, make: Callable[[], Any], scaler: str | None = None) -> None:
        model = make()
        self.is_classifier = hasattr(model, "predict_proba_one")
        self.model = model if scaler is None else getattr(peer_package("river.preprocessing"), scaler)() | model
        self.has_distribution = False

    def events(self, stream: Stream) -> Iterator[tuple[dict[int, float], bool | float]]:
        several = stream.task == "classes"
        self.labels: list[bool | int] = list(range(stream.classes)) if several else [False, True]
        numbers = stream.y.astype(int).tolist()
        for (row, label), number in zip(super().events(stream), numbers, strict=True):
            yield row, number if several else label

    def predict(self, row: dict[int, float]) -> tuple[float, ...]:
        if not self.is_classifier:
            return (self.model.predict_one(row) or 0.0,)
        said = self.model.predict_proba_one(row)
        shares = shares_of([said.get(label, 0.0) for label in self.labels], len(self.labels))
        return shares if len(shares) > 2 else shares[1:]


def shares_of(said: Any, classes: int) -> tuple[float, ...]:
    """Probabilities of all classes that sum to 1, from what was said of the first of them; all the same if nothing was."""
    shares = np.zeros(classes)
    if said is not None:
        shares[: len(said)] = said
    total = shares.sum()
    return tuple(shares / total if total != 0.0 else np.full(classes, 1.0 / classes))


def _river(module: str, name: str, scaler: str | None = None, **settings: Any) -> Callable[[], Peer]:
    return partial(RiverModel, lambda: getattr(peer_package(f"river.{module}"), name)(**settings), scaler)


def _neighbours(name: str) -> Any:
    """With the search that they have by default, which draws at random."""
    neighbours = peer_package("river.neighbors")
    return getattr(neighbours, name)(engine=neighbours.SWINN(seed=SEED))


def _one_vs_rest() -> Any:
    return peer_package("river.multiclass").OneVsRestClassifier(peer_package("river.linear_model").LogisticRegression())


class VowpalWabbitClasses(VowpalWabbit):
    """One against all, with probabilities; classes are numbered from 1."""

    def __init__(self, options: str) -> None:
        self.options = options

    def events(self, stream: Stream) -> Iterator[tuple[Any, Any]]:
        super().__init__(f"--loss_function logistic --oaa {stream.classes} --probabilities {self.options}")
        yield from super().events(replace(stream, y=stream.y.astype(int) + 1))

    def predict(self, row: Any) -> tuple[float, ...]:
        return tuple(self.workspace.predict(row))


class ScikitLearnClasses(ScikitLearn):
    """One against all; the probabilities are each one's, divided by their sum, as in ``predict_proba``."""

    def events(self, stream: Stream) -> Iterator[tuple[Any, np.ndarray]]:
        self.classes = np.arange(stream.classes, dtype=np.float64)
        yield from super().events(stream)

    def predict(self, row: Any) -> tuple[float, ...]:
        self.scaled = self.scaler.partial_fit(row).transform(row)
        if not hasattr(self.model, "coef_"):
            return shares_of(None, len(self.classes))
        return shares_of(special.expit(self.scaled @ self.model.coef_.T + self.model.intercept_)[0], len(self.classes))

    def learn(self, row: Any, label: np.ndarray) -> None:
        self.model.partial_fit(self.scaled, label, classes=self.classes)


class CapyMOA:
    """A learner of MOA in a Java machine with one thread for its own work too, as everything here has one."""

    def __init__(self, module: str, name: str) -> None:
        os.environ.setdefault("CAPYMOA_JVM_ARGS", "-Xmx2g -XX:+UseSerialGC -XX:CICompilerCount=2")
        self.make = getattr(peer_package(f"capymoa.{module}"), name)

    def events(self, stream: Stream) -> Iterator[tuple[Any, Any]]:
        core, names = peer_package("capymoa.core"), [f"column{number}" for number in range(stream.X.shape[1])]
        self.is_classifier, self.classes = stream.task != "regression", stream.classes
        categories = {"label": [str(number) for number in range(self.classes)]} if self.is_classifier else None
        schema = peer_package("capymoa.stream").Schema.from_custom([*names, "label"], "label", categories)
        labelled = core.LabeledInstance if self.is_classifier else core.RegressionInstance
        self.model = self.make(schema=schema)
        labels = (stream.y > 0 if stream.task == "classification" else stream.y).tolist()
        for row, label in zip(stream.X, labels, strict=True):
            both = int(label) if self.is_classifier else label
            yield core.Instance.from_array(schema, row), labelled.from_array(schema, row, both)

    def predict(self, row: Any) -> tuple[float, ...]:
        if not self.is_classifier:
            return (self.model.predict(row),)
        shares = shares_of(self.model.predict_proba(row), self.classes)
        return shares if len(shares) > 2 else shares[1:]

    def learn(self, row: Any, label: Any) -> None:
        self.model.train(label)


BASELINES: dict[str, Callable[[], Peer]] = {"constant": Constant, "last label": LastLabel}
BENDING_OPTIONS = {"VW": "", "VW --nn 10": "--nn 10", "VW -q ::": "-q ::"}


def _vowpal_wabbit(options: str) -> dict[str, Callable[[], Peer]]:
    return {name: partial(VowpalWabbit, f"{options} {more}") for name, more in BENDING_OPTIONS.items()}


def _seeded(module: str, name: str) -> Callable[[], Peer]:
    return _river(module, name, seed=SEED)


OF_CLASSES: dict[str, Callable[[], Peer]] = {
    "River ARF": _seeded("forest", "ARFClassifier"),
    "River AMF": _seeded("forest", "AMFClassifier"),
    "River AMF, standardised": _river("forest", "AMFClassifier", STANDARD, seed=SEED),
    "River HAT": _seeded("tree", "HoeffdingAdaptiveTreeClassifier"),
    "River SRP": _seeded("ensemble", "SRPClassifier"),
    "River KNN": partial(RiverModel, partial(_neighbours, "KNNClassifier"), STANDARD),
    "River GaussianNB": _river("naive_bayes", "GaussianNB"),
    "CapyMOA ARF": partial(CapyMOA, "classifier", "AdaptiveRandomForestClassifier"),
    "CapyMOA SRP": partial(CapyMOA, "classifier", "StreamingRandomPatches"),
}
LINEAR = {
    "classification": ["River LogisticRegression", "scikit-learn SGDClassifier", "bayesianbandits BayesianGLM"],
    "regression": ["River LinearRegression", "scikit-learn SGDRegressor", "bayesianbandits NormalInverseGammaRegressor"],
}
BENT_STARTED: dict[str, dict[str, Callable[[], Peer]]] = {
    "classification": {
        **BASELINES,
        **_vowpal_wabbit("--loss_function logistic --link logistic"),
        **OF_CLASSES,
        **{name: STARTED["classification"][name] for name in LINEAR["classification"]},
    },
    "regression": {
        **BASELINES,
        **_vowpal_wabbit("--loss_function squared"),
        "River ARF": _river("forest", "ARFRegressor", STANDARD, seed=SEED),
        "River AMF": _river("forest", "AMFRegressor", "MinMaxScaler", seed=SEED),
        "River AMF, standardised": _river("forest", "AMFRegressor", STANDARD, seed=SEED),
        "River HAT": _river("tree", "HoeffdingAdaptiveTreeRegressor", STANDARD, seed=SEED),
        "River SRP": _river("ensemble", "SRPRegressor", STANDARD, seed=SEED),
        "River KNN": partial(RiverModel, partial(_neighbours, "KNNRegressor"), STANDARD),
        "CapyMOA ARF": partial(CapyMOA, "regressor", "AdaptiveRandomForestRegressor"),
        "CapyMOA SOKNL": partial(CapyMOA, "regressor", "SOKNL"),
        **{name: STARTED["regression"][name] for name in LINEAR["regression"]},
    },
    "classes": {
        **BASELINES,
        **{name: partial(VowpalWabbitClasses, more) for name, more in BENDING_OPTIONS.items()},
        **OF_CLASSES,
        "River OneVsRest LogisticRegression": partial(RiverModel, _one_vs_rest, STANDARD),
        "River SoftmaxRegression": _river("linear_model", "SoftmaxRegression", STANDARD),
        "scikit-learn SGDClassifier": partial(ScikitLearnClasses, "SGDClassifier", loss="log_loss"),
    },
}

BENT_PEERS: dict[str, dict[str, Callable[[Stream], Scored]]] = {
    task: {name: partial(progressive, make, limit=LONGER if name in PATIENTLY else LIMIT) for name, make in peers.items()}
    for task, peers in BENT_STARTED.items()
}


def is_here(name: str) -> bool:
    """CapyMOA needs Java and an older pandas: where it is not installed, its peers are left out."""
    return not name.startswith("CapyMOA") or find_spec("capymoa") is not None
