"""An agent of Python code that calls its model through the gateway, and its provider."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from draftsman.runtime import Runtime, wire
from draftsman.settings.llm import GatewaySettings, PriceSettings
from draftsman.settings.sandbox import SandboxSettings
from tests.core.worker.agent_jobs import agent
from tests.core.worker.workers import runtime_with
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
