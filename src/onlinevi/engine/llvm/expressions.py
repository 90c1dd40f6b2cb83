"""Expressions of a loop as LLVM's code."""

from __future__ import annotations

import ast
import builtins
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from onlinevi.engine.llvm.arrays import Arrays, Slice
from onlinevi.engine.llvm.known import KNOWN, as_number, is_named_tuple, kind_of
from onlinevi.engine.llvm.sources import source_of
from onlinevi.engine.llvm.values import (
    BOOL,
    F64,
    Array,
    Form,
    Items,
    Known,
    Method,
    NotTranslated,
    Number,
    Value,
    constant,
    form_of,
    lifted,
    parts_of,
    united,
    with_parts,
)
from onlinevi.engine.llvm.writer import Writer

SIGNS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
MOST_FACTORS = 16
"""A power of a whole number up to this is a product."""


NO_NAMES: Mapping[str, Value] = {}


class Expressions:
    """What a translator makes of expressions."""

    writer: Writer
    arrays: Arrays

    @abstractmethod
    def name(self, name: str) -> Value:
        """The value of a name."""

    @abstractmethod
    def called(self, function: Any, arguments: Sequence[Value], named: Mapping[str, Value] = NO_NAMES) -> Value:
        """Write a function out, in the place of a call of it."""

    @abstractmethod
    def loop_called(self, loop: Any, arguments: Sequence[Value]) -> Value:
        """Call another loop."""

    @property
    @abstractmethod
    def single(self) -> bool:
        """Whether constants are float32 here."""

    def expression(self, node: ast.expr) -> Value:
        write: Callable[[Any], Value] | None = getattr(self, f"_{type(node).__name__.lower()}", None)
        if write is None:
            raise NotTranslated(f"the expression {ast.unparse(node)!r}")
        return write(node)

    def number(self, node: ast.expr) -> Number:
        return as_number(self.expression(node))

    # --- names and constants

    def outside(self, function: FunctionType, name: str) -> Value:
        """The value of a name outside of a function."""
        if name in function.__globals__:
            return self._lifted(function.__globals__[name], single=self.single)
        if hasattr(builtins, name):
            return Known(getattr(builtins, name))
        raise NotTranslated(f"the name {name!r}, which has no value before it is read")

    def _lifted(self, value: Any, *, single: bool) -> Value:
        return self.arrays.fixed(value) if isinstance(value, np.ndarray) else lifted(value, single=single)

    def _constant(self, node: ast.Constant) -> Value:
        return self._lifted(node.value, single=self.single)

    def _name(self, node: ast.Name) -> Value:
        return self.name(node.id)

    def _tuple(self, node: ast.Tuple) -> Value:
        return Items(tuple(self._arguments(node.elts)))

    def _attribute(self, node: ast.Attribute) -> Value:
        value = self.expression(node.value)
        if isinstance(value, Known):
            if not hasattr(value.value, node.attr):
                raise NotTranslated(f"{ast.unparse(node)}, which is not there")
            return self._lifted(getattr(value.value, node.attr), single=False)
        if isinstance(value, Items):
            part = value.named(node.attr)
            if part is not None:
                return part
        if isinstance(value, Array):
            if node.attr == "shape":
                return Items(value.shape)
            if node.attr == "dtype":
                return Known(value.kind)
            if node.attr == "T":
                return self.arrays.turned(value)
        if isinstance(value, (Array, Number)):
            return Method(value, node.attr)
        raise NotTranslated(f"the attribute {ast.unparse(node)!r}")

    # --- operators

    def _binop(self, node: ast.BinOp) -> Value:
        return self.operation(node.op, self.expression(node.left), self.expression(node.right))

    def operation(self, operator: ast.operator, left: Value, right: Value) -> Number:
        one, other = as_number(left), as_number(right)
        if isinstance(operator, ast.Pow):
            return self._power(one, other)
        sign = SIGNS.get(type(operator))
        if sign is None:
            raise NotTranslated(f"the operator {type(operator).__name__}")
        return self.writer.operated(sign, one, other)

    def _power(self, base: Number, exponent: Number) -> Number:
        if exponent.kind.is_whole and exponent.known is not None and 0 < exponent.known <= MOST_FACTORS:
            found = base
            for _ in range(exponent.known - 1):
                found = self.writer.operated("*", found, base)
            return found
        return self.writer.of_floats("pow", base, exponent)

    def _unaryop(self, node: ast.UnaryOp) -> Value:
        x = self.number(node.operand)
        if isinstance(node.op, ast.USub):
            return self.writer.negated(x)
        if isinstance(node.op, ast.Not):
            return self.writer.not_true(x)
        if isinstance(node.op, ast.Invert) and x.kind.is_whole:
            return self.writer.operated("^", x, constant(x.kind, -1))
        if isinstance(node.op, ast.UAdd):
            return x
        raise NotTranslated(f"the operator {type(node.op).__name__}")

    def _compare(self, node: ast.Compare) -> Value:
        if len(node.ops) > 1:
            return self._by_branches(node)
        return self._compared(node.ops[0], self.number(node.left), self.number(node.comparators[0]))

    def _compared(self, operator: ast.cmpop, one: Number, other: Number) -> Number:
        sign = SIGNS.get(type(operator))
        if sign is None:
            raise NotTranslated(f"the comparison {type(operator).__name__}")
        return self.writer.compared(sign, one, other)

    def _boolop(self, node: ast.BoolOp) -> Value:
        return self._by_branches(node)

    def _by_branches(self, node: ast.expr) -> Number:
        """Whether it is true, as a number."""
        known = self.truth_known(node)
        if known is not None:
            return constant(BOOL, known)
        writer = self.writer
        yes, no, end = writer.label(), writer.label(), writer.label()
        self.branch(node, yes, no)
        writer.begin(yes)
        writer.go_to(end)
        writer.begin(no)
        writer.begin(end)
        return Number(BOOL, writer.made(f"phi i1 [true, %{yes}], [false, %{no}]"))

    def branch(self, node: ast.expr, yes: str, no: str) -> None:
        """Go to one of two labels, by whether it is true; what comes behind the first answer is not asked."""
        known = self.truth_known(node)
        if known is not None:
            self.writer.go_to(yes if known else no)
        elif isinstance(node, ast.BoolOp):
            both = isinstance(node.op, ast.And)
            asked = [one for one in node.values if self.truth_known(one) is None]
            for one in asked[:-1]:
                goes_on = self.writer.label()
                self.branch(one, *((goes_on, no) if both else (yes, goes_on)))
                self.writer.begin(goes_on)
            self.branch(asked[-1], yes, no)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self.branch(node.operand, no, yes)
        elif isinstance(node, ast.Compare) and len(node.ops) > 1:
            left = self.number(node.left)
            for k, (operator, comparator) in enumerate(zip(node.ops, node.comparators, strict=True)):
                right, last = self.number(comparator), k == len(node.ops) - 1
                goes_on = yes if last else self.writer.label()
                self.writer.choose(self._compared(operator, left, right), goes_on, no)
                if not last:
                    self.writer.begin(goes_on)
                left = right
        else:
            self.writer.choose(self.writer.true(self.number(node)), yes, no)

    def truth_known(self, node: ast.expr) -> bool | None:
        """Whether it is known to be true, or false, before anything is written."""
        if isinstance(node, ast.Constant):
            return bool(node.value)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            known = self.truth_known(node.operand)
            return None if known is None else not known
        if isinstance(node, ast.BoolOp):
            found, settles = [self.truth_known(one) for one in node.values], isinstance(node.op, ast.Or)
            return settles if settles in found else (None if None in found else not settles)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.args:
            function = self.name(node.func.id)
            if isinstance(function, Known) and isinstance(function.value, FunctionType):
                answer = source_of(function.value).constant
                return answer if isinstance(answer, bool) else None
        if isinstance(node, (ast.Name, ast.Attribute)):
            value = self._settled(node)
            return bool(value.known) if isinstance(value, Number) and value.known is not None else None
        return None

    def _settled(self, node: ast.expr) -> Value | None:
        """The value of a name or of an item of it, if nothing has to be written for it."""
        if isinstance(node, ast.Attribute):
            value = self._settled(node.value)
            return value.named(node.attr) if isinstance(value, Items) else None
        return self.value_of(node.id) if isinstance(node, ast.Name) else None

    @abstractmethod
    def value_of(self, name: str) -> Value | None:
        """What a name stands for wherever it is read, if it is such a name."""

    def _ifexp(self, node: ast.IfExp) -> Value:
        known = self.truth_known(node.test)
        if known is not None:
            return self.expression(node.body if known else node.orelse)
        writer, end = self.writer, self.writer.label()
        labels = writer.label(), writer.label()
        self.branch(node.test, *labels)
        arms, joined = [], []
        for label, arm in zip(labels, (node.body, node.orelse), strict=True):
            with writer.aside() as lines:
                writer.begin(label)
                arms.append((lines, self.expression(arm), writer.block))
            writer.open = False
        form = united(*(form_of(value) for _, value, _ in arms))
        for lines, value, block in arms:
            with writer.aside() as more:
                writer.block, writer.open = block, True
                joined.append((parts_of(self.fitted(value, form)), writer.block))
                writer.go_to(end)
            writer.lines += [*lines, *more]
        writer.begin(end)
        (ones, first), (others, second) = joined
        texts = [
            one if one == other else writer.made(f"phi {kind} [{one}, %{first}], [{other}, %{second}]")
            for (kind, one), (_, other) in zip(ones, others, strict=True)
        ]
        return with_parts(form, iter(texts))

    def fitted(self, value: Value, form: Form) -> Value:
        """The value in this form, which has room for it."""
        if isinstance(value, Number):
            assert form.kind is not None
            return self.writer.converted(value, form.kind)
        if isinstance(value, Items):
            return Items(tuple(map(self.fitted, value.items, form.parts)), form.made_of)
        if isinstance(value, Array) and value.strides is None and not form.packed:
            return self.arrays.strided(value)
        return value

    # --- arrays

    def place(self, node: ast.Subscript) -> tuple[Array, list[Number | Slice]]:
        """An array and an index into it."""
        array = self.expression(node.value)
        if not isinstance(array, Array):
            raise NotTranslated(f"{ast.unparse(node)!r}, which is no part of an array")
        return array, self._index(node.slice)

    def _index(self, node: ast.expr) -> list[Number | Slice]:
        if isinstance(node, ast.Tuple):
            return [one for part in node.elts for one in self._index(part)]
        if isinstance(node, ast.Slice):
            if node.step is not None and not (isinstance(node.step, ast.Constant) and node.step.value == 1):
                raise NotTranslated("a slice by steps of more than 1")
            ends = [None if end is None else self.number(end) for end in (node.lower, node.upper)]
            return [Slice(ends[0], ends[1], node.step is not None)]
        return [self.number(node)]

    def _subscript(self, node: ast.Subscript) -> Value:
        value = self.expression(node.value)
        if isinstance(value, Array):
            return self.arrays.taken(value, self._index(node.slice))
        if isinstance(value, Items):
            index, number = self.number(node.slice), len(value.items)
            if index.known is not None and index.kind.is_whole and -number <= index.known < number:
                return value.items[int(index.known)]
            numbers = [one.known for one in value.items if isinstance(one, Number) and one.kind == F64]
            if len(numbers) == number and None not in numbers:
                return self.arrays.taken(self.arrays.fixed(np.array(numbers)), [index])
        raise NotTranslated(f"the index {ast.unparse(node)!r}")

    # --- calls

    def _arguments(self, nodes: Sequence[ast.expr]) -> list[Value]:
        found: list[Value] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                value = self.expression(node.value)
                if not isinstance(value, Items):
                    raise NotTranslated(f"{ast.unparse(node)}, which is no tuple")
                found.extend(value.items)
            else:
                found.append(self.expression(node))
        return found

    def _call(self, node: ast.Call) -> Value:
        function, arguments = self.expression(node.func), self._arguments(node.args)
        named = {one.arg: self.expression(one.value) for one in node.keywords if one.arg is not None}
        if len(named) < len(node.keywords):
            raise NotTranslated("a call with **")
        if isinstance(function, Method):
            return self._method(function, arguments, named)
        if not isinstance(function, Known):
            raise NotTranslated(f"a call of {ast.unparse(node.func)!r}")
        called = function.value
        if is_named_tuple(called):
            given = {**dict(zip(called._fields, arguments, strict=False)), **named}
            given |= {name: lifted(value) for name, value in called._field_defaults.items() if name not in given}
            return Items(tuple(given[name] for name in called._fields), called)
        try:
            write = KNOWN.get(called)
        except TypeError:  # it has no hash
            write = None
        if write is not None:
            if named:
                raise NotTranslated(f"{ast.unparse(node)!r}: no argument of it has a name")
            found: Value = write(self, *arguments)
            return found
        if isinstance(called, FunctionType):
            return self.called(called, arguments, named)
        if hasattr(called, "translated"):
            return self.loop_called(called, arguments)
        raise NotTranslated(f"the function {ast.unparse(node.func)!r}")

    def _method(self, method: Method, arguments: Sequence[Value], named: Mapping[str, Value]) -> Value:
        of = method.of
        if isinstance(of, Array) and method.name == "reshape" and not named:
            first = arguments[0] if arguments else None
            return self.arrays.reshaped(of, first.items if isinstance(first, Items) else arguments)
        if method.name == "view" and len(arguments) == 1 and not named:
            kind = kind_of(arguments[0])
            if isinstance(of, Array):
                return self.arrays.seen_as(of, kind)
            if isinstance(of, Number) and of.kind.bits == kind.bits:
                return Number(kind, self.writer.made(f"bitcast {of.kind.llvm} {of.text} to {kind.llvm}"))
        raise NotTranslated(f"the method {method.name!r}")
