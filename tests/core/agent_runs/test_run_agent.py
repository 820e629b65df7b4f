"""`run_agent` end to end: source, agent, questions and results."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import psutil
import pytest

from draftsman.handlers import registry
from draftsman.jobs.job import Job, Status
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.core.worker.agent_jobs import (
    agent,
    agent_worker,
    contents,
    git,
    make_repository,
    submit_agent_job,
)
from tests.core.worker.workers import (
    event_kinds,
    is_free,
    last_event,
    run_of,
    running_worker,
    runtime_with,
    wait_for_end,
    wait_for_question,
)

S = Status
EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
WORK = """
open("a.txt", "a").write("two\\n")
open("new.txt", "w").write("new\\n")
say("result", summary="did it", data={"lines": 1})
"""


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repo", a="one\n", b="b\n")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


async def done(rt: Runtime, make: Factory, data: Path, repo: Path, code: str, **job: Any) -> Job:
    """Return the job after its agent has ended."""
    number = await submit_agent_job(make, repo, **job)
    async with agent_worker(rt, data, code):
        return await wait_for_end(rt, number)


async def log_of(rt: Runtime, number: int) -> str:
    return "".join(chunk.text for chunk in await rt.checkpoints.logs(number))


# --- results ----------------------------------------------------------------------------


async def test_work_is_published_as_branch_patch_and_result(
    rt: Runtime, make: Factory, data: Path, repo: Path
) -> None:
    before = git("rev-parse", "HEAD", cwd=repo)
    tree = contents(repo)
    job = await done(rt, make, data, repo, WORK)
    assert job.status is S.COMPLETED
    branch = f"draftsman/D-{job.number}"
    commit = git("rev-parse", branch, cwd=repo)
    assert job.result == {
        "summary": "did it",
        "data": {"lines": 1},
        "files_changed": 2,
        "insertions": 2,
        "deletions": 0,
        "commit": commit,
        "branch": branch,
    }
    assert git("rev-parse", f"{branch}^", cwd=repo) == before
    assert git("show", f"{branch}:a.txt", cwd=repo) == "one\ntwo"
    message = git("log", "-1", "--format=%B", branch, cwd=repo)
    assert message == f"Do it\n\ndid it\n\nMade by draftsman, D-{job.number}."
    [patch] = await rt.checkpoints.artifacts(job.number)
    assert (patch.name, patch.kind) == ("changes.patch", "patch")
    (repo / "patch").write_bytes((await rt.checkpoints.read_artifact(job.number, patch.name))[1])
    git("apply", "patch", cwd=repo)
    (repo / "patch").unlink()
    assert (repo / "new.txt").read_text() == "new\n"
    git("checkout", "-q", ".", cwd=repo)
    (repo / "new.txt").unlink()
    now = contents(repo)
    assert {name: now[name] for name in tree if name != ".git/index"}.items() <= tree.items()
    resolved = await last_event(rt, job.number, "repo_resolved")
    resolution = {"method": "explicit", "confidence": 1.0, "owner": "", "name": "repo"}
    assert resolved.payload == {"source": str(repo), "base_sha": before, **resolution}
    assert (await last_event(rt, job.number, "branch_published")).payload["commit"] == commit
    assert list((data / "runs").iterdir()) == []


async def test_a_run_records_its_agent_its_parameters_and_its_exit_code(
    rt: Runtime, make: Factory, data: Path, repo: Path
) -> None:
    number = await submit_agent_job(make, repo, overrides={"call_timeout": 7}, skills=["sql"])
    tested = agent(WORK) | {"version": "1.2"}
    tested["command"].append("--password=hunter2hunter2")
    configured = runtime_with(rt, data_dir=data, agents={"test": tested})
    async with running_worker(configured, registry.load({})):
        job = await wait_for_end(rt, number)
    run = await run_of(rt, number)
    assert (job.status, run.exit_code) == (S.COMPLETED, 0)
    params = run.params_snapshot
    assert params["call_timeout"] == 7, "the overrides of the job are part of it"
    assert "hunter2" not in str(params)
    names = ("agent", "version", "repo", "mode", "skills")
    assert [params[name] for name in names] == ["test", "1.2", str(repo), "fix", ["sql"]]
    assert params["base_sha"] == git("rev-parse", "HEAD", cwd=repo)
    assert params["command"][0] == "{python}"
    assert (params["sandbox"]["network"], params["limits"]) == (False, {})
    begun = (await last_event(rt, number, "iteration_started")).payload
    assert (begun["iteration"], begun["agent"], begun["version"]) == (1, "test", "1.2")
    assert begun["runner"].startswith("draftsman ")


PULL = """
import os
open("a.txt", "a").write("two\\n")
url, here = "https://git.example/acme/pay/pull/7", start["workspace"]
say("result", summary=f"see {here}/a.txt", data={
    "pr_url": url, "files": [here, f"{here}/a.txt"], "log": os.environ["HOME"] + "/x.log"})
