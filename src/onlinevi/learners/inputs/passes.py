"""The two compiled passes that prepare rows, dense and sparse: a row joins the running moments, then is put in their units.

Both change the packed moments they are given (``state.py`` names their parts); callers give them a copy. With ``start`` not
empty every row is prepared as the first one after those moments.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from onlinevi.engine import Function, Real, compose, ns

# The head of the packed moments; behind it lie, a column each: lag, mean, Σ (x − mean)².
COUNT, KIND = range(2)
HEAD = 2

# The settings that a pass reads as data.
STANDARDISE, PER_SQUASH, INTERCEPT, UNIT_ROWS, MISSING = range(5)

LARGEST = 1e145
"""The largest value whose square can be summed for longer than any stream."""
FINITE = float(np.finfo(float).max)
ROUNDING = 16.0 * float(np.finfo(float).eps) ** 2
"""A variance below this part of the squared mean, four ulps of std, is rounding: the column is constant."""
FARTHEST = 1e7
"""From here on what is bent is c to the last digit but one."""
SMALLEST = 1e-290
"""A variance below this has lost its digits: the column is constant as far as floats tell."""


def dense_pass(rows: Any, moments: Any, start: Any, settings: Any, prepared: Any) -> int:
    """Fills ``prepared``, a row each. Returns how many rows were: fewer than all where the next one was refused, and the
    moments are as that row found them.
    """
    dim = rows.shape[1]
    lag, mean, square = moments[HEAD : HEAD + dim], moments[HEAD + dim : HEAD + 2 * dim], moments[HEAD + 2 * dim :]
    standardise, per, first = settings[STANDARDISE] > 0.0, settings[PER_SQUASH], np.uint64(settings[INTERCEPT])
    most, missing, share = largest_value(settings), settings[MISSING], np.empty(dim)
    for i in range(len(rows)):
        if len(start) > 0:
            write_over(moments, start)
        row, out = rows[i], prepared[i, first:]
        refused = 0.0
        for j in range(np.uint64(dim)):
            refused += refusals(np.float64(row[j]), most, missing)
        if refused > 0.0:
            return i
        moments[COUNT] += 1.0
        count = moments[COUNT]
        if first > 0:
            prepared[i, 0] = 1.0
        if standardise:
            # Three loops, each with few arrays: the compiler vectorises what it can show to be apart.
            for j in range(np.uint64(dim)):
                lag[j] += 0.0 if row[j] == row[j] else 1.0
                share[j] = 1.0 / ns.maximum(count - lag[j], 1.0)
            for j in range(np.uint64(dim)):
                x, before = np.float64(row[j]), mean[j]
                gap = x - before if x == x else 0.0
                shift = gap * share[j]
                mean[j] = before + shift
                square[j] += gap * (gap - shift)
            for j in range(np.uint64(dim)):
                out[j] = scaled(np.float64(row[j]), mean[j], square[j] * share[j], per)
        else:
            for j in range(np.uint64(dim)):
                out[j] = bent(np.float64(row[j]), per)
        if settings[UNIT_ROWS] > 0.0:
            to_unit(out)
    return len(rows)


def sparse_pass(rows: Any, moments: Any, start: Any, settings: Any, prepared: Any) -> int:
    """The same for the arrays of a CSR matrix and what tells, a number a column, which are centred: above 0, and all rows have
    them stored. The others are about 0 in place of the mean; their zeros left out count as values.
    """
    data, indices, starts, centred = rows
    values, places, row_starts = prepared
    dim = (len(moments) - HEAD) // 3
    lag, mean, square = moments[HEAD : HEAD + dim], moments[HEAD + dim : HEAD + 2 * dim], moments[HEAD + 2 * dim :]
    standardise, per, first = settings[STANDARDISE] > 0.0, settings[PER_SQUASH], np.uint64(settings[INTERCEPT])
    most, missing = largest_value(settings), settings[MISSING]
    for i in range(len(starts) - 1):
        low, high, out = np.uint64(starts[i]), np.uint64(starts[i + 1]), np.uint64(row_starts[i])
        refused = 0.0
        for k in range(low, high):
            refused += refusals(np.float64(data[k]), most, missing)
        if refused > 0.0:
            return i
        moments[COUNT] += 1.0
        count = moments[COUNT]
        if first > 0:
            values[out], places[out] = 1.0, 0
        out += first
        for k in range(low, high):
            x, j = np.float64(data[k]), np.uint64(indices[k])
            place = out + (k - low)
            places[place] = j + first
            if standardise:
                lag[j] += 0.0 if x == x else 1.0
                if centred[j] > 0.0:
                    share = 1.0 / ns.maximum(count - lag[j], 1.0)
                    gap = x - mean[j] if x == x else 0.0
                    shift = gap * share
                    mean[j] += shift
                    square[j] += gap * (gap - shift)
                    values[place] = scaled(x, mean[j], square[j] * share, per)
                else:
                    square[j] += x * x if x == x else 0.0
                    values[place] = scaled(x, 0.0, square[j] / ns.maximum(count - lag[j], 1.0), per)
            else:
                values[place] = bent(x, per)
        if settings[UNIT_ROWS] > 0.0:
            to_unit(values[out : out + (high - low)])
        if len(start) > 0:  # only where the row has values: zeros left out cost nothing
            moments[COUNT] = start[COUNT]
            for k in range(low, high):
                j = np.uint64(indices[k])
                lag[j], mean[j] = start[HEAD + j], start[np.uint64(HEAD + dim) + j]
                square[j] = start[np.uint64(HEAD + 2 * dim) + j]
    return len(starts) - 1


def write_over(target: Any, source: Any) -> None:
    """As target[:] = source, which takes numba two seconds to compile: it has a message for lengths that differ."""
    for k in range(np.uint64(len(target))):
        target[k] = source[k]


def largest_value(settings: Any) -> Real:
    return LARGEST if settings[STANDARDISE] > 0.0 else FINITE


def refusals(x: Real, most: Real, missing: Real) -> Real:
    """1 for a value that cannot be taken in: infinite, too large to square where it will be, or missing where none may be."""
    number = 0.0 if ns.absolute(x) <= most else 1.0
    return number if x == x else 1.0 - missing


def scaled(x: Real, mean: Real, variance: Real, per_squash: Real) -> Real:
    """(x − mean)/std, bent; 0 for a column that has not varied."""
    constant = 0.0 if x == x else x
    varied = variance > ROUNDING * mean * mean + SMALLEST
    return bent((x - mean) / ns.sqrt(variance), per_squash) if varied else constant


def bent(z: Real, per_squash: Real) -> Real:
    """z as it is up to ⅔·c; beyond, c/3·(2 + e/√(1 + e²)) with e = 3z/c − 2, which goes on with slope 1 and ends at c."""
    beyond = ns.minimum(ns.maximum(3.0 * ns.absolute(z) * per_squash - 2.0, 0.0), FARTHEST)
    size = (2.0 + beyond / ns.sqrt(1.0 + beyond * beyond)) / (3.0 * per_squash)
    return z if beyond == 0.0 else (size if z > 0.0 else -size)


def to_unit(row: Any) -> None:
    """row/‖row‖, in two divisions that cannot overflow; a row of zeros, or as good as zeros, stays as it is."""
    largest = 0.0
    for j in range(np.uint64(len(row))):
        largest = ns.maximum(largest, ns.absolute(row[j]))
    if largest > SMALLEST:
        total = 0.0
        for j in range(np.uint64(len(row))):
            row[j] /= largest
        for j in range(np.uint64(len(row))):
            ns.one_by_one()  # zeros that are stored, and those left out, are to give the same bits
            total += row[j] * row[j]
        for j in range(np.uint64(len(row))):
            row[j] /= ns.sqrt(total)


@cache
def compiled(sparse: bool) -> Function:
    """The pass for these rows."""
    return compose(sparse_pass if sparse else dense_pass, {})
