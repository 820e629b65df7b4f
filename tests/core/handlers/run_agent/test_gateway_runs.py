"""Runs of agents that call their model through the gateway."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from draftsman.domain.job import Status
from draftsman.handlers import registry
from draftsman.runtime import Runtime, wire
from draftsman.settings import GatewaySettings, PriceSettings, SandboxSettings
from tests.core.loops.agent_jobs import agent, make_repository, submit_agent_job
from tests.core.loops.workers import running_worker, runtime_with, wait_for_end
from tests.factories import Factory
from tests.support.faulty_server import FaultyServer, answer, web

KEY = "sk-the-real-key"
CALL = """
import urllib.error, urllib.request
def call(**fields):
    url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
    headers = {"x-api-key": os.environ["ANTHROPIC_API_KEY"], "content-type": "application/json"}
    body = json.dumps({"model": "claude-x", **fields}).encode()
    request = urllib.request.Request(url, body, headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        return json.load(error)
"""
REPLY = {"model": "claude-x", "usage": {"input_tokens": 1000, "output_tokens": 100}}
PRICE = {"input": 3, "output": 15, "date": "2026-11-01", "source": "test"}


@pytest.fixture
async def provider(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FaultyServer]:
    monkeypatch.setenv("KEY_OF_TEST", KEY)
    async with web() as provider:
        body = json.dumps(REPLY).encode()
        provider.routes["/v1/messages"] = answer(body, content_type="application/json")
        yield provider


def with_gateway(
    rt: Runtime, tmp_path: Path, provider: FaultyServer, code: str, mode: str = "auto", **entry: Any
) -> Runtime:
    """Return services with an agent of this code that has a gateway to the provider."""
    gateway = {
        "provider": "anthropic",
        "base_url": provider.url("/"),
        "api_key": {"env": "KEY_OF_TEST"},
    }
    agents = {"test": {**agent(CALL + code), "gateway": "model", **entry}}
    base = runtime_with(rt, data_dir=tmp_path / "data", agents=agents)
    update: dict[str, Any] = {
        "gateways": {"model": GatewaySettings.model_validate(gateway)},
        "prices": {"claude-*": PriceSettings.model_validate(PRICE)},
        "sandbox": SandboxSettings.model_validate({"mode": mode}),
    }
    return wire(base.settings.model_copy(update=update), rt.db, False)


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
say("result", summary=json.dumps([reply, "sk-" in environment, provider]))
"""


@pytest.mark.parametrize("mode", ["bwrap", "landlock", "off"])
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
