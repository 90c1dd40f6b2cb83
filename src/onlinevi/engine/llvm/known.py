"""Functions that the translator writes itself: Python's, numpy's, those of ``math``, and those of ``ns``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from onlinevi.engine import ns, square, triangle
from onlinevi.engine.llvm.values import (
    F64,
    I64,
    KINDS,
    NOTHING,
    U64,
    Array,
    Items,
    Kind,
    Known,
    NotTranslated,
    Number,
    Value,
    constant,
)

if TYPE_CHECKING:
    from onlinevi.engine.llvm.expressions import Expressions

Write: TypeAlias = Callable[..., Value]


def as_number(value: Value) -> Number:
    if not isinstance(value, Number):
        raise NotTranslated(f"{type(value).__name__.lower()} in the place of a number")
    return value


def as_array(value: Value) -> Array:
    if not isinstance(value, Array):
        raise NotTranslated(f"{type(value).__name__.lower()} in the place of an array")
    return value


def kind_of(value: Value) -> Kind:
    """The kind of number that a type of numpy's, or of an array's, stands for."""
    given = value.value if isinstance(value, Known) else None
    if isinstance(given, Kind):
        return given
    if given is float or given is int:
        return F64 if given is float else I64
    if isinstance(given, type) and issubclass(given, np.generic) and np.dtype(given) in KINDS:
        return KINDS[np.dtype(given)]
    raise NotTranslated("a type that is none of numbers")


def is_named_tuple(called: Any) -> bool:
    return isinstance(called, type) and issubclass(called, tuple) and hasattr(called, "_fields")


# --- Python's and numpy's


def _length(of: Expressions, value: Value) -> Value:
    if isinstance(value, Items):
        return constant(I64, len(value.items))
    return as_array(value).shape[0]


def _converts(kind: Kind) -> Write:
    return lambda of, value: of.writer.converted(as_number(value), kind)


def _picks(sign: str) -> Write:
    """The first of those that no other goes beyond."""

    def write(of: Expressions, *values: Value) -> Value:
        found, *others = map(as_number, values)
        for other in others:
            found = of.writer.chosen(of.writer.compared(sign, other, found), other, found)
        return found

    return write


def _absolute(of: Expressions, value: Value) -> Value:
    x = as_number(value)
    if x.kind.is_float:
        return of.writer.of_floats("fabs", x)
    return of.writer.chosen(of.writer.compared("<", x, constant(x.kind, 0)), of.writer.negated(x), x)


def _new(filled_with: float | None) -> Write:
    def write(of: Expressions, shape: Value, kind: Value | None = None) -> Value:
        return of.arrays.new(shape, F64 if kind is None else kind_of(kind), filled_with)

    return write


def _intrinsic(name: str) -> Write:
    """A function that LLVM knows."""
    return lambda of, value: of.writer.of_floats(name, as_number(value))


def _library(name: str) -> Write:
    """A function of C's library, of doubles."""

    def write(of: Expressions, *values: Value) -> Value:
        given = [of.writer.converted(as_number(value), F64) for value in values]
        return Number(F64, of.writer.call(F64.llvm, name, [(F64.llvm, one.text) for one in given]))

    return write


def _finite(of: Expressions, value: Value) -> Value:
    """By a comparison: x − x, with which 0 is compared elsewhere, is 0 whatever x is where sums may be reordered."""
    x = of.writer.of_floats("fabs", as_number(value))
    return of.writer.compared("<", x, constant(x.kind, math.inf))


# --- those of ``ns`` that numpy has for arrays


def exponential(x: float) -> Any:
    """e^x to 4e-16, 0 below −708 and ∞ above 709. Unlike the C library's it needs no call, and vectorises.

    2^n·e^r with n the integer next to x/log 2, whose bits are written as those of a float, and Taylor's polynomial for
    e^r, summed as a tree. The last factor is what n·log 2 lacks for log 2 being a float.
    """
    least, most, log_2 = -708.0, 709.0, 0.6931471805599453
    inside = least if x < least else (most if x > most else x)
    n = np.int32(inside / log_2 + 1100.5) - np.int32(1100)
    r = inside - n * log_2
    r2 = r * r
    r4 = r2 * r2
    p0 = (1.0 + r) + (1.0 / 2.0 + 1.0 / 6.0 * r) * r2
    p4 = (1.0 / 24.0 + 1.0 / 120.0 * r) + (1.0 / 720.0 + 1.0 / 5040.0 * r) * r2
    p8 = (1.0 / 40320.0 + 1.0 / 362880.0 * r) + (1.0 / 3628800.0 + 1.0 / 39916800.0 * r) * r2
    power = np.int64((np.int64(n) + np.int64(1023)) << np.int64(52)).view(np.float64)
    series = p0 + (p4 + (p8 + 1.0 / 479001600.0 * r4) * r4) * r4
    whole = power * (series - series * (n * 2.3190468138462996e-17))
    return 0.0 if x < least else (math.inf if x > most else whole)


