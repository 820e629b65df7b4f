"""The contract of the order of packages: imports that break it, and imports that keep it."""

from __future__ import annotations

from typing import Any

from grimp import ImportGraph
from importlinter.domain.contract import ContractCheck

from tests.import_order import PackageOrder

ORDER = ["jobs.control", "queues workflows", "jobs"]


def _check(*imports: tuple[str, str], ignored: tuple[str, ...] = ()) -> ContractCheck:
    graph = ImportGraph()
    graph.add_module("draftsman")
    for importer, imported in imports:
        graph.add_import(importer=f"draftsman.{importer}", imported=f"draftsman.{imported}")
    options: dict[str, Any] = {"order": ORDER, "outside": ["agents"], "ignore_imports": ignored}
    return PackageOrder("order", {}, options).check(graph, verbose=False)


def test_a_package_imports_those_below_it() -> None:
    assert _check(
        ("jobs.control.store", "queues.service"),
        ("jobs.control.store", "jobs.job"),
        ("jobs.job_summary", "jobs.job"),
        ("agents.plain", "agents.program"),
    ).kept


def test_a_package_imports_none_above_it_nor_of_its_line() -> None:
    check = _check(("jobs.job", "jobs.control.store"), ("queues.service", "workflows.groups"))
    assert not check.kept
    assert check.metadata["problems"] == [
        "jobs.job imports jobs.control.store",
        "queues.service imports workflows.groups",
    ]


def test_an_ignored_import_is_counted() -> None:
    check = _check(
        ("jobs.job", "queues.service"),
        ignored=("draftsman.jobs.job -> draftsman.queues.service",),
    )
    assert (check.kept, check.ignored_import_count) == (True, 1)


def test_a_package_without_a_line_is_named() -> None:
    assert _check(("new.rules", "jobs.job")).metadata["problems"] == ["new.rules has no line"]
