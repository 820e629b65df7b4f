"""Jobs whose agent leaves files that git does not record: they are named, and the rest is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from draftsman.deliveries.result_text import change_summary
from draftsman.jobs.job import Job, Status
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import profile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.attacks.catalog import attack
from tests.core.worker.agent_jobs import agent_worker, git, make_repository, submit_agent_job
from tests.core.worker.workers import wait_for_end, wait_for_question

S = Status
REST = 'open("rest.txt", "w").write("the rest")\n'
RESULT = 'say("result", summary="did it")\n'
NESTED = """
import subprocess
for folder in ("lib", "lib/deep/inner"):
    subprocess.run(["git", "init", "-q", folder], check=True)
open("lib/f", "w").write("of lib\\n")
os.chmod("lib/f", 0o755)
os.symlink("f", "lib/link")
open("lib/.gitignore", "w").write("*.o\\n")
open("lib/ignored.o", "w").write("x")
open("lib/deep/inner/g", "w").write("g\\n")
"""


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


async def outcome(
    rt: Runtime, make: Factory, repo: Path, answer: str | None, code: str = NESTED, **fields: Any
) -> Job:
    """Run a job that leaves a repository in its tree, with an answer to the question about it."""
    await rt.repos.add(Repo.at(parse(str(repo))), profile(fields), make.owner)
    number = await submit_agent_job(make, repo)
    async with agent_worker(rt, repo.parent / "data", code + RESULT):
        if answer is not None:
            await wait_for_question(rt, number)
            await make.answer(number, answer)
        return await wait_for_end(rt, number)


def published(repo: Path, job: Job) -> list[str]:
    """Return the files of the branch, each as its mode and path."""
    lines = git("ls-tree", "-r", f"draftsman/{job.name}", cwd=repo).splitlines()
    return [f"{line.split()[0]} {line.partition(chr(9))[2]}" for line in lines]


@pytest.mark.parametrize(
    ("answer", "left_out"), [("include", "ask"), (None, "include")], ids=["asked", "profile"]
)
@attack(
    "An agent puts its work into a repository of its own inside the clone, so that nobody sees it",
    surface="tree",
    with_sandbox="the job names the repository and asks: its files become ordinary files of the"
    " work, under its policy, or are left out",
)
async def test_the_files_of_a_nested_repository_become_files_of_the_work(
    rt: Runtime, make: Factory, repo: Path, answer: str | None, left_out: str
) -> None:
    job = await outcome(rt, make, repo, answer, left_out=left_out)
    assert job.status is S.COMPLETED, job.last_error
    assert published(repo, job) == [
        "100644 a.txt",
        "100644 lib/.gitignore",
        "100644 lib/deep/inner/g",
        "100755 lib/f",
        "120000 lib/link",
    ]
    assert job.result is not None
    assert "left_out" not in job.result
    assert job.result["files_changed"] == 4


async def test_people_publish_the_rest_without_them(rt: Runtime, make: Factory, repo: Path) -> None:
    job = await outcome(rt, make, repo, "without", REST + NESTED)
    assert job.status is S.COMPLETED, job.last_error
    assert published(repo, job) == ["100644 a.txt", "100644 rest.txt"]
    text = "1 file changed, +1 -0, left out: lib (a repository of its own)"
    assert change_summary(job.result or {}).endswith(text)
    question = await rt.questions.get(job.number, 1)
    assert question.text == (
        f"The work on draftsman/{job.name} has files that git leaves out: lib (a repository of its"
        " own). Include, publish without them, back to the agent, or stop?"
    )


async def test_work_that_is_only_in_a_nested_repository_does_not_disappear(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    job = await outcome(rt, make, repo, "stop")
    assert (job.status, job.error_class) == (S.FAILED, "PERMANENT")
    assert "git leaves out: lib (a repository of its own)" in (job.last_error or "")
    artifact = await rt.changes.patch(job.number)
    assert artifact is not None
    assert b"+++ b/lib/f" in await rt.checkpoints.content(artifact)


async def test_a_nested_repository_goes_back_to_the_agent(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    again = """
if start["iteration"] == 2:
    [item] = start["failed"]
    assert "lib (a repository of its own)" in item["output"], item
    import shutil
    shutil.rmtree("lib")
    open("kept.txt", "w").write("x\\n")
else:
"""
    nested = "".join(f"    {line}\n" for line in NESTED.splitlines())
    job = await outcome(rt, make, repo, "go on", again + nested)
    assert job.status is S.COMPLETED, job.last_error
    assert published(repo, job) == ["100644 a.txt", "100644 kept.txt"]


async def test_a_profile_leaves_nested_repositories_out(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    job = await outcome(rt, make, repo, None, left_out="leave")
    assert job.status is S.COMPLETED, job.last_error
    text = "0 files changed, left out: lib (a repository of its own)"
    assert change_summary(job.result or {}) == text


async def test_the_policy_judges_what_is_included(rt: Runtime, make: Factory, repo: Path) -> None:
    policy = {"paths": [{"path": "lib/f", "effect": "deny"}]}
    job = await outcome(rt, make, repo, None, left_out="include", policy=policy)
    assert job.status is S.FAILED
    assert "lib/f" in (job.last_error or "")


async def test_a_repository_is_still_known_after_another_question(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    """A later run has its files, but not its `.git`."""
    code = """
if not start["answers"]:
"""
    code += "".join(f"    {line}\n" for line in NESTED.splitlines())
    code += """
    say("checkpoint", id="1", data=1); assert hear()["type"] == "ack"
    parked(ask("pick", "Which color?"))
"""
    number = await submit_agent_job(make, repo)
    async with agent_worker(rt, repo.parent / "data", code + RESULT):
        await wait_for_question(rt, number)
        await make.answer(number, "red")
        await wait_for_question(rt, number, 2)
        await make.answer(number, "include", n=2)
        job = await wait_for_end(rt, number)
    assert job.status is S.COMPLETED, job.last_error
    assert "100755 lib/f" in published(repo, job)
