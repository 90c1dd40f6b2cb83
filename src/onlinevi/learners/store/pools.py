"""The states of learners that are weighed together, and of the default, which is made of them."""

from __future__ import annotations

from dataclasses import fields
from itertools import accumulate, pairwise

from onlinevi.learners import calibration
from onlinevi.learners.calibration import Calibration
from onlinevi.learners.default.learner import Auto
from onlinevi.learners.default.outcome import AutoState
from onlinevi.learners.linear import Linear
from onlinevi.learners.pool import mixing
from onlinevi.learners.pool.aggregate import AdaHedge, Aggregate
from onlinevi.learners.pool.mixer import AggregateState, Mixer
from onlinevi.learners.store.configs import Decoder, encode
from onlinevi.learners.store.format import Archive, CheckpointError
from onlinevi.learners.store.named import Facts, check_finite, numbers_of, put_numbers
from onlinevi.learners.store.states import (
    FOREIGN,
    Arrays,
    check_belief,
    describe_inputs,
    describe_linear,
    describe_residuals,
    restore_inputs,
    restore_linear,
    restore_residuals,
    sizes_of,
)
from onlinevi.losses import Hinge, Logistic
from onlinevi.rules import Constant, PerSqrt, PerStep

POOL_SUMS = {"count": mixing.COUNT, "loss": mixing.LOSS, "gaps": mixing.GAP}


# --- learners weighed together


def describe_pool(learner: Aggregate, state: AggregateState, at: str) -> tuple[Facts, Arrays]:
    dim, horizon = state.dim, state.plan.plans[0].horizon
    if state.plan != learner.init(dim, horizon).plan:
        raise CheckpointError(FOREIGN)
    check_finite(state.array, "weights")
    facts: Facts = {"dim": int(dim), "horizon": None if horizon is None else int(horizon)}
    facts |= {"sums": numbers_of(state.array, POOL_SUMS), "learners": []}
    arrays = {at + name: state.array[where] for name, where in _parts(state.plan).items() if where.stop > where.start}
    for k, (one, own) in enumerate(zip(learner.learners, state.learners, strict=True)):
        own_facts, own_arrays = describe_linear(one, own, f"{at}learners/{k}/")
        facts["learners"].append(own_facts)
        arrays |= own_arrays
    return facts, arrays


def restore_pool(learner: Aggregate, facts: Facts, archive: Archive, at: str) -> AggregateState:
    dim, horizon = sizes_of(facts)
    for k, one in enumerate(learner.learners):
        check_belief(one, dim, archive, f"{at}learners/{k}/")
    mixer = learner.init(dim, horizon).plan
    array = mixer.start()
    put_numbers(array, facts["sums"], POOL_SUMS)
    for name, where in _parts(mixer).items():
        archive.fill(at + name, array[where])
    check_finite(array, "weights")
    pairs = enumerate(zip(learner.learners, facts["learners"], strict=True))
    states = tuple(restore_linear(one, own, archive, f"{at}learners/{k}/") for k, (one, own) in pairs)
    if any(own.plan != plan for own, plan in zip(states, mixer.plans, strict=True)):
        raise CheckpointError("its learners have different numbers of features, or horizons")
    return AggregateState(states, array, mixer)


def _parts(mixer: Mixer) -> dict[str, slice]:
    """Where the vectors of a pool lie, one number for each learner."""
    number = len(mixer.log_prior)
    sizes = {"losses": number, "log_weights": number if mixer.share > 0.0 else 0}
    sizes |= dict.fromkeys(("shifts", "residual_sizes"), number if mixer.level > 0.0 else 0)
    ends = accumulate(sizes.values(), initial=mixing.HEAD)
    return {name: slice(*between) for name, between in zip(sizes, pairwise(ends), strict=True)}


# --- the default


def describe_auto(learner: Auto, state: AutoState, at: str) -> tuple[Facts, Arrays]:
    """With the pool's own learners: what the default is made of may change, a state goes on with what it has."""
    pool = _pool_of(state.pooled.plan)
    _check_auto(learner, state)
    inputs, input_arrays = describe_inputs(learner.inputs, state.inputs, f"{at}inputs/")
    pooled, pool_arrays = describe_pool(pool, state.pooled, f"{at}pool/")
    facts: Facts = {"inputs": inputs, "pool": {"learner": encode(pool), "state": pooled}, "residuals": None}
    if state.calibrated is not None:
        facts["residuals"], _ = describe_residuals(Calibration(learner.coverage), state.calibrated, f"{at}residuals/")
    return facts, input_arrays | pool_arrays


def restore_auto(learner: Auto, facts: Facts, archive: Archive, at: str) -> AutoState:
    inputs = restore_inputs(learner.inputs, facts["inputs"], archive, f"{at}inputs/")
    pool = Decoder(archive.size).decode(facts["pool"]["learner"])
    if not isinstance(pool, Aggregate):
        raise CheckpointError(f"its pool is {pool!r}, no Aggregate")
    pooled = restore_pool(pool, facts["pool"]["state"], archive, f"{at}pool/")
    calibrated = None
    if facts["residuals"] is not None:
        calibrated = restore_residuals(Calibration(learner.coverage), facts["residuals"], archive, f"{at}residuals/")
    state = AutoState(inputs, pooled, calibrated)
    _check_auto(learner, state)
    return state


def _pool_of(mixer: Mixer) -> Aggregate:
    """The aggregate whose plan this is, with the rate of one horizon as a constant."""
    by_power = {0.0: Constant, 0.5: PerSqrt, 1.0: PerStep}
    pool = "probability" if mixer.by_probability else "quantile" if mixer.level > 0.0 else "prediction"
    return Aggregate(
        [Linear(**{item.name: getattr(plan, item.name) for item in fields(Linear)}) for plan in mixer.plans],
        rate=AdaHedge() if mixer.adaptive else by_power[mixer.schedule.power](mixer.schedule.scale),
        loss=mixer.loss,
        share=mixer.share,
        pool=pool,  # type: ignore[arg-type]
    )


def _check_auto(learner: Auto, state: AutoState) -> None:
    missed = None if state.calibrated is None else state.calibrated.settings[calibration.MISS_RATE]
    intended = None if isinstance(learner.loss, Logistic | Hinge) else 1.0 - learner.coverage
    prepared = {(plan.dim, plan.missing) for plan in state.pooled.plan.plans}
    same = state.pooled.plan.loss == learner.loss and missed == intended
    if not same or prepared != {(learner.inputs.dim_out(state.inputs.dim), learner.inputs.missing)}:
        raise CheckpointError(FOREIGN)
