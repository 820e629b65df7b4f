"""Costly tests: those that `make test` leaves to `make costly`, by the CPU time that they took.

`python -m tests.costly` runs all tests and writes `costly.txt` anew: the functions that cost most,
until what the others cost is at most `BUDGET`. The CPU time of the server, which all tests share,
is not counted. A new test is not costly before the list is written again.
"""

from __future__ import annotations

import resource
import sys
from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping, Set
from pathlib import Path
from typing import Final

import pytest

FILE: Final = Path(__file__).with_suffix(".txt")
BUDGET: Final = 150.0
"""Seconds of CPU of the tests and their processes. With the server and the collection of the tests,
these are four minutes on two cores."""
ALWAYS: Final = (
    "tests/acceptance/",
    "tests/core/races/",
    "tests/core/stateful/",
)
"""Folders of tests that are never costly: the promises to a user, by the installed commands and in
races. Neither is a test with a snapshot, which would be unused otherwise."""
SNAPSHOT: Final = "snapshot"
"""The fixture of syrupy."""
OPTIONS: Final = ("-n", "5", "--dist", "worksteal", "-m", "not slow", "-q")


def costly_functions() -> frozenset[str]:
    """Return the functions of the list, such as `tests/core/test_ids.py::test_an_id`."""
    return frozenset(FILE.read_text("utf-8").split())


def mark_costly(items: Iterable[pytest.Item]) -> None:
    """Mark the tests of the listed functions."""
    listed = costly_functions()
    for item in items:
        if _function(item.nodeid) in listed and not _has_snapshot(item):
            item.add_marker("costly")


class CostRecorder:
    """A plugin that adds up the costs of functions, also those of the processes of pytest-xdist."""

    def __init__(self) -> None:
        self._before = _cpu()
        self.costs: defaultdict[str, float] = defaultdict(float)
        self.kept: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Add what the phase of a test cost to its report, and whether it has a snapshot."""
        report = yield
        now = _cpu()
        report.user_properties += [("cpu", now - self._before), (SNAPSHOT, _has_snapshot(item))]
        self._before = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up the costs of a function."""
        function = _function(report.nodeid)
        costs = [float(str(cost)) for name, cost in report.user_properties if name == "cpu"]
        self.costs[function] += sum(costs)
        if (SNAPSHOT, True) in report.user_properties:
            self.kept.add(function)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the list."""
        if not hasattr(session.config, "workerinput"):
            names = costly(self.costs, self.kept)
            FILE.write_text("".join(f"{name}\n" for name in names), "utf-8")


def costly(costs: Mapping[str, float], kept: Set[str]) -> list[str]:
    """Return the functions that cost most, until the others are within the budget.

    Those that are `kept` are never costly, like those of ALWAYS.
    """
    left = sum(costs.values())
    names: list[str] = []
    for name, cost in sorted(costs.items(), key=lambda item: -item[1]):
        if left > BUDGET and name not in kept and not name.startswith(ALWAYS):
            names.append(name)
            left -= cost
    return sorted(names)


def pytest_configure(config: pytest.Config) -> None:
    """Record the costs; called as a plugin."""
    config.pluginmanager.register(CostRecorder())


def _has_snapshot(item: pytest.Item) -> bool:
    return SNAPSHOT in getattr(item, "fixturenames", ())


def _function(nodeid: str) -> str:
    """Return the function of a test, whose cases are costly together."""
    return nodeid.partition("[")[0]


def _cpu() -> float:
    """Return the CPU time of this process and of those that it waited for, in seconds."""
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, whose))


if __name__ == "__main__":
    sys.exit(pytest.main([*OPTIONS, "-p", "tests.costly", *sys.argv[1:]]))
