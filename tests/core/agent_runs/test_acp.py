"""Agents that speak ACP: permissions as questions, resumed sessions, modes and failures."""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Final

import pytest

from draftsman.agent_runs.activity.activity import activity_text
from draftsman.agent_runs.clones.tree_removal import remove_tree
from draftsman.agents.acp import GOOSE_SUBAGENT
from draftsman.agents.adapter import MAKE_AGAIN
from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from draftsman.worker.worker_process import WorkerProcess
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.core.agent_runs.adapted_agents import (
    adapted_worker,
    asked,
    ended,
    lines_of,
    questions_of,
)
from tests.core.worker.agent_jobs import make_repository, submit_agent_job, wait_for_agent
from tests.core.worker.workers import (
    is_free,
    wait_for_question,
    wait_for_status,
)
from tests.support.adapter_driver import AdapterRuns, Message

FAKE: Final = Path(__file__).parents[2] / "support" / "acp_agent.py"
RUN: Final = {"run": "echo approved >> ran.txt"}
DONE: Final = {"say": "all done"}
FAILED_CALL: Final = (
    "Ran into this error: Request failed: 500.\n\n"
    "Please retry if you think this is a transient or recoverable error."
)
"""The message of Goose for a failed call of its model."""
S = Status


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repo", a="one\n")


def acp_agent(script: list[dict[str, Any]], *arguments: str) -> dict[str, Any]:
    """Return the settings of the fake agent."""
    return {
        "kind": "acp",
        "command": ["{python}", "-I", "-S", str(FAKE), json.dumps(script), *arguments],
        "session_mode": "build",
        "session_files": [".fake/sessions"],
    }


def acp_worker(
    rt: Runtime,
    data: Path,
    script: list[dict[str, Any]],
    *arguments: str,
    ask_grace: float = 0,
) -> AbstractAsyncContextManager[WorkerProcess]:
    """Run a worker with the fake agent."""
    return adapted_worker(rt, data, {"test": acp_agent(script, *arguments)}, ask_grace)


async def test_an_agent_that_is_kept_makes_the_call_in_the_same_process(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path
) -> None:
    number = await submit_agent_job(make, repo)
    script = [RUN, {"say": "all done PROMPTS"}]
    async with acp_worker(rt, tmp_path / "data", script, ask_grace=60):
        await asked(rt, number)
        await make.answer(number, "allow once")
        job = await ended(rt, number)
    assert lines_of(repo, number) == ["approved"]
    assert json.loads((job.result or {})["summary"].removeprefix("all done ")) == ["Do it"]
    assert [run.status for run in await rt.read_model.runs(number)] == ["parked", "completed"]


async def test_an_approved_call_runs_once_in_a_later_run_on_another_host(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path
) -> None:
    number = await submit_agent_job(make, repo)
    script = [RUN, {"say": "all done PROMPTS"}]
    async with acp_worker(rt, tmp_path / "one", script) as process:
        question = await asked(rt, number)
        await until(lambda: is_free(process), "a free slot")  # it has removed its clone
    remove_tree(tmp_path / "one")
    assert question.text.startswith("Allow python")
    assert "to run a command?\n\n$ echo approved >> ran.txt\n\nTree " in question.text
    assert [choice["value"] for choice in question.choices] == [
        "allow once",
        "deny",
        "allow for this job",
    ]
    async with acp_worker(rt, tmp_path / "two", script):
        await make.answer(number, "allow once")
        job = await ended(rt, number)
    assert lines_of(repo, number) == ["approved"]
    assert [item.status for item in await questions_of(rt, number)] == ["answered"]
    first, second = json.loads((job.result or {})["summary"].removeprefix("all done "))
    assert first == "Do it"
    assert "Make exactly this call now, before any other." in second
    assert "of the past" not in (job.result or {})["summary"]
    [step] = [item for item in await rt.checkpoints.steps(number) if "permission" in item.key]
    assert (step.key, step.status) == ("permission:1", "done")


@pytest.fixture
def runs(tmp_path: Path) -> AdapterRuns:
    (tmp_path / "work").mkdir()
    (tmp_path / "home").mkdir()
    return AdapterRuns("draftsman.agents.acp", tmp_path / "work", tmp_path / "home")


def run(
    runs: AdapterRuns, script: list[dict[str, Any]], *arguments: str, mode: str = "build"
) -> Message:
    """Run the adapter with the fake agent; return its last message."""
    command = [sys.executable, "-I", "-S", str(FAKE), json.dumps(script), *arguments]
    return runs.run(command, options=[f"--mode={mode}"])[-1]


