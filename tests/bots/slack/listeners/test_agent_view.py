"""The conversation with the agent: suggested prompts, and messages as requests."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.schedules.template import define
from draftsman_bots.slack.requests.suggested_prompts import JOBS
from draftsman_testing.slack.faults import error
from tests.bots.slack.listeners.conftest import ANNA, MALLORY, SlackBotHarness
from tests.bots.slack.listeners.test_attachments import full


@pytest.fixture(autouse=True)
async def scopes(bench: SlackBotHarness) -> None:
    await full(bench)


async def prompts(bench: SlackBotHarness, user: str, thread: str = "") -> Any:
    await bench.ctx.background.idle()
    return bench.slack.world.prompts.get((bench.slack.direct(user), thread))


async def test_opening_the_conversation_suggests_prompts(bench: SlackBotHarness) -> None:
    definition = {"type": "noop", "text": "Report", "description": "Write the weekly report"}
    await bench.rt.templates.add("report", define(definition), bench.make.owner)
    direct = bench.slack.direct(ANNA)
    for text in ("Tidy up the tests", "Tidy up the tests", "Paint the doors"):
        await bench.slack.say(ANNA, direct, text)
    await bench.slack.open_messages(ANNA)
    assert await prompts(bench, ANNA) == [
        {"title": "Write the weekly report", "message": "template report"},
        {"title": "Again: Paint the doors", "message": "fix Paint the doors"},
        {"title": "Again: Tidy up the tests", "message": "fix Tidy up the tests"},
        JOBS,
    ]


async def test_a_thread_of_the_older_view_gets_its_prompts(bench: SlackBotHarness) -> None:
    bench.slack.world.agent_view = False
    started = await bench.slack.start_assistant_thread(ANNA)
    assert await prompts(bench, ANNA, started.ts) == [JOBS]
    kind = "assistant_thread_context_changed"
    assert (await bench.slack.start_assistant_thread(ANNA, kind)).acked
    await bench.slack.say(ANNA, bench.slack.direct(ANNA), "Paint the doors", started.ts)
    (job,) = await bench.rt.read_model.jobs()
    (delivery,) = await bench.rt.outbox.all(job.number, limit=5)
    assert (delivery.target, delivery.thread) == (bench.slack.direct(ANNA), started.ts)


async def test_people_without_a_role_get_no_prompts(bench: SlackBotHarness) -> None:
    await bench.slack.open_messages(MALLORY)
    assert await prompts(bench, MALLORY) is None


async def test_refused_prompts_change_nothing(bench: SlackBotHarness) -> None:
    bench.slack.faults.next("assistant.threads.setSuggestedPrompts", error("fatal_error"))
    await bench.slack.open_messages(ANNA)
    assert await prompts(bench, ANNA) is None


async def test_a_message_to_the_agent_is_a_request(bench: SlackBotHarness) -> None:
    direct = bench.slack.direct(ANNA)
    sent = await bench.slack.say(ANNA, direct, "please fix the colors", copies=3)
    (job,) = await bench.rt.read_model.jobs()
    stored = await bench.rt.read_model.job(job.number)
    assert (stored.agent_request.text, str(stored.agent_request.mode)) == (
        "please fix the colors",
        "fix",
    )
    await bench.rt.job_control.cancel(job.number, bench.make.owner)
    await bench.slack.say(ANNA, direct, "and the fonts too", sent.ts, copies=2)
    follow_up, _ = await bench.rt.read_model.jobs()
    (parent,) = await bench.rt.workflows.parents(follow_up.number)
    assert parent.number == job.number


async def test_a_word_or_an_app_without_the_scope_makes_no_job(bench: SlackBotHarness) -> None:
    direct = bench.slack.direct(ANNA)
    await bench.slack.say(ANNA, direct, "stauts")
    bench.slack.world.scopes.remove("assistant:write")
    await full(bench)
    await bench.slack.say(ANNA, direct, "please fix the colors")
    assert await bench.rt.read_model.jobs() == []
    await bench.ctx.background.idle()
    replies = [item["text"] for item in bench.slack.messages(direct) if item.get("bot_id")]
    assert [reply.split(".")[0] for reply in replies] == [
        "Unknown command: stauts",
        "Unknown command: please",
    ]
