"""Fixtures of all tests: a server, a database of the test, people, a clock, jobs in any state.

By default the server is the embedded PostgreSQL, started on first use by each process of the
session. `DRAFTSMAN_TEST_URL=postgresql://… pytest` uses another server, as a superuser
there.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Generator, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from pydantic import SecretStr

from draftsman import basic_settings
from draftsman.database.database import Connection, Database
from draftsman.log import OWN
from draftsman.settings import Settings, settings_model
from draftsman.testing.databases import TEST_URL
from draftsman_testing.people import GROUPS, PEOPLE
from tests.costly import mark_costly
from tests.support import fork_server, guard_forks, repeated_costs, shifted_clock, worker_forks
from tests.support.clock import Clock
from tests.support.database_pool import Databases
from tests.support.entry_points import check_entry_points
from tests.support.server import Server, make_home, open_folder
from tests.support.sessions import Sessions

pytest_plugins = ["draftsman_testing.fixtures"]
SERVER = pytest.StashKey[Server]()
QUICK = hypothesis.settings(
    database=None,
    deadline=None,  # and no check of the time: the machine runs other tests beside them
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    derandomize=True,
    max_examples=8,
)
hypothesis.settings.register_profile(repeated_costs.QUICK, QUICK)
# more and other examples: tests/soak/soak_properties.py
hypothesis.settings.register_profile("soak", QUICK, derandomize=False, max_examples=500)
hypothesis.settings.load_profile(repeated_costs.QUICK)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the time at which each test begins."""
    help_text = "begin each test at this time, such as 2026-10-25T00:59:40+00:00"
    parser.addoption("--clock", type=datetime.fromisoformat, metavar="TIME", help=help_text)


def pytest_configure(config: pytest.Config) -> None:
    """Find the session's server, and remove the configuration of this machine and user.

    Tests and their processes are compiled once. Ctrl-C and SIGHUP end them even if a script started
    this in the background or with `nohup`, which ignore these signals.
    """
    check_entry_points()
    told: dict[str, Any] = getattr(config, "workerinput", {})
    home = Path(told["home"]) if told else make_home()
    url = told["url"] if told else os.environ.get(TEST_URL)
    config.stash[SERVER] = Server(home, url, told.get("workerid", "main"))
    own = [name for name in os.environ if name.startswith("DRAFTSMAN_")]
    for name in [*own, *({"DATABASE_URL"} & {*os.environ})]:
        del os.environ[name]
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    user = home / "user"
    user.mkdir(exist_ok=True)
    os.environ["HOME"] = str(user)
    # constants of all modules, for other examples
    if config.pluginmanager.hasplugin("cacheprovider"):
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(config.cache.mkdir("hypothesis"))
    for kind in ("CACHE", "CONFIG", "DATA", "STATE"):
        os.environ[f"XDG_{kind}_HOME"] = str(user)
    repeated_costs.collect_less_garbage()
    if (moment := config.option.clock) is not None:
        shifted_clock.install()
        shifted_clock.begin(moment)  # modules read the time, too
    if url is None and config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        worker_forks.in_child(config, config.stash[SERVER].prepare)
    fork_server.install(worker_forks.start_importer(config))
    guard_forks.install()
    repeated_costs.avoid_repeated_costs()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Pass the location of the session's server to a process of pytest-xdist."""
    server: Server = node.config.stash[SERVER]
    node.workerinput |= {"home": str(server.home), "url": server.given}


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage meanwhile: tests are kept."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect slow tests, unless a mark or the name of a test selects.

    Costly tests are deselected only where nothing selects: a part of the tests includes them.
    """
    mark_costly(items)
    if config.option.markexpr or any("::" in arg for arg in config.args):
        return
    is_whole = config.args_source is config.ArgsSource.TESTPATHS and not config.option.keyword
    left_out = {"slow", "costly"} if is_whole else {"slow"}
    deselected = [
        item
        for item in items
        if any(mark.name in left_out for mark in item.iter_markers())
        and not item.path.name.startswith("soak_")
    ]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if item not in {*deselected}]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begin the test at the time of `--clock`."""
    if (moment := item.config.option.clock) is not None:
        own = item.get_closest_marker("machine_clock")
        shifted_clock.begin(None if own else moment)