"""


async def test_paths_of_a_result_are_relative_and_a_link_to_another_host_is_no_pull_request(
    rt: Runtime, make: Factory, data: Path, repo: Path
) -> None:
    job = await done(rt, make, data, repo, PULL)
    url = "https://git.example/acme/pay/pull/7"
    result = job.result or {}
    assert (result.get("pr_url"), result["summary"], job.pr_url) == (None, "see a.txt", None)
    assert result["data"] == {"pr_url": url, "files": [".", "a.txt"], "log": "~/x.log"}
    assert "pr_created" not in await event_kinds(rt, job.number)
    log = "".join(chunk.text for chunk in await rt.checkpoints.logs(job.number))
    assert "[ignored] pr_url of the result is not a page: the repository is a folder" in log


async def test_work_without_changes_publishes_no_branch(
    rt: Runtime, make: Factory, data: Path, repo: Path
) -> None:
    job = await done(rt, make, data, repo, 'say("result", summary="all is fine")')
    assert job.result == {"summary": "all is fine", "data": {}, "files_changed": 0}
    assert git("branch", "--list", "draftsman/*", cwd=repo) == ""
    assert await rt.checkpoints.artifacts(job.number) == []


async def test_investigate_mode_stores_a_patch_and_no_branch(
    rt: Runtime, make: Factory, data: Path, repo: Path
) -> None:
    code = f'assert start["mode"] == "investigate"\n{WORK}'
    job = await done(rt, make, data, repo, code, mode="investigate")
    assert job.status is S.COMPLETED
    assert "branch" not in (job.result or {})
    assert git("branch", "--list", "draftsman/*", cwd=repo) == ""
    assert [item.name for item in await rt.checkpoints.artifacts(job.number)] == ["changes.patch"]


async def test_an_existing_branch_is_not_overwritten(
    rt: Runtime, make: Factory, data: Path, repo: Path
) -> None:
    number = await submit_agent_job(make, repo)
    git("branch", f"draftsman/D-{number}", cwd=repo)
    async with agent_worker(rt, data, WORK):
        job = await wait_for_end(rt, number)
    assert (job.status, job.error_class) == (S.FAILED, "PERMANENT")
    assert f"draftsman/D-{number}" in (job.last_error or "")
    assert "\n" not in (job.last_error or "")
    assert git("rev-parse", f"draftsman/D-{number}", cwd=repo) == git("rev-parse", "main", cwd=repo)
    assert [item.name for item in await rt.checkpoints.artifacts(number)] == ["changes.patch"]


async def test_the_start_message_has_all_data_of_the_job(
    rt: Runtime, make: Factory, data: Path, repo: Path
) -> None:
    folders = 'start |= {"cwd": os.getcwd().split("/"), "workspace": start["workspace"].split("/")}'
    code = f'{folders}; say("result", summary="", data=start)'
    fields: dict[str, Any] = {"title": "Fix it", "text": "All of it", "skills": ["sql", "python"]}
    job = await done(rt, make, data, repo, code, **fields)
    message = (job.result or {})["data"]
    assert (message["v"], message["job"], message["run"], message["mode"]) == (
        1,
        job.name,
        1,
        "fix",
    )
    assert (message["repo"], message["branch"]) == (str(repo), f"draftsman/{job.name}")
    assert message["cwd"] == message["workspace"]
    assert message["workspace"] == ["", "workspace", "repo"]
    assert message["base_sha"] == git("rev-parse", "HEAD", cwd=repo)
    assert (message["checkpoint"], message["steps"], message["answers"]) == (None, {}, {})
    assert message["request"] == {"title": "Fix it", "text": "All of it"}
    assert message["profile"]["skills"] == ["sql", "python"]
    assert [command["name"] for command in message["profile"]["validation_commands"]]


async def test_a_ref_is_pinned_for_all_runs(
    rt: Runtime, make: Factory, data: Path, repo: Path
) -> None:
    old = git("rev-parse", "HEAD", cwd=repo)
    git("branch", "stable", cwd=repo)
    (repo / "a.txt").write_text("newer\n")
    git("commit", "-qam", "second", cwd=repo)
    code = """
