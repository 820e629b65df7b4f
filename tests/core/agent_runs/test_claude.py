"""Agents of kind `claude`: deferred calls, questions of the model, and refused modes."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from draftsman.agent_runs.clones.tree_removal import remove_tree
from draftsman.agent_runs.uncommitted import take_changes
from draftsman.handlers import registry
from draftsman.jobs.job import Job, Status
from draftsman.jobs.requests.uncommitted_changes import FIELD
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import profile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime
from draftsman.settings.policies import PolicySettings
from draftsman.worker.worker_process import WorkerProcess
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.core.worker.agent_jobs import git, make_repository, submit_agent_job
from tests.core.worker.workers import (
    is_free,
    running_worker,
    runtime_with,
    wait_for_end,
    wait_for_question,
)
from tests.support.adapter_driver import AdapterRuns, Message

FAKE: Final = Path(__file__).parents[2] / "support" / "claude_agent.py"
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


@pytest.fixture
def runs(tmp_path: Path) -> AdapterRuns:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("one\n")
    (tmp_path / "home").mkdir()
    return AdapterRuns("draftsman_agents.claude", tmp_path / "work", tmp_path / "home")


def run(runs: AdapterRuns, script: Script, *arguments: str, mode: str = "default") -> Message:
    """Run the adapter with the fake program; return its last message."""
    command = [sys.executable, "-I", "-S", str(FAKE), json.dumps(script), *arguments]
    return runs.run(command, options=[f"--mode={mode}", "--allow=Read"])[-1]


def question(runs: AdapterRuns, script: Script, *arguments: str) -> str:
    """Run the adapter with the fake program; return the text of the question that parks it."""
    assert run(runs, script, *arguments)["type"] == "ask"
    return str(runs.asked[-1]["text"])


def test_calls_of_the_same_turn_are_asked_one_after_the_other(
    runs: AdapterRuns, tmp_path: Path
) -> None:
    """The program keeps a single call; the model makes the others again, which changes nothing."""
    other = {"run": "echo other >> ran.txt"}
    script: Script = [{"calls": [RUN, other]}, DONE, other, RUN, RESULTS]
    assert "$ echo approved" in question(runs, script)
    runs.answer("allow once")
    assert "$ echo other" in question(runs, script)
    runs.answer("allow for this job")
    assert "$ echo approved" in question(runs, script)
    runs.answer("not on a Friday")
    later, first, second, third = json.loads(run(runs, script)["summary"])
    assert (tmp_path / "work" / "ran.txt").read_text() == "approved\nother\n"
    assert "Make it again when you have the result of that call" in later
    assert (first, second) == ("", "")
    assert "denied by " in third
    assert third.endswith(": not on a Friday")


def test_questions_of_the_model_are_questions_with_its_choices(runs: AdapterRuns) -> None:
    options = [{"label": "PostgreSQL", "description": "durable"}, {"label": "SQLite"}]
    which = {"question": "Which database?", "options": options, "multiSelect": True}
    script: Script = [{"ask": [which, {"question": "Since when?", "options": []}]}, RESULTS]
    assert "Which database?" in question(runs, script)
    assert [choice["value"] for choice in runs.asked[-1]["choices"]] == ["PostgreSQL", "SQLite"]
    assert "Several choices are possible" in str(runs.asked[-1])
    runs.answer("SQLite")
    assert "Since when?" in question(runs, script)
    runs.answer("May")
    [answer] = json.loads(run(runs, script)["summary"])
    assert answer == 'The user answered: {"Which database?": "SQLite", "Since when?": "May"}'


def test_edits_are_shown_as_a_diff_and_run_as_shown(runs: AdapterRuns, tmp_path: Path) -> None:
    script: Script = [{"edit": ["a.txt", "one", "two"]}, {"write": ["b.txt", "b\u202e\n"]}, DONE]
    text = question(runs, script)
    assert "to edit files?\n\n--- a/./a.txt\n+++ b/./a.txt\n@@ -1 +1 @@\n-one\n+two" in text
    runs.answer("allow once")
    assert "+b\\u{202e}" in question(runs, script)
    runs.answer("allow once")
    assert run(runs, script)["summary"] == "all done"
    assert (tmp_path / "work" / "a.txt").read_text() == "two\n"
    assert (tmp_path / "work" / "b.txt").read_text() == "b\u202e\n"


@pytest.mark.parametrize("option", ["forgets", "deaf"])
def test_a_call_that_the_program_does_not_keep_is_made_again_by_the_model(
    runs: AdapterRuns, tmp_path: Path, option: str
) -> None:
    waits: Script = [{"say": "I wait"}] if option == "deaf" else []
    script: Script = [RUN, *waits, RUN, {"say": "PROMPTS"}]
    question(runs, script, option)
    runs.answer("allow once")
    summary = run(runs, script, option)["summary"]
    assert (tmp_path / "work" / "ran.txt").read_text() == "approved\n"
    assert "Make exactly this call now" in json.loads(summary)[-1]


def test_a_changed_call_is_asked_anew_and_supersedes_the_question(
    runs: AdapterRuns, tmp_path: Path
) -> None:
    changed = {"run": "echo changed >> ran.txt"}
    script: Script = [RUN, changed, changed, DONE]
    question(runs, script, "forgets")
    runs.answer("allow once")
    assert "$ echo changed >> ran.txt" in question(runs, script, "forgets")
    first, second = runs.asked
    assert first["key"] == second["key"], "the question supersedes the earlier question"
    runs.answer("allow once")
    assert run(runs, script, "forgets")["type"] == "result"
    assert (tmp_path / "work" / "ran.txt").read_text() == "changed\n"


def test_an_allowed_call_that_was_interrupted_is_asked_again(runs: AdapterRuns) -> None:
    """The call kills the program and its adapter."""
    script: Script = [{"run": "kill -KILL 0"}, DONE]
    text = question(runs, script)
    runs.answer("allow once")
    assert run(runs, script)["type"] != "result"
    assert runs.steps["permission:1"]["state"] == "pending"
    assert question(runs, script) == text
    assert runs.asked[-1]["key"] == "permission:2"
    assert "may have run already" in runs.asked[-1]["context"]


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
    async with claude_worker(rt, tmp_path / "data", [DONE]):
        job = await ended(rt, number)
    assert (job.result or {})["files_changed"] == int(allowed)
    if allowed:
        assert lines_of(repo, number, "started.txt") == ["started"]


async def test_an_agent_does_not_load_configuration_that_it_wrote(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    hook = json.dumps({"SessionStart": ["echo granted > granted.txt"]})
    repo = make_repository(tmp_path / "repo", hook=hook)
    saved = profile({"agent_config": ["claude"], "validation_commands": []})
    await rt.repos.add(Repo.at(parse(str(repo))), saved, make.owner)
    number = await submit_agent_job(make, str(repo))
    grant = {"run": "mkdir .claude && cp hook.txt .claude/settings.json"}
    async with claude_worker(rt, tmp_path / "data", [grant, RUN, DONE]):
        for ordinal in (1, 2):  # each answer begins another run
            await asked(rt, number, ordinal)
            await make.answer(number, "allow once", n=ordinal)
        assert "configuration or instructions of agents: .claude" in await asked(rt, number, 3)
        assert (await make.decide(number, True, make.owner, n=3)).accepted
        job = await ended(rt, number)
    assert (job.result or {})["files_changed"] == 2, "the configuration and the output of the call"
    log = "".join(chunk.text for chunk in await rt.checkpoints.logs(number))
    assert "[configuration of agents not loaded] the work changes .claude/settings.json" in log


async def test_an_agent_does_not_load_configuration_of_uncommitted_changes(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    repo = make_repository(tmp_path / "repo")
    saved = profile({"agent_config": ["claude"], "validation_commands": []})
    await rt.repos.add(Repo.at(parse(str(repo))), saved, make.owner)
    (repo / ".claude").mkdir()
    hook = json.dumps({"SessionStart": ["echo started > started.txt"]})
    (repo / ".claude" / "settings.json").write_text(hook)
    changes = take_changes(str(repo), PolicySettings())
    assert changes is not None
    number = await submit_agent_job(make, str(repo), payload={FIELD: changes.stored})
    async with claude_worker(rt, tmp_path / "data", [DONE]):
        job = await ended(rt, number)
    assert (job.result or {})["files_changed"] == 0, "the hook does not run"
    log = "".join(chunk.text for chunk in await rt.checkpoints.logs(number))
    assert "[configuration of agents not loaded] the work changes .claude/settings.json" in log


@pytest.mark.parametrize(
    ("script", "mode", "error_class", "text"),
    [
        ([{"exit": 0}], "default", "TRANSIENT_APP", "exited with code 0 before the end"),
        ([{"fail": 402}], "default", "PERMANENT", "ended its turn with api_error: API Error: 402"),
        ([{"refuse": "not this"}], "default", "PERMANENT", "ended its turn with refusal: not this"),
        ([{"fail": 529}], "default", "TRANSIENT_APP", "turn with api_error: API Error: 529"),
        ([{"fail": 401}], "default", "PERMANENT", "401; pass its key with pass_env, or configure"),
        (
            [{"mode": "bypassPermissions"}, DONE],
            "default",
            "PERMANENT",
            "the mode 'default' of the agent is 'bypassPermissions'",
        ),
        ([DONE], "auto", "PERMANENT", "the mode 'auto' of the agent lets calls pass without"),
    ],
)
def test_an_agent_in_another_mode_or_with_a_failed_turn_is_an_error(
    script: Script, mode: str, error_class: str, text: str, runs: AdapterRuns
) -> None:
    error = run(runs, script, mode=mode)
    assert (error["type"], error["class"]) == ("error", error_class)
    assert text in error["message"]
