"""Agents of kind `claude`: deferred calls, questions of the model, and refused modes."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from draftsman.domain.job import Job, Status
from draftsman.domain.repos.repo_catalog import Repo
from draftsman.domain.repos.repo_profile import profile
from draftsman.domain.repos.repo_url import parse
from draftsman.handlers import registry
from draftsman.handlers.clone.tree_removal import remove_tree
from draftsman.loops.worker_process import WorkerProcess
from draftsman.runtime import Runtime
from tests.core.loops.agent_jobs import git, make_repository, submit_agent_job, wait_for_agent
from tests.core.loops.workers import (
    is_free,
    running_worker,
    runtime_with,
    wait_for_end,
    wait_for_question,
    wait_for_status,
)
from tests.factories import Factory
from tests.support.waits import until

FAKE: Final = Path(__file__).parents[3] / "support" / "claude_agent.py"
RUN: Final = {"run": "echo approved >> ran.txt"}
DONE: Final = {"say": "all done"}
RESULTS: Final = {"say": "RESULTS"}
S = Status
Script = list[dict[str, Any]]


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repo", a="one\n")


def fake(script: Script, *arguments: str, **settings: Any) -> dict[str, Any]:
    """Return the settings of the fake program."""
    return {
        "kind": "claude",
        "command": ["{python}", "-I", "-S", str(FAKE), json.dumps(script), *arguments],
        "session_mode": "default",
        "session_files": [".claude/projects"],
        "allowed_tools": ["Read"],
    } | settings


@asynccontextmanager
async def claude_worker(
    rt: Runtime, data: Path, script: Script, *arguments: str, **others: Any
) -> AsyncIterator[WorkerProcess]:
    """Run a worker with the fake program and other agents."""
    agents = {"test": fake(script, *arguments), **others}
    configured = runtime_with(rt, data_dir=data, agents=agents)
    async with running_worker(configured, registry.load({}), leader=False, slots=1) as process:
        yield process


async def asked(rt: Runtime, number: int, ordinal: int = 1) -> str:
    await wait_for_question(rt, number, ordinal)
    return (await rt.questions.get(number, ordinal)).text


async def statuses(rt: Runtime, number: int) -> list[str]:
    return [item.status for item in (await rt.questions.of_job(number))[0]]


async def ended(rt: Runtime, number: int) -> Job:
    job = await wait_for_end(rt, number)
    assert job.status is S.COMPLETED, job.last_error
    return job


def summary(job: Job) -> str:
    return str((job.result or {})["summary"])


def lines_of(repo: Path, number: int, name: str = "ran.txt") -> list[str]:
    return git("show", f"draftsman/D-{number}:{name}", cwd=repo).splitlines()


async def test_a_deferred_call_is_made_once_by_the_resumed_session_on_another_host(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path
) -> None:
    number = await submit_agent_job(make, repo)
    script: Script = [{"read": "a.txt"}, RUN, {"say": "all done PROMPTS"}]
    async with claude_worker(rt, tmp_path / "one", script) as process:
        text = await asked(rt, number)
        await until(lambda: is_free(process), "a free slot")  # it has removed its clone
    remove_tree(tmp_path / "one")
    assert "to run a command?\n\n$ echo approved >> ran.txt\n\nTree " in text
    async with claude_worker(rt, tmp_path / "two", script):
        await make.answer(number, "allow once")
        job = await ended(rt, number)
    assert lines_of(repo, number) == ["approved"]
    assert await statuses(rt, number) == ["answered"]
    assert summary(job) == 'all done ["Do it"]', "the resumed session got another prompt"
    [step] = [item for item in await rt.checkpoints.steps(number) if "permission" in item.key]
    assert (step.key, step.status) == ("permission:1", "done")
    usage = (await rt.read_model.runs(number))[-1].usage or {}
    assert (usage["input_tokens"], usage["output_tokens"]) == (1000, 20)


async def test_calls_of_the_same_turn_are_asked_one_after_the_other(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path
) -> None:
    """The program keeps a single call; the model makes the others again, which changes nothing."""
    number = await submit_agent_job(make, repo)
    other = {"run": "echo other >> ran.txt"}
    script: Script = [{"calls": [RUN, other]}, DONE, other, RUN, RESULTS]
    async with claude_worker(rt, tmp_path / "data", script):
        assert "$ echo approved" in await asked(rt, number)
        await make.answer(number, "allow once")
        assert "$ echo other" in await asked(rt, number, 2)
        await make.answer(number, "allow for this job", n=2)
        assert "$ echo approved" in await asked(rt, number, 3)
        await make.answer(number, "not on a Friday", n=3)
        job = await ended(rt, number)
    assert lines_of(repo, number) == ["approved", "other"]
    later, first, second, third = json.loads(summary(job))
    assert "Make it again when you have the result of that call" in later
    assert (first, second) == ("", "")
    assert "denied by " in third
    assert third.endswith(": not on a Friday")
    assert await statuses(rt, number) == ["answered"] * 3


async def test_questions_of_the_model_are_questions_with_its_choices(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path
) -> None:
    number = await submit_agent_job(make, repo)
    options = [{"label": "PostgreSQL", "description": "durable"}, {"label": "SQLite"}]
    which = {"question": "Which database?", "options": options, "multiSelect": True}
    script: Script = [{"ask": [which, {"question": "Since when?", "options": []}]}, RESULTS]
    async with claude_worker(rt, tmp_path / "data", script):
        assert await asked(rt, number) == "Which database?"
        question = await rt.questions.get(number, 1)
        assert [choice["value"] for choice in question.choices] == ["PostgreSQL", "SQLite"]
        assert "Several choices are possible" in (question.context_snippet or "")
        await make.answer(number, "SQLite")
        assert await asked(rt, number, 2) == "Since when?"
        await make.answer(number, "May", n=2)
        job = await ended(rt, number)
    [answer] = json.loads(summary(job))
    assert answer == 'The user answered: {"Which database?": "SQLite", "Since when?": "May"}'


async def test_edits_are_shown_as_a_diff_and_run_as_shown(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path
) -> None:
    number = await submit_agent_job(make, repo)
    script: Script = [{"edit": ["a.txt", "one", "two"]}, {"write": ["b.txt", "b\u202e\n"]}, DONE]
    async with claude_worker(rt, tmp_path / "data", script):
        text = await asked(rt, number)
        assert "to edit files?\n\n--- a/./a.txt\n+++ b/./a.txt\n@@ -1 +1 @@\n-one\n+two" in text
        await make.answer(number, "allow once")
        text = await asked(rt, number, 2)
        assert "+b\\u202e" in text
        await make.answer(number, "allow once", n=2)
        await ended(rt, number)
    assert lines_of(repo, number, "a.txt") == ["two"]
    assert lines_of(repo, number, "b.txt") == ["b\u202e"]


SLOW: Final = pytest.mark.slow(
    fast="test_a_call_that_the_program_does_not_keep_is_made_again_by_the_model"
)


@pytest.mark.parametrize("option", ["forgets", pytest.param("deaf", marks=SLOW)])
async def test_a_call_that_the_program_does_not_keep_is_made_again_by_the_model(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path, option: str
) -> None:
    number = await submit_agent_job(make, repo)
    waits: Script = [{"say": "I wait"}] if option == "deaf" else []
    async with claude_worker(rt, tmp_path / "data", [RUN, *waits, RUN, {"say": "PROMPTS"}], option):
        await asked(rt, number)
        await make.answer(number, "allow once")
        job = await ended(rt, number)
    assert lines_of(repo, number) == ["approved"]
    assert "Make exactly this call now" in json.loads(summary(job))[-1]


async def test_a_changed_call_is_asked_anew_and_supersedes_the_question(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path
) -> None:
    number = await submit_agent_job(make, repo)
    changed = {"run": "echo changed >> ran.txt"}
    async with claude_worker(rt, tmp_path / "data", [RUN, changed, changed, DONE], "forgets"):
        await asked(rt, number)
        await make.answer(number, "allow once")
        assert "$ echo changed >> ran.txt" in await asked(rt, number, 2)
        assert await statuses(rt, number) == ["superseded", "open"]
        await make.answer(number, "allow once", n=2)
        await ended(rt, number)
    assert lines_of(repo, number) == ["changed"]


async def test_an_allowed_call_that_was_interrupted_is_asked_again(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path
) -> None:
    number = await submit_agent_job(make, repo)
    mark = {"run": "echo mark > mark.txt; sleep 600"}
    async with claude_worker(rt, tmp_path / "data", [mark, DONE]):
        await asked(rt, number)
        await make.answer(number, "allow once")
        os.kill(await wait_for_agent(tmp_path / "data", "mark.txt"), signal.SIGKILL)
        await wait_for_status(rt, number, S.RETRYING)
        await make.due(number)
        await asked(rt, number, 2)
    first, second = (await rt.questions.of_job(number))[0]
    assert first.text == second.text
    assert "may have run already" in (second.context_snippet or "")


ERRORS: Final = (
    (fake([{"exit": 0}]), "TRANSIENT_APP", "exited with code 0 before the end of its turn"),
    (fake([{"fail": 402}]), "PERMANENT", "ended its turn with api_error: API Error: 402"),
    (fake([{"fail": 529}]), "TRANSIENT_APP", "ended its turn with api_error: API Error: 529"),
    (fake([{"fail": 401}]), "PERMANENT", "401; pass its key with pass_env, or configure its"),
    (
        fake([{"mode": "bypassPermissions"}, DONE]),
        "PERMANENT",
        "the mode 'default' of the agent is 'bypassPermissions'",
    ),
    (
        fake([DONE], session_mode="auto"),
        "PERMANENT",
        "the mode 'auto' of the agent lets calls pass without people",
    ),
)
"""Programs, and the error class and the error of their runs."""


@pytest.mark.parametrize("allowed", [False, True])
async def test_the_configuration_of_the_repository_is_loaded_if_its_profile_names_the_agent(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path, allowed: bool
) -> None:
    (repo / ".claude").mkdir()
    hook = json.dumps({"SessionStart": ["echo started > started.txt"]})
    (repo / ".claude" / "settings.json").write_text(hook)
    git("add", "-A", cwd=repo)
    git("commit", "-qm", "hostile", cwd=repo)
    fields = {"agent_config": ["codex", *(["claude"] if allowed else [])]}
    saved = profile(fields | {"validation_commands": []})
    await rt.repos.add(Repo.at(parse(str(repo))), saved, make.owner)
    number = await submit_agent_job(make, str(repo))
    async with claude_worker(rt, tmp_path / "data", [RUN, DONE]):
        assert "$ echo approved" in await asked(rt, number)
        await make.answer(number, "allow once")
        job = await wait_for_end(rt, number)
    assert job.status is S.COMPLETED, job.last_error
    changed = git("diff", "--name-only", "main", f"draftsman/D-{number}", cwd=repo).split()
    assert changed == ["ran.txt", *(["started.txt"] if allowed else [])]


async def test_an_agent_in_another_mode_or_with_a_failed_turn_is_an_error(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path
) -> None:
    agents = {f"agent{n}": agent for n, (agent, _, _) in enumerate(ERRORS)}
    async with claude_worker(rt, tmp_path / "data", [DONE], **agents):
        numbers = [
            await submit_agent_job(make, repo, agent=name, overrides={"max_retries": 0})
            for name in agents
        ]
        for number, (_, error_class, error) in zip(numbers, ERRORS, strict=True):
            job = await wait_for_end(rt, number)
            assert job.status in (S.FAILED, S.DEAD_LETTER), error
            assert error in (job.last_error or "")
            assert job.error_class == error_class, error
