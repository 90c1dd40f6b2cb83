"""Sets of classes on the streams of the study, as they are and broken: how often they hold the class, and how large they are.

    python experiments/sets.py [--rows 20000] [--effort light] [STREAM …]

``python experiments/sets.py`` prints the table of docs/guarantees.md: every stream of classes of the study with at least 5,000
rows, as it is, in pieces (after each quarter of the rows every class bears the name of the next one, at once), and by turns
(blocks of 500 rows of one class alone). Sets are asked to hold the class 90 % of the time.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import onlinevi as ovi
from onlinevi.learners import Learner, choose, choose_softmax, classes_by_of, for_classes, with_sets

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))

COVERAGE, FEWEST = 0.9, 5000
PIECES, BLOCK, STRETCH = 4, 500, 1000


class Told(NamedTuple):
    """What sets of a stream were worth."""

    coverage: float
    least: float
    """The coverage of the stretch of 1,000 rows that has least."""
    worst: float
    """That of the class that has least, of those with 100 rows at least."""
    size: float
    empty: float


def as_it_is(codes: np.ndarray, classes: int) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(len(codes)), codes


def in_pieces(codes: np.ndarray, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """After each quarter of the rows every class is called as the next one was."""
    return np.arange(len(codes)), (codes + np.arange(len(codes)) * PIECES // len(codes)) % classes


def by_turns(codes: np.ndarray, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Blocks of one class alone, in turn, while there are rows of it: what comes changes at once, again and again."""
    left = [np.flatnonzero(codes == code) for code in range(classes)]
    order: list[np.ndarray] = []
    while any(map(len, left)):
        for code in range(classes):
            order.append(left[code][:BLOCK])
            left[code] = left[code][BLOCK:]
    rows = np.concatenate(order)
    return rows, codes[rows]


BROKEN = {"as it is": as_it_is, "in pieces": in_pieces, "by turns": by_turns}


def learner_of(classes: int, rule: str, effort: Any = "default") -> Learner[Any]:
    loss, inputs = ovi.Logistic(), ovi.Inputs(missing=True)
    if classes > 2 and classes_by_of(None, loss, rule) == "softmax":
        return with_sets(choose_softmax(loss, rule, None, inputs, None, effort, classes, grows=True), COVERAGE)[0]
    return with_sets(for_classes(choose(loss, rule, None, inputs, effort=effort), classes), COVERAGE)[0]


def told(X: Any, codes: np.ndarray, classes: int, learner: Learner[Any]) -> Told:
    """One pass over a stream: each set is said before its class is known."""
    y = codes.astype(float) if learner.several else np.where(codes == 1, 1.0, -1.0)
    state = learner.init(X.shape[1], sparse=hasattr(X, "tocsr"))
    sets = learner.update_many(state, X, y)[1].forecast.set
    held = sets[np.arange(len(codes)), codes]
    sums = np.concatenate([[0], np.cumsum(held)])
    stretches = (sums[STRETCH:] - sums[:-STRETCH]) / STRETCH
    by_class = [held[codes == code].mean() for code in range(classes) if (codes == code).sum() >= 100]
    sizes = sets.sum(axis=1)
    return Told(held.mean(), stretches.min(), min(by_class), sizes.mean(), (sizes == 0).mean())


def streams(names: list[str], rows: int) -> Iterator[tuple[str, Any, np.ndarray, int]]:
    """The streams of the study whose labels are classes, by their numbers; none whose file or package is not there."""
    from bent_streams import BENT
    from study_streams import BASES, Stream

    from onlinevi import datasets

    def unshuffled() -> Stream:
        """Cover Type as its file has it, one kind of forest after another."""
        data = datasets.load("cover")
        return Stream("cover-unshuffled", "classification", data.X, data.y, data.y, "the file's order")

    for name, make in {**BASES, "cover-unshuffled": unshuffled, **BENT}.items():
        if names and name not in names:
            continue
        try:
            stream = make()
        except (ImportError, OSError, ValueError) as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
            continue
        if stream.task in ("classification", "classes") and len(stream.y) >= FEWEST:
            codes = stream.y.astype(int) if stream.task == "classes" else (stream.y > 0.0).astype(int)
            yield name, stream.X[:rows], codes[:rows], stream.classes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("streams", nargs="*")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--effort", default="light")
    given = parser.parse_args()
    ways = " | ".join(BROKEN)
    print(f"| stream | classes | rows | covered: {ways} | least of a class, as it is | size: {ways} |\n" + "|---" * 10 + "|")
    least, covered = 1.0, []
    for name, X, codes, classes in streams(given.streams, given.rows):
        found = []
        for breaks in BROKEN.values():
            rows, labels = breaks(codes, classes)
            found.append(told(X[rows], labels, classes, learner_of(classes, "auto", given.effort)))
        covered += [own.coverage for own in found]
        least = min(least, *(own.least for own in found))
        shares, sizes = " | ".join(f"{own.coverage:.1%}" for own in found), " | ".join(f"{own.size:.2f}" for own in found)
        print(f"| {name} | {classes} | {len(codes):,} | {shares} | {found[0].worst:.1%} | {sizes} |", flush=True)
    if covered:
        print(f"\nCovered {min(covered):.1%} to {max(covered):.1%}, and at least {least:.1%} in every 1,000 rows in a row.")


if __name__ == "__main__":
    main()
