"""What every family is, and the box or the ball that keeps a belief inside the domain of the guarantees."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeAlias

import numpy as np

from onlinevi.beliefs.ball_steps import means_into_ball
from onlinevi.engine import Belief, Event, Moments, Real, Vector

PerCoordinate: TypeAlias = float | Sequence[float]
"""One value for all coordinates, or one each."""


class PriorAndBox(NamedTuple):
    """The prior and the box as the loop reads them: for each field one value for all coordinates, or a vector of one each."""

    prior_mean: Any
    prior_std: Any
    mean_low: Any
    mean_high: Any
    std_low: Any
    std_high: Any


def named_rows(prior_and_box: Any) -> PriorAndBox:
    """The rows of ``Family.prior_and_box`` by their names, for Python and for compiled code, which knows no star here."""
    return PriorAndBox(
        prior_and_box[0], prior_and_box[1], prior_and_box[2], prior_and_box[3], prior_and_box[4], prior_and_box[5]
    )


def with_floor(prior_and_box: Vector, floor: float) -> Vector:
    """The same rows where no std falls below this part of the prior's."""
    box = named_rows(prior_and_box)
    return np.stack(box._replace(std_low=np.maximum(box.std_low, floor * box.prior_std)))


@dataclass(frozen=True)
class Box:
    """Bounds for means, and for stds as multiples of the prior's std. None means unbounded.

    The default is the paper's (section 5.1): means in [−20, 20], stds in [0, prior std].
    """

    mean: tuple[PerCoordinate, PerCoordinate] | None = (-20.0, 20.0)
    std: tuple[float, float] | None = (0.0, 1.0)

    def __post_init__(self) -> None:
        if self.mean is not None:
            low, high = (frozen(bound) for bound in self.mean)
            object.__setattr__(self, "mean", (low, high))
            if not (np.asarray(low) <= np.asarray(high)).all():
                raise ValueError(f"Box(mean={self.mean}): the low end must not be above the high end; try (-20, 20)")
        if self.std is not None and not 0.0 <= self.std[0] <= self.std[1]:
            raise ValueError(f"Box(std={self.std}): needs 0 ≤ low ≤ high; try (0, 1)")


@dataclass(frozen=True)
class Ball:
    """The balls of section 4.2: ‖mean‖ ≤ ``mean``, and ‖std‖ ≤ ``std`` times the norm of the prior's stds. None: no bound.

    A step ends at the nearest point of the ball: what lies outside is scaled back. That is the projection of the theorems
    where every coordinate steps alike, so a ball takes one prior std for all coordinates. Its bounds have no d in them where
    the prior's std falls as 1/√d.

    >>> import numpy as np, onlinevi as ovi
    >>> family = ovi.MeanField(prior_std=0.1, box=ovi.Ball(mean=2.0))
    >>> trace = ovi.learn(np.eye(2), [9.0, 9.0], loss=ovi.Absolute(), rule=ovi.OGAEL(1000.0), family=family)
    >>> trace.mean.round(4).tolist()  # (2, 0), then (2, 10) scaled back
    [0.3922, 1.9612]
    """

    mean: float | None = 20.0
    std: float | None = 1.0

    def __post_init__(self) -> None:
        if self.mean is not None and not 0.0 < self.mean < math.inf:
            raise ValueError(f"Ball(mean={self.mean!r}): a radius must be > 0 and finite, or None for no bound; try 20.0")
        if self.std is not None and not 1.0 <= self.std < math.inf:
            raise ValueError(
                f"Ball(std={self.std!r}): the prior must lie in the ball, so needs a number ≥ 1, or None; try 1.0"
            )


class Radii(NamedTuple):
    """How long a belief's vectors may be: infinite where nothing bounds them."""

    mean: float
    std: float


def frozen(value: PerCoordinate) -> float | tuple[float, ...]:
    """A float, or a tuple of floats: a config compares and hashes by value."""
    array = np.asarray(value, dtype=float)
    if array.ndim > 1 or np.isnan(array).any():
        raise ValueError(f"{value!r}: needs a number, or one number a coordinate")
    return float(array) if array.ndim == 0 else tuple(array.tolist())


def _longer(value: PerCoordinate, dim: int) -> PerCoordinate:
    """One value for all, or one each, where the new coordinates have the last one's."""
    return value if isinstance(value, float) else (*value, *[value[-1]] * (dim - len(value)))


def placed(small: Any, large: Any) -> Vector:
    """The large array with the small one in its first rows and columns."""
    result = np.array(large, dtype=float)
    result[tuple(slice(length) for length in small.shape)] = small
    return result


def check_std(std: PerCoordinate) -> None:
    """Refuse a prior without a density."""
    if not ((np.asarray(std) > 0.0) & np.isfinite(std)).all():
        raise ValueError(f"prior_std={std!r}: must be > 0 and finite; try 1.0, or Point() for no spread")


