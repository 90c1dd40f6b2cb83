"""The same examples on every run: a test that fails, fails again. And nothing that slows the compiler down."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """For ``--dist loadgroup``: one process runs a file, and one all that compile the same loops; two would do it twice."""
    if config.pluginmanager.hasplugin("xdist"):
        for item in items:
            shares = "any loss" if item.path.parent.name in ("engine", "beliefs") else "the default"
            group = shares if item.get_closest_marker("compiled") else item.path.relative_to(config.rootpath).as_posix()
            item.add_marker(pytest.mark.xdist_group(group))


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
