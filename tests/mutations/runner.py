"""A process that has collected the tests, and forks a process for each mutant.

A fork changes the claim path in its own memory, so that no file of the tree changes: a query where
the store reads it, a function in Python where it is defined, and a migration before the database of
the fork is created. It reads orders from stdin and writes results to stdout, a line each.
"""

from __future__ import annotations

import json
import os
import select
import signal
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg
import pytest
from psycopg import sql

from draftsman import resources
from draftsman.database import named_queries as queries
from draftsman_testing import waits
from tests.mutations import reach
from tests.mutations.mutant import ROOT, Mutant
from tests.mutations.targets import TESTS
from tests.support.server import Server, make_home

REWRITE: Final = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"
"""The plugin of pytest is in a package that this process has imported before pytest."""
ARGUMENTS: Final = ("-q", "--no-header", "-p", "no:cacheprovider", "--timeout=60", "-W", REWRITE)
MISSING: Final = 10.0
"""Seconds after which a condition counts as missing in a mutant, instead of 30."""
HANGING: Final = 25.0
"""Seconds after which a test of a mutant counts as hanging, instead of 60; its fork ends after
twice as many if the test cannot be interrupted."""


@dataclass
class Order:
    """Tests that a fork runs, with a mutant or to note the units that they reach."""

    tests: list[str] = field(default_factory=list)
    """The tests in their order; empty for all."""
    mutant: dict[str, Any] | None = None
    limit: float = 3600.0
    """Seconds after which the fork is killed."""


class Forks:
    """The loop of pytest, which runs the tests in forks."""

    def __init__(self, orders: Any, results: Any) -> None:
        self._orders = orders
        self._results = results

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Fork for each order."""
        server: Server = next(
            value for value in session.config.stash._storage.values() if isinstance(value, Server)
        )
        self._write({"collected": [item.nodeid for item in session.items]})
        for line in self._orders:
            order = Order(**json.loads(line))
            self._write(self._run(session, server, order))
            _drop_databases(server)
        return True

    def _write(self, result: dict[str, Any]) -> None:
        self._results.write(json.dumps(result) + "\n")
        self._results.flush()

    def _run(self, session: pytest.Session, server: Server, order: Order) -> dict[str, Any]:
        reader, writer = os.pipe()
        began = time.monotonic()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            os.setsid()
            _in_fork(session, server, order, writer)
        os.close(writer)
        data = b""
        while (left := began + order.limit - time.monotonic()) > 0:
            if not select.select([reader], [], [], left)[0]:
                break
            if not (part := os.read(reader, 1 << 20)):
                break
            data += part
            if data.endswith(b"\n"):
                break
        os.close(reader)
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        seconds = time.monotonic() - began
        if data.endswith(b"\n"):
            return {"seconds": seconds, **json.loads(data)}
        overtime = seconds >= order.limit
        return {"seconds": seconds, "failed": "time limit" if overtime else f"exit {status}"}


class Reports:
    """The first failure of a fork, and the seconds of each test."""

    def __init__(self) -> None:
        self.failed: str | None = None
        self.error = ""
        self.seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a phase of a test."""
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if report.failed and self.failed is None:
            self.failed = report.nodeid
            self.error = str(getattr(report.longrepr, "reprcrash", report.longrepr))[-400:]


def _in_fork(session: pytest.Session, server: Server, order: Order, writer: int) -> None:
    """Run the tests until the first failure, and exit."""
    sink = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(sink, descriptor)
    reports = Reports()
    reached = {}
    session.config.pluginmanager.register(reports)
    items = {item.nodeid: item for item in session.items}
    chosen = [items[name] for name in order.tests if name in items] or [*items.values()]
    current: set[str] = set()
    try:
        if order.mutant is not None:
            waits.DEADLINE = MISSING
            session.config._env_timeout = HANGING  # type: ignore[attr-defined]
            _apply(Mutant(**order.mutant), server)
        else:
            reach.install(current.add)
        for item, following in zip(chosen, [*chosen[1:], None], strict=True):
            current.clear()
            watch = threading.Timer(2 * HANGING, os._exit, (1,))
            watch.daemon = True
            if order.mutant is not None:
                watch.start()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if reports.failed is not None and reports.seconds[item.nodeid] < HANGING:
                # again: it may have been too slow
                reports.failed = None
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            watch.cancel()
            reached[item.nodeid] = sorted(current)
            if reports.failed is not None:
                break
        result = {
            "failed": reports.failed,
            "error": reports.error,
            "tests": {} if order.mutant else reports.seconds,
            "reached": {} if order.mutant else reached,
            "count": len(reached),
        }
    except BaseException as error:
        result = {"failed": f"{type(error).__name__}: {error}"}
    with os.fdopen(writer, "w") as pipe:
        pipe.write(json.dumps(result) + "\n")
    os._exit(0)


def _apply(mutant: Mutant, server: Server) -> None:
    """Change the claim path in this process."""
    text = mutant.apply((ROOT / mutant.path).read_text("utf-8"))
    if mutant.path.startswith("migrations/"):
        name = mutant.path.removeprefix("migrations/").removesuffix(".sql")
        files = [(file, text if file == name else old) for file, old in resources.functions()]
        resources.functions = lambda: files
        server._template_name += "_mutant"
        server._marker = server.home / f"mutant-{os.getpid()}"
    elif mutant.path.endswith(".sql"):
        known = queries.load(reach.module_name(mutant.path))
        known.update(queries.parse(text)[0])
    else:
        module = reach.module_of(mutant.path)
        reach.replace_code(module, text, [reach.outer_unit(mutant, module)])


def _drop_databases(server: Server) -> None:
    """Drop the databases of a fork that ended, except for the template."""
    pattern = server._prefix.replace("_", r"\_") + "%"
    with psycopg.connect(server.given or "", autocommit=True) as conn:
        found = conn.execute(
            "SELECT datname FROM pg_database WHERE datname LIKE %s AND datname <> %s",
            (pattern, server._template_name),
        ).fetchall()
        for (name,) in found:
            drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
            conn.execute(drop.format(sql.Identifier(str(name))))


def main() -> None:
    """Run the orders of stdin."""
    orders = os.fdopen(os.dup(0), "r")
    results = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    own = Server(make_home(), None, "mutations")
    os.environ["DRAFTSMAN_TEST_URL"] = own._start()
    try:
        pytest.main([*ARGUMENTS, *TESTS], plugins=[Forks(orders, results)])
    finally:
        own.end()


if __name__ == "__main__":
    main()
