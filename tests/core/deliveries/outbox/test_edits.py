"""Visible messages: each is shown once, and edited if necessary."""

from __future__ import annotations

import pytest

from draftsman.deliveries.delivery import DeliveryKind, DeliveryStatus
from draftsman.deliveries.target import parse
from draftsman.errors import NotFound
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, QUESTION, Factory
from draftsman_testing.http_server import Reply, Request
from draftsman_testing.outbox import deliveries_of, kinds_and_statuses, running, send_all
from draftsman_testing.people import People
from tests.core.deliveries.outbox.chat_harness import CHAT, ChatHarness
from tests.support.clock import Clock


async def test_messages_of_a_job_are_sent_in_order_and_its_question_is_edited(
    make: Factory, rt: Runtime, chat: ChatHarness, people: People
) -> None:
    work = await make.asked(GATE, **CHAT)
    await chat.open()
    await chat.quiet(work.number)
    await make.decide(work.number, True, people.carol)
    await chat.quiet(work.number)
    next_run = await make.running(work.number)
    await rt.settlement.outcome(next_run, Done({"summary": "all is well", "pr_url": "https://x/1"}))
    await chat.quiet(work.number)
    (thread,) = chat.chat.threads.values()
    assert [post.text.splitlines()[0] for post in thread] == [
        "D-1 'noop' completed", "D-1/1 was approved by carol", "D-1 'noop' completed",
    ]  # fmt: skip
    assert thread[2].text.splitlines()[1:3] == ["all is well", "https://x/1"]
    assert len(thread[0].edited_by) >= 1
    events = await rt.read_model.job_events(work.number)
    sent = [event.payload for event in events if event.kind == "delivery_sent"]
    assert [item["kind"] for item in sent] == ["question", "result"]
    assert all(item["ref"] for item in sent), "the message in the channel"


async def test_progress_of_a_run_is_shown_in_its_status_message_until_the_run_ends(
    make: Factory, rt: Runtime, chat: ChatHarness
) -> None:
    work = await make.running(**CHAT)
    show = rt.activity.show
    assert await show(work.lease, "0 of 2 steps", "early") == 1
    async with running(chat.dispatcher()):
        await chat.quiet(work.number)  # the status was not sent yet: the progress is dropped
        ((post,),) = chat.chat.threads.values()
        assert post.text.splitlines()[0] == f"{work.name} 'noop' is running"
        assert "early" not in post.text
        assert await show(work.lease, "1 of 2 steps", "token=abcdef") == 1
        await chat.quiet(work.number)
    ((post,),) = chat.chat.threads.values()
    first, _, *progress = post.text.splitlines()
    assert first == f"{work.name} 'noop' is running"
    assert progress == ["1 of 2 steps", "token=***"]
    for plan in ("one", "two", "three"):
        assert await show(work.lease, plan, "") == 1
    states = await kinds_and_statuses(rt, work.number)
    assert states.count(("status", "pending")) == 1
    await rt.settlement.outcome(work, Done({}))
    await chat.open()
    await chat.quiet(work.number)
    (thread,) = chat.chat.threads.values()
    first, facts = thread[0].text.splitlines()
    assert first == f"{work.name} 'noop' completed"
    assert facts.startswith("took ")


async def test_a_job_without_chat_has_no_progress_messages(make: Factory, rt: Runtime) -> None:
    work = await make.running(notify=("log",))
    await send_all(rt)
    before = await kinds_and_statuses(rt, work.number)
    assert await rt.activity.show(work.lease, "1 of 2 steps", "") == 0
    assert await kinds_and_statuses(rt, work.number) == before


async def test_a_message_with_a_lost_reply_is_found_and_not_posted_again(
    make: Factory, rt: Runtime, chat: ChatHarness
) -> None:
    paths: list[str] = []

    async def cut(request: Request) -> Reply | bool | None:
        paths.append(request.path)
        if len(paths) > 1:
            return True
        await chat.chat.answer(request)
        return None

    chat.rule = cut
    number = await make.queued(**CHAT)
    await chat.open()
    await chat.quiet(number)
    assert paths == ["/post", "/find"]
    (delivery,) = await deliveries_of(rt, number)
    assert (delivery.status, delivery.attempts, delivery.in_doubt) == (
        DeliveryStatus.SENT,
        2,
        False,
    )


