"""Receipt of forge events: webhooks over real HTTP, and polls, each event stored once."""

from __future__ import annotations

import asyncio
import io
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import httpx
import pytest

from draftsman.database.database import Connection
from draftsman.jobs.job import Status
from draftsman.processes.components import ComponentGroup
from draftsman.runtime import Runtime
from draftsman_bots.forges.event_replies import delete_branches
from draftsman_bots.forges.isolation import RepoIsolation
from draftsman_bots.forges.service import ForgeService
from draftsman_bots.process.health import HealthState
from draftsman_bots.process.http import MAX_BODY_BYTES
from draftsman_testing.factories import Factory
from draftsman_testing.fake.faults import Fault
from draftsman_testing.forges.conversation import SECRET, Payloads, deliver, github_webhook
from tests.core.forges.api_contract import BRANCH, ForgeHarness, forge_harness

OWN: Final = "secret-of-one-repository"


@pytest.fixture
async def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ForgeHarness]:
    monkeypatch.setenv("WEBHOOK_SECRET", SECRET)
    monkeypatch.setenv("OWN_SECRET", OWN)
    async with forge_harness("github", tmp_path, monkeypatch) as harness:
        yield harness


@asynccontextmanager
async def receiving(site: ForgeHarness, rt: Runtime) -> AsyncIterator[tuple[ForgeService, str]]:
    """Run the receiver of the forge `acme`; provide the URL of its webhook."""
    table = site.table(
        events="webhook",
        listen="127.0.0.1:0",
        health_listen="127.0.0.1:0",
        webhook_secret={"env": "WEBHOOK_SECRET"},
        webhook_secrets={"acme/own": {"env": "OWN_SECRET"}},
    )
    update = {"forges": {"acme": table}, "http": site.settings.http}
    service = ForgeService(replace(rt, settings=rt.settings.model_copy(update=update)))
    servers = ComponentGroup(service.servers)
    running = asyncio.create_task(servers.run())
    try:
        yield service, f"http://127.0.0.1:{service.ports['acme']}/forges/acme"
    finally:
        servers.stop.set()
        await running


async def stored(conn: Connection) -> list[tuple[str, str, str]]:
    """Return kind, author and text of the stored events."""
    rows = await conn.execute(
        "SELECT kind, author, text FROM draftsman.forge_events ORDER BY kind, text"
    )
    return [(row[0], row[1], row[2]) for row in await rows.fetchall()]


async def _check_endpoints(service: ForgeService) -> None:
    """Check that the public address has no figures."""
    assert service.health_port is not None
    async with httpx.AsyncClient() as client:
        for port, statuses in (
            (service.ports["acme"], [200, 404, 404]),
            (service.health_port, [200, 200, 200]),
        ):
            url = f"http://127.0.0.1:{port}"
            paths = ("/healthz", "/readyz", "/metrics")
            assert [(await client.get(f"{url}{path}")).status_code for path in paths] == statuses


