"""What expressions of a loop are while it is translated: numbers, tuples, arrays, and things that Python knows already."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np


class NotTranslated(TypeError):
    """A loop has something in it that the translator does not know."""

    placed = False
    """Whether it says where."""

    def at(self, file: str, line: int, function: str, hint: str = "") -> NotTranslated:
        """The same, with the line that it is about."""
        if self.placed:
            return self
        found = NotTranslated(f'File "{file}", line {line}, in {function}: {self}. {hint or IS_KNOWN}')
        found.placed = True
        return found


IS_KNOWN = (
    "Compiled loops know operators, branches, loops over range(…), tuples, arrays, calls of functions like them, onlinevi.ns "
    "and math; ONLINEVI_ENGINE=interpreted runs any Python"
)


class Kind(NamedTuple):
    """A kind of number."""

    llvm: str
    bits: int
    of: Literal["float", "int", "uint", "bool"]

    @property
    def is_float(self) -> bool:
        return self.of == "float"

    @property
    def is_whole(self) -> bool:
        return self.of in ("int", "uint")

    def holds(self, whole: int) -> bool:
        """Whether it is among its numbers."""
        sign = int(self.of == "int")
        return -sign << (self.bits - 1) <= whole < 1 << (self.bits - sign)


F64, F32, BOOL = Kind("double", 64, "float"), Kind("float", 32, "float"), Kind("i1", 1, "bool")
I64, U64 = Kind("i64", 64, "int"), Kind("i64", 64, "uint")
_SIZES = (8, 16, 32, 64)
KINDS: dict[Any, Kind] = {
    np.dtype(np.float64): F64,
    np.dtype(np.float32): F32,
    **{np.dtype(f"i{bits // 8}"): Kind(f"i{bits}", bits, "int") for bits in _SIZES},
    **{np.dtype(f"u{bits // 8}"): Kind(f"i{bits}", bits, "uint") for bits in _SIZES},
}
"""What arrays may hold."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number: how LLVM's code calls it, and its value where it is known before the loop runs."""

    kind: Kind
    text: str
    known: Any = None


@dataclass(frozen=True, slots=True)
class Items:
    """A tuple; ``made_of`` is its class, where that has names for them."""

    items: tuple[Value, ...]
    made_of: type[Any] | None = None

    def named(self, name: str) -> Value | None:
        fields: tuple[str, ...] = getattr(self.made_of, "_fields", ())
        return self.items[fields.index(name)] if name in fields else None


@dataclass(frozen=True, slots=True)
class Array:
    """An array: where it lies, how long it is, and how many bytes a step along each axis is; None where rows are packed."""

    kind: Kind
    data: str
    shape: tuple[Number, ...]
    strides: tuple[Number, ...] | None = None
    writable: bool = True


@dataclass(frozen=True, slots=True)
class Known:
    """A function, a class, a module, a type of numbers."""

    value: Any


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a value."""

    of: Value
    name: str


Value: TypeAlias = Number | Items | Array | Known | Method
NOTHING = Known(None)


def constant(kind: Kind, value: Any) -> Number:
    """A number that is known."""
    if kind.is_float:
        exact = float(np.float32(value)) if kind == F32 else float(value)
        return Number(kind, f"0x{struct.unpack('>Q', struct.pack('>d', exact))[0]:016X}", exact)
    if kind == BOOL:
        return Number(kind, "true" if value else "false", bool(value))
    return Number(kind, str(int(value)), int(value))


def lifted(value: Any, *, single: bool = False) -> Value:
    """A value of Python's as one of a loop; floats become float32 if ``single``."""
    if isinstance(value, (bool, np.bool_)):
        return constant(BOOL, value)
    if isinstance(value, np.generic) and value.dtype in KINDS:
        return constant(KINDS[value.dtype], value)
    if isinstance(value, int):
        return constant(I64 if value < 2**63 else U64, value)
    if isinstance(value, float):
        return constant(F32 if single else F64, value)
    if isinstance(value, tuple):
        return Items(tuple(lifted(one, single=single) for one in value), type(value))
    return Known(value)


# --- the form of a value: all of it but its numbers


class Form(NamedTuple):
    """What kind of value: numbers by their kinds, tuples and arrays by those of their parts."""

    what: Literal["number", "items", "array"]
    kind: Kind | None = None
    parts: tuple[Form, ...] = ()
    made_of: type[Any] | None = None
    axes: int = 0
    packed: bool = True
    writable: bool = True


def number_form(kind: Kind) -> Form:
    return Form("number", kind)


def form_of(value: Value) -> Form:
    if isinstance(value, Number):
        return number_form(value.kind)
    if isinstance(value, Items):
        return Form("items", parts=tuple(form_of(part) for part in value.items), made_of=value.made_of)
    if isinstance(value, Array):
        return Form("array", value.kind, axes=len(value.shape), packed=value.strides is None, writable=value.writable)
    raise NotTranslated(f"{value} is no value of a variable")


def parts_of(value: Value) -> list[tuple[str, str]]:
    """The numbers and pointers that a value is made of, each with its type in LLVM's code."""
    if isinstance(value, Number):
        return [(value.kind.llvm, value.text)]
    if isinstance(value, Items):
        return [part for item in value.items for part in parts_of(item)]
    if isinstance(value, Array):
        return [("ptr", value.data), *((I64.llvm, one.text) for one in (*value.shape, *(value.strides or ())))]
    raise NotTranslated(f"{value} is no value of a variable")


def with_parts(form: Form, texts: Any) -> Value:
    """A value of this form from the numbers and pointers that an iterator gives, in the order of ``parts_of``."""
    if form.what == "number":
        assert form.kind is not None
        return Number(form.kind, next(texts))
    if form.what == "items":
        return Items(tuple(with_parts(part, texts) for part in form.parts), form.made_of)
    assert form.kind is not None
    data, axes = next(texts), range(form.axes)
    shape = tuple(Number(I64, next(texts)) for _ in axes)
    strides = None if form.packed else tuple(Number(I64, next(texts)) for _ in axes)
    return Array(form.kind, data, shape, strides, form.writable)


def types_of(form: Form) -> list[str]:
    """The types of these parts in LLVM's code."""
    if form.what == "number":
        assert form.kind is not None
        return [form.kind.llvm]
    if form.what == "items":
        return [one for part in form.parts for one in types_of(part)]
    return ["ptr", *[I64.llvm] * (form.axes * (1 if form.packed else 2))]


def widest(one: Kind, other: Kind) -> Kind:
    """The kind that sums of both have: whole numbers are of 64 bits, with a sign if one of them has one."""
    if one.is_float or other.is_float:
        return F32 if {one, other} <= {F32, BOOL} else F64
    return U64 if "int" not in (one.of, other.of) and "uint" in (one.of, other.of) else I64


def united(one: Form, other: Form) -> Form:
    """The form of a variable that has values of both."""
    if one == other:
        return one
    if one.what != other.what or len(one.parts) != len(other.parts) or one.axes != other.axes:
        raise NotTranslated("a variable has values of different kinds")
    if one.what == "number":
        assert one.kind is not None
        assert other.kind is not None
        return number_form(widest(one.kind, other.kind))
    if one.what == "items":
        parts = tuple(united(a, b) for a, b in zip(one.parts, other.parts, strict=True))
        return one._replace(parts=parts, made_of=one.made_of if one.made_of is other.made_of else None)
    if one.kind != other.kind:
        raise NotTranslated("a variable has arrays of different numbers")
    return one._replace(packed=one.packed and other.packed, writable=one.writable and other.writable)
