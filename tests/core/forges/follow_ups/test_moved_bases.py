"""Branches onto which people brought their base branch, and commits that they pushed."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.agent_runs.evidence.statement import parse_envelope, parse_payload
from draftsman.jobs.job import Job, Status
from draftsman.jobs.reserved_names import EVIDENCE
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import profile
from draftsman.repos.repo_url import parse
from draftsman_testing.factories import Factory
from draftsman_testing.forges.world import ForgeWorld
from tests.core.forges.follow_ups.followed_forge import FollowedForge
from tests.core.worker.agent_jobs import agent_worker, commit_file, git, submit_agent_job
from tests.core.worker.workers import last_event, wait_for_end, wait_for_question
from tests.support.slow import slow_except

S = Status
CODE = """
turn = (start["checkpoint"] or {}).get("turns", 0) + 1
open("a.txt", "a").write(f"turn {turn}\\n")
if turn > 1:
    open("asked.txt", "w").write("x\\n")
say("checkpoint", id="c", data={"turns": turn})
hear()
texts = [item["text"] for item in start["messages"]]
say("result", summary=f"turn {turn}", data={"texts": texts, "base": start["base_sha"]})
"""
KINDS = ("github", "gitlab", "gitea")
POLICY: dict[str, Any] = {
    "deny_files_over": 2,
    "paths": [{"path": "main*.txt", "effect": "deny"}, {"path": "asked.txt", "effect": "ask"}],
}
"""With the changes of the base branch as its own work, a follow-up would be refused twice."""


def worker(forge: FollowedForge) -> Any:
    """Run a worker with the forge."""
    return agent_worker(forge.rt, forge.site.folder / "data", CODE)


async def published(forge: FollowedForge, make: Factory, **policy: Any) -> tuple[int, str]:
    """Run a job to its pull request; return its number and branch."""
    repo = Repo.at(parse(forge.site.fake.url))
    command = {"name": "tests", "command": ["grep", "-c", "turn", "a.txt"]}
    saved = profile({"validation_commands": [command], "policy": POLICY | policy})
    await forge.rt.repos.add(repo, saved, make.owner)
    number = await submit_agent_job(make, repo.remote_url, text="Count", max_retries=0)
    ended = await wait_for_end(forge.rt, number)
    assert ended.status is S.COMPLETED, ended.last_error
    return number, f"draftsman/D-{number}"


async def approved_follow_up(forge: FollowedForge, make: Factory, number: int) -> Job:
    """Ask for a follow-up in a comment, approve its work, and wait for its end."""
    forge.site.fake.world.talk.comment(1, "ben", "/draftsman count on")
    await forge.step()
    follow_up = (await forge.jobs(number))[1]
    await wait_for_question(forge.rt, follow_up)
    await make.decide(follow_up, True, make.owner)
    return await forge.follow_up(number, 1)


def grow_main(world: ForgeWorld) -> str:
    """Add two files to the base branch; return its commit."""
    base = world.head("main") or ""
    for name in ("main1.txt", "main2.txt"):
        base = commit_file(world.repository, base, name, "of others\n")
    world.push("main", base)
    return base


def tree_with_main(world: ForgeWorld, branch: str) -> tuple[str, str, str]:
    """Return the head of a branch, the base branch, and the tree of their merge."""
    head = world.head(branch) or ""
    base = grow_main(world)
    return head, base, git("merge-tree", "--write-tree", head, base, cwd=world.repository)


def update_branch(world: ForgeWorld, branch: str) -> str:
    """Merge the base branch into the pull request, as the button of the forge does."""
    head, base, tree = tree_with_main(world, branch)
    parents = ("-p", head, "-p", base)
    world.push(branch, git("commit-tree", tree, *parents, "-m", "up", cwd=world.repository))
    return base


def merge_by_hand(world: ForgeWorld, branch: str) -> str:
    """Merge a middle commit of the base branch, with a change in the merge and one on top."""
    head, base, tree = tree_with_main(world, branch)
    middle = git("rev-parse", f"{base}^", cwd=world.repository)
    parents = ("-p", head, "-p", middle)
    world.push("main", base)
    tree = git("merge-tree", "--write-tree", head, middle, cwd=world.repository)
    merged = git("commit-tree", tree, *parents, "-m", "merge", cwd=world.repository)
    amended = commit_file(world.repository, merged, "asked.txt", "by a person\n")
    world.push(branch, amended)
    return middle


def rebase(world: ForgeWorld, branch: str) -> str:
    """Move the work onto the base branch."""
    _, base, tree = tree_with_main(world, branch)
    world.push(branch, git("commit-tree", tree, "-p", base, "-m", "on main", cwd=world.repository))
    return base


@pytest.mark.parametrize(
    "move", slow_except([update_branch], [update_branch, merge_by_hand, rebase])
)
async def test_only_its_own_changes_are_the_work_of_a_follow_up(
    forge: FollowedForge, make: Factory, move: Any
) -> None:
    world = forge.site.fake.world
    rt = forge.rt
    async with worker(forge):
        number, branch = await published(forge, make)
        base = move(world, branch)
        head = world.head(branch) or ""
        world.talk.comment(1, "ben", "/draftsman count on")
        await forge.step()
        follow_up = (await forge.jobs(number))[1]
        await wait_for_question(rt, follow_up)
        [question], _ = await rt.questions.of_job(follow_up)
        assert (question.action or {})["on"] == base[:12], "what people approve"
        await make.decide(follow_up, True, make.owner)
        job = await forge.follow_up(number, 1)
    assert job.status is S.COMPLETED, job.last_error
    result = job.result or {}
    assert result["data"]["base"] == base, "what the agent is told"
    assert (result["files_changed"], result["insertions"], result["deletions"]) == (2, 3, 0)
    stored = await rt.changes.patch(job.number)
    assert stored is not None
    patch = await rt.checkpoints.content(stored)
    assert b"main" not in patch
    _, data = await rt.checkpoints.read_artifact(job.number, EVIDENCE)
    assert parse_payload(parse_envelope(data))["predicate"]["base"] == base
    assert (await last_event(rt, job.number, "repo_resolved")).payload["base_sha"] == base
    log = git("log", "-1", "--format=%P", world.head(branch) or "", cwd=world.repository)
    assert log.split() == [head]


async def test_a_base_that_a_follow_up_merges_is_a_parent_of_its_commit(
    forge: FollowedForge, make: Factory
) -> None:
    """Also after an approval, which another run continues."""
    world = forge.site.fake.world
    async with worker(forge):
        number, branch = await published(forge, make, update_base="merge")
        head = world.head(branch)
        base = grow_main(world)
        job = await approved_follow_up(forge, make, number)
    assert job.status is S.COMPLETED, job.last_error
    commit = world.head(branch) or ""
    assert git("log", "-1", "--format=%P", commit, cwd=world.repository).split() == [head, base]
    changed = git("diff", "--name-only", f"main...{commit}", cwd=world.repository).split()
    assert changed == ["a.txt", "asked.txt"], "what the forge shows"


async def test_a_follow_up_has_the_base_that_its_pull_request_has_now(
    forge: FollowedForge, make: Factory
) -> None:
    world = forge.site.fake.world
    async with worker(forge):
        number, branch = await published(forge, make)
        base = update_branch(world, branch)
        world.push("release", base)
        world.push("main", git("rev-parse", f"{base}~2", cwd=world.repository))
        world.pulls[0].base = "release"
        job = await approved_follow_up(forge, make, number)
    assert job.status is S.COMPLETED, job.last_error
    assert (job.result or {})["data"]["base"] == base
    family = await forge.rt.forge_events.follow_ups.family(number)
    assert family is not None
    assert family.pull.base == "release"


@pytest.mark.parametrize("forge", slow_except(["github"], KINDS), indirect=True)
async def test_a_failure_of_a_persons_commit_starts_a_follow_up_from_it(
    forge: FollowedForge, make: Factory
) -> None:
    """But not a canceled check, and no failure of a commit before it."""
    world = forge.site.fake.world
    async with worker(forge):
        number, branch = await published(forge, make, deny_files_over=3)
        first = world.head(branch) or ""
        pushed = commit_file(world.repository, first, "b.txt", "theirs\n")
        world.push(branch, pushed)
        no_result = "warning" if forge.site.fake.kind == "gitea" else "canceled"
        world.checks.append({"name": "tests", "state": no_result, "commit": pushed})
        world.checks.append({"name": "lint", "state": "failed", "commit": first})
        await forge.step()
        assert await forge.jobs(number) == [number]
        world.checks.append({"name": "tests", "state": "failed", "commit": pushed})
        world.talk.conflicts.add(1)
        await forge.step()
        follow_up = (await forge.jobs(number))[1]
        await wait_for_question(forge.rt, follow_up)
        later = commit_file(world.repository, pushed, "b.txt", "later\n")
        world.push(branch, later)
        world.checks.append({"name": "tests", "state": "failed", "commit": later})
        await forge.step()
        assert len(await forge.jobs(number)) == 2, "it waits for the end of the first"
        await make.decide(follow_up, True, make.owner)
        moved = await wait_for_end(forge.rt, follow_up)
        await forge.step()
        second = (await forge.jobs(number))[2]
        await wait_for_question(forge.rt, second)
        await make.decide(second, True, make.owner)
        job = await wait_for_end(forge.rt, second)
    assert (moved.status, moved.title) == (S.FAILED, "Fix CI of Do it")
    assert job.status is S.COMPLETED, job.last_error
    texts = (job.result or {})["data"]["texts"]
    assert any(f"The check tests failed on {later[:12]}" in text for text in texts)
    log = git("log", "--format=%H", world.head(branch) or "", cwd=world.repository).split()
    assert log[1:4] == [later, pushed, first]


@pytest.mark.parametrize("name", ["b.txt", "asked.txt"])
async def test_the_retry_of_a_follow_up_has_what_a_person_pushed_meanwhile(
    forge: FollowedForge, make: Factory, name: str
) -> None:
    """On top of it is the work of the first attempt, unless they conflict."""
    world = forge.site.fake.world
    async with worker(forge):
        number, branch = await published(forge, make, deny_files_over=3)
        world.talk.comment(1, "ben", "/draftsman count on")
        await forge.step()
        follow_up = (await forge.jobs(number))[1]
        await wait_for_question(forge.rt, follow_up)
        pushed = commit_file(world.repository, world.head(branch) or "", name, "theirs\n")
        world.push(branch, pushed)
        await make.decide(follow_up, True, make.owner)
        failed = await wait_for_end(forge.rt, follow_up)
        retry = (await forge.rt.job_control.retry(follow_up, make.owner)).number
        if name == "b.txt":
            await wait_for_question(forge.rt, retry)
            await make.decide(retry, True, make.owner)
        job = await wait_for_end(forge.rt, retry)
    assert (failed.status, failed.error_class) == (S.FAILED, "PERMANENT")
    head = world.head(branch) or ""
    if name != "b.txt":
        assert (job.status, head) == (S.FAILED, pushed)
        assert f"conflict with the work in {name}; to begin with theirs: draftsman" in (
            job.last_error or ""
        )
        return
    assert job.status is S.COMPLETED, job.last_error
    assert (job.result or {})["summary"] == "turn 3", "the agent's session"
    assert git("log", "-1", "--format=%P", head, cwd=world.repository) == pushed
    assert git("show", f"{head}:b.txt", cwd=world.repository) == "theirs"
    lines = git("show", f"{head}:a.txt", cwd=world.repository).splitlines()
    assert lines == ["one", "turn 1", "turn 2", "turn 3"]
