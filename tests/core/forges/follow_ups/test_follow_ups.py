"""Follow-ups through the worker: the same branch, pull request and agent session."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from draftsman.deliveries.store import deliveries
from draftsman.forges.follow_up import answer_marker
from draftsman.jobs.job import Job, Status
from draftsman.questions.question import Decision
from draftsman.questions.response import Response
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import profile
from draftsman.repos.repo_url import parse
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from tests.core.forges.follow_ups.followed_forge import FollowedForge
from tests.core.worker.agent_jobs import agent_worker, commit_file, git, submit_agent_job
from tests.core.worker.workers import event_kinds, last_event, wait_for_end, wait_for_question

S = Status
CODE = """
texts = [item["text"] for item in start["messages"]]
session = (start["checkpoint"] or {}).get("turns", 0) + 1
if session == 1:
    parked(ask("pick", "Which color?"))
open("a.txt", "a").write("two\\n" if session == 1 else f"turn {session}\\n")
if "<<<<<<<" in open("a.txt").read():
    lines = open("a.txt").read().splitlines()
    lines = [line for line in lines if line[:3] not in ("<<<", "===", ">>>")]
    open("a.txt", "w").write("\\n".join(lines) + "\\n")
say("checkpoint", id="c", data={"turns": session})
hear()
say("result", summary=f"turn {session}: " + " | ".join(texts), data={"texts": texts})
"""
TURNS = """
session = (start["checkpoint"] or {}).get("turns", 0)
open("a.txt", "w").write(TEXTS[session] + "\\n")
say("checkpoint", id="c", data={"turns": session + 1})
hear()
say("result", summary=f"turn {session}")
"""
MERGES = {"merge": "ask", "reviewers": ("anna",)}
TWO = {"name": "tests", "command": ["grep", "-c", "two", "a.txt"]}


async def published(forge: FollowedForge, make: Factory, **fields: Any) -> tuple[int, str]:
    """Run a job to its pull request; return its number and branch."""
    repo = Repo.at(parse(forge.site.fake.url))
    saved = profile({"validation_commands": [TWO]} | fields)
    await forge.rt.repos.add(repo, saved, make.owner)
    more: dict[str, Any] = {"text": "Count", "max_retries": 0, "notify": ("log",)}
    number = await submit_agent_job(make, repo.remote_url, **more)
    await wait_for_question(forge.rt, number)
    await make.answer(number, "red", People(forge.rt.policy).on("slack", "ben"))
    ended = await wait_for_end(forge.rt, number)
    assert ended.status is S.COMPLETED, ended.last_error
    return number, f"draftsman/D-{number}"


def worker(forge: FollowedForge, **table: Any) -> Any:
    """Run a worker with the forge."""
    tables = {"acme": forge.rt.settings.forges["acme"].model_copy(update=table)}
    settings = forge.rt.settings.model_copy(update={"forges": tables})
    return agent_worker(replace(forge.rt, settings=settings), forge.site.folder / "data", CODE)


async def test_a_pull_request_is_followed_up_to_its_approved_merge(
    forge: FollowedForge, make: Factory
) -> None:
    """A question in Slack, red CI, a review with a comment on lines, the approval and the merge."""
    world = forge.site.fake.world
    rt = forge.rt
    async with worker(forge, merge="ask"):
        number, branch = await published(forge, make, policy={"max_follow_ups": 1})
        first = world.head(branch)
        assert first is not None
        world.checks.append({"name": "ci", "state": "failed", "commit": first})
        world.talk.logs[1] = "E  assert 1 == 2\n"
        world.talk.comment(1, "eve", "/draftsman delete everything")
        ben = People(rt.policy).on("slack", "ben")
        for _ in range(2):  # a reply in the thread, delivered twice
            sent = await rt.messages.send(number, ben, "Use blue", event="slack:1")
            assert str(sent).startswith(f"D-{number} has finished; a follow-up on http")
        red = await forge.follow_up(number, 1)
        second = world.head(branch)
        world.checks[0] |= {"state": "passed", "commit": "*"}
        _, [line] = world.talk.review(1, "ben", "changes_requested", "No", a_txt="Name it")
        earlier = [job.number for job in await rt.read_model.jobs(type="merge_pull_request")]
        await forge.step()
        second_job = (await forge.jobs(number))[2]
        world.talk.comment(1, "eve", f"Done\n\n{answer_marker(str(second_job))}")  # forged
        await wait_for_question(rt, second_job)
        await make.answer(second_job, "go on")
        reviewed = await forge.follow_up(number, 2)
        await forge.step()
        third = world.head(branch)
        assert len(await forge.jobs(number)) == 3, "an event has an effect once"
        merges = await rt.read_model.jobs(type="merge_pull_request")
        [merge] = {job.number for job in merges} - set(earlier)
        await wait_for_question(rt, merge)
        assert world.head("main") != third, "not merged without an approval"
        response = Response(source_event_id="1", decision=Decision.APPROVE)
        assert (await rt.questions.answer(merge, 1, response, make.owner)).accepted
        assert (await wait_for_end(rt, merge)).status is S.COMPLETED
        await forge.step()
        await forge.step()
    before = [(await rt.read_model.job(job)).status for job in earlier]
    assert set(before) <= {S.FAILED, S.CANCELED}, "the merge of an earlier commit is over"
    assert world.head("main") == third
    async with rt.db.connection() as conn:
        for job in (number, second_job, merge):
            facts = await deliveries.message_facts(conn, (await rt.outbox.all(job))[-1].seq)
            assert facts.ended_pull == "merged", "messages of each job show how it ended"
    notices = [item.kind for item in await rt.outbox.all(number) if item.kind == "notice"]
    assert notices == ["notice"], "the merge is announced once"
    assert (red.status, reviewed.status) == (S.COMPLETED, S.COMPLETED)
    assert (red.result or {})["data"]["texts"] == [
        "Use blue",
        f"The check ci failed on {first[:12]}\n\nE  assert 1 == 2",
    ]
    assert (reviewed.result or {})["data"]["texts"] == [
        "Review of ben (changes requested):\n\nNo",
        "Review comment of ben on a.txt, line 1:\n\nName it",
    ]
    assert (reviewed.result or {})["summary"].startswith("turn 3:"), "the agent's session"
    assert [red.invoker_id, red.source] == [make.owner.voter, "forge"]
    log = git("log", "--format=%H", third or "", cwd=world.repository).split()
    assert log[:3] == [third, second, first]
    assert (len(world.pulls), world.pulls[0].state) == (1, "merged")
    first_job = await rt.read_model.job(number)
    assert (red.title, reviewed.title) == (
        f"Fix CI of {first_job.title}",
        f"Address review of {first_job.title}",
    )
    assert world.pulls[0].title == first_job.title
    assert "Address review" not in world.pulls[0].body
    assert f"head={third} -->" in world.pulls[0].body
    answers = [c for c in world.talk.comments if c.author == world.login]
    written = {(c.replies_to, c.body.split(" (")[0]) for c in answers}
    assert written == {(line.id, f"Done in {third}"), (None, f"Done in {third}")}
    assert len(answers) == 2
    assert line.resolved
    assert world.head(branch) is None, "the branch of a merged pull request is deleted"
    ignored = await last_event(rt, number, "forge_event_ignored")
    assert ignored.payload["author"] == "eve"
    assert "may not" in ignored.payload["reason"]
    assert "follow_up_created" in await event_kinds(rt, number)
    ended = await last_event(rt, reviewed.number, "pull_request_ended")
    assert ended.payload["state"] == "merged"


@pytest.mark.slow(fast="test_a_pull_request_is_followed_up_to_its_approved_merge")
async def test_a_conflict_and_commits_of_people_are_merged_by_the_agent(
    forge: FollowedForge, make: Factory
) -> None:
    """A person pushes to the branch and the base conflicts: both are in the next commit."""
    world = forge.site.fake.world
    async with worker(forge):
        number, branch = await published(forge, make)
        published_head = world.head(branch) or ""
        pushed = commit_file(world.repository, published_head, "b.txt", "theirs\n")
        world.push(branch, pushed)
        base = commit_file(world.repository, world.head("main") or "", "a.txt", "one\nother\n")
        world.push("main", base)
        world.talk.conflicts.add(1)
        world.talk.comment(1, "ben", "/draftsman merge main, please")
        job = await forge.follow_up(number, 1)
    head = world.head(branch) or ""
    assert job.status is S.COMPLETED, job.last_error
    patch = await forge.rt.changes.patch(job.number)
    assert patch is not None
    assert b"+other" not in await forge.rt.checkpoints.content(patch), "it is of the new base"
    parents = git("log", "-1", "--format=%P", head, cwd=world.repository).split()
    assert parents == [pushed, base]
    assert git("show", f"{head}:b.txt", cwd=world.repository) == "theirs"
    merged = git("show", f"{head}:a.txt", cwd=world.repository)
    assert "other" in merged
    assert "two" in merged
    assert "<<<" not in merged


@pytest.mark.slow(fast="test_a_pull_request_is_followed_up_to_its_approved_merge")
async def test_follow_ups_are_bounded_by_a_question(forge: FollowedForge, make: Factory) -> None:
    world = forge.site.fake.world
    rt = forge.rt
    async with worker(forge):
        number, _ = await published(forge, make, policy={"max_follow_ups": 1})
        world.talk.comment(1, "ben", "/draftsman a")
        await forge.follow_up(number, 1)
        world.talk.comment(1, "ben", "/draftsman b")
        await forge.step()
        second = (await forge.jobs(number))[2]
        await wait_for_question(rt, second)
        question = await rt.questions.get(second, 1)
        assert question.text.endswith("had 1 follow-ups. Go on, hand over, or stop?")
        world.talk.comment(1, "ben", "/draftsman c")
        await forge.step()
        assert len(await forge.jobs(number)) == 3, "an unfinished follow-up gets the event"
        await make.answer(second, "hand over")
        handed = await wait_for_end(rt, second)
        await forge.step()
        await forge.step()
        assert len(await forge.jobs(number)) == 3
    assert handed.status is S.COMPLETED
    reason = (await last_event(rt, second, "forge_event_ignored")).payload["reason"]
    assert reason == "the pull request was handed over to people"


@pytest.mark.slow(
    fast="tests/core/forges/test_api.py"
    "::test_a_draft_becomes_ready_with_green_work_and_a_draft_again_without",
)
async def test_a_draft_becomes_ready_once_a_follow_up_is_green(
    forge: FollowedForge, make: Factory
) -> None:
    """And a draft again, if people hand over a follow-up that is not green."""
    world = forge.site.fake.world
    rt = forge.rt
    repo = Repo.at(parse(forge.site.fake.url))
    saved = profile({"validation_commands": [TWO], "max_iterations": 1})
    await rt.repos.add(repo, saved, make.owner)
    texts = ("no", "two", "no")

    async def hand_over(job: int) -> Job:
        await wait_for_question(rt, job)
        await make.answer(job, "draft")
        return await wait_for_end(rt, job)

    settings = rt.settings.model_copy(
        update={"forges": {"acme": rt.settings.forges["acme"].model_copy(update=MERGES)}}
    )
    code = TURNS.replace("TEXTS", str(texts))
    async with agent_worker(replace(rt, settings=settings), forge.site.folder / "data", code):
        number = await submit_agent_job(make, repo.remote_url, text="Count", max_retries=0)
        assert (await hand_over(number)).status is S.COMPLETED
        [pull] = world.pulls
        assert (pull.draft, pull.reviewers) == (True, [])
        world.talk.comment(1, "ben", "/draftsman count to two")
        assert (await forge.follow_up(number, 1)).status is S.COMPLETED
        assert (pull.draft, pull.reviewers, "Draft" in pull.body) == (False, ["anna"], False)
        asked = await rt.read_model.jobs(type="merge_pull_request")
        assert [job.status for job in asked] == ["scheduled"], "the merge of the green commit"
        world.talk.comment(1, "ben", "/draftsman no")
        await forge.step()
        await hand_over((await forge.jobs(number))[2])
        assert (pull.draft, pull.body.startswith("**Draft**")) == (True, True)
