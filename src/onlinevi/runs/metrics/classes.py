"""Metrics of classes: how often they were right, of which class, and what their probabilities were worth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from onlinevi.engine import Vector
from onlinevi.learners import Forecast
from onlinevi.runs.decisions import NOTHING, Decisions
from onlinevi.runs.metrics.baselines import ClassBaselines
from onlinevi.runs.metrics.by_class import ByClass, precision_recall_f1
from onlinevi.runs.metrics.scores import ABSENT, BINS, WHOSE, WINDOW, Measured, Scores, mean
from onlinevi.runs.metrics.thinned import array_of, text_of

WIDEST_ODDS = 16.0
"""The bins of the area under the curve have log-odds from −16 to 16; what is beyond falls into the bin at the end."""
BINS_OF_ODDS, OF_SEVERAL = 4096, 512
"""How many of them there are for two classes, and for each of several."""
MOST_CELLS = 1 << 22
"""More cells than this no table of a file may claim."""
LEAST = 1e-15
"""Smaller probabilities of what came cost as much as this one."""
CODE, CHANCE, GUESS, LOG_LOSS, BRIER, SIZE, HELD = 0, 1, slice(2, 5), slice(5, 8), slice(8, 11), 11, 12
DECIDED = 13
"""Whether a row was decided; behind it whether rightly, what that cost, and what the guess would have cost."""
SETS_FROM, DECIDED_FROM = -7, -4
"""Among the totals: rows that had sets, those held, and sizes; rows decided, decided rightly, what they cost, and what guesses
would have cost."""


class ClassScores(Scores):
    """Of two classes the F1 and the area are those of the second one; of more they are means over the classes."""

    said = (
        *("code", "chance", *(f"{what} of {who}" for what in ("guess", "log loss", "Brier score") for who in WHOSE)),
        *("size", "held", "decided", "right", "paid", "paid by the guess"),
    )
    said_at_first = SIZE
    summed: ClassVar[tuple[str, ...]] = ("accuracy", "log_loss", "brier")
    extras = ("sets", "held", "sizes", "decided", "right", "paid", "paid by the guess")

    def __init__(self, delay: int = 0, window: int = WINDOW, decisions: Decisions | None = None) -> None:
        super().__init__(window)
        self.baselines, self.decisions = ClassBaselines(delay), decisions
        self.several, self.sure = False, True
        """Whether there are more than two classes; and whether the learner said probabilities."""
        self.confusion = np.zeros((len(WHOSE), 2, 2), dtype=np.int64)
        """How often each class, a row, was taken for each, a column: by the learner, the constant and the last label."""
        self.odds = np.zeros((1, 2, BINS_OF_ODDS), dtype=np.int64)
        """Of each class, or of the second of two: how many rows of others, and of it, were given log-odds in each bin."""
        self._odds_lately: list[Any] = []
        """Of several classes the bins of the last rows, a column for each class that was known then."""
        self.by_class = ByClass()

    @property
    def shown(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("accuracy", "log_loss") if self.sure else ("accuracy",)

    @property
    def lead(self) -> str:  # type: ignore[override]
        return "log_loss" if self.sure else "accuracy"

    def _said(self, y: Vector, forecast: Forecast, loss: Vector) -> Vector:
        self.several = forecast.several
        codes = y.astype(np.int64) if self.several else (y > 0.0).astype(np.int64)
        constant, last = self.baselines.say(codes)
        self._widen(max(self.baselines.classes, forecast.prediction.shape[1] if self.several else 2))
        guesses = np.column_stack([np.asarray(forecast.guess).astype(np.int64), constant.guess, last.guess])
        self.sure = forecast.probability is not None
        chance = forecast.chance if self.sure else np.zeros(len(codes))
        of_label = [np.ones(len(codes)), constant.of_label, last.of_label]
        square = [np.ones(len(codes)), constant.square, last.square]
        unknown, rows = np.zeros(len(codes), dtype=bool), np.arange(len(codes))
        size, held = self._of_sets(forecast, codes)
        if self.sure:
            probability = self._of_classes(forecast)
            of_label[0] = probability[rows, codes]
            square[0] = np.cumsum(np.square(probability), axis=1)[:, -1]  # in order: further classes change no bit
            # A class that joins could not be guessed, and costs what it would if its name had been known.
            unknown = (of_label[0] == 0.0) & self.several & np.isfinite(loss)
            self._count_odds(probability, codes)
            self.by_class.add(codes, probability, held, size)
            happened = guesses[:, 0] == codes if self.several else codes
            count_in_bins(self.bins, chance, happened)
        np.add.at(self.confusion, (np.arange(len(WHOSE)), codes[:, None], guesses), 1)
        said = np.column_stack(of_label)
        log_loss = -np.log(np.maximum(said, LEAST))
        log_loss[unknown, 0] = loss[unknown]
        brier = np.column_stack(square) - 2.0 * said + 1.0
        scored = [codes, chance, guesses, log_loss, brier if self.several else 0.5 * brier]
        return np.column_stack([*scored, size, held, self._of_decisions(forecast, codes, guesses[:, 0])])

    def _of_sets(self, forecast: Forecast, codes: Any) -> tuple[Any, Any]:
        """How many classes each set has, and whether it holds the one that came."""
        if forecast.set is None:
            return np.full(len(codes), int(ABSENT)), np.zeros(len(codes), dtype=bool)
        sets = np.asarray(forecast.set)
        known = np.minimum(codes, sets.shape[1] - 1)
        return sets.sum(axis=1), sets[np.arange(len(codes)), known] & (known == codes)

    def _of_decisions(self, forecast: Forecast, codes: Any, guess: Any) -> Vector:
        """Whether each row was decided, and rightly; what that cost, and what the guess would have cost of the same rows."""
        if self.decisions is None:
            return np.zeros((len(codes), 4))
        made = self.decisions.made(forecast)
        decided = made != NOTHING
        paid, by_guess = (self.decisions.paid(codes, each) for each in (made, np.where(decided, guess, NOTHING)))
        return np.column_stack([decided, made == codes, paid, by_guess])

    def _of_classes(self, forecast: Forecast) -> Vector:
        """The probability of each class that there is so far; of those that nothing was said of, 0."""
        given = forecast.probability if self.several else np.column_stack([1.0 - forecast.chance, forecast.chance])
        return np.pad(given, ((0, 0), (0, max(0, self.baselines.classes - given.shape[1]))))

    def _widen(self, classes: int) -> None:
        """Make room for classes that join."""
        self.by_class.widen(classes)
        more = classes - self.confusion.shape[1]
        if more > 0:
            self.confusion = np.pad(self.confusion, ((0, 0), (0, more), (0, more)))

    def _count_odds(self, probability: Vector, codes: Any) -> None:
        if not self.several:
            np.add.at(self.odds[0], (codes, bin_of_odds(probability[:, 1], BINS_OF_ODDS)), 1)
            return
        classes = probability.shape[1]
        if self.odds.shape[2] != OF_SEVERAL:
            self.odds = np.zeros((0, 2, OF_SEVERAL), dtype=np.int64)
        if classes > len(self.odds):
            known = len(self.odds)
            self.odds = np.pad(self.odds, ((0, classes - known), (0, 0), (0, 0)))
            self.odds[known:, 0, 0] = self.count  # what was said before gave them nothing
        bins = bin_of_odds(probability, OF_SEVERAL)
        add_odds(self.odds, codes, bins)
        self._odds_lately.append(bins[-self.window :].astype("<u2"))
        if sum(map(len, self._odds_lately)) > 4 * self.window:
            self._odds_lately = [self._last_odds()]

    def _last_odds(self) -> Any:
        """The bins of the last rows; to those before a class joined nothing was given."""
        classes = max((part.shape[1] for part in self._odds_lately), default=0)
        parts = [np.pad(part, ((0, 0), (0, classes - part.shape[1]))) for part in self._odds_lately]
        return np.concatenate(parts)[-self.window :] if parts else np.zeros((0, classes), "<u2")

    def _recent_area(self, codes: Any, chance: Vector) -> float:
        """The area of the last rows: of two classes to the digit, of several by their bins; NaN where a file had none."""
        if not self.several:
            return ranked_area(chance, codes)
        bins = self._last_odds()
        if len(bins) != len(codes):
            return float("nan")
        odds = np.zeros((bins.shape[1], 2, OF_SEVERAL), dtype=np.int64)
        add_odds(odds, codes, bins.astype(np.int64))
        return mean_area(odds)[0]

    def _terms(self, said: Vector) -> Vector:
        return np.column_stack([said[:, GUESS] == said[:, [CODE]], said[:, LOG_LOSS], said[:, BRIER]])

    def _extras(self, said: Vector) -> Vector:
        there, decided = said[:, SIZE] >= 0.0, said[:, [DECIDED]] > 0.0
        size, held = (np.where(there, said[:, place], 0.0) for place in (SIZE, HELD))
        return np.column_stack([there, held, size, np.where(decided, said[:, DECIDED:], 0.0)])

    def _measured(self, events: int, sums: Vector, recent: Vector | None) -> Measured:
        confusion, bins, beside = self.confusion, self.bins, self.totals[SETS_FROM:]
        if recent is None:
            area = self.area()[0]
        else:
            confusion, bins, area = np.zeros_like(confusion), np.zeros_like(bins), float("nan")
            codes, chance = recent[:, CODE].astype(np.int64), recent[:, CHANCE]
            guesses, beside = recent[:, GUESS].astype(np.int64), self._extras(recent).sum(axis=0)
            np.add.at(confusion, (np.arange(len(WHOSE)), codes[:, None], guesses), 1)
            count_in_bins(bins, chance, guesses[:, 0] == codes if self.several else codes)
            area = self._recent_area(codes, chance) if self.sure else area
        found = []
        for who, table in enumerate(confusion):
            hits, log_loss, brier = (mean(total, events) for total in sums[who :: len(WHOSE)][: len(self.summed)])
            values = {"accuracy": hits, "balanced_accuracy": balanced_accuracy(table), "f1": self._f1(table)}
            if who > 0 or self.sure:
                values |= {"auc": area} if who == 0 and (recent is None or not math.isnan(area) or not self.several) else {}
                values |= {"log_loss": log_loss, "brier": brier}
                values |= {"ece": calibration_error(bins)} if who == 0 else {}
            values |= self._of_sums(beside) if who == 0 else {}
            if self.decisions is not None and self.decisions.costs is not None and who > 0:
                values["cost"] = mean(float((table * self.decisions.costs[: len(table), : len(table)]).sum()), events)
            found.append(values)
        return Measured(events, *found)

    def _of_sums(self, beside: Vector) -> dict[str, float]:
        """What sums beside mean: of sets how often they held and how large they were; of decisions how many there were, how
        many were right, what they cost, and what the guess would have cost of the same rows."""
        (sets, held, sizes), (decided, right, paid, by_guess) = beside[:3], beside[3:]
        found = {"coverage": mean(held, sets), "set_size": mean(sizes, sets)} if sets else {}
        if self.decisions is None:
            return found
        if self.decisions.abstain:
            found |= {"decided": mean(decided, sets), "decided_right": mean(right, decided)}
        if self.decisions.costs is not None:
            found |= {"cost": mean(paid, decided), "cost_of_guess": mean(by_guess, decided)}
        return found

    @property
    def coverage(self) -> float:
        """How often the set had what came; NaN where there were no sets."""
        self.settle()
        sets, held, _ = self.totals[SETS_FROM:DECIDED_FROM]
        return mean(held, sets)

    def _f1(self, confusion: Any) -> float:
        each = precision_recall_f1(confusion)[2]
        if not self.several:
            return float(np.nan_to_num(each[1])) if confusion.any() else float("nan")
        there = ~np.isnan(each)
        return float(each[there].mean()) if there.any() else float("nan")

    def area(self) -> tuple[float, float]:
        """The area under the curve of two classes, or its mean over each against the rest; and the most it can be off by.

        Rows of one bin count as ties: half of those that are of different classes may be wrong.
        """
        self.settle()
        return mean_area(self.odds if self.several else self.odds[:1])

    def sets_over_time(self) -> tuple[Vector, Vector, Vector, Vector]:
        """Steps, and up to each how many rows had sets, how many of these held the class, and how many classes they had."""
        self.settle()
        table = self.curve.table
        table = table[table[:, SETS_FROM] > 0.0]
        sets, held, sizes = table[:, SETS_FROM:DECIDED_FROM].T
        return self.since + table[:, 0], sets, held, sizes

    def _add_extras(self, other: ClassScores) -> None:
        self.several, self.sure = self.several or other.several, self.sure and other.sure
        classes = max(self.confusion.shape[1], other.confusion.shape[1])
        self._widen(classes)
        self.confusion = self.confusion.copy()
        its = other.confusion.shape[1]
        self.confusion[:, :its, :its] += other.confusion
        self.odds = _added_odds(self, other)
        self.by_class.add_up(other.by_class)
        self.baselines.add_up(other.baselines)

    def _own(self) -> dict[str, Any]:
        counts: dict[str, Any] = {"confusion": sparse(self.confusion), "odds": sparse(self.odds)}
        flags = {"several": self.several, "sure": self.sure}
        lately = self._last_odds()
        if lately.size:
            counts["lately"] = {"classes": lately.shape[1], "bins": text_of(lately, "<u2")}
        return counts | flags | {"baselines": self.baselines.to_json(), "by_class": self.by_class.to_json()}

    def _restore_own(self, saved: Mapping[str, Any]) -> None:
        self.confusion, self.odds = filled(saved["confusion"]), filled(saved["odds"])
        self.several, self.sure = saved["several"], saved["sure"]
        self.baselines.restore(saved["baselines"])
        self._odds_lately = []
        if "lately" in saved:
            bins = array_of(saved["lately"]["bins"], saved["lately"]["classes"], "<u2")
            if bins.max(initial=0) >= OF_SEVERAL:
                raise ValueError(f"a bin beyond {OF_SEVERAL}")
            self._odds_lately.append(bins)
        if "by_class" in saved:
            self.by_class.restore(saved["by_class"])
        self.by_class.widen(self.confusion.shape[1])


def _added_odds(one: ClassScores, other: ClassScores) -> Any:
    """The bins of both; where one has met fewer classes, its rows gave the others nothing."""
    if not one.count or not other.count:
        return (other if other.count else one).odds.copy()
    classes, bins = max(len(one.odds), len(other.odds)), one.odds.shape[2]
    total = np.zeros((classes, 2, bins), dtype=np.int64)
    for scores in (one, other):
        total[: len(scores.odds)] += scores.odds
        total[len(scores.odds) :, 0, 0] += scores.count
    return total


def count_in_bins(bins: Vector, probability: Vector, happened: Any) -> None:
    """Of each bin add to the sum of the probabilities, to how many events happened, and to how many there were."""
    places = np.minimum((probability * BINS).astype(int), BINS - 1)
    for row, values in enumerate((probability, happened, np.ones(len(places)))):
        np.add.at(bins[row], places, values)  # in order: any split gives the same bits


def calibration_error(bins: Vector) -> float:
    """Mean |probability − share that happened| over the events, by their bins."""
    return mean(float(np.abs(bins[0] - bins[1]).sum()), float(bins[2].sum()))


def balanced_accuracy(confusion: Any) -> float:
    """The mean over the classes that came of how many of each were right."""
    came = confusion.sum(axis=1)
    each = confusion.diagonal()[came > 0] / came[came > 0]
    return float(each.mean()) if len(each) else float("nan")


def bin_of_odds(probability: Vector, bins: int) -> Any:
    """The bin of a probability by its log-odds."""
    with np.errstate(divide="ignore"):
        odds = np.log(probability) - np.log1p(-probability)
    return ((np.clip(odds, -WIDEST_ODDS, WIDEST_ODDS) + WIDEST_ODDS) * ((bins - 1) / (2.0 * WIDEST_ODDS))).astype(np.int64)


def add_odds(odds: Any, codes: Any, bins: Any) -> None:
    """Count rows of these classes, which gave each class log-odds in these bins."""
    places = np.arange(bins.shape[1])
    np.add.at(odds, (places, (codes[:, None] == places).astype(int), bins), 1)


def mean_area(odds: Any) -> tuple[float, float]:
    """The mean area under the curves of each class against the rest, by counts of bins; and the most it can be off by."""
    areas = []
    for others, own in odds.astype(float):
        pairs = others.sum() * own.sum()
        if pairs > 0.0:
            below = np.cumsum(others) - others
            areas.append(((own @ (below + 0.5 * others)) / pairs, 0.5 * (own @ others) / pairs))
    if not areas:
        return float("nan"), float("nan")
    area, off = np.mean(areas, axis=0).tolist()
    return area, off


def ranked_area(score: Vector, codes: Any) -> float:
    """The share of the pairs of both classes whose scores are in the right order; of ties, half."""
    ordered = np.sort(score[codes == 0])
    own = score[codes == 1]
    below = np.searchsorted(ordered, own, side="left") + np.searchsorted(ordered, own, side="right")
    return mean(0.5 * float(below.sum()), float(len(ordered)) * len(own))


def sparse(counts: Any) -> dict[str, list[int]]:
    """Counts, most of which are 0, as JSON values."""
    places = np.flatnonzero(counts)
    return {"shape": list(counts.shape), "at": places.tolist(), "counts": counts.ravel()[places].tolist()}


def filled(saved: Mapping[str, Any]) -> Any:
    """Counts as ``sparse`` wrote them."""
    if math.prod(saved["shape"]) > MOST_CELLS:
        raise ValueError(f"counts of shape {saved['shape']}")
    counts = np.zeros(saved["shape"], dtype=np.int64)
    counts.flat[saved["at"]] = saved["counts"]
    return counts
