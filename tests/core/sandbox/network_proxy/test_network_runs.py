"""Programs whose network is a list of hosts: agents, setup commands and tools."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from draftsman.handlers import registry
from draftsman.jobs.job import Job, Status
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import profile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime, wire
from draftsman.settings import Settings
from draftsman.settings.http import HttpSettings
from draftsman.settings.network import NetworkSettings
from draftsman_testing.factories import Factory
from tests.attacks.catalog import attack
from tests.core.agent_runs.gateway_agents import REPLY, provider, with_gateway
from tests.core.handlers.job_types.web_jobs import configured, done, log_of
from tests.core.worker.agent_jobs import make_repository, submit_agent_job
from tests.core.worker.workers import last_event, running_worker, wait_for_end
from tests.support.faulty_server import FaultyServer, answer, web

__all__ = ["provider"]
S = Status
FETCH = """
import http.client, json, socket, sys, urllib.error, urllib.request
def fetch(url):
    try:
        with urllib.request.urlopen(url, timeout=20) as response:
            return response.read().decode()
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.read().decode()}"
    except OSError as error:
        return type(error).__name__
def attempt(action):
    try: action()
    except OSError as error: return type(error).__name__
    return "reached"
def probe(allowed, other):
    host, port = allowed.split(":")
    direct = attempt(lambda: socket.create_connection((host, int(port)), timeout=5))
    name = attempt(lambda: socket.getaddrinfo("mirror.example", 443))
    return [fetch(f"http://{allowed}/"), fetch(f"http://{other}/"), direct, name]
