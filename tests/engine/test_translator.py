"""The translator: compiled loops do what Python does, and what they cannot do is named by its line."""

from __future__ import annotations

import importlib
import linecache
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

from onlinevi.engine import compose, machine, ns
from onlinevi.engine.llvm import NotTranslated, natives, translated
from onlinevi.engine.llvm.natives import optimised
from onlinevi.engine.llvm.sources import source_of
from onlinevi.engine.llvm.values import F64, I64, U64, Form, number_form

VECTOR, FLOAT, WHOLE = Form("array", F64, axes=1), number_form(F64), number_form(I64)
PLACES = np.array([0.5, 2.0, -1.0])
BOLD = (0.25, 0.5, 1.0)


class Pair(NamedTuple):
    left: Any
    right: Any = 3.0


def several(x: Any, out: Any) -> tuple[float, int]:
    """A bit of everything: tuples, branches, loops, unsigned indices, views, assignments that change places."""
    total, count, tail = 0.0, 0, x[1:]
    for k in range(np.uint64(len(tail))):
        if tail[k] > 0.5 and count < 3:
            total, count = total + tail[k] * tail[k], count + 1
        elif tail[k] == tail[k]:
            total -= abs(tail[k]) / 3.0
        else:
            continue
        out[k] = total
    first, last = x[0], x[-1]
    first, last = last, first
    out[-1] = first - last if not (count > 1 or first < last) else 7
    return total, count


def whole(n: int, m: int) -> Any:
    return n // m, n % m, n & m, n | m, n ^ m, n << 2, n >> 1, ~n, -n, n**3, min(n, m), max(n, m), abs(n), n / 7


def kinds(n: int, x: float) -> Any:
    small = np.int32(n) - np.int32(2)
    return int(x), float(n), np.float64(small), np.uint64(n) + np.uint64(1), n + np.uint64(1), n + x, np.floor(x), n == 3


def choices(x: float, n: int) -> Any:
    near = -1.0 < x <= 1.0
    both, either = near and n > 2, near or n > 2
    grown: Any = 0
    while grown < n:
        if grown == 4:
            break
        grown += 1
    return near, both, either, not near, 1.0 if both else (2 if either else 3), grown, near == both


def library(x: float) -> Any:
    sizes = math.sqrt(x), math.log(x), math.exp(x), math.lgamma(x), math.sin(x), math.hypot(x, 2.0), x**0.5
    return *sizes, ns.log1p(x), ns.erf(x), ns.exp(x), ns.sqrt(x), math.isfinite(x), abs(-x), math.pi, math.inf


def named(x: float) -> Any:
    pair = Pair(x)
    one, other = pair
    swapped = Pair(right=one, left=other)
    return (
        inner(*swapped),
        inner(x, scale=2.0),
        inner(x, 2.0, 5.0),
        BOLD[1],
        BOLD[int(x)],
        PLACES[int(x)],
        len(PLACES) + len(pair),
    )


def inner(x: float, scale: float = 1.0, *rest: float) -> float:
    if len(rest) > 0:
        return scale * x - rest[0]
    return scale * x


def rows(table: Any, sparse: Any, out: Any) -> Any:
    """Rows, columns, other shapes, arrays of the loop's own."""
    height, width = table.shape
    turned, flat = table.T[::1], out.reshape((width, height))
    mean, ones, sums = np.zeros(width), np.ones((height, 2)), np.empty(width, table.dtype)
    for j in range(width):
        sums[j] = 0.0
        for i in range(height - 1, -1, -1):
            mean[j] += table[i, j] / height
            sums[j] += turned[j, i] * ones[i, 1]
            flat[j, i] = table[i][j]
    values, places = sparse
    column, tail = table[:, 1], table[1:, :2]
    total = 0.0
    for k in range(0, len(values), 2):
        total += values[k] * mean[places[k]]
    return total, column[2], tail[0, 1], tail.shape[0], sums[width - 1], len(table[:99]), len(mean[3:2])


def made_in_loops(n: int) -> float:
    """An array for each turn, which the next turn's is made beside."""
    before, total = np.ones(3), 0.0
    for k in range(n):
        now = np.zeros(3)
        for j in range(3):
            now[j] = before[j] + k
        total += before[0]
        before = now
    return total + before[2]


def renamed(x: float) -> float:
    """A name that stands for several things, one after the other, and some that grow from turn to turn."""
    step: Any = (x, 2)
    step = step[0] + step[1]
    part, count = step, 1
    for k in range(3):
        step = part, k
        part = step[0] + step[1]
        count += 0.5  # type: ignore[assignment]
    return part * count  # type: ignore[no-any-return]


