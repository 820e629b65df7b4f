"""Commands that could not run, and commands that end with the same exit codes."""

from __future__ import annotations

import sys
from pathlib import Path

from draftsman.agent_runs.clones.source import RepoSource
from draftsman.agent_runs.clones.workspace import Workspace
from draftsman.agent_runs.validation.commands import CommandRunner, missing_module
from draftsman.agent_runs.validation.fresh_clone import FreshClone
from draftsman.agent_runs.validation.validation import Validation
from draftsman.repos.command_exits import ANY, error_exits
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


RUFF = ("{python}", "-P", "-m", "ruff", "check", ".")


async def test_a_command_that_could_not_run_names_the_file_and_the_reason(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "source", a="one\n")
    (source / "ruff.toml").write_text("tool = 1\n")
    git("add", "-A", cwd=source)
    git("commit", "-qm", "invalid", cwd=source)
    workspace = await Workspace.prepare(tmp_path / "data", RepoSource.of(str(source)), job=1, run=1)
    workspace = await workspace.with_sandbox(SandboxSettings())
    clone = FreshClone(workspace, CommandRunner(workspace, "", {}, 60.0))
    line = tuple(part.replace("{python}", sys.executable) for part in RUFF)
    result = await clone.run(CommandSettings(name="lint", command=line))
    assert (result.exit_code, result.missing, result.checked) == (2, False, False)
    assert result.summary.startswith("could not run (exit 2): ruff failed; Cause: Failed to ")
    assert "parse ruff.toml; " in result.summary
    assert result.summary.endswith("unknown field `tool`")
    none_ran = Validation(commands=(result,))
    assert none_ran.add_to({"summary": "done"})["summary"] == (
        f"done; no validators ran: lint {result.summary}"
    )
    await workspace.remove()


async def test_the_next_command_does_not_see_the_changes_of_another(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "source", a="one\n", b="one\n")
    workspace = await Workspace.prepare(tmp_path / "data", RepoSource.of(str(source)), job=1, run=1)
    workspace = await workspace.with_sandbox(SandboxSettings())
    clone = FreshClone(workspace, CommandRunner(workspace, "", {}, 60.0))
    commands = {
        "setup": "echo setup >>a.txt",
        "fixes": "echo fixed; echo two >a.txt; rm b.txt; mkdir b.txt; echo x >built",
        "checks": "cat a.txt b.txt built",
    }
    results = {}
    for name, text in commands.items():
        command = CommandSettings(name=name, command=("sh", "-c", text))
        if name == "setup":
            await clone.runner.run(command)
            await workspace.keep_tracked()
        else:
            results[name] = await clone.run(command)
    assert results["fixes"].output == "fixed\nundone: its changes of 2 files"
    assert results["checks"].output == "one\nsetup\none\nx\n"
    await workspace.remove()


LINES = """
eslint .
npx --no-install eslint .
yarn run eslint
uv run eslint .
ruff check .
{python} -P -m ruff check
uvx ruff check
pypy3 -m ruff check
"""
OTHER_LINES = """
ruff format --check .
make check
npx tsc
python3 -m mypy .
npm run x
"""


def test_exit_codes_are_those_of_the_program_that_a_command_starts() -> None:
    found = {line: error_exits(line.split()) for line in (LINES + OTHER_LINES).split("\n") if line}
    assert [line for line, exits in found.items() if 2 in exits] == LINES.split("\n")[1:-1]
    assert {found[line] for line in OTHER_LINES.split("\n")[1:-1]} == {ANY}


def test_the_missing_module_is_that_of_the_command() -> None:
    line = ("python3", "-m", "tools.check")
    assert missing_module(line, "No module named 'tools'") == "tools"
    assert missing_module(line, "No module named 'other'") is None
    assert missing_module(("sh",), "No module named 'tools'") is None