def test_a_call_allowed_once_is_asked_again_and_a_call_allowed_for_the_job_is_not(
    runs: AdapterRuns, tmp_path: Path
) -> None:
    script = [RUN, RUN, {"run": "echo other >> ran.txt"}, RUN, DONE]
    for answer, name in (
        ("allow once", "approved"),
        ("allow for this job", "approved"),
        ("allow once", "other"),
    ):
        assert run(runs, script)["type"] == "ask"
        assert f"$ echo {name} >> ran.txt" in runs.asked[-1]["text"]
        runs.answer(answer)
    assert run(runs, script)["summary"] == "all done"
    assert (tmp_path / "work" / "ran.txt").read_text() == "approved\napproved\nother\napproved\n"


def test_a_changed_call_is_asked_anew_and_supersedes_the_question(
    runs: AdapterRuns, tmp_path: Path
) -> None:
    assert run(runs, [RUN, DONE])["type"] == "ask"
    runs.answer("allow once")
    script = [{"run": "echo changed >> ran.txt"}, DONE]
    assert run(runs, script)["type"] == "ask"
    first, second = runs.asked
    assert first["key"] == second["key"], "the question supersedes the earlier question"
    assert "$ echo changed >> ran.txt" in second["text"]
    runs.answer("allow once")
    assert run(runs, script)["type"] == "result"
    assert (tmp_path / "work" / "ran.txt").read_text() == "changed\n"


def test_a_denial_reaches_the_agent_with_its_reason(runs: AdapterRuns, tmp_path: Path) -> None:
    script = [RUN, {"say": "PROMPTS"}]
    assert run(runs, script)["type"] == "ask"
    runs.answer("not on a Friday")
    summary = run(runs, script)["summary"]
    assert "It was denied by " in summary
    assert "not on a Friday. Do not make it again" in summary
    assert "This call was denied" in summary  # the script makes the denied call again
    assert not (tmp_path / "work" / "ran.txt").exists()
    assert len(runs.asked) == 1


async def test_an_edit_is_shown_as_a_diff_and_a_long_call_is_an_artifact_too(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path
) -> None:
    number = await submit_agent_job(make, repo)
    command = f": {'x' * 4000}"
    steps = [
        {"content": "Edit it", "priority": "high", "status": "in_progress"},
        {"content": "Test it", "priority": "low", "status": "pending"},
    ]
    edit = {"edit": ["a.txt", "one\ntwo\u202e\n"]}
    script: list[dict[str, Any]] = [{"plan": steps}, edit, {"run": command}, DONE]
    async with acp_worker(rt, tmp_path / "data", script):
        question = await asked(rt, number)
        assert "to edit files?\n\n--- a/./a.txt\n+++ b/./a.txt\n" in question.text
        assert "+two\\u{202e}" in question.text
        await make.answer(number, "allow once")
        question = await asked(rt, number, 2)
        assert "the whole call is the artifact permission-2.txt" in question.text
        _, data = await rt.checkpoints.read_artifact(number, "permission-2.txt")
        assert data.decode() == f"$ {command}"
        await make.answer(number, "allow once", n=2)
        await ended(rt, number)
    assert lines_of(repo, number, "a.txt") == ["one", "two\u202e"]
    rows = await rt.activity.page(number)
    states: dict[Any, tuple[int, str]] = {}
    for row in rows:
        key = row.run, row.kind, row.key  # a message may have several pieces
        before = states.get(key, (0, ""))[1] if row.continues else ""
        states[key] = row.run, before + activity_text(row)
    assert [text for run, text in states.values() if run == 1] == [
        "[plan] 0 of 2 steps: Edit it",
        "Let me think",
        "? edit: a.txt",
    ]
    assert [text[:40] for run, text in states.values() if run > 1] == [
        "✓ edit: a.txt",
        "[changed] a.txt",
        f"? execute: : {'x' * 27}",
        f"✓ execute: : {'x' * 27}",
        "all done",
        "[usage] 1,000 tokens in, 20 tokens out",
    ]
    _, transcript = await rt.checkpoints.read_artifact(number, "transcript.jsonl")
    told = [json.loads(line) for line in transcript.splitlines()]
    assert "".join(row["text"] for row in told if row["kind"] == "message") == "all done"
    log = "".join(chunk.text for chunk in await rt.checkpoints.logs(number))
    assert "all done" not in log  # it is shown once


async def test_an_allowed_call_that_was_interrupted_is_asked_again(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path
) -> None:
    """The worker dies with the agent during the call, which may have had its effect."""
    number = await submit_agent_job(make, repo)
    mark = {"run": "echo mark > mark.txt; sleep 600"}
    async with acp_worker(rt, tmp_path / "data", [mark, {"say": "all done PROMPTS"}]):
        await wait_for_question(rt, number, 1)
        await make.answer(number, "allow once")
        pid = await wait_for_agent(tmp_path / "data", "mark.txt")
        os.kill(pid, signal.SIGKILL)
        await wait_for_status(rt, number, S.RETRYING)
        await make.due(number)
        await wait_for_question(rt, number, 2)
        await make.answer(number, "deny", n=2)
        job = await ended(rt, number)
    first, second = await questions_of(rt, number)
    assert first.text == second.text
    assert "may have run already" in (second.context_snippet or "")
    assert MAKE_AGAIN in str(job.result)


