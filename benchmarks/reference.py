"""The C reference: the same passes by hand, compiled here where there is a compiler, and checked to compute the same."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import onlinevi as ovi

C_FLAGS = ["-O3", "-march=native", "-ffast-math", "-fPIC"]
RULES = {
    "OGA": (ovi.OGA(0.01), "oga", 0.01),
    "OGA-EL": (ovi.OGAEL(0.01), "oga_el", 0.01),
    "SVA": (ovi.SVA(0.01), "sva", 0.01),
    "SVB": (ovi.SVB(), "svb", 1.0),
    "NGVI": (ovi.NGVI(), "ngvi", 1.0),
}
"""Each rule as the library has it, the C function, and its rate."""

LESS = {"OGA unchecked": (ovi.OGA(0.01), "oga_unchecked", 0.01)}
"""What C need not do if it trusts its rows."""

CHECKED = 20_000
"""Rows on which both must agree: over very many a tie at the kink of the loss may be broken either way."""

CPass = Callable[[], np.ndarray]


@cache
def library() -> ctypes.CDLL | None:
    """The C reference, or None where there is no compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path, compiled = Path(folder) / "reference.so", Path(folder) / "reference.o"
        source = Path(__file__).with_name("reference.c")
        subprocess.run([compiler, *C_FLAGS, "-c", str(source), "-o", str(compiled)], check=True)
        # Linked with -ffast-math, a library that is loaded makes the whole process flush small numbers to 0.
        subprocess.run([compiler, "-shared", str(compiled), "-o", str(path), "-lm"], check=True)
        return ctypes.CDLL(str(path))


def c_passes(X: np.ndarray, y: np.ndarray) -> dict[str, CPass]:
    """One pass in C for each rule, mean field, and for those with less to do; none without a compiler.

    Each returns the mean and the loss.
    """
    if library() is None:
        return {}
    passes = RULES | LESS
    for name, (rule, function, scale) in passes.items():
        _check(name, rule, partial(_mean_field, function, scale), X, y)
    return {name: _mean_field(function, scale, X, y) for name, (_, function, scale) in passes.items()}


def c_full_pass(X: np.ndarray, y: np.ndarray) -> CPass | None:
    """NGVI with a full covariance in C, or None without a compiler."""
    if library() is None:
        return None
    _check("NGVI, full", ovi.NGVI(), _full, X, y, ovi.FullCovariance())
    return _full(X, y)


def _check(name: str, rule: ovi.Rule, made: Callable[..., CPass], X: Any, y: Any, family: ovi.Family | None = None) -> None:
    X, y = X[:CHECKED], y[:CHECKED]
    ours = ovi.learn(X, y, loss=ovi.Hinge(), rule=rule, family=family, record="none", average=False)
    if not np.allclose([*ours.mean, ours.state.loss], made(X, y)(), rtol=1e-5, atol=1e-5):
        raise AssertionError(f"{name} at d = {X.shape[1]}: C computes something else")


def _mean_field(function: str, scale: float, X: np.ndarray, y: np.ndarray) -> CPass:
    def run() -> np.ndarray:
        dim = X.shape[1]
        belief = np.stack([np.zeros(dim), np.ones(dim), np.zeros(dim), np.zeros(dim)])
        return _call(function, scale, X, y, [*belief])

    return run


def _full(X: np.ndarray, y: np.ndarray) -> CPass:
    def run() -> np.ndarray:
        dim = X.shape[1]
        factor = np.eye(dim)[np.triu_indices(dim)]
        return _call("ngvi_full", 1.0, X, y, [np.zeros(dim), factor, np.zeros(dim), np.empty(2 * dim)])

    return run


def _call(function: str, scale: float, X: np.ndarray, y: np.ndarray, belief: list[np.ndarray]) -> np.ndarray:
    box, sums = np.array([-20.0, 20.0, 0.0, 1.0]), np.zeros(6)
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (X, y, box, *belief, sums)]
    shape = ctypes.c_long(len(y)), ctypes.c_long(X.shape[1]), ctypes.c_double(scale)
    getattr(library(), function)(*pointers[:2], *shape, *pointers[2:])
    return np.concatenate([belief[0], sums[:1]])
