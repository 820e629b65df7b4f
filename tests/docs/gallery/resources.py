"""Rows of the gallery's tables beside its jobs: workers, repositories, boards, schedules, rules."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final
from uuid import UUID

from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import RepoProfile
from draftsman.repos.repo_url import parse
from draftsman.schedules.schedule import ScheduleSpec
from draftsman.schedules.template import define
from draftsman.worker.registry import store as workers
from draftsman_bots.trello.records.board import BoardConfig, LabelRule
from draftsman_bots.trello.records.service import boards_of
from draftsman_testing.factories import Factory
from tests.support.budgets import set_budgets

LEASE: Final = 3600.0
"""Seconds for which the leader of the pictures leads."""
BEAT: Final = 2.0
"""Seconds between two heartbeats."""
HOSTS: Final = (("build-1", 8, ["default", "shop", "pay"]), ("build-2", 8, ["default"]))
BUMP: Final = {
    "type": "run_agent",
    "agent": "tidy",
    "description": "Update a dependency to its newest version",
    "parameters": {"properties": {"package": {"type": "string"}}, "required": ["package"]},
    "text": "Update {package}, and repair what the new version breaks.",
    "title": "Update {package}",
}
REPORT: Final = {
    "type": "http_request",
    "description": "Send the weekly report",
    "payload": {"url": "https://reports.example/weekly"},
}
TIDY: Final = {"type": "run_agent", "agent": "tidy", "text": "Tidy up the imports."}


async def add_resources(make: Factory, repos: tuple[str, ...]) -> None:
    """Add the rows of all other tables."""
    rt = make.rt
    owner = make.owner
    for name in repos:
        url = f"https://git.example/acme/{name}"
        await rt.repos.add(Repo.at(parse(url)), RepoProfile(agent="coder"), owner)
    for nth, name in enumerate(("Shop: next release", "Payments", "Infrastructure")):
        labels = {"b" * 23 + str(nth): LabelRule(name="draftsman", agent="coder")}
        url = f"https://trello.com/b/board{nth}"
        board = BoardConfig(board_id="a" * 23 + str(nth), name=name, url=url, labels=labels)
        await boards_of(rt).save(board, owner)
    await rt.templates.add("bump", define(BUMP), owner)
    await rt.templates.add("weekly-report", define(REPORT), owner)
    for spec in (
        ScheduleSpec("weekly-report", "0 7 * * 1", template="weekly-report"),
        ScheduleSpec("bump-httpx", "@daily", template="bump", params={"package": "httpx"}),
        ScheduleSpec("tidy", "30 2 * * *", request=TIDY),
    ):
        await rt.schedules.add(spec, owner)
    for repo, command in (("acme/shop", "pytest tests/**"), ("acme/pay", "ruff check")):
        rule = await rt.rules.propose(repo, command, owner)
    await rt.rules.ratify(rule.id, owner)
    budgets: dict[str, Any] = {
        "job": {"cost_usd": 5},
        "all": {"cost_usd": 2000},
        "repo": {"*": {"cost_usd": 300}},
    }
    async with rt.db.connection() as conn:
        await set_budgets(conn, **budgets)


async def add_workers(make: Factory) -> None:
    """Register a worker for the runs, which leads, and another that is idle."""
    async with make.rt.db.connection() as conn:
        for nth, (host, slots, queues) in enumerate(HOSTS):
            id = make.worker if nth == 0 else UUID(int=0x6D0F9A1C)
            await workers.register(
                conn,
                id=id,
                host=host,
                host_id=host,
                pid=4711 + 1300 * nth,
                pid_started=0.0,
                version="0.1.0",
                types=["run_agent"],
                queues=queues,
                slots=slots,
            )
        await workers.acquire(conn, "leader", make.worker, LEASE)


@asynccontextmanager
async def heartbeats(make: Factory) -> AsyncIterator[None]:
    """Keep the registered workers alive."""

    async def beat() -> None:
        while True:
            async with make.rt.db.connection() as conn:
                await conn.execute("UPDATE draftsman.workers SET heartbeat_at = draftsman.now()")
            await asyncio.sleep(BEAT)

    task = asyncio.create_task(beat())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
