"""A row and a rule's step on a precision P = diag(u) + WWᵀ, in O(d·rank²).

W lies packed column by column, so that loops over coordinates are long and contiguous. A row asks for Σx, by Woodbury's
identity with the capacitance K = I + WᵀU⁻¹W, refined once: where W is far above u, x − Wc cancels, and the plain identity can
end at a variance below 0. A step adds a column to W and drops the weakest, whose square goes to u.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlinevi.beliefs.base import named_rows
from onlinevi.beliefs.correlated import conditioned
from onlinevi.engine import Event, Moments, Real, StepInputs, ns
from onlinevi.engine.holes import is_missing, missing_variance, setting_at, value

BLOCK = 128
"""How many coordinates are worked on at a time: W's part of them stays in the nearest cache."""

SWEEPS = 30
ROUNDING = 1e-16


class Views(NamedTuple):
    """The vectors of a packed belief, and room to work in."""

    mean: Any
    diagonal: Any
    """u."""
    columns: Any
    """W, one column after the other."""
    mean_total: Any
    row: Any
    """x."""
    covariance_x: Any
    """Σx."""
    within: Any
    """WᵀΣx."""
    rest: Any
    lower: Any
    """The Cholesky factor of K."""
    gram: Any
    """[W, x]ᵀ[W, x] on the left: W's columns are orthogonal, so an arrow. On the right, its eigenvectors as rows."""
    block: Any


def views(belief: Any, totals: Any, dim: int) -> Views:
    rank = len(belief) // dim - 2
    return Views(
        belief[:dim],
        belief[dim : 2 * dim],
        belief[2 * dim :],
        totals[:dim],
        np.empty(dim),
        np.empty(dim),
        np.empty(rank),
        np.empty(rank),
        np.empty((rank, rank)),
        np.empty((rank + 1, 2 * rank + 2)),
        np.empty((rank + 1) * BLOCK),
    )


def moments(views: Views, rows: Any, event: Event) -> Moments:
    """v² = xᵀΣx = Σ u·(Σx)² + ‖WᵀΣx‖², a sum of squares."""
    mean, row = views.mean, views.row
    prediction = row_square = 0.0
    for j in range(len(mean)):
        x = value(rows, event, j)
        row[j] = x
        prediction += mean[j] * x
        row_square += x * x
    gather(views, row_square)
    decompose(views.lower)
    apply_covariance(views)
    diagonal, covariance_x, within, variance = views.diagonal, views.covariance_x, views.within, 0.0
    for j in range(len(mean)):
        variance += diagonal[j] * covariance_x[j] * covariance_x[j]
    for k in range(len(within)):
        variance += within[k] * within[k]
    # ‖∂E/∂S‖² = e2²·v²·‖x‖² for the root S of Σ, Σ = SᵀS, and for every rotation of it: no one root is preferred here.
    return Moments(prediction, variance, variance, row_square, variance * row_square, missing_variance(views, rows, event))


def variance_of_missing(views: Views, rows: Any, event: Event) -> Real:
    """mean_j² + Σ_jj for each missing j, by K's factor that ``moments`` left: Σ_jj = (1 − ‖L⁻¹W_j‖²/u_j)/u_j.

    The difference is exact to 1e-16/u_j: enough for a variance that is added to others.
    """
    mean, diagonal, columns, inside = views.mean, views.diagonal, views.columns, views.rest
    dim, total = len(mean), 0.0
    for j in range(dim):
        if is_missing(rows, event, j):
            for k in range(len(inside)):
                inside[k] = columns[place(k * dim + j)]
            forward(views.lower, inside)
            known = dot(inside, place(0), inside, place(0), len(inside)) / diagonal[j]
            total += mean[j] * mean[j] + ns.maximum(1.0 - known, 0.0) / diagonal[j]
    return total


def squares(views: Views) -> tuple[Real, Real]:
    """Nobody asks for them: a ridge is refused."""
    return 0.0, 0.0