parked(ask("go"))
say("result", summary="", data={"is": [start["base_sha"], open("a.txt").read()]})
"""
    number = await submit_agent_job(make, repo, ref="stable")
    async with agent_worker(rt, data, code):
        await wait_for_question(rt, number)
        git("branch", "-f", "stable", "main", cwd=repo)
        await make.answer(number, "red")
        job = await wait_for_end(rt, number)
    assert (job.result or {})["data"] == {"is": [old, "one\n"]}


# --- people -------------------------------------------------------------------------------------


async def test_a_question_parks_the_agent_and_its_answer_restarts_it(
    rt: Runtime, make: Factory, data: Path, repo: Path, tmp_path: Path
) -> None:
    code = """
reply = ask("color")
if reply["type"] == "park":
    assert reply["id"] == "color"
    sys.exit(0)
say("result", summary="got it", data={"told": start["answers"], "reply": reply})
"""
    number = await submit_agent_job(make, repo)
    async with agent_worker(rt, data, code) as process:
        await wait_for_question(rt, number)
        await until(lambda: is_free(process), "a free slot")
        assert guards() == []
        await make.answer(number, "blue")
        job = await wait_for_end(rt, number)
    assert job.run_count == 2
    result = (job.result or {})["data"]
    expected = {"outcome": "answered", "value": "blue", "text": None, "reason": None}
    assert result["told"]["color"].items() >= expected.items()
    assert result["told"]["color"]["by"] == [make.owner.voter]
    assert result["reply"].items() >= (expected | {"type": "answer", "id": "color"}).items()


def guards() -> list[psutil.Process]:
    """Return the running guards of this process, oldest first."""
    processes = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            processes += [child] if "sandbox.processes.guard" in " ".join(child.cmdline()) else []
    return processes


# --- checkpoints ---------------------------------------------------------------------------------

CHANGES = """
if start["run"] == 1:
    open("a.txt", "w").write("changed\\n")
    os.remove("b.txt")
    os.makedirs("new/deep")
    open("new/deep/file", "w").write("new\\n")
    open("data.bin", "wb").write(bytes(range(256)) * 100)
    open("run.sh", "w").write("#!/bin/sh\\n")
    os.chmod("run.sh", 0o755)
    say("checkpoint", id="c", data={"at": 7})
    reply = hear()
    assert (reply["type"], reply["id"], len(reply["tree"])) == ("ack", "c", 40)
    open("after.txt", "w").write("after the checkpoint, so it is lost\\n")
parked(ask("go"))
found = {}
for folder, _, names in os.walk("."):
    if not folder.startswith("./.git"):
        for name in names:
            path = os.path.join(folder, name)
            found[path] = [os.stat(path).st_mode & 0o777, open(path, "rb").read().hex()]
status = os.popen("git status --porcelain --untracked-files=all").read().splitlines()
say("result", summary="", data={
    "found": found, "at": start["checkpoint"], "status": status,
    "where": start["workspace"].split("/")})
