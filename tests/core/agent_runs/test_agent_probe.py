"""Probes of agents: a prompt, the sandbox and the gateway, without a job."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

from draftsman.agent_runs.agent_probe import AgentProbe, probe_agent
from draftsman.settings import settings_model
from draftsman.settings.agents import known_table
from tests.core.worker.agent_jobs import agent
from tests.support.fake_model import FREE, fake_model

CALL: Final = """
import urllib.request
url = os.environ["OPENAI_BASE_URL"] + "/responses"
headers = {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
body = {"model": "fake-1", "stream": True, "input": [], "tools": []}
request = urllib.request.Request(url, json.dumps(body).encode(), headers)
urllib.request.urlopen(request, timeout=30).read()
say("checkpoint", id="c", data=1)
say("result", summary=f"{hear()['type']} {start['mode']} {start['request']['title'][:5]}")
"""


async def probe(code: str, timeout: float = 60, **entries: Any) -> AgentProbe:
    """Probe an agent of this code; `entries` are other settings."""
    values = {"agents": {"test": {**agent(code), **entries.pop("entry", {})}}, **entries}
    return await probe_agent(settings_model().model_validate(values), "test", timeout)


async def test_a_probe_calls_the_model_through_the_gateway() -> None:
    with fake_model([{"text": "ready"}]) as model:
        gateways = {"model": {"provider": "openai", "base_url": model.url}}
        known: dict[str, Any] = {"gateways": gateways, "entry": {"gateway": "model"}}
        result = await probe(CALL, prices={"*": FREE}, **known)
        unpriced = await probe(CALL, **known)
    assert not unpriced.succeeded
    assert (result.succeeded, result.text) == (True, "ack investigate Reply")
    assert result.tokens == 1020
    assert [call.model for call in result.calls] == ["fake-1"]


async def test_a_failed_probe_has_its_reason() -> None:
    asks = await probe('ask("k", text="Which color?")')
    assert asks.text == "it asks a question instead of a reply: Which color?"
    fails = await probe('say("error", message="no login", **{"class": "PERMANENT"})')
    assert fails.text == "no login"
    ends = await probe('sys.exit("out of memory")')
    assert ends.text == "exited with code 1 without a result: out of memory"
    slow = await probe("hear()", timeout=0.5)
    assert slow.text == "no reply within 0.5 s"
    assert not any(result.succeeded for result in (asks, fails, ends, slow))


async def test_codex_is_probed_through_its_adapter() -> None:
    fake = Path(__file__).parents[2] / "support" / "codex_agent.py"
    script = '[{"say": "ready"}]'
    command = [sys.executable, "-I", "-S", str(fake), script, "app-server"]
    result = await probe("", entry=dict(known_table("codex")) | {"command": command})
    assert (result.succeeded, result.text) == (True, "ready")
