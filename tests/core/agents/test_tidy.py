"""The agent `tidy` on real repositories, driven through the protocol as a worker drives it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from draftsman.agent_runs.clones.git import git_environment
from draftsman.agent_runs.clones.sample_repo import make_sample_repo
from draftsman.agent_runs.clones.source import RepoSource
from draftsman.agent_runs.clones.workspace import Workspace
from draftsman.agent_runs.protocol.agent_messages import (
    ActivityMessage,
    ArtifactMessage,
    AskMessage,
    CheckpointMessage,
    ErrorMessage,
    EventMessage,
    FromAgent,
    ResultMessage,
)
from draftsman.agent_runs.protocol.protocol import (
    AgentErrorClass,
    ParkMessage,
    RefusedMessage,
    ToAgent,
)
from draftsman.sandbox.processes.process import MalformedLine
from draftsman.settings.profiles import CommandSettings, FixSettings, ProfileSettings
from tests.core.agents.driver import (
    DEADLINE,
    AgentTranscript,
    reply_with,
    run_agent,
    start_in,
)
from tests.core.agents.tidy_host import RUFF, TIDY, Host
from tests.core.worker.agent_jobs import running_with
from tests.support.slow import slow_except

SED = ProfileSettings(
    validation_commands=(
        CommandSettings(name="one", command=("grep", "-q", "ONE", "notes.txt")),
        CommandSettings(name="two", command=("grep", "-q", "TWO", "notes.txt")),
    ),
    fix_commands=(
        FixSettings(name="one", command=("sed", "-i.bak", "s/one/ONE/", "notes.txt")),
        FixSettings(name="backup", command=("rm", "-f", "notes.txt.bak")),
        FixSettings(name="two", command=("sed", "-i.bak", "s/two/TWO/", "notes.txt"), level="all"),
    ),
)


@pytest.fixture
async def sample(tmp_path: Path) -> Path:
    await make_sample_repo(tmp_path / "sample")
    return tmp_path / "sample"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository without any Python."""
    return make_repository(tmp_path / "repository", {"notes.txt": "one\ntwo\n"})


def make_repository(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    for command in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "first")):
        subprocess.run(["git", *command], cwd=folder, env=git_environment(), check=True)
    return folder