def radii(family: Family, dim: int) -> Radii | None:
    """The radii of the family's ball in ``dim`` coordinates; None where it has a box, or neither."""
    if not isinstance(family.box, Ball):
        return None
    mean = math.inf if family.box.mean is None else float(family.box.mean)
    if not family.gaussian:
        return Radii(mean, 0.0)
    scale = np.broadcast_to(np.asarray(family._prior_std, dtype=float), (dim,))
    return Radii(mean, math.inf if family.box.std is None else family.box.std * float(np.linalg.norm(scale)))


def longest_mean(family: Family, dim: int) -> float:
    """sup‖mean‖ over the family's box or ball; infinite where it has none."""
    ball = radii(family, dim)
    if ball is not None:
        return ball.mean
    low, high, _, _ = edges(family, dim)
    return float(np.linalg.norm(np.maximum(np.abs(low), np.abs(high))))


def edges(family: Family, dim: int) -> tuple[Vector, Vector, Vector, Vector]:
    """(mean low, mean high, std low, std high) of the family's box, one value a coordinate; a ball has no finite ones."""
    rows = np.atleast_2d(family.prior_and_box(dim).T).T
    low, high, std_low, std_high = (np.broadcast_to(row, (dim,)) for row in named_rows(rows)[2:])
    return low, high, std_low, std_high if family.gaussian else np.zeros(dim)


