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
from draftsman.agent_runs.clones.workspace import Workspace
from draftsman.errors import Failure
from draftsman.forges.api.connection import git_location_of, git_login_of
from draftsman.forges.pull_request import CommitStatus
from draftsman.jobs.retries import ErrorClass, classify
from draftsman_testing.fake.server import FakeServer, ServerState
from tests.attacks.catalog import attack
from tests.core.forges.api_contract import BRANCH, COMMITS, FAKES, ForgeHarness, forge_harness

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


async def test_git_follows_the_forge_and_no_redirect(site: ForgeHarness, tmp_path: Path) -> None:
    """Its API tells the new address; a redirect of git itself could lead anywhere."""
    url = site.fake.url
    world = site.fake.world
    commit = site.push()
    world.rename("acme/payments")
    login = git_login_of(site.settings, url)
    alone = RepoSource.of(url, site.settings.http, login)
    with pytest.raises(Failure) as refused:
        await alone.tips(tmp_path, ["HEAD"])
    assert refused.value.code == "redirected"
    source = RepoSource.of(url, site.settings.http, login, git_location_of(site.settings, url))
    assert (await source.tips(tmp_path, ["HEAD"]))["HEAD"] == COMMITS[0]
    workspace = await Workspace.prepare(tmp_path / "data", source, job=7, run=1, base=BRANCH)
    assert workspace.base_sha == commit
    (workspace.path / "a.txt").write_text("two\n")
    snapshot = await workspace.snapshot("m")
    await workspace.publish(snapshot)
    assert world.head("draftsman/D-7") == snapshot.commit
    await workspace.remove()


async def test_git_says_so_where_the_forge_knows_no_other_address(
    site: ForgeHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = site.fake.url
    locate = git_location_of(site.settings, url)
    assert locate is not None
    assert await locate() is None
    ssh = f"git@{url.split('/')[2].split(':')[0]}:acme/pay.git"
    assert git_location_of(site.settings, ssh) is None


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
