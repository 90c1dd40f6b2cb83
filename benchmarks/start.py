"""How long until something is there: import, first result, a small file; and how much is installed.

    python benchmarks/start.py [--tiny]

Each in a process of its own: cold with an empty cache of compiled kernels, warm after it, the best of several. Of the default
it is processor time, its import included, and not what others on the machine took from it.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from children import python, run
from section import Size, main

FIRST_CALL = """
import time; start = time.perf_counter()
import onlinevi as ovi; imported = time.perf_counter()
ovi.learn([[1.0, 2.0]], [1.0], loss=ovi.Hinge(), rule=ovi.SVB())
print(imported - start, time.perf_counter() - imported)
"""
DEFAULT = """
import time
import numpy as np
import onlinevi as ovi
rng = np.random.default_rng(0)
X = rng.standard_normal((200, 5))
y = np.sign(X[:, 0] + rng.standard_normal(200))
ovi.auto(X, y, loss=ovi.{loss}())
print(time.process_time())
"""
SMALL_ROWS = 500


def measure(size: Size) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cold = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "kernels")}
        for when, rounds in (("cold", 1), ("warm", size.rounds)):
            each = [[float(part) for part in python(FIRST_CALL, environment=cold).out.split()] for _ in range(rounds)]
            found[f"import, {when}"], found[f"first call, {when}"] = (round(best, 3) for best in np.min(each, axis=0))
        for loss in ("Logistic", "Squared"):
            cold["NUMBA_CACHE_DIR"] = str(folder / loss)
            for when, rounds in (("cold", 1), ("warm", size.rounds)):
                seconds = min(float(python(DEFAULT.format(loss=loss), environment=cold).out) for _ in range(rounds))
                found[f"ovi.auto, {loss.lower()}, {when}, of the processor"] = round(seconds, 3)
        if find_spec("pyarrow") is not None:
            table = small_file(folder)
            for rule in ("svb", "auto"):
                command = sys.executable, "-m", "onlinevi", "run", str(table), "--target", "label", "--rule", rule
                for when, rounds in (("cold", 1), ("warm", size.rounds)):
                    seconds = min(run(*command, environment=cold).seconds for _ in range(rounds))
                    found[f"onlinevi run --rule {rule}, {SMALL_ROWS} rows, {when}"] = round(seconds, 3)
    return {"seconds to": found, "installed MB": installed()}


def small_file(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((SMALL_ROWS, 5)).round(3)
    labels = np.where(X[:, 0] + rng.logistic(size=len(X)) > 0, "yes", "no")
    lines = [",".join([*map(str, row), label]) for row, label in zip(X.tolist(), labels.tolist(), strict=True)]
    path = folder / "small.csv"
    path.write_text("\n".join(["a,b,c,d,e,label", *lines]) + "\n")
    return path


def installed() -> dict[str, float]:
    """The package's sources, and each distribution that it requires, directly or through others."""
    package = Path(str(find_spec("onlinevi").origin)).parent  # type: ignore[union-attr]
    own = sum(path.stat().st_size for path in package.rglob("*.py"))
    found, waiting = {"onlinevi": round(own / 1e6, 2)}, required("onlinevi")
    while waiting:
        name = waiting.pop()
        if name not in found:
            files = distribution(name).files or []
            found[name] = round(sum(_size(file.locate()) for file in files) / 1e6, 1)
            waiting += required(name)
    return found


def required(name: str) -> list[str]:
    """What a distribution cannot do without: no extras."""
    wanted = [line for line in distribution(name).requires or [] if "extra ==" not in line]
    return [re.split(r"[^\w.-]", line)[0].lower() for line in wanted]


def _size(path: Any) -> int:
    return Path(path).stat().st_size if Path(path).is_file() else 0


if __name__ == "__main__":
    main("start", __doc__, measure)
