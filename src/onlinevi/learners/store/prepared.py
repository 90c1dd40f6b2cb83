"""The states of one learner behind prepared rows."""

from __future__ import annotations

from onlinevi.learners.prepare import Prepared, PreparedState
from onlinevi.learners.store.format import Archive, CheckpointError
from onlinevi.learners.store.named import Facts
from onlinevi.learners.store.states import (
    FOREIGN,
    Arrays,
    describe_inputs,
    describe_linear,
    describe_residuals,
    restore_inputs,
    restore_linear,
    restore_residuals,
)


def describe_prepared(learner: Prepared, state: PreparedState, at: str) -> tuple[Facts, Arrays]:
    _check(learner, state)
    inputs, input_arrays = describe_inputs(learner.inputs, state.inputs, f"{at}inputs/")
    learned, arrays = describe_linear(learner.linear, state.learned, f"{at}learned/")
    facts: Facts = {"inputs": inputs, "learned": learned, "residuals": None}
    if learner.calibration is not None and state.calibrated is not None:
        facts["residuals"], _ = describe_residuals(learner.calibration, state.calibrated, f"{at}residuals/")
    return facts, input_arrays | arrays


def restore_prepared(learner: Prepared, facts: Facts, archive: Archive, at: str) -> PreparedState:
    inputs = restore_inputs(learner.inputs, facts["inputs"], archive, f"{at}inputs/")
    learned, calibrated = restore_linear(learner.linear, facts["learned"], archive, f"{at}learned/"), None
    if learner.calibration is not None and facts["residuals"] is not None:
        calibrated = restore_residuals(learner.calibration, facts["residuals"], archive, f"{at}residuals/")
    state = PreparedState(inputs, learned, calibrated)
    _check(learner, state)
    return state


def _check(learner: Prepared, state: PreparedState) -> None:
    same = (learner.calibration is None) == (state.calibrated is None)
    if not same or learner.inputs.dim_out(state.inputs.dim) != state.learned.plan.dim:
        raise CheckpointError(FOREIGN)
