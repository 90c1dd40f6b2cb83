"""The results document: what one run leaves for a report, as plain values that fit in JSON.

Every part but the head may be absent. Numbers in lists may be NaN, where there was nothing to say; JSON has null there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from onlinevi.runs.report.document import from_plain, to_plain
from onlinevi.runs.report.scored import Alarms, Curve, Metrics, Numbers


@dataclass(frozen=True)
class Source:
    """The file that was learned from."""

    path: str
    sha256: str | None = None
    first_row: int | None = None
    last_row: int | None = None


@dataclass(frozen=True)
class Task:
    """What was to be predicted."""

    kind: Literal["classes", "numbers", "quantile", "counts"]
    target: str
    sentence: str
    """In words, such as "Predict diagnosis (benign or malignant) from 30 columns"."""
    classes: list[str] | None = None


@dataclass(frozen=True)
class Head:
    version: str
    """Of onlinevi."""
    command: str
    started: str
    """ISO time."""
    source: Source
    task: Task
    settings: dict[str, str] = field(default_factory=dict)
    """Learner, loss, rule, family and what else was chosen, as it would be typed."""
    columns: list[str] = field(default_factory=list)
    """The features that are learned from, the first of them."""
    features: int = 0
    """How many features were made of the columns of the data."""
    of_columns: int = 0
    """How many columns of the data those are."""


@dataclass(frozen=True)
class RefusedRow:
    row: int
    reason: str
    column: str | None = None


@dataclass(frozen=True)
class RefusedRows:
    count: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    """How many rows each reason refused."""
    first: list[RefusedRow] = field(default_factory=list)
    as_missing: int = 0
    """How many cells were not of their column's kind, and taken as missing: their rows are not refused."""


@dataclass(frozen=True)
class LateLabels:
    """What became of rows whose labels come by key, and of these."""

    wait: str
    """How long a row waits, in words."""
    otherwise: str | None
    """The label that stands for none."""
    waiting: int
    """Rows that wait still."""
    waiting_labels: int
    """Labels whose row may come yet."""
    rows: dict[str, int]
    """How many rows had their label, were learned otherwise, left out, crowded out, or under the key of one that waited."""
    labels: dict[str, int]
    """How many labels came before their row, twice, too late, or without a row."""
    out_of_order: int
    """Rows and labels that happened before what came before them."""


@dataclass(frozen=True)
class Summary:
    events: int
    average_loss: float
    error_rate: float | None = None
    coverage: float | None = None
    seconds: float | None = None
    rows_per_second: float | None = None
    bad_rows: RefusedRows = field(default_factory=RefusedRows)
    stopped: Literal["end", "interrupted", "bad row", "running"] = "end"
    late: LateLabels | None = None


@dataclass(frozen=True)
class LossCurve(Curve):
    """As ``Trace`` with ``record="thinned"`` has it: at most 4096 points."""

    steps: Numbers
    loss: Numbers
    """The mean loss of the events since the step before."""
    average_loss: Numbers


@dataclass(frozen=True)
class Best:
    """The best average loss in hindsight, and how far below it the true one can lie at most."""

    value: float
    gap: float
    among: str = ""
    """Which fixed weights it is the best of, such as "weights from −20 to 20"."""


@dataclass(frozen=True)
class RegretCurve(Curve):
    """All a row: the total at that step divided by the step."""

    steps: Numbers
    certified: Numbers | None = None
    """What the live certificate said at that moment."""
    observed: Numbers | None = None
    """Against the weights that are best for the whole run."""
    theorem: Numbers | None = None
    """What a theorem said before the data."""


@dataclass(frozen=True)
class Risk:
    """Of classes, for rows that come independently from one law: errors at new rows, each with probability 1 − delta."""

    delta: float
    guesses: float
    """Of the guesses made along the way, on average."""
    gibbs: float | None = None
    """Of weights drawn from the belief at the end, in expectation."""
    vote: float | None = None
    """Of the likelier answer under that belief."""
    kl: float | None = None
    """Of that belief to the prior."""


