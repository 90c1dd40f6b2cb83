"""A state is a value: one packed array with named read-only views."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from onlinevi.beliefs import Family, Radii, edges, named_rows, placed, radii, with_floor
from onlinevi.engine import SETTING, SUM, Belief, Kernel, Prior, Vector
from onlinevi.learners.columns import Named
from onlinevi.learners.kernels import Features, kernel, speedup_of
from onlinevi.learners.parts import Part, first
from onlinevi.losses import Loss
from onlinevi.rules import Adaptive, Explicit, Rate, Rule

EXPLODED = 1e6
"""A covariance that has become this many times as wide as its prior is the work of steps too long, not of the rows."""


@dataclass(frozen=True)
class Plan:
    """Everything fixed about a run: its parts, its size, and what these mean for the compiled loop."""

    loss: Loss
    family: Family
    rule: Rule
    average: bool
    dim: int
    horizon: int | None
    discount: float = field(default=1.0, kw_only=True)
    missing: bool = field(default=False, kw_only=True)
    """Whether NaN in a row is a missing value, N(0, 1)."""
    dtype: str = field(default="float64", kw_only=True)
    """Of the vectors and of the rows; the sums are doubles."""
    lazy: bool = field(default=False, kw_only=True)
    """Whether coordinates forget when a row stores them."""
    grows_by: ClassVar[tuple[str, ...]] = ()
    """What may differ between shards of one learner."""
    learner: ClassVar[Any] = None
    """Whose plan it is, where one learner made it: told at a glance at every event."""

    @cached_property
    def settings(self) -> Vector:
        prior_scale, prior_power = (
            self.rule.prior_rate.schedule(self.horizon) if self.rule.prior_rate is not None else (np.inf, 0.0)
        )
        settings = np.zeros(len(SETTING))
        settings[[SETTING.step_scale, SETTING.step_power]] = self.step_rate.schedule(self.horizon)
        settings[[SETTING.prior_scale, SETTING.prior_power]] = prior_scale, prior_power
        settings[SETTING.per_variance] = self.rule.step_rate.per_variance
        settings[SETTING.lead] = self.rule.uses_next_rate
        settings[SETTING.moves_always] = self.moves_always
        settings[SETTING.ridge] = self.loss.ridge
        settings[SETTING.discount] = self.discount
        settings[SETTING.robust] = self.loss.robust or 0.0
        settings[SETTING.small_step] = self.small_step
        settings[SETTING.widest] = self.widest
        ball = radii(self.family, self.dim) or Radii(math.inf, math.inf)
        settings[[SETTING.mean_radius, SETTING.std_radius]] = ball
        return settings

    @cached_property
    def step_rate(self) -> Rate:
        """The rule's, with the constant for this box or ball where it has none of its own."""
        rate = self.rule.step_rate
        if isinstance(rate, Explicit):
            return self.rule.explicit_rate(rate.c, self.dim, self.horizon, *self._corners)
        return rate.fitted(self.rule.best_constant(*self._corners)) if isinstance(rate, Adaptive) else rate

    @property
    def _corners(self) -> tuple[Prior, Belief, Belief]:
        """The prior, and two points of the domain as far apart as it has.

        Those of a ball lie in the plane of the prior's mean, which is along the first axis.
        """
        prior = Prior(*(np.broadcast_to(row, (self.dim,)) for row in named_rows(self.prior_and_box)[:2]))
        ball = radii(self.family, self.dim)
        if ball is None:
            mean_low, mean_high, std_low, std_high = edges(self.family, self.dim)
            return prior, Belief(mean_low, std_low), Belief(mean_high, std_high)
        axis, other = np.eye(2)[:, : min(self.dim, 2)]
        prior = Prior(float(np.linalg.norm(prior.mean)) * axis, prior.std[:2])
        return prior, Belief(-ball.mean * axis, ball.std * other), Belief(ball.mean * axis, ball.std * axis)

    @cached_property
    def sizes(self) -> tuple[int, int, int]:
        """How many coordinates there are, and how many numbers a belief over them and the drift take."""
        return self.dim, self.family.belief_size(self.dim), self.dim if self.average else 0

    @cached_property
    def prior_and_box(self) -> Vector:
        """The rows of ``PriorAndBox`` as one array."""
        rows = self.family.prior_and_box(self.dim)
        if self.rule.std_floor > 0.0:
            rows = with_floor(rows, self.rule.std_floor)
        if self.dtype == "float32":
            check_single(rows)
        return rows

    @cached_property
    def parameters(self) -> tuple[float, ...]:
        return self.loss.parameters

    @cached_property
    def moves_always(self) -> bool:
        """Whether coordinates without a gradient move too, so that a sparse row costs as much as a dense one."""
        return self.rule.moves_without_gradient or self.loss.ridge > 0.0 or (self.discount < 1.0 and not self.lazy)

    @property
    def fills_rows(self) -> bool:
        """Whether zeros left out of a row gain nothing: every coordinate moves, by itself, with the others or into a ball."""
        return self.moves_always or self.family.correlated or self.features.ball

    @property
    def small_step(self) -> float:
        """Up to which rate·curvature·std² a step is small: never where a ridge, a prior term or the box acts on stds."""
        raised = np.any(named_rows(self.prior_and_box).std_low > 0.0)
        acts = self.loss.ridge > 0.0 or self.rule.prior_rate is not None or raised
        return -1.0 if acts else speedup_of(type(self.rule)).limit

    @property
    def widest(self) -> float:
        """Beyond which multiple of Σ x² the variance of a prediction is refused; infinite where no step widens a belief."""
        if not self.family.correlated:
            return math.inf
        with np.errstate(over="ignore"):  # a prior so wide that nothing is wider
            return float(np.square(EXPLODED * np.max(named_rows(self.prior_and_box).prior_std)))

    @cached_property
    def dense_kernel(self) -> Kernel:
        return self.kernel(sparse=False)

    @cached_property
    def sparse_kernel(self) -> Kernel:
        return self.kernel(sparse=True)

    def kernel(self, *, sparse: bool) -> Kernel:
        return kernel(*self.kinds, self.features, sparse=sparse)

    @property
    def kinds(self) -> Any:
        """The parts that the compiled loop is made of."""
        return type(self.loss), type(self.family), type(self.rule)

    @cached_property
    def features(self) -> Features:
        """What the compiled loop must be able to do."""
        return Features(
            per_coordinate=self.prior_and_box.ndim > 1,
            forgets=self.discount < 1.0 and not self.lazy,
            lazy=self.lazy,
            robust=self.loss.robust is not None,
            per_variance=self.rule.step_rate.per_variance,
            adaptive=isinstance(self.rule.step_rate, Adaptive),
            missing=self.missing,
            single=self.dtype == "float32",
            ball=radii(self.family, self.dim) is not None,
            floored=self.rule.std_floor > 0.0,
        )

    @cached_property
    def parts(self) -> dict[str, slice]:
        """Where the vectors lie among the ``numbers`` of a packed array."""
        _, belief, drift = self.sizes
        totals = belief if self.rule.keeps_std_total else self.dim
        sizes, names = [belief, totals, drift], ["belief", "totals", "drift"]
        if self.lazy:
            sizes, names = [*sizes, self.dim], [*names, "forgotten"]
        ends = np.cumsum([len(SUM) * 8 // np.dtype(self.dtype).itemsize, *sizes]).tolist()
        return {name: slice(*ends[k : k + 2]) for k, name in enumerate(names)}

    def numbers(self, array: Vector) -> NDArray[Any]:
        """A packed array as numbers of the vectors' type: of float32, two in each double."""
        return array if self.dtype == "float64" else array.view(self.dtype)

    def zeros(self) -> Vector:
        """A packed array of zeros."""
        return np.zeros(math.ceil([*self.parts.values()][-1].stop * np.dtype(self.dtype).itemsize / 8))

    def predict(self, belief: Any, x: Any) -> tuple[Any, Any]:
        """(a, v²): mean and variance of the prediction at a row, or at each row of a matrix."""
        return (self.family.predict_missing if self.missing else self.family.predict)(belief, x)

    def start(self) -> State:
        array = self.zeros()
        self.numbers(array)[self.parts["belief"]] = self.family.pack(self.family.init(self.dim))
        return State(array, self)

    def widened(self, dim: int) -> Plan:
        """The plan of the same run over more coordinates."""
        return replace(self, family=self.family.widened(dim), dim=dim)

    def __getstate__(self) -> dict[str, Any]:  # compiled kernels are made anew
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


VECTOR = 4
"""As many doubles go into a vector register."""


def aligned_copy(array: Vector) -> Vector:
    """A copy of a packed array whose belief starts where a vector load does: the vectors of others lie across cache lines."""
    room = np.empty(len(array) + VECTOR)
    skip = -(room.ctypes.data // room.itemsize + len(SUM)) % VECTOR
    copy = room[skip : skip + len(array)]
    copy[:] = array
    return copy


def check_single(prior_and_box: Vector) -> None:
    """Refuse a prior that float32 has no number for, or a box that it would make another."""
    with np.errstate(over="ignore"):
        narrow = prior_and_box.astype(np.float32)
    if not ((np.isfinite(prior_and_box) == np.isfinite(narrow)) & ((prior_and_box == 0.0) == (narrow == 0.0))).all():
        raise ValueError(
            "the prior or the box has values that float32 cannot hold: keep them within 1e-38 and 1e38, or leave dtype out"
        )


class State(Named):
    """The belief, what its rule keeps, and the sums that regret and certificates need, after ``count`` events."""

    __slots__ = ("array", "plan")

    def __init__(self, array: Vector, plan: Plan) -> None:
        array.setflags(write=False)
        self.array, self.plan = array, plan

    def held(self, name: str) -> Vector:
        """A vector as the array has it, in doubles: a view, or of float32 a copy."""
        found = self.plan.numbers(self.array)[self.plan.parts[name]].astype(np.float64, copy=False)
        found.setflags(write=False)
        return found

    def vector(self, name: str) -> Vector:
        """The belief, the totals or the drift; the belief with all forgotten that is to be, where rows make it up later."""
        if not (self.plan.lazy and name == "belief"):
            return self.held(name)
        plan = self.plan
        belief = plan.family.unpack(self.held("belief"), plan.dim)
        found = plan.family.pack(plan.family.caught_up(belief, plan.discount, self.count - self.held("forgotten")))
        found.setflags(write=False)
        return found

    @property
    def belief(self) -> Belief:
        return self.plan.family.unpack(self.vector("belief"), self.plan.dim)

    @property
    def mean(self) -> Vector:
        """The decision: the mean of the weights."""
        return self.vector("belief")[: self.plan.dim]

    @property
    def std(self) -> Vector:
        """The std of each weight; 0 for a point."""
        return np.asarray(self.belief.std)

    @property
    def count(self) -> int:
        """How many events it has learned from."""
        return int(self.array[SUM.count])

    @property
    def weight(self) -> float:
        """Σ row weights: the count, unless weights were given."""
        return float(self.array[SUM.weight])

    @property
    def unit_weights(self) -> bool:
        """Whether every row had the weight 1: Σ (w − 1)² is 0, not only Σ w the count."""
        return bool(self.count == self.weight == self.array[SUM.weight_square])

    @property
    def without_sums(self) -> bool:
        """Whether it is a merge that an earlier version made, which added up beliefs alone: nothing is certain of it."""
        return self.count > 0 and self.weight == 0.0

    @property
    def loss(self) -> float:
        """Σ loss at the decision."""
        return float(self.array[SUM.loss])

    @property
    def expected_loss(self) -> float:
        """Σ E_q[loss]."""
        return float(self.array[SUM.expected])

    @property
    def product(self) -> float:
        """Σ ⟨gradient of E_q[loss], (mean, std)⟩ = Σ (e1·a + e2·v²), ridge included."""
        return float(self.array[SUM.product])

    @property
    def magnitude(self) -> float:
        """Σ |e1·a|: the summands of ``product`` that can cancel, by which its rounding is known."""
        return float(self.array[SUM.magnitude])

    @property
    def weight_square(self) -> float:
        """Σ row weights²."""
        return float(self.array[SUM.weight_square])

    @property
    def gradient_square(self) -> float:
        """Σ ‖gradient of E_q[loss] in (mean, std)‖²."""
        return float(self.array[SUM.gradient_square])

    @property
    def largest_gradient(self) -> float:
        """The length of the longest of these gradients."""
        return float(np.sqrt(self.array[SUM.largest_square]))

    @property
    def square(self) -> float:
        """Σ ‖(mean, std)‖² over the decisions; kept with a ridge only, whose certificate needs it."""
        return float(self.array[SUM.square])

    @property
    def usual_slope(self) -> float:
        """The size of slopes by which a robust loss tells outliers, √(mean of trust·slope²); 0 if it has none yet."""
        sloped, squares = self.array[[SUM.sloped, SUM.slope_square]]
        return float(np.sqrt(squares / sloped)) if sloped > 0.0 else 0.0

    @property
    def gradient(self) -> Vector:
        """Σ gradient of E_q[loss] in the mean = Σ e1·x, ridge included."""
        return self.vector("totals")[: self.plan.dim]

    @property
    def average_loss(self) -> float:
        """The average loss so far."""
        return self.loss / self.count if self.count else float("nan")

    @property
    def average_mean(self) -> Vector:
        """The average of all decisions so far: what online-to-batch conversion predicts with."""
        if not self.plan.average:
            raise ValueError("the average decision was not kept: set average=True")
        return np.asarray(self.mean - self.vector("drift") / max(self.count, 1))

    def std_in(self, noise: float) -> Vector:
        """The stds as they are: a single belief's variances are in the units of its labels."""
        return self.std

    @property
    def width(self) -> int:
        """How many columns its rows have."""
        return self.plan.dim

    @property
    def begun(self) -> int:
        """As many: nothing depends on how many there were at first."""
        return self.plan.dim

    @property
    def space(self) -> None:
        """None: its weights are those of its rows' columns."""

    def up_to(self, later: Any) -> State:
        """Itself, as an earlier state of the run of this one."""
        return self

    def deciders(self) -> tuple[State, ...]:
        """Itself: what decides is one belief."""
        return (self,)

    def by_class(self) -> tuple[State, ...]:
        """Itself: one belief knows of two classes at most."""
        return (self,)

    def alone(self) -> State:
        """Itself: no other has a part in its decisions."""
        return self

    def leaves(self) -> tuple[State, ...]:
        """Itself: the state of the compiled loop."""
        return (self,)

    def parts(self, noise: float = 1.0) -> tuple[Part, ...]:
        """Itself, on the columns of its rows."""
        dim = self.plan.dim
        return (Part(((1.0, self, 1.0),), dim, partial(first, count=dim), np.arange(dim)),)

    def widened(self, dim: int) -> State:
        """For rows with further columns at the end, as if these had been 0 so far: their weights are at the prior."""
        old = self.plan
        if dim < old.dim:
            raise ValueError(f"dim={dim}: the state has {old.dim} columns already, and none can leave")
        if old.loss.ridge > 0.0:
            raise ValueError(f"{old.loss}: a ridge would have moved the new weights at every event; widen before the first")
        plan = old.widened(dim)
        start = plan.start()
        array = np.array(start.array)
        array[: len(SUM)] = self.array[: len(SUM)]
        numbers = plan.numbers(array)
        for name in plan.parts:
            was, now = self.held(name), start.held(name)
            if len(was) == old.sizes[1]:  # a belief, or totals laid out as one
                parts = zip(old.family.unpack(was, old.dim), plan.family.unpack(now, dim), strict=True)
                numbers[plan.parts[name]] = plan.family.pack(type(start.belief)._make(placed(*pair) for pair in parts))
            else:
                numbers[plan.parts[name]] = placed(was, now)
        return State(array, plan)

    def __repr__(self) -> str:
        return f"State(count={self.count}, dim={self.plan.dim}, average_loss={self.average_loss:.6g})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and self.plan == other.plan and np.array_equal(self.array, other.array)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (np.array(self.array), self.plan), self.__dict__ or None


def magnitude_at_most(state: State) -> float:
    """Σ |e1·a| of a state that did not keep it, from its sums and the box of means; without a box from the last mean.

    Files from before it was kept know no balls.
    """
    box, ridge = named_rows(state.plan.prior_and_box), state.plan.loss.ridge
    ends = np.maximum(np.abs(box.mean_low), np.abs(box.mean_high))
    furthest = np.linalg.norm(np.where(np.isfinite(ends), ends, np.abs(state.mean)) + np.zeros(state.plan.dim))
    pulled = 2.0 * ridge * np.sqrt(state.weight_square) * abs(state.expected_loss)
    steepness = np.sqrt(max(state.gradient_square, 0.0)) + np.sqrt(pulled)
    return min(float(furthest * np.sqrt(state.count) * steepness), sys.float_info.max)
