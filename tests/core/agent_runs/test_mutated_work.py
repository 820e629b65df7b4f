"""Work that changes after its approval, for each guardrail: nothing of it is published unseen."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from draftsman.jobs.job import Status
from draftsman.questions.question import Decision
from draftsman.questions.response import Response
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.agent_runs.profiled_jobs import WRITE, profiled_job
from tests.core.worker.agent_jobs import agent_worker, git, submit_agent_job
from tests.core.worker.workers import wait_for_end, wait_for_question

S = Status
FILES: Final = {
    "ci": ".github/workflows/ci.yml",
    "licenses": "LICENSE",
    "migrations": "migrations/0002.sql",
    "lock_files": "uv.lock",
    "large_files": "large.txt",
    "binary_files": "logo.bin",
    "secrets": "key.py",
    "path": "billing/tax.py",
}
"""A file that each rule finds."""
ASK: Final[dict[str, Any]] = {
    **dict.fromkeys(("migrations", "lock_files", "binary_files", "secrets"), "ask"),
    "paths": [{"path": "billing/", "effect": "ask"}],
    "large_file_kb": 1,
}
CODE: Final = f"""{WRITE}
name, turn = start["request"]["text"], str(len(start["messages"]))
key = "key = 'ghp_" + "Ab1" * 12 + "'\\n# "
texts = {{"logo.bin": "\\0" * 9, "large.txt": "x" * 2000, "key.py": key}}
write({{name: texts.get(name, "text ") + turn}})
say("checkpoint", id=turn, data={{"turn": turn}})
hear()
say("result", summary="done")
"""


async def approve(rt: Runtime, make: Factory, number: int, ordinal: int) -> None:
    """Approve the work as it is shown."""
    response = Response(source_event_id=f"{number}/{ordinal}", decision=Decision.APPROVE)
    assert (await rt.questions.answer(number, ordinal, response, make.owner)).accepted


@pytest.mark.slow(
    fast="tests/core/agent_runs/test_collisions.py"
    "::test_a_moved_base_is_merged_and_supersedes_the_approval"
)
async def test_a_changed_byte_after_the_approval_is_approved_anew(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    """A message makes the agent change one byte of the approved file, right before the push."""
    first, repo = await profiled_job(rt, make, tmp_path / "repo", {}, policy=ASK)
    await rt.job_control.cancel(first, make.owner)
    jobs = {rule: await submit_agent_job(make, repo, text=name) for rule, name in FILES.items()}
    async with agent_worker(rt, tmp_path / "data", CODE):
        for rule, number in jobs.items():
            await wait_for_question(rt, number)
            asked = await rt.questions.get(number, 1)
            shown = f"{asked.text}\n{asked.context_snippet}"
            assert FILES[rule] in shown, (rule, shown)
            await rt.messages.send(number, make.owner, "Change it", event=f"m{number}")
            await approve(rt, make, number, 1)
        for number in jobs.values():
            await wait_for_question(rt, number, 2)
            before, again = [await rt.questions.get(number, ordinal) for ordinal in (1, 2)]
            assert before.status == "superseded"
            assert before.patch_sha256 != again.patch_sha256
            summary = (await rt.changes.of_question(again)).summary
            assert f"since D-{number}/1: 1 file" in summary, summary
        assert git("branch", "--list", "draftsman/*", cwd=repo) == "", "nothing was published"
        for number in jobs.values():
            await approve(rt, make, number, 2)
        for rule, number in jobs.items():
            job = await wait_for_end(rt, number)
            assert job.status is S.COMPLETED, (rule, job.last_error)
            commit = (job.result or {})["commit"]
            assert git("show", f"{commit}:{FILES[rule]}", cwd=repo).endswith("1")
