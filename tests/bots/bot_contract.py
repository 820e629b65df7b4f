"""The contract of all bots for the messages of a job. Each bot's test class inherits it.

class TestSlack(BotContract):
    @pytest.fixture
    async def side(self, rt): yield SlackSide(…)
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import pytest

from draftsman.deliveries.channel import Channel
from draftsman.deliveries.delivery import Delivery, DeliveryKind
from draftsman.deliveries.dispatcher import DeliveryDispatcher
from draftsman.deliveries.service.delivery_sender import DeliverySender
from draftsman.deliveries.target import parse
from draftsman.errors import Failure
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.runs.outcome import Done
from draftsman.questions.question import QuestionKind
from draftsman.questions.question_spec import QuestionSpec
from draftsman.questions.response import Response
from draftsman.runtime import Runtime
from draftsman_testing.factories import QUESTION, Factory
from draftsman_testing.people import People
from draftsman_testing.waits import until
from tests.core.deliveries.outbox.chat_harness import FAST, running
from tests.core.deliveries.outbox.rows import deliveries_of
from tests.core.worker.agent_jobs import job_at_gate
from tests.support.permissions import SHOP

LIVE = {"pending", "sending", "unconfirmed"}
GATE = QuestionSpec(key="gate", kind=QuestionKind.APPROVAL, text="Deploy?", approvers=("carol",))
LONG = "word " * 9000
TOKEN = "xoxb-12345678-abcdefgh"
MARKUP_INJECTION = "@card <!everyone> **b** [x](http://evil) ```\n2"


class BotHarness(Protocol):
    """A target in a chat, its visible messages, and its faults."""

    channel: Channel
    notify: tuple[str, ...]
    invites: str
    """The instruction to answer, which only an open question contains."""

    def texts(self) -> Sequence[str]:
        """Return the visible text of each message, in order; the status comes first."""
        ...

    def live(self) -> Sequence[str]:
        """Return active markup: notifications, and links with a hidden URL."""
        ...

    def files(self) -> Sequence[bytes]:
        """Return the posted files."""
        ...

    def calls(self) -> int:
        """Return the number of calls."""
        ...

    def drop_next_response(self) -> None:
        """Accept the next message and drop the response."""
        ...

    def rate_limit_next(self) -> None:
        """Rate limit the next message."""
        ...

    def reject_file(self) -> None:
        """Reject the next file permanently."""
        ...

    def revoke(self) -> None:
        """Reject every call."""
        ...

    def remove_destination(self) -> None:
        """Remove the target."""
        ...

    def delete_status_message(self) -> None:
        """Delete the first message."""
        ...


@asynccontextmanager
async def run_dispatcher(rt: Runtime, *channels: Channel) -> AsyncIterator[DeliveryDispatcher]:
    """Run a dispatcher that retries at once."""
    deliver = DeliverySender(db=rt.db, policy=rt.policy, settings=FAST, fallback=parse("log"))
    async with running(DeliveryDispatcher(deliver, channels, FAST)) as dispatcher:
        yield dispatcher


async def wait_until_delivered(rt: Runtime, job: int, *channels: Channel) -> list[Delivery]:
    """Wait for all deliveries to these channels; return them."""
    names = {channel.name for channel in channels}

    async def sent() -> list[Delivery]:
        return [delivery for delivery in await deliveries_of(rt, job) if delivery.channel in names]

    async def look() -> bool:
        return not any(item.status in LIVE for item in await sent())

    await until(look, f"the deliveries of D-{job}")
    return await sent()


class BotContract:
    """The contract."""

    @pytest.fixture(autouse=True)
    async def _delivering(self, rt: Runtime, side: BotHarness) -> AsyncIterator[None]:
        async with run_dispatcher(rt, side.channel):
            yield

    async def test_status_is_one_message_and_later_messages_follow_it(
        self, side: BotHarness, rt: Runtime, make: Factory, people: People
    ) -> None:
        work = await make.asked(QUESTION, notify=side.notify)
        await wait_until_delivered(rt, work.number, side.channel)
        status, asked = side.texts()
        assert "waiting for input" in status
        assert side.invites in asked
        await make.answer(work.number, "red", people.ben)
        again = await make.running(work.number)
        await rt.settlement.outcome(again, Done({"summary": "all is well"}))
        await wait_until_delivered(rt, work.number, side.channel)
        status, closed, result = side.texts()
        assert "completed" in status
        assert "was answered by ben: red" in closed
        assert side.invites not in closed
        assert "all is well" in result

    async def test_identical_questions_of_two_jobs_are_one_message(
        self, rt: Runtime, make: Factory, side: BotHarness, people: People
    ) -> None:
        jobs = [await make.asked(repo=SHOP, notify=side.notify) for _ in range(2)]
        for work in jobs:
            await wait_until_delivered(rt, work.number, side.channel)
        (asked,) = [text for text in side.texts() if side.invites in text]
        assert f"2 jobs ask this: {jobs[0].name}, {jobs[1].name}" in asked.replace("\\", "")
        same = f"waiting for input: asks the same as {jobs[0].name}/1"
        assert [same in text.replace("\\", "") for text in side.texts()].count(True) == 1
        response = Response(source_event_id="e", text="red")
        verdict = await rt.questions.answer(jobs[1].number, 1, response, people.ben)
        assert verdict.also == (f"{jobs[0].name}/1",)
        for work in jobs:
            await wait_until_delivered(rt, work.number, side.channel)
        assert not [text for text in side.texts() if side.invites in text]

    async def test_decision_shows_its_person_and_reason(
        self, side: BotHarness, rt: Runtime, make: Factory, people: People
    ) -> None:
        work = await make.asked(GATE, notify=side.notify)
        await wait_until_delivered(rt, work.number, side.channel)
        await make.decide(work.number, False, people.carol, reason="not on a Friday")
        await wait_until_delivered(rt, work.number, side.channel)
        status, closed, result = side.texts()
        assert "was denied by carol: not on a Friday" in closed
        for text in (status, result):
            assert text.count("denied by carol: not on a Friday") == 1
            assert "failed" not in text

    async def test_lost_response_creates_no_second_message(
        self, side: BotHarness, rt: Runtime, make: Factory
    ) -> None:
        side.drop_next_response()
        job = await make.queued(notify=side.notify)
        (sent,) = await wait_until_delivered(rt, job, side.channel)
        assert (sent.status, len(side.texts())) == ("sent", 1)

    async def test_rate_limit_uses_no_attempt(
        self, side: BotHarness, rt: Runtime, make: Factory
    ) -> None:
        side.rate_limit_next()
        job = await make.queued(notify=side.notify)
        sent = await self._refused(rt, job)
        assert (sent.status, sent.attempts) == ("pending", 0)

    async def test_revoked_account_is_not_retried_at_once_and_the_job_continues(
        self, side: BotHarness, rt: Runtime, make: Factory
    ) -> None:
        side.revoke()
        job = await make.queued(notify=side.notify)
        sent = await self._refused(rt, job)
        await rt.settlement.outcome(await make.running(job), Done({}))
        await rt.outbox.notice(job, "n", "one more")
        assert (sent.status, sent.attempts) == ("pending", 0)
        assert (await rt.read_model.job(job)).status == "completed"
        assert side.calls() == 1, "a hot retry"

    async def test_deleted_target_ends_its_deliveries_but_not_the_job(
        self, side: BotHarness, rt: Runtime, make: Factory
    ) -> None:
        side.remove_destination()
        job = await make.queued(notify=side.notify)
        (sent,) = await wait_until_delivered(rt, job, side.channel)
        assert (sent.status, sent.attempts) == ("dead_letter", 1)
        assert "log" in {delivery.channel for delivery in await deliveries_of(rt, job)}
        await rt.settlement.outcome(await make.running(job), Done({}))
        assert (await rt.read_model.job(job)).status == "completed"

    async def test_deleted_status_message_is_posted_once_more(
        self, side: BotHarness, rt: Runtime, make: Factory
    ) -> None:
        job = await make.queued(notify=side.notify)
        await wait_until_delivered(rt, job, side.channel)
        side.delete_status_message()
        work = await make.running(job)
        await wait_until_delivered(rt, job, side.channel)
        await rt.settlement.outcome(work, Done({}))
        await wait_until_delivered(rt, job, side.channel)
        status, result = side.texts()
        assert "completed" in status
        assert "completed" in result

    async def test_long_text_is_truncated_and_attached_as_a_file(
        self, side: BotHarness, rt: Runtime, make: Factory
    ) -> None:
        job = await make.queued(notify=side.notify)
        await rt.outbox.notice(job, "n", LONG)
        await wait_until_delivered(rt, job, side.channel)
        assert side.files() == [LONG.encode()]
        assert len("".join(side.texts())) < len(LONG) / 2

    async def test_approval_is_sent_with_the_patch_of_its_request(
        self, side: BotHarness, rt: Runtime, make: Factory, tmp_path: Path
    ) -> None:
        job, patch = await job_at_gate(
            rt, make, tmp_path, {"x.py": "a\n"}, {"x.py": "b\n"}, notify=side.notify
        )
        await wait_until_delivered(rt, job, side.channel)
        assert b"-a\n+b\n" in patch
        assert side.files() == [patch]
        assert "not available" not in "".join(side.texts())

    async def test_approval_without_a_patch_states_the_reason(
        self, side: BotHarness, rt: Runtime, make: Factory, tmp_path: Path
    ) -> None:
        work = await make.asked(GATE, notify=side.notify)
        await wait_until_delivered(rt, work.number, side.channel)
        assert "diff not available" in side.texts()[-1].lower()
        job, _ = await job_at_gate(rt, make, tmp_path, {"x.py": "a\n"}, {}, notify=side.notify)
        await wait_until_delivered(rt, job, side.channel)
        assert "no changes so far" in side.texts()[-1].lower()
        assert side.files() == []

    async def test_a_file_that_is_refused_is_a_warning(
        self, side: BotHarness, rt: Runtime, make: Factory
    ) -> None:
        side.reject_file()
        work = await make.running(await make.queued(notify=side.notify))
        await rt.changes.store(work.lease, b"--- a\n+++ b\n")
        await rt.settlement.outcome(work, Done({"summary": "all is well"}))
        sent = await wait_until_delivered(rt, work.number, side.channel)
        (file,) = [item for item in sent if item.kind is DeliveryKind.FILE]
        assert (file.status, (file.last_error or "")[:15]) == ("dead_letter", "changes.patch: ")
        result, warning = side.texts()[-2:]
        assert "all is well" in result
        assert "File not attached: changes.patch: " in warning.replace("\\", "")
        assert f"draftsman artifacts get {work.name} changes.patch" in warning.replace("\\", "")
        assert "attachment_failed" in {
            event.kind for event in await rt.read_model.job_events(work.number)
        }

    @pytest.mark.parametrize("kind", ["sequential", "parallel"])
    async def test_a_group_that_stops_is_reported_once(
        self, side: BotHarness, rt: Runtime, make: Factory, kind: str
    ) -> None:
        group = {"name": "release", "kind": kind}
        request = invocation(type="noop", queue="q", notify=side.notify, group=group)
        jobs = [job.number for job in await rt.submissions.submit_many([request] * 4, make.owner)]
        for job in jobs:
            await wait_until_delivered(rt, job, side.channel)
        before = len(side.texts())
        assert "group release" in side.texts()[-1]
        await rt.settlement.failure(
            await make.running(jobs[0]), Failure("no", declared="PERMANENT")
        )
        sent = [await wait_until_delivered(rt, job, side.channel) for job in jobs]
        results = [[item.status for item in items if item.kind == "result"] for items in sent]
        assert results == [["sent"], ["superseded"], ["superseded"], ["superseded"]]
        assert len(side.texts()) == before + 1
        stopped = f"group release stopped: D-{jobs[0]} failed, 3 jobs skipped"
        assert stopped in side.texts()[-1].replace("\\", "")

    async def test_pasted_secret_is_redacted(
        self, side: BotHarness, rt: Runtime, make: Factory
    ) -> None:
        context = "line\n" * 40 + TOKEN
        ask = QuestionSpec(key="k", text=f"Use {TOKEN}?", freeform=True, context=context)
        work = await make.asked(ask, notify=side.notify, title=f"fix {TOKEN}")
        await rt.outbox.notice(work.number, "n", f"it is {TOKEN}")
        await wait_until_delivered(rt, work.number, side.channel)
        await make.answer(work.number, f"no, {TOKEN}")
        await wait_until_delivered(rt, work.number, side.channel)
        (file,) = side.files()
        assert TOKEN not in "".join(side.texts()) + file.decode()

    async def test_markup_in_user_text_is_inert(
        self, side: BotHarness, rt: Runtime, make: Factory
    ) -> None:
        ask = QuestionSpec(
            key="k",
            text=MARKUP_INJECTION,
            choices=(MARKUP_INJECTION,),
            freeform=True,
            context=MARKUP_INJECTION,
        )
        work = await make.asked(ask, notify=side.notify, title=MARKUP_INJECTION)
        await rt.outbox.notice(work.number, "n", MARKUP_INJECTION)
        await wait_until_delivered(rt, work.number, side.channel)
        assert len(side.texts()) == 3
        assert side.live() == [], side.live()

    async def _refused(self, rt: Runtime, job: int) -> Delivery:
        async def refused() -> bool:
            return any(delivery.last_error for delivery in await deliveries_of(rt, job))

        await until(refused, "the refusal")
        return (await deliveries_of(rt, job))[0]