def _exponential(of: Expressions, value: Value) -> Value:
    return of.called(exponential, [of.writer.converted(as_number(value), F64)])


def _of_two(sign: str) -> Write:
    """The first, if it lies before the other, else the other: so it is with what is not a number."""

    def write(of: Expressions, one: Value, other: Value) -> Value:
        x, y = as_number(one), as_number(other)
        return of.writer.chosen(of.writer.compared(sign, x, y), x, y)

    return write


def _where(of: Expressions, condition: Value, one: Value, other: Value) -> Value:
    return of.writer.chosen(of.writer.true(as_number(condition)), as_number(one), as_number(other))


# --- those of ``ns`` that are instructions of the processor, or what a compiler is told


def _prefetch(of: Expressions, vector: Value, j: Value) -> Value:
    """Ask memory for vector[j], to be in the second cache soon, and do not wait for it."""
    place = of.arrays.place(as_array(vector), [as_number(j)])
    of.writer.call("void", "llvm.prefetch.p0", [("ptr", place), ("i32", "0"), ("i32", "2"), ("i32", "1")])
    return NOTHING


def _one_by_one(of: Expressions) -> Value:
    """An instruction of no length, which compilers may neither drop nor repeat for each part of a vector."""
    of.writer.write('call void asm sideeffect "", ""()')
    return NOTHING


def _one_vector(of: Expressions) -> Value:
    """Compilers would else write small loops out, number by number, before they look for vectors."""
    of.writer.vectors[-1] = True
    return NOTHING


def _short_vectors(of: Expressions) -> Value:
    """Vectors of 32 bytes, in all of the loop that it is written in, though the processor may have longer ones."""
    of.writer.attributes.add('"prefer-vector-width"="256"')
    return NOTHING


def _scratch(of: Expressions, like: Value) -> Value:
    return of.arrays.room(as_array(like), ns.SCRATCH)


def _triangle(name: str) -> Write:
    def write(of: Expressions, factor: Value, room: Value, dim: Value, count: Value) -> Value:
        numbers = [of.writer.converted(as_number(one), U64).text for one in (dim, count)]
        given = [("ptr", as_array(factor).data), ("ptr", as_array(room).data), *(("i64", one) for one in numbers)]
        of.writer.call("void", name, given)
        of.writer.declared[name] = triangle.definitions()[name]
        return NOTHING

    return write


def _square_times(of: Expressions, factor: Value, room: Value, dim: Value) -> Value:
    name, width = "onlinevi_square_times", of.writer.converted(as_number(dim), U64).text
    of.writer.call("void", name, [("ptr", as_array(factor).data), ("ptr", as_array(room).data), ("i64", width)])
    of.writer.declared[name] = square.square_definition()
    return NOTHING


KNOWN: dict[Any, Write] = {
    len: _length,
    min: _picks("<"),
    max: _picks(">"),
    abs: _absolute,
    float: _converts(F64),
    int: _converts(I64),
    np.empty: _new(None),
    np.zeros: _new(0.0),
    np.ones: _new(1.0),
    np.floor: _intrinsic("floor"),
    np.ceil: _intrinsic("ceil"),
    **{dtype.type: _converts(kind) for dtype, kind in KINDS.items()},
    **{getattr(math, name): _intrinsic(name) for name in ("exp", "log", "sin", "cos", "log2", "log10", "floor", "ceil")},
    **{getattr(np, name): _intrinsic(name) for name in ("exp", "log", "sin", "cos", "log2", "log10")},
    **{
        getattr(math, name): _library(name)
        for name in ("log1p", "erf", "erfc", "expm1", "lgamma", "tan", "tanh", "sinh", "cosh")
    },
    **{getattr(math, name): _library(name) for name in ("asin", "acos", "atan", "atan2", "hypot", "pow")},
    **{getattr(np, name): _library(name) for name in ("log1p", "expm1", "tan", "tanh", "sinh", "cosh")},
    **dict.fromkeys((math.fabs, np.absolute), _absolute),
    **dict.fromkeys((math.sqrt, np.sqrt, ns.sqrt), _intrinsic("sqrt")),
    **dict.fromkeys((math.isfinite, np.isfinite, ns.isfinite), _finite),
    ns.log: _intrinsic("log"),
    ns.log1p: _library("log1p"),
    ns.erf: _library("erf"),
    ns.exp: _exponential,
    ns.absolute: _absolute,
    ns.maximum: _of_two(">"),
    ns.minimum: _of_two("<"),
    ns.where: _where,
    ns.prefetch: _prefetch,
    ns.one_by_one: _one_by_one,
    ns.one_vector: _one_vector,
    ns.short_vectors: _short_vectors,
    ns.scratch: _scratch,
    ns.triangle_times: _triangle("onlinevi_triangle_times"),
    ns.fold_triangle: _triangle("onlinevi_fold_triangle"),
    ns.square_times: _square_times,
}
"""By what is called."""
