"""A pull request that is followed up to its merge, through faults: each event acts once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from draftsman.jobs.job import Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime
from draftsman.settings.forges import ForgeSettings
from draftsman.settings.http import HttpSettings
from draftsman_bots.forges.receiver import ForgeReceiver
from tests.core.worker.agent_jobs import commit_file, git
from tests.kill.agent_work import VALIDATED
from tests.kill.campaign import Campaign, all_ended, people_answer
from tests.kill.notifications import OWNER
from tests.kill.pull_requests import ServedForge

TABLE = {"events": "poll", "follow_up_delay": 0, "delete_branch": True}
"""Deletes the branch of an ended pull request, also of one that is opened again."""


async def follow_up_to_the_merge(campaign: Campaign, forge: ServedForge) -> None:
    """Run a job, follow up on a failed check and a review, close, reopen and merge.

    Each change of the forge is read three times, in part while workers are killed.
    """
    world = forge.fake.world
    rt = reading(campaign.rt, forge)
    receiver = ForgeReceiver(rt)
    repo = Repo.at(parse(forge.fake.url))
    await rt.repos.add(repo, VALIDATED, OWNER)
    request = invocation(
        type="run_agent", agent="test", repo=repo.remote_url, max_attempts=100, max_retries=100
    )
    number = (await rt.submissions.submit(request, OWNER)).number
    branch = f"draftsman/D-{number}"

    async def read() -> None:
        for _ in range(3):
            receiver._due["acme"] = receiver._paused["acme"] = 0.0
            receiver._repos["acme"]._paused.clear()
            receiver._closed_due["acme"] = 0.0
            await receiver.read_due(polls=True)

    async def jobs() -> list[int]:
        family = await rt.forge_events.follow_ups.family(number)
        return [] if family is None else list(family.jobs)

    async def until(count: int) -> None:
        async def over() -> bool:
            await read()
            return len(await jobs()) == count and await all_ended(rt)

        await campaign.work(over)

    async with people_answer(rt):
        await campaign.work(lambda: all_ended(rt))
        heads = [world.head(branch)]
        world.checks.append({"name": "ci", "state": "failed", "commit": str(heads[0])})
        await read()
        await until(2)
        heads.append(world.head(branch))
        base = commit_file(world.repository, world.head("main") or "", "last.txt", "other\n")
        world.push("main", base)  # it conflicts with the work
        _, [line] = world.talk.review(1, "ben", "changes_requested", "No", a_txt="Name it")
        await read()
        await until(3)
        heads.append(world.head(branch))
        parents = git("log", "-1", "--format=%P", str(heads[-1]), cwd=world.repository)
        assert parents.split() == [heads[-2], base]
        for state in ("closed", "open", "merged"):
            if state == "open" and world.head(branch) is None:
                world.push(branch, str(heads[-1]))  # as people restore it
            if state == "merged":
                world.merge(world.pulls[0])
            world.pulls[0].state = state

            async def reached(state: str = state) -> bool:
                await read()
                family = await rt.forge_events.follow_ups.family(number)
                return family is not None and family.pull.state == state

            await campaign.work(reached)
    await read()
    assert [(await rt.read_model.job(job)).status for job in await jobs()] == [Status.COMPLETED] * 3
    assert len(world.pulls) == 1
    assert len(set(heads)) == 3, "each follow-up published a commit"
    answers = [c.replies_to for c in world.talk.comments if c.author == world.login]
    assert sorted(answers, key=str) == sorted([line.id, None], key=str), "each answer once"
    assert line.resolved
    assert world.head(branch) is None


def reading(rt: Runtime, forge: ServedForge) -> Runtime:
    """Return services that read the forge, for people with a login there."""
    tables = {name: ForgeSettings.of(table) for name, table in forge.settings["forges"].items()}
    update: dict[str, Any] = {"forges": tables, "http": HttpSettings(allow=("127.0.0.1",))}
    return replace(rt, settings=rt.settings.model_copy(update=update))
