"""Validators and limits of a profile that an agent's work must meet before it is published."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from draftsman.agent_runs.policy_check import REQUIRED
from draftsman.jobs.job import Job, Status
from draftsman.questions.question import Decision, QuestionKind
from draftsman.questions.response import Response
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import profile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.attacks.catalog import attack
from tests.core.worker.agent_jobs import agent_worker, git, make_repository, submit_agent_job
from tests.core.worker.workers import (
    event_kinds,
    last_event,
    wait_for_end,
    wait_for_question,
)

S = Status
TESTS = {"name": "tests", "command": ["sh", "-c", "touch made-by-tests; grep -c two a.txt"]}
IMPROVES = """
failed = [item["name"] for item in start["failed"]]
text = {1: "one\\nno\\n", 2: "one\\ntwo\\n"}[start["iteration"]]
open("a.txt", "w").write(text)
files = sorted(os.listdir("."))
say("result", summary=f"iteration {start['iteration']}", data={"failed": failed, "files": files})
"""
WRITES = """
say("usage", cost_usd=0.5)
for name in start["request"]["text"].split():
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    open(name, "w").write("x\\n")
say("result", summary=f"run {start['run']}")
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


async def repository(rt: Runtime, make: Factory, path: Path, **fields: Any) -> Repo:
    """Register a repository with this profile."""
    repo = Repo.at(parse(str(make_repository(path))))
    return await rt.repos.add(repo, profile(fields), make.owner)


async def job_of(
    rt: Runtime, make: Factory, data: Path, code: str, job: dict[str, Any], **fields: Any
) -> Job:
    """Return the ended job of an agent in a repository with this profile."""
    repo = await repository(rt, make, data.parent / "repo", **fields)
    number = await submit_agent_job(make, repo.remote_url, **job)
    async with agent_worker(rt, data, code):
        return await wait_for_end(rt, number)


def branches(data: Path) -> str:
    return git("branch", "--list", "draftsman/*", cwd=data.parent / "repo")


# --- required validators ----------------------------------------------------------------


async def test_work_returns_to_the_agent_until_its_required_validators_pass(
    rt: Runtime, make: Factory, data: Path
) -> None:
    job = await job_of(rt, make, data, IMPROVES, {}, validation_commands=[TESTS])
    result = job.result or {}
    assert (job.status, job.run_count, result["summary"]) == (S.COMPLETED, 1, "iteration 2")
    assert result["data"] == {"failed": ["tests"], "files": [".git", "a.txt"]}
    assert result["validated"] is True
    kinds = await event_kinds(rt, job.number)
    assert (kinds.count("iteration_started"), kinds.count("validation_ran")) == (2, 2)
    assert (await last_event(rt, job.number, "iteration_started")).payload["iteration"] == 2


async def test_a_required_validator_that_is_not_installed_blocks_at_once(
    rt: Runtime, make: Factory, data: Path
) -> None:
    style = {"name": "style", "command": ["no-such-program"]}
    job = await job_of(rt, make, data, IMPROVES, {}, validation_commands=[style])
    assert (job.status, branches(data)) == (S.FAILED, "")
    assert (job.last_error or "").endswith("install style on the workers")
    assert (await event_kinds(rt, job.number)).count("iteration_started") == 1


@pytest.mark.slow(fast="test_work_returns_to_the_agent_until_its_required_validators_pass")
async def test_the_iteration_continues_after_its_worker_was_replaced(
    rt: Runtime, make: Factory, data: Path
) -> None:
    code = f"""
if start["iteration"] == 2 and start["run"] == 1:
    open("waiting", "w").write("x")
    hear()
{IMPROVES}"""
    repo = await repository(rt, make, data.parent / "repo", validation_commands=[TESTS])
    number = await submit_agent_job(make, repo.remote_url)
    async with agent_worker(rt, data, code):

        async def in_second() -> bool:
            return (await event_kinds(rt, number)).count("iteration_started") == 2

        await until(in_second, "the second iteration")
    async with agent_worker(rt, data, code):
        job = await wait_for_end(rt, number)
    assert (job.status, job.run_count) == (S.COMPLETED, 2), job.last_error
    assert (job.result or {})["summary"] == "iteration 2"


# --- limits -----------------------------------------------------------------------------


async def test_changes_outside_of_the_allowed_paths_are_not_published(
    rt: Runtime, make: Factory, data: Path
) -> None:
    limits = {"path_allowlist": ["src/", "*.md"]}
    files = {"text": "src/a.py docs/deep/b.md c.txt src2/d"}
    job = await job_of(rt, make, data, WRITES, files, **limits)
    assert (job.status, job.error_class, branches(data)) == (S.FAILED, "PERMANENT", "")
    assert job.last_error == (
        "not published: It changes paths outside of the allowed paths: c.txt, src2/d; denied by"
        " path_allowlist; draftsman policy show has the rules;"
        f" to read the work: draftsman diff {job.name}"
    )


async def test_investigation_is_not_limited(rt: Runtime, make: Factory, data: Path) -> None:
    job = {"text": "c.txt", "mode": "investigate"}
    limits = {"path_allowlist": ["src/"], "validation_commands": [TESTS]}
    assert (await job_of(rt, make, data, WRITES, job, **limits)).status is S.COMPLETED


