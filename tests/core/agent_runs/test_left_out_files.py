"""Jobs whose agent leaves files that git does not record: they are named, and the rest is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from draftsman.deliveries.result_text import change_summary
from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.worker.agent_jobs import agent_worker, make_repository, submit_agent_job
from tests.core.worker.workers import wait_for_end

S = Status
REST = 'open("rest.txt", "w").write("the rest")\n'
RESULT = 'say("result", summary="did it")\n'


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repo", a="one\n")


async def test_the_rest_of_the_work_is_kept_if_git_refuses_a_file(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    number = await submit_agent_job(make, repo)
    code = 'os.remove("a.txt"); os.mkfifo("a.txt"); open("git~1", "w").close()\n'
    code += REST + 'say("checkpoint", id="1", data=1); assert hear()["type"] == "ack"\n'
    async with agent_worker(rt, repo.parent / "data", code + RESULT):
        job = await wait_for_end(rt, number)
    assert (job.status, job.error_class) == (S.FAILED, "PERMANENT"), job.last_error
    assert len(await rt.read_model.runs(number)) == 1
    text = "cannot be recorded: a.txt (neither a file nor a link), git~1 ("
    assert text in (job.last_error or "")
    artifact = await rt.changes.patch(number)
    assert artifact is not None
    patch = (await rt.checkpoints.content(artifact)).decode()
    assert "+++ b/rest.txt" in patch
    assert patch.count("+++ ") == 1


async def test_a_nested_repository_is_named_in_the_result(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    number = await submit_agent_job(make, repo)
    code = 'import subprocess; subprocess.run(["git", "init", "-q", "lib"]); open("lib/f", "w")\n'
    async with agent_worker(rt, repo.parent / "data", code + RESULT):
        job = await wait_for_end(rt, number)
    assert job.status is S.COMPLETED, job.last_error
    assert job.result is not None
    assert job.result["left_out"] == ["lib (a repository of its own)"]
    text = "0 files changed, left out: lib (a repository of its own)"
    assert change_summary(job.result) == text
