"""The stream of a run: the agent's steps as task cards; the card is the fallback."""

from __future__ import annotations

import pytest

from draftsman.agent_runs.activity.activity import ActivityState
from draftsman.database.database import Connection
from draftsman.errors import Failure
from draftsman.jobs.job import Source
from draftsman.jobs.runs.outcome import Done
from draftsman_bots.slack.live.calls import APPEND, START, STOP
from draftsman_bots.slack.live.loop import START_AFTER, STREAM_LIFE
from draftsman_bots.slack.live.steps import MAX_STEPS
from draftsman_testing.factories import QUESTION
from draftsman_testing.people import People
from draftsman_testing.slack import error
from draftsman_testing.slack.message_store import put
from tests.bots.slack.channel_fixtures import shown
from tests.bots.slack.live.live_harness import LiveHarness
from tests.support.statements import value


async def test_steps_of_the_agent_are_task_cards_that_change(live: LiveHarness) -> None:
    work = await live.running(text="Tidy up")
    await live.streaming(work)
    assert live.tasks() == {
        "step-1": ("step a", "complete"),
        "step-2": ("step b", "in_progress"),
        "step-3": ("step c", "pending"),
    }
    assert live.stream()["stream"]["plan"] == f"D-{work.number} Tidy up \u00b7 1 of 3 steps"
    assert live.stream()["thread_ts"] == live.card()["ts"]
    await live.plan(work, "completed", "failed", "running")
    await live.line(work, "npm test <@U1>")
    await live.round()
    assert live.tasks() == {
        "step-1": ("step a", "complete"),
        "step-2": ("step b", "error"),
        "step-3": ("step c", "in_progress"),
        "now": ("npm test \u2039@U1\u203a", "in_progress"),
    }
    appended = live.slack.calls[-1] if live.slack.calls[-1].method == APPEND else None
    assert appended is None or len(appended.args["chunks"]) == 3, "only what changed is sent"
    await live.round()
    assert live.count(APPEND) == 1, "nothing changed"
    await live.plan(work, "completed")
    await live.round()
    assert live.tasks()["step-3"] == ("dropped: step c", "complete")


async def test_steps_of_a_handler_are_task_cards(live: LiveHarness) -> None:
    work = await live.running()
    await live.rt.checkpoints.begin_step(work.lease, "charge the card", "i-1")
    await live.loop.run_once()
    await live.round(START_AFTER)
    assert live.tasks() == {"step-1": ("charge the card", "in_progress")}
    await live.rt.checkpoints.finish_step(work.lease, "charge the card", {"receipt": 1})
    await live.rt.checkpoints.begin_step(work.lease, "send the mail", "i-2")
    await live.round()
    assert live.tasks() == {
        "step-1": ("charge the card", "complete"),
        "step-2": ("send the mail", "in_progress"),
    }
    await live.plan(work, "running")
    await live.round()
    assert live.tasks()["step-1"] == ("step a", "in_progress"), "the plan of an agent comes first"


async def test_a_short_run_and_a_run_without_steps_have_no_stream(live: LiveHarness) -> None:
    work = await live.running()
    await live.loop.run_once()
    await live.round(START_AFTER + 1)
    await live.round(60)
    assert live.count(START) == 0
    await live.rt.settlement.outcome(work, Done({}))
    work = await live.running()
    await live.plan(work, "running")
    await live.round()
    await live.rt.settlement.outcome(work, Done({}))
    await live.round(START_AFTER)
    assert live.count(START) == 0


@pytest.mark.parametrize(
    ("ending", "plan", "state"),
    [
        ("question", "waits for an answer", "pending"),
        ("result", "completed", "complete"),
        ("failure", "failed", "error"),
        ("cancel", "was canceled", "error"),
    ],
)
async def test_a_stream_ends_at_a_question_at_the_result_and_on_cancel(
    live: LiveHarness, conn: Connection, ending: str, plan: str, state: str
) -> None:
    work = await live.running()
    await live.streaming(work)
    if ending == "question":
        await live.rt.asking.ask(work.lease, QUESTION)
    elif ending == "result":
        await live.rt.settlement.outcome(work, Done({}))
    elif ending == "failure":
        await live.rt.settlement.failure(work, Failure("no", declared="PERMANENT"))
    else:
        await live.rt.job_control.cancel(work.number, live.make.owner)
        await live.rt.settlement.release_run(work, "canceled")
    await live.deliver(work.number)
    await live.round()
    assert not live.stream()["open"]
    assert live.stream()["stream"]["plan"].endswith(plan)
    assert live.tasks()["step-2"] == ("step b", state)
    assert live.tasks()["step-3"] == ("step c", "pending")
    assert await value(conn, "SELECT count(*) FROM draftsman.live_threads") == 0
    await live.round(60)
    assert (live.count(START), live.count(STOP)) == (1, 1)


async def test_a_stream_ends_with_the_last_plan_of_its_run(live: LiveHarness) -> None:
    work = await live.running()
    await live.streaming(work)
    await live.plan(work, "completed", "completed", "completed")
    await live.rt.settlement.outcome(work, Done({}))
    await live.deliver(work.number)
    await live.round()
    assert not live.stream()["open"]
    assert {state for _, state in live.tasks().values()} == {"complete"}


async def test_the_next_run_has_its_own_stream_after_the_answer(
    live: LiveHarness, people: People
) -> None:
    work = await live.running()
    await live.streaming(work)
    await live.rt.asking.ask(work.lease, QUESTION)
    await live.deliver(work.number)
    await live.make.answer(work.number, "red", people.ben)
    again = await live.running(work.number)
    await live.plan(again, "running")
    await live.round()
    await live.round()
    await live.round(START_AFTER)
    first, second = live.slack.streams(live.room)
    assert (first["open"], second["open"]) == (False, True)