async def test_a_message_that_did_not_arrive_is_posted_again_after_a_search(
    make: Factory, chat: ChatHarness
) -> None:
    paths: list[str] = []

    async def drop(request: Request) -> Reply | bool | None:
        paths.append(request.path)
        return None if len(paths) == 1 else True

    chat.rule = drop
    number = await make.queued(**CHAT)
    await chat.open()
    await chat.quiet(number)
    assert paths == ["/post", "/find", "/post"]


async def test_a_status_whose_message_was_deleted_is_posted_again(
    make: Factory, rt: Runtime, chat: ChatHarness
) -> None:
    number = await make.queued(**CHAT)
    await chat.open()
    await chat.quiet(number)
    chat.chat.posts.clear()
    await make.running(number)
    await chat.quiet(number)
    (post,) = chat.chat.posts.values()
    assert post.text.splitlines()[0] == "D-1 'noop' is running"


async def test_a_deleted_copy_is_not_edited(make: Factory, rt: Runtime, chat: ChatHarness) -> None:
    work = await make.asked(**CHAT)
    await chat.open()
    await chat.quiet(work.number)
    chat.chat.posts.clear()
    await make.answer(work.number, "red")
    await chat.quiet(work.number)
    statuses = await kinds_and_statuses(rt, work.number)
    assert ("question_closed", "sent") in statuses
    assert "dead_letter" not in {status for _, status in statuses}


async def test_a_dead_post_that_may_be_visible_is_found_and_edited(
    make: Factory, rt: Runtime, chat: ChatHarness
) -> None:
    """It arrived without a reply, and the question closed after the last attempt."""
    work = await make.asked(**CHAT)

    async def deaf(request: Request) -> Reply | bool | None:
        if b"asks: Which" not in request.body:
            return True
        if request.path == "/post":
            await chat.chat.answer(request)
        return None

    chat.rule = deaf
    await chat.open()
    await chat.quiet(work.number)
    (question,) = [
        o for o in await deliveries_of(rt, work.number) if o.kind is DeliveryKind.QUESTION
    ]
    assert (question.status, question.in_doubt) == (DeliveryStatus.DEAD_LETTER, True)
    chat.rule = None
    await make.answer(work.number, "red")
    await chat.quiet(work.number)
    texts = [post.text.splitlines()[0] for post in chat.chat.posts.values()]
    assert "D-1/1 was answered by root: red" in texts


async def test_a_file_is_uploaded_once(make: Factory, rt: Runtime, chat: ChatHarness) -> None:
    work = await make.running(**CHAT)
    await rt.checkpoints.artifact(work.lease, "report.txt", "report", b"12345")
    assert [await rt.outbox.file(work.number, "report.txt") for _ in range(2)] == [1, 0]
    with pytest.raises(NotFound, match="no artifact 'other'"):
        await rt.outbox.file(work.number, "other")
    await chat.open()
    await chat.quiet(work.number)
    texts = [post.text.splitlines()[0] for post in chat.chat.posts.values()]
    assert texts == ["D-1 'noop' is running", "report.txt 5"]
    kinds = [event.kind for event in await rt.read_model.job_events(work.number)]
    assert kinds[-1] == "attachment_uploaded"


async def test_a_reminder_is_edited_with_its_question(
    make: Factory, rt: Runtime, chat: ChatHarness, clock: Clock
) -> None:
    work = await make.asked(QUESTION.model_copy(update={"expires_in": 1000}), **CHAT)
    await clock.forward(600)
    assert await rt.sweeps.run("remind", LeaderTerm()) == 1
    await chat.open()
    await chat.quiet(work.number)
    await make.answer(work.number, "red")
    await chat.quiet(work.number)
    first_lines = [post.text.splitlines()[0] for post in chat.chat.posts.values()]
    assert first_lines[1:] == ["D-1/1 was answered by root: red"] * 2, "the reminder is also a copy"


async def test_a_private_notice_goes_to_one_target_and_names_its_reader(
    make: Factory, rt: Runtime
) -> None:
    number = await make.queued(notify=("log", "slack:C1", "slack:C1/9.5"))
    at = parse("slack:C1/9.5")
    created = [await rt.outbox.notice(number, "a", "too late", at=at, to="U1") for _ in range(2)]
    assert created == [1, 0]
    (notice,) = [
        delivery
        for delivery in await deliveries_of(rt, number)
        if delivery.kind is DeliveryKind.NOTICE
    ]
    assert (notice.channel, notice.thread) == ("slack", "9.5")
    assert await rt.outbox.notice(number, "b", "hello") == 3
