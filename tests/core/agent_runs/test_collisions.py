"""Work that collides with the branch of another job, or with a base branch that has moved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from draftsman.agent_runs.signed_statement import sign_statement
from draftsman.jobs.job import Job, Status
from draftsman.questions.question import Decision
from draftsman.questions.response import Response
from draftsman.repos.repo_profile import profile
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.agent_runs.profiled_jobs import WRITE, profiled_job
from tests.core.worker.agent_jobs import agent_worker, git, submit_agent_job
from tests.core.worker.workers import event_kinds, last_event, wait_for_end, wait_for_question

S = Status
COMPLETION = "draftsman.agent_runs.completion"
ASK: dict[str, Any] = {"paths": [{"path": "ask/", "effect": "ask"}]}
CODE = f"""{WRITE}
write({{name: start["branch"] + "\\n" for name in start["request"]["text"].split()}})
say("result", summary="done")
"""


async def approve(rt: Runtime, make: Factory, number: int, ordinal: int) -> None:
    response = Response(source_event_id=f"{number}/{ordinal}", decision=Decision.APPROVE)
    assert (await rt.questions.answer(number, ordinal, response, make.owner)).accepted


async def completed(rt: Runtime, number: int) -> Job:
    job = await wait_for_end(rt, number)
    assert job.status is S.COMPLETED, job.last_error
    return job


def commit(repo: Path, name: str, text: str) -> str:
    """Move the base branch, and return its commit."""
    (repo / name).write_text(text)
    git("add", "-A", cwd=repo)
    git("commit", "-qm", f"change {name}", cwd=repo)
    return git("rev-parse", "HEAD", cwd=repo)


async def test_a_conflict_is_named_in_the_question_the_result_and_the_event(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    first, repo = await profiled_job(rt, make, tmp_path / "repo", {}, policy=ASK)
    await rt.job_control.cancel(first, make.owner)

    async def submit(text: str, title: str) -> int:
        return await submit_agent_job(make, repo, text=text, title=title)

    async with agent_worker(rt, tmp_path / "data", CODE):
        first = await submit("a.txt", "Fix rounding")
        assert "conflicts" not in ((await completed(rt, first)).result or {})
        apart = await submit("b.txt", "Apart")
        assert "conflicts" not in ((await completed(rt, apart)).result or {})
        second = await submit("a.txt ask/it.txt", "Fix it too")
        await wait_for_question(rt, second)
        question = await rt.questions.get(second, 1)
        context = f"Conflicts with D-{first} (Fix rounding): a.txt"
        assert (question.context_snippet or "") == context
        commit(repo, "a.txt", "moved\n")
        await approve(rt, make, second, 1)
        result = (await completed(rt, second)).result or {}
    expected = [
        {
            "job": f"D-{first}",
            "branch": f"draftsman/D-{first}",
            "title": "Fix rounding",
            "paths": ["a.txt"],
        },
        {
            "job": None,
            "branch": "the default branch",
            "title": "the base, which has moved",
            "paths": ["a.txt"],
        },
    ]
    assert result["conflicts"] == expected
    assert (await last_event(rt, second, "branch_published")).payload["conflicts"] == expected


async def test_a_moved_base_is_merged_and_supersedes_the_approval(
    rt: Runtime, make: Factory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = {"name": "check", "command": ["sh", "-c", "ls"]}
    policy = ASK | {"update_base": "merge"}
    fields: dict[str, Any] = {"policy": policy, "validation_commands": [check]}
    first, repo = await profiled_job(rt, make, tmp_path / "repo", {}, **fields)
    await rt.job_control.cancel(first, make.owner)
    number = await submit_agent_job(make, repo, text="ask/it.txt")
    async with agent_worker(rt, tmp_path / "data", CODE):
        await wait_for_question(rt, number)
        asked = await rt.questions.get(number, 1)
        base = commit(repo, "b.txt", "from the base\n")
        await approve(rt, make, number, 1)
        await wait_for_question(rt, number, 2)
        again = await rt.questions.get(number, 2)
        assert (await rt.questions.get(number, 1)).status == "superseded"
        assert (again.text, again.patch_sha256) == (asked.text, asked.patch_sha256)
        assert (again.action or {})["on"] == base[:12]
        summary = (await rt.changes.of_question(again)).summary
        assert summary == f"1 file changed, +1 -0; since D-{number}/1: no changes, new base commit"
        assert git("branch", "--list", "draftsman/*", cwd=repo) == ""
        assert (await event_kinds(rt, number)).count("validation_ran") == 2

        # the policy changes after the last approval, right before the push
        location = await rt.repos.place(str(repo))
        changed = profile(fields | {"policy": policy | {"large_file_kb": 7}})
        signed: list[bool] = []

        async def sign_and_change(*arguments: Any, **options: Any) -> None:
            await sign_statement(*arguments, **options)
            if not signed:
                signed.append(True)
                await rt.repos.save_profile(location.repo, changed, make.owner)

        monkeypatch.setattr(f"{COMPLETION}.sign_statement", sign_and_change)
        await approve(rt, make, number, 2)
        await wait_for_question(rt, number, 3)
        assert git("branch", "--list", "draftsman/*", cwd=repo) == ""
        await approve(rt, make, number, 3)
        result = (await completed(rt, number)).result or {}
    assert git("rev-parse", f"{result['commit']}^", cwd=repo) == base
    names = git("ls-tree", "-r", "--name-only", result["commit"], cwd=repo)
    assert names.split() == ["a.txt", "ask/it.txt", "b.txt"]
    moved = (await last_event(rt, number, "base_updated")).payload
    assert moved["to"] == base
