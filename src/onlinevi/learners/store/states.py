"""The states of single learners, of prepared inputs and of residuals: as facts and arrays, and back."""

from __future__ import annotations

import numpy as np

from onlinevi.engine import Vector
from onlinevi.engine import loop as linear
from onlinevi.learners import calibration
from onlinevi.learners.calibration import Calibrated, Calibration
from onlinevi.learners.inputs import passes
from onlinevi.learners.inputs.inputs import Inputs
from onlinevi.learners.inputs.state import CENTRED, NONE_YET, UNCENTRED, InputState
from onlinevi.learners.linear import Linear
from onlinevi.learners.state import State
from onlinevi.learners.store.format import Archive, CheckpointError
from onlinevi.learners.store.named import Facts, check_finite, numbers_of, put_numbers, whole

Arrays = dict[str, Vector]

SUMS = {
    "count": linear.COUNT,
    "weight": linear.WEIGHT,
    "weight_square": linear.WEIGHT_SQUARE,
    "loss": linear.LOSS,
    "expected": linear.EXPECTED,
    "product": linear.PRODUCT,
    "gradient_square": linear.GRADIENT_SQUARE,
    "square": linear.SQUARE,
    "largest_square": linear.LARGEST_SQUARE,
    "sloped": linear.SLOPED,
    "slope_square": linear.SLOPE_SQUARE,
}
RESIDUAL_SUMS = {
    "count": calibration.COUNT,
    "missed": calibration.MISSED,
    "squares": calibration.SQUARES,
    "weight": calibration.WEIGHT,
    "log_ratio": calibration.LOG_RATIO,
    "last": calibration.LAST,
    "last_but_one": calibration.LAST_BUT_ONE,
    "plain_squares": calibration.PLAIN_SQUARES,
    "plain_weight": calibration.PLAIN_WEIGHT,
}
RESIDUAL_SETTINGS = {"miss_rate": calibration.MISS_RATE, "step": calibration.STEP, "kept": calibration.KEPT}
ROWS_SEEN = {"none": NONE_YET, "dense": CENTRED, "sparse": UNCENTRED}
MOMENTS = ("lag", "mean", "square")

FOREIGN = "this state belongs to another learner: save it with the one that made it"


# --- a learner


def describe_linear(learner: Linear, state: State, at: str) -> tuple[Facts, Arrays]:
    plan = state.plan
    if plan != learner.plan(plan.dim, plan.horizon):
        raise CheckpointError(FOREIGN)
    check_finite(state.array[: linear.HEAD], "state")
    sizes = {"dim": int(plan.dim), "horizon": None if plan.horizon is None else int(plan.horizon)}
    arrays = {at + name: state.vector(name) for name, where in plan.parts.items() if where.stop > where.start}
    for vector in arrays.values():
        check_finite(vector, "state")
    return sizes | {"sums": numbers_of(state.array, SUMS)}, arrays


def restore_linear(learner: Linear, facts: Facts, archive: Archive, at: str) -> State:
    dim, horizon = sizes_of(facts)
    check_belief(learner, dim, archive, at)
    plan = learner.plan(dim, horizon)
    for name, where in plan.parts.items():
        if archive.length(at + name) != where.stop - where.start:
            raise CheckpointError(f"its {name!r} has {archive.length(at + name)} values, not {where.stop - where.start}")
    array = plan.zeros()
    put_numbers(array, facts["sums"], SUMS)
    for name, where in plan.parts.items():
        vector = plan.numbers(array)[where]
        if vector.dtype == np.float64:
            archive.fill(at + name, vector)
        else:
            doubles = np.empty(len(vector))
            archive.fill(at + name, doubles)
            with np.errstate(over="ignore"):  # what no float holds is refused below
                vector[:] = doubles
        check_finite(vector, "state")
    return State(array, plan)


def sizes_of(facts: Facts) -> tuple[int, int | None]:
    """How many features a state has, and the horizon, where it was given one."""
    horizon = facts["horizon"]
    return whole(facts["dim"], "number of features"), None if horizon is None else whole(horizon, "horizon")


def check_belief(learner: Linear, dim: int, archive: Archive, at: str) -> None:
    """Refuse a number of features that the file has no belief over, before anything of that size is made."""
    held = archive.length(f"{at}belief")
    if dim > held or learner.belief_family.belief_size(dim) != held:
        raise CheckpointError(f"it claims {dim} features, but has a belief of {held} values")


# --- prepared inputs


def describe_inputs(inputs: Inputs, state: InputState, at: str) -> tuple[Facts, Arrays]:
    check_finite(state.array, "moments of columns")
    seen = next(name for name, kind in ROWS_SEEN.items() if kind == state.kind)
    return {"count": state.count, "rows_seen": seen}, {at + name: getattr(state, name) for name in MOMENTS}


def restore_inputs(inputs: Inputs, facts: Facts, archive: Archive, at: str) -> InputState:
    dim = whole(archive.length(f"{at}mean"), "number of columns")
    array = np.zeros(passes.HEAD + 3 * dim)
    array[passes.COUNT] = facts["count"]
    array[passes.KIND] = ROWS_SEEN[facts["rows_seen"]]
    for k, name in enumerate(MOMENTS):
        archive.fill(at + name, array[passes.HEAD + k * dim : passes.HEAD + (k + 1) * dim])
    check_finite(array, "moments of columns")
    return InputState(array)


# --- residuals


def describe_residuals(learner: Calibration, state: Calibrated, at: str) -> tuple[Facts, Arrays]:
    check_finite(np.concatenate([state.array, state.settings]), "sums of residuals")
    return {
        "sums": numbers_of(state.array, RESIDUAL_SUMS),
        "settings": numbers_of(state.settings, RESIDUAL_SETTINGS),
    }, {}


def restore_residuals(learner: Calibration, facts: Facts, archive: Archive, at: str) -> Calibrated:
    array, settings = np.zeros(len(RESIDUAL_SUMS)), np.zeros(len(RESIDUAL_SETTINGS))
    put_numbers(array, facts["sums"], RESIDUAL_SUMS)
    put_numbers(settings, facts["settings"], RESIDUAL_SETTINGS)
    if array[calibration.COUNT] > 0.0 and array[calibration.PLAIN_WEIGHT] == 0.0:  # a file from before these sums were kept
        array[[calibration.PLAIN_SQUARES, calibration.PLAIN_WEIGHT]] = array[[calibration.SQUARES, calibration.WEIGHT]]
    return Calibrated(array, settings)