async def test_a_call_that_ended_after_the_checkpoint_is_asked_again(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path
) -> None:
    """The agent dies after its call, whose changes of files are not in the checkpoint."""
    number = await submit_agent_job(make, repo)
    end = {"exit": 3, "unless": "It may have run.", "say": "all done PROMPTS"}
    async with acp_worker(rt, tmp_path / "data", [{"run": "echo mark > mark.txt"}, end]):
        await wait_for_question(rt, number, 1)
        await make.answer(number, "allow once")
        await wait_for_status(rt, number, S.RETRYING)
        await make.due(number)
        await wait_for_question(rt, number, 2)
        await make.answer(number, "allow once", n=2)
        job = await ended(rt, number)
    assert MAKE_AGAIN in str(job.result)
    assert (await questions_of(rt, number))[1].context_snippet
    assert (job.result or {})["files_changed"] == 1


@pytest.mark.parametrize(
    ("script", "arguments", "mode", "error_class", "text"),
    [
        ([{"exit": 0}], (), "build", "TRANSIENT_APP", "exited with code 0 before the end"),
        ([{"stop": "refusal"}], (), "build", "PERMANENT", "ended its turn with refusal"),
        ([{"say": FAILED_CALL}], (), "build", "TRANSIENT_APP", "Request failed: 500"),
        ([{"mode": "yolo"}, DONE], (), "build", "PERMANENT", "was changed by the agent to 'yolo'"),
        ([DONE], ("stubborn",), "build", "PERMANENT", "the mode 'build' of the agent is plan"),
        ([DONE], (), "ask", "PERMANENT", "'ask' of the agent is not among its modes: build, plan"),
    ],
)
def test_an_agent_that_cannot_work_or_ends_its_turn_early_is_an_error(
    script: list[dict[str, Any]],
    arguments: tuple[str, ...],
    mode: str,
    error_class: str,
    text: str,
    runs: AdapterRuns,
) -> None:
    error = run(runs, script, *arguments, mode=mode)
    assert (error["type"], error["class"]) == ("error", error_class)
    assert text in error["message"]


def test_an_agent_that_is_not_installed_is_an_error(runs: AdapterRuns) -> None:
    error = runs.run(["no-such-agent", "acp"], options=["--mode=build"])[-1]
    assert (error["type"], error["class"]) == ("error", "PERMANENT")
    assert "cannot start no-such-agent: No such file" in error["message"]


def test_an_agent_that_closes_its_output_is_ended(runs: AdapterRuns) -> None:
    [error] = runs.run(["sh", "-c", "exec >&-; exec sleep 600"])
    assert (error["class"], error["code"]) == ("TRANSIENT_APP", "agent_exited")
    assert error["message"] == "the agent closed its output before the end of its turn"


def test_unknown_requests_are_refused(runs: AdapterRuns) -> None:
    script = [{"ask": "fs/read_text_file"}, {"ask": "craft/drainMidTurnQueue"}, DONE]
    assert run(runs, script)["summary"] == "all done"


def test_a_subagent_whose_calls_would_not_be_asked_is_denied_without_a_question(
    runs: AdapterRuns, tmp_path: Path
) -> None:
    call: dict[str, Any] = {**RUN, "meta": {"goose": {"toolCall": GOOSE_SUBAGENT}}}
    script = [call, {"say": "RESULTS"}]
    assert json.loads(run(runs, script)["summary"]) == ["rejected"]
    assert runs.asked == []


@pytest.mark.parametrize("problem", ["no-load", "no-prompt"])
def test_an_agent_that_cannot_load_begins_a_session_with_the_decision(
    runs: AdapterRuns, problem: str
) -> None:
    """A session that is loaded may refuse to go on, as that of OpenCode in another folder."""
    script: list[dict[str, Any]] = [{"edit": ["b.txt", "b\n"]}, {"say": "PROMPTS"}]
    assert run(runs, script, problem)["type"] == "ask"
    runs.answer("allow once")
    [prompt] = json.loads(run(runs, script, problem)["summary"])
    assert prompt.startswith("Do it\n\nAn earlier run began this work")
    assert "Make exactly this call now" in prompt


def test_the_log_has_the_details_of_an_error_of_the_agent(
    runs: AdapterRuns, tmp_path: Path
) -> None:
    script = [RUN, DONE]
    assert run(runs, script)["type"] == "ask"
    runs.checkpoint["session"] = "ses_lost"
    runs.answer("allow once")
    command = [sys.executable, "-I", "-S", str(FAKE), json.dumps(script)]
    logged = [
        message["text"]
        for message in runs.run(command, options=["--mode=build"])
        if message["type"] == "log"
    ]
    assert "the session is not loaded: session/load: unknown: gone (-32602)" in logged
