"""The story of a permission with the real Claude Code, and a scripted model."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from draftsman.agent_runs.clones.tree_removal import remove_tree
from draftsman.handlers import registry
from draftsman.jobs.job import Status
from draftsman.runtime import Runtime, wire
from draftsman.settings.agents import known_table
from draftsman.settings.llm import GatewaySettings, PriceSettings
from draftsman.settings.sandbox import SandboxSettings
from draftsman.worker.worker_process import WorkerProcess
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.acceptance.processes import Installation
from tests.core.worker.agent_jobs import git, make_repository, submit_agent_job, wait_for_agent
from tests.core.worker.workers import running_worker, runtime_with, wait_for_end
from tests.support import record_claude
from tests.support.claude_recording import (
    RECORDINGS,
    Recorded,
    first_of_each_kind,
    recording,
    shape_of,
)
from tests.support.fake_model import FREE, FREE_KEYS, FakeModel, Turn, fake_model

pytestmark = pytest.mark.timeout(400)
PROGRAM: Final = os.environ.get("CLAUDE") or shutil.which("claude")
SECONDS: Final = 120.0
"""Deadline of each wait: Claude Code needs seconds to start."""
RUN: Final = {"tool": "Bash", "args": {"command": "echo yes >> ran.txt", "description": "append"}}
OTHER: Final = {"tool": "Bash", "args": {"command": "echo no >> ran.txt", "description": "append"}}
DONE: Final = {"text": "all done"}
LOST: Final = "the worker was lost"
"""The error of a job whose worker a test killed."""


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    if PROGRAM is None:
        pytest.skip("there is no Claude Code here: npm i @anthropic-ai/claude-code, and set CLAUDE")
    return make_repository(tmp_path / "repo", a="one\n")


@contextmanager
def scripted(script: Sequence[Turn]) -> Iterator[FakeModel]:
    """Serve the model, with a key for the gateway."""
    with pytest.MonkeyPatch.context() as patch, fake_model(script) as model:
        patch.setenv("KEY_OF_TEST", "sk-test")
        yield model


@asynccontextmanager
async def claude(
    rt: Runtime,
    data: Path,
    model: FakeModel,
    *through: str,
    mode: str = "auto",
    options: Sequence[str] = (),
    ask_grace: float = 20,
) -> AsyncIterator[WorkerProcess]:
    """Run a worker with the entry of Claude Code that draftsman has, which has no network.

    `through` is the command of a program that starts it.
    """
    assert PROGRAM is not None
    known: dict[str, Any] = dict(known_table("claude"))
    known["command"] = (*through, str(Path(PROGRAM).resolve()), *options)
    known["env"] = known["env"] | {"CLAUDE_CODE_MAX_RETRIES": "0"}
    known["gateway"] = "model"
    gateway = {
        "provider": "anthropic",
        "base_url": model.url.removesuffix("v1"),
        "api_key": {"env": "KEY_OF_TEST"},
    }
    base = runtime_with(rt, data_dir=data, agents={"test": known}, ask_grace=ask_grace)
    update: dict[str, Any] = {
        "gateways": {"model": GatewaySettings.model_validate(gateway)},
        "prices": {"*": PriceSettings.model_validate(FREE)},
        "sandbox": SandboxSettings.model_validate({"mode": mode}),
    }
    configured = wire(base.settings.model_copy(update=update), rt.db, False)
    async with running_worker(configured, registry.load({}), leader=True, slots=1) as process:
        yield process


async def wait_with_log(
    rt: Runtime, number: int, look: Callable[[], Awaitable[bool]], what: str
) -> None:
    """Wait for a condition; fail with the log of the job at the deadline."""
    try:
        await until(look, what, SECONDS)
    except AssertionError as error:
        log = "".join(chunk.text for chunk in await rt.checkpoints.logs(number))
        raise AssertionError(f"{error}\n{log}") from None


async def asked(rt: Runtime, number: int, ordinal: int) -> str:
    async def look() -> bool:
        job = await rt.read_model.job(number)
        assert job.last_error in (None, LOST), job.last_error
        questions, _ = await rt.questions.of_job(number)
        return len(questions) >= ordinal and questions[ordinal - 1].status == "open"

    await wait_with_log(rt, number, look, f"D-{number}/{ordinal} open")
    return (await rt.questions.get(number, ordinal)).text


async def summary_of(rt: Runtime, number: int) -> str:
    async def look() -> bool:
        job = await rt.read_model.job(number)
        assert job.last_error in (None, LOST), job.last_error
        return job.result is not None

    await wait_with_log(rt, number, look, f"the result of D-{number}")
    return str(((await rt.read_model.job(number)).result or {})["summary"])


def host(folder: Path, url: str, model: FakeModel) -> Installation:
    """Return an installation with the agent `claude`, whose configuration is that of a user."""
    installation = Installation(folder, url)
    installation.configure(
        agents__claude__command=[str(Path(str(PROGRAM)).resolve())],
        agents__claude__gateway="model",
        gateways__model__provider="anthropic",
        gateways__model__base_url=model.url.removesuffix("v1"),
        gateways__model__api_key__env="KEY_OF_TEST",
        **FREE_KEYS,
        worker__heartbeat=1,
        worker__lease=5,
        sweeps__lease=2,
    )
    return installation


async def test_exactly_the_approved_call_runs_once_after_everything_was_killed(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path, database_url: str
) -> None:
    number = await submit_agent_job(make, repo, agent="claude")
    with scripted([RUN, DONE]) as model:
        here, there = (host(tmp_path / name, database_url, model) for name in ("here", "there"))
        try:
            worker = here.start("worker")
            assert "Allow claude to run a command?\n\n$ echo yes >> ran.txt" in await asked(
                rt, number, 1
            )
            worker.signal(signal.SIGKILL)
            await worker.end()
            remove_tree(here.data)
            await make.answer(number, "allow once")
            there.start("worker")
            assert await summary_of(rt, number) == "all done"
        finally:
            here.close()
            there.close()
    assert git("show", f"draftsman/D-{number}:ran.txt", cwd=repo) == "yes"
    assert len(model.conversations) == 2, "the model is not asked for the call again"


async def test_a_call_that_was_killed_with_its_worker_is_asked_again(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path, database_url: str
) -> None:
    number = await submit_agent_job(make, repo, agent="claude")
    mark = {"tool": "Bash", "args": {"command": "echo mark > mark.txt; sleep 600"}}
    with scripted([mark, DONE]) as model:
        here, there = (host(tmp_path / name, database_url, model) for name in ("here", "there"))
        try:
            worker = here.start("worker")
            await asked(rt, number, 1)
            await make.answer(number, "allow once")

            async def look() -> bool:
                return any(path.exists() for path in here.data.glob("runs/*/*/mark.txt"))

            await wait_with_log(rt, number, look, "the call")
            agent = await wait_for_agent(here.data, "mark.txt")
            worker.signal(signal.SIGKILL)
            os.kill(agent, signal.SIGKILL)
            await worker.end()
            here.close()
            remove_tree(here.data)
            there.start("worker")
            assert "$ echo mark > mark.txt" in await asked(rt, number, 2)
            again = await rt.questions.get(number, 2)
            assert "may have run" in (again.context_snippet or "")
            await make.answer(number, "stop here", n=2)
            assert await summary_of(rt, number) == "all done"
        finally:
            here.close()
            there.close()
    assert "stop here" in json.dumps(model.conversations[-1])


@pytest.mark.parametrize("mode", ["landlock", "off"])
async def test_a_session_is_resumed_in_another_folder_and_another_home(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path, mode: str
) -> None:
    """In these modes of the sandbox each run has its own paths."""
    number = await submit_agent_job(make, repo)
    with scripted([RUN, DONE]) as model:
        async with claude(rt, tmp_path / "one", model, mode=mode):
            await asked(rt, number, 1)
        remove_tree(tmp_path / "one")
        await make.answer(number, "allow once")
        async with claude(rt, tmp_path / "two", model, mode=mode):
            assert await summary_of(rt, number) == "all done"
    assert git("show", f"draftsman/D-{number}:ran.txt", cwd=repo) == "yes"


async def test_an_edit_is_made_on_another_host_and_a_denial_reaches_the_model(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path
) -> None:
    """The program checks that it has read a file before it edits it, also after a resume."""
    number = await submit_agent_job(make, repo)
    path = "/workspace/repo/a.txt"
    read = {"tool": "Read", "args": {"file_path": path}}
    edit = {
        "tool": "Edit",
        "args": {"file_path": path, "old_string": "one", "new_string": "two"},
    }
    with scripted([read, edit, OTHER, DONE]) as model:
        async with claude(rt, tmp_path / "one", model):
            assert "@@ -1 +1 @@\n-one\n+two" in await asked(rt, number, 1)
        remove_tree(tmp_path / "one")
        await make.answer(number, "allow once")
        async with claude(rt, tmp_path / "two", model):
            assert "$ echo no >> ran.txt" in await asked(rt, number, 2)
            await make.answer(number, "not on a Friday", n=2)
            assert await summary_of(rt, number) == "all done"
    assert git("show", f"draftsman/D-{number}:a.txt", cwd=repo) == "two"
    assert git("ls-tree", "--name-only", f"draftsman/D-{number}", cwd=repo) == "a.txt"
    assert "not on a Friday" in json.dumps(model.conversations[-1])


async def test_two_calls_of_a_turn_and_a_changed_call_are_asked_one_by_one(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path
) -> None:
    number = await submit_agent_job(make, repo)
    both = {"calls": [RUN, OTHER]}
    changed = {"tool": "Bash", "args": {"command": "echo maybe >> ran.txt"}}
    with scripted([both, DONE, OTHER, changed, RUN, DONE]) as model:
        async with claude(rt, tmp_path / "data", model):
            for ordinal, word in enumerate(("yes", "no", "maybe", "yes"), 1):
                assert f"$ echo {word} >> ran.txt" in await asked(rt, number, ordinal)
                await make.answer(number, "allow once", n=ordinal)
            assert await summary_of(rt, number) == "all done"
    ran = git("show", f"draftsman/D-{number}:ran.txt", cwd=repo).split()
    assert ran == ["yes", "no", "maybe", "yes"]
    assert "Make it again when you have the result of that call" in json.dumps(
        model.conversations[1]
    )


async def test_a_question_of_the_model_is_answered_with_its_choices(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path
) -> None:
    number = await submit_agent_job(make, repo)
    options = [{"label": name, "description": name} for name in ("PostgreSQL", "SQLite")]
    which = {"question": "Which database?", "header": "Database", "multiSelect": False}
    features = {"question": "Which features?", "header": "Features", "multiSelect": True}
    asks = [which | {"options": options}, features | {"options": options}]
    with scripted([{"tool": "AskUserQuestion", "args": {"questions": asks}}, DONE]) as model:
        async with claude(rt, tmp_path / "data", model):
            assert await asked(rt, number, 1) == "Which database?"
            question = await rt.questions.get(number, 1)
            assert [choice["value"] for choice in question.choices] == ["PostgreSQL", "SQLite"]
            await make.answer(number, "SQLite")
            assert await asked(rt, number, 2) == "Which features?"
            await make.answer(number, "both, please", n=2)
            assert await summary_of(rt, number) == "all done"
    last = json.dumps(model.conversations[-1])
    assert '\\"Which database?\\"=\\"SQLite\\"' in last
    assert '\\"Which features?\\"=\\"both, please\\"' in last


async def approve_settings(rt: Runtime, make: Factory, number: int, ordinal: int) -> None:
    """Approve work that changes the configuration of an agent."""
    assert ".claude/settings.json" in await asked(rt, number, ordinal)
    assert (await make.decide(number, True, make.owner, ordinal)).accepted


async def test_the_repository_s_settings_are_written_with_a_permission_only(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path
) -> None:
    """The program asks a second time about files of its own configuration."""
    number = await submit_agent_job(make, repo)
    path = "/workspace/repo/.claude/settings.json"
    write = {"tool": "Write", "args": {"file_path": path, "content": "{}"}}
    with scripted([write, DONE]) as model:
        async with claude(rt, tmp_path / "data", model):
            await asked(rt, number, 1)
            await make.answer(number, "allow once")
            await approve_settings(rt, make, number, 2)
            assert await summary_of(rt, number) == "all done"
    assert git("show", f"draftsman/D-{number}:.claude/settings.json", cwd=repo) == "{}"


async def test_the_recorded_messages_are_those_of_this_version(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path
) -> None:
    """The double of `make test` sends what the recording has; `RECORD=1` writes a recording."""
    number = await submit_agent_job(make, repo)
    path = "/workspace/repo/.claude/settings.json"
    options = [{"label": name, "description": name} for name in ("PostgreSQL", "SQLite")]
    which = {"question": "Which?", "header": "Which", "multiSelect": False, "options": options}
    script: list[Turn] = [
        {"calls": [{"tool": "Read", "args": {"file_path": "/workspace/repo/a.txt"}}, RUN, OTHER]},
        *[DONE, DONE],
        {"tool": "AskUserQuestion", "args": {"questions": [which]}},
        {"tool": "Write", "args": {"file_path": path, "content": "{}"}},
        {"tool": "Edit", "args": {"file_path": path, "old_string": "{", "new_string": " {"}},
        DONE,
    ]
    through = ("{python}", "-I", "-S", record_claude.__file__)
    with scripted(script) as model:
        async with claude(rt, tmp_path / "data", model, *through):
            for ordinal, answer in enumerate(("allow once", "SQLite", "allow once", "deny"), 1):
                await asked(rt, number, ordinal)
                await make.answer(number, answer, n=ordinal)
            await approve_settings(rt, make, number, 5)
            assert await summary_of(rt, number) == "all done"
    refused = await submit_agent_job(make, repo)
    with scripted([{"status": 402}]) as model:
        async with claude(rt, tmp_path / "data", model, *through):
            job = await wait_for_end(rt, refused)
    assert job.status is Status.FAILED
    assert "ended its turn with api_error: API Error: 402" in (job.last_error or "")
    chunks = [*await rt.checkpoints.logs(number), *await rt.checkpoints.logs(refused)]
    seen = first_of_each_kind(
        json.loads(line.removeprefix(record_claude.MARK))
        for line in "".join(chunk.text for chunk in chunks).splitlines()
        if line.startswith(record_claude.MARK)
    )
    installed = seen["program system init"]["message"]["claude_code_version"]
    if os.environ.get("RECORD"):
        write_recording(installed, seen)
    version, messages = recording()
    assert installed == version, f"Claude Code is {installed}: RECORD=1 replaces claude-{version}"
    recorded = first_of_each_kind(messages)
    assert recorded.keys() == seen.keys()
    for kind, item in recorded.items():
        assert shape_of(item["message"]) == shape_of(seen[kind]["message"]), kind


def write_recording(version: str, seen: dict[str, Recorded]) -> None:
    for old in RECORDINGS.glob("claude-*.jsonl"):
        old.unlink()
    RECORDINGS.mkdir(exist_ok=True)
    lines = "".join(f"{json.dumps(item, sort_keys=True)}\n" for item in seen.values())
    (RECORDINGS / f"claude-{version}.jsonl").write_text(lines)
