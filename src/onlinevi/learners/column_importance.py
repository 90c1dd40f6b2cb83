"""How much each column matters to what is predicted, through the default's maps too: told by a state alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from onlinevi.engine import Vector, one_thread_of_blas
from onlinevi.learners.inputs import UNCENTRED
from onlinevi.learners.parts import Part, Places, beside

MOST_ROWS, VALUES, DRAWS = 128, 1 << 14, 32
"""Rows that columns vary in, fewer where there are many columns, and draws of the weights of features."""
BINARY = 1e-9
"""A column of variance mean·(1 − mean), to this, holds 0 and 1."""


SLIGHT = 1e-3
"""Of a learner of less weight in its pool it does not matter how columns move together."""
WIDTHS = np.linspace(1e-6, 1.0, 1 << 10)
"""Parts of a cycle."""


class Cycle(NamedTuple):
    """Columns that tell one time together, by their places: what part of a year or a day is gone, and which month or hour."""

    sine: int
    cosine: int
    step: int
    steps: int
    """How many steps a cycle has, as months and hours."""
    first: int = 0
    """The first of them."""

    @property
    def places(self) -> list[int]:
        return [self.sine, self.cosine, self.step]

    def rows(self, quantiles: Vector, mean: Vector) -> Vector:
        """These columns at times that are spread evenly over the part of the cycle of which sine and cosine have these means.

        Over a part w of a cycle their means make a vector of the length sin(πw)/(πw), which points to its middle.
        """
        sine, cosine = mean[self.sine], mean[self.cosine]
        width = np.interp(-np.hypot(sine, cosine), -np.sinc(WIDTHS), WIDTHS)
        gone = (np.arctan2(sine, cosine) / (2.0 * np.pi) + width * (quantiles - 0.5)) % 1.0
        angle = 2.0 * np.pi * gone
        return np.stack([np.sin(angle), np.cos(angle), self.first + np.floor(self.steps * gone)], axis=1)


class Importance(NamedTuple):
    """How much each column matters: its share in the variance of what is predicted."""

    names: tuple[str, ...]
    """Of the columns, then of the past labels that stand beside them (``Lag``)."""
    value: Vector
    """The share of each; they sum to 1, or are 0 where nothing has been learned."""
    std: Vector
    """How uncertain the belief leaves the share."""
    by_class: tuple[Importance, ...] = ()
    """Of each class against the rest, where there are more than two; ``value`` is their mean."""


class _Sizes(NamedTuple):
    """Variances of a prediction, a column each, and the variances of these under the belief."""

    size: Vector
    variance: Vector


class _Shares(NamedTuple):
    """Sizes as parts of their sum, and the variances of these."""

    value: Vector
    variance: Vector


class _Varied(NamedTuple):
    """Two made rows of every column, one beside the other."""

    rows: Any
    others: Any
    per: Vector
    """What a squared difference between the two counts, so that their mean is a variance; 0 for a column that is constant."""
    together: tuple[tuple[int, ...], ...] = ()
    """Columns that vary as one, and count as the first of them."""

    @property
    def alone(self) -> list[tuple[int, ...]]:
        """What varies by itself: a column, or several as one."""
        grouped = {place for places in self.together for place in places}
        return [*self.together, *((place,) for place in np.flatnonzero(self.per).tolist() if place not in grouped)]


def importance(state: Any, cycles: Sequence[Cycle] = ()) -> Importance:
    """How much each column matters to the predictions of a state, from the state alone: no data are kept.

    A column's size is the variance that predictions have through it when the others are held, on average over these (Sobol's
    total index); so it counts what a column does by itself, in bends, and in products with others. Shares of a pool are the
    mean of its learners', by their weights. For weights on columns it is weight²·(mean square of the prepared column); where
    maps make features it is measured on rows that are made: every column independent, of the mean and the std that ``Inputs``
    has kept, normal, or 0 and 1 where these say so. Without ``Prepare`` columns are taken for N(0, 1).

    ``std`` is that of the weights under the belief and between the learners of a pool.

    Columns that always move together share what they do as the learner shares it. Of ``cycles``, as dates have them, it is
    known how they do: what weights add up to that cancel each other is what counts, and stands at the first of their columns.

    >>> import numpy as np, onlinevi as ovi
    >>> X = np.random.default_rng(0).standard_normal((400, 3)) * [1.0, 1e-3, 1e3]
    >>> learner = ovi.Auto(ovi.Squared(), effort="light")
    >>> state, _ = learner.update_many(learner.init(3), X, X @ [2.0, 1e3, 0.0])
    >>> ovi.importance(state).value.round(2).tolist()
    [0.8, 0.2, 0.0]
    """
    with one_thread_of_blas():
        each = tuple(_shares(own, cycles) for own in _classes(state))
    names = _names(state, len(each[0].value))
    if len(each) == 1:
        return Importance(names, each[0].value, np.sqrt(each[0].variance))
    both = _Shares(*(np.mean(part, axis=0) for part in zip(*each, strict=True)))
    told = tuple(Importance(names, own.value, np.sqrt(own.variance)) for own in each)
    return Importance(names, both.value, np.sqrt(both.variance / len(each)), told)


def _classes(state: Any) -> tuple[Any, ...]:
    if not hasattr(state, "by_class") or not all(hasattr(own, "parts") for own in state.by_class()):
        raise ValueError(f"{state!r}: needs the state of a learner that is linear in columns, or in features of them")
    found: tuple[Any, ...] = state.by_class()
    if not found:
        raise ValueError("no class has come yet: there is nothing to tell columns apart by")
    return found


def _names(state: Any, width: int) -> tuple[str, ...]:
    columns = state.columns or tuple(f"column {k}" for k in range(state.width))
    labels = [f"label {back} before" if back > 1 else "label before" for back in range(1, width - len(columns) + 1)]
    return (*columns, *labels)


def _shares(state: Any, cycles: Sequence[Cycle]) -> _Shares:
    """Those of a pool's learners, each by its weight."""
    parts = tuple(state.parts())
    width = max(part.width for part in parts)
    varied = _varied(state, width, int(np.clip(VALUES // width, 4, MOST_ROWS)), cycles)
    value, square, total = np.zeros(width), np.zeros(width), 0.0
    for part in parts:
        for (weight, _, _), sizes in zip(part.leaves, _sizes(part, varied), strict=True):
            if sizes.size.any():
                own = _as_shares(sizes)
                total += weight
                value += weight * own.value
                square += weight * (own.variance + np.square(own.value))
    if total > 0.0:
        value, square = value / total, square / total
    return _Shares(value, np.maximum(square - np.square(value), 0.0))


def _as_shares(sizes: _Sizes) -> _Shares:
    """Sizes as parts of their sum, and the variances of these by the slopes of a quotient; none of a share is above ¼."""
    total = sizes.size.sum()
    share, relative = sizes.size / total, sizes.variance / total / total
    variance = np.square(1.0 - share) * relative + np.square(share) * (relative.sum() - relative)
    return _Shares(share, np.minimum(variance, 0.25))


def _varied(state: Any, width: int, count: int, cycles: Sequence[Cycle] = ()) -> _Varied:
    """Rows of the laws that the moments of columns suggest."""
    from statistics import NormalDist

    rng = np.random.default_rng(0)
    places = (np.arange(count) + 0.5) / count
    one, other = (rng.permuted(np.tile(places[:, None], width), axis=0) for _ in range(2))
    as_before = (one == other).all(axis=0)  # as may happen to few rows
    other[:, as_before] = np.roll(one, 1, axis=0)[:, as_before]
    quantiles = np.array([NormalDist().inv_cdf(place) for place in places])
    rows, others = (quantiles[(place * count).astype(int)] for place in (one, other))
    per = 1.0 / np.square(rows - others).mean(axis=0)
    moments = getattr(state, "inputs", None)
    if moments is None:
        return _Varied(rows, others, per)
    mean, variance = moments.mean, np.square(moments.std)
    dim = len(mean)
    about_0 = np.full(dim, moments.kind == UNCENTRED)
    about_0[moments.centred] = False
    # Of columns that are not centred the mean is not known: those that could be marks, 1 where they are stored, are taken so.
    often = np.where(about_0, variance, mean)
    with np.errstate(over="ignore", invalid="ignore"):
        marks = np.where(about_0, variance <= 1.0, np.abs(mean * (1.0 - mean) - variance) <= BINARY * variance)
        rows[:, :dim] = np.where(marks, one[:, :dim] < often, mean + moments.std * rows[:, :dim])
        others[:, :dim] = np.where(marks, one[:, :dim] >= often, mean + moments.std * others[:, :dim])
    per[:dim] = np.where(marks, variance, per[:dim])
    per[:dim][~(variance > 0.0) | (moments.counts < 1.0)] = 0.0
    known = tuple(cycle for cycle in cycles if max(cycle.places) < dim and (per[cycle.places] > 0.0).any())
    for cycle in known:
        own = cycle.places
        rows[:, own], others[:, own] = (cycle.rows(part[:, cycle.sine], mean) for part in (one, other))
        per[own] = 0.5
    together = tuple(tuple(cycle.places) for cycle in known)
    if moments.kind == UNCENTRED:
        from scipy.sparse import csr_matrix

        return _Varied(csr_matrix(rows), csr_matrix(others), per, together)
    return _Varied(rows, others, per, together)


def _sizes(part: Part, varied: _Varied) -> list[_Sizes]:
    """Of each leaf, in units of its largest weight: the squares of weights may have no number."""
    scales = [float(np.abs(leaf.mean).max()) or 1.0 for _, leaf, _ in part.leaves]
    if part.columns is not None:
        return _straight(part, part.columns, varied, scales)
    draws = [_draws(leaf, unit) / scale for (_, leaf, unit), scale in zip(part.leaves, scales, strict=True)]
    found = np.zeros((len(draws), 2, len(varied.per)))
    base = part.see(varied.rows)
    for columns in varied.alone:
        if max(columns) >= part.width:
            continue
        moved = part.see(_with(varied, columns)) - base
        for own, drawn in zip(found, draws, strict=True):
            squares = varied.per[columns[0]] * np.square(moved @ drawn).mean(axis=0)
            own[:, columns[0]] = squares[0], squares[1:].var()
    return [_Sizes(*own) for own in found]


def _straight(part: Part, columns: Places, varied: _Varied, scales: list[float]) -> list[_Sizes]:
    """Of leaves on columns: a mean of m and a std of s have m²·c for a size, whose variance is c²·(4m²s² + 2s⁴)."""
    seen = part.see(varied.rows)
    moved = part.see(varied.others) - seen
    square = moved.multiply(moved) if hasattr(moved, "multiply") else np.square(moved)
    known = np.flatnonzero(columns >= 0)
    columns = columns[known]
    per, found = np.ravel(square.mean(axis=0))[known] * varied.per[columns], []
    for (weight, leaf, unit), scale in zip(part.leaves, scales, strict=True):
        mean, std = leaf.mean[known] / scale, unit / scale * leaf.std[known]
        own = _Sizes(np.zeros(len(varied.per)), np.zeros(len(varied.per)))
        own.size[columns] = per * np.square(mean)
        own.variance[columns] = np.square(per) * (4.0 * np.square(mean * std) + 2.0 * std**4)
        together = varied.together if weight > SLIGHT else ()
        drawn = _draws(leaf, unit) / scale if together else np.empty((0, 1))
        for places in together:
            features = known[np.isin(columns, places)]
            squares = (seen[:, features] @ drawn[features]).var(axis=0)  # their quantiles are spread evenly
            for size, value in ((own.size, squares[0]), (own.variance, squares[1:].var())):
                size[list(places)] = 0.0
                size[places[0]] = value
        found.append(own)
    return found


def _draws(leaf: Any, unit: float) -> Vector:
    """The mean of the weights, then draws of them, a column each."""
    drawn = leaf.plan.family.sample(leaf.belief, np.random.default_rng(1), DRAWS)
    return np.asarray(np.vstack([leaf.mean, leaf.mean + unit * (drawn - leaf.belief.mean)]).T)


def _with(varied: _Varied, columns: Sequence[int]) -> Any:
    """The rows with other values in these columns."""
    if hasattr(varied.rows, "tocsr"):
        rows = varied.rows
        for place in columns:
            rows = beside(rows[:, :place], varied.others[:, place : place + 1], rows[:, place + 1 :])
        return rows
    rows = varied.rows.copy()
    rows[:, list(columns)] = varied.others[:, list(columns)]
    return rows