def by_prediction(views: Views, rows: Any, event: Event, inputs: StepInputs, prior_and_box: Any) -> None:
    """P' = P + growth·xxᵀ as nearly as the rank allows; the mean moves along the exact Σx."""
    growth, shift = conditioned(inputs)
    mean, mean_total, row, covariance_x = views.mean, views.mean_total, views.row, views.covariance_x
    box = named_rows(prior_and_box)
    for j in range(len(mean)):
        mean_total[j] += inputs.seen.slope * row[j]
        moved = mean[j] + shift * covariance_x[j]
        mean[j] = ns.minimum(ns.maximum(moved, setting_at(box.mean_low, j)), setting_at(box.mean_high, j))
    if not growth <= 0.0:
        absorb(views, growth)


def gather(views: Views, row_square: Real) -> None:
    """K's lower triangle, WᵀU⁻¹x in ``within``, and the arrow of [W, x], in one reading of W."""
    columns, lower, within, gram, scaled = views.columns, views.lower, views.within, views.gram, views.block
    rank, dim = len(within), len(views.row)
    for k in range(rank + 1):
        for other in range(2 * rank + 2):
            gram[k, other] = 0.0
        gram[k, rank + 1 + k] = 1.0
    gram[rank, rank] = row_square
    for k in range(rank):
        within[k] = 0.0
        for other in range(k):
            lower[k, other] = 0.0
        lower[k, k] = 1.0
    for start in range(0, dim, BLOCK):
        width = min(BLOCK, dim - start)
        for k in range(rank):
            here, there = place(k * dim + start), place(start)
            norm = overlap = scaled_overlap = 0.0
            for j in range(place(0), place(width)):
                entry, x = columns[here + j], views.row[there + j]
                scaled[j] = entry / views.diagonal[there + j]
                norm += entry * entry
                overlap += entry * x
                scaled_overlap += scaled[j] * x
            gram[k, k] += norm
            gram[rank, k] += overlap
            within[k] += scaled_overlap
            for other in range(k + 1):
                lower[k, other] += dot(scaled, place(0), columns, place(other * dim + start), width)


def place(k: int) -> Any:
    """An index, unsigned: there is no look for negative ones."""
    return np.uint64(k)


def dot(left: Any, left_start: Any, right: Any, right_start: Any, count: int) -> Real:
    total = 0.0
    for j in range(place(0), place(count)):
        total += left[left_start + j] * right[right_start + j]
    return total


def add_multiple(target: Any, target_start: Any, factor: Real, column: Any, start: Any, count: int) -> None:
    for j in range(place(0), place(count)):
        target[target_start + j] += factor * column[start + j]


def decompose(lower: Any) -> None:
    """Cholesky's factor in place. K − I has no negative eigenvalue, so no pivot is below 1, whatever rounding says."""
    rank = len(lower)
    for k in range(rank):
        for other in range(k):
            total = lower[k, other]
            for inner in range(other):
                total -= lower[k, inner] * lower[other, inner]
            lower[k, other] = total / lower[other, other]
        pivot = lower[k, k]
        for inner in range(k):
            pivot -= lower[k, inner] * lower[k, inner]
        lower[k, k] = ns.sqrt(ns.maximum(pivot, 1.0))


def forward(lower: Any, vector: Any) -> None:
    """vector becomes L⁻¹·vector."""
    for k in range(len(vector)):
        total = vector[k]
        for inner in range(k):
            total -= lower[k, inner] * vector[inner]
        vector[k] = total / lower[k, k]


def solve(lower: Any, vector: Any) -> None:
    """vector becomes K⁻¹·vector."""
    forward(lower, vector)
    for k in range(len(vector) - 1, -1, -1):
        total = vector[k]
        for inner in range(k + 1, len(vector)):
            total -= lower[inner, k] * vector[inner]
        vector[k] = total / lower[k, k]


def apply_covariance(views: Views) -> None:
    """Σx and WᵀΣx, from WᵀU⁻¹x in ``within``.

    For any c, with s = U⁻¹(x − Wc): Σx = s + U⁻¹W·e and WᵀΣx = c − e, where K·e = c − Wᵀs. Woodbury's own c = K⁻¹WᵀU⁻¹x makes
    e = 0 but for rounding, which e takes back.
    """
    diagonal, columns, covariance_x, within, rest = views.diagonal, views.columns, views.covariance_x, views.within, views.rest
    dim = len(diagonal)
    solve(views.lower, within)
    for j in range(dim):
        covariance_x[j] = views.row[j]
    for k in range(len(within)):
        add_multiple(covariance_x, place(0), -within[k], columns, place(k * dim), dim)
    for j in range(dim):
        covariance_x[j] /= diagonal[j]
    for k in range(len(within)):
        rest[k] = within[k] - dot(columns, place(k * dim), covariance_x, place(0), dim)
    solve(views.lower, rest)
    for k in range(len(within)):
        start = place(k * dim)
        for j in range(place(0), place(dim)):
            covariance_x[j] += rest[k] * columns[start + j] / diagonal[j]
        within[k] -= rest[k]


