"""The switch between the compiled and the interpreted engine, and what the interpreted one is for."""

from __future__ import annotations

import bdb
import linecache
import os
import subprocess
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import numpy as np
import pytest
from helpers.any_loss import standing_for
from helpers.catalogue import stream

import onlinevi as ovi
from onlinevi.engine import VARIABLE, compose, engine_in_use, ns, use_engine, using_engine
from onlinevi.engine.types import Expected, Real

LEARNER = ovi.Linear(standing_for(ovi.Hinge()), ovi.NGVI())

SCRIPT = """
import sys, onlinevi as ovi
from onlinevi.engine import engine_in_use
learner = ovi.Linear(ovi.Squared(), ovi.OGA(0.25))
print(engine_in_use(), learner.update(learner.init(1), [1.0], 1.0)[0].mean[0], "numba" in sys.modules)
"""


def in_a_process(script: str, engine: str, **variables: str) -> subprocess.CompletedProcess[str]:
    variables = os.environ | {VARIABLE: engine} | variables
    return subprocess.run([sys.executable, "-c", script], env=variables, capture_output=True, text=True)


def test_a_variable_of_the_environment_names_the_engine_to_start_with() -> None:
    """On the interpreted one no compiler is even imported."""
    assert in_a_process(SCRIPT, "interpreted").stdout.split() == ["interpreted", "0.5", "False"]
    script = "from onlinevi.engine import engine_in_use; print(engine_in_use())"
    for name in ("compiled", ""):
        assert in_a_process(script, name).stdout.split() == ["compiled"]
    done = in_a_process(script, "complied")
    assert done.returncode != 0
    assert "engine 'complied': needs 'compiled' or 'interpreted', in the call or in ONLINEVI_ENGINE" in done.stderr


def test_where_numba_may_not_compile_the_engine_is_the_interpreted_one() -> None:
    assert in_a_process(SCRIPT, "", NUMBA_DISABLE_JIT="1").stdout.split()[:2] == ["interpreted", "0.5"]
    done = in_a_process(SCRIPT, "compiled", NUMBA_DISABLE_JIT="1")
    assert "NUMBA_DISABLE_JIT is set, and nothing can be compiled" in done.stderr


def test_a_setting_is_for_good_and_a_block_for_as_long_as_it_runs() -> None:
    assert engine_in_use() == "interpreted", "as tests are unless they are marked"
    with using_engine("compiled"):
        assert engine_in_use() == "compiled"
        with using_engine("interpreted"):
            assert engine_in_use() == "interpreted"
        assert engine_in_use() == "compiled"
        use_engine("interpreted")
        assert engine_in_use() == "interpreted"
    assert engine_in_use() == "interpreted"
    use_engine("compiled")
    try:
        with pytest.raises(KeyError), using_engine("interpreted"):
            raise KeyError
        assert engine_in_use() == "compiled", "a block that fails is over too"
    finally:
        use_engine("interpreted")


@pytest.mark.parametrize("name", ["numba", "Compiled", "", None])
def test_an_engine_that_is_none_is_refused_and_changes_nothing(name: str) -> None:
    for switch in (use_engine, lambda engine: using_engine(engine).__enter__()):
        with pytest.raises(ValueError, match="needs 'compiled' or 'interpreted', in the call or in ONLINEVI_ENGINE"):
            switch(name)
    assert engine_in_use() == "interpreted"


def is_compiled(x: float) -> float:
    return hole(x)


def hole(x: float) -> float:
    raise TypeError


def doubled(x: float) -> float:
    return 2.0 * x


@pytest.mark.usefixtures("all_in_python")
def test_kernels_made_before_a_switch_follow_it() -> None:
    import numba

    inner = compose(doubled, {})
    kernel = compose(is_compiled, {hole: inner})
    for engine, compiled in (("interpreted", False), ("compiled", True), ("interpreted", False)):
        with using_engine(engine):  # type: ignore[arg-type]
            assert kernel(3.0) == inner(3.0) == 6.0
            assert [isinstance(one.run, numba.core.dispatcher.Dispatcher) for one in (kernel, inner)] == [compiled] * 2


