"""Several classes: one posterior for all, or one learner a class; what they cost, and what is certain of them.

    python benchmarks/classes.py [--unseen] [--parts] [--cost] [STREAM …]

By itself: the streams of several classes of the study (bent_streams.py), on which the members of ``Auto(known=k)`` were
chosen. ``--unseen`` has other streams, run once, when nothing was left to choose: KEEL's other data sets of three classes and
300 rows at least, and scikit-learn's digits. ``--cost`` has the time of a mean-field ``Softmax`` beside as many binary
learners, and how tight its certificate is. ``--parts`` has the default
without some of its learners. Log loss, errors, calibration (scores.py), and processor time a row.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from bent_streams import BENT, _keel, _of_task
from scores import calibration_error, log_loss_of_classes
from study_streams import SEED, Stream, peer_package

import onlinevi as ovi
from onlinevi.guarantees import hindsight
from onlinevi.learners import Learner, for_classes

WARM_UP_ROWS = 40
ROUNDS, COST_ROWS = 5, 20_000
SHAPES = ((3, 10), (10, 54), (26, 17), (100, 20))
"""Classes and columns, whose time is measured."""
AUTO = ovi.Auto(ovi.Logistic())
LEARNERS: dict[str, Callable[[int], Learner]] = {
    "one-vs-rest": lambda k: for_classes(AUTO, k),
    "one-vs-rest, light": lambda k: for_classes(ovi.Auto(ovi.Logistic(), effort="light"), k),
    "softmax": lambda k: ovi.Auto(ovi.Logistic(), known=k),
    "softmax, light": lambda k: ovi.Auto(ovi.Logistic(), effort="light", known=k),
}


def _digits() -> Stream:
    data = peer_package("sklearn.datasets").load_digits()
    order = np.random.default_rng(SEED).permutation(len(data.target))
    X, y = data.data[order], data.target[order].astype(np.float64)
    return Stream("digits", "classes", X, y, y, f"scikit-learn's digits, permuted with seed {SEED}")


UNSEEN: dict[str, Callable[[], Stream]] = {
    "contraceptive": partial(_keel, "contraceptive", "contraceptive", "classes"),
    "digits": _digits,
    "led7digit": partial(_keel, "led7digit", "led7digit", "classes"),
    "marketing": partial(_keel, "marketing", "marketing", "classes"),
    "libras": partial(_keel, "movement_libras", "libras", "classes"),
    "texture": partial(_keel, "texture", "texture", "classes"),
    "vehicle": partial(_keel, "vehicle", "vehicle", "classes"),
    "vowel": partial(_keel, "vowel", "vowel", "classes"),
}


class Scores(NamedTuple):
    """What a learner is worth on a stream."""

    loss: float
    errors: float
    off: float
    micros: float

    def __str__(self) -> str:
        return f"{self.loss:.4g}, {self.errors:.1%}, {self.off:.1%}, {self.micros:.0f} µs"


def without(left_out: Callable[[Learner], bool], classes: int, dim: int) -> Learner:
    """The default without some of its learners."""
    auto = ovi.Auto(ovi.Logistic(), known=classes)
    pool = auto.init(dim).made_of.inner
    return ovi.Prepare(auto.inputs, ovi.ClassPool([own for own in pool.learners if not left_out(own)]))


def _has_own(learner: Learner) -> bool:
    """Whether it has a covariance of each class on features."""
    return isinstance(learner, ovi.Expand) and not any(leaf.shared for leaf in learner.inner.learners)


PARTS: dict[str, Callable[[Learner], bool]] = {
    "the default": lambda own: False,
    "no one-vs-rest": lambda own: isinstance(own, ovi.OneVsRest),
    "no covariances of each class on features": _has_own,
    "no features": lambda own: isinstance(own, ovi.Expand),
}


def parts(streams: dict[str, Callable[[], Stream]]) -> None:
    """The log loss of the default without some of its learners."""
    print("| Stream | " + " | ".join(PARTS) + " |\n" + "|---" * (len(PARTS) + 1) + "|")
    for name, make in streams.items():
        stream = make()
        made = [without(left_out, stream.classes, stream.X.shape[1]) for left_out in PARTS.values()]
        print(f"| {name} | " + " | ".join(f"{_scored(stream, own).loss:.4g}" for own in made) + " |", flush=True)


def quality(streams: dict[str, Callable[[], Stream]]) -> None:
    print("| Stream | classes | columns | " + " | ".join(LEARNERS) + " |\n" + "|---" * (len(LEARNERS) + 3) + "|")
    found = []
    for name, make in streams.items():
        stream = make()
        found.append([_scored(stream, kind(stream.classes)) for kind in LEARNERS.values()])
        cells = " | ".join(map(str, found[-1]))
        print(f"| {name} | {stream.classes} | {stream.X.shape[1]} | {cells} |", flush=True)
    numbers = np.array(found)  # streams, learners, scores
    for own, rest, what in ((2, 0, ""), (3, 1, ", light")):
        ratios = numbers[:, own] / numbers[:, rest]
        means = np.exp(np.log(ratios).mean(axis=0))
        less = (ratios < 1.0).sum(axis=0)
        print(
            f"\nsoftmax ÷ one-vs-rest{what}, geometric mean (streams on which it has less, of {len(found)}; least to most): "
            + "; ".join(
                f"{score} {mean:.3f} ({fewer}; {low:.2f} to {high:.2f})"
                for score, mean, fewer, low, high in zip(
                    ("log loss", "errors", "calibration error", "time"), means, less, ratios.min(0), ratios.max(0), strict=True
                )
            )
        )


def _scored(stream: Stream, learner: Learner) -> Scores:
    """One pass over the stream, behind a few rows that compile what it needs."""
    X, y, dim = stream.X, stream.y, stream.X.shape[1]
    learner.update_many(learner.init(dim), X[:WARM_UP_ROWS], y[:WARM_UP_ROWS])
    started = time.process_time()
    said = learner.update_many(learner.init(dim), X, y)[1].probability
    micros = (time.process_time() - started) / len(y) * 1e6
    right = said.argmax(axis=1) == y
    off = calibration_error(right.astype(float), said.max(axis=1))
    return Scores(log_loss_of_classes(y, said), 1.0 - right.mean(), off, micros)


def cost() -> None:
    """Times in turns, the best of some rounds; so the certificate of one learner on each stream."""
    mean_field = ovi.MeanField(box=None)
    binary = ovi.Linear(ovi.Logistic(), ovi.Implicit(), mean_field, average=False)
    heads = "`Softmax`, mean field", "÷ one-vs-rest of it", "÷ k × one binary learner", "a covariance a class", "shared"
    print("| classes | columns | " + " | ".join(heads) + " |")
    print("|---" * 7 + "|")
    for classes, dim in SHAPES:
        rng = np.random.default_rng(SEED)
        X = rng.standard_normal((COST_ROWS, dim))
        y = (X @ rng.standard_normal((dim, classes)) + rng.gumbel(size=(COST_ROWS, classes))).argmax(axis=1) * 1.0
        works = {
            "softmax": (ovi.Softmax(classes, mean_field), y),
            "one-vs-rest": (ovi.OneVsRest(binary, classes), y),
            "one": (binary, np.where(y == 0.0, 1.0, -1.0)),
            "each": (ovi.Softmax(classes), y),
            "shared": (ovi.Softmax(classes, shared=True), y),
        }
        best = dict.fromkeys(works, np.inf)
        for _ in range(ROUNDS):
            for name, (learner, labels) in works.items():
                state, started = learner.init(dim), time.process_time()
                learner.update_many(state, X, labels, record="none")
                best[name] = min(best[name], (time.process_time() - started) / COST_ROWS * 1e6)
        own = best["softmax"]
        ratios = f"{own / best['one-vs-rest']:.2f} | {own / best['one'] / classes:.2f}"
        print(f"| {classes} | {dim} | {own:.2f} µs | {ratios} | {best['each']:.1f} µs | {best['shared']:.1f} µs |", flush=True)
    print("\n| Stream | paid a row | best fixed weights of the norm learned | regret | certified |\n" + "|---" * 5 + "|")
    for name in _of_task("classes"):
        stream = BENT[name]()
        k, dim = stream.classes, stream.X.shape[1]
        inputs = ovi.Inputs()
        _, rows = inputs.update_many(inputs.init(dim), stream.X)
        learner = ovi.Softmax(k, ovi.MeanField(box=None))
        state = learner.update_many(learner.init(dim + 1), rows, stream.y, record="none")[0]
        norm = float(np.linalg.norm(state.mean))
        found = hindsight(rows, stream.y, loss=ovi.Logistic(), classes=k, box=None, radius=norm)
        certified = ovi.certificate(state).within(norm) / state.count
        paid = state.average_loss
        print(
            f"| {name} | {paid:.4g} | {found.value:.4g} (norm {norm:.3g}) | {paid - found.value:.4f} | {certified:.4f} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("streams", nargs="*")
    parser.add_argument("--unseen", action="store_true")
    parser.add_argument("--parts", action="store_true")
    parser.add_argument("--cost", action="store_true")
    options = parser.parse_args()
    if options.cost:
        cost()
        return
    known = UNSEEN if options.unseen else {name: BENT[name] for name in _of_task("classes")}
    (parts if options.parts else quality)({name: known[name] for name in options.streams or known})


if __name__ == "__main__":
    main()
