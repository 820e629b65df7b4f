"""The MCP server on the gateway's port, called by the real Claude Code with a scripted model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from draftsman.handlers import registry
from draftsman.runtime import Runtime, wire
from draftsman.settings.agents import known_table
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.core.worker.agent_jobs import make_repository, submit_agent_job
from tests.core.worker.workers import running_worker, wait_for_question
from tests.soak.soak_agent_budgets import SECONDS, with_agent
from tests.support.fake_model import fake_model

pytestmark = pytest.mark.timeout(400)
SERVER: Final = {
    "type": "http",
    "url": "${DRAFTSMAN_MCP_URL}",
    "headers": {"Authorization": "Bearer ${DRAFTSMAN_MCP_TOKEN}"},
}
ASK: Final = {"question": "Deploy?", "choices": ["yes", "no"]}


async def test_claude_asks_people_by_the_server_of_its_gateway(
    rt: Runtime, make: Factory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY_OF_TEST", "sk-test")
    number = await submit_agent_job(make, str(make_repository(tmp_path / "repo")), agent="claude")
    call = {"tool": "mcp__draftsman__ask_human", "args": ASK}
    with fake_model([call, call, {"text": "all done"}]) as model:
        services = with_agent(rt, tmp_path / "data", "claude", model)
        entry = services.settings.agents["claude"]
        allowed = known_table("claude")["allowed_tools"]
        config = json.dumps({"mcpServers": {"draftsman": SERVER}})
        entry = entry.model_copy(
            update={
                "command": (*entry.command, "--mcp-config", config),
                "allowed_tools": (*allowed, "mcp__draftsman__ask_human"),
            }
        )
        settings = services.settings.model_copy(update={"agents": {"claude": entry}})
        services = wire(settings, rt.db, False)
        async with running_worker(services, registry.load({}), leader=True, slots=1):

            async def asked() -> bool:
                job = await rt.read_model.job(number)
                assert job.last_error is None, job.last_error
                return bool((await rt.questions.of_job(number))[0])

            await until(asked, "the question", SECONDS)
            await wait_for_question(rt, number, 1)
            await make.answer(number, "yes")

            async def ended() -> bool:
                return (await rt.read_model.job(number)).finished_at is not None

            await until(ended, "the end", SECONDS)
    job = await rt.read_model.job(number)
    assert job.last_error is None
    (question,), _ = await rt.questions.of_job(number)
    assert question.text.endswith("Deploy?")
    reply = '"outcome":"answered","value":"yes"'
    assert reply in str(model.conversations), "the next run makes the same call"
