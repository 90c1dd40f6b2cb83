"""The paper's network: one hidden layer of rectified linear units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onlinevi.engine import Real, Vector, ns


@dataclass(frozen=True)
class ReLUNetwork:
    """outputᵀ·max(0, hidden·x + b) + c with ``biases`` b and c; without them, give the data a constant column.

    At weights of 0 its gradient is 0, but for that of c. A learner that only looks there, OGA or one with ``Linearised()``,
    learns c and no more, so start it from ``init``; a Gaussian's draws look elsewhere.

    >>> network = ReLUNetwork(width=2)
    >>> float(network({"hidden": np.array([[1.0, 0.0], [0.0, 1.0]]), "output": np.array([3.0, 5.0])}, np.array([2.0, -1.0])))
    6.0
    """

    width: int = 50
    biases: bool = False

    def __post_init__(self) -> None:
        if self.width < 1:
            raise ValueError(f"width={self.width}: needs at least one hidden unit; try 50")

    def __call__(self, params: dict[str, Real], x: Real) -> Real:
        below = params["hidden"] @ x
        if self.biases:
            below = below + params["hidden_bias"]
        above = ns.where(below > 0.0, below, 0.0) @ params["output"]
        return above + params["output_bias"] if self.biases else above

    def zeros(self, dim: int) -> dict[str, Vector]:
        """Weights of 0, for rows of ``dim`` features: the shapes that a learner asks for."""
        biases = {"hidden_bias": np.zeros(self.width), "output_bias": np.zeros(())} if self.biases else {}
        return {"hidden": np.zeros((self.width, dim)), "output": np.zeros(self.width), **biases}

    def init(self, dim: int, rng: np.random.Generator) -> dict[str, Vector]:
        """A draw that keeps the size of its input: variance 2/dim into a unit, 1/width out of it; biases of 0."""
        hidden = rng.standard_normal((self.width, dim)) * np.sqrt(2.0 / dim)
        return self.zeros(dim) | {"hidden": hidden, "output": rng.standard_normal(self.width) / np.sqrt(self.width)}
