"""The page about declared job types: its examples run, and its tables are complete."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from draftsman import BlockingRunContext, Draftsman, job
from draftsman.handlers import registry
from draftsman.job_types import declaration, lifespan
from draftsman.job_types.app import handlers_of
from draftsman.processes.host import login
from draftsman.results import Picture, Table
from draftsman.runtime import Runtime
from draftsman.testing import MemoryApp, WorkerApp, run_handler
from tests.core.worker.workers import running_worker, runtime_with, wait_for_question
from tests.docs.pages import DOCS

PAGE: Final = (DOCS / "own-jobs.md").read_text(encoding="utf-8")
BLOCKS: Final = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)

MIDDLEWARE: Final = [block for block in BLOCKS if "@middleware" in block]


def write_company(folder: Path) -> None:
    """Write the examples as modules of a package `company`."""
    (package := folder / "company").mkdir()
    blocks = [block for block in BLOCKS if block not in MIDDLEWARE]
    declarations = [block for block in blocks if "company.jobs import" not in block]
    submitting, in_memory, by_worker, replaying = (
        block for block in blocks if block not in declarations
    )
    (package / "test_jobs.py").write_text(in_memory, encoding="utf-8")
    (package / "test_workers.py").write_text(by_worker, encoding="utf-8")
    (package / "test_replays.py").write_text(replaying, encoding="utf-8")
    (package / "jobs.py").write_text("\n".join(declarations), encoding="utf-8")
    (package / "orders.py").write_text(submitting, encoding="utf-8")


@pytest.fixture
def company(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Import the examples."""
    monkeypatch.setattr(declaration, "declared_types", {})
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(lifespan, "_lifespans", [])
    write_company(tmp_path)
    yield importlib.import_module("company.orders")
    for name in [name for name in sys.modules if name.partition(".")[0] == "company"]:
        del sys.modules[name]


async def test_the_examples_run(
    rt: Runtime,
    company: Any,
    tmp_path: Path,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = tmp_path / "draftsman.toml"
    config.write_text(f'[people.me]\nlogin = "{login()}"\nroles = ["invoker", "responder"]\n')
    handlers = registry.load({}) | handlers_of(declaration.declared_types, {})
    async with (
        lifespan.opened_lifespans(),
        Draftsman(database_url, config=config) as client,
        running_worker(runtime_with(rt), handlers, slots=8, leader=True),
    ):
        with Draftsman(database_url, config=config) as blocking:
            monkeypatch.setattr(company.weekly, "_options", {"client": blocking})
            monkeypatch.setattr(company.ship, "_options", {"client": blocking})
            parcel = await asyncio.to_thread(company.order_everything)
            assert parcel.label == "N-7"
            await wait_for_question(rt, 1)
            await client.answer("D-1/1", "yes")
            assert (await client.wait(1, 30)).result == {"value": "sent"}
            draft = company_jobs(company).draft.with_options(client=blocking)
            assert await (await draft.submit_async("Dear Anna")).result_async(30) == 9
            sales = company_jobs(company).sales.with_options(client=blocking)
            of_week = await (await sales.submit_async(week=31)).result_async(30)
            assert of_week.orders == Table(["region", "orders"], [["eu", 900], ["us", 300]])
            assert of_week.chart == Picture("chart.png", "Orders of a day")
            render = company_jobs(company).render.with_options(client=blocking)
            assert (await render.submit_async(3)).number > 7
        replays: Any = importlib.import_module("company.test_replays")
        monkeypatch.setattr(replays, "Draftsman", lambda: Draftsman(database_url, config=config))
        await replays.test_the_last_reports_would_run_as_they_did()
        ship = await client.get(7)
        assert (ship.title, ship.concurrency_key) == ("Ship order 7", "order-7")


class Library:
    """A stand-in of a library, which records its calls by name."""

    def __init__(self, calls: list[str]) -> None:
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        def call(*args: object, **options: object) -> Any:
            shown = [*map(str, args), *(f"{key}={value}" for key, value in options.items())]
            self._calls.append(f"{name}({', '.join(shown)})")
            return self

        return call

    def __enter__(self) -> Library:
        return self

    def __exit__(self, *_: object) -> None:
        self._calls.append("exit")


CALLS: Final = {
    "sentry_sdk": [
        "isolation_scope()",
        "set_tag(job, D-1)",
        "run",
        "capture_exception(broken)",
        "exit",
    ],
    "opentelemetry": [
        "get_tracer(company)",
        "start_as_current_span(fails, attributes={'draftsman.job': 'D-1', 'draftsman.run': 1})",
        "run",
        "exit",
    ],
    "django": ["close_old_connections()", "run", "close_old_connections()"],
}


@pytest.mark.parametrize("library", CALLS)
async def test_the_middleware_surrounds_a_run(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stand-ins take the places of the libraries."""
    calls: list[str] = []
    stand_in: Any = Library(calls)
    for module in ("sentry_sdk", "opentelemetry", "django", "django.db"):
        monkeypatch.setitem(sys.modules, module, stand_in)
    monkeypatch.setattr(stand_in, "trace", stand_in, raising=False)
    monkeypatch.setattr(declaration, "declared_types", {})
    monkeypatch.setattr(lifespan, "_middleware", [])
    (block,) = [block for block in MIDDLEWARE if library in block]
    exec(compile(block, "own-jobs.md", "exec"), {"__name__": "middleware_page"})

    @job("fails")
    def fails(ctx: BlockingRunContext) -> None:
        calls.append("run")
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await run_handler(fails.handler(), type="fails")
    assert calls == CALLS[library]


def test_the_test_passes(company: Any, draftsman_app: MemoryApp) -> None:
    importlib.import_module("company.test_jobs").test_weekly(draftsman_app)


def test_the_test_by_a_worker_passes(company: Any, draftsman_worker: WorkerApp) -> None:
    importlib.import_module("company.test_workers").test_weekly_later(draftsman_worker)


def company_jobs(company: Any) -> Any:
    return sys.modules[company.ship.__module__]


def test_the_table_has_each_argument_of_a_declaration() -> None:
    table = PAGE.split("| argument of `@job` | |")[1].split("\n\n")[0]
    listed = re.findall(r"`(\w+)`", "\n".join(row.split("|")[1] for row in table.splitlines()[2:]))
    assert set(listed) == set(inspect.signature(job).parameters) - {"name"}
