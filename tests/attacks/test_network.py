"""Attacks by the URL of a repository, and by HTTP requests."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from pathlib import Path

import pytest

from draftsman.agent_runs.clones.source import RepoSource
from draftsman.errors import Failure, UsageError
from draftsman.jobs.job import Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.outbound.egress_policy import IpAddress
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman.settings.http import HttpSettings
from draftsman_bots.process.http_protocols import TimedProtocol
from draftsman_bots.slack.health import BotHealth
from draftsman_bots.slack.transport.http_app import application
from draftsman_testing.factories import Factory
from tests.acceptance.processes import Installation
from tests.attacks.catalog import attack
from tests.bots.process.test_http import HALF, asked, closed, opened, served
from tests.core.worker.agent_jobs import git, make_repository
from tests.core.worker.workers import wait_for_status
from tests.support.git_http import GitServer, git_server

S = Status


@pytest.fixture
def forge(tmp_path: Path) -> Iterator[GitServer]:
    """Give a git server on the worker's own loopback interface."""
    (tmp_path / "served").mkdir()
    make_repository(tmp_path / "served" / "pay")
    with git_server(tmp_path / "served") as forge:
        yield forge


@attack(
    "A repository's URL leads to a server on the worker's own loopback interface",
    surface="network",
    with_sandbox="refused before a connection is made; http.allow can permit it",
)
@attack(
    "A repository's URL leads to the cloud's metadata service",
    surface="network",
    with_sandbox="refused before a connection is made",
)
@attack(
    "A repository's URL is a command: ext::sh -c …",
    surface="network",
    with_sandbox="refused; only http, https, ssh and git are transports",
)
async def test_a_worker_reaches_no_private_address(
    rt: Runtime, make: Factory, installation: Installation, forge: GitServer, tmp_path: Path
) -> None:
    canary = tmp_path / "canary"
    urls = {
        f"http://127.0.0.1:{forge.port}/pay": "127.0.0.1 is a loopback address",
        "http://169.254.169.254/latest/meta-data": "169.254.169.254 is a link-local address",
        f"ext::sh -c touch% {canary}": "neither an absolute path nor a URL",
    }
    numbers = {
        await make.queued(type="run_agent", queue="default", agent="tidy", repo=repo): problem
        for repo, problem in urls.items()
    }
    installation.start("worker")
    for number, problem in numbers.items():
        assert problem in str((await wait_for_status(rt, number, S.FAILED)).last_error)
    assert forge.asked == []
    assert not canary.exists()


async def fetch(url: str, folder: Path, address: str, *allow: str) -> str:
    """Fetch from a URL whose host resolves to an address; return the commit."""

    async def resolve(host: str, port: int) -> list[IpAddress]:
        return [ipaddress.ip_address(address)]

    mirror = folder / "mirror.git"
    git("init", "-q", "--bare", str(mirror), cwd=folder)
    source = RepoSource(url, HttpSettings(allow=allow), resolve)
    return await source.fetch(mirror, None, "refs/draftsman/test")


@attack(
    "A name resolves to a public address when it is checked, and to loopback when git connects",
    surface="network",
    with_sandbox="git connects to the address that was checked",
)
async def test_a_rebound_name_reaches_no_private_address(forge: GitServer, tmp_path: Path) -> None:
    url = f"http://localhost:{forge.port}/pay"
    with pytest.raises(Failure, match="Failed to connect to localhost"):
        await fetch(url, tmp_path, "127.0.0.9", "127.0.0.9")
    assert forge.asked == []
    pinned = f"pinned.test:{forge.port}"
    commit = await fetch(f"http://{pinned}/pay", tmp_path, "127.0.0.1", "127.0.0.1")
    assert commit == git("rev-parse", "HEAD", cwd=forge.folder / "pay")
    assert {request.split()[0] for request in forge.asked} == {pinned}


@attack(
    "A git server redirects to an internal address",
    surface="network",
    with_sandbox="redirects are not followed",
)
async def test_a_redirect_is_not_followed(forge: GitServer, tmp_path: Path) -> None:
    forge.leads["/old"] = f"http://127.0.0.1:{forge.port}/pay"
    url = f"http://allowed.test:{forge.port}/old"
    with pytest.raises(Failure, match="use the URL that it redirects to") as refused:
        await fetch(url, tmp_path, "127.0.0.1", "allowed.test")
    assert refused.value.code == "redirected"
    assert {request.split()[1] for request in forge.asked} == {"/old/info/refs"}


@attack(
    "A request from chat names a folder of the worker's machine",
    surface="network",
    with_sandbox="refused when it is submitted",
)
@pytest.mark.parametrize("folder", ["/etc", "file:///etc", "../x", "~/secret"])
@pytest.mark.parametrize("channel", ["slack", "trello"])
async def test_a_request_by_chat_cannot_name_a_local_folder(
    rt: Runtime, channel: str, folder: str
) -> None:
    actor = Actor(channel, "U1", "anna", owner=True)
    for fields in ({"repo": folder}, {"payload": {"repo": {"source": folder}}}):
        with pytest.raises(UsageError, match="requests from chat cannot name a local folder"):
            await rt.submissions.submit(invocation(agent="tidy", text="x", **fields), actor)
    assert await rt.read_model.jobs() == []


@attack(
    "Half-open requests fill the bots' HTTP until Slack and Trello get 503",
    surface="network",
    with_sandbox="the oldest are closed; a request has 10 s to arrive",
)
async def test_half_open_requests_do_not_block_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TimedProtocol, "max_incomplete", 5)
    monkeypatch.setattr(TimedProtocol, "arrival_timeout", 60)
    async with served(application(None, "", BotHealth())) as port:
        pairs = [await opened(port, HALF) for _ in range(20)]
        assert all([await closed(pair) for pair in pairs[:14]])
        assert await asked(port, "/healthz") == 200
        for _, writer in pairs:
            writer.close()
