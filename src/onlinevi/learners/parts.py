"""What a prediction is made of: leaves, the weight of each, and the rows that it sees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinevi.engine import Vector

Places = NDArray[np.int64]


@dataclass(frozen=True)
class Part:
    """Leaves that see the same features, as a part of what is predicted.

    Rows may have more columns than they need: what stands behind is for others, past labels for ``Lag``.
    """

    leaves: tuple[tuple[float, Any, float], ...]
    """The weight of each in the prediction, its state, and what its stds are to be multiplied by."""
    width: int
    """How many columns of the rows it needs."""
    see: Callable[[Any], Any]
    """Its rows, of those that the whole is given."""
    columns: Places | None
    """Which of their columns each of its features is, −1 for the intercept; None where a map makes features of several."""

    def weighed(self, weight: float) -> Part:
        """The same as a part of a pool, in which its learner has this weight."""
        return replace(self, leaves=tuple((weight * share, leaf, unit) for share, leaf, unit in self.leaves))

    def behind(self, step: Callable[[Any], Any], width: int, columns: Places | None) -> Part:
        """The same where rows go through this step first, by which features are of these columns."""
        see = self.see
        return replace(self, see=lambda rows: see(step(rows)), width=width, columns=columns)


class OfClass:
    """What the state of several classes knows of one of them."""

    whole: Any
    """The state of all."""
    columns: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """How many events all classes have learned from."""
        return int(self.whole.count)

    @property
    def width(self) -> int:
        """How many columns its rows have."""
        return int(self.whole.width)

    @property
    def begun(self) -> int:
        """How many they were at the first."""
        return int(self.whole.begun)

    @property
    def space(self) -> Any:
        """The features that its weights are weights of."""
        return self.whole.space

    @property
    def std(self) -> Vector:
        """The std of each of its weights."""
        return self.std_in(1.0)

    def std_in(self, noise: float) -> Vector:
        """The stds as they are: scores have no unit."""
        raise NotImplementedError

    def deciders(self) -> tuple[Any, ...]:
        """Itself."""
        return (self,)

    def by_class(self) -> tuple[Any, ...]:
        """Itself."""
        return (self,)


def first(rows: Any, count: int) -> Any:
    """The columns that are needed."""
    return rows if rows.shape[1] == count else rows[:, :count]


def beside(*blocks: Any) -> Any:
    """Blocks of columns as one, sparse where any of them is."""
    blocks = tuple(block for block in blocks if block.shape[1])
    if any(hasattr(block, "tocsr") for block in blocks):
        from scipy.sparse import csr_matrix, hstack

        return hstack([csr_matrix(block) for block in blocks], format="csr")
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)