@pytest.mark.compiled
def test_a_state_begun_on_one_engine_goes_on_with_the_other() -> None:
    X, y = stream(ovi.Hinge())
    ends = []
    for engines in (("compiled", "compiled"), ("compiled", "interpreted"), ("interpreted", "compiled")):
        state = LEARNER.init(5)
        for engine, part in zip(engines, (slice(0, 31), slice(31, None)), strict=True):
            with using_engine(engine):  # type: ignore[arg-type]
                state, _ = LEARNER.update_many(state, X[part], y[part])
        ends.append(state)
    for end in ends[1:]:
        assert end.plan == ends[0].plan
        np.testing.assert_allclose(end.array, ends[0].array, rtol=1e-12, atol=1e-13)


OWN_LOSS = """
from onlinevi import Loss
from onlinevi.engine.types import Expected


class Own(Loss):
    @staticmethod
    def expected(y, a, v):
        gap = y - a
        if y > 5.0:
            raise RuntimeError("label beyond 5")
        return Expected(gap * gap, -2.0 * gap, 2.0 + 0.0 * a)
"""
GAP, RAISED = OWN_LOSS.splitlines().index("        gap = y - a") + 1, OWN_LOSS.splitlines().index("        if y > 5.0:") + 2


@pytest.fixture
def own_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ovi.Loss:
    """A loss in a file of its user's."""
    (tmp_path / "own_loss.py").write_text(OWN_LOSS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_loss", raising=False)
    import own_loss  # type: ignore[import-not-found]

    return own_loss.Own()  # type: ignore[no-any-return]


def test_a_traceback_names_the_line_of_ones_own_loss(own_loss: ovi.Loss) -> None:
    with pytest.raises(RuntimeError, match="label beyond 5") as raised:
        ovi.learn(np.ones((2, 1)), [1.0, 6.0], loss=own_loss, rule=ovi.OGA(0.1))
    last = traceback.extract_tb(raised.tb)[-1]
    assert (Path(last.filename).name, last.lineno, last.name) == ("own_loss.py", RAISED, "expected")
    assert last.line == 'raise RuntimeError("label beyond 5")'


class Debugger(bdb.Bdb):
    """One that writes down where it stopped, and goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.stops: list[tuple[str, int, float]] = []

    def user_line(self, frame: FrameType) -> None:
        if self.break_here(frame):
            self.stops.append((Path(frame.f_code.co_filename).name, frame.f_lineno, frame.f_locals["y"]))
        self.set_continue()


def test_a_breakpoint_in_ones_own_loss_holds(own_loss: ovi.Loss) -> None:
    debugger = Debugger()
    before = sys.gettrace()
    linecache.checkcache()
    assert debugger.set_break(sys.modules[type(own_loss).__module__].__file__, GAP) is None
    try:
        debugger.runcall(lambda: ovi.learn(np.ones((2, 1)), [1.0, 2.0], loss=own_loss, rule=ovi.OGA(0.1)))
    finally:
        debugger.clear_all_breaks()
        sys.settrace(before)
    assert debugger.stops == [("own_loss.py", GAP, 1.0), ("own_loss.py", GAP, 2.0)]


@dataclass(frozen=True)
class Ends(ovi.Loss):
    """What the functions of ``ns`` give at the ends of their domains, and a division by zero: they are all finite, or none."""

    what: float = 0.0

    @staticmethod
    def expected(y: Real, a: Real, v: Real, what: Real) -> Expected:  # type: ignore[override]
        zero = 0.0 * a
        value = ns.where(what == 0.0, 1.0 / (1.0 / (zero + v)), zero)
        value = value + ns.where(what == 1.0, ns.exp(-1e9 + zero) + 1.0 / ns.exp(1e9 + zero), zero)
        value = value + ns.where(what == 2.0, 1.0 / ns.log(zero) + 1.0 / ns.log1p(zero - 1.0), zero)
        return Expected(value + ns.where(what == 3.0, ns.sqrt(zero - 1.0), zero), zero, zero)


@pytest.mark.parametrize("what", [0.0, 1.0, 2.0])
def test_divisions_by_zero_and_the_ends_of_functions_are_as_compiled(what: float) -> None:
    assert ovi.learn(np.ones((1, 1)), [1.0], loss=Ends(what), rule=ovi.OGA(0.1)).state.loss == 0.0


def test_what_is_no_number_is_refused_as_compiled() -> None:
    with pytest.raises(ovi.BadRow, match="the step would overflow"):
        ovi.learn(np.ones((1, 1)), [1.0], loss=Ends(3.0), rule=ovi.OGA(0.1))
