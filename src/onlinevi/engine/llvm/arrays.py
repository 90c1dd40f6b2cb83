"""What loops do with arrays: numbers, rows and slices of them, other views, and new ones that live as long as the loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from onlinevi.engine.llvm.values import BOOL, I64, KINDS, U64, Array, Items, Kind, NotTranslated, Number, Value, constant
from onlinevi.engine.llvm.writer import Writer

ALIGNED = 64
"""New arrays begin where a line of the cache does."""
LACKING = "without_memory"
"""The block to which code goes where there is no memory."""


class Slice(NamedTuple):
    """start:stop of an index, and whether a step is given, which can be 1 only."""

    start: Number | None
    stop: Number | None
    steps: bool


class Arrays:
    """Writes the code for arrays."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._constants: dict[bytes, str] = {}
        self.loops = 0
        """How deep in loops the code is."""
        self._owned: list[str] = []
        """Variables that hold what is to be freed."""
        self._chain: str | None = None
        """The last of a chain of what was made within loops."""

    # --- what is in them

    def taken(self, array: Array, index: Sequence[Number | Slice]) -> Value:
        """array[index]."""
        if len(index) == len(array.shape) and all(isinstance(one, Number) for one in index):
            kind = array.kind
            return Number(kind, self._writer.load(kind.llvm, self.place(array, index), kind.bits // 8))
        return self._part(array, index)

    def put(self, array: Array, index: Sequence[Number | Slice], value: Value) -> None:
        """array[index] = value."""
        if not array.writable:
            raise NotTranslated("an array that may not be written to")
        if (
            len(index) != len(array.shape)
            or not all(isinstance(one, Number) for one in index)
            or not isinstance(value, Number)
        ):
            raise NotTranslated("numbers are written one by one")
        kind = array.kind
        number = self._writer.converted(value, kind)
        self._writer.store(kind.llvm, number.text, self.place(array, index), kind.bits // 8)

    def _index(self, array: Array, axis: int, given: Number) -> Number:
        """An index from the front; a negative one that is known counts from the end."""
        if not given.kind.is_whole:
            raise NotTranslated("an index that is no whole number")
        if given.known is not None and given.known < 0:
            return self._sum(array.shape[axis], constant(I64, given.known))
        return self._writer.converted(given, U64 if given.kind.of == "uint" else I64)

    def _sum(self, one: Number, other: Number) -> Number:
        return self._whole("add", one, other)

    def _product(self, one: Number, other: Number) -> Number:
        return self._whole("mul", one, other)

    def _whole(self, what: str, one: Number, other: Number) -> Number:
        """A sum or a product of lengths and indices, which have no need of a sign, and do not overflow."""
        neutral = 0 if what == "add" else 1
        if one.known is not None and other.known is not None:
            return constant(I64, one.known + other.known if what == "add" else one.known * other.known)
        if one.known == neutral:
            return other
        if other.known == neutral:
            return one
        return Number(I64, self._writer.made(f"{what} nsw i64 {one.text}, {other.text}"))

    def place(self, array: Array, index: Sequence[Any]) -> str:
        """Where the number at an index lies."""
        given = [self._index(array, axis, one) for axis, one in enumerate(index)]
        if array.strides is None:
            place = given[0]
            for axis in range(1, len(array.shape)):
                place = self._sum(self._product(place, array.shape[axis]), given[axis])
            return self._at(array.data, array.kind.llvm, place)
        return self._at(array.data, "i8", self._total(map(self._product, given, array.strides)))

    def _total(self, numbers: Any) -> Number:
        total = constant(I64, 0)
        for number in numbers:
            total = self._sum(total, number)
        return total

    def _at(self, data: str, step: str, place: Number) -> str:
        return data if place.known == 0 else self._writer.made(f"getelementptr inbounds {step}, ptr {data}, i64 {place.text}")

    def _part(self, array: Array, index: Sequence[Number | Slice]) -> Array:
        """A view: rows, columns, slices."""
        steps, size = self.strides(array), constant(I64, array.kind.bits // 8)
        offset = constant(I64, 0)
        shape, strides = list[Number](), list[Number]()
        packed = array.strides is None
        whole = Slice(None, None, False)
        for axis, one in enumerate([*index, *[whole] * (len(array.shape) - len(index))]):
            if isinstance(one, Number):
                offset = self._sum(offset, self._product(self._index(array, axis, one), steps[axis]))
                packed = packed and not shape
                continue
            if one != whole:
                packed = packed and not shape and not one.steps
            start, length = self._span(array.shape[axis], one)
            offset = self._sum(offset, self._product(start, steps[axis]))
            shape.append(length)
            strides.append(steps[axis])
        if packed and not (strides and strides[-1].known == size.known):
            packed = False
        data = self._at(array.data, "i8", offset)
        return Array(array.kind, data, tuple(shape), None if packed else tuple(strides), array.writable)

    def _span(self, length: Number, one: Slice) -> tuple[Number, Number]:
        """Where a slice starts, and how long it is: it ends where the array does."""
        start = constant(I64, 0) if one.start is None else self._within(length, one.start)
        if one.stop is None:
            return start, length if start.known == 0 else self._difference(length, start)
        stop = self._within(length, one.stop)
        if start.known == 0:
            return start, stop
        found = self._difference(stop, start)
        return start, self._writer.chosen(self._writer.compared("<", found, constant(I64, 0)), constant(I64, 0), found)

    def _difference(self, one: Number, other: Number) -> Number:
        if one.known is not None and other.known is not None:
            return constant(I64, one.known - other.known)
        return Number(I64, self._writer.made(f"sub nsw i64 {one.text}, {other.text}"))

    def _within(self, length: Number, end: Number) -> Number:
        """An end of a slice, which may not lie behind that of the array."""
        if end.known is not None and end.known < 0:
            return self._sum(length, constant(I64, end.known))
        if not end.kind.is_whole:
            raise NotTranslated("a slice by what is no whole number")
        end = Number(I64, self._writer.converted(end, U64 if end.kind.of == "uint" else I64).text, end.known)
        if end.known == 0:
            return end
        return self._writer.chosen(self._writer.compared("<", end, length), end, length)

    # --- other views of them

    def strides(self, array: Array) -> list[Number]:
        """How many bytes a step along each axis is."""
        if array.strides is not None:
            return list(array.strides)
        steps = [constant(I64, array.kind.bits // 8)]
        for length in reversed(array.shape[1:]):
            steps.append(self._product(steps[-1], length))
        return steps[::-1]

    def strided(self, array: Array) -> Array:
        """The same array, of which code does not know that it is packed."""
        return Array(array.kind, array.data, array.shape, tuple(self.strides(array)), array.writable)

    def turned(self, array: Array) -> Array:
        """Its transpose."""
        return Array(array.kind, array.data, array.shape[::-1], tuple(self.strides(array)[::-1]), array.writable)

    def reshaped(self, array: Array, shape: Sequence[Value]) -> Array:
        if array.strides is not None:
            raise NotTranslated("reshape of an array whose rows are not packed")
        return Array(array.kind, array.data, self._lengths(shape), None, array.writable)

    def seen_as(self, array: Array, kind: Kind) -> Array:
        """The same bytes as numbers of another kind, which are as long or shorter."""
        if array.strides is not None or kind.bits > array.kind.bits:
            raise NotTranslated("view of an array whose rows are not packed, or as longer numbers")
        ratio = constant(I64, array.kind.bits // kind.bits)
        shape = (*array.shape[:-1], self._product(array.shape[-1], ratio))
        return Array(kind, array.data, shape, None, array.writable)

    def _lengths(self, shape: Sequence[Value]) -> tuple[Number, ...]:
        found = []
        for one in shape:
            if not isinstance(one, Number) or not one.kind.is_whole or (one.known or 0) < 0:
                raise NotTranslated("a shape needs whole numbers from 0 on")
            number = self._writer.converted(one, U64 if one.kind.of == "uint" else I64)
            found.append(Number(I64, number.text, number.known))
        return tuple(found)

    # --- new ones

    def new(self, shape: Value, kind: Kind, filled_with: float | None) -> Array:
        """An array of this shape: with nothing in it, or one number."""
        lengths = self._lengths(shape.items if isinstance(shape, Items) else (shape,))
        writer, count = self._writer, constant(I64, 1)
        for length in lengths:
            count = self._product(count, length)
        size = self._product(count, constant(I64, kind.bits // 8))
        raw = writer.call("ptr", "malloc", [("i64", self._sum(size, constant(I64, 2 * ALIGNED)).text)])
        writer.declared["malloc"] = "declare noalias ptr @malloc(i64)"
        there = writer.label()
        writer.choose(Number(BOOL, writer.made(f"icmp eq ptr {raw}, null")), LACKING, there)
        writer.begin(there)
        self._own(raw)
        here = writer.made(f"ptrtoint ptr {raw} to i64")
        over = writer.made(f"and i64 {here}, {ALIGNED - 1}")
        # The first bytes are for the chain.
        data = writer.made(f"getelementptr inbounds i8, ptr {raw}, i64 {writer.made(f'sub nsw i64 {2 * ALIGNED}, {over}')}")
        found = Array(kind, data, lengths)
        if filled_with == 0.0:
            writer.call("void", "llvm.memset.p0.i64", [("ptr", data), ("i8", "0"), ("i64", size.text), ("i1", "false")])
        elif filled_with is not None:
            with writer.counting(constant(I64, 0), count, constant(I64, 1)) as loop:
                self.put(Array(kind, data, (count,)), [loop.k], constant(kind, filled_with))
        return found

    def _own(self, raw: str) -> None:
        """Free it at the end: within loops it joins a chain, as nobody knows how many there will be."""
        writer = self._writer
        if not self.loops:
            self._owned.append(writer.variable("ptr", "null"))
            writer.store("ptr", raw, self._owned[-1])
            return
        self._chain = self._chain or writer.variable("ptr", "null")
        writer.store("ptr", writer.load("ptr", self._chain), raw)
        writer.store("ptr", raw, self._chain)

    def state(self) -> tuple[Any, ...]:
        return self.loops, len(self._owned), self._chain

    def back_to(self, state: tuple[Any, ...]) -> None:
        """Forget what was made since."""
        self.loops, owned, self._chain = state
        del self._owned[owned:]

    def free(self) -> None:
        """Give back all that was made."""
        writer = self._writer
        for place in self._owned:
            writer.call("void", "free", [("ptr", writer.load("ptr", place))])
        if self._chain:
            head, body, end = (writer.label() for _ in range(3))
            writer.begin(head)
            one = writer.load("ptr", self._chain)
            writer.choose(Number(BOOL, writer.made(f"icmp eq ptr {one}, null")), end, body)
            writer.begin(body)
            writer.store("ptr", writer.load("ptr", one), self._chain)
            writer.call("void", "free", [("ptr", one)])
            writer.go_to(head)
            writer.begin(end)

    def room(self, like: Array, count: int) -> Array:
        """A few numbers on the stack: code knows that nothing else lies there."""
        data = self._writer.variable(f"[{count} x {like.kind.llvm}]")
        return Array(like.kind, data, (constant(I64, count),))

    def fixed(self, array: Any) -> Array:
        """An array of numpy's that is a constant of the loop."""
        kind = KINDS.get(array.dtype)
        if kind is None or not array.flags.c_contiguous:
            raise NotTranslated(f"an array of {array.dtype}")
        key = array.dtype.char.encode() + array.tobytes()
        if key not in self._constants:
            name = self._constants[key] = f"constant{len(self._constants)}"
            numbers = ", ".join(f"{kind.llvm} {constant(kind, one).text}" for one in array.ravel())
            of = f"[{array.size} x {kind.llvm}]"
            self._writer.declared[name] = f"@{name} = private unnamed_addr constant {of} [{numbers}], align {ALIGNED}"
        return Array(kind, f"@{self._constants[key]}", tuple(constant(I64, n) for n in array.shape), None, False)
