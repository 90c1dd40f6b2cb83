"""From the parameters of an estimator, which may be names, to the learner that it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

from onlinevi.beliefs import Family, FullCovariance, LowRank, MeanField, Point
from onlinevi.learners.calibration import Calibration
from onlinevi.learners.default.learner import Auto
from onlinevi.learners.inputs.inputs import Inputs
from onlinevi.learners.inputs.state import InputState
from onlinevi.learners.linear import Linear
from onlinevi.learners.prepare import Prepared
from onlinevi.losses import Absolute, Hinge, Logistic, Loss, Pinball, Poisson, Squared
from onlinevi.rules import NGVI, OGA, OGAEL, SVA, SVB, Implicit, PerSqrt, Rule

Learner: TypeAlias = Auto | Prepared
"""What plays a stream, behind prepared rows: many learners pooled, or one rule."""

CLASS_LOSSES: Mapping[str, Loss] = {"logistic": Logistic(), "hinge": Hinge()}
NUMBER_LOSSES: Mapping[str, Loss] = {
    "squared": Squared(),
    "absolute": Absolute(),
    "pinball": Pinball(),
    "poisson": Poisson(),
}
# The paper's constants, with rates that need no horizon: an estimator may be given further rows at any time.
RULES: Mapping[str, Rule] = {
    "sva": SVA(PerSqrt(1.0)),
    "svb": SVB(),
    "ngvi": NGVI(),
    "oga": OGA(PerSqrt(1.0)),
    "oga-el": OGAEL(PerSqrt(1.0)),
    "implicit": Implicit(),
}

FAMILIES: Mapping[str, type[FullCovariance | LowRank | MeanField | Point]] = {
    "mean-field": MeanField,
    "full": FullCovariance,
    "low-rank": LowRank,
    "point": Point,
}

Part = TypeVar("Part", Loss, Rule)


def named(what: str, given: str | Part, known: Mapping[str, Part], kind: type[Part], *others: str) -> Part:
    """The object that a name stands for; an object stands for itself."""
    if isinstance(given, kind):
        return given
    if not isinstance(given, str) or given not in known:
        names = ", ".join(repr(name) for name in (*others, *known))
        raise ValueError(f"{what}={given!r}: needs one of {names}, or a {what} object of onlinevi")
    return known[given]


def family_of(name: str, rule: str) -> Family:
    """The family that a name stands for with a rule; refused where that rule has no step for it."""
    if name not in FAMILIES:
        raise ValueError(f"family={name!r}: needs one of {', '.join(FAMILIES)}")
    if rule == "auto":
        raise ValueError(f"family={name!r}: auto chooses its families itself; leave the family out, or choose one rule")
    own = RULES[rule]
    fitting = [known for known, kind in FAMILIES.items() if _fits(own, kind())]
    if name not in fitting:
        raise ValueError(f"family={name!r}: {rule} has no step for it; with {rule} choose {' or '.join(fitting)}")
    return FAMILIES[name](box=None) if isinstance(own, Implicit) else FAMILIES[name]()


def _fits(rule: Rule, family: Family) -> bool:
    try:
        Linear(Squared(), rule, family)
    except ValueError:
        return False
    return True


def choose(
    loss: Loss, rule: str | Rule, family: Family | None, inputs: Inputs | None, coverage: float | None = None
) -> Learner:
    """The learner that these parameters ask for; ``coverage`` is for numbers, whose intervals are calibrated."""
    inputs = Inputs() if inputs is None else inputs
    if not isinstance(inputs, Inputs):
        raise TypeError(f"inputs={inputs!r}: needs Inputs(…) of onlinevi, or None for its defaults")
    if isinstance(rule, str) and rule == "auto":
        if family is not None:
            raise ValueError(f'family={family}: rule="auto" chooses its families itself; leave family out, or give a rule')
        return Auto(loss, inputs) if coverage is None else Auto(loss, inputs, coverage)
    own = named("rule", rule, RULES, Rule, "auto")
    if family is None and isinstance(own, Implicit):
        family = MeanField(box=None)  # it never overshoots, so labels of any unit are welcome
    linear = Linear(loss, own, family, average=False, missing=inputs.missing)
    return Prepared(inputs, linear, None if coverage is None else Calibration(coverage))


def begin(learner: Learner, dim: int, *, sparse: bool, horizon: int | None = None, moments: InputState | None = None) -> Any:
    """The state before the first row: the default asks whether rows are sparse, a rule how many will come.

    ``moments`` are those of another run, for inputs that are fixed.
    """
    state: Any = learner.init(dim, sparse=sparse) if isinstance(learner, Auto) else learner.init(dim, horizon)
    return state if moments is None else replace(state, inputs=moments)