async def test_a_stream_is_continued_by_the_card_before_slack_closes_it(
    live: LiveHarness, conn: Connection
) -> None:
    work = await live.running()
    await live.streaming(work)
    await live.round(STREAM_LIFE)
    assert not live.stream()["open"]
    assert live.stream()["stream"]["plan"].endswith("continues: see the status message")
    await live.plan(work, "completed", "completed", "running")
    await live.round()
    await live.round(60)
    assert live.count(START) == 1, "a run has a single stream"
    await live.rt.activity.show(work.lease, "2 of 3 steps: step c", "")
    await live.deliver(work.number)
    assert "2 of 3 steps: step c" in shown(live.card())


async def test_the_card_is_edited_once_a_minute_beside_a_stream(
    live: LiveHarness,
) -> None:
    work = await live.running()
    await live.streaming(work)

    async def show(plan: str) -> bool:
        await live.rt.activity.show(work.lease, plan, "")
        await live.deliver(work.number)
        return plan in shown(live.card())

    assert not await show("1 of 3 steps")
    await live.later(60)
    assert await show("2 of 3 steps")
    assert not await show("3 of 3 steps")
    await live.rt.settlement.outcome(work, Done({}))
    await live.deliver(work.number)
    assert "completed" in shown(live.card()), "the final state is delivered at once"


@pytest.mark.parametrize("place", ["thread", "direct"])
async def test_a_stream_is_in_the_thread_of_the_request(live: LiveHarness, place: str) -> None:
    target = live.slack.direct("U-ANNA") if place == "direct" else live.room
    room = live.slack.world.channels[target]
    request = put(live.slack.world, room, {"user": "U-ANNA", "text": "please"})
    work = await live.running(notify=(f"slack:{target}/{request['ts']}",))
    await live.plan(work, "running")
    await live.loop.run_once()
    await live.round(START_AFTER)
    (stream,) = live.slack.streams(target, request["ts"])
    assert stream["open"]
    reader = {"recipient_user_id", "recipient_team_id"}
    (call,) = (call for call in live.slack.calls if call.method == START)
    assert bool(reader & call.args.keys()) is (place == "thread")


async def test_the_card_is_used_where_the_requester_has_no_slack_account(
    live: LiveHarness, people: People
) -> None:
    work = await live.running(actor=people.on(Source.CLI, "erin"))
    await live.plan(work, "running")
    await live.loop.run_once()
    await live.round(START_AFTER)
    assert live.count(START) == 0
    assert live.status()


async def test_the_card_is_used_if_it_is_configured(live: LiveHarness) -> None:
    work = await live.running()
    await live.plan(work, "running")
    bot = live.bot(streams=False)
    await bot.run_once()
    await live.round(START_AFTER, bot)
    assert live.count(START) == 0
    assert live.status()
    await live.rt.activity.show(work.lease, "0 of 1 step: step a", "")
    await live.deliver(work.number)
    assert "0 of 1 step: step a" in shown(live.card())


async def test_a_long_plan_fits_into_a_stream(live: LiveHarness) -> None:
    work = await live.running(text="\u00e9" * 300)
    await live.plan(work, *["running"] * 50, more="\u20ac" * 400)
    await live.line(work, "z" * 400)
    await live.loop.run_once()
    await live.round(START_AFTER)
    assert len(live.tasks()) == MAX_STEPS + 1
    assert live.stream()["open"]


@pytest.mark.parametrize(
    ("code", "bucket"),
    [
        ("channel_type_not_supported", "slack#chat.startStream:{room}"),
        ("missing_recipient_user_id", "slack#chat.startStream:{room}"),
        ("missing_scope", "slack#chat.startStream"),
        ("unknown_method", "slack#chat.startStream"),
        ("invalid_thread_ts", None),
        ("user_not_in_channel", None),
        ("invalid_chunks", None),
    ],
)
async def test_a_refused_stream_leaves_the_card(
    live: LiveHarness, conn: Connection, code: str, bucket: str | None
) -> None:
    live.slack.faults.next(START, error(code), times=9)
    work = await live.running()
    await live.plan(work, "running")
    await live.loop.run_once()
    for _ in range(5):
        await live.round(START_AFTER)
    assert live.slack.faults.left == 8, "asked once"
    paused = "SELECT max(bucket) FROM draftsman.channel_limits WHERE reason IS NOT NULL"
    assert await value(conn, paused) == (bucket and bucket.format(room=live.room))
    await live.rt.activity.show(work.lease, "0 of 1 step: step a", "")
    await live.deliver(work.number)
    assert "0 of 1 step: step a" in shown(live.card())
    assert live.health.ready


@pytest.mark.parametrize(
    ("state", "task"),
    [
        (ActivityState.COMPLETED, ("make", "complete")),
        (ActivityState.FAILED, ("make", "error")),
        (ActivityState.RUNNING, ("make (not finished)", "error")),
        (ActivityState.PENDING, ("make (waited for a decision)", "complete")),
        (None, ("I am done", "complete")),
    ],
)
async def test_the_newest_call_of_a_run_that_waits_is_done_or_was_not_finished(
    live: LiveHarness, state: ActivityState | None, task: tuple[str, str]
) -> None:
    work = await live.running()
    await live.line(work, "make", state or ActivityState.RUNNING)
    if state is None:
        await live.message(work, "I am done")
    await live.streaming(work)
    await live.rt.asking.ask(work.lease, QUESTION)
    await live.deliver(work.number)
    await live.round()
    assert live.tasks()["now"] == task
