"""What the default is made of for several classes: pools of ``Softmax`` on columns and on features, beside one-vs-rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from onlinevi.beliefs import Family, FullCovariance, MeanField
from onlinevi.learners.base import Learner
from onlinevi.learners.class_pool import ClassPool
from onlinevi.learners.default.recipe import (
    FULL_UP_TO,
    NARROWER,
    WAVES,
    WIDE_SPARSE,
    Chosen,
    Member,
    View,
    linear,
    weighed,
)
from onlinevi.learners.expand import Expand, Fourier, Products, Relu, Splines
from onlinevi.learners.expand.space import space
from onlinevi.learners.one_vs_rest import OneVsRest
from onlinevi.learners.softmax import Softmax

STRAIGHT = (
    Member(0.1, 1.0),
    Member(0.3, 1.0),
    Member(1.0, 1.0),
    Member(4.0, 1.0),
    Member(4.0, 0.999),
    Member(20.0, 0.95),
)
"""On the columns, with covariances of each class."""
BESIDE = (Member(1.0, 1.0), Member(20.0, 0.99))
"""On the columns too, each class against the rest: two make as much of it as four."""
BENT = (
    View(Relu(200), (Member(1.0, 1.0), Member(4.0, 1.0), Member(4.0, 0.999)), WAVES),
    View(Fourier(200, scale=(0.5, 1.0)), (Member(1.0, 1.0), Member(4.0, 0.999)), WAVES),
    View(Products(), (Member(4.0, 1.0), Member(4.0, 0.999)), 16),
    View(Splines(), (Member(4.0, 1.0),), 30),
)
"""On features of them, with one covariance for all classes: as many features cost as much at any number of classes."""
APART = (View(Relu(100), (Member(1.0, 1.0),), WAVES), View(Fourier(100), (Member(1.0, 1.0),), WAVES))
"""The same with covariances of each class, where these are few: they make more of the first thousands of rows."""
MORE = (
    View(Relu(300, seed=1), (Member(4.0, 1.0), Member(20.0, 1.0)), WAVES),
    View(Fourier(300, scale=(0.5, 1.0), seed=1), (Member(4.0, 1.0), Member(20.0, 1.0)), WAVES),
)
"""What most is beside these."""
SHARED_UP_TO = 400
"""With more features a shared covariance costs more than it is worth."""
MOST_NUMBERS, FEW_NUMBERS = 1 << 20, 1 << 18
"""Of the covariances of all classes together, on columns and on features: of more classes, or columns, all share one."""
EXPECTED = 10
"""For how many classes learners are chosen where none is known yet."""


def pool_of_classes(chosen: Chosen, known: int, dim: int, *, grows: bool) -> ClassPool:
    """The learners of prepared rows of ``dim`` columns, the intercept first."""
    lines = (known or EXPECTED) + grows
    members: Sequence[Member] = STRAIGHT
    if dim > FULL_UP_TO[chosen.effort]:
        members = WIDE_SPARSE if chosen.sparse else [Member(NARROWER * std, discount) for std, discount in STRAIGHT]
    straight = _pool(chosen, known, dim, members, shared=lines * dim * dim > MOST_NUMBERS, grows=grows)
    one = replace(chosen, one_of_many=True)
    found: list[Learner[Any]] = [straight, OneVsRest(weighed(one, linear(one, dim, BESIDE)), known, grows)]
    if chosen.effort == "light" or chosen.sparse:  # to make features of sparse rows is to store more than they do
        return ClassPool(found)
    for views, shared in ((BENT, True), (MORE if chosen.effort == "most" else (), True), (APART, False)):
        for view in views:
            if dim - 1 <= view.most_columns:
                width = space(view.map, True, True, dim - 1, dim).width
                if shared or lines * width * width <= FEW_NUMBERS:
                    found.append(Expand(view.map, _pool(chosen, known, width, view.members, shared=shared, grows=grows)))
    return ClassPool(found)


def _pool(chosen: Chosen, known: int, dim: int, members: Sequence[Member], *, shared: bool, grows: bool) -> ClassPool:
    """The same learner at several priors and memories."""
    full = dim <= (SHARED_UP_TO if shared else FULL_UP_TO[chosen.effort])
    learners = []
    for std, discount in members:
        stds = (max(1.0, std), *[std] * (dim - 1))
        family: Family = FullCovariance(prior_std=stds, box=None) if full else MeanField(prior_std=stds, box=None)
        learners.append(Softmax(known, family, shared and full, discount, chosen.missing, grows))
    return ClassPool(learners)
