"""Data drawn from a seed."""

from __future__ import annotations

import numpy as np

from onlinevi.data.catalogue.entry import Table

TOY_ROWS = 10_000


def toy(seed: int) -> Table:
    """Two Gaussian classes: P(y = +1) = 2/3; x given + is N((1, 1), [[1, 1], [1, 3]]), given − it is N((−1, −1), I)."""
    rng = np.random.default_rng(seed)
    positive = rng.random(TOY_ROWS) < 2.0 / 3.0
    noise = rng.standard_normal((TOY_ROWS, 2))
    factor = np.linalg.cholesky(np.array([[1.0, 1.0], [1.0, 3.0]]))
    X = np.where(positive[:, None], 1.0 + noise @ factor.T, noise - 1.0)
    return Table(X, np.where(positive, 1.0, -1.0))
