"""The part of the results document that says how good predictions were, and when they became worse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

Numbers = list[float]


@dataclass(frozen=True)
class Curve:
    """What changes over a run: lists of the same length but for names, which are those of features."""

    def __post_init__(self) -> None:
        lengths = {name: len(part) for name, part in vars(self).items() if isinstance(part, Sequence) and name != "names"}
        if len(set(lengths.values())) > 1:
            found = ", ".join(f"{name} has {length}" for name, length in lengths.items())
            raise ValueError(f"{type(self).__name__}: needs one value a step in each part; {found}")


@dataclass(frozen=True)
class Scored:
    """Metrics by their names, the most telling first, of the learner and of what needs no model; NaN where undefined."""

    events: int
    learner: dict[str, float]
    constant: dict[str, float]
    """Of always saying the best constant so far: class frequencies, the mean, or the quantile of the labels before."""
    last_label: dict[str, float]
    """Of saying the same as last time."""


@dataclass(frozen=True)
class ScoresOverTime:
    """Of stretches of about the same length, at most 64: each metric, by its name, of the rows since the step before."""

    steps: Numbers
    learner: dict[str, Numbers]
    constant: dict[str, Numbers]
    last_label: dict[str, Numbers]


@dataclass(frozen=True)
class LastRows(Curve):
    """Of numbers, counts and quantiles: labels of the last rows, and what was said of them before they came."""

    label: Numbers
    prediction: Numbers


@dataclass(frozen=True)
class OneClass:
    """What is told of a class; NaN where there was nothing to tell it of."""

    name: str
    rows: int
    """How often it came."""
    precision: float
    """Of the rows that were taken for it, the part that were of it."""
    recall: float
    """Of the rows of it, the part that were taken for it."""
    f1: float
    ece: float
    """How far its probability is off what came of it, on average over the rows."""
    coverage: float
    """The part of its rows whose set held it."""
    set_size: float
    """How many classes these sets had, on average."""
    weight: float | None = None
    """How often its rows counted in learning, where classes have weights: the next row, where these are balanced."""


@dataclass(frozen=True)
class Metrics:
    """How good predictions were, each made before its label was seen."""

    so_far: Scored
    lead: str
    """The metric by which the learner is compared with what needs no model."""
    recent: Scored | None = None
    """Of the last rows, at most ``window``; none where shards were learned from side by side."""
    window: int = 0
    since: int = 0
    """How many rows came before the first that was measured: runs of earlier versions measured none."""
    auc_error: float | None = None
    """What the area under the curve of all rows can be off by at most."""
    skill: dict[str, float] = field(default_factory=dict)
    """Against "constant" and "last_label", by the lead metric, of errors squared: 1 is all that can be gained, 0 nothing."""
    verdict: str = ""
    """A sentence where the learner does not beat one of them."""
    confusion: list[list[int]] | None = None
    """Of classes: how often each, a row, was taken for each, a column, in the order of ``task.classes``."""
    classes: list[OneClass] | None = None
    """Of classes, each by itself, over all rows."""
    over_time: ScoresOverTime | None = None
    last_rows: LastRows | None = None


@dataclass(frozen=True)
class MovedColumn:
    name: str
    before: float
    after: float
    """Its means before the change and since."""
    stds: float
    """Their distance in stds of before."""


@dataclass(frozen=True)
class OneAlarm:
    """That large losses have become more frequent."""

    row: int
    """Behind how many rows it rang."""
    since: int
    """Behind how many of them the change came, as far as the evidence tells."""
    level: float
    """What was a large loss."""
    before: float
    """The share of large losses before."""
    after: float
    moved: list[MovedColumn]
    """The columns whose means moved most, the target or its classes among them."""


@dataclass(frozen=True)
class Alarms:
    """All false alarms together have at most the chance delta, over a stream without end."""

    delta: float
    count: int
    rang: list[OneAlarm]
    """The last 64 of them."""
    since: int = 0
    """How many rows came before the first that was watched."""
    columns: bool = True
    """Whether columns were watched beside the losses, which more than 100 are not."""
