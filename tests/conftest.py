"""The same examples on every run: a test that fails, fails again. And nothing that slows the compiler down."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")

# Laws and short streams run interpreted, in this process and in those that tests start: compiling takes seconds a loop. Before
# onlinevi is imported. Tests of long streams, and of the compiler itself, are marked "compiled".
os.environ["ONLINEVI_ENGINE"] = "interpreted"

# The compiler colours the message of every type that does not fit, and most are never shown; before numba is imported.
os.environ["NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING"] = "1"


def pytest_collection_finish(session: pytest.Session) -> None:
    """Compiling makes objects by the million: without this, each collection of garbage also walks all that was imported."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


@pytest.fixture(autouse=True)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The engine that a test runs on."""
    from onlinevi.engine import using_engine

    name = "compiled" if request.node.get_closest_marker("compiled") else "interpreted"
    monkeypatch.setenv("ONLINEVI_ENGINE", name)
    with using_engine(name):
        yield


SHARED = {
    "test_aggregate": "aggregates",
    "test_auto": "the default",
    "test_certificate": "every loss and rule",
    "test_checkpoint": "checkpoints",
    "test_full": "full covariances",
    "test_learner": "every loss and rule",
    "test_linear": "every loss and rule",
    "test_run": "runs",
}
"""Files of these names, or of ones that go on with "_", and the loops they compile: one process runs those that share."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """``--dist loadfile``, but files that share loops count as one: two processes would compile them at the same time."""
    from xdist.scheduler import LoadFileScheduling

    class ByLoops(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            stem = Path(nodeid.split("::", 1)[0]).stem
            loops = (own for name, own in SHARED.items() if f"{stem}_".startswith(f"{name}_"))
            return next(loops, super()._split_scope(nodeid))

    return ByLoops(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a checkpoint is to lie."""
    return tmp_path / "model.ovi"


@pytest.fixture
def saved(path: Path) -> bytes:
    """The bytes of a small checkpoint, which lies at ``path``."""
    from helpers.checkpoints import LINEARS, begun, rows_for

    import onlinevi as ovi

    one = LINEARS[2]
    ovi.save(path, one, one.update_many(begun(one), *rows_for(one))[0], extra={"rows": [0, 60]})
    return path.read_bytes()


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """A file of rows for ``onlinevi run``."""
    from helpers.run_files import write_rows

    write_rows(tmp_path / "rows.csv")
    return tmp_path / "rows.csv"
