"""The same examples on every run: a test that fails, fails again. And nothing that slows the compiler down."""

import gc
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# To collect makes objects by the million, nearly all to be kept: looking for garbage among them is a quarter of the time.
gc.disable()

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")

# Laws and short streams run interpreted, in this process and in those that tests start: there are hundreds of loops, and most
# are run by a test or two. Before onlinevi is imported. Those that hundreds of tests share are machine code all the same
# (helpers/quick_loops.py). Tests of long streams, and of the compiler itself, are marked "compiled".
os.environ["ONLINEVI_ENGINE"] = "interpreted"

# Tests start Python by the dozen: where no bytecode is kept, each start reads the whole package anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# For matrices as small as these a second thread spins and waits; before numpy is imported, here and in what tests start.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

# The compiler colours the message of every type that does not fit, and most are never shown; before numba is imported.
os.environ["NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING"] = "1"


def pytest_collection_finish(session: pytest.Session) -> None:
    """Compiling makes objects by the million: without this, each collection of garbage also walks all that was imported."""
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


@pytest.fixture(autouse=True)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The engine that a test runs on."""
    from helpers import quick_loops, small_default

    from onlinevi.engine import using_engine

    name = "compiled" if request.node.get_closest_marker("compiled") else "interpreted"
    monkeypatch.setenv("ONLINEVI_ENGINE", name)
    slow = name == "interpreted"
    with using_engine(name), quick_loops.of_tests(wanted=slow), small_default.of_tests(wanted=slow):
        yield


@pytest.fixture
def all_in_python(engine: None) -> Iterator[None]:
    """For tests that compare with other processes, to the bit: these know nothing of quick loops."""
    from helpers import quick_loops

    with quick_loops.of_tests(wanted=False):
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What compiles comes first: it takes longest, and what comes last should be short."""
    for item in items:
        if isinstance(item, pytest.DoctestItem) and item.path.match(DEFAULTS):
            item.add_marker(pytest.mark.compiled)
    items.sort(key=lambda item: item.get_closest_marker("compiled") is None)


DEFAULTS = "onlinevi/learners/default/*.py"
"""Examples of the default in docstrings: twenty learners, whose loops other tests compile anyway."""

COMPILED = re.compile(r"^@pytest\.mark\.compiled\n(?:[@ )\]].*\n)*?def (test_\w+)", re.MULTILINE)


@cache
def compiled_tests(path: Path) -> tuple[str, ...]:
    """How the names of the tests that compile begin, by the source, for a scheduler sees no marks; with nothing, if all do."""
    source = path.read_text(encoding="utf-8")
    all_do = path.match(DEFAULTS) or "pytestmark = pytest.mark.compiled" in source
    return ("",) if all_do else tuple(f"::{name}" for name in COMPILED.findall(source))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """``--dist loadfile``, but one process runs all that compile the same loops: two would do it at the same time."""
    from xdist.scheduler import LoadFileScheduling

    class ByLoops(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path = config.rootpath / nodeid.split("::", 1)[0]
            if not any(name in nodeid for name in compiled_tests(path)):
                return super()._split_scope(nodeid)
            stands_for_all = path.parent.name in ("engine", "beliefs") and "of_their_own" not in nodeid
            return "one loss that stands for all" if stands_for_all else "losses as users have them"

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


@pytest.fixture(scope="session")
def kafka() -> Any:
    """A mock of Kafka."""
    pytest.importorskip("confluent_kafka")
    from helpers.brokers import MockKafka

    return MockKafka()


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A key and a certificate of this machine."""
    from helpers.cables import LACKS_OPENSSL, Certificates, openssl_is_here

    if not openssl_is_here():
        pytest.skip(LACKS_OPENSSL)
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def redis() -> Iterator[Any]:
    """A Redis server of our own."""
    pytest.importorskip("redis")
    from helpers.brokers import LACKS_REDIS, redis_is_here, redis_server

    if not redis_is_here():
        pytest.skip(LACKS_REDIS)
    with redis_server() as server:
        yield server
