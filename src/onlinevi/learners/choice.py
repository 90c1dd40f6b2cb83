"""From the parameters of an estimator or of a command, which may be names, to the learner that they mean."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from onlinevi.beliefs import Ball, Family, FullCovariance, MeanField, Point
from onlinevi.engine import did_you_mean, look_up, named
from onlinevi.learners.base import Learner
from onlinevi.learners.calibrate import Calibrate
from onlinevi.learners.calibration import Calibration
from onlinevi.learners.default import Auto, Effort
from onlinevi.learners.expand import Beside, Expand, FeatureMap
from onlinevi.learners.inputs import Inputs
from onlinevi.learners.linear import Linear
from onlinevi.learners.prepare import Prepare
from onlinevi.learners.softmax import Softmax
from onlinevi.losses import Loss, Squared, Target
from onlinevi.rules import OGA, OGAEL, SVA, Implicit, LazyOGAEL, PerSqrt, Rule, spelled, split_outside

WITHOUT_HORIZON: Mapping[type[Rule], Rule] = {kind: kind(PerSqrt(1.0)) for kind in (SVA, OGA, OGAEL, LazyOGAEL)}
"""The paper's constants, with rates that need no horizon: an estimator may be given further rows at any time."""

Part = TypeVar("Part", Loss, Rule)


def losses_of(*targets: Target) -> dict[str, type[Loss]]:
    """The losses of these tasks by their names."""
    return {name: kind for name, kind in named(Loss).items() if kind.target in targets}


def loss_of(given: str | Loss, *targets: Target) -> Loss:
    """The loss that a name stands for, of one of these tasks; an object stands for itself."""
    if isinstance(given, Loss):
        given.check_probability()
        return given
    names = losses_of(*targets)
    if given not in names and ":" not in str(given):
        raise ValueError(
            f"loss={given!r}{did_you_mean(given, names)}: needs one of {_listed(names)}, or a loss object of onlinevi"
        )
    kind = look_up(Loss, given, "loss")
    if kind.target not in targets:
        raise ValueError(f"loss={given!r} is for {kind.target}, not for {' or '.join(targets)}: choose another estimator")
    kind.check_probability()
    return kind()


def rule_of(given: str | Rule) -> Rule:
    """The rule that a name stands for, with settings where these follow: ``ngvi(floor=0.1)``. An object stands for itself."""
    if isinstance(given, Rule):
        return given
    names, (name, settings) = named(Rule), spelled(str(given))
    if name not in names and ":" not in name:
        meant = did_you_mean(name, ["auto", *names])
        raise ValueError(f"rule={given!r}{meant}: needs one of {_listed(['auto', *names])}, or a rule object of onlinevi")
    kind = look_up(Rule, name, "rule")
    if not settings:
        return WITHOUT_HORIZON.get(kind) or kind()
    takes = _fields(kind)
    wrong = [setting for setting in settings if setting not in takes]
    if wrong:
        meant = did_you_mean(wrong[0], takes)
        raise ValueError(f"rule={given!r}: {name} has no setting {wrong[0]!r}{meant}; it takes {', '.join(takes) or 'none'}")
    try:
        return kind(**settings)
    except TypeError as error:
        raise ValueError(f"rule={given!r}: a setting is of the wrong kind ({error})") from error


def _fields(kind: Any) -> list[str]:
    return [one.name for one in fields(kind)] if is_dataclass(kind) else []


def _listed(names: Any) -> str:
    return ", ".join(repr(name) for name in names)


def family_of(name: str, rule: str) -> Family:
    """The family that a name stands for with a rule; refused where that rule has no step for it."""
    families = named(Family)
    if name not in families and ":" not in name:
        raise ValueError(f"family={name!r}{did_you_mean(name, families)}: needs one of {', '.join(families)}")
    if rule == "auto":
        raise ValueError(f"family={name!r}: auto chooses its families itself; leave the family out, or choose one rule")
    own, kind = rule_of(rule), look_up(Family, name, "family")
    if not _fits(own, kind()):
        fitting = " or ".join(known for known, other in families.items() if _fits(own, other()))
        raise ValueError(f"family={name!r}: {rule} has no step for it; with {rule} choose {fitting}")
    made: Family = kind(box=None) if own.takes_any_unit else kind()  # type: ignore[call-arg]
    return made


def in_ball(family: Family | None, rule: str, radius: float) -> Family:
    """The family, or the rule's own, with its means in the ball of this radius about 0, and its stds in that of the prior."""
    if rule == "auto":
        raise ValueError(f"ball={radius!r}: auto chooses its beliefs itself; leave the ball out, or choose one rule")
    own: Any = family or (MeanField() if rule_of(rule).gaussian else Point())
    made: Family = replace(own, box=Ball(radius, None if own.correlated else 1.0))
    return made


def map_of(given: str, rule: str) -> FeatureMap:
    """The feature map that a name stands for, its settings in brackets; of several names at commas, all beside each other.

    >>> from onlinevi.learners import map_of
    >>> map_of("fourier(count=20, scale=(0.5, 1.0)), splines", "implicit").maps[1]
    Splines(knots=6, degree=3, reach=3.0)
    """
    if rule == "auto":
        raise ValueError(f"expand={given!r}: auto chooses its columns itself; leave expand out, or choose one rule")
    found = [_made_map(part) for part in split_outside(given)]
    if not found:
        raise ValueError(f"expand={given!r}: needs names at commas, with settings in brackets, as fourier(count=200), splines")
    return found[0] if len(found) == 1 else Beside(tuple(found))


