"""The peers of the progressive-evaluation study, each as its users would start it: documented defaults, one pass, no tuning.

    scored = PEERS[stream.task]["River LogisticRegression"](stream)

Every peer answers for a row before it learns that row's label. A scaler may use the row's features first, never a label.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from scipy import sparse, special
from study_streams import QUANTILE_LEVEL, Stream, Task, peer_package

# Seconds of processor time, not of the clock: where a slow peer stops must not depend on what else the machine does.
TOO_SLOW = 180.0
INTERVAL = 0.9
# What a ValueError says when a package's numbers are beyond floating point.
OVERFLOW_WORDS = ("overflow", "infinity", "nan", "range error")


@dataclass(frozen=True)
class Scored:
    """A peer's answers in the order of the stream; NaN from row ``finished`` on if it was stopped: ``note`` says why.

    ``prediction`` is a label ±1, a class, a number, a quantile or a rate, by task; ``probability`` that of +1, or a column for
    each of several classes; ``seconds`` is for predicting and learning alone.
    """

    prediction: np.ndarray
    probability: np.ndarray | None
    lower: np.ndarray | None
    upper: np.ndarray | None
    seconds: float
    finished: int
    note: str = ""


class Peer(Protocol):
    """``events`` makes rows and labels in the package's own form; this is not timed. ``predict`` sees the row alone.

    An answer is one number, or three: with the ends of its interval. For several classes it is the probability of each.
    """

    def events(self, stream: Stream) -> Iterator[tuple[Any, Any]]: ...

    def predict(self, row: Any) -> tuple[float, ...]: ...

    def learn(self, row: Any, label: Any) -> None: ...


def progressive(make: Callable[[], Peer], stream: Stream, limit: float | None = None) -> Scored:
    """One pass, predicting before learning. A peer that overflows or is too slow is stopped, and its note says so.

    Too slow is what takes more than ``limit`` seconds of processor time.
    """
    peer, rows = make(), len(stream.y)
    answers = np.full((rows, stream.classes if stream.task == "classes" else 3), np.nan)
    seconds, finished, note = 0.0, 0, ""
    deadline = time.process_time() + (TOO_SLOW if limit is None else limit)
    with np.errstate(all="ignore"):
        for row, label in peer.events(stream):
            started = time.process_time()
            try:
                answer = peer.predict(row)
                answers[finished, : len(answer)] = answer
                peer.learn(row, label)
            except (ArithmeticError, ValueError) as error:
                if not _is_overflow(error):
                    raise
                note = f"diverged: stopped at row {finished} of {rows} by {type(error).__name__}: {error}"
                break
            seconds += time.process_time() - started
            finished += 1
            if finished < rows and time.process_time() > deadline:
                note = f"too_slow: stopped after {finished} of {rows} rows"
                break
    return _scored(answers, stream.task, seconds, finished, note)


def _is_overflow(error: Exception) -> bool:
    """A ValueError may as well say that the peer is used wrongly, which must not pass for divergence."""
    if isinstance(error, ArithmeticError | np.linalg.LinAlgError):
        return True
    return any(word in str(error).lower() for word in OVERFLOW_WORDS)


def _scored(answers: np.ndarray, task: Task, seconds: float, finished: int, note: str) -> Scored:
    value = answers.sum(axis=1) if task == "classes" else answers[:, 0]
    if not note and not np.isfinite(value).all():
        note = f"diverged: not finite from row {np.flatnonzero(~np.isfinite(value))[0]}"
    if task == "classes":
        likeliest = np.where(np.isnan(value), np.nan, np.argmax(answers, axis=1))
        return Scored(likeliest, answers, None, None, seconds, finished, note)
    _, lower, upper = answers.T
    if task == "classification":
        decision = np.where(np.isnan(value), np.nan, np.where(value > 0.5, 1.0, -1.0))
        return Scored(decision, value, None, None, seconds, finished, note)
    has_interval = bool(np.isfinite(lower).any())
    return Scored(value, None, lower if has_interval else None, upper if has_interval else None, seconds, finished, note)


def _dense_rows(stream: Stream) -> Iterator[np.ndarray]:
    """Each row as a matrix of one row."""
    for t in range(len(stream.y)):
        row = stream.X[t : t + 1]
        yield row.toarray() if isinstance(row, sparse.csr_array) else row


class River:
    """A pipeline of River; its scaler takes in a row after the prediction, as River's pipelines do.

    A sparse row is given with its zeros: River's scaler would make a binary feature that is only seen when it is 1 a constant.
    """

    def __init__(self, name: str, *, has_distribution: bool = False, has_constant: bool = False, loss: Any = None) -> None:
        scaler = peer_package("river.preprocessing").StandardScaler()
        if has_constant:
            scaler += peer_package("river.compose").FuncTransformer(_constant)
        settings = {} if loss is None else {"loss": loss}
        self.model = scaler | getattr(peer_package("river.linear_model"), name)(**settings)
        self.is_classifier = hasattr(self.model[-1], "predict_proba_one")
        self.has_distribution = has_distribution

    def events(self, stream: Stream) -> Iterator[tuple[dict[int, float], bool | float]]:
        labels = stream.y > 0 if self.is_classifier else stream.y
        for row, label in zip(_dense_rows(stream), labels.tolist(), strict=True):
            yield dict(enumerate(row[0].tolist())), label

    def predict(self, row: dict[int, float]) -> tuple[float, ...]:
        if self.is_classifier:
            return (self.model.predict_proba_one(row)[True],)
        if not self.has_distribution:
            return (self.model.predict_one(row),)
        answer = self.model.predict_one(row, with_dist=True)
        half = special.ndtri((1 + INTERVAL) / 2) * answer.sigma
        return answer.mu, answer.mu - half, answer.mu + half

    def learn(self, row: dict[int, float], label: bool | float) -> None:
        self.model.learn_one(row, label)


def _constant(_: dict[int, float]) -> dict[str, float]:
    return {"constant": 1.0}


def _river_quantile() -> River:
    return River("LinearRegression", loss=peer_package("river.optim").losses.Quantile(QUANTILE_LEVEL))


def _river_poisson() -> River:
    """The linear part is the log rate: River applies exp itself, so that what it predicts is the rate. It does not clip."""
    return River("LinearRegression", loss=peer_package("river.optim").losses.Poisson())


class VowpalWabbit:
    """Vowpal Wabbit in this process. Columns are named by their numbers, zeros are skipped.

    The prediction is asked for without the label: the one that ``learn`` leaves behind is already clipped to a range of labels
    that includes this row's (seen with the quantile loss).
    """

    def __init__(self, options: str) -> None:
        self.workspace = peer_package("vowpalwabbit").Workspace(f"--quiet {options}")

    def events(self, stream: Stream) -> Iterator[tuple[Any, Any]]:
        for row, label in zip(_dense_rows(stream), stream.y.tolist(), strict=True):
            features = " ".join(f"{column}:{value}" for column, value in enumerate(row[0].tolist()) if value)
            examples = self.workspace.parse(f"| {features}"), self.workspace.parse(f"{label} | {features}")
            yield examples
            for example in examples:
                self.workspace.finish_example(example)

    def predict(self, row: Any) -> tuple[float, ...]:
        return (self.workspace.predict(row),)

    def learn(self, row: Any, label: Any) -> None:
        self.workspace.learn(label)


class ScikitLearn:
    """A model by ``partial_fit``, after a scaler that takes in the row first. Sparse rows are scaled but not centred.

    The prediction is computed from ``coef_``, since ``predict`` would spend most of its time on checks.
    """

    def __init__(self, name: str, **settings: object) -> None:
        self.model = getattr(peer_package("sklearn.linear_model"), name)(**settings)
        self.is_classifier = hasattr(self.model, "predict_proba")

    def events(self, stream: Stream) -> Iterator[tuple[Any, np.ndarray]]:
        is_sparse = isinstance(stream.X, sparse.csr_array)
        self.scaler = peer_package("sklearn.preprocessing").StandardScaler(with_mean=not is_sparse)
        X = _with_short_indices(stream.X) if is_sparse else stream.X
        for t in range(len(stream.y)):
            yield X[t : t + 1], stream.y[t : t + 1]

    def predict(self, row: Any) -> tuple[float, ...]:
        self.scaled = self.scaler.partial_fit(row).transform(row)
        raw = (self.scaled @ self.model.coef_.ravel() + self.model.intercept_).item() if hasattr(self.model, "coef_") else 0.0
        return (special.expit(raw),) if self.is_classifier else (raw,)

    def learn(self, row: Any, label: np.ndarray) -> None:
        classes = {"classes": [-1.0, 1.0]} if self.is_classifier else {}
        self.model.partial_fit(self.scaled, label, **classes)


def _with_short_indices(X: sparse.csr_array) -> sparse.csr_array:
    """scikit-learn refuses indices of 64 bits."""
    return sparse.csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)


class BayesianBandits:
    """A learner of bayesianbandits, after a scaler that takes in the row first.

    Its models have no intercept, and its README makes one with the formula "1 + ...": so does this, after the scaling.
    """

    def __init__(self, name: str, **settings: object) -> None:
        self.model = getattr(peer_package("bayesianbandits"), name)(**settings)
        self.is_binary = settings.get("link") == "logit"
        self.scaler = peer_package("sklearn.preprocessing").StandardScaler()

    def events(self, stream: Stream) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        labels = (stream.y > 0).astype(np.float64) if self.is_binary else stream.y
        for t, row in enumerate(_dense_rows(stream)):
            yield row, labels[t : t + 1]

    def predict(self, row: np.ndarray) -> tuple[float, ...]:
        self.scaled = np.column_stack([self.scaler.partial_fit(row).transform(row), [1.0]])
        return (self.model.predict(self.scaled).item(),)

    def learn(self, row: np.ndarray, label: np.ndarray) -> None:
        self.model.partial_fit(self.scaled, label)


class BayesianBanditsRegression(BayesianBandits):
    """The same with the posterior predictive interval, which follows from the documented posterior."""

    def predict(self, row: np.ndarray) -> tuple[float, ...]:
        (mean,) = super().predict(row)
        variance = (self.scaled @ np.linalg.solve(self.model.cov_inv_, self.scaled.T)).item()
        half = self._half_width(variance)
        return mean, mean - half, mean + half

    def _half_width(self, variance: float) -> float:
        """Of the interval, from the variance of the row's mean: Gaussian if the noise is known, else Student's t."""
        if hasattr(self.model, "a_"):
            scale = np.sqrt(self.model.b_ / self.model.a_ * (1.0 + variance))
            return special.stdtrit(2.0 * self.model.a_, (1 + INTERVAL) / 2) * scale
        return special.ndtri((1 + INTERVAL) / 2) * np.sqrt(1.0 / self.model.beta + variance)


def _vowpal_wabbit(options: str) -> dict[str, Callable[[], Peer]]:
    return {"VW": partial(VowpalWabbit, options), "VW --coin": partial(VowpalWabbit, f"{options} --coin")}


STARTED: dict[str, dict[str, Callable[[], Peer]]] = {
    "classification": {
        **_vowpal_wabbit("--loss_function logistic --link logistic"),
        "River LogisticRegression": partial(River, "LogisticRegression"),
        "River ALMAClassifier": partial(River, "ALMAClassifier"),
        "River PAClassifier": partial(River, "PAClassifier"),
        "scikit-learn SGDClassifier": partial(ScikitLearn, "SGDClassifier", loss="log_loss"),
        "bayesianbandits BayesianGLM": partial(BayesianBandits, "BayesianGLM", link="logit"),
    },
    "regression": {
        **_vowpal_wabbit("--loss_function squared"),
        "River LinearRegression": partial(River, "LinearRegression"),
        "River PARegressor": partial(River, "PARegressor"),
        "River BayesianLinearRegression": partial(River, "BayesianLinearRegression", has_distribution=True),
        # Not as documented, but without a constant it cannot predict a target whose mean is not 0.
        "River BayesianLinearRegression, constant added": partial(
            River, "BayesianLinearRegression", has_distribution=True, has_constant=True
        ),
        "scikit-learn SGDRegressor": partial(ScikitLearn, "SGDRegressor"),
        "bayesianbandits NormalInverseGammaRegressor": partial(BayesianBanditsRegression, "NormalInverseGammaRegressor"),
        # Both arguments are required; these are the README's.
        "bayesianbandits NormalRegressor": partial(BayesianBanditsRegression, "NormalRegressor", alpha=1.0, beta=1.0),
    },
    "quantile": {
        **_vowpal_wabbit(f"--loss_function quantile --quantile_tau {QUANTILE_LEVEL}"),
        "River LinearRegression, quantile": _river_quantile,
    },
    "counts": {
        # The link makes the prediction a rate; without it, it is the log rate.
        **_vowpal_wabbit("--loss_function poisson --link poisson"),
        "River LinearRegression, Poisson": _river_poisson,
        "bayesianbandits BayesianGLM": partial(BayesianBandits, "BayesianGLM", link="log"),
    },
}

PEERS: dict[str, dict[str, Callable[[Stream], Scored]]] = {
    task: {name: partial(progressive, make) for name, make in peers.items()} for task, peers in STARTED.items()
}
