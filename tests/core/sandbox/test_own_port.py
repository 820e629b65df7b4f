"""Programs under Landlock that need more than files: a port of their own, and other packages."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from draftsman.sandbox.processes.process import AgentProcess
from draftsman.sandbox.run_sandbox import open_run_sandbox
from draftsman.settings.agents import AgentSettings
from draftsman.settings.sandbox import SandboxSettings

LISTEN = """
import os, socket, sys
port = int(sys.argv[1])
server = socket.create_server(("127.0.0.1", port))
client = socket.create_connection(("127.0.0.1", port))
print(os.environ["SECRET"] == sys.argv[2], len(sys.argv[2]) > 20)
for number in (0, port + 1):
    try:
        print(socket.create_server(("127.0.0.1", number)).getsockname())
    except PermissionError:
        print("refused")
"""


async def output_of(agent: AgentSettings, mode: str, folder: Path) -> tuple[str, int, str]:
    """Return the output, the exit code and the errors of a program without input."""
    errors = bytearray()

    async def on_stderr(chunk: bytes) -> None:
        errors.extend(chunk)

    repo, home = folder / "repo", folder / "home"
    settings = SandboxSettings.model_validate({"mode": mode})
    sandbox = await open_run_sandbox(settings, repo=repo, home=home)
    try:
        async with await AgentProcess.start(
            agent, cwd=repo, home=home, lease=60, on_stderr=on_stderr, sandbox=sandbox
        ) as process:
            process.close_input()
            chunks = [chunk async for chunk in process.chunks()]
            code = await process.wait()
    finally:
        sandbox.close()
    return b"".join(chunks).decode(), code, errors.decode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("repo", "home"):
        (tmp_path / name).mkdir()
    return tmp_path


@pytest.mark.parametrize("mode", ["bwrap", "landlock"])
async def test_a_program_listens_on_the_port_that_its_command_names(
    mode: str, folder: Path
) -> None:
    command = ("{python}", "-c", LISTEN, "{port}", "{port_secret}")
    agent = AgentSettings(command=command, env={"SECRET": "{port_secret}"})
    output, code, errors = await output_of(agent, mode, folder)
    assert code == 0, errors
    first, *others = output.splitlines()
    assert first == "True True"
    if mode == "landlock":
        assert others == ["refused", "refused"]


@pytest.mark.parametrize("mode", ["bwrap", "landlock", "user"])
@pytest.mark.parametrize("kind", ["claude", "codex", "acp"])
async def test_an_adapter_starts_in_each_sandbox(mode: str, kind: str, folder: Path) -> None:
    """It ends at the end of its input; its package may be outside of site-packages."""
    if mode == "user" and os.geteuid() != 0:
        pytest.skip("the mode user needs root")
    agent = AgentSettings.of({"kind": kind, "command": ["true"]})
    assert await output_of(agent, mode, folder) == ("", 0, "")
