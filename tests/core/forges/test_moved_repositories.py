"""Repositories that were renamed or transferred: calls follow them, but to no other host.

https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api
https://docs.gitlab.com/api/rest/#redirects
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiohttp import web

from draftsman.agent_runs.clones.source import RepoSource
from draftsman.errors import Failure
from draftsman.forges.api.connection import git_login_of
from draftsman.forges.pull_request import CommitStatus
from draftsman.jobs.retries import ErrorClass, classify
from draftsman_testing.fake.server import FakeServer, ServerState
from tests.attacks.catalog import attack
from tests.core.forges.api_contract import FAKES, ForgeHarness, forge_harness

EPOCH = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture(params=list(FAKES))
async def site(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[ForgeHarness]:
    async with forge_harness(request.param, tmp_path, monkeypatch) as harness:
        yield harness


async def test_all_calls_follow_a_renamed_repository(site: ForgeHarness) -> None:
    world = site.fake.world
    forge = site.forge
    commit = site.push()
    number = (await site.open(commit)).pull.number
    assert (await forge.location()).casefold() == "acme/pay"
    world.rename("acme/payments")
    assert await forge.location() == "acme/payments"
    assert await forge.default_branch() == "main"
    assert (await forge.account()).missing == ()
    assert (await forge.get(number)).head == commit
    assert [pull.number for pull in await forge.find("draftsman/D-1")] == [number]
    await forge.set_status(commit, CommitStatus(True, "D-1: passed"))
    await forge.add_labels(number, ["backend"])
    await forge.update(number, "New body")
    discussion = forge.discussion(number, is_pull=True)
    posted = await discussion.post("Done")
    assert posted.id in [comment.id for comment in await discussion.since(EPOCH)]
    seen = await forge.events().pull(number)
    assert {event.project for event in seen.events} <= {"acme/pay"}
    await forge.merge(number, commit, "merge")
    [pull] = world.pulls
    assert (pull.state, pull.body, pull.labels) == ("merged", "New body", ["backend"])
    assert world.head("main") == commit


async def test_git_does_not_follow_it_and_says_so(site: ForgeHarness, tmp_path: Path) -> None:
    url = site.fake.url
    site.fake.world.rename("acme/payments")
    source = RepoSource.of(url, site.settings.http, git_login_of(site.settings, url))
    with pytest.raises(Failure) as refused:
        await source.tips(tmp_path, ["HEAD"])
    assert refused.value.code == "redirected"


@attack(
    "A forge, or whoever answers for it, redirects a call to another host, which would get the"
    " token",
    surface="network",
    with_sandbox="the redirect is refused; the other host gets no request",
)
async def test_a_redirect_to_another_host_gets_no_token(
    site: ForgeHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = ServerState[str]()
    other = FakeServer(state)

    async def record(request: web.Request) -> web.Response:
        state.record(str(request.rel_url))
        return web.json_response({})

    await other.start([web.route("*", "/{path:.*}", record)], 1000)
    forge = site.forge
    site.fake.world.rename("acme/payments")
    try:
        for target in (f"{state.base}{site.fake.api}/repos/acme/payments", "/login"):
            monkeypatch.setattr(
                site.fake,
                "moved",
                lambda request, rest, target=target: web.Response(
                    status=307, headers={"Location": target}
                ),
            )
            with pytest.raises(Failure) as refused:
                await forge.default_branch()
            assert refused.value.code == "foreign_redirect"
            assert classify(refused.value) is ErrorClass.PERMANENT
            assert "does not get the token" in str(refused.value)
    finally:
        await other.stop()
    assert state.calls == []