async def test_events_are_stored_once_over_any_way_and_in_any_order(
    site: ForgeHarness, rt: Runtime, make: Factory, conn: Connection
) -> None:
    world = site.fake.world
    number = (await site.open(site.push())).pull.number
    job = await make.job_in(Status.COMPLETED)
    await conn.execute(
        "INSERT INTO draftsman.pull_requests"
        " (root, forge, project, number, url, branch, base, head)"
        " VALUES (%s, 'acme', 'acme/pay', %s, 'u', %s, 'main', %s)",
        (job, number, BRANCH, world.head(BRANCH)),
    )
    comment = world.talk.comment(number, "Anna", "/draftsman go")
    own = world.talk.comment(number, world.login, "Done\ud800")
    review, lines = world.talk.review(number, "ben", "changes_requested", "No", a_txt="Name it")
    shown = Payloads(world)
    about = {"pull_request": {"number": number}}
    issue = {"issue": {"number": number, "pull_request": {}}}
    bodies = [
        ("issue_comment", issue | {"comment": shown.comment(comment)}),
        ("issue_comment", issue | {"comment": shown.comment(own)}),
        ("pull_request_review", about | {"review": shown.review(review, upper=False)}),
        ("pull_request_review_comment", about | {"comment": shown.comment(lines[0])}),
    ]
    action = {"pull_request_review": "submitted"}
    hooks = [
        github_webhook(
            event,
            body | {"action": action.get(event, "created"), "repository": shown.repository},
        )
        for event, body in bodies
    ] * 3
    random.Random(1).shuffle(hooks)
    async with receiving(site, rt) as (service, url):
        await service.receiver.read_due(polls=False)
        assert site.fake.operations()[-1:] != ["comments"], "polls need the lease"
        answers = await asyncio.gather(*(deliver(url, *hook) for hook in hooks[:6]))
        world.faults.add("comments", Fault("secondary", status=403))
        await service.receiver.read_due(polls=True)
        assert "secondary rate limit" in service.receiver.health.problems["acme"]
        await conn.execute(
            "INSERT INTO draftsman.pull_requests"
            " (root, forge, project, number, url, branch, base, head)"
            " SELECT number, 'acme', 'acme/gone', 9, 'v', 'b', 'main', 'c'"
            "   FROM draftsman.job_states WHERE number = %s",
            (await make.job_in(Status.COMPLETED),),
        )
        service.receiver._paused["acme"] = service.receiver._due["acme"] = 0.0
        service.receiver._repos["acme"]._paused.clear()
        await service.receiver.read_due(polls=True)
        assert service.receiver.health.ready, "a repository that is gone delays no other"
        (note,) = service.receiver.health.notes.values()
        assert note.startswith("forge acme: acme/gone, pull request 9 failed: ")
        answers += [await deliver(url, *hook) for hook in hooks[6:]]
        assert {status for status, _ in answers} == {200}
        review.body = "Edited by a maintainer, whom no forge names"
        service.receiver._due["acme"] = 0.0
        await service.receiver.read_due(polls=True)
        body, headers = hooks[0]
        for wrong, status in (
            ((body + b" ", headers), 401),
            ((body, {}), 401),
            (github_webhook("issue_comment", {}, secret="other"), 401),
            ((io.BytesIO(b"x" * (MAX_BODY_BYTES + 1)), headers), 413),
        ):
            assert (await deliver(url, *wrong))[0] == status
        assert (await deliver(url[:-4] + "none", body, headers))[0] == 404
        await _check_endpoints(service)
    assert await stored(conn) == [
        ("comment", "anna", "/draftsman go"),
        ("comment", "draftsman-bot", "Done\ufffd"),
        ("review", "ben", "No"),
        ("review_thread", "ben", "Name it"),
    ]
    bots = await conn.execute("SELECT author FROM draftsman.forge_events WHERE is_bot")
    # delivered before the account was known, it was marked by the poll or by its later decision
    assert {row[0] for row in await bots.fetchall()} <= {"draftsman-bot"}


async def test_the_secret_of_a_repository_proves_its_own_events_only(
    site: ForgeHarness, rt: Runtime, conn: Connection
) -> None:
    def hook(project: str, secret: str) -> tuple[bytes, dict[str, str]]:
        comment = {"id": 1, "user": {"login": "anna"}, "body": "/draftsman fix this"}
        body = {"action": "created", "issue": {"number": 7}, "comment": comment}
        body["repository"] = {"full_name": project}
        return github_webhook("issue_comment", body, secret)

    async with receiving(site, rt) as (_, url):
        for project, secret, status in (
            ("Acme/own", OWN, 200),
            ("acme/own", SECRET, 401),
            ("acme/pay", OWN, 401),
            ("acme/pay", SECRET, 200),
        ):
            assert (await deliver(url, *hook(project, secret)))[0] == status, (project, secret)
        _, text = await deliver(url, *hook("acme/own", "other"))
        assert "is [forges.acme] webhook_secrets that of the webhook?" in text
        for body in (b"[1]", b'{"repository": 1}', b"{", b"[" * 100_000):
            assert (await deliver(url, body, {"X-GitHub-Event": "push"}))[0] == 401
    found = await conn.execute("SELECT project FROM draftsman.forge_events ORDER BY project")
    assert [row[0] for row in await found.fetchall()] == ["acme/own", "acme/pay"]


async def test_the_branch_of_a_reopened_pull_request_stays(
    site: ForgeHarness, rt: Runtime, make: Factory, conn: Connection
) -> None:
    number = (await site.open(site.push())).pull.number
    table = site.table(events="poll", delete_branch=True)
    update = {"forges": {"acme": table}, "http": site.settings.http}
    changed = replace(rt, settings=rt.settings.model_copy(update=update))
    await conn.execute(
        "INSERT INTO draftsman.pull_requests"
        " (root, forge, project, number, url, branch, base, head, state, ended_at)"
        " VALUES (%s, 'acme', 'acme/pay', %s, 'u', %s, 'main', 'h', 'closed', draftsman.now())",
        (await make.job_in(Status.COMPLETED), number, BRANCH),
    )
    for state, stays in (("open", True), ("closed", False)):
        site.fake.world.pulls[0].state = state
        await conn.execute("UPDATE draftsman.pull_requests SET branch_deleted_at = NULL")
        await delete_branches(changed, "acme", RepoIsolation("acme", HealthState()).attempt)
        assert (site.fake.world.head(BRANCH) is not None) == stays
