"""Changes that people request of work: the agent gets them, and its new work is asked about."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from draftsman.actions.action import Call
from draftsman.actions.jobs import retry, tell
from draftsman.actions.questions import AnswerTooLate, request_changes
from draftsman.errors import UsageError
from draftsman.jobs.job import Status
from draftsman.people.actor import Actor
from draftsman.questions.question import Decision, Question, QuestionStatus
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, Factory
from draftsman_testing.people import People
from tests.core.agent_runs.profiled_jobs import WRITE, profiled_job
from tests.core.worker.agent_jobs import agent_worker, git
from tests.core.worker.workers import wait_for_end, wait_for_question

S = Status
BY_WORDS = f"""
{WRITE}
told = [message["text"] for message in start["messages"]]
write({{"src/app.py": "\\n".join(["def f():", "    return 1", *told]) + "\\n", "b.txt": "b\\n"}})
say("result", summary="|".join(told) or "first")
"""
"""An agent that writes what it is told into a file."""
ASKS = {"max_files_changed": 1}
"""A profile with which the work of the agent needs an approval."""


async def asked(rt: Runtime, number: int, ordinal: int) -> Question:
    await wait_for_question(rt, number, ordinal)
    question = await rt.questions.get(number, ordinal)
    assert question.status is QuestionStatus.OPEN
    return question


def call_of(rt: Runtime, actor: Actor, event: str | None = None) -> Call:
    return Call(rt, actor, event)


async def outcomes(rt: Runtime, number: int) -> Sequence[str]:
    questions, _ = await rt.questions.of_job(number)
    return [question.outcome for question in questions]


async def test_the_agent_gets_the_comments_and_people_approve_the_new_diff(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    number, repo = await profiled_job(rt, make, tmp_path / "repo", {}, **ASKS)
    branch = f"draftsman/D-{number}"
    async with agent_worker(rt, tmp_path / "data", BY_WORDS):
        first = await asked(rt, number, 1)
        comments = ["src/app.py:2=return zero", "b.txt=why this file?"]
        result = await request_changes(
            call_of(rt, make.owner), (number, 1), "Name it", comments=comments
        )
        assert str(result) == f"D-{number}/1 changes requested; job resumed"
        second = await asked(rt, number, 2)
        assert git("branch", "--list", branch, cwd=repo) == ""
        review = await rt.changes.of_question(second)
        assert review.since == first.name
        assert "+src/app.py:2: return zero\n" in review.since_patch
        assert "+def f" not in review.since_patch
        assert second.patch_sha256 != first.patch_sha256
        assert (await make.decide(number, True, make.owner, 2)).accepted
        job = await wait_for_end(rt, number)
    assert job.status is S.COMPLETED
    words = "Name it\n\nsrc/app.py:2: return zero\nb.txt: why this file?"
    assert (job.result or {})["summary"] == words
    assert "b.txt: why" in git("show", f"{branch}:src/app.py", cwd=repo)
    assert await outcomes(rt, number) == ["changes_requested", "approved"]
    [message] = await rt.messages.of_job(number)
    assert (message.text, message.sender, message.delivered_at is None) == (
        words,
        make.owner.voter,
        False,
    )


async def test_work_that_is_the_same_is_asked_about_again(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    """The approval of the tree is dead, although its patch and text are the same."""
    code = f'{WRITE}\nwrite({{"b.txt": "b", "c.txt": "c"}})\nsay("result", summary="did it")'
    number, _ = await profiled_job(rt, make, tmp_path / "repo", {}, **ASKS)
    async with agent_worker(rt, tmp_path / "data", code):
        await asked(rt, number, 1)
        await request_changes(call_of(rt, make.owner), (number, 1), "Really?")
        second = await asked(rt, number, 2)
        review = await rt.changes.of_question(second)
        assert review.summary.endswith(f"since D-{number}/1: no changes")
        assert (await make.decide(number, True, make.owner, 2)).accepted
        assert (await wait_for_end(rt, number)).status is S.COMPLETED


async def test_failed_checks_go_back_to_the_agent_after_a_request(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    """The work that people wanted has as many iterations as the first."""
    code = f"""
{WRITE}
good = start["iteration"] in (1, 3)
write({{"a.txt": "two\\n" * good, "b.txt": str(start["iteration"])}})
say("result", summary="did it")
"""
    check = {"name": "tests", "command": ["grep", "-c", "two", "a.txt"]}
    fields: dict[str, Any] = ASKS | {"validation_commands": [check], "max_iterations": 2}
    number, _ = await profiled_job(rt, make, tmp_path / "repo", {}, **fields)
    async with agent_worker(rt, tmp_path / "data", code):
        await asked(rt, number, 1)
        await request_changes(call_of(rt, make.owner), (number, 1), "More")
        second = await asked(rt, number, 2)
        assert second.text.startswith("Publish ")
    events = await rt.read_model.job_events(number, limit=500)
    finished = [item.payload for item in events if item.kind == "iteration_finished"]
    assert [item["outcome"] for item in finished] == ["passed", "message", "failed", "passed"]


async def test_a_message_at_an_open_approval_requests_changes(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    number, _ = await profiled_job(rt, make, tmp_path / "repo", {}, **ASKS)
    async with agent_worker(rt, tmp_path / "data", BY_WORDS):
        await asked(rt, number, 1)
        call = call_of(rt, make.owner, "event")
        sent = await tell(call, number, "Use the v2 API")
        assert sent.says.startswith(f"sent to D-{number}: changes of D-{number}/1 are requested")
        await asked(rt, number, 2)
        again = await tell(call, number, "Use the v2 API")
        assert again.value.created is False
        assert await outcomes(rt, number) == ["changes_requested", "open"]


async def test_the_message_of_a_person_who_may_not_decide_waits_for_the_decision(
    rt: Runtime, make: Factory, tmp_path: Path, people: People
) -> None:
    number, _ = await profiled_job(rt, make, tmp_path / "repo", {}, **ASKS)
    async with agent_worker(rt, tmp_path / "data", BY_WORDS):
        await asked(rt, number, 1)
        sent = await tell(call_of(rt, people.ben), number, "one more thing")
        assert sent.says == f"sent to D-{number}: the agent gets it with its next run"
        assert await outcomes(rt, number) == ["open"]
        by_carol = await tell(call_of(rt, people.on("slack", "carol")), number, "use the v2 API")
        assert by_carol.value.review == f"D-{number}/1"
        await asked(rt, number, 2)
        messages = await rt.messages.of_job(number)
        assert [message.delivered_at is not None for message in messages] == [True, True]


async def test_a_retry_after_a_denial_has_its_reason(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    number, _ = await profiled_job(rt, make, tmp_path / "repo", {}, **ASKS)
    async with agent_worker(rt, tmp_path / "data", BY_WORDS):
        await asked(rt, number, 1)
        denied = await make.decide(number, False, make.owner, reason="too long")
        assert denied.job_status is S.FAILED
        retried = await retry(call_of(rt, make.owner), number)
        again = retried.value.number
        await asked(rt, again, 1)
        [message] = await rt.messages.of_job(again)
        assert message.text == f"Denied D-{number}/1: too long"
        assert message.sender == make.owner.voter
        assert (await make.decide(again, True, make.owner)).accepted
        job = await wait_for_end(rt, again)
    assert (job.result or {})["summary"] == f"Denied D-{number}/1: too long"


async def test_comments_are_on_lines_of_the_diff(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    number, _ = await profiled_job(rt, make, tmp_path / "repo", {}, **ASKS)
    cases = {
        "src/app.py:9=x": "the diff has no line 9 of src/app.py; its lines of the new version: 1-2",
        "other.py=x": "'other.py=x' is not a comment on a changed file; write FILE:LINE=TEXT or"
        " FILE=TEXT, with one of the files of the diff: b.txt, src/app.py",
        "b.txt": "'b.txt' is not a comment on a changed file; write FILE:LINE=TEXT or FILE=TEXT,"
        " with one of the files of the diff: b.txt, src/app.py",
    }
    async with agent_worker(rt, tmp_path / "data", BY_WORDS):
        await asked(rt, number, 1)
        call = call_of(rt, make.owner)
        for comment, problem in cases.items():
            with pytest.raises(UsageError) as refused:
                await request_changes(call, (number, 1), comments=[comment])
            assert str(refused.value) == problem
        with pytest.raises(UsageError, match="needs a text or a comment: what to change"):
            await request_changes(call, (number, 1), " ")
        assert await outcomes(rt, number) == ["open"]


async def test_the_first_decision_wins(rt: Runtime, make: Factory, tmp_path: Path) -> None:
    number, _ = await profiled_job(rt, make, tmp_path / "repo", {}, **ASKS)
    async with agent_worker(rt, tmp_path / "data", BY_WORDS):
        await asked(rt, number, 1)
        call = call_of(rt, make.owner)
        await request_changes(call, (number, 1), "No")
        with pytest.raises(AnswerTooLate) as late:
            await request_changes(call, (number, 1), "Yes")
        assert "your request for changes is already recorded" in str(late.value)
        verdict = await make.review(number, Decision.APPROVE, make.owner)
        assert (verdict.accepted, verdict.recorded) == (False, True)
        await asked(rt, number, 2)


async def test_an_approval_without_an_agent_takes_no_request(rt: Runtime, make: Factory) -> None:
    work = await make.asked(GATE)
    with pytest.raises(UsageError) as refused:
        await request_changes(call_of(rt, make.owner), (work.number, 1), "No")
    assert str(refused.value).startswith(
        f"D-{work.number}/1 takes no requests for changes: no agent would make them"
    )