def run_its_tests(folder: Path) -> None:
    command = [sys.executable, "-m", "unittest", "-q", "tests.test_stock"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


async def tidy(
    source: Path, answers: dict[str, str | None], profile: ProfileSettings = RUFF, **more: Any
) -> tuple[Workspace, AgentTranscript]:
    workspace = await Workspace.prepare(
        source.parent / "data", RepoSource.of(str(source)), job=1, run=1
    )
    start = start_in(workspace, profile, **more)
    transcript = await run_agent(TIDY, start, workspace.path, workspace.home, reply_with(answers))
    workspace = replace(workspace, sandbox=transcript.sandbox)
    assert transcript.of(MalformedLine) == []
    return workspace, transcript


def script(name: str, code: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "command": ("{python}", "-c", code), **more}


async def test_question_shows_the_number_of_changes_of_the_fixers(sample: Path) -> None:
    host = Host(sample)
    transcript = await run_to_end(host, {})
    assert transcript.code == 0
    [ask] = transcript.of(AskMessage)
    assert ask.key == "apply"
    assert ask.text == "Which fixes should be applied to sample?"
    assert [choice.value for choice in ask.choices] == ["safe fixes", "all fixes", "nothing"]
    safe, all_fixes, no_fixes = (choice.description for choice in ask.choices)
    counts = [int(text.split()[0]) for text in (safe, all_fixes)]
    assert counts == sorted(counts)
    assert counts[0] > 10
    assert " findings in 4 files, +" in safe
    assert no_fixes == "make no changes"
    assert ask.context.startswith("lint: Found ")
    snapshot = await host.workspace.snapshot("untouched")
    assert snapshot.files_changed == 0
    assert list(host.workspace.home.iterdir()) == []
    await safe_fixes_are_applied(host.fork("safe"))
    for answer in ("nothing", None):
        await nothing_is_applied(host.fork(f"{answer}"), answer)


async def safe_fixes_are_applied(host: Host) -> None:
    """Answer the question; the other findings are reported, and no command runs again."""
    transcript = await run_to_end(host, {"apply": "safe fixes"})
    workspace = replace(host.workspace, sandbox=transcript.sandbox)
    [result] = transcript.of(ResultMessage)
    assert result.summary.startswith("safe fixes applied to 4 files; lint: Found ")
    assert result.data["level"] == "safe fixes"
    assert result.data["files_changed"] == 4
    assert [check["passed"] for check in result.data["before"]] == [False, False]
    assert [check["passed"] for check in result.data["after"]] == [False, True]
    snapshot = await workspace.snapshot("safe")
    assert snapshot.files_changed == 4
    code = (workspace.path / "inventory" / "stock.py").read_text()
    assert "import os" not in code
    assert "item == None" in code
    [artifact] = transcript.of(ArtifactMessage)
    report = (await workspace.read_artifact(artifact.path)).decode()
    assert report.startswith("# tidy: sample\n\nsafe fixes applied to 4 files")
    assert transcript.code == 0
    kinds = [event.kind for event in transcript.of(EventMessage)]
    assert kinds == 2 * ["command_executed"] + 2 * ["validation_ran"]


async def nothing_is_applied(host: Host, answer: str | None) -> None:
    """Answer the question with "nothing", or let it expire."""
    transcript = await run_to_end(host, {"apply": answer})
    [result] = transcript.of(ResultMessage)
    assert result.summary.startswith("nothing applied, as chosen; lint: Found ")
    assert (result.data["level"], result.data["files_changed"]) == ("nothing", 0)
    assert (await host.workspace.snapshot("nothing")).files_changed == 0


async def run_to_end(host: Host, answers: dict[str, str | None]) -> AgentTranscript:
    async for _ in host.run(answers):
        pass
    assert host.heard.of(MalformedLine) == []
    return host.heard


async def test_tree_passes_and_works_after_all_fixes(sample: Path) -> None:
    workspace, transcript = await tidy(sample, {"apply": "all fixes"})
    [result] = transcript.of(ResultMessage)
    assert result.summary == "all fixes applied to 4 files; all validators pass"
    assert "item is None" in (workspace.path / "inventory" / "stock.py").read_text()
    run_its_tests(workspace.path)
    kinds = [event.kind for event in transcript.of(EventMessage)]
    assert kinds == 2 * ["validation_ran"] + 3 * ["command_executed"] + 2 * ["validation_ran"]
    first = transcript.of(EventMessage)[0].payload
    assert (first["name"], first["exit_code"], first["passed"]) == ("lint", 1, False)
    assert first["command"].endswith("-m ruff check .")
    assert first["duration_seconds"] > 0
    assert len(first["output"]) < 5000


async def test_investigate_mode_changes_no_file(sample: Path) -> None:
    workspace, transcript = await tidy(sample, {}, mode="investigate")
    [result] = transcript.of(ResultMessage)
    assert result.summary.startswith("safe fixes: ")
    assert transcript.of(AskMessage) == []
    assert (await workspace.snapshot("nothing")).files_changed == 0


async def test_a_tidy_repository_causes_no_question(tmp_path: Path) -> None:
    clean = make_repository(tmp_path / "clean", {"code.py": '"""Nothing."""\n'})
    _, transcript = await tidy(clean, {})
    assert transcript.of(AskMessage) == []
    [result] = transcript.of(ResultMessage)
    assert result.summary == "nothing to fix; all validators pass"


async def test_a_repository_without_matching_files_gets_a_clear_result(repository: Path) -> None:
    _, transcript = await tidy(repository, {})
    [result] = transcript.of(ResultMessage)
    assert result.summary == (
        "nothing to fix: the repository has no files that the profile applies to"
    )


async def test_configured_fixers_run_and_new_files_are_counted(repository: Path) -> None:
    write = "import pathlib; pathlib.Path('notes.txt').write_text('ONE\\nTWO\\n')"
    make = "import pathlib; pathlib.Path('index.txt').write_text('1')"
    profile = ProfileSettings(
        validation_commands=(CommandSettings(**script("shout", "raise SystemExit(1)")),),
        fix_commands=(
            FixSettings(**script("upper", write)),
            FixSettings(**script("index", make, level="all")),
        ),
    )
    workspace, transcript = await tidy(repository, {"apply": "all fixes"}, profile)
    safe, all_fixes, _ = transcript.of(AskMessage)[0].choices
    assert safe.description == "changes in 1 file, +2 -2 lines"
    assert all_fixes.description == "changes in 2 files, +3 -2 lines"
    assert transcript.of(ResultMessage)[0].summary == "all fixes applied to 2 files; shout: exit 1"
    assert (workspace.path / "notes.txt").read_text() == "ONE\nTWO\n"


async def test_levels_with_the_same_changes_are_a_single_choice(repository: Path) -> None:
    def fixer(old: str, new: str, level: str) -> FixSettings:
        code = (
            "import pathlib; notes = pathlib.Path('notes.txt'); "
            f"notes.write_text(notes.read_text().replace({old!r}, {new!r}))"
        )
        return FixSettings(**script(level, code, level=level))

    async def choices(*fixers: FixSettings) -> dict[str, str]:
        profile = ProfileSettings(validation_commands=(), fix_commands=fixers)
        _, transcript = await tidy(repository, {"apply": "nothing"}, profile)
        [ask] = transcript.of(AskMessage)
        return {choice.value: choice.description for choice in ask.choices[:-1]}

    text = "changes in 1 file, +1 -1 lines"
    safe = fixer("one", "ONE", "safe")
    assert await choices(safe) == {"safe fixes": f"{text}; all fixes are the same"}
    assert await choices(fixer("two", "TWO", "all")) == {"all fixes": text}
    assert await choices(safe, fixer("one", "1", "all")) == {
        "safe fixes": text,
        "all fixes": f"{text} of another kind",
    }


FIXING = {"pyproject.toml": "[tool.ruff]\nfix = true\n", "code.py": "import os\nx = 1\n"}
"""A repository whose linter fixes it by itself."""


@pytest.mark.parametrize(
    "answer", slow_except(["nothing", "safe fixes"], ["nothing", None, "safe fixes"])
)
async def test_a_validator_that_fixes_changes_nothing_that_was_not_chosen(
    tmp_path: Path, answer: str | None
) -> None:
    source = make_repository(tmp_path / "source", FIXING | {"other.py": "import os\n"})
    profile = RUFF.model_copy(
        update={"validation_commands": (*RUFF.validation_commands, *SED.validation_commands[:1])}
    )
    workspace, transcript = await tidy(source, {"apply": answer}, profile)
    [ask] = transcript.of(AskMessage)
    described = {choice.value: choice.description for choice in ask.choices}
    snapshot = await workspace.snapshot("chosen")
    counts = (snapshot.files_changed, snapshot.insertions, snapshot.deletions)
    if answer in (None, "nothing"):
        assert counts == (0, 0, 0)
    else:
        files, *lines = counts
        text = f"in {files} files, +{lines[0]} -{lines[1]} lines"
        assert described[str(answer)].endswith(f"{text}; all fixes are the same"), described
    [result] = transcript.of(ResultMessage)
    assert result.data["files_changed"] == snapshot.files_changed


async def test_a_validator_does_not_see_the_changes_of_another(repository: Path) -> None:
    spoil = "import os, pathlib; pathlib.Path('notes.txt').unlink(); os.mkdir('notes.txt')"
    build = "import pathlib; pathlib.Path('built.txt').write_text('1')"
    profile = ProfileSettings(
        validation_commands=(
            CommandSettings(**script("spoils", f"{spoil}; {build}")),
            CommandSettings(name="notes", command=("grep", "-q", "one", "notes.txt")),
            CommandSettings(name="built", command=("test", "-f", "built.txt")),
        ),
        fix_commands=(),
    )
    workspace, transcript = await tidy(repository, {}, profile)
    [result] = transcript.of(ResultMessage)
    assert result.summary == "nothing to fix; all validators pass"
    assert (await workspace.snapshot("nothing")).files_changed == 0


RUFF_CHECK = ("{python}", "-P", "-m", "ruff", "check", ".")


async def test_a_command_that_cannot_run_fails_with_the_file_and_the_reason(
    tmp_path: Path,
) -> None:
    files = {"pyproject.toml": "[tool.ruff]\ntool = 1\n", "code.py": "x = 1\n"}
    source = make_repository(tmp_path / "source", files)
    lint = CommandSettings(name="lint", command=RUFF_CHECK)
    own = CommandSettings(**script("own", "print('own.toml: no rules'); exit(9)"), error_exits=(9,))
    fix = FixSettings(name="fix", command=(*RUFF_CHECK, "--fix"))
    reason = "Failed to parse pyproject.toml; Cause: TOML parse error at line 1, column 1"
    cases = {
        "lint": (ProfileSettings(validation_commands=(lint,), fix_commands=()), reason),
        "own": (ProfileSettings(validation_commands=(own,), fix_commands=()), "own.toml: no rules"),
        "fix": (ProfileSettings(validation_commands=(), fix_commands=(fix,)), reason),
    }
    for name, (profile, text) in cases.items():
        _, transcript = await tidy(source, {}, profile)
        [error] = transcript.of(ErrorMessage)
        assert (error.error_class, error.code) == ("PERMANENT", "command_failed"), name
        assert error.message.startswith(f"command {name!r} could not run (exit "), name
        assert text in error.message, name
        assert transcript.of(ResultMessage) == [], name
    optional = lint.model_copy(update={"required": False})
    profile = ProfileSettings(validation_commands=(optional,), fix_commands=())
    _, transcript = await tidy(source, {}, profile)
    [result] = transcript.of(ResultMessage)
    assert "lint: command 'lint' could not run (exit 2): ruff failed; Cause: " in result.summary
    assert result.summary.endswith("unknown field `tool`")


async def test_a_fixer_that_is_stopped_while_it_is_tried_is_an_error(repository: Path) -> None:
    fixer = FixSettings(**script("slow", "import signal; signal.pause()", timeout=0.5))
    profile = ProfileSettings(validation_commands=(), fix_commands=(fixer,))
    _, transcript = await tidy(repository, {}, profile)
    [error] = transcript.of(ErrorMessage)
    assert (error.error_class, error.code) == ("TRANSIENT_APP", "command_timeout")


MISSING: dict[str, tuple[tuple[str, ...], str]] = {
    "program": (("no-such-linter", "."), "program no-such-linter not found"),
    "module": (
        ("{python}", "-P", "-m", "no_such"),
        f"{sys.executable} has no module no_such",
    ),
    "shell": (("sh", "-c", "no-such-linter ."), "no-such-linter: not found"),
}
"""Commands of tools that are not installed, and how the errors name them."""


async def test_a_missing_tool_is_named(repository: Path) -> None:
    for name, (command, named) in MISSING.items():
        profile = ProfileSettings(
            validation_commands=(CommandSettings(name=name, command=command),), fix_commands=()
        )
        _, transcript = await tidy(repository, {}, profile)
        [error] = transcript.of(ErrorMessage)
        assert (error.error_class, error.code) == ("PERMANENT", "command_not_found"), name
        assert error.message.startswith(f"command {name!r}: ")
        assert f"{named}; install it" in error.message
        assert error.message.endswith("([sandbox] read_only), or change the profile"), name
        assert transcript.code == 1, name


async def test_a_missing_optional_tool_is_named_in_the_result(repository: Path) -> None:
    optional = tuple(
        CommandSettings(name=name, command=command, required=False)
        for name, (command, _) in MISSING.items()
    )
    profile = ProfileSettings(validation_commands=optional, fix_commands=())
    _, transcript = await tidy(repository, {}, profile)
    [result] = transcript.of(ResultMessage)
    assert result.summary.startswith("nothing to fix; ")
    for name, (_, named) in MISSING.items():
        assert f"; {name}: command {name!r}: " in result.summary
        assert named in result.summary


async def test_validators_that_hang_leave_a_child_or_a_file_or_print_too_much_do_not_disturb(
    repository: Path,
) -> None:
    hang = script("hang", "import signal; print('x', flush=True); signal.pause()", timeout=0.3)
    daemon = {"name": "daemon", "command": ("sh", "-c", "sleep 1000 & echo done")}
    leave = "open('.coverage', 'w').close()"
    long = script(
        "long", f"{leave}; print('first'); print('x' * 100_000); print('9 errors'); exit(1)"
    )
    commands = tuple(CommandSettings(**command) for command in (hang, daemon, long))
    profile = ProfileSettings(validation_commands=commands, fix_commands=())
    workspace, transcript = await tidy(repository, {}, profile)
    [result] = transcript.of(ResultMessage)
    assert result.summary == "nothing to fix; hang: timed out after 0 s; long: 9 errors"
    assert (await workspace.snapshot("files of validators")).files_changed == 0
    outcomes = [event.payload for event in transcript.of(EventMessage)]
    assert [outcome["passed"] for outcome in outcomes] == [False, True, False]
    payload = outcomes[-1]
    assert payload["output"].startswith("first\nxxx")
    assert payload["summary"] == "9 errors"
    assert "bytes omitted …" in payload["output"]
    assert len(payload["output"]) < 4100


async def test_a_slow_fixer_is_stopped_at_its_timeout(repository: Path) -> None:
    write = "import pathlib; pathlib.Path('notes.txt').write_text('changed')\n"
    slow = "import pathlib, signal\nif pathlib.Path('.git').is_dir(): signal.pause()\n"
    fixer = FixSettings(**script("slow", slow + write, timeout=1))
    profile = ProfileSettings(validation_commands=(), fix_commands=(fixer,))
    _, transcript = await tidy(repository, {"apply": "safe fixes"}, profile)
    [error] = transcript.of(ErrorMessage)
    assert (error.error_class, error.code) == ("TRANSIENT_APP", "command_timeout")
    assert (
        error.message
        == "fixer 'slow' exceeded its timeout of 1 s; increase the timeout in the profile"
    )


async def test_a_park_stops_a_running_command(repository: Path) -> None:
    workspace = await Workspace.prepare(
        repository.parent / "data", RepoSource.of(str(repository)), job=1, run=1
    )
    hang = script("hang", f"import signal; {(mark := repr(str(workspace.home)))}; signal.pause()")
    quick = CommandSettings(**script("quick", ""))
    profile = ProfileSettings(validation_commands=(quick, CommandSettings(**hang)), fix_commands=())

    def reply(message: FromAgent) -> ToAgent | None:
        return ParkMessage() if isinstance(message, EventMessage) else None

    start = start_in(workspace, profile)
    transcript = await run_agent(TIDY, start, workspace.path, workspace.home, reply)
    assert transcript.code == 0
    others = MalformedLine | ActivityMessage
    assert [message.type for message in transcript.messages if not isinstance(message, others)] == [
        "event"
    ]
    assert running_with(mark) == []


@pytest.mark.parametrize("error_class", ["PERMANENT", "TRANSIENT_APP"])
async def test_a_refused_checkpoint_ends_the_agent_with_one_line_and_its_class(
    repository: Path, error_class: AgentErrorClass
) -> None:
    workspace = await Workspace.prepare(
        repository.parent / "data", RepoSource.of(str(repository)), job=1, run=1
    )

    def reply(message: FromAgent) -> ToAgent | None:
        if message.id is None:
            return None
        return RefusedMessage(id=message.id, reason="not now", error_class=error_class)

    start = start_in(workspace, SED)
    transcript = await run_agent(TIDY, start, workspace.path, workspace.home, reply)
    [error] = transcript.of(ErrorMessage)
    assert (error.error_class, error.message, transcript.code) == (
        error_class,
        "not now",
        1,
    )


async def test_agent_ends_when_its_worker_is_gone(sample: Path) -> None:
    tidy = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "draftsman.agents.tidy"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    async with asyncio.timeout(DEADLINE):
        output, _ = await tidy.communicate()
    assert (output, tidy.returncode) == (b"", 0)


def test_agents_start_without_heavy_imports() -> None:
    names = ", ".join(f"draftsman.agents.{name}" for name in ("acp", "plain", "tidy"))
    names += ", draftsman_agents.claude, draftsman_agents.codex"
    code = f"import {names}, sys; print(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    heavy = {"pydantic", "psycopg", "click", "rich", "textual", "asyncio", "dataclasses"}
    heavy |= {"difflib", "inspect", "secrets", "uuid", "draftsman.settings"}
    assert heavy.isdisjoint(result.stdout.split())


@pytest.mark.slow(fast="test_agent_killed_during_a_fixer_restarts_that_stage")
async def test_agent_killed_in_any_stage_has_the_same_result(repository: Path) -> None:
    """Each run stores the stage in which the run before it was killed, and dies in the next."""
    apply: dict[str, str | None] = {"apply": "all fixes"}
    undisturbed = Host(repository, SED)
    messages = [message async for message in undisturbed.run(apply)]
    expected = (await undisturbed.workspace.snapshot("done")).tree
    stages = [item for item in messages if isinstance(item, CheckpointMessage | ResultMessage)]
    assert len(stages) == 5
    host = Host(repository, SED)
    for stage in range(len(stages)):
        killed = [message async for message in host.run(apply, killed_at=min(stage, 1))]
        assert not any(isinstance(message, ResultMessage) for message in killed)
        assert len(host.checkpoint or {}) == stage
    all_messages = [message async for message in host.run(apply)]
    assert isinstance(all_messages[-1], ResultMessage)
    assert all_messages[-1].data["files_changed"] == 1
    assert (await host.workspace.snapshot("done")).tree == expected


async def test_agent_killed_during_a_fixer_restarts_that_stage(repository: Path) -> None:
    code = (
        "import os, pathlib, signal\n"
        "notes = pathlib.Path('notes.txt')\n"
        "if pathlib.Path('.git').is_dir() and not pathlib.Path.home().joinpath('again').exists():\n"
        "    notes.write_text('half'); os.kill(os.getppid(), signal.SIGKILL)\n"
        "    signal.pause()\n"
        "notes.write_text(notes.read_text().upper())\n"
    )
    fixer = FixSettings(**script("upper", code))
    host = Host(repository, ProfileSettings(validation_commands=(), fix_commands=(fixer,)))
    killed = [message async for message in host.run({"apply": "safe fixes"})]
    asked = [message for message in killed if not isinstance(message, ActivityMessage)]
    assert isinstance(asked[-1], AskMessage)
    assert (host.workspace.path / "notes.txt").read_text() == "half"
    host.again = True
    messages = [message async for message in host.run({"apply": "safe fixes"})]
    assert isinstance(messages[-1], ResultMessage)
    assert messages[-1].summary.startswith("safe fixes applied to 1 file; no validators ran: ")
    assert (host.workspace.path / "notes.txt").read_text() == "ONE\nTWO\n"
