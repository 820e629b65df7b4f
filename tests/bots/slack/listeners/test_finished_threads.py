"""Replies in the thread of a finished job: follow-ups, and jobs after it; with both manifests."""

from __future__ import annotations

from typing import Any, Final

import pytest

from draftsman.jobs.job import Condition
from draftsman.jobs.reserved_names import PULL_REQUEST, Owner
from draftsman.jobs.runs.outcome import Done
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import profile
from draftsman.repos.repo_url import parse
from tests.bots.slack.listeners.conftest import (
    ANNA,
    BEN,
    CAROL,
    MALLORY,
    MENTIONS,
    SlackBotHarness,
)
from tests.bots.slack.listeners.test_thread_messages import running, texts

URL: Final = "https://git.example/acme/pay/pull/7"
PULL: Final[dict[str, Any]] = {
    "number": 7,
    "url": URL,
    "forge": "git.example",
    "project": "acme/pay",
    "branch": "draftsman/D-1",
    "base": "main",
    "head": "0" * 40,
    "follow_ups": True,
}
minimal = pytest.mark.parametrize("minimal", [True, False], ids=["minimal", "full"])


@pytest.fixture(autouse=True)
async def repository(bench: SlackBotHarness) -> None:
    pay = Repo.at(parse("https://example.org/acme/pay"))
    await bench.rt.repos.add(pay, profile({"agent": "tidy"}), bench.make.owner)


async def ended(bench: SlackBotHarness, pull: bool = False, **fields: Any) -> tuple[int, str]:
    """Complete an agent's job with a thread; return its number, and the ts of the thread."""
    root = (await bench.post("a request"))["ts"]
    target = f"slack:{bench.general}/{root}"
    work = await bench.make.running(type="run_agent", title="Do it", notify=(target,), **fields)
    if pull:
        await bench.rt.checkpoints.begin_step(work.lease, PULL_REQUEST, None, Owner.WORKER)
        await bench.rt.checkpoints.finish_step(work.lease, PULL_REQUEST, PULL, Owner.WORKER)
    await bench.rt.settlement.outcome(work, Done({"summary": "done", "branch": "draftsman/D-1"}))
    return work.number, root


async def newer(bench: SlackBotHarness, number: int) -> list[int]:
    return [job.number for job in await bench.rt.read_model.jobs() if job.number > number]


async def say(
    bench: SlackBotHarness, user: str, text: str, root: str, minimal: bool, **options: Any
) -> None:
    """Reply as the manifest allows: with a mention of the bot, or without it."""
    if minimal:
        bench.slack.subscribed = set(MENTIONS)
        await bench.slack.mention(user, bench.general, text, root, **options)
    else:
        await bench.slack.say(user, bench.general, text, root, **options)


@minimal
async def test_a_reply_steers_a_running_job(bench: SlackBotHarness, minimal: bool) -> None:
    number, root = await running(bench)
    await say(bench, BEN, "use the v2 API", root, minimal, copies=2)
    assert await texts(bench, number) == [("ben", "use the v2 API")]


@minimal
async def test_a_reply_follows_up_an_open_pull_request(
    bench: SlackBotHarness, minimal: bool
) -> None:
    number, root = await ended(bench, pull=True)
    await say(bench, BEN, "use the v2 API", root, minimal, copies=2)
    (reply,) = await bench.ephemeral_texts(BEN)
    assert reply == f"D-{number} has finished; a follow-up on {URL} gets it."
    assert await newer(bench, number) == [], "the leader collects the events of the follow-up"


async def test_a_mention_starts_a_job_after_a_finished_job(bench: SlackBotHarness) -> None:
    number, root = await ended(bench)
    sent = await bench.slack.mention(ANNA, bench.general, "now the docs too", root, copies=2)
    await bench.slack.again(sent)
    (follow_up,) = await newer(bench, number)
    job = await bench.rt.read_model.job(follow_up)
    assert (job.agent_request.text, job.invoker_id) == ("now the docs too", "anna")
    assert job.payload["repo"]["ref"] == "draftsman/D-1", "the work of the first job"
    (parent,) = await bench.rt.workflows.parents(follow_up)
    assert (parent.number, parent.condition) == (number, Condition.ANY)
    assert await texts(bench, follow_up) == [], "the second copy of the mention is no message"


async def test_a_request_in_the_thread_comes_after_the_job(bench: SlackBotHarness) -> None:
    number, root = await ended(bench)
    await bench.slack.mention(ANNA, bench.general, "investigate the memory", root, copies=2)
    (follow_up,) = await newer(bench, number)
    job = await bench.rt.read_model.job(follow_up)
    assert (job.agent_request.text, str(job.agent_request.mode)) == ("the memory", "investigate")
    assert [item.number for item in await bench.rt.workflows.parents(follow_up)] == [number]


async def test_talk_in_a_finished_thread_starts_nothing(bench: SlackBotHarness) -> None:
    number, root = await ended(bench)
    await bench.slack.say(ANNA, bench.general, "thanks", root)
    sent = await bench.slack.say(ANNA, bench.general, "thank you", root)
    await bench.slack.edit(bench.general, sent.ts, "thank you all")
    assert await newer(bench, number) == []


@pytest.mark.parametrize("user", [CAROL, MALLORY])
async def test_only_people_who_may_submit_start_a_job(bench: SlackBotHarness, user: str) -> None:
    number, root = await ended(bench)
    await bench.slack.mention(user, bench.general, "now the docs too", root)
    assert await newer(bench, number) == []
    assert len(await bench.ephemeral_texts(user)) == 1
