"""Commands of agents as they are started."""

from __future__ import annotations

from pathlib import Path

import pytest

from draftsman.sandbox.processes.environment import agent_command
from draftsman.settings.agents import AgentSettings

CODEX = Path("node_modules/@openai/codex")
PLATFORMS = ("node_modules/@openai", "node_modules/@openai/codex/node_modules/@openai")


def write(path: Path) -> Path:
    """Create a program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def started(program: Path) -> str:
    """Return the program that the adapter of Codex starts."""
    agent = AgentSettings.of({"kind": "codex", "command": [str(program), "app-server"]})
    command = agent_command(agent)
    assert command[-1] == "app-server"
    return command[-2]


@pytest.mark.parametrize("platforms", PLATFORMS)
def test_the_script_of_an_npm_package_is_replaced_by_its_program(
    tmp_path: Path, platforms: str
) -> None:
    script = write(tmp_path / CODEX / "bin/codex.js")
    native = write(tmp_path / platforms / "codex-linux-x64/vendor/x86_64-linux/bin/codex")
    link = tmp_path / "bin" / "codex"
    link.parent.mkdir()
    link.symlink_to(script)
    assert started(link) == str(native)


def test_other_programs_are_started_as_they_are(tmp_path: Path) -> None:
    program = write(tmp_path / "bin/codex")
    script = write(tmp_path / CODEX / "bin/codex.js")
    assert started(program) == str(program)
    assert started(script) == str(script), "without a program of this platform"