class Family:
    """A set of beliefs. The static functions are parts of the compiled loop; the methods are for people."""

    gaussian: ClassVar[bool]
    correlated: ClassVar[bool] = False
    """Holds covariances between coordinates: every event then moves all of them, and sparse rows gain nothing."""
    prior_mean: PerCoordinate
    box: Box | Ball | None = None

    @property
    def _prior_std(self) -> PerCoordinate:
        """The prior's std, 1 where the family has none: rates are then plain."""
        return 1.0

    def prior_and_box(self, dim: int) -> Vector:
        """The rows of ``PriorAndBox`` as one array: one value each, or one for each coordinate where any row has those."""
        box = self.box if isinstance(self.box, Box) else Box(mean=None, std=None)
        mean_low, mean_high = box.mean or (-math.inf, math.inf)
        std_low, std_high = box.std or (0.0, math.inf)
        scale = np.asarray(self._prior_std, dtype=float)
        rows = [np.asarray(row, dtype=float) for row in (self.prior_mean, scale, mean_low, mean_high)]
        rows += [scale * std_low, scale * std_high]
        for name, row in zip(("prior_mean", "prior_std", "box low", "box high"), rows, strict=False):
            if row.ndim and len(row) != dim:
                raise ValueError(f"{name} has {len(row)} values, the data {dim} features: give one value, or one each")
        stacked = np.ascontiguousarray(np.stack(np.broadcast_arrays(*rows)))
        named = named_rows(stacked)
        inside = (named.mean_low <= named.prior_mean) & (named.prior_mean <= named.mean_high)
        inside &= (named.std_low <= named.prior_std) & (named.prior_std <= named.std_high)
        if not inside.all():
            raise ValueError(f"{self}: the prior must lie in the box; move prior_mean, or widen the box")
        self._check_ball(named, dim)
        return stacked

    def _check_ball(self, prior: PriorAndBox, dim: int) -> None:
        ball = radii(self, dim)
        if ball is None:
            return
        if np.ptp(prior.prior_std) > 0.0:
            raise ValueError(
                f"{self.box} with a prior_std a coordinate: steps of several lengths have no radial projection; give one "
                "prior_std for all, or a Box"
            )
        if not np.linalg.norm(np.broadcast_to(prior.prior_mean, (dim,))) <= ball.mean:
            raise ValueError(f"{self}: the prior must lie in the ball; move prior_mean, or widen the ball")

    # What a family must give the loop; ``engine.holes`` says what each does.
    views: Callable[..., Any]
    moments: Callable[..., Moments]
    missing_variance: Callable[..., Real]
    variance_after: Callable[..., tuple[Real, Real]]
    squares: Callable[..., tuple[Real, Real]]
    advance: Callable[..., None]
    forget: Callable[..., None]
    into_ball = staticmethod(means_into_ball)
    forgets_late: ClassVar[bool] = False
    """Whether a coordinate can forget by many events at once, for those that do so when a row stores them."""
    catch_up: Callable[..., None]
    put_back: Callable[..., None]

    def caught_up(self, belief: Any, discount: float, events: Vector) -> Any:
        """The belief where each coordinate has forgotten by so many events more."""
        raise TypeError("this family forgets at each event")

    @classmethod
    def advance_for(cls, rule: Any) -> Callable[..., None]:
        """How this family applies that kind of rule."""
        return cls.advance

    @classmethod
    def coordinate_step(cls, *, floored: bool) -> Callable[..., Any] | None:
        """How a coordinate moves, for families where each moves by itself; ``floored``: its mean with the std that is kept."""
        return None

    # For speed alone, and for sparse rows: a family that leaves these out has the same numbers.
    interleaved_views: ClassVar[Callable[..., Any] | None] = None
    """``views`` as columns of a table with a line for each coordinate; None for a belief that is no bundle of vectors."""
    advance_vectorised: ClassVar[Callable[..., None] | None] = None
    """``advance`` in vectors, for steps that take a root; None where ``advance`` serves."""

    @staticmethod
    def prefetch_row(views: Any, rows: Any, event: Event) -> None:
        """Does nothing: memory sees coming what is read in order."""

    def check_rule(self, rule: Any) -> None:
        """Refuse a rule that this family has no step for."""

    def belief_size(self, dim: int) -> int:
        """How many floats a belief takes."""
        raise TypeError("a family needs a belief_size")

    def init(self, dim: int) -> Belief:
        """The prior, as a belief over ``dim`` coordinates."""
        raise TypeError("a family needs an init")

    def pack(self, belief: Belief) -> Vector:
        raise TypeError("a family needs a pack")

    def unpack(self, packed: Vector, dim: int) -> Belief:
        raise TypeError("a family needs an unpack")

    def widened(self, dim: int) -> Self:
        """The family for more coordinates: where each has a prior and bounds of its own, the new ones have the last one's."""
        priors = {name: _longer(getattr(self, name), dim) for name in ("prior_mean", "prior_std") if hasattr(self, name)}
        box = self.box
        if isinstance(box, Ball) and np.any(np.asarray(self.prior_mean)):
            raise ValueError(f"{self}: new weights at a prior mean that is not 0 would move all others in the ball; use a Box")
        if isinstance(box, Box) and box.mean is not None:
            box = replace(box, mean=(_longer(box.mean[0], dim), _longer(box.mean[1], dim)))
        return replace(self, **priors, box=box)  # type: ignore[type-var]

    def project(self, belief: Belief) -> Belief:
        """The nearest belief in the box or the ball."""
        box = named_rows(self.prior_and_box(len(belief.mean)))
        return Belief(self._inside(belief.mean, box), np.clip(self._scaled(belief.std, "std"), box.std_low, box.std_high))

    def _inside(self, mean: Vector, box: PriorAndBox) -> Vector:
        return np.clip(self._scaled(mean, "mean"), box.mean_low, box.mean_high)

    def _scaled(self, vector: Vector, part: Literal["mean", "std"]) -> Vector:
        """The vector, scaled back to the ball where there is one."""
        ball = radii(self, len(vector))
        length = float(np.linalg.norm(vector))
        return vector if ball is None or length <= getattr(ball, part) else vector * (getattr(ball, part) / length)

    def natural(self, belief: Any) -> Any:
        """The natural parameters λ of a belief."""
        raise TypeError("a family needs natural")

    def from_natural(self, natural: Any) -> Any:
        """The belief of λ."""
        raise TypeError("a family needs from_natural")

    def merge(self, beliefs: Sequence[Any], start: Any = None) -> Any:
        """One belief from those of shards that started from this prior: prior + Σ (shard − prior), in natural parameters.

        ``start`` is what they started from, where it was not the prior.
        """
        if not beliefs:
            raise ValueError("nothing to merge: give one belief a shard")
        first = self.natural(self.init(len(beliefs[0].mean)) if start is None else start)
        shards = [self.natural(belief) for belief in beliefs]
        total = (part + sum(shard[k] - part for shard in shards) for k, part in enumerate(first))
        return self.from_natural(type(first)._make(total))

    def merge_forgetful(self, beliefs: Sequence[Any]) -> Any:
        """The same for beliefs that forget, in a way that may leave one knowing less than the prior in some direction."""
        return self.merge(beliefs)

    def predict(self, belief: Belief, x: Any) -> tuple[Any, Any]:
        """(a, v²): mean and variance of the prediction at a row, or at each row of a matrix (dense or sparse)."""
        squared = x.multiply(x) if hasattr(x, "multiply") else np.square(x)
        return x @ belief.mean, squared @ np.square(belief.std)

    def predict_missing(self, belief: Belief, x: Any) -> tuple[Any, Any]:
        """The same where NaN is a missing value, N(0, 1): it adds nothing to the mean, and E[θ_j²] to the variance."""
        if hasattr(x, "tocsr"):
            known, missing = x.tocsr().astype(float), x.tocsr().astype(float)
            missing.data = np.isnan(known.data).astype(float)
            known.data = np.where(np.isnan(known.data), 0.0, known.data)
        else:
            known, missing = np.where(np.isnan(x), 0.0, x), np.isnan(x).astype(float)
        mean, variance = self.predict(belief, known)
        return mean, variance + missing @ (np.square(belief.mean) + np.square(belief.std))