def absorb(views: Views, growth: Real) -> None:
    """P + growth·xxᵀ by the best W of the same rank: the weakest singular direction of [W, √growth·x] goes, and its square is
    added to u, so that the diagonal of P stays exact.
    """
    diagonal, columns, gram, block, dropped = views.diagonal, views.columns, views.gram, views.block, views.covariance_x
    rank, dim = len(views.within), len(diagonal)
    root, size = ns.sqrt(growth), 0.0
    gram[rank, rank] *= growth
    for k in range(rank):
        gram[rank, k] *= root
        gram[k, rank] = gram[rank, k]
        size += gram[k, k] + ns.absolute(gram[rank, k])
    if not ns.isfinite(size + gram[rank, rank]):
        diagonal[0] = np.inf  # so that the loop refuses the row
        return
    diagonalise(gram)
    weakest = 0
    for k in range(rank + 1):
        if gram[k, k] < gram[weakest, weakest]:
            weakest = k
    for start in range(0, dim, BLOCK):
        width, here = min(BLOCK, dim - start), place(start)
        for k in range(rank):
            take(block, k, columns, place(k * dim + start), width)
        for j in range(place(0), place(width)):
            block[place(rank * BLOCK) + j], dropped[here + j] = root * views.row[here + j], 0.0
        for other in range(rank + 1):
            source = place(other * BLOCK)
            add_multiple(dropped, here, gram[weakest, rank + 1 + other], block, source, width)
            for k in range(rank):
                direction = rank if k == weakest else k
                add_multiple(columns, place(k * dim + start), gram[direction, rank + 1 + other], block, source, width)
        for j in range(here, here + place(width)):
            diagonal[j] += dropped[j] * dropped[j]


def take(block: Any, k: int, columns: Any, start: Any, count: int) -> None:
    """Move part of a column into the block's place k, and leave zeros."""
    for j in range(place(0), place(count)):
        block[place(k * BLOCK) + j], columns[start + j] = columns[start + j], 0.0


def diagonalise(gram: Any) -> None:
    """Jacobi's rotations on [G | I], until G is diagonal and I its eigenvectors, as rows.

    Each entry is judged beside its own two diagonals, so that weak directions keep their digits beside one that is 1e16 times
    stronger; LAPACK's solvers, which judge by the largest, would drop the wrong one.
    """
    count = len(gram)
    for _ in range(SWEEPS):
        settled = True
        for p in range(count - 1):
            for q in range(p + 1, count):
                entry, first, second = gram[p, q], gram[p, p], gram[q, q]
                if ns.absolute(entry) <= ROUNDING * ns.sqrt(first) * ns.sqrt(second):
                    continue
                settled = False
                gap = 0.5 * (second - first) / entry
                tangent = 1.0 / (ns.absolute(gap) + ns.sqrt(1.0 + gap * gap))
                tangent = tangent if gap >= 0.0 else -tangent
                cosine = 1.0 / ns.sqrt(1.0 + tangent * tangent)
                sine = tangent * cosine
                for k in range(2 * count):
                    upper, under = gram[p, k], gram[q, k]
                    gram[p, k], gram[q, k] = cosine * upper - sine * under, sine * upper + cosine * under
                for k in range(count):
                    gram[k, p], gram[k, q] = gram[p, k], gram[q, k]
                # A Gram matrix has no negative eigenvalue, and rounding hides what is below it.
                gram[p, p] = ns.maximum(first - tangent * entry, ROUNDING * first)
                gram[q, q] = ns.maximum(second + tangent * entry, ROUNDING * second)
                gram[p, q] = gram[q, p] = 0.0
        if settled:
            break
