"""Polls of a forge of whose repositories some are blocked, moved, slow or limited."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from draftsman.database.database import Connection
from draftsman.errors import Failure
from draftsman.forges.api import rest_api
from draftsman.forges.forge_event import EventKind, ForgeEvent
from draftsman.outbound.timeouts import Timeouts
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import RepoProfile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime
from draftsman.settings.forges import ForgeSettings
from draftsman_bots.forges.people import PeopleEventProcessor
from draftsman_bots.forges.receiver import ForgeReceiver
from draftsman_bots.process.health import WebhookHealth
from draftsman_testing.factories import Factory
from draftsman_testing.fake.faults import Fault
from tests.core.forges.api_contract import ForgeHarness, forge_harness
from tests.support.slow import slow_except

SLOW = Fault.SLOW(60)
BLOCKED = {
    "blocked": Fault("error", status=403, text="Repository access blocked"),
    "dmca": Fault("error", status=451, text="Repository access blocked"),
    "deleted": Fault("error", status=404, text="Not Found"),
    "gone": Fault("error", status=410, text="Issues are disabled for this repo"),
    "renamed": Fault("error", status=301, text="Moved Permanently"),
    "broken": Fault("error", status=502, text="Server Error"),
    "limited": Fault("secondary", status=403),
    "dropped": Fault.DROP_BEFORE,
    "slow": SLOW,
}
"""Faults of all calls about a repository, by its name; they are polled in the order of names."""


@pytest.fixture(params=["github", "gitlab", "gitea"])
async def site(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[ForgeHarness]:
    monkeypatch.setattr(rest_api, "TIMEOUTS", Timeouts(call=3, connect=3))
    async with forge_harness(request.param, tmp_path, monkeypatch) as harness:
        yield harness


async def receiver_of(
    site: ForgeHarness, rt: Runtime, make: Factory, *projects: str
) -> ForgeReceiver:
    """Return the receiver of a forge with these repositories besides `acme/pay`."""
    for project in ("acme/pay", *projects):
        url = f"{site.fake.world.base}/{project}.git"
        await rt.repos.add(Repo.at(parse(url)), RepoProfile(), make.owner)
    table = site.table(events="poll")
    update = {"forges": {"acme": table}, "http": site.settings.http}
    return ForgeReceiver(replace(rt, settings=rt.settings.model_copy(update=update)))


async def stored(conn: Connection) -> list[str]:
    """Return the texts of the stored events."""
    rows = await conn.execute("SELECT text FROM draftsman.forge_events ORDER BY id")
    return [row[0] for row in await rows.fetchall()]


@pytest.mark.parametrize("name", slow_except(["renamed", "broken", "limited", "dropped"], BLOCKED))
async def test_one_repository_holds_up_no_other(
    site: ForgeHarness, rt: Runtime, make: Factory, conn: Connection, name: str
) -> None:
    """Its note names it; the bot is ready all the same, and reads it again later."""
    world = site.fake.world
    world.blocked[f"acme/{name}"] = BLOCKED[name]
    receiver = await receiver_of(site, rt, make, f"acme/{name}")
    world.comment("#7", "/draftsman look", "anna")
    await receiver.read_due(polls=True)
    assert await stored(conn) == ["/draftsman look"]
    assert receiver.health.ready, receiver.health.problems
    [note] = receiver.health.notes.values()
    assert note.startswith(f"forge acme: acme/{name}, issues failed: ")
    receiver._due["acme"] = 0.0
    receiver._repos["acme"]._paused.clear()
    world.blocked.clear()
    await receiver.read_due(polls=True)
    notes = receiver.health.notes
    assert len(notes) == 1, "there is no such repository"
    assert "404" in next(iter(notes.values()))


async def test_a_forge_that_is_down_is_paused_and_others_are_read_first_then(
    site: ForgeHarness, rt: Runtime, make: Factory, conn: Connection
) -> None:
    """Two in a row without an answer pause it; the next round begins with the others."""
    world = site.fake.world
    for name in ("a", "b", "c"):
        world.blocked[f"acme/{name}"] = BLOCKED["broken"]
    receiver = await receiver_of(site, rt, make, "acme/a", "acme/b", "acme/c")
    world.comment("#7", "/draftsman look", "anna")
    await receiver.read_due(polls=True)
    assert "acme" in receiver.health.problems
    assert await stored(conn) == []
    receiver._due["acme"] = receiver._paused["acme"] = 0.0
    await receiver.read_due(polls=True)
    assert await stored(conn) == ["/draftsman look"]
    assert receiver.health.ready


async def test_a_refused_token_is_a_problem_of_the_forge(
    site: ForgeHarness, rt: Runtime, make: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORGE_TOKEN", "expired")
    receiver = await receiver_of(site, rt, make)
    await receiver.read_due(polls=True)
    assert "401" in receiver.health.problems["acme"]


async def test_events_of_a_renamed_repository_are_those_of_its_address(
    site: ForgeHarness, rt: Runtime, make: Factory, conn: Connection
) -> None:
    world = site.fake.world
    receiver = await receiver_of(site, rt, make)
    world.rename("acme/payments")
    world.comment("#7", "/draftsman look", "anna")
    await receiver.read_due(polls=True)
    rows = await conn.execute("SELECT project, text FROM draftsman.forge_events")
    assert await rows.fetchall() == [("acme/pay", "/draftsman look")]
    assert receiver.health.notes == {}


async def test_events_of_a_silent_repository_delay_no_other(rt: Runtime, make: Factory) -> None:
    """It is called once in a round, whatever the number of its events."""
    calls = []

    async def own_login(forge: str, project: str) -> str:
        calls.append(project)
        if project == "acme/down":
            raise Failure("no answer", code="call_timeout")
        return "anna"

    table = {"kind": "gitea", "url": "https://git.example", "token": {"env": "T"}, "events": "poll"}
    update = {"forges": {"acme": ForgeSettings.of(table)}}
    changed = replace(rt, settings=rt.settings.model_copy(update=update))
    events = [
        ForgeEvent(EventKind.ISSUE_COMMENT, project, 7, f"comment:{number}", "anna", text="/help")
        for number, project in enumerate(("acme/down", "acme/down", "acme/down", "acme/pay"))
    ]
    await rt.forge_events.receive("acme", events)
    processor = PeopleEventProcessor(changed, WebhookHealth("forge", "source", "x"), own_login)
    await processor.process()
    assert calls == ["acme/down", "acme/pay"]
    await processor.process()
    assert calls == ["acme/down", "acme/pay"], "all three wait"
    processor._paused.clear()
    await processor.process()
    assert calls == ["acme/down", "acme/pay", "acme/down"]
