"""`draftsman hook claude`: the team decides the tool calls of Claude Code."""

from __future__ import annotations

import json
from typing import Any

import pytest

from draftsman.handlers import registry
from draftsman.jobs.job import Source, Status
from draftsman.people.actor import Actor
from draftsman.questions.question import Question
from draftsman.questions.response import Response
from draftsman.runtime import Runtime
from draftsman_testing.waits import background, until
from tests.core.worker.workers import running_worker, runtime_with
from tests.tui.cli.cli_runner import Cli, Result


def request(tool: str = "Bash", **fields: Any) -> str:
    """Return the request of a hook, with the fields that Claude Code sends."""
    return json.dumps(
        {
            "session_id": "5f1c",
            "transcript_path": "/home/anna/.claude/projects/x.jsonl",
            "cwd": "/home/anna/shop",
            "permission_mode": "default",
            "hook_event_name": "PreToolUse",
            "tool_name": tool,
            "tool_input": fields,
            "tool_use_id": "toolu_1",
        }
    )


def decision(result: Result) -> tuple[str, str]:
    """Return decision and reason of a hook."""
    output = result.json["hookSpecificOutput"]
    assert output["hookEventName"] == "PreToolUse"
    return output["permissionDecision"], output["permissionDecisionReason"]


async def respond(rt: Runtime, text: str) -> Question:
    """Answer the question of the newest job; return the question."""
    found: list[Question] = []

    async def asked() -> bool:
        jobs = await rt.read_model.jobs(limit=1)
        found[:] = await rt.questions.open(jobs[0].number) if jobs else []
        return bool(found)

    await until(asked, "a question")
    person = Actor(Source.CLI, "root", "root", owner=True)
    given = Response(source_event_id=f"test:{found[0].job}", text=text)
    assert (await rt.questions.answer(found[0].job, 1, given, person)).accepted
    return found[0]


async def test_the_answer_decides_the_call(cli: Cli, rt: Runtime) -> None:
    call = request(command="npm run build\u202e", description="Builds it")
    async with running_worker(runtime_with(rt), registry.load({})):
        for answer, expected, reason in (
            ("allow once", "allow", "draftsman: allowed by root in D-1"),
            ("deny", "deny", "draftsman: denied by root in D-2"),
            ("use pnpm", "deny", "draftsman: denied by root in D-3: use pnpm"),
        ):
            async with background(cli("hook", "claude", stdin=call)) as hook:
                question = await respond(rt, answer)
                assert decision(await hook) == (expected, reason)
    assert question.text == (
        "Allow Claude Code to run a command?\n\n$ npm run build\\u{202e}\ndescription: Builds it"
    )
    assert question.context_snippet == "In /home/anna/shop"


@pytest.mark.parametrize("fallback", ["ask", "deny"])
async def test_without_an_answer_the_question_is_withdrawn(
    cli: Cli, rt: Runtime, fallback: str
) -> None:
    options = ("--wait", "0.2s", "--without-answer", fallback)
    result = await cli("hook", "claude", *options, stdin=request("Write", file_path="a"))
    found, reason = decision(result)
    assert found == fallback
    assert reason.startswith("draftsman: D-1: the question was not asked: ")  # there is no worker
    assert "draftsman up" in reason
    assert (await rt.read_model.job(1)).status is Status.CANCELED


async def test_a_call_that_people_cannot_read_is_not_asked(cli: Cli, rt: Runtime) -> None:
    result = await cli("hook", "claude", stdin=request("Write", content="x" * 20_000))
    kind, reason = decision(result)
    assert (kind, "too long for a question" in reason) == ("ask", True)
    assert await rt.read_model.jobs() == []


async def test_a_long_call_is_shown_whole_in_the_context(cli: Cli, rt: Runtime) -> None:
    content = "y" * 5000 + "end"
    async with running_worker(runtime_with(rt), registry.load({})):
        call = request("Write", content=content)
        async with background(cli("hook", "claude", stdin=call)) as hook:
            question = await respond(rt, "deny")
            await hook
    assert question.text.endswith("… the whole call is the context")
    assert content in (question.context_snippet or "")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "expects the JSON"),
        ("[]", "expects the JSON"),
        ('{"tool_name": 7}', "expects the JSON"),
        ("[" * 100_000, "expects the JSON"),
        ('{"tool_name": "Bash", "hook_event_name": "Stop"}', "PreToolUse only"),
        ("x" * ((1 << 20) + 1), "more than 1,048,576 bytes"),
    ],
)
async def test_an_unreadable_request_blocks_the_call(cli: Cli, text: str, problem: str) -> None:
    (await cli("hook", "claude", stdin=text)).refused(2, problem)


async def test_inside_of_a_run_it_is_refused(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTSMAN_SOCKET", "/x")
    (await cli("hook", "claude", stdin=request(command="ls"))).refused(2, "outside a run only")
