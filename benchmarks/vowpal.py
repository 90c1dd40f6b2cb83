"""Vowpal Wabbit on given rows: a pass over its cache, which it reads without parsing text, and its learn call.

It keeps numbers in 32 bits and reads ahead in a thread of its own, so that it may use two cores where ours use one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from timing import Staged, Work

VARIANTS = {"VW": "", "VW --sgd": "--sgd"}
"""Its default (adaptive, normalised, invariant), and plain gradient steps."""


def lines(X: Any, y: np.ndarray) -> Iterator[str]:
    """Rows in its text format; columns are named by their numbers."""
    table = X if sparse.issparse(X) else None
    for i, label in enumerate(y.tolist()):
        if table is None:
            pairs = enumerate(X[i].tolist())
        else:
            own = slice(table.indptr[i], table.indptr[i + 1])
            pairs = zip(table.indices[own].tolist(), table.data[own].tolist(), strict=True)
        yield f"{label:g} | " + " ".join(f"{j}:{x:.7g}" for j, x in pairs)


def workspace(options: str, loss: str = "hinge") -> Any:
    from vowpalwabbit import Workspace

    return Workspace(f"--quiet --loss_function {loss} --noconstant {options}".strip())


def bits(dim: int) -> str:
    """A table with a place for every column: its own default, or more where that has too few."""
    return f"-b {max(18, (dim - 1).bit_length())}"


def cached_passes(X: Any, y: np.ndarray, folder: Path) -> dict[str, Work]:
    """A pass over the cache of these rows; making text and cache is not timed, nor is opening it."""
    works, table = {}, bits(X.shape[1])
    text, cache = folder / "rows.vw", folder / "rows.cache"
    text.write_text("\n".join(lines(X, y)) + "\n")
    workspace(f"{table} --cache_file {cache} -d {text}").finish()
    text.unlink()

    def run(opened: Any) -> None:
        opened.run_parser()
        if opened.get_weighted_examples() != len(y):
            raise AssertionError(f"VW went over {opened.get_weighted_examples()} of {len(y)} rows")
        opened.finish()

    for name, options in VARIANTS.items():

        def prepare(options: str = options) -> Any:
            return workspace(f"{table} --cache_file {cache} {options}")

        works[f"{name}, cached pass"] = Work(len(y), Staged(prepare, run))
    return works


def learn_calls(X: Any, y: np.ndarray) -> Work:
    """``learn`` on examples that are parsed already, one call a row."""
    model = workspace(bits(X.shape[1]))
    examples = [model.parse(line) for line in lines(X, y)]

    def run() -> None:
        for example in examples:
            model.learn(example)

    return Work(len(y), run)
