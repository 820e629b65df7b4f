"""The contract of every chat for the messages of jobs.

class TestMail(DeliveryContract):
    @pytest.fixture
    async def place(self): yield MailPlace(…)
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from draftsman.deliveries.delivery import Delivery, DeliveryKind, Receipt
from draftsman.errors import Failure
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.runs.outcome import Done
from draftsman.questions.question import Decision, QuestionKind
from draftsman.questions.question_spec import QuestionSpec
from draftsman.questions.response import Response
from draftsman.runtime import Runtime
from draftsman_testing.channel.examples import examples
from draftsman_testing.channel.place import Fault, Place, address
from draftsman_testing.factories import QUESTION, REVIEW, Factory
from draftsman_testing.outbox import claim, deliveries_of, run_dispatcher, wait_until_delivered
from draftsman_testing.people import People
from draftsman_testing.waits import until

GATE = QuestionSpec(key="gate", kind=QuestionKind.APPROVAL, text="Deploy?", approvers=("carol",))
LONG = "word " * 9000
TOKENS = ("xoxb-12345678-abcdefgh", "ATTA" + "0123456789abcdef" * 4)
MARKUP_INJECTION = "@card <!everyone> **b** [x](http://evil) ```\n2"
PATCH = b"""diff --git a/x.py b/x.py
--- a/x.py
+++ b/x.py
@@ -1 +1 @@
-a
+b
"""
WAITING = ("waiting for input", "waits for an answer")
"""The words of chats, and of plain text."""
SHOP = "https://git.example.org/acme/shop"
ENDED = 2**31 - 1
"""The session lock of a process that ended."""


class Outbox:
    """The messages of jobs to a place."""

    def __init__(self, rt: Runtime, place: Place) -> None:
        self._rt = rt
        self._place = place

    async def sent(self, job: int) -> list[Delivery]:
        """Wait until no message of a job is left; return its deliveries to the place."""
        return await wait_until_delivered(self._rt, job, self._place.channel)

    async def refused(self, job: int) -> Delivery:
        """Wait until a message of a job was refused; return its first delivery."""

        async def refused() -> bool:
            return any(delivery.last_error for delivery in await deliveries_of(self._rt, job))

        await until(refused, "the refusal")
        return (await deliveries_of(self._rt, job))[0]


def texts(place: Place) -> list[str]:
    """Return the visible text of each message."""
    return [post.text for post in place.posts()]


def plain(text: str) -> str:
    """Return a text without the backslashes of Markdown."""
    return text.replace("\\", "")


class DeliveryContract:
    """Tests of the messages of jobs. A class inherits them, and has a fixture `place`."""

    @pytest.fixture
    async def outbox(self, rt: Runtime, place: Place) -> AsyncIterator[Outbox]:
        """Send the messages of jobs."""
        async with run_dispatcher(rt, place.channel):
            yield Outbox(rt, place)

    async def test_status_is_one_message_and_later_messages_follow_it(
        self, place: Place, outbox: Outbox, rt: Runtime, make: Factory, people: People
    ) -> None:
        work = await make.asked(QUESTION, notify=(place.target,))
        await outbox.sent(work.number)
        status, asked = texts(place)
        assert any(words in status for words in WAITING)
        assert place.invites in asked
        await make.answer(work.number, "red", people.ben)
        again = await make.running(work.number)
        await rt.settlement.outcome(again, Done({"summary": "all is well"}))
        await outbox.sent(work.number)
        status, closed, result = texts(place)
        assert "completed" in status
        assert "was answered by ben: red" in closed
        assert place.invites not in closed
        assert "all is well" in result

    async def test_identical_questions_of_two_jobs_are_one_message(
        self, rt: Runtime, make: Factory, place: Place, outbox: Outbox, people: People
    ) -> None:
        jobs = [await make.asked(repo=SHOP, notify=(place.target,)) for _ in range(2)]
        for work in jobs:
            await outbox.sent(work.number)
        (asked,) = [text for text in texts(place) if place.invites in text]
        assert f"2 jobs ask this: {jobs[0].name}, {jobs[1].name}" in plain(asked)
        same = f"asks the same as {jobs[0].name}/1"
        assert [same in plain(text) for text in texts(place)].count(True) == 1
        response = Response(source_event_id="e", text="red")
        verdict = await rt.questions.answer(jobs[1].number, 1, response, people.ben)
        assert verdict.also == (f"{jobs[0].name}/1",)
        for work in jobs:
            await outbox.sent(work.number)
        assert not [text for text in texts(place) if place.invites in text]

    async def test_decision_shows_its_person_and_reason(
        self, place: Place, outbox: Outbox, rt: Runtime, make: Factory, people: People
    ) -> None:
        work = await make.asked(GATE, notify=(place.target,))
        await outbox.sent(work.number)
        await make.decide(work.number, False, people.carol, reason="not on a Friday")
        await outbox.sent(work.number)
        status, closed, result = texts(place)
        assert "was denied by carol: not on a Friday" in closed
        for text in (status, result):
            assert text.count("denied by carol: not on a Friday") == 1
            assert "failed" not in text

    async def test_requested_changes_show_their_person_and_what_to_change(
        self, place: Place, outbox: Outbox, make: Factory, people: People
    ) -> None:
        work = await make.asked(REVIEW, notify=(place.target,))
        await outbox.sent(work.number)
        comments = [{"path": "a.py", "line": 3, "text": "handle None"}]
        await make.review(
            work.number,
            Decision.REQUEST_CHANGES,
            people.carol,
            reason="use the v2 API",
            comments=comments,
        )
        await outbox.sent(work.number)
        _, closed = map(plain, texts(place))
        assert f"{work.name}/1: changes were requested by carol: use the v2 API" in closed
        assert "3: handle None" in closed

    async def test_an_approval_that_is_asked_again_repeats_the_requested_changes(
        self, place: Place, outbox: Outbox, make: Factory, people: People
    ) -> None:
        work = await make.overtaken(people.carol, notify=(place.target,))
        await outbox.sent(work.number)
        [asked] = [text for text in map(plain, texts(place)) if f"{work.name}/2" in text][-1:]
        assert f"Changes requested by carol in {work.name}/1:" in asked
        assert "use the v2 API" in asked
        assert "3: handle None" in asked

    async def test_lost_response_creates_no_second_message(
        self, place: Place, outbox: Outbox, rt: Runtime, make: Factory
    ) -> None:
        await place.fail(Fault.LOST_REPLY)
        job = await make.queued(notify=(place.target,))
        (sent,) = await outbox.sent(job)
        assert (sent.status, len(texts(place))) == ("sent", 1)

    async def test_killed_process_leaves_one_copy_and_loses_no_message(
        self, place: Place, rt: Runtime, make: Factory
    ) -> None:
        """Killed before the call of a message, and between the call of another and its record."""
        name = place.channel.name
        jobs = [await make.queued(notify=(place.target,)) for _ in range(2)]
        _, called = await claim(rt, name, sender=ENDED)
        assert isinstance(await rt.delivery_sender.send(called, place.channel), Receipt)
        assert await rt.delivery_sender.rescue([name]) == 2
        async with run_dispatcher(rt, place.channel):
            for job in jobs:
                await wait_until_delivered(rt, job, place.channel)
        markers = [post.marker for post in place.posts()]
        assert len(set(markers)) == 2
        assert len(markers) == 2 or not place.finds, "a second copy"

    async def test_rate_limit_uses_no_attempt(
        self, place: Place, outbox: Outbox, rt: Runtime, make: Factory
    ) -> None:
        await place.fail(Fault.RATE_LIMIT)
        job = await make.queued(notify=(place.target,))
        sent = await outbox.refused(job)
        assert (sent.status, sent.attempts) == ("pending", 0)

    async def test_revoked_account_is_not_retried_at_once_and_the_job_continues(
        self, place: Place, outbox: Outbox, rt: Runtime, make: Factory
    ) -> None:
        await place.fail(Fault.REVOKED)
        job = await make.queued(notify=(place.target,))
        sent = await outbox.refused(job)
        await rt.settlement.outcome(await make.running(job), Done({}))
        await rt.outbox.notice(job, "n", "one more")
        assert (sent.status, sent.attempts) == ("pending", 0)
        assert (await rt.read_model.job(job)).status == "completed"
        assert place.calls() == 1, "a hot retry"

    async def test_deleted_target_ends_its_deliveries_but_not_the_job(
        self, place: Place, outbox: Outbox, rt: Runtime, make: Factory
    ) -> None:
        await place.fail(Fault.TARGET_GONE)
        job = await make.queued(notify=(place.target,))
        (sent,) = await outbox.sent(job)
        assert (sent.status, sent.attempts) == ("dead_letter", 1)
        assert "log" in {delivery.channel for delivery in await deliveries_of(rt, job)}
        await rt.settlement.outcome(await make.running(job), Done({}))
        assert (await rt.read_model.job(job)).status == "completed"

    async def test_deleted_status_message_is_posted_once_more(
        self, place: Place, outbox: Outbox, rt: Runtime, make: Factory
    ) -> None:
        job = await make.queued(notify=(place.target,))
        await outbox.sent(job)
        await place.fail(Fault.STATUS_GONE)
        work = await make.running(job)
        await outbox.sent(job)
        await rt.settlement.outcome(work, Done({}))
        await outbox.sent(job)
        status, result = texts(place)
        assert "completed" in status
        assert "completed" in result

    async def test_long_text_is_truncated_and_attached_as_a_file(
        self, place: Place, outbox: Outbox, rt: Runtime, make: Factory
    ) -> None:
        job = await make.queued(notify=(place.target,))
        await rt.outbox.notice(job, "n", LONG)
        await outbox.sent(job)
        assert place.files() == [LONG.encode()]
        assert len("".join(texts(place))) < len(LONG) / 2

    async def test_approval_is_sent_with_the_patch_of_its_run(
        self, place: Place, outbox: Outbox, rt: Runtime, make: Factory
    ) -> None:
        work = await make.running(notify=(place.target,))
        await rt.changes.store(work.lease, PATCH)
        await rt.asking.ask(work.lease, GATE)
        await outbox.sent(work.number)
        assert place.files() == [PATCH]
        assert "not available" not in "".join(texts(place))

    async def test_approval_without_a_patch_states_the_reason(
        self, place: Place, outbox: Outbox, rt: Runtime, make: Factory
    ) -> None:
        work = await make.asked(GATE, notify=(place.target,))
        await outbox.sent(work.number)
        assert "diff" not in texts(place)[-1].lower(), "a job of no agent has none"
        work = await make.running(notify=(place.target,))
        await rt.changes.store(work.lease, b"")
        await rt.asking.ask(work.lease, GATE)
        await outbox.sent(work.number)
        assert "no changes so far" in texts(place)[-1].lower()
        assert place.files() == []

    async def test_a_file_that_is_refused_is_a_warning(
        self, place: Place, outbox: Outbox, rt: Runtime, make: Factory
    ) -> None:
        await place.fail(Fault.FILE_REFUSED)
        work = await make.running(await make.queued(notify=(place.target,)))
        await rt.changes.store(work.lease, b"--- a\n+++ b\n")
        await rt.settlement.outcome(work, Done({"summary": "all is well"}))
        sent = await outbox.sent(work.number)
        (file,) = [item for item in sent if item.kind is DeliveryKind.FILE]
        assert (file.status, (file.last_error or "")[:15]) == ("dead_letter", "changes.patch: ")
        result, warning = texts(place)[-2:]
        assert "all is well" in result
        assert "File not attached: changes.patch: " in plain(warning)
        assert f"draftsman artifacts get {work.name} changes.patch" in plain(warning)
        assert "attachment_failed" in {
            event.kind for event in await rt.read_model.job_events(work.number)
        }

    @pytest.mark.parametrize("kind", ["sequential", "parallel"])
    async def test_a_group_that_stops_is_reported_once(
        self, place: Place, outbox: Outbox, rt: Runtime, make: Factory, kind: str
    ) -> None:
        group = {"name": "release", "kind": kind}
        request = invocation(type="noop", queue="q", notify=(place.target,), group=group)
        jobs = [job.number for job in await rt.submissions.submit_many([request] * 4, make.owner)]
        for job in jobs:
            await outbox.sent(job)
        before = len(texts(place))
        assert "group release" in texts(place)[-1]
        await rt.settlement.failure(
            await make.running(jobs[0]), Failure("no", declared="PERMANENT")
        )
        sent = [await outbox.sent(job) for job in jobs]
        results = [[item.status for item in items if item.kind == "result"] for items in sent]
        assert results == [["sent"], ["superseded"], ["superseded"], ["superseded"]]
        assert len(texts(place)) == before + 1
        stopped = f"group release stopped: D-{jobs[0]} failed, 3 jobs skipped"
        assert stopped in plain(texts(place)[-1])

    async def test_pasted_secret_is_redacted(
        self, place: Place, outbox: Outbox, rt: Runtime, make: Factory
    ) -> None:
        secrets = " and ".join(TOKENS)
        context = "line\n" * 40 + secrets
        ask = QuestionSpec(key="k", text=f"Use {secrets}?", freeform=True, context=context)
        work = await make.asked(ask, notify=(place.target,), title=f"fix {secrets}")
        await rt.outbox.notice(work.number, "n", f"it is {secrets}")
        await outbox.sent(work.number)
        await make.answer(work.number, f"no, {secrets}")
        await outbox.sent(work.number)
        (file,) = place.files()
        visible = "".join(texts(place)) + file.decode()
        assert [token for token in TOKENS if token in visible] == []

    async def test_markup_in_user_text_is_inert(
        self, place: Place, outbox: Outbox, rt: Runtime, make: Factory
    ) -> None:
        ask = QuestionSpec(
            key="k",
            text=MARKUP_INJECTION,
            choices=(MARKUP_INJECTION,),
            freeform=True,
            context=MARKUP_INJECTION,
        )
        work = await make.asked(ask, notify=(place.target,), title=MARKUP_INJECTION)
        await rt.outbox.notice(work.number, "n", MARKUP_INJECTION)
        await outbox.sent(work.number)
        assert len(texts(place)) == 3
        assert place.active_markup() == [], place.active_markup()

    async def test_hostile_examples_have_no_effect(self, place: Place) -> None:
        """Texts with mentions, links, commands and every mark of Markdown."""
        hostile = [item for name, item in examples(address(place)).items() if "hostile" in name]
        for example in hostile:
            await place.channel.send(example)
        assert len(place.posts()) == len(hostile) > 4
        assert list(place.active_markup()) == []