X, TABLE = np.array([1.0, 0.7, math.nan, -3.0, 2.0, 0.9, 4.0]), np.arange(12.0).reshape(3, 4)
SPARSE = np.arange(4.0), np.array([3, 1, 0, 2], np.int32)


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (several, (X, np.zeros(7))),
        *((whole, pair) for pair in ((7, 2), (-7, 2), (7, -2), (6, 3), (-6, 3))),
        (kinds, (3, 2.75)),
        *((choices, pair) for pair in ((0.5, 9), (2.0, 9), (2.0, 1), (1.0, 3))),
        (library, (2.5,)),
        (named, (2.0,)),
        (rows, (TABLE, SPARSE, np.zeros(12))),
        (rows, (np.asfortranarray(TABLE), SPARSE, np.zeros(12))),
        (made_in_loops, (5,)),
        (renamed, (1.5,)),
    ],
    ids=lambda part: part.__name__ if callable(part) else "",
)
def test_a_loop_does_what_python_does(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    copies = tuple(one.copy() if isinstance(one, np.ndarray) else one for one in arguments)
    kernel = compose(function, {})
    found, expected = kernel(*arguments), kernel.on("interpreted")(*copies)
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    for one, other in zip(arguments, copies, strict=True):
        if isinstance(one, np.ndarray):
            np.testing.assert_allclose(one, other, rtol=1e-14)


@pytest.mark.compiled
def test_a_division_of_whole_numbers_by_0_is_0_and_no_end_of_the_program() -> None:
    def parts(n: int, m: int) -> Any:
        return n // m, n % m, np.uint64(n) // np.uint64(m)

    assert compose(parts, {})(5, 0) == (0, 0, 0)


@pytest.mark.compiled
def test_numbers_behind_the_last_and_before_the_first_are_compared_as_python_does() -> None:
    def compared(x: float) -> Any:
        return (
            x == x,
            x != x,
            x < 1.0,
            x > 1.0,
            ns.isfinite(x),
            ns.maximum(x, 2.0),
            ns.minimum(2.0, x),
            max(2.0, x),
            min(x, 2.0),
        )

    for x in (math.nan, math.inf, -math.inf, 1.0):
        kernel = compose(compared, {})
        np.testing.assert_array_equal(kernel(x), kernel.on("interpreted")(x))


def text_of(function: Callable[..., Any], *forms: Form) -> str:
    return translated(function, forms).text  # type: ignore[arg-type]


def test_of_a_branch_that_is_never_taken_nothing_is_written() -> None:
    def no() -> bool:
        return False

    def asks(x: float) -> float:
        if no() or (no() and x > 0.0):
            return math.sin(x)
        return x if not no() else math.cos(x)

    scope = asks.__globals__
    scope["no"] = no
    try:
        assert "llvm." not in text_of(asks, FLOAT)
    finally:
        del scope["no"]


def tries(x: float) -> float:
    try:
        return x
    finally:
        pass


def lists(x: float) -> float:
    return sum([x, x])


def loops_over_an_array(x: Any) -> float:
    for one in x:
        return one  # type: ignore[no-any-return]
    return 0.0


def calls_itself(x: float) -> float:
    return calls_itself(x - 1.0)


def returns_on_some_ways(x: float) -> Any:  # noqa: RET503
    if x > 0.0:
        return 1.0


def misspelt(x: float) -> float:
    return y + x  # type: ignore[name-defined]  # noqa: F821


def too_many(x: float) -> float:
    return inner(x, scale=1.0, shift=2.0)  # type: ignore[call-arg]


def texts(x: float) -> float:
    return x.hex()  # type: ignore[return-value]


def several_kinds(x: Any) -> Any:
    found = x
    if x[0] > 0.0:
        found = 1.0
    return found


def returns_an_array(x: Any) -> Any:
    return np.zeros(3)


@pytest.mark.parametrize(
    ("function", "form", "why"),
    [
        (tries, FLOAT, "the statement 'try:'"),
        (lists, FLOAT, r"the expression '\[x, x\]'"),
        (loops_over_an_array, VECTOR, "a loop over anything but range"),
        (calls_itself, FLOAT, "calls_itself calls itself"),
        (returns_on_some_ways, FLOAT, "a value is returned on some ways only"),
        (misspelt, FLOAT, "the name 'y', which has no value"),
        (too_many, FLOAT, "a call of inner with these arguments"),
        (texts, FLOAT, "the method 'hex'"),
        (several_kinds, VECTOR, "a variable has values of different kinds"),
    ],
    ids=lambda part: getattr(part, "__name__", ""),
)
def test_what_is_not_known_is_named_by_file_and_line(function: Callable[..., Any], form: Form, why: str) -> None:
    with pytest.raises(NotTranslated, match=why) as caught:
        text_of(function, form)
    first = function.__code__.co_firstlineno
    assert any(
        f'test_translator.py", line {line}, in {function.__name__}: ' in str(caught.value) for line in range(first, first + 5)
    )
    assert "ONLINEVI_ENGINE=interpreted runs any Python" in str(caught.value)


def test_a_loop_returns_no_array_and_writes_to_none_that_is_fixed() -> None:
    with pytest.raises(NotTranslated, match="a loop fills those that it is given"):
        text_of(returns_an_array, VECTOR)

    def writes(x: Any) -> None:
        x[0] = 1.0

    with pytest.raises(NotTranslated, match="an array that may not be written to"):
        text_of(writes, VECTOR._replace(writable=False))


@pytest.mark.compiled
def test_an_argument_of_a_strange_type_is_named() -> None:
    with pytest.raises(Exception, match="a loop takes numbers, arrays of them, and tuples"):
        compose(renamed, {})("text")


# --- where a source is


def test_a_function_whose_file_was_edited_since_is_no_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Machine code of another function than the one that runs interpreted would be wrong without a word."""
    file = tmp_path / "edited_loop.py"
    file.write_text("def doubled(x):\n    return 2.0 * x\n")
    monkeypatch.syspath_prepend(tmp_path)
    doubled = importlib.import_module("edited_loop").doubled
    file.write_text("def doubled(x):\n    return 3.0 * x\n")
    linecache.checkcache()
    with pytest.raises(
        NotTranslated,
        match=r'edited_loop.py", line 1, in doubled: its source is not there, as it runs.* start anew if the file was edited',
    ):
        source_of(doubled)
    del sys.modules["edited_loop"]


@pytest.mark.compiled
def test_a_function_typed_in_by_hand_is_asked_for_in_a_file() -> None:
    scope: dict[str, Any] = {}
    exec("def typed(x):\n    return 2.0 * x", scope)
    with pytest.raises(
        NotTranslated, match=r'File "<string>", line 1, in typed: its source is not there.* Write it in a file'
    ):
        text_of(scope["typed"], FLOAT)
    linecache.cache["<cell>"] = (0, None, ["def typed(x):\n", "    return 2.0 * x\n"], "<cell>")  # as notebooks do
    exec(compile("def typed(x):\n    return 2.0 * x", "<cell>", "exec"), scope)
    assert compose(scope["typed"], {})(3.0) == 6.0


# --- loops within loops, and what numba makes of them


def inner_sum(numbers: Any) -> float:
    total = 0.0
    for k in range(np.uint64(len(numbers))):
        total += numbers[k] * numbers[k]
    return total


def hole(numbers: Any) -> float:
    raise TypeError


def outer_sum(numbers: Any) -> float:
    return hole(numbers) + hole(numbers[:7])


@pytest.mark.compiled
def test_a_loop_within_another_has_the_bits_that_it_has_by_itself() -> None:
    numbers = np.random.default_rng(0).standard_normal(1001)
    inner = compose(inner_sum, {})
    assert compose(outer_sum, {hole: inner})(numbers) == inner(numbers) + inner(numbers[:7])


@pytest.mark.compiled
def test_where_numba_has_other_insides_it_links_loops_in_its_own_way(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = np.linspace(0.0, 1.0, 50)
    inner = compose(inner_sum, {})
    expected = inner(numbers) + inner(numbers[:7])
    machine._compiler.cache_clear()
    with monkeypatch.context() as others:
        others.delattr("numba.core.codegen.CPUCodeLibrary._optimize_final_module")
        assert machine._compiler() is None
    try:
        monkeypatch.setattr(machine, "_compiler", lambda: None)
        filled = compose(outer_sum, {hole: inner})._filled("compiled")
        made = numba.njit(nogil=True)(natives.called_by_numba(filled))
        np.testing.assert_allclose(made(numbers), expected, rtol=1e-14)
    finally:
        monkeypatch.undo()
        machine._compiler.cache_clear()


def asks_for_too_much(n: int) -> float:
    return np.empty(n)[0] + np.empty(3)[0]  # type: ignore[no-any-return]


@pytest.mark.compiled
def test_a_loop_that_finds_no_memory_says_so() -> None:
    with pytest.raises(MemoryError, match="a loop found no memory to work in"):
        compose(asks_for_too_much, {})(2**58)


def sum_in_short_vectors(x: Any) -> float:
    ns.short_vectors()
    total = 0.0
    for k in range(len(x)):
        total += x[k]
    return total


def test_a_loop_can_be_kept_to_short_vectors() -> None:
    module = optimised(text_of(sum_in_short_vectors, VECTOR))
    assert '"prefer-vector-width"="256"' in str(module)
    assert "<4 x double>" in str(module), "vectors all the same"
    assert "zmm" not in natives.processor().emit_assembly(module)


def rooted(x: Any) -> None:
    for first in range(0, len(x), ns.LANES):
        for k in range(ns.LANES):
            ns.one_vector()
            x[first + k] = 1.0 / ns.sqrt(1.0 + x[first + k])


def test_a_small_loop_can_be_one_vector() -> None:
    """Compilers write eight turns out, root by root, unless they are told."""
    module = str(optimised(text_of(rooted, VECTOR)))
    assert "<8 x double> @llvm.sqrt" in module
    assert " double @llvm.sqrt.f64(double %" not in module, "and nothing else"
    x = np.arange(16.0)
    rooted(x)
    assert np.allclose(x, 1.0 / np.sqrt(1.0 + np.arange(16.0)))


def test_unsigned_loops_end_where_python_does() -> None:
    def ends(n: Any) -> int:
        turns = 0
        for _ in range(np.uint64(5), n):
            turns += 1
        return turns

    assert "ult" in text_of(ends, number_form(U64))