async def test_work_over_a_limit_is_published_after_an_approval_of_its_patch(
    rt: Runtime, make: Factory, data: Path
) -> None:
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"max_files_changed": 1}, "It changes 2 files, more than 1 (max_files_changed)."),
        ({"max_loc_delta": 1}, "It adds and deletes 2 lines, more than 1 (max_loc_delta)."),
        ({"risky_paths": ["db/"]}, "It changes risky paths: db/1.sql."),
    )
    repos = [
        await repository(rt, make, data.parent / f"repo{n}", **limits)
        for n, (limits, _) in enumerate(cases)
    ]
    files = {"text": "db/1.sql b.txt"}
    numbers = [await submit_agent_job(make, repo.remote_url, **files) for repo in repos]
    denied = await submit_agent_job(make, repos[0].remote_url, **files)
    async with agent_worker(rt, data, WRITES):
        for number, repo, (_, reason) in zip(numbers, repos, cases, strict=True):
            await wait_for_question(rt, number)
            question = await rt.questions.get(number, 1)
            assert question.kind is QuestionKind.APPROVAL
            assert question.text == f"Publish draftsman/D-{number}? {REQUIRED}. {reason}"
            assert question.patch_sha256 is not None
            assert git("branch", "--list", "draftsman/*", cwd=Path(repo.remote_url)) == ""
            response = Response(source_event_id=str(number), decision=Decision.APPROVE)
            assert (await rt.questions.answer(number, 1, response, make.owner)).accepted
            job = await wait_for_end(rt, number)
            assert (job.status, job.run_count) == (S.COMPLETED, 2), reason
            result = job.result or {}
            assert result["summary"] == "run 1", "the agent did not run again"
            assert git("show", f"{result['branch']}:db/1.sql", cwd=Path(repo.remote_url)) == "x"
        await wait_for_question(rt, denied)
        response = Response(source_event_id="denied", decision=Decision.DENY, reason="too much")
        assert (await rt.questions.answer(denied, 1, response, make.owner)).accepted
        job = await wait_for_end(rt, denied)
    assert (job.status, job.error_class) == (S.FAILED, "DENIED")
    branch = f"draftsman/D-{denied}"
    assert git("branch", "--list", branch, cwd=Path(repos[0].remote_url)) == ""


async def test_work_that_nobody_can_approve_is_not_published(
    rt: Runtime, make: Factory, data: Path
) -> None:
    repo = await repository(rt, make, data.parent / "repo", max_files_changed=1)
    number = await submit_agent_job(make, repo.remote_url, text="b.txt c.txt")
    settings = rt.settings.model_copy(update={"people": {}, "groups": {}})
    async with agent_worker(replace(rt, settings=settings), data, WRITES):
        job = await wait_for_end(rt, number)
    assert (job.status, job.error_class, branches(data)) == (S.FAILED, "PERMANENT", "")
    error = job.last_error or ""
    assert await rt.changes.patch(number) is not None
    assert error.startswith("not published: ")
    assert error.endswith(
        f"2 files, more than 1 (max_files_changed); to read the work: draftsman diff D-{number}"
    )


async def test_a_secret_in_a_binary_file_is_denied(rt: Runtime, make: Factory, data: Path) -> None:
    code = """
key = "AKIA" + "QWERTYUIOPASDFG2"
open("a.bin", "wb").write(b"\\0\\n" + key.encode())
open("b.bin", "wb").write(key.encode("utf-16"))
say("result", summary="x")
"""
    job = await job_of(rt, make, data, code, {})
    assert (job.status, branches(data)) == (S.FAILED, "")
    assert "a.bin:2 (AWS Access Key)" in str(job.last_error)
    assert "b.bin:1 (AWS Access Key)" in str(job.last_error)


@attack(
    "An agent gives a link of the repository another target or name, past a rule that denies both",
    surface="repository",
    with_sandbox="a link counts as a change of what it points to, also in its new place",
)
async def test_a_link_that_is_moved_or_points_elsewhere_is_denied(
    rt: Runtime, make: Factory, data: Path
) -> None:
    code = """
text = start["request"]["text"]
if text == "target":
    os.unlink("link")
    os.symlink("infra/x", "link")
else:
    os.rename("a/deep/link", "link2")
say("result", summary="x")
"""
    policy = {"paths": [{"path": "infra/", "effect": "deny"}]}
    repo = await repository(rt, make, data.parent / "repo", policy=policy)
    path = Path(repo.remote_url)
    (path / "a/deep").mkdir(parents=True)
    (path / "link").symlink_to("a.txt")
    (path / "a/deep/link").symlink_to("infra/x")
    git("add", "-A", cwd=path)
    git("commit", "-qm", "links", cwd=path)
    numbers = [await submit_agent_job(make, repo.remote_url, text=x) for x in ("target", "name")]
    async with agent_worker(rt, data, code):
        jobs = [await wait_for_end(rt, number) for number in numbers]
    assert [job.status for job in jobs] == [S.FAILED, S.FAILED]
    places = [str(job.last_error) for job in jobs]
    assert "link (rule infra/, link to infra/x)" in places[0]
    assert "link2 (rule infra/, link to infra/x)" in places[1]


@attack(
    "An agent hides thousands of lines from the limits by a NUL at the start of the file",
    surface="repository",
    with_sandbox="the lines of text in a binary file count",
)
async def test_lines_after_a_nul_count_for_the_limits(
    rt: Runtime, make: Factory, data: Path
) -> None:
    code = """
open("a.py", "w").write("#\\0\\n" + "x = 1\\n" * 20)
say("result", summary="x")
"""
    job = await job_of(rt, make, data, code, {}, policy={"deny_lines_over": 10})
    assert (job.status, branches(data)) == (S.FAILED, "")
    assert "21 lines, more than 10 (deny_lines_over)" in str(job.last_error)