"""


async def test_another_host_continues_with_the_tree_of_the_checkpoint(
    rt: Runtime, make: Factory, data: Path, repo: Path, tmp_path: Path
) -> None:
    """It fetches the base from the source by its id, though the source has moved on."""
    number = await submit_agent_job(make, repo)
    async with agent_worker(rt, data, CHANGES):
        await wait_for_question(rt, number)
    (repo / "a.txt").write_text("main went on\n")
    git("commit", "-qam", "second", cwd=repo)
    await make.answer(number, "red")
    async with agent_worker(rt, tmp_path / "elsewhere", CHANGES):
        job = await wait_for_end(rt, number)
    assert job.status is S.COMPLETED
    assert git("merge-base", "main", f"draftsman/{job.name}", cwd=repo) == git(
        "rev-parse", "main~1", cwd=repo
    )
    result = (job.result or {})["data"]
    assert result["where"] == ["", "workspace", "repo"]
    assert result["at"] == {"at": 7}
    assert result["found"] == {
        "./a.txt": [0o644, b"changed\n".hex()],
        "./new/deep/file": [0o644, b"new\n".hex()],
        "./data.bin": [0o644, (bytes(range(256)) * 100).hex()],
        "./run.sh": [0o755, b"#!/bin/sh\n".hex()],
    }
    assert sorted(result["status"]) == [
        " D b.txt",
        " M a.txt",
        "?? data.bin",
        "?? new/deep/file",
        "?? run.sh",
    ]
    assert (job.result or {})["files_changed"] == 5


# --- concurrency --------------------------------------------------------------------------


@pytest.mark.slow(
    fast="tests/core/agent_runs/clones/test_workspace.py::test_runs_of_a_source_can_start_concurrently"
)
async def test_jobs_of_one_repository_run_concurrently(
    rt: Runtime, make: Factory, data: Path, repo: Path
) -> None:
    """They create the mirror, and push to the source, at the same time."""
    code = """
open("a.txt", "a").write(start["job"])
say("checkpoint", id="c", data=1); hear()
say("result", summary="")
"""
    numbers = [await submit_agent_job(make, repo) for _ in range(4)]
    async with agent_worker(rt, data, code, slots=4):
        jobs = [await wait_for_end(rt, number) for number in numbers]
    assert [(job.status, job.last_error, job.attempts) for job in jobs] == [
        (S.COMPLETED, None, 0)
    ] * len(jobs)
    for job in jobs:
        assert git("show", f"draftsman/{job.name}:a.txt", cwd=repo) == f"one\n{job.name}"
    git("fsck", "--strict", cwd=repo)


# --- the examples of the documentation ----------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(
            ["{python}", str(EXAMPLES / "agent.py")],
            marks=pytest.mark.slow(
                fast="tests/docs/test_agent_protocol.py::test_example_asks_parks_and_applies_the_answer"
            ),
        ),
        ["sh", str(EXAMPLES / "agent.sh")],
    ],
    ids=["python", "shell"],
)
async def test_the_examples_of_the_documentation_work(
    rt: Runtime, make: Factory, data: Path, repo: Path, command: list[str]
) -> None:
    jobs = {word: await submit_agent_job(make, repo) for word in ("hello", "goodbye")}
    configured = runtime_with(rt, data_dir=data, agents={"test": {"command": command}})
    async with running_worker(configured, registry.load({})):
        for word, number in jobs.items():
            await wait_for_question(rt, number)
            [question] = await rt.questions.open(number)
            assert (question.text, question.labels()) == ("Which greeting?", ["hello", "goodbye"])
            await make.answer(number, word, only=True)
        for word, number in jobs.items():
            job = await wait_for_end(rt, number)
            assert (job.status, (job.result or {})["summary"]) == (S.COMPLETED, f"said {word}")
            assert word in git("show", f"draftsman/{job.name}:GREETING.txt", cwd=repo)
