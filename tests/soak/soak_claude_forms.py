"""A form of an MCP server of the real Claude Code, with a scripted model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.worker.agent_jobs import submit_agent_job
from tests.soak.soak_claude import DONE, asked, claude, repo, scripted, summary_of

__all__ = ["repo"]
pytestmark = pytest.mark.timeout(400)
DESK: Final = """
import json, sys
def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method, number = message.get("method"), message.get("id")
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        info = {"name": "desk", "version": "1"}
        send(id=number, result={
            "protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
    elif method == "tools/list":
        tool = {"name": "form", "description": "ask", "inputSchema": {"type": "object"}}
        send(id=number, result={"tools": [tool]})
    elif method == "tools/call":
        call = number
        field = {"type": "string", "enum": ["PostgreSQL", "SQLite"]}
        schema = {"type": "object", "properties": {"database": field}, "required": ["database"]}
        send(id="form", method="elicitation/create", params={
            "mode": "form", "message": "Which database?", "requestedSchema": schema})
    elif number == "form":
        text = "the form has " + json.dumps(message["result"])
        send(id=call, result={"content": [{"type": "text", "text": text}]})
    elif method and number is not None:
        send(id=number, result={})
"""
"""An MCP server whose tool shows a form."""


@pytest.mark.parametrize("ask_grace", [60, 0])
async def test_a_form_of_an_mcp_server_is_a_question(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path, ask_grace: float
) -> None:
    number = await submit_agent_job(make, repo)
    server = {"command": "python3", "args": ["-I", "-c", DESK]}
    options = ("--mcp-config", json.dumps({"mcpServers": {"desk": server}}))
    call = {"tool": "mcp__desk__form", "args": {}}
    with scripted([call, DONE]) as model:
        async with claude(rt, tmp_path / "data", model, options=options, ask_grace=ask_grace):
            await asked(rt, number, 1)
            await make.answer(number, "allow for this job")
            assert await asked(rt, number, 2) == "claude asks:\n\nWhich database?"
            await make.answer(number, "SQLite", n=2)
            assert await summary_of(rt, number) == "all done"
    assert len(model.conversations) == 2, "the session makes the call by itself"
    last = json.dumps(model.conversations[-1])
    assert "the form has" in last
    assert "SQLite" in last
    assert len((await rt.questions.of_job(number))[0]) == 2