@dataclass(frozen=True)
class PosteriorPath(Curve):
    """Snapshots of the belief, at most 64: one row a step, one value a feature."""

    names: list[str]
    steps: Numbers
    mean: list[Numbers]
    std: list[Numbers]

    def __post_init__(self) -> None:
        super().__post_init__()
        for part in ("mean", "std"):
            for step, row in zip(self.steps, getattr(self, part), strict=True):
                if len(row) != len(self.names):
                    raise ValueError(f"{part} at step {step:g} has {len(row)} values for {len(self.names)} features")


@dataclass(frozen=True)
class ReliabilityBins(Curve):
    """For classes: ``onlinevi.uncertainty.reliability``; of more than two, of the probability of the guess."""

    predicted: Numbers
    observed: Numbers
    count: Numbers


@dataclass(frozen=True)
class CoverageCurve(Curve):
    """For numbers and counts: the part of the labels so far that lay in their intervals, and the intervals' width."""

    steps: Numbers
    coverage: Numbers
    target: float
    width: Numbers | None = None


@dataclass(frozen=True)
class SetsCurve(Curve):
    """For classes: the part of the labels so far that were in their sets, and how many classes these had on average."""

    steps: Numbers
    coverage: Numbers
    target: float
    size: Numbers
    recent: Numbers
    """The part of the last rows, ``--window`` or a step of them."""


@dataclass(frozen=True)
class ThroughputCurve(Curve):
    steps: Numbers
    rows_per_second: Numbers


@dataclass(frozen=True)
class Column:
    name: str
    kind: str = "number"
    mean: float | None = None
    std: float | None = None
    missing: int = 0
    holds: str = ""
    """What is in it that a mean does not tell: the commonest of its names, say."""


@dataclass(frozen=True)
class ColumnImportance(Curve):
    """How much each column matters, the most first: its share in the variance of predictions (``onlinevi.importance``)."""

    names: list[str]
    """Of columns of the data, all features of a column together; past labels too, where these are columns."""
    value: Numbers
    """The shares: they sum to 1, where not more columns than are told of have any."""
    std: Numbers


@dataclass(frozen=True)
class ClassColumns:
    """The columns that matter most to telling a class from the rest, and their shares (``onlinevi.importance``)."""

    name: str
    """Of the class."""
    columns: list[str]
    share: Numbers


@dataclass(frozen=True)
class OneShard:
    name: str
    events: int
    average_loss: float | None
    seconds: float
    attempts: int
    refused: int = 0
    error: str = ""
    """Why it was left out."""


@dataclass(frozen=True)
class Shards:
    """The parts that were learned from side by side."""

    each: list[OneShard]
    rounds: int = 1
    certificate: str = ""
    """What is certain of all of them together, in words."""


@dataclass(frozen=True)
class Results:
    """One run. ``to_json`` gives plain values for ``json.dump``, ``from_json`` reads them back."""

    head: Head
    summary: Summary | None = None
    trace: LossCurve | None = None
    hindsight: Best | None = None
    without_hindsight: str = ""
    """Why there is none, as part of a sentence."""
    regret: RegretCurve | None = None
    posterior: PosteriorPath | None = None
    without_posterior: str = ""
    """Why there is none, as part of a sentence."""
    calibration: ReliabilityBins | CoverageCurve | None = None
    sets: SetsCurve | None = None
    throughput: ThroughputCurve | None = None
    data: list[Column] | None = None
    shards: Shards | None = None
    risk: Risk | None = None
    metrics: Metrics | None = None
    importance: ColumnImportance | None = None
    told_by: list[ClassColumns] | None = None
    """Of more than two classes: by which columns each is told."""
    certificate: str = ""
    """What is certain whatever the data, as a sentence."""
    alarms: Alarms | None = None

    def to_json(self) -> dict[str, Any]:
        """Lists, dicts, strings and finite numbers only."""
        plain: dict[str, Any] = to_plain(self)
        return plain

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Results:
        """Refuses what does not fit, by its place. Keys it does not know are a later version's, and left alone."""
        results: Results = from_plain(document, cls, "results")
        return results
