"""`checkout` and `apply`: the changes of a job in a repository of a person."""

from __future__ import annotations

from pathlib import Path

import pytest

from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.worker.agent_jobs import agent_worker, git, make_repository, submit_agent_job
from tests.core.worker.workers import wait_for_end
from tests.tui.cli.cli_runner import Cli
from tests.tui.dashboard.pilot import open_dashboard

WORK = """
open("a.txt", "w").write("zero\\none\\ntwo\\nthree\\nfour\\nfive\\n")
open("new.txt", "w").write("new\\n")
say("result", summary="did it")
"""
BEFORE = "one\ntwo\nthree\nfour\n"


@pytest.fixture
async def job(rt: Runtime, make: Factory, tmp_path: Path) -> str:
    """Provide a job with a published branch in `origin`."""
    origin = make_repository(tmp_path / "origin", a=BEFORE)
    number = await submit_agent_job(make, origin)
    async with agent_worker(rt, tmp_path / "data", WORK):
        await wait_for_end(rt, number)
    git("clone", "-q", str(origin), str(tmp_path / "mine"), cwd=tmp_path)
    return f"D-{number}"


def commit(repo: Path, name: str, text: str) -> str:
    (repo / name).write_text(text)
    git("add", "-A", cwd=repo)
    git("commit", "-qm", f"change {name}", cwd=repo)
    return git("rev-parse", "HEAD", cwd=repo)


async def test_the_branch_of_a_job_is_checked_out_and_nothing_is_lost(
    cli: Cli, make: Factory, job: str, tmp_path: Path
) -> None:
    mine = tmp_path / "mine"
    origin = tmp_path / "origin"
    branch = f"draftsman/{job}"
    published = git("rev-parse", branch, cwd=origin)

    def checked_out() -> tuple[str, str]:
        return git("branch", "--show-current", cwd=mine), git("rev-parse", "HEAD", cwd=mine)

    (mine / "a.txt").write_text("my change\n")
    refused = await cli("checkout", job, "-C", mine)
    refused.refused(1, "has 1 changed file; commit or stash them, or use --worktree")
    assert (mine / "a.txt").read_text() == "my change\n"
    assert git("branch", "--list", branch, cwd=mine) == ""
    beside = await cli("checkout", job, "-C", mine, "--worktree", "--detach")
    assert beside.out == f"{tmp_path / f'mine-{job}'}\n"
    assert (tmp_path / f"mine-{job}" / "new.txt").exists()
    git("checkout", "-q", ".", cwd=mine)

    second = tmp_path / "second"
    flags = ("-C", mine, "--worktree", "--path", second)
    for _ in range(2):
        assert (await cli("checkout", job, *flags)).out == f"{second}\n"
    done = await cli("checkout", job, "-C", mine, "--worktree")
    assert done.out == f"{second}\n", "the branch is in a single working tree"
    where = f"{branch} is already checked out in {second}; go there, or use --detach"
    (await cli("checkout", job, "-C", mine)).refused(1, where)
    (await cli("checkout", job, "-C", second, "--worktree")).refused(1, where)
    git("worktree", "remove", str(second), cwd=mine)

    done = await cli("checkout", job, "-C", mine, "--json")
    assert done.json == {"job": job, "branch": branch, "commit": published, "path": str(mine)}
    assert checked_out() == (branch, published)
    assert (await cli("checkout", job, "-C", mine / ".git" / "..")).code == 0, "it is idempotent"

    git("checkout", "-q", branch, cwd=origin)
    newer = commit(origin, "b.txt", "of a colleague\n")
    assert (await cli("checkout", job, "-C", mine)).code == 0
    assert checked_out() == (branch, newer), "it moves forward"
    own = commit(mine, "c.txt", "mine\n")
    git("checkout", "-q", "main", cwd=mine)
    assert (await cli("checkout", job, "-C", mine)).code == 0
    assert checked_out() == (branch, own), "commits of the person stay"

    git("reset", "-q", "--hard", "main", cwd=mine)
    other = commit(mine, "d.txt", "other\n")
    git("checkout", "-q", "main", cwd=mine)
    refused = await cli("checkout", job, "-C", mine)
    refused.refused(1, f"your branch {branch} has other commits ({other[:12]}); rename it, or use")
    assert (await cli("checkout", job, "-C", mine, "--detach")).code == 0
    assert checked_out() == ("", newer)
    assert git("rev-parse", branch, cwd=mine) == other

    hook = origin / ".husky" / "post-checkout"
    hook.parent.mkdir()
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
    hook.chmod(0o755)
    commit(origin, "b.txt", "with a hook\n")
    git("config", "core.hooksPath", ".husky", cwd=mine)
    assert (await cli("checkout", job, "-C", mine, "--detach")).code == 0
    git("checkout", "-q", "main", cwd=mine)
    beside = await cli(
        "checkout", job, "-C", mine, "--worktree", "--detach", "--path", tmp_path / "w"
    )
    assert beside.code == 0
    assert (tmp_path / "w" / ".husky" / "post-checkout").exists()
    assert not (tmp_path / "ran").exists(), "no hook of the branch runs"


