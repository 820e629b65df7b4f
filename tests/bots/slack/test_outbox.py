"""A job in Slack: through the real outbox and dispatcher, on a server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from draftsman.deliveries.delivery import Delivery, DeliveryKind, DeliveryStatus, Receipt
from draftsman.deliveries.dispatcher import DeliveryDispatcher
from draftsman.deliveries.service.delivery_sender import DeliverySender
from draftsman.deliveries.target import Target, parse
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.store import people as store
from draftsman.questions.question import QuestionKind
from draftsman.questions.question_spec import QuestionSpec
from draftsman.runtime import Runtime
from draftsman_bots.slack import ids
from draftsman_bots.slack.deliveries.channel import SlackChannel
from draftsman_testing.factories import QUESTION, Factory
from draftsman_testing.outbox import FAST, deliveries_of, running
from draftsman_testing.people import People
from draftsman_testing.slack import FakeSlack, error
from draftsman_testing.slack.message_store import put, remove
from draftsman_testing.waits import until
from tests.bots.slack.channel_fixtures import Json, actionable, message, shown, slack_channel
from tests.support.clock import Clock

LIVE = {"pending", "sending", "unconfirmed"}
PATCH = b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
LONG = "".join(f"line {n}\n" for n in range(40))
GATE = QuestionSpec(
    key="gate",
    kind=QuestionKind.APPROVAL,
    text="Deploy?",
    approvers=("carol", "dave"),
    context=PATCH.decode() + LONG,
)


class Flow:
    """A Slack, a channel and a running dispatcher."""

    def __init__(self, rt: Runtime, slack: FakeSlack) -> None:
        self.rt = rt
        self.slack = slack
        self.anna, self.carol, self.dave = (
            slack.user(name, id=f"U-{name.upper()}") for name in ("anna", "carol", "dave")
        )
        self.room = slack.channel("ops", [self.anna, self.carol])
        self.channel: SlackChannel = slack_channel(slack)

    @property
    def notify(self) -> tuple[str]:
        return (f"slack:{self.room}",)

    def dispatcher(self, fallback: Target | None = None) -> DeliveryDispatcher:
        deliver = DeliverySender(
            db=self.rt.db, policy=self.rt.policy, settings=FAST, fallback=fallback
        )
        return DeliveryDispatcher(deliver, [self.channel], FAST)

    async def quiet(self, job: int) -> list[Delivery]:
        """Wait until all deliveries are sent; return those to Slack."""

        async def look() -> bool:
            return not any(
                delivery.status in LIVE
                for delivery in await deliveries_of(self.rt, job)
                if delivery.channel == "slack"
            )

        await until(look, f"the deliveries of D-{job}")
        return [
            delivery
            for delivery in await deliveries_of(self.rt, job)
            if delivery.channel == "slack"
        ]

    def said_by_anna(self, text: str) -> Json:
        room = self.slack.world.channels[self.room]
        return put(self.slack.world, room, {"user": self.anna, "text": text})

    def remove(self, ts: str) -> None:
        remove(self.slack.world.channels[self.room], ts)

    def thread(self, card: Json) -> list[Json]:
        return self.slack.messages(self.room, card["ts"])

    def card(self) -> Json:
        (card,) = self.slack.messages(self.room)
        return card


@pytest.fixture
async def flow(rt: Runtime) -> AsyncIterator[Flow]:
    async with AsyncExitStack() as stack:
        flow = Flow(rt, await stack.enter_async_context(FakeSlack()))
        await stack.enter_async_context(running(flow.dispatcher(parse("log"))))
        yield flow


async def test_one_card_is_edited_in_place_and_the_details_are_in_its_thread(
    flow: Flow, make: Factory, people: People, rt: Runtime
) -> None:
    work = await make.asked(QUESTION, notify=flow.notify)
    await flow.quiet(work.number)
    card = flow.card()
    assert "waiting for input" in shown(card)
    (asked,) = flow.thread(card)
    assert ids.answer_action(1) in actionable(asked)
    await make.answer(work.number, "red", people.ben)
    again = await make.running(work.number)
    await rt.changes.store(again.lease, PATCH)
    await rt.checkpoints.artifact(again.lease, "evidence.json", "evidence", b"{}")
    await rt.checkpoints.artifact(again.lease, "report.md", "report", b"# All is well\n")
    await rt.settlement.outcome(again, Done({"summary": "done <well>"}))
    await flow.quiet(work.number)
    assert flow.card()["ts"] == card["ts"]
    assert "completed" in shown(flow.card())
    closed, result, patch, report = flow.thread(card)
    assert "was answered by ben: red" in shown(closed)
    assert actionable(closed) == []
    assert "done &lt;well&gt;" in shown(result)
    assert [item["files"][0]["name"] for item in (patch, report)] == ["changes.patch", "report.md"]
    assert [file["data"] for file in flow.slack.files] == [PATCH, b"# All is well\n"]


async def test_a_request_of_a_terminal_names_the_person(
    flow: Flow, make: Factory, people: People
) -> None:
    work = await make.running(notify=flow.notify, actor=replace(people.anna, display_name="root"))
    await flow.quiet(work.number)
    assert "for anna" in str(flow.card()["blocks"])


async def test_request_in_a_thread_is_updated_in_it(flow: Flow, make: Factory) -> None:
    request_ts = flow.said_by_anna("please fix it")
    work = await make.asked(QUESTION, notify=(f"slack:{flow.room}/{request_ts['ts']}",))
    await flow.quiet(work.number)
    assert [item["ts"] for item in flow.slack.messages(flow.room)] == [request_ts["ts"]]
    card, asked = flow.thread(request_ts)
    assert "waiting for input" in shown(card)
    assert actionable(asked)


async def test_approval_is_sent_to_absent_approvers_and_every_copy_is_closed(
    flow: Flow, make: Factory, people: People
) -> None:
    work = await make.asked(GATE, notify=flow.notify)
    sent = await flow.quiet(work.number)
    (asked, file) = flow.thread(flow.card())
    assert actionable(asked) == [ids.APPROVE, ids.DENY]
    assert file["files"][0]["name"] == f"D-{work.number}-1.diff"
    assert flow.slack.files[0]["data"].decode() == GATE.context
    places = [item.target for item in sent if item.kind is DeliveryKind.QUESTION]
    assert places == [flow.room, flow.dave], "carol is in the channel, dave is not"
    copy, _ = flow.slack.messages(flow.slack.direct(flow.dave))
    assert actionable(copy) == [ids.APPROVE, ids.DENY]
    await make.decide(work.number, False, people.carol, reason="not on a Friday")
    await flow.quiet(work.number)
    copy, _ = flow.slack.messages(flow.slack.direct(flow.dave))
    closed = flow.thread(flow.card())[0]
    for item in (copy, closed):
        assert actionable(item) == []
        assert "was denied by carol: not on a Friday" in shown(item)


async def test_person_linked_by_a_code_receives_questions(flow: Flow, make: Factory) -> None:
    erin = flow.slack.user("erin")
    async with flow.rt.db.connection() as conn:
        await store.create_link_code(conn, "slack", erin, "Erin", "hash", 60)
        assert await store.link(conn, "hash", "erin", "cli:erin")
    gate = QuestionSpec(key="gate", kind=QuestionKind.APPROVAL, text="Deploy?", approvers=("erin",))
    work = await make.asked(gate, notify=flow.notify)
    await flow.quiet(work.number)
    (asked,) = flow.thread(flow.card())
    assert f"For <@{erin}>" in shown(asked)
    (copy,) = flow.slack.messages(flow.slack.direct(erin))
    assert actionable(copy) == [ids.APPROVE, ids.DENY]


async def test_direct_question_is_reminded_directly_and_every_copy_is_closed(
    flow: Flow, make: Factory, people: People, clock: Clock
) -> None:
    work = await make.asked(GATE.model_copy(update={"expires_in": 360_000}), notify=flow.notify)
    await flow.quiet(work.number)
    direct = flow.slack.direct(flow.dave)
    for hours, times in ((51, 1), (40, 2)):
        await clock.forward(hours * 3600)
        assert await flow.rt.sweeps.run("remind", LeaderTerm()) == 1
        sent = await flow.quiet(work.number)
        reminded = [item.target for item in sent if item.kind is DeliveryKind.REMINDER]
        assert sorted(reminded) == sorted([flow.room, flow.dave] * times)
        last = flow.slack.messages(direct)[-1]
        assert "still waiting for an answer" in shown(last)
        assert actionable(last) == [ids.APPROVE, ids.DENY]
    await make.decide(work.number, True, people.dave)
    await flow.quiet(work.number)
    messages = [*flow.slack.messages(direct), *flow.thread(flow.card())]
    closed = [item for item in messages if "was approved by dave" in shown(item)]
    assert len(closed) == 6, "the question and two reminders, here and there"
    assert [actionable(item) for item in messages] == [[]] * len(messages)


async def test_person_linked_by_a_code_receives_reminders(
    flow: Flow, make: Factory, clock: Clock
) -> None:
    erin = flow.slack.user("erin")
    gate = QuestionSpec(
        key="gate",
        kind=QuestionKind.APPROVAL,
        text="Deploy?",
        approvers=("erin",),
        expires_in=360_000,
    )
    work = await make.asked(gate, notify=flow.notify)
    await flow.quiet(work.number)
    assert "For erin" in shown(flow.thread(flow.card())[0])
    async with flow.rt.db.connection() as conn:
        await store.create_link_code(conn, "slack", erin, "Erin", "hash", 60)
        assert await store.link(conn, "hash", "erin", "cli:erin")
    await clock.forward(51 * 3600)
    await flow.rt.sweeps.run("remind", LeaderTerm())
    await flow.quiet(work.number)
    assert f"For <@{erin}>" in shown(flow.thread(flow.card())[-1])
    (copy,) = flow.slack.messages(flow.slack.direct(erin))
    assert actionable(copy) == [ids.APPROVE, ids.DENY]


async def test_account_in_another_workspace_is_reached_by_its_id(flow: Flow) -> None:
    eve = flow.slack.user("eve", team="T0ELSEWHERE")
    notification = message(DeliveryKind.NOTICE, f"{eve}@T0ELSEWHERE", payload={"text": "hello"})
    assert isinstance(await flow.channel.send(notification), Receipt)
    (notice,) = flow.slack.messages(flow.slack.direct(eve))
    assert "hello" in shown(notice)


async def test_archived_channel_falls_back_to_the_requester(
    flow: Flow, make: Factory, people: People
) -> None:
    flow.slack.world.channels[flow.room].archived = True
    job = await make.queued(notify=flow.notify, actor=people.on("slack", "anna"))
    sent = await flow.quiet(job)
    assert [(item.target, item.status) for item in sent] == [
        (flow.room, DeliveryStatus.DEAD_LETTER),
        (flow.anna, DeliveryStatus.SENT),
    ]
    (instead,) = flow.slack.messages(flow.slack.direct(flow.anna))
    assert f"D-{job}" in shown(instead)
    assert flow.slack.messages(flow.room) == []
    await flow.rt.job_control.cancel(job, people.on("slack", "anna"))
    sent = await flow.quiet(job)
    assert [item.status for item in sent].count(DeliveryStatus.DEAD_LETTER) == 1, "it is remembered"
    card = flow.slack.messages(flow.slack.direct(flow.anna))[0]
    assert "canceled" in shown(card), "the card is the same one"
    assert await flow.rt.outbox.dead_letter_count() == 0, "the replacement needs no operator"


async def test_unlisted_refusal_falls_back_to_the_requester_once(
    flow: Flow, make: Factory, people: People, rt: Runtime
) -> None:
    flow.slack.faults.next("chat.postMessage", error("brand_new_error"))
    job = await make.queued(notify=flow.notify, actor=people.on("slack", "anna"))
    sent = await flow.quiet(job)
    assert [(item.target, item.status) for item in sent] == [
        (flow.room, DeliveryStatus.DEAD_LETTER),
        (flow.anna, DeliveryStatus.SENT),
    ]
    flow.slack.faults.next("chat.postMessage", error("brand_new_error"), times=2)
    other = await make.queued(notify=flow.notify, actor=people.on("slack", "anna"))
    await flow.quiet(other)
    assert [str(delivery.channel) for delivery in await deliveries_of(rt, other)] == [
        "slack",
        "slack",
        "log",
    ]
    assert await flow.rt.outbox.dead_letter_count() == 2
    (logged,) = await rt.delivery_sender.claim("log", free=1, share=1)
    await rt.delivery_sender.record(logged, Receipt("line 1"))
    assert await flow.rt.outbox.dead_letter_count() == 0


async def test_unreachable_requester_falls_back_to_the_log(
    flow: Flow, make: Factory, people: People, rt: Runtime
) -> None:
    flow.slack.world.channels[flow.room].archived = True
    job = await make.queued(notify=flow.notify, actor=people.erin)
    await flow.quiet(job)
    assert [str(delivery.channel) for delivery in await deliveries_of(rt, job)] == ["slack", "log"]


async def test_deleted_status_message_is_reposted_once(flow: Flow, make: Factory) -> None:
    job = await make.queued(notify=flow.notify)
    await flow.quiet(job)
    first = flow.card()
    await flow.rt.outbox.notice(job, "n", "a reply keeps the thread")
    await flow.quiet(job)
    flow.remove(first["ts"])
    work = await make.running(job)
    await flow.quiet(job)
    notice, status = flow.slack.messages(flow.room, first["ts"])
    assert "running" in shown(status)
    await flow.rt.settlement.outcome(work, Done({}))
    await flow.quiet(job)
    notice, status, result = flow.slack.messages(flow.room, first["ts"])
    assert "a reply keeps the thread" in shown(notice)
    assert "completed" in shown(status), "later updates edit the message with the new ts"
    assert "completed" in shown(result)


async def test_messages_after_a_deleted_thread_go_to_the_channel(flow: Flow, make: Factory) -> None:
    job = await make.queued(notify=flow.notify)
    await flow.quiet(job)
    flow.remove(flow.card()["ts"])
    await flow.rt.settlement.outcome(await make.running(job), Done({"summary": "well"}))
    assert {item.status for item in await flow.quiet(job)} <= {"sent", "superseded"}
    text = flow.slack.messages(flow.room)
    everything = text + [item for top in text for item in flow.slack.messages(flow.room, top["ts"])]
    assert any("well" in shown(item) for item in everything)
    assert all(f"D-{job}" in shown(item) for item in everything)


async def test_notice_to_a_person_is_visible_to_that_person_only(flow: Flow, make: Factory) -> None:
    job = await make.queued(notify=flow.notify)
    for n, to in enumerate((flow.anna, flow.dave)):
        await flow.rt.outbox.notice(job, str(n), "you may not do that", to=to)
    await flow.quiet(job)
    assert flow.thread(flow.card()) == []
    (notice,) = flow.slack.ephemerals(flow.room, flow.anna)
    assert "you may not do that" in shown(notice)
    (direct,) = flow.slack.messages(flow.slack.direct(flow.dave))
    assert "you may not do that" in shown(direct), "dave is not in the channel"


async def test_revoked_token_pauses_deliveries_but_not_the_job(flow: Flow, make: Factory) -> None:
    flow.slack.revoke()
    job = await make.queued(notify=flow.notify)

    async def paused() -> bool:
        return any(delivery.last_error for delivery in await deliveries_of(flow.rt, job))

    await until(paused, "the refusal")
    work = await make.running(job)
    await flow.rt.settlement.outcome(work, Done({}))
    await flow.rt.outbox.notice(job, "n", "one more")
    status, *_ = await deliveries_of(flow.rt, job)
    assert (status.status, status.attempts) == ("pending", 0)
    assert "token_revoked" in (status.last_error or "")
    assert flow.channel.trouble
    assert len(flow.slack.calls) == 1, "a hot retry"


async def test_rejected_question_is_asked_in_plain_text(flow: Flow, make: Factory) -> None:
    job = await make.queued(notify=flow.notify)
    await flow.quiet(job)
    flow.slack.faults.next("chat.postMessage", error("invalid_blocks"))
    work = await make.running(job)
    await flow.rt.asking.ask(work.lease, QUESTION)
    await flow.quiet(job)
    (asked,) = flow.thread(flow.card())
    assert "blocks" not in asked
    assert "reply in this thread: your answer" in asked["text"]
