"""Programs that are not on the host, and commands that end with the same exit codes."""

from __future__ import annotations

import sys
from pathlib import Path

from draftsman.agent_runs.clones.source import RepoSource
from draftsman.agent_runs.clones.workspace import Workspace
from draftsman.agent_runs.validation.commands import CommandRunner, missing_module
from draftsman.agent_runs.validation.fresh_clone import FreshClone
from draftsman.settings.profiles import CommandSettings
from draftsman.settings.sandbox import SandboxSettings
from tests.core.worker.agent_jobs import git, make_repository

COMMANDS = {
    "no program": ["no-such-program"],
    "no module": ["{python}", "-m", "no_such_module.check"],
    "a deleted script": ["./check.sh"],
    "a script that calls a deleted one": ["sh", "-c", "./tools/run"],
    "a deleted module": ["{python}", "-m", "check"],
    "an exit code": ["sh", "-c", "exit 126"],
}


async def test_a_tool_that_the_work_deleted_is_not_missing_on_the_host(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "source", a="one\n")
    for name in ("check.py", "check.sh"):
        (source / name).write_text("")
    git("add", "-A", cwd=source)
    git("commit", "-qm", "tools", cwd=source)
    base = git("rev-parse", "HEAD", cwd=source)
    git("rm", "-q", "check.py", "check.sh", cwd=source)
    git("commit", "-qm", "deleted", cwd=source)
    workspace = await Workspace.prepare(tmp_path / "data", RepoSource.of(str(source)), job=1, run=1)
    workspace = await workspace.with_sandbox(SandboxSettings())
    clone = FreshClone(workspace, CommandRunner(workspace, "", {}, 60.0), None, base)
    missing = {}
    for name, command in COMMANDS.items():
        line = tuple(part.replace("{python}", sys.executable) for part in command)
        result = await clone.run(CommandSettings(name=name, command=line))
        assert not result.passed
        if result.missing:
            missing[name] = result.exit_code
    assert missing == {"no program": 127, "no module": 1}
    await workspace.remove()


def test_the_missing_module_is_that_of_the_command() -> None:
    line = ("python3", "-m", "tools.check")
    assert missing_module(line, "No module named 'tools'") == "tools"
    assert missing_module(line, "No module named 'other'") is None
    assert missing_module(("sh",), "No module named 'tools'") is None
