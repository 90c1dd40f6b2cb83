"""The text of LLVM's code, instruction by instruction: numbers and what is done with them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from onlinevi.engine.llvm.values import BOOL, F32, F64, I64, Kind, NotTranslated, Number, constant, widest
from onlinevi.engine.ns import LANES

FAST, FAST_IN_FLOAT32 = "reassoc nsz arcp contract", "reassoc nsz contract"
"""What may be done to sums and products. In float32 x/√y would become an estimate that errs to one side."""

OPERATIONS = {
    "+": ("fadd", "add", "add"),
    "-": ("fsub", "sub", "sub"),
    "*": ("fmul", "mul", "mul"),
    "/": ("fdiv", "", ""),
    "&": ("", "and", "and"),
    "|": ("", "or", "or"),
    "^": ("", "xor", "xor"),
    "<<": ("", "shl", "shl"),
    ">>": ("", "ashr", "lshr"),
    "//": ("", "sdiv", "udiv"),
    "%": ("", "srem", "urem"),
}
COMPARISONS = {
    "==": ("oeq", "eq", "eq"),
    "!=": ("une", "ne", "ne"),
    "<": ("olt", "slt", "ult"),
    "<=": ("ole", "sle", "ule"),
    ">": ("ogt", "sgt", "ugt"),
    ">=": ("oge", "sge", "uge"),
}
OF_PYTHON: dict[str, Any] = {
    "+": int.__add__,
    "-": int.__sub__,
    "*": int.__mul__,
    "&": int.__and__,
    "|": int.__or__,
    "^": int.__xor__,
    "<<": int.__lshift__,
    ">>": int.__rshift__,
    "//": int.__floordiv__,
    "%": int.__mod__,
    "==": int.__eq__,
    "!=": int.__ne__,
    "<": int.__lt__,
    "<=": int.__le__,
    ">": int.__gt__,
    ">=": int.__ge__,
}

AS_VECTOR = "!llvm.loop !"
"""Behind it is the number of a loop whose turns are one vector."""
VECTOR = (
    '!{!"llvm.loop.vectorize.enable", i1 true}',
    f'!{{!"llvm.loop.vectorize.width", i32 {LANES}}}',
    '!{!"llvm.loop.interleave.count", i32 1}',
    '!{!"llvm.loop.unroll.disable"}',
)
"""What is said of such loops."""


class Loop(NamedTuple):
    """A loop while its body is written."""

    k: Number
    after: str
    """The label behind the body, where the next turn begins."""
    end: str


class Writer:
    """Writes the body of one function."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.variables: list[str] = []
        """What stands before the first line: room on the stack."""
        self.declared: dict[str, str] = {}
        """Functions and constants outside, by name."""
        self.attributes = {"nounwind"}
        self.block = "entry"
        self.open = True
        """Whether the block goes on; else it has branched."""
        self.flags = FAST
        self.vectors: list[bool] = []
        """Of each loop that is being written whether its turns are one vector."""
        self._number = 0

    @property
    def said_of_loops(self) -> list[str]:
        """Lines behind the function, of the loops whose turns are one vector."""
        numbers = [line.rsplit(AS_VECTOR, 1)[1] for line in self.lines if AS_VECTOR in line]
        return [f"!{number} = distinct !{{!{number}, {', '.join(VECTOR)}}}" for number in numbers]

    # --- lines and blocks

    def name(self) -> str:
        self._number += 1
        return f"%v{self._number}"

    def write(self, line: str) -> None:
        if not self.open:  # nobody comes here: what is written is dropped by the compiler
            self.begin(self.label())
        self.lines.append(line)

    def made(self, instruction: str) -> str:
        """The name of what an instruction gives."""
        name = self.name()
        self.write(f"{name} = {instruction}")
        return name

    def label(self) -> str:
        self._number += 1
        return f"b{self._number}"

    def begin(self, label: str) -> None:
        """Go on with this block, to which the one before leads if it is open."""
        if self.open:
            self.go_to(label)
        self.lines.append(f"{label}:")
        self.block, self.open = label, True

    def go_to(self, label: str) -> None:
        if self.open:
            self.lines.append(f"br label %{label}")
            self.open = False

    def choose(self, condition: Number, yes: str, no: str) -> None:
        if condition.known is not None:
            self.go_to(yes if condition.known else no)
        elif self.open:
            self.lines.append(f"br i1 {condition.text}, label %{yes}, label %{no}")
            self.open = False

    @contextmanager
    def aside(self) -> Iterator[list[str]]:
        """What is written meanwhile goes into a list of its own."""
        before, self.lines = self.lines, []
        try:
            yield self.lines
        finally:
            self.lines = before

    def variable(self, llvm: str, start: str = "") -> str:
        """Room for a number or a pointer, and what lies there at the start, if that matters."""
        name = self.name()
        self.variables.append(f"{name} = alloca {llvm}, align 8")
        if start:
            self.variables.append(f"store {llvm} {start}, ptr {name}, align 8")
        return name

    def load(self, llvm: str, place: str, align: int = 8) -> str:
        return self.made(f"load {llvm}, ptr {place}, align {align}")

    def store(self, llvm: str, text: str, place: str, align: int = 8) -> None:
        self.write(f"store {llvm} {text}, ptr {place}, align {align}")

    def call(self, result: str, function: str, arguments: Sequence[tuple[str, str]]) -> str:
        """Call a function outside, which is declared with it; the name of what it gives, unless that is void."""
        kinds = ", ".join(kind for kind, _ in arguments)
        self.declared.setdefault(function, f"declare {result} @{function}({kinds})")
        given = ", ".join(f"{kind} {text}" for kind, text in arguments)
        flags = f"{self.flags} " if result in (F64.llvm, F32.llvm) else ""
        line = f"call {flags}{result} @{function}({given})"
        if result != "void":
            return self.made(line)
        self.write(line)
        return ""

    @contextmanager
    def counting(self, start: Number, stop: Number, step: Number) -> Iterator[Loop]:
        """A loop over range(start, stop, step), all of one kind."""
        kind, signs = start.kind, "nsw" if start.kind.of == "int" else "nuw"
        counter = self.variable(kind.llvm)
        self.store(kind.llvm, start.text, counter)
        head, body, after, end = (self.label() for _ in range(4))
        self.begin(head)
        k, zero = Number(kind, self.load(kind.llvm, counter)), constant(kind, 0)
        upwards = self.compared(">", step, zero)
        if upwards.known is None:
            goes_on = self.chosen(upwards, self.compared("<", k, stop), self.compared(">", k, stop))
        else:
            goes_on = self.compared("<" if upwards.known else ">", k, stop)
        self.choose(goes_on, body, end)
        self.begin(body)
        self.vectors.append(False)
        try:
            yield Loop(k, after, end)
        finally:
            vector = self.vectors.pop()
        self.begin(after)
        self.store(kind.llvm, self.made(f"add {signs} {kind.llvm} {k.text}, {step.text}"), counter)
        self.go_to(head)
        if vector:
            self.lines[-1] += f", {AS_VECTOR}{self.name()[2:]}"
        self.begin(end)

    # --- numbers

    def converted(self, x: Number, kind: Kind) -> Number:
        """The number as one of this kind, as C does it."""
        if x.kind == kind:
            return x
        fits = x.known is not None and (kind.is_float or (math.isfinite(x.known) and kind.holds(int(x.known))))
        if fits and kind != BOOL:
            return constant(kind, x.known)
        if kind == BOOL:
            return self.compared("!=", x, constant(x.kind, 0))
        if kind.is_float:
            if x.kind.is_float:
                how = "fpext" if kind.bits > x.kind.bits else "fptrunc"
            else:
                how = "sitofp" if x.kind.of == "int" else "uitofp"
        elif x.kind.is_float:
            how = "fptosi" if kind.of == "int" else "fptoui"
        elif kind.bits == x.kind.bits:
            return Number(kind, x.text)
        elif kind.bits < x.kind.bits:
            how = "trunc"
        else:
            how = "sext" if x.kind.of == "int" else "zext"
        return Number(kind, self.made(f"{how} {x.kind.llvm} {x.text} to {kind.llvm}"))

    def together(self, one: Number, other: Number) -> tuple[Number, Number]:
        """Both as numbers of the kind that their sum has."""
        kind = widest(one.kind, other.kind)
        return self.converted(one, kind), self.converted(other, kind)

    def operated(self, sign: str, one: Number, other: Number) -> Number:
        """one (sign) other."""
        if sign == "/" and not (one.kind.is_float or other.kind.is_float):
            one, other = self.converted(one, F64), self.converted(other, F64)
        if {one.kind, other.kind} == {BOOL} and sign in "&|^":
            return Number(BOOL, self.made(f"{OPERATIONS[sign][1]} i1 {one.text}, {other.text}"))
        one, other = self.together(one, other)
        kind = one.kind
        if kind.is_float:
            operation = OPERATIONS[sign][0]
            if not operation:
                raise NotTranslated(f"{sign} of numbers that are not whole")
            return Number(kind, self.made(f"{operation} {self.flags} {kind.llvm} {one.text}, {other.text}"))
        if one.known is not None and other.known is not None and (other.known or sign not in ("//", "%")):
            value = OF_PYTHON[sign](one.known, other.known)
            if kind.holds(value):
                return constant(kind, value)
        if sign in ("//", "%"):
            return self._divided(sign, one, other)
        return self._instruction(sign, one, other)

    def _instruction(self, sign: str, one: Number, other: Number) -> Number:
        """Of whole numbers of one kind."""
        kind = one.kind
        operation = OPERATIONS[sign][1 if kind.of == "int" else 2]
        return Number(kind, self.made(f"{operation} {kind.llvm} {one.text}, {other.text}"))

    def _divided(self, sign: str, one: Number, other: Number) -> Number:
        """Whole parts as Python has them, towards −∞; by 0 it is 0, for a processor would stop there."""
        kind, zero = one.kind, constant(one.kind, 0)
        by = other if other.known else self.chosen(self.compared("==", other, zero), constant(kind, 1), other)
        found = self._instruction(sign, one, by)
        if kind.of == "int":
            rest = found if sign == "%" else self._instruction("%", one, by)
            signs = self.compared("<", self.operated("^", rest, by), zero)
            back = self.operated("&", signs, self.compared("!=", rest, zero))
            moved = self.operated("+", found, by) if sign == "%" else self.operated("-", found, constant(kind, 1))
            found = self.chosen(back, moved, found)
        return found if other.known else self.chosen(self.compared("==", other, zero), zero, found)

    def compared(self, sign: str, one: Number, other: Number) -> Number:
        if {one.kind, other.kind} == {BOOL} and sign in ("==", "!="):
            return Number(BOOL, self.made(f"icmp {COMPARISONS[sign][1]} i1 {one.text}, {other.text}"))
        one, other = self.together(one, other)
        kind = one.kind
        if kind.is_float:
            return Number(BOOL, self.made(f"fcmp {self.flags} {COMPARISONS[sign][0]} {kind.llvm} {one.text}, {other.text}"))
        if one.known is not None and other.known is not None:
            return constant(BOOL, OF_PYTHON[sign](one.known, other.known))
        how = COMPARISONS[sign][1 if kind.of == "int" else 2]
        return Number(BOOL, self.made(f"icmp {how} {kind.llvm} {one.text}, {other.text}"))

    def chosen(self, condition: Number, yes: Number, no: Number) -> Number:
        """One of two numbers, both of which are there."""
        if yes.kind != no.kind:
            yes, no = self.together(yes, no)
        if condition.known is not None:
            return yes if condition.known else no
        kind = yes.kind
        choice = f"select i1 {condition.text}, {kind.llvm} {yes.text}, {kind.llvm} {no.text}"
        return Number(kind, self.made(choice))

    def negated(self, x: Number) -> Number:
        if x.known is not None and x.kind.of != "uint":
            return constant(I64 if x.kind == BOOL else x.kind, -x.known)
        if x.kind.is_float:
            return Number(x.kind, self.made(f"fneg {self.flags} {x.kind.llvm} {x.text}"))
        return self.operated("-", constant(x.kind, 0), x)

    def true(self, x: Number) -> Number:
        """Whether Python takes it for true."""
        return x if x.kind == BOOL else self.converted(x, BOOL)

    def not_true(self, x: Number) -> Number:
        x = self.true(x)
        return constant(BOOL, not x.known) if x.known is not None else Number(BOOL, self.made(f"xor i1 {x.text}, true"))

    def of_floats(self, function: str, *xs: Number) -> Number:
        """A function of LLVM's of floats, such as the root of one."""
        kind = F32 if all(x.kind == F32 for x in xs) else F64
        given = [(kind.llvm, self.converted(x, kind).text) for x in xs]
        return Number(kind, self.call(kind.llvm, f"llvm.{function}.{'f32' if kind == F32 else 'f64'}", given))
