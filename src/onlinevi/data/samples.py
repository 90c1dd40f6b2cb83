"""Files to try things with: what scikit-learn carries, and tables drawn from a seed, with what is odd about real ones.

>>> import tempfile, pathlib
>>> from onlinevi.data import samples
>>> path = samples.write(pathlib.Path(tempfile.mkdtemp()) / "flats.csv")
>>> path.read_text().splitlines()[0]
'id,listed,district,size,rooms,floor,lift,price'
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from onlinevi.data.atomic import replace_text
from onlinevi.engine import did_you_mean

Rows: TypeAlias = tuple[list[str], Iterable[list[Any]]]
"""The names of columns, and rows."""


@dataclass(frozen=True)
class Sample:
    """A table: what is predicted, what it is, and how it is made."""

    target: str
    what: str
    rows: Callable[[], Rows]


def write(path: str | Path) -> Path:
    """Write the sample that the file is called after, as CSV; a file with other content is not replaced."""
    place = Path(path)
    if place.suffix.lower() != ".csv" or place.stem not in SAMPLES:
        known = [f"{name}.csv" for name in SAMPLES]
        raise ValueError(f"{place}: no sample is called so{did_you_mean(place.name, known)}: there are {', '.join(known)}")
    names, rows = SAMPLES[place.stem].rows()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)
    if place.exists() and (place.is_dir() or place.read_bytes() != text.getvalue().encode()):
        raise ValueError(f"{place} is there, with another content: write it elsewhere, as into samples/{place.name}")
    place.parent.mkdir(parents=True, exist_ok=True)
    replace_text(place, text.getvalue())
    return place


def _carried(name: str, target: str, *, shuffled: bool = False) -> Rows:
    """A table of scikit-learn's, the label in words where it has any."""
    try:
        from sklearn import datasets
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f'{name}.csv is made from what scikit-learn carries: pip install "onlinevi[data]"'
        ) from error
    loaded = getattr(datasets, f"load_{name}")()
    words = getattr(loaded, "target_names", None)
    labels = loaded.target.tolist() if words is None else [str(words[code]) for code in loaded.target]
    order = np.random.default_rng(0).permutation(len(labels)) if shuffled else np.arange(len(labels))
    columns = [str(column) for column in loaded.feature_names]
    return [*columns, target], ([*loaded.data[place].tolist(), labels[place]] for place in order)


def _flats() -> Rows:
    """3,000 flats in the order in which they were offered: dates, names, gaps, and prices that rise with time."""
    rng = np.random.default_rng(22)
    districts, worth = ["Centre", "Harbour", "Hill", "Mills", "North", "Old Town", "Station", "West"], rng.normal(0.0, 0.25, 8)

    def rows() -> Iterable[list[Any]]:
        day = date(2022, 1, 3)
        for number in range(3000):
            day += timedelta(int(rng.random() < 0.4))
            district, size = int(rng.integers(8)), float(np.exp(rng.normal(4.2, 0.4)))
            rooms, floor = max(1, round(size / 27.0 + rng.normal(0.0, 0.5))), int(rng.integers(0, 8))
            lift = bool(rng.random() < 0.2 + 0.1 * floor)
            price = 4100.0 * size * np.exp(worth[district] + number * 4e-5 + rng.normal(0.0, 0.12))
            price *= 1.0 + 0.02 * floor * (1.0 if lift else -0.5)
            known, with_lift = "" if rng.random() < 0.08 else floor, "yes" if lift else "no"
            yield [number + 1, day, districts[district], round(size, 1), rooms, known, with_lift, round(price)]

    return ["id", "listed", "district", "size", "rooms", "floor", "lift", "price"], rows()


def _visits() -> Rows:
    """Visits to a shop hour by hour, which are counts; from the 2,000th hour on a street is closed, and fewer come."""
    rng = np.random.default_rng(7)
    skies = ["clear", "cloudy", "rain", "snow"]

    def rows() -> Iterable[list[Any]]:
        for number in range(3000):
            hour, weekday = 8 + number % 12, number // 12 % 7
            sky, warmth = int(rng.choice(4, p=[0.4, 0.35, 0.2, 0.05])), float(rng.normal(12.0, 8.0))
            log_rate = 2.3 + 0.5 * np.sin((hour - 8) / 12.0 * np.pi) + 0.4 * (weekday == 5) - 0.2 * sky + 0.01 * warmth
            log_rate -= 0.7 * (number >= 2000)
            missing = rng.random() < 0.03
            yield [hour, weekday, skies[sky], "" if missing else round(warmth, 1), int(rng.poisson(np.exp(log_rate)))]

    return ["hour", "weekday", "sky", "warmth", "visits"], rows()


IRIS, WINE = (partial(_carried, name, target, shuffled=True) for name, target in (("iris", "species"), ("wine", "grower")))
SAMPLES = {
    "iris": Sample("species", "150 flowers of three kinds, in an order drawn once", IRIS),
    "breast": Sample("diagnosis", "569 tumours, benign or malignant", partial(_carried, "breast_cancer", "diagnosis")),
    "wine": Sample("grower", "178 wines of three growers, in an order drawn once", WINE),
    "diabetes": Sample("progression", "442 patients, and a number to predict", partial(_carried, "diabetes", "progression")),
    "flats": Sample("price", "3,000 flats, drawn: dates, names and gaps; prices rise", _flats),
    "visits": Sample("visits", "3,000 hours of a shop, drawn: counts, and a change at the 2,000th", _visits),
}
"""Every sample by the name of its file."""