async def test_a_checkout_that_cannot_be_right_is_refused(
    cli: Cli, rt: Runtime, make: Factory, job: str, tmp_path: Path
) -> None:
    unpublished = await make.running()
    done = await cli("checkout", unpublished.name, "-C", tmp_path / "mine")
    done.refused(1, f"{unpublished.name} has no changes so far")
    await rt.changes.store(unpublished.lease, b"diff")
    done = await cli("checkout", unpublished.name, "-C", tmp_path / "mine")
    done.refused(1, "has no published branch; to use its changes: draftsman apply")
    stranger = make_repository(tmp_path / "stranger", z="z\n")
    (await cli("checkout", job, "-C", stranger)).refused(1, "use a clone of that repository")
    assert git("branch", "--list", "draftsman/*", cwd=stranger) == ""
    (await cli("checkout", job, "-C", tmp_path)).refused(2, "not in a working tree of git")
    (tmp_path / "mine" / ".git" / "MERGE_HEAD").write_text("0" * 40)
    done = await cli("checkout", job, "-C", tmp_path / "mine")
    done.refused(1, "a merge is in progress; finish it first")
    (tmp_path / "mine" / ".git" / "MERGE_HEAD").unlink()
    git("branch", "-D", f"draftsman/{job}", cwd=tmp_path / "origin")
    done = await cli("checkout", job, "-C", tmp_path / "mine")
    done.refused(1, f"cannot fetch draftsman/{job} of origin: couldn't find remote ref")


async def test_changes_are_applied_with_a_merge_and_taken_back(
    cli: Cli, job: str, tmp_path: Path
) -> None:
    mine = tmp_path / "mine"
    commit(mine, "a.txt", BEFORE + "mine\n")
    assert (await cli("apply", job, "-C", mine, "--check")).code == 1, "it needs a merge"
    (await cli("apply", job, "-C", mine)).refused(1, "applied with conflicts", "a.txt")
    assert "<<<<<<<" in (mine / "a.txt").read_text()
    git("reset", "-q", "--hard", cwd=mine)
    commit(mine, "a.txt", BEFORE.replace("three", "drei"))
    git("rm", "-q", "a.txt", cwd=mine)
    (await cli("apply", job, "-C", mine)).refused(1, "has 1 changed file", "or use --dirty")
    git("reset", "-q", "--hard", "origin/main", cwd=mine)

    done = await cli("apply", job, "-C", mine, "--json")
    assert (done.json["files"], done.json["applied"]) == (["a.txt", "new.txt"], True)
    assert (mine / "a.txt").read_text() == "zero\none\ntwo\nthree\nfour\nfive\n"
    (mine / "other.txt").write_text("mine\n")
    git("add", "other.txt", cwd=mine)
    assert (await cli("apply", job, "-C", mine, "--reverse")).code == 0, "right after apply"
    assert ((mine / "a.txt").read_text(), (mine / "new.txt").exists()) == (BEFORE, False)
    assert git("status", "--short", cwd=mine) == "A  other.txt", "also out of the index"
    git("commit", "-qm", "other", cwd=mine)
    done = await cli("apply", job, "-C", mine, "--reverse")
    done.refused(1, "does not apply")
    git("reset", "-q", "--hard", cwd=mine)
    commit_all = ("commit", "-qam", "the changes of the job")
    assert (await cli("apply", job, "-C", mine)).code == 0
    git(*commit_all, cwd=mine)
    done = await cli("apply", job, "-C", mine, "--json")
    assert (done.code, done.json["applied"]) == (0, False)
    done = await cli("apply", job, "-C", mine)
    assert done.out == f"{mine} already has the changes of {job}; nothing changed\n"
    stat = await cli("diff", job, "--stat")
    assert stat.out == "a.txt | +2 -0\nnew.txt | +1 -0, new\n2 files changed, +3 -0\n"
    assert (await cli("diff", job, "--name-only")).out == "a.txt\nnew.txt\n"
    files = (await cli("diff", job, "--name-only", "--json")).json["files"]
    assert files == ["a.txt", "new.txt"]
    (await cli("diff", job, "--stat", "--name-only")).refused(2, "cannot be combined")


async def test_the_dashboard_checks_out_applies_and_asks_for_the_merge(
    rt: Runtime, make: Factory, owner: Actor, job: str, tmp_path: Path
) -> None:
    """With the same checks as the commands, and only after a confirmation."""
    mine = tmp_path / "mine"
    number = int(job.removeprefix("D-"))
    async with open_dashboard(rt, owner) as seen:
        await seen.job(job)
        await seen.command(f"apply {mine}")
        await seen.see(f"Apply the changes of {job}?", "mine")
        await seen.press("n")
        assert not (mine / "new.txt").exists()
        await seen.command(f"apply {mine}")
        await seen.see(f"Apply the changes of {job}?")
        await seen.press("y")
        await seen.wait_for_toast(f"{job} applied")
        assert (mine / "new.txt").read_text() == "new\n"
        await seen.command(f"checkout {mine}")
        await seen.see("Check out draftsman/")
        await seen.press("y")
        await seen.wait_for_toast("changed files; commit or stash them")
        git("reset", "-q", "--hard", cwd=mine)
        await seen.command(f"checkout {mine}")
        await seen.see("Check out draftsman/")
        await seen.press("y")
        await seen.wait_for_toast(f"branch draftsman/{job} at")
        assert git("branch", "--show-current", cwd=mine) == f"draftsman/{job}"
        await seen.command("merge")
        await seen.wait_for_toast("has no pull request to merge")
    assert [item.number for item in await rt.read_model.jobs()] == [number]