def pytest_collection_finish() -> None:
    """Exclude permanent objects from garbage collection, which saves a tenth of the time."""
    gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Disconnect; the process that started the session also cleans up."""
    if (server := config.stash.get(SERVER, None)) is None:
        return
    if hasattr(config, "workerinput"):
        server.disconnect()
    else:
        server.end()


def pytest_report_header(config: pytest.Config) -> str:
    """Print the version of PostgreSQL; `make soak` uses the other installed versions."""
    return f"postgresql: {config.stash[SERVER].version}"


@pytest.fixture(autouse=True)
def _no_system_config(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(basic_settings, "SYSTEM_CONFIG", Path("/nonexistent/draftsman.toml"))


@pytest.fixture(scope="session")
def server(pytestconfig: pytest.Config) -> Server:
    """Provide the PostgreSQL server of this session."""
    return pytestconfig.stash[SERVER]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Provide an empty folder for the data of a server of the test."""
    with open_folder() as path:
        yield path


@pytest.fixture
def empty_url(server: Server) -> Iterator[str]:
    """Provide the URL of an empty database."""
    name = server.create(migrated=False)
    yield server.url(name)
    server.leave(name)


@pytest.fixture(scope="session")
def sessions(server: Server) -> Iterator[Sessions]:
    """Provide the backends that the tests of this process use again."""
    shared = server.given is not None
    sessions = Sessions(int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) if shared else 1)
    sessions.install()
    yield sessions
    sessions.uninstall()


@pytest.fixture(autouse=True)
def _restored_logging() -> Iterator[None]:
    """Undo the logging setup of a test: a command called in this process sets levels."""
    root = logging.getLogger()
    handlers = list(root.handlers)
    levels = {root: root.level} | dict.fromkeys(map(logging.getLogger, OWN), logging.NOTSET)
    yield
    root.handlers[:] = handlers
    for logger, level in levels.items():
        if logger.level != level:  # setting it clears the caches of all loggers
            logger.setLevel(level)


@pytest.fixture(scope="session")
def databases(server: Server, sessions: Sessions) -> Iterator[Databases]:
    """Provide the databases that the tests of this process use in turn."""
    databases = Databases(server, sessions)
    yield databases
    databases.close()


@pytest.fixture
def database(databases: Databases) -> Iterator[str]:
    """Provide the name of a migrated database that only this test uses at the moment."""
    name = databases.acquire()
    yield name
    databases.release(name)


@pytest.fixture
def own_database(server: Server) -> Iterator[str]:
    """Provide the name of a migrated database that no other test ever uses."""
    name = server.create()
    yield name
    server.leave(name)


@pytest.fixture
def database_url(server: Server, database: str) -> str:
    """Provide the URL of a migrated database that only this test uses."""
    return server.url(database)


@pytest.fixture
def draftsman_database_url(database_url: str) -> str:
    """Provide it for the fixtures of the plugin of pytest."""
    return database_url


@pytest.fixture(scope="session")
def common_settings() -> Settings:
    """Provide the common configuration of all tests, without a database."""
    return settings_model().model_validate(
        {
            "database": {"pool_size": 20},
            "types": {"noop": {}},
            "people": PEOPLE,
            "groups": GROUPS,
        }
    )


@pytest.fixture
def settings(common_settings: Settings, database_url: str, tmp_path: Path) -> Settings:
    """Provide a configuration with that database and the people of the tests."""
    own = {"database_url": SecretStr(database_url), "data_dir": tmp_path / "data"}
    return common_settings.model_copy(update=own)


@pytest.fixture
async def conn(db: Database) -> AsyncIterator[Connection]:
    """Provide a session in that database, on which each statement is a transaction."""
    conn = await db.dedicated_connection()
    yield conn
    await conn.close()


@pytest.fixture
def clock(server: Server, database: str, db: Database) -> Clock:
    """Provide the movable clock of that database."""
    return Clock(db, server, database)
