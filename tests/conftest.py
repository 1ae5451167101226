"""What all tests need of their process."""

import gc
import os
import signal
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, settings
from tests.devtools import Browser
from tests.host.postgres import server

from streamjoin.bench import compare
from streamjoin.engines.intra import window
from streamjoin.engines.sliding import mergetrees
from streamjoin_datagen.session import Session, spark_session
from streamjoin_hw.flow.build import OPTIMISATION

collect_ignore = ["board", "arm"]
"""Run in environments of their own: see test_board.py and arm/run.py."""


# A busy machine draws slowly.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


def pytest_configure() -> None:
    """Set what holds for the whole process.

    Signals are what they are in the foreground: background jobs are made to ignore some. Many
    models are compiled for few tuples each.
    """
    os.environ.setdefault(OPTIMISATION, "-Og")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    gc.set_threshold(NEW_OBJECTS)


FIRST = (
    "tests/datagen/",
    "tests/spark/",
    "tests/test_board.py",
    "sim_tests/",
    "tests/hw/test_proofs.py",
    "tests/hw/",
)
"""What begins first, in this order: Spark, whose session is then one worker's, and the longest
single tests, so that short ones are left for the end."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put first what should not be shared out late; the others stay in their order."""

    def turn(item: pytest.Item) -> int:
        turns = (number for number, start in enumerate(FIRST) if item.nodeid.startswith(start))
        return next(turns, len(FIRST))

    items.sort(key=turn)


NEW_OBJECTS = 50_000
"""New objects after which garbage is collected: elaborating a design makes as many, none garbage.
By default it is collected after 700, which takes a tenth of the hardware's tests."""


def pytest_collection_finish() -> None:
    """Take what is imported out of the collector's sight: every measured run collects first."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS)


MAX_OBJECTS = 5_000
"""Objects that every measured run may have to look through; compiled kernels leave many more."""


def collect() -> None:
    """Collect garbage; take what is left for good, as compiled kernels, out of sight."""
    gc.collect()
    if len(gc.get_objects(generation=2)) > MAX_OBJECTS:
        gc.freeze()


@pytest.fixture(autouse=True)
def _collects_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have measured runs, which all collect first, look through what is new alone."""
    stand_in = SimpleNamespace(collect=collect, freeze=lambda: None, unfreeze=lambda: None)
    monkeypatch.setattr(compare, "gc", stand_in)


_seconds: dict[str, float] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up what each test file takes."""
    file = report.nodeid.partition("::")[0]
    _seconds[file] = _seconds.get(file, 0.0) + report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep what whole files took: ``make check`` chooses by it."""
    config = session.config
    whole = not config.option.keyword and not any("::" in word for word in config.args)
    cache = getattr(config, "cache", None)
    if whole and cache and not session.shouldstop and not hasattr(config, "workerinput"):
        taken = {file: round(seconds, 1) for file, seconds in _seconds.items()}
        cache.set("streamjoin/seconds", {**cache.get("streamjoin/seconds", {}), **taken})


def pytest_unconfigure() -> None:
    """Let the collector see it all again, so that libraries end in order."""
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _threads_share_however_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have threads share what is too little to be worth it: tests provoke their races."""
    monkeypatch.setattr(mergetrees, "MIN_SHARED", 0)
    monkeypatch.setattr(window, "MIN_SHARED", 0)


@pytest.fixture(scope="session")
def session() -> Iterator[Session]:
    """One Spark session for all tests that lose no executor; starting one takes seconds.

    Plans for so few rows are interpreted: compiling them takes longer.
    """
    interpreted = {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    with spark_session(2, settings=interpreted) as running:
        yield running


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Address of a PostgreSQL server that lasts as long as the tests."""
    with server() as address:
        yield address


@pytest.fixture
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A kind of store, with its server where it needs one."""
    if request.param == "postgres":
        monkeypatch.setenv("STREAMJOIN_POSTGRES", request.getfixturevalue("postgres"))
    return str(request.param)


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all pages of a worker."""
    with Browser(tmp_path_factory.mktemp("browser")) as started:
        yield started
