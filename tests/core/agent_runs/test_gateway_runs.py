"""Runs of agents that call their model through the gateway."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from draftsman.handlers import registry
from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.agent_runs.gateway_agents import KEY, REPLY, provider, with_gateway
from tests.core.worker.agent_jobs import make_repository, submit_agent_job
from tests.core.worker.workers import running_worker, wait_for_end
from tests.support.faulty_server import FaultyServer

__all__ = ["provider"]
SEARCH = """
import pathlib, socket
reply = call(max_tokens=5)
environment = pathlib.Path("/proc/self/environ").read_bytes().decode()
try:
    socket.create_connection(("127.0.0.1", PORT), timeout=5)
    provider = "reached"
except OSError:
    provider = "refused"
say("usage", input_tokens=5, output_tokens=5, cost_usd=99.0)
say("result", summary=json.dumps([reply, "sk-the-real-key" in environment, provider]))
"""


@pytest.mark.parametrize(
    "mode", ["bwrap", "landlock", *(["user"] if os.geteuid() == 0 else []), "off"]
)
async def test_an_agent_without_network_or_key_calls_its_model(
    rt: Runtime,
    make: Factory,
    tmp_path: Path,
    provider: FaultyServer,
    mode: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    code = SEARCH.replace("PORT", str(provider.port))
    configured = with_gateway(rt, tmp_path, provider, code, mode, pass_env=["ANTHROPIC_API_KEY"])
    number = await submit_agent_job(make, make_repository(tmp_path / "repo"))
    async with running_worker(configured, registry.load({}), leader=False):
        job = await wait_for_end(rt, number)
    assert job.status is Status.COMPLETED, job.last_error
    assert job.result is not None
    reply, has_key, direct = json.loads(job.result["summary"])
    assert (reply, has_key) == (REPLY, False)
    assert direct == ("reached" if mode == "off" else "refused")
    assert [request.headers["x-api-key"] for request in provider.requests] == [KEY]
    [run] = await rt.read_model.runs(number)
    assert run.usage == {
        "input_tokens": 1000,
        "output_tokens": 100,
        "cost_usd": pytest.approx(0.0045),
        "models": ["claude-x"],
    }


async def test_a_request_that_is_not_allowed_stands_in_the_log_of_the_job(
    rt: Runtime, make: Factory, tmp_path: Path, provider: FaultyServer
) -> None:
    code = """
replies = [call(mcp_servers=[]) for _ in range(3)]
say("result", summary=replies[0]["error"]["message"])
"""
    configured = with_gateway(rt, tmp_path, provider, code, "off")
    number = await submit_agent_job(make, make_repository(tmp_path / "repo"))
    async with running_worker(configured, registry.load({}), leader=False):
        job = await wait_for_end(rt, number)
    assert job.result is not None, job.last_error
    reason = job.result["summary"].removeprefix("draftsman: ")
    assert reason.startswith("this gateway does not allow mcp_servers:")
    log = "".join(chunk.text for chunk in await rt.checkpoints.logs(number))
    assert log.count(f"[gateway] {reason}") == 1
    assert provider.requests == []