def _made_map(text: str) -> FeatureMap:
    name, opened, settings = text.partition("(")
    kind = look_up(FeatureMap, name.strip(), "expand")  # type: ignore[type-abstract]
    try:
        call = ast.parse(f"made({settings if opened else ')'}", mode="eval").body
        if not isinstance(call, ast.Call) or call.args:
            raise ValueError("settings have names")
        return kind(**{str(own.arg): ast.literal_eval(own.value) for own in call.keywords})
    except (SyntaxError, TypeError, ValueError, MemoryError, RecursionError) as error:
        raise ValueError(f"expand={text!r} cannot be made ({error}): give settings as {name}(seed=1)") from error


def check_of_auto(effort: Effort, lags: int) -> None:
    """Refuse beside one rule what is a setting of ``Auto`` alone."""
    if effort != "default":
        raise ValueError(f'effort={effort!r}: how much the default does; leave it out, or take rule="auto"')
    if lags:
        raise ValueError(f'lags={lags!r}: the default takes past labels as columns; leave it out, or take rule="auto"')


def _fits(rule: Rule, family: Family) -> bool:
    try:
        Linear(Squared(), rule, family)
    except ValueError:
        return False
    return True


ClassesBy: TypeAlias = Literal["softmax", "one-vs-rest"]
"""How more than two classes are told apart: by one posterior for all, or a learner for each."""


def check_classes_by(given: str | None, rule: str | Rule) -> None:
    """Refuse what is no way to tell classes apart, or has no step for it; None leaves it to ``classes_by_of``."""
    if given is not None and given not in get_args(ClassesBy):
        raise ValueError(f"classes_by={given!r}: needs one of {', '.join(map(repr, get_args(ClassesBy)))}")
    if given == "softmax" and not (rule == "auto" or rule_of(rule) == Implicit()):
        raise ValueError(f"classes_by='softmax' with rule={rule!r}: it has implicit steps; use 'auto' or 'implicit'")


def classes_by_of(given: ClassesBy | None, loss: Loss, rule: str | Rule, lags: int = 0) -> ClassesBy:
    """How classes are told apart where it may not have been said: by one posterior, where ``Auto`` learns probabilities.

    >>> import onlinevi as ovi
    >>> classes_by_of(None, ovi.Logistic(), "auto"), classes_by_of(None, ovi.Logistic(), "ngvi")
    ('softmax', 'one-vs-rest')
    """
    if given is not None:
        return given
    return "softmax" if isinstance(rule, str) and rule == "auto" and loss.odds is not None and not lags else "one-vs-rest"


def choose_softmax(
    loss: Loss,
    rule: str | Rule,
    family: Family | None,
    inputs: Inputs | None,
    expand: FeatureMap | None,
    effort: Effort,
    known: int,
    *,
    grows: bool,
    discount: float = 1.0,
) -> Learner[Any]:
    """The learner that these parameters ask for where one posterior tells several classes apart."""
    check_classes_by("softmax", rule)
    if loss.odds is None or loss.ridge > 0.0 or loss.robust is not None:
        raise ValueError(f"classes_by='softmax' with loss={loss}: its loss is that of probabilities; use Logistic(), as it is")
    whole = choose(loss, rule, family, inputs, None, expand, effort)  # refuses what does not go together
    if isinstance(whole, Auto):
        return replace(whole, known=known, grows=grows)
    inputs = Inputs() if inputs is None else inputs
    own = FullCovariance(box=None) if family is None else family
    leaf = Softmax(known, own, discount=discount, missing=inputs.missing, grows=grows)
    return Prepare(inputs, leaf if expand is None else Expand(expand, leaf, intercept=inputs.intercept))


def choose(
    loss: Loss,
    rule: str | Rule,
    family: Family | None,
    inputs: Inputs | None,
    coverage: float | None = None,
    expand: FeatureMap | None = None,
    effort: Effort = "default",
    lags: int = 0,
) -> Learner[Any]:
    """The learner that these parameters ask for; ``coverage`` is for numbers, whose intervals are calibrated.

    ``effort`` and ``lags`` are those of ``Auto``.
    """
    inputs = Inputs() if inputs is None else inputs
    if not isinstance(inputs, Inputs):
        raise TypeError(f"inputs={inputs!r}: needs Inputs(…) of onlinevi, or None for its defaults")
    if isinstance(rule, str) and rule == "auto":
        if family is not None:
            raise ValueError(f'family={family}: rule="auto" chooses its families itself; leave family out, or give a rule')
        if expand is not None:
            raise ValueError(f'expand={expand}: rule="auto" chooses its columns itself; leave expand out, or give a rule')
        return Auto(loss, inputs, Auto.coverage if coverage is None else coverage, effort, lags)
    check_of_auto(effort, lags)
    own = rule_of(rule)
    if family is None and own.takes_any_unit:
        family = MeanField(box=None)
    leaf = Linear(loss, own, family, average=False, missing=inputs.missing)
    prepared = Prepare(inputs, leaf if expand is None else Expand(expand, leaf, intercept=inputs.intercept))
    return prepared if coverage is None else Calibrate(Calibration(coverage), prepared)
