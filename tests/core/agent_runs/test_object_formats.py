"""A job on a repository with SHA-256 objects, from its request to its branch."""

from __future__ import annotations

from pathlib import Path

from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.worker.agent_jobs import agent_worker, git, submit_agent_job
from tests.core.worker.workers import wait_for_end


async def test_work_is_published_with_sha256(rt: Runtime, make: Factory, tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    git("init", "-q", "-bmain", "--template=", "--object-format=sha256", ".", cwd=repo)
    (repo / "a.txt").write_text("one\n")
    git("add", "-A", cwd=repo)
    git("commit", "-qm", "first", cwd=repo)
    number = await submit_agent_job(make, repo)
    code = 'open("a.txt", "w").write("two\\n"); say("checkpoint", id="1", data=1)\n'
    code += 'assert hear()["type"] == "ack"; say("result", summary="did it")\n'
    async with agent_worker(rt, tmp_path / "data", code):
        job = await wait_for_end(rt, number)
    assert job.status is Status.COMPLETED, job.last_error
    assert job.result is not None
    commit = git("rev-parse", f"draftsman/{job.name}", cwd=repo)
    assert (len(commit), job.result["commit"]) == (64, commit)
    assert git("show", f"{commit}:a.txt", cwd=repo) == "two"
