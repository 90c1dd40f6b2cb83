"""A loop's source becomes LLVM's code: statements, and calls, each of which is written out where it stands.

Types are those of the values that come. A name that has, wherever it is read, the one value that the text shows is that value;
any other has room on the stack, which LLVM makes registers of. What is known before the loop runs is decided here: of a branch
that is never taken nothing is written.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

from onlinevi.engine.llvm.arrays import LACKING, Arrays
from onlinevi.engine.llvm.expressions import NO_NAMES, Expressions
from onlinevi.engine.llvm.sources import Source, source_of
from onlinevi.engine.llvm.values import (
    I64,
    NOTHING,
    Form,
    Items,
    NotTranslated,
    Number,
    Value,
    constant,
    form_of,
    lifted,
    parts_of,
    types_of,
    united,
    with_parts,
)
from onlinevi.engine.llvm.writer import FAST, FAST_IN_FLOAT32, Writer

DEEPEST = 100
"""Calls within calls: a function that calls itself has no end."""
LACKING_PLACE = "%lacking"
RESULT = "return"
"""Stands for the name of what a function returns: no name is a word of the language."""


class Wider(Exception):
    """A variable has to hold more than was thought."""

    def __init__(self, frame: Frame, name: str, form: Form) -> None:
        super().__init__(name)
        self.frame, self.name, self.form = frame, name, form


@dataclass(eq=False)
class Frame:
    """A function while it is written out."""

    function: FunctionType
    source: Source
    single: bool
    """Its constants are float32."""
    forms: dict[str, Form]
    """Of variables, as far as they are known from an earlier try."""
    values: dict[str, Value] = field(default_factory=dict)
    """Of names that have one value."""
    rooms: dict[str, tuple[Form, list[str]]] = field(default_factory=dict)
    """Of variables: what they hold, and where."""
    end: str = ""
    """The label behind it, where it may return from its middle."""
    loops: list[tuple[str, str]] = field(default_factory=list)
    """Where to go on, and where to go to, from within each loop."""
    line: int = 0


class Translator(Expressions):
    """Writes one function of LLVM's: a loop, and all that it calls but other loops."""

    def __init__(self) -> None:
        self.writer = Writer()
        self.arrays = Arrays(self.writer)
        self.within: dict[Any, None] = {}
        """What other loops were translated to, in the order in which they are called."""
        self._frames: list[Frame] = []

    @property
    def frame(self) -> Frame:
        return self._frames[-1]

    # --- functions

    def written(self, function: FunctionType, symbol: str, forms: Sequence[Form]) -> tuple[str, str, Form | None]:
        """The text of a function of LLVM's that takes values of these forms, what it returns there, and in which form.

        Behind its arguments it is given a place where it says whether it found no memory to work in.
        """
        types = [*(one for form in forms for one in types_of(form)), "ptr"]
        names = [*(f"%a{k}" for k in range(len(types) - 1)), LACKING_PLACE]
        texts = iter(names)
        result = self.called(function, [with_parts(form, texts) for form in forms])
        form = None if result == NOTHING else form_of(result)
        if form is not None and "ptr" in types_of(form):
            raise NotTranslated(f"{function.__name__} returns an array: a loop fills those that it is given")
        writer = self.writer
        returned, value = ("void", "") if form is None else self._together(result)
        self.arrays.free()
        writer.write(f"ret {returned} {value}")
        writer.open = False
        writer.begin(LACKING)
        writer.store("i64", "1", LACKING_PLACE)
        self.arrays.free()
        writer.write(f"ret {returned} {value and 'zeroinitializer'}")
        body = "\n".join(["entry:", *writer.variables, *writer.lines])
        given = ", ".join(f"{kind} {name}" for kind, name in zip(types, names, strict=True))
        head = f"define weak_odr {returned} @{symbol}({given}) {' '.join(sorted(writer.attributes))}"
        return "\n".join([*writer.declared.values(), f"{head} {{", body, "}", *writer.said_of_loops, ""]), returned, form

    def _together(self, value: Value) -> tuple[str, str]:
        """The type and the text of what a function of LLVM's returns: numbers side by side."""
        parts = parts_of(value)
        if isinstance(value, Number):
            return parts[0]
        kind, text = f"{{{', '.join(kind for kind, _ in parts)}}}", "undef"
        for number, (of, part) in enumerate(parts):
            text = self.writer.made(f"insertvalue {kind} {text}, {of} {part}, {number}")
        return kind, text

    @property
    def single(self) -> bool:
        return self.frame.single

    def called(self, function: Any, arguments: Sequence[Value], named: Mapping[str, Value] = NO_NAMES) -> Value:
        """Write a function out, in the place of a call of it."""
        if len(self._frames) > DEEPEST:
            raise NotTranslated(f"{function.__qualname__} calls itself")
        source = source_of(function)
        single = getattr(function, "single", False)
        given = _bound(function, arguments, named)
        forms: dict[str, Form] = {}
        while True:
            before = self._state()
            frame = Frame(function, source, single, forms)
            self._frames.append(frame)
            self.writer.flags = FAST_IN_FLOAT32 if single else FAST
            try:
                return self._body(frame, given)
            except Wider as wider:
                if wider.frame is not frame:
                    raise
                forms[wider.name] = wider.form
                self._back_to(before)
            except NotTranslated as error:
                raise error.at(source.file, frame.line, source.name) from None
            finally:
                self._frames.pop()
                self.writer.flags = FAST_IN_FLOAT32 if self._frames and self.frame.single else FAST

    def _state(self) -> tuple[Any, ...]:
        writer = self.writer
        return writer.lines, len(writer.lines), len(writer.variables), writer.block, writer.open, self.arrays.state()

    def _back_to(self, state: tuple[Any, ...]) -> None:
        """Forget what was written since."""
        writer = self.writer
        writer.lines, lines, variables, writer.block, writer.open, arrays = state
        del writer.lines[lines:], writer.variables[variables:]
        self.arrays.back_to(arrays)

    def _body(self, frame: Frame, given: Mapping[str, Any]) -> Value:
        for name, value in given.items():
            self._bind(name, value)
        ends = frame.source.ends
        if not ends:
            frame.end = self.writer.label()
        *before, last = frame.source.tree.body
        if ends and isinstance(last, ast.Return):
            self._statements(before)
            frame.line = last.lineno
            return NOTHING if last.value is None else self.expression(last.value)
        self._statements(frame.source.tree.body)
        if not frame.end:
            return NOTHING
        if self.writer.open and RESULT in frame.rooms:
            raise NotTranslated("a value is returned on some ways only")
        self.writer.begin(frame.end)
        return self._read(RESULT) if RESULT in frame.rooms else NOTHING

    def loop_called(self, loop: Any, arguments: Sequence[Value]) -> Value:
        made = loop.translated(tuple(map(form_of, arguments)))
        self.within[made] = None
        parts = [part for one in arguments for part in parts_of(one)]
        returned = self.writer.call(made.returned, made.symbol, [*parts, ("ptr", LACKING_PLACE)])
        if made.form is None:
            return NOTHING
        types = types_of(made.form)
        if made.form.what == "number":
            return with_parts(made.form, iter([returned]))
        texts = [self.writer.made(f"extractvalue {made.returned} {returned}, {k}") for k in range(len(types))]
        return with_parts(made.form, iter(texts))

    # --- names

    def name(self, name: str) -> Value:
        """The value of a name."""
        frame = self.frame
        if name in frame.values:
            return frame.values[name]
        if name in frame.rooms:
            return self._read(name)
        return self.outside(frame.function, name)

    def value_of(self, name: str) -> Value | None:
        frame = self.frame
        if name in frame.values or name in frame.source.names:
            return frame.values.get(name)
        return self.outside(frame.function, name)

    def _bind(self, name: str, value: Value) -> None:
        """Give a name a value."""
        if name == "_":
            return
        if name in self.frame.source.settled:
            self.frame.values[name] = value
        else:
            self._write(name, value)

    def _write(self, name: str, value: Value) -> None:
        frame, form = self.frame, form_of(value)
        if name not in frame.rooms:
            form = frame.forms.get(name, form)
            frame.rooms[name] = form, [self.writer.variable(kind) for kind in types_of(form)]
        held, places = frame.rooms[name]
        if united(held, form_of(value)) != held:
            raise Wider(frame, name, united(held, form_of(value)))
        for (kind, text), place in zip(parts_of(self.fitted(value, held)), places, strict=True):
            self.writer.store(kind, text, place)

    def _read(self, name: str) -> Value:
        form, places = self.frame.rooms[name]
        types = zip(types_of(form), places, strict=True)
        return with_parts(form, iter([self.writer.load(kind, place) for kind, place in types]))

    # --- statements

    def _statements(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            if not self.writer.open:
                return
            self.frame.line = statement.lineno
            write = getattr(self, f"_{type(statement).__name__.lower()}", None)
            if write is None:
                raise NotTranslated(f"the statement {ast.unparse(statement).splitlines()[0]!r}")
            write(statement)

    def _expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.expression(node.value)

    def _pass(self, node: ast.Pass) -> None:
        """Nothing."""

    def _assign(self, node: ast.Assign) -> None:
        value = self.expression(node.value)
        for target in node.targets:
            self._put(target, value)

    def _annassign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._put(node.target, self.expression(node.value))

    def _augassign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Subscript):
            array, index = self.place(node.target)
            before: Value = self.arrays.taken(array, index)
            self.arrays.put(array, index, self.operation(node.op, before, self.expression(node.value)))
        else:
            assert isinstance(node.target, ast.Name)
            before = self.name(node.target.id)
            self._bind(node.target.id, self.operation(node.op, before, self.expression(node.value)))

    def _put(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self._bind(target.id, value)
        elif isinstance(target, ast.Tuple) and isinstance(value, Items) and len(target.elts) == len(value.items):
            for one, part in zip(target.elts, value.items, strict=True):
                self._put(one, part)
        elif isinstance(target, ast.Subscript):
            array, index = self.place(target)
            self.arrays.put(array, index, value)
        else:
            raise NotTranslated(f"an assignment to {ast.unparse(target)!r}")

    def _if(self, node: ast.If) -> None:
        known = self.truth_known(node.test)
        if known is not None:
            self._statements(node.body if known else node.orelse)
            return
        writer = self.writer
        yes, no, end = writer.label(), writer.label(), writer.label()
        self.branch(node.test, yes, no if node.orelse else end)
        writer.begin(yes)
        self._statements(node.body)
        goes_on = writer.open or not node.orelse
        if node.orelse:
            writer.go_to(end)
            writer.begin(no)
            self._statements(node.orelse)
        if goes_on or writer.open:
            writer.begin(end)

    def _for(self, node: ast.For) -> None:
        if not (isinstance(node.iter, ast.Call) and isinstance(node.iter.func, ast.Name) and node.iter.func.id == "range"):
            raise NotTranslated("a loop over anything but range(…)")
        start, stop, step = self._range([self.number(one) for one in node.iter.args])
        with self.writer.counting(start, stop, step) as loop, self._within(loop.after, loop.end):
            self._put(node.target, loop.k)
            self._statements(node.body)
        self._else(node)

    def _range(self, given: list[Number]) -> list[Number]:
        """Start, stop and step, of one kind."""
        start, stop, step = [constant(I64, 0), *given, constant(I64, 1)] if len(given) == 1 else [*given, constant(I64, 1)][:3]
        start, stop = self.writer.together(start, stop)
        if not start.kind.is_whole or not step.kind.is_whole:
            raise NotTranslated("range(…) of numbers that are not whole")
        return [start, stop, self.writer.converted(step, start.kind)]

    def _while(self, node: ast.While) -> None:
        writer = self.writer
        head, body, end = writer.label(), writer.label(), writer.label()
        writer.begin(head)
        self.branch(node.test, body, end)
        writer.begin(body)
        with self._within(head, end):
            self._statements(node.body)
        writer.go_to(head)
        writer.begin(end)
        self._else(node)

    def _else(self, node: ast.For | ast.While) -> None:
        if node.orelse:
            raise NotTranslated("else behind a loop")

    @contextmanager
    def _within(self, after: str, end: str) -> Iterator[None]:
        self.frame.loops.append((after, end))
        self.arrays.loops += 1
        yield
        self.arrays.loops -= 1
        self.frame.loops.pop()

    def _continue(self, node: ast.Continue) -> None:
        self.writer.go_to(self.frame.loops[-1][0])

    def _break(self, node: ast.Break) -> None:
        self.writer.go_to(self.frame.loops[-1][1])

    def _return(self, node: ast.Return) -> None:
        if node.value is not None:
            value = self.expression(node.value)
            if value != NOTHING:
                self._write(RESULT, value)
        self.writer.go_to(self.frame.end)


def _bound(function: FunctionType, arguments: Sequence[Value], named: Mapping[str, Value]) -> dict[str, Value]:
    """The parameters of a function by their names."""
    code, defaults = function.__code__, function.__defaults__ or ()
    own = code.co_varnames[: code.co_argcount]
    given = dict(zip(own[len(own) - len(defaults) :], map(lifted, defaults), strict=True))
    given |= {**dict(zip(own, arguments, strict=False)), **named}
    rest = tuple(arguments[len(own) :])
    takes_rest = bool(code.co_flags & inspect.CO_VARARGS)
    if set(given) != set(own) or (rest and not takes_rest) or code.co_kwonlyargcount or code.co_flags & inspect.CO_VARKEYWORDS:
        raise NotTranslated(f"a call of {function.__qualname__} with these arguments")
    return given | ({code.co_varnames[len(own)]: Items(rest)} if takes_rest else {})