"""
PROBE = """
reply = call(max_tokens=5)
say("result", summary=json.dumps([reply, *probe(ALLOWED, OTHER)]), data=start["limits"])
"""


@pytest.fixture
async def mirror() -> AsyncIterator[FaultyServer]:
    """A server at an address that the variable NO_PROXY does not exclude."""
    async with web("127.0.0.2") as server:
        server.routes["/"] = answer(b"hello")
        yield server


def with_hosts(rt: Runtime, *hosts: str) -> Runtime:
    """Return services with a group of hosts, whose private addresses are allowed."""
    update = {
        "http": HttpSettings(allow=("127.0.0.2",)),
        "networks": {"mirror": NetworkSettings(hosts=hosts)},
    }
    return wire(rt.settings.model_copy(update=update), rt.db, False)


async def run(rt: Runtime, make: Factory, configured: Runtime, repository: str | None) -> Job:
    number = await submit_agent_job(make, repository)
    async with running_worker(configured, registry.load({}), leader=False):
        return await wait_for_end(rt, number)


@attack(
    "A program ignores the proxy's variables, and connects or resolves names directly",
    surface="network",
    with_sandbox="its own network has no other host, and no name server",
    without_sandbox="such a program does not start",
)
async def test_an_agent_and_its_setup_reach_the_hosts_of_their_networks_only(
    rt: Runtime, make: Factory, tmp_path: Path, provider: FaultyServer, mirror: FaultyServer
) -> None:
    other = f"127.0.0.2:{mirror.port + 1}"
    probed = f"probe({mirror.place!r}, {other!r})"
    code = FETCH + PROBE.replace("probe(ALLOWED, OTHER)", probed)
    entry = {"network": ["mirror", other, "*.example.org"]}
    gateway = with_gateway(rt, tmp_path, provider, code, "bwrap", **entry)
    setup = ["{python}", "-I", "-S", "-c", f"{FETCH}\nprint(json.dumps({probed}))"]
    fields = {
        "setup_commands": [{"name": "install", "command": setup}],
        "network": ["mirror", "sub.example.org"],
        "validation_commands": [],
    }
    path = make_repository(tmp_path / "pay")
    repo = await rt.repos.add(Repo.at(parse(str(path))), profile(fields), make.owner)
    [saved] = await rt.repos.profiles(repo)
    assert saved.profile.network == ("mirror", "sub.example.org:443")
    job = await run(rt, make, with_hosts(gateway, mirror.place), str(path))
    assert job.status is S.COMPLETED, job.last_error
    reply, allowed, refused, direct, name = json.loads((job.result or {})["summary"])
    assert (reply, allowed) == (REPLY, "hello")
    assert (direct, name) == ("ConnectionRefusedError", "gaierror")
    assert refused.startswith(f'403 draftsman: {other} is not allowed; to allow it, add "{other}"')
    hosts = [mirror.place, "sub.example.org:443"]
    assert (job.result or {})["data"]["network"] == hosts
    assert (await last_event(rt, job.number, "sandbox_applied")).payload["network"] == hosts
    output = (await last_event(rt, job.number, "command_executed")).payload["output"]
    assert f"[network] refused: {other} is not allowed" in output
    assert '"hello"' in output
    log = await log_of(rt, job.number)
    assert log.count(f"[network] refused: {other} is not allowed") == 2, "of setup and agent"
    assert log.count(f"[network] {mirror.place}: 1 connections, ") == 2
    assert len(mirror.requests) == 2


async def test_a_profile_with_an_unknown_group_fails(
    rt: Runtime, make: Factory, tmp_path: Path, provider: FaultyServer
) -> None:
    path = make_repository(tmp_path / "pay")
    fields = {"network": ["nowhere"], "validation_commands": []}
    await rt.repos.add(Repo.at(parse(str(path))), profile(fields), make.owner)
    services = with_gateway(rt, tmp_path, provider, PROBE, network=True)
    job = await run(rt, make, with_hosts(services, "mirror.example"), str(path))
    assert job.status is S.FAILED
    assert "no group 'nowhere' in [networks]; groups: mirror" in (job.last_error or "")


async def test_a_tool_reaches_the_hosts_of_its_network_only(
    rt: Runtime, make: Factory, mirror: FaultyServer
) -> None:
    other = f"127.0.0.2:{mirror.port + 1}"
    code = f"{FETCH}\nprint(json.dumps(probe({mirror.place!r}, {other!r})))"
    tool = {"command": ["{python}", "-I", "-S", "-c", code], "network": [mirror.place]}
    services = configured(rt, mirror.place, tools={"it": tool | {"output_schema": {}}})
    job = await done(services, make, "execute_tool", {"tool": "it", "input": None})
    allowed, refused, direct, name = (job.result or {})["body"]
    assert (allowed, refused[:3], direct, name) == (
        "hello",
        "403",
        "ConnectionRefusedError",
        "gaierror",
    )
    assert "to network of [tools.it], or to a group in [networks]" in await log_of(rt, job.number)


@pytest.mark.parametrize("mode", ["landlock", "off"])
async def test_a_mode_that_cannot_limit_the_network_starts_no_program(
    rt: Runtime, make: Factory, mode: str
) -> None:
    tool: dict[str, Any] = {"command": ["echo", "started"], "network": ["mirror.example"]}
    base = configured(rt, tools={"it": tool})
    sandbox = base.settings.sandbox.model_copy(update={"mode": mode})
    services = wire(base.settings.model_copy(update={"sandbox": sandbox}), rt.db, False)
    job = await done(services, make, "execute_tool", {"tool": "it", "input": None})
    text = f"the sandbox mode '{mode}' cannot limit the network to named hosts"
    assert text in (job.last_error or "")
    assert (job.status, job.result) == (S.RETRYING, None)


def test_the_networks_of_the_configuration_are_checked() -> None:
    def problem(**tables: Any) -> str:
        with pytest.raises(ValueError, match="network") as error:
            Settings(**tables)
        return str(error.value)

    agents = {"test": {"command": ["x"], "network": ["debian", "a.example:80"]}}
    groups = {"debian": {"hosts": ["*.debian.example", "[::1]:80"]}}
    settings = Settings(agents=agents, networks=groups)
    network = settings.agents["test"].network
    assert settings.resolve_network(network) == (
        "*.debian.example:443",
        "[::1]:80",
        "a.example:80",
    )
    assert settings.resolve_network(()) is False
    assert "agents.test.network: no group 'debian' in [networks]" in problem(agents=agents)
    assert "use lower-case letters" in problem(networks={"De.b": {"hosts": ["a.example"]}})
    for wrong in ("x", 1, ["https://a.example"], ["a.example:0"], ["*"], ["a b"], [1]):
        tools = {"it": {"command": ["x"], "network": wrong}}
        assert "must be true, false" in (text := problem(tools=tools)) or "host:port" in text
