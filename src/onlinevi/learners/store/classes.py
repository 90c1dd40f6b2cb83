"""The states of several classes, each against the rest."""

from __future__ import annotations

from typing import Any

from onlinevi.learners.choice import Learner
from onlinevi.learners.default.learner import Auto
from onlinevi.learners.default.outcome import AutoState
from onlinevi.learners.one_vs_rest import coupling
from onlinevi.learners.one_vs_rest.learner import Classes
from onlinevi.learners.one_vs_rest.outcome import ClassesState
from onlinevi.learners.prepare import PreparedState
from onlinevi.learners.store.format import Archive, CheckpointError
from onlinevi.learners.store.named import Facts, check_finite, numbers_of, put_numbers
from onlinevi.learners.store.pools import describe_auto, restore_auto
from onlinevi.learners.store.prepared import describe_prepared, restore_prepared
from onlinevi.learners.store.states import FOREIGN, Arrays

TOTALS = {str(boldness): place for place, boldness in enumerate(coupling.BOLDNESS)}


def describe_classes(learner: Classes, state: ClassesState, at: str) -> tuple[Facts, Arrays]:
    _check(learner, state)
    check_finite(state.coupled, "coupling")
    described = [_describe(learner.learner, own, f"{at}classes/{k}/") for k, own in enumerate(state.each)]
    facts: Facts = {"classes": [own for own, _ in described], "coupled": numbers_of(state.coupled, TOTALS), "later": None}
    if state.later is not None:
        described.append(_describe(learner.learner, state.later, f"{at}later/"))
        facts["later"] = described[-1][0]
    return facts, {name: array for _, arrays in described for name, array in arrays.items()}


def restore_classes(learner: Classes, facts: Facts, archive: Archive, at: str) -> ClassesState:
    coupled, own = coupling.start(), learner.learner
    put_numbers(coupled, facts["coupled"], TOTALS)
    each = tuple(_restore(own, one, archive, f"{at}classes/{k}/") for k, one in enumerate(facts["classes"]))
    later = None if facts["later"] is None else _restore(own, facts["later"], archive, f"{at}later/")
    state = ClassesState(each, later, coupled)
    _check(learner, state)
    return state


def _describe(learner: Learner, state: Any, at: str) -> tuple[Facts, Arrays]:
    if isinstance(learner, Auto):
        return describe_auto(learner, state, at)
    return describe_prepared(learner, state, at)


def _restore(learner: Learner, facts: Facts, archive: Archive, at: str) -> AutoState | PreparedState:
    if isinstance(learner, Auto):
        return restore_auto(learner, facts, archive, at)
    return restore_prepared(learner, facts, archive, at)


def _check(learner: Classes, state: ClassesState) -> None:
    """All classes have seen the same rows, and there are as many as the learner may have."""
    own = AutoState if isinstance(learner.learner, Auto) else PreparedState
    states = state.each if state.later is None else (*state.each, state.later)
    number = len(state.each) >= learner.known if learner.grows else len(state.each) == learner.known
    kinds = all(isinstance(each, own) for each in states) and (state.later is not None) == learner.grows
    if not (number and kinds and all(each.inputs == state.inputs for each in states)):
        raise CheckpointError(FOREIGN)
