"""A session of the real Claude Code outside of draftsman, whose team answers it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Final

import pytest

from draftsman.handlers import registry
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.acceptance.processes import COMMAND, Installation
from tests.core.worker.workers import running_worker, runtime_with

pytestmark = pytest.mark.timeout(400)
PROGRAM: Final = os.environ.get("CLAUDE") or shutil.which("claude")
SECONDS: Final = 120.0
NAMESPACE: Final = "-n" if os.geteuid() == 0 else "-rn"
"""A network without a way out; root of a user namespace could not reach the database."""
MODEL: Final = """
import json, os, subprocess, sys
from tests.support.fake_model import fake_model
with fake_model(json.loads(sys.argv[1])) as model:
    env = os.environ | {"ANTHROPIC_BASE_URL": model.url.removesuffix("/v1")}
    done = subprocess.run(sys.argv[2:], env=env, stdin=subprocess.DEVNULL)
    print(json.dumps(model.conversations[-1]))
sys.exit(done.returncode)
"""
"""A program that serves the model to a command."""
SCRIPT: Final = (
    {"tool": "Bash", "args": {"command": "echo yes >> ran.txt", "description": "append"}},
    {"tool": "Bash", "args": {"command": "echo no >> ran.txt", "description": "append"}},
    {
        "tool": "mcp__draftsman__ask_human",
        "args": {"question": "Which database?", "choices": ["PostgreSQL", "SQLite"]},
    },
    {"text": "all done"},
)


async def answer(rt: Runtime, make: Factory, number: int, part: str, text: str) -> None:
    """Answer the question of a job once it is open."""

    async def look() -> bool:
        jobs = await rt.read_model.jobs(limit=1)
        return bool(jobs) and jobs[0].number == number and bool(await rt.questions.open(number))

    await until(look, f"the question of D-{number}", SECONDS)
    assert part in (await rt.questions.get(number, 1)).text
    await make.answer(number, text)


async def test_the_hook_and_the_server_ask_the_team(
    rt: Runtime, make: Factory, tmp_path: Path, database_url: str
) -> None:
    if PROGRAM is None:
        pytest.skip("there is no Claude Code here: npm i @anthropic-ai/claude-code, and set CLAUDE")
    here = Installation(tmp_path / "here", database_url)
    (home := tmp_path / "home" / ".claude").mkdir(parents=True)
    own = " ".join(COMMAND)
    hook = {"type": "command", "command": f"{own} hook claude --wait 3m", "timeout": 240}
    entry = {"matcher": "Bash", "hooks": [hook]}
    (home / "settings.json").write_text(json.dumps({"hooks": {"PreToolUse": [entry]}}))
    arguments = [*COMMAND[1:], "mcp", "--wait", "3m"]
    servers = {"mcpServers": {"draftsman": {"command": COMMAND[0], "args": arguments}}}
    (work := tmp_path / "work").mkdir()
    command = [
        *("unshare", NAMESPACE, "sh", "-c", 'ip link set lo up; exec "$@"', "sh"),
        *(sys.executable, "-c", MODEL, json.dumps(SCRIPT), str(Path(PROGRAM).resolve())),
        *("-p", "do it", "--mcp-config", json.dumps(servers)),
        *("--allowedTools", "mcp__draftsman__ask_human"),
    ]
    environment = here.environment(
        HOME=str(home.parent),
        ANTHROPIC_API_KEY="x",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        DISABLE_AUTOUPDATER="1",
        ENABLE_TOOL_SEARCH="false",
    )
    async with running_worker(runtime_with(rt), registry.load({}), leader=True):
        program = await asyncio.create_subprocess_exec(
            *command, env=environment, cwd=work, stdout=asyncio.subprocess.PIPE
        )
        try:
            await answer(rt, make, 1, "$ echo yes >> ran.txt", "allow once")
            await answer(rt, make, 2, "$ echo no >> ran.txt", "not on a Friday")
            await answer(rt, make, 3, "Which database?", "SQLite")
            output, _ = await program.communicate()
        finally:
            if program.returncode is None:
                program.kill()
            here.close()
    assert program.returncode == 0
    said, conversation = output.decode().splitlines()
    assert said == "all done"
    assert "not on a Friday" in conversation
    assert "SQLite" in conversation.rpartition("tool_result")[2]
    assert (work / "ran.txt").read_text() == "yes\n"
