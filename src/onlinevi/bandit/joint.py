"""How the scores of arms that share weights hang together: a root of their covariance, by which they are drawn together."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlinevi.engine import Vector


def root_of(state: Any, rows: Vector, std: Vector) -> Vector:
    """A matrix R, a row an arm, with the covariance R·Rᵀ of the predictions at these rows; its diagonal as told.

    Several leaves have their weighted mean, and what their means differ by.
    """
    roots, means, weights = [], [], []
    for part in state.parts():
        seen = part.see(rows)
        seen = np.nan_to_num(np.asarray(seen.toarray() if hasattr(seen, "toarray") else seen, dtype=float))
        for weight, leaf, unit in part.leaves:
            roots.append(np.sqrt(weight) * unit * _root(leaf, seen))
            means.append(leaf.plan.family.predict(leaf.belief, seen)[0])
            weights.append(weight)
    shares = np.array(weights)
    differences = np.array(means) - shares @ np.array(means) / shares.sum()
    found = np.concatenate([*roots, (np.sqrt(shares)[:, np.newaxis] * differences).T], axis=1) / np.sqrt(shares.sum())
    own = np.sqrt(np.square(found).sum(axis=1))
    scale = np.divide(std, own, out=np.zeros_like(std), where=own > 0.0)
    return np.asarray(found * scale[:, np.newaxis])


def _root(leaf: Any, rows: Vector) -> Vector:
    """Of the predictions of one leaf: from the covariance of the rows, or of the weights, whichever are fewer."""
    if len(rows) <= rows.shape[1]:
        return _root_of_matrix(_covariance(leaf, rows))
    return np.asarray(rows @ _root_of_matrix(_covariance(leaf, np.eye(rows.shape[1]))))


def _covariance(leaf: Any, rows: Vector) -> Vector:
    """Read off the variances at rows and at sums of two, so that any family can say it."""
    family, belief = leaf.plan.family, leaf.belief
    first, second = np.triu_indices(len(rows), 1)
    _, own = family.predict(belief, rows)
    _, added = family.predict(belief, rows[first] + rows[second])
    found = np.diag(own)
    found[first, second] = found[second, first] = 0.5 * (added - own[first] - own[second])
    return np.asarray(found)


def _root_of_matrix(covariance: Vector) -> Vector:
    """By its eigenvalues, as it may have none of Cholesky's: fewer directions than rows may have a spread."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
