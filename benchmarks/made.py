"""Rows made for timing: labels that a linear rule can mostly tell, always the same."""

from __future__ import annotations

import numpy as np
from scipy import sparse

COVER_ROWS, COVER_DIM = 581_012, 54


def unit_rows(rows: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Dense rows of length 1, like Cover Type's, normalised."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, dim))
    X /= np.linalg.norm(X, axis=1)[:, None]
    y = np.where(X @ rng.standard_normal(dim) + 0.5 * rng.standard_normal(rows) > 0, 1.0, -1.0)
    return X, y


def bent_rows(rows: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Dense rows whose label is whether they lie inside a ball of the first five columns, but for some noise."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((rows, dim))
    return X, np.where(np.square(X[:, :5]).sum(axis=1) + rng.standard_normal(rows) > 4.35, 1.0, -1.0)


def thin_rows(rows: int, dim: int, stored: int) -> tuple[sparse.csr_array, np.ndarray]:
    """Sparse rows of length 1 with ``stored`` values each, in places drawn anew for every row, in increasing order."""
    rng = np.random.default_rng(0)
    # One place in each of ``stored`` strips of equal width: distinct, and cheap to draw.
    strips = np.linspace(0, dim, stored + 1).astype(np.int64)
    places = strips[:-1] + (rng.random((rows, stored)) * np.diff(strips)).astype(np.int64)
    values = rng.standard_normal((rows, stored))
    values /= np.linalg.norm(values, axis=1)[:, None]
    ends = np.arange(0, rows * stored + 1, stored, dtype=np.int32)
    X = sparse.csr_array((values.ravel(), places.ravel().astype(np.int32), ends), shape=(rows, dim))
    y = np.where(X @ rng.standard_normal(dim) + 0.5 * rng.standard_normal(rows) > 0, 1.0, -1.0)
    return X, y
