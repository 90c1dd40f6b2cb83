"""Models of shards as one: what each has learned, in natural parameters, added to the prior that all began with."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

from onlinevi.data import Schema
from onlinevi.runs.job import Job
from onlinevi.runs.rejected import FIRST

_REMEDY = "run one shard first, and the others with --prepare-like its model"


def merge_jobs(jobs: Mapping[str, Job]) -> Job:
    """One model from those of shards, given by name: prior + Σ (shard − prior), and the sums of what they paid."""
    (name, first), *others = sorted(_checked(jobs), key=lambda named: -len(named[1].class_names))  # it knows all classes
    for other_name, other in others:
        _check_alike(f"{name} and {other_name}", first, other)
    _check_apart(jobs)
    shards = list(jobs.values())
    # Where the first shard has taught the moments, its inputs were not fixed yet; in the merge they are.
    like = first.settings.prepare_like or name
    merged = Job(replace(first.settings, prepare_like=like, first_row=0, end_row=None), first.schema)
    merged.state, merged.prepared_by = merged.learner.merge([job.state for job in shards]), first.state.inputs
    merged.merged = tuple(itertools.chain.from_iterable(job.origins for job in shards))
    merged.notes["started"] = min(str(job.notes.get("started", "")) for job in shards)
    add_accounts(merged, shards)
    return merged


def add_accounts(merged: Job, shards: Iterable[Job]) -> None:
    """Add what is told of the rows of shards: totals, metrics, and rows left out."""
    for job in shards:
        merged.class_weights = merged.class_weights.with_those_of(job.class_weights)
        merged.metrics.add_up(job.metrics)
        merged.rejected.count += job.rejected.count
        merged.rejected.reasons.update(job.rejected.reasons)
        merged.rejected.first += job.rejected.first[: FIRST - len(merged.rejected.first)]


def _checked(jobs: Mapping[str, Job]) -> list[tuple[str, Job]]:
    if len(jobs) < 2:
        raise ValueError(f"{', '.join(jobs) or 'nothing'} alone is no merge: name the models of at least two shards")
    return list(jobs.items())


def _check_alike(names: str, one: Job, other: Job) -> None:
    """Refuse models whose weights do not mean the same, or that did not begin with the same prior."""
    if differs := _first_difference(one.schema, other.schema):
        raise ValueError(f"{names} have not the same columns, they differ in {differs}: {_REMEDY}")
    ours, its = one.state.leaves(), other.state.leaves()
    parts: list[tuple[Any, Any]] = [(one.settings.rule, other.settings.rule)]
    for plan, other_plan in ((leaf.plan, its_leaf.plan) for leaf, its_leaf in zip(ours, its, strict=False)):
        names_of = [part.name for part in fields(plan) if part.name not in plan.grows_by]
        parts += [(getattr(plan, name), getattr(other_plan, name, None)) for name in names_of]
    parts += [(getattr(one.settings, name), getattr(other.settings, name)) for name in ("coverage", "cost", "abstain")]
    if differing := [pair for pair in parts if pair[0] != pair[1]]:
        first, second = differing[0]
        raise ValueError(f"{names} have not the same learner and prior, {first} and {second}: run both alike")
    if one.state.inputs != other.state.inputs:
        raise ValueError(f"{names} have not prepared their columns by the same means and stds: {_REMEDY}")


def _first_difference(one: Schema, other: Schema) -> str | None:
    for part in fields(Schema):
        ours, its = getattr(one, part.name), getattr(other, part.name)
        if part.name == "task":  # why they were guessed may differ, and one may have met more classes
            both = min(len(ours.names), len(its.names))
            ours, its = ((task.kind, len(task.names) > 2, task.names[:both]) for task in (ours, its))
        if ours != its:
            return f"{part.name}, {_short(ours)} and {_short(its)}"
    return None


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _check_apart(jobs: Mapping[str, Job]) -> None:
    """Refuse rows that would count twice."""
    known = [(name, origin) for name, job in jobs.items() for origin in job.origins]
    for (name, origin), (other_name, other) in itertools.combinations(known, 2):
        if origin.overlaps(other):
            raise ValueError(
                f"{name} and {other_name} have rows in common, {origin} and {other}: they would count twice; leave one out, "
                "or run one on --rows that the other has not"
            )
