"""The stop button of a session: it pauses the job that runs in the thread, and ends nothing."""

from __future__ import annotations

import pytest

from draftsman.jobs.job import Status
from draftsman.people.actor import Actor
from draftsman_bots.slack import ids
from draftsman_bots.slack.jobs.session_stops import NOTHING, REASON, SHARED
from draftsman_testing.factories import QUESTION
from tests.bots.slack.listeners.conftest import ANNA, BEN, MALLORY, SlackBotHarness


async def session(bench: SlackBotHarness) -> tuple[int, str]:
    """Run a job of anna in a thread whose session is processing; return it and the thread."""
    root = (await bench.post("a request"))["ts"]
    anna = await bench.rt.people.actor(Actor("slack", ANNA, "Anna"))
    work = await bench.make.running(actor=anna, notify=(f"slack:{bench.general}/{root}",))
    bench.slack.world.sessions[bench.general, root] = ["processing"]
    return work.number, root


async def paused(bench: SlackBotHarness, job: int) -> list[str]:
    """Return the reasons of the pauses of a job."""
    events = await bench.rt.read_model.job_events(job)
    return [event.payload["reason"] for event in events if event.kind == "job_paused"]


async def test_a_stop_pauses_the_running_job_once(bench: SlackBotHarness) -> None:
    job, root = await session(bench)
    await bench.slack.stop_session(ANNA, bench.general, root, copies=2)
    assert await paused(bench, job) == [REASON]
    assert (await bench.rt.read_model.job(job)).status is Status.RUNNING, "its worker parks it"
    (text,) = await bench.ephemeral_texts(ANNA)
    assert text.startswith(f"D-{job} paused")
    assert f"`/draftsman resume D-{job}`" in text
    (reply,) = bench.slack.ephemerals(bench.general, ANNA)
    assert reply["thread_ts"] == root
    (button,) = reply["blocks"][-1]["elements"]
    assert (button["action_id"], button["value"]) == (ids.CANCEL, ids.job_value(job))


@pytest.mark.parametrize("user", [BEN, MALLORY])
async def test_only_people_with_the_right_stop_a_job(bench: SlackBotHarness, user: str) -> None:
    job, root = await session(bench)
    await bench.slack.stop_session(user, bench.general, root)
    assert await paused(bench, job) == []
    assert len(await bench.ephemeral_texts(user)) == 1


async def test_a_stop_of_a_job_that_no_longer_runs_says_so(bench: SlackBotHarness) -> None:
    question, root = await bench.asked(QUESTION)
    bench.slack.world.sessions[bench.general, root] = ["processing"]
    await bench.slack.stop_session(ANNA, bench.general, root)
    assert await paused(bench, question.job) == []
    assert await bench.ephemeral_texts(ANNA) == [NOTHING]


async def test_a_stop_in_a_shared_channel_names_the_command(bench: SlackBotHarness) -> None:
    job, root = await session(bench)
    bench.slack.world.channels[bench.general].shared = True
    await bench.slack.stop_session(ANNA, bench.general, root)
    assert await paused(bench, job) == []
    assert await bench.ephemeral_texts(ANNA) == [SHARED.format(command="/draftsman")]
