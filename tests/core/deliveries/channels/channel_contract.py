"""The contract of all channels. A test class per channel inherits it and gives a `harness`.

class TestLog(ChannelContract):
    @pytest.fixture
    def harness(self, tmp_path): return LogHarness(tmp_path)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol
from uuid import UUID, uuid4

import pytest

from draftsman.deliveries.channel import Channel
from draftsman.deliveries.delivery import (
    DeliveryKind,
    File,
    Message,
    Receipt,
    Subject,
    Unconfirmed,
)
from draftsman.errors import Failure
from draftsman.jobs.job import Status
from draftsman.jobs.retries import ErrorClass, classify
from draftsman.questions.question import OnDeny, OnExpire, Question, QuestionKind, QuestionStatus

WHEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SECRET = "hunter2-in-the-clear"


class ChannelHarness(Protocol):
    """A channel, with the messages at its endpoint and the faults to inject there."""

    channel: Channel
    finds: bool
    """Whether an earlier copy can be found; if not, a repetition must be harmless."""
    cuts: bool
    """Whether the channel has replies, which can be lost."""

    async def seen(self) -> Sequence[tuple[str, str]]:
        """Return (marker, text) of each received message, in order."""
        ...

    async def drop_next_response(self) -> None:
        """Let the next call arrive, and drop its reply."""
        ...

    async def reject_next(self, status: int, retry_after: str | None = None) -> None:
        """Refuse the next call."""
        ...

    async def stop_listening(self) -> None:
        """Make the endpoint unreachable."""
        ...


def message(kind: DeliveryKind = DeliveryKind.RESULT, **fields: object) -> Message:
    """Return a message of a job."""
    subject = Subject(
        7, UUID(int=7), "noop", Status.COMPLETED, "Tidy <!channel> up", invoker="anna",
        result={"summary": "all is well", "pr_url": "https://example.org/pr/1"},
    )  # fmt: skip
    built = Message(str(uuid4()), 1, kind, "ops", subject, WHEN, question=question())
    return replace(built, **fields)  # type: ignore[arg-type]


def question(**fields: object) -> Question:
    """Return an open question with two choices."""
    built = Question(
        7, 2, 1, "pick", QuestionKind.INPUT, QuestionStatus.OPEN, "Which one?",
        [{"value": "red", "label": "Red"}, {"value": "blue", "label": "Blue"}], True, None, [], 1,
        OnExpire.EXPIRE, None, OnDeny.FAIL, "d", None, None, WHEN, None, None,
    )  # fmt: skip
    return replace(built, **fields)  # type: ignore[arg-type]


class ChannelContract:
    """Tests of a channel."""

    async def test_a_message_is_visible_once_with_its_marker(self, harness: ChannelHarness) -> None:
        sent = message()
        done = await harness.channel.send(sent)
        assert isinstance(done, Receipt), done
        assert done.ref
        ((marker, text),) = await harness.seen()
        assert marker == sent.marker
        assert "D-7" in text

    async def test_a_copy_is_found_by_its_marker_or_may_be_repeated(
        self, harness: ChannelHarness
    ) -> None:
        sent = message()
        assert await harness.channel.find(sent) is None
        for other in (message(), sent, message()):
            await harness.channel.send(other)
        found_ref = await harness.channel.find(sent)
        if harness.finds:
            assert isinstance(found_ref, Receipt)
        else:
            assert found_ref is None
            await harness.channel.send(sent)
            markers = [marker for marker, _ in await harness.seen()]
            assert markers.count(sent.marker) == 2, "repetitions are recognized by the marker"
        assert await harness.channel.find(message()) is None

    @pytest.mark.parametrize("kind", DeliveryKind)
    async def test_every_kind_of_message_is_sent(
        self, harness: ChannelHarness, kind: DeliveryKind
    ) -> None:
        sent = message(kind, payload={"text": "hello", "name": "report.txt"})
        call = (
            harness.channel.upload(sent, File("report.txt", b"\x00\xff"))
            if (kind is DeliveryKind.FILE)
            else harness.channel.send(sent)
        )
        assert isinstance(await call, Receipt)

    async def test_a_copy_is_edited(self, harness: ChannelHarness) -> None:
        first = await harness.channel.send(message(DeliveryKind.QUESTION))
        assert isinstance(first, Receipt)
        closed = question(
            status=QuestionStatus.ANSWERED,
            resolution={"outcome": "answered", "via": "person", "value": "red", "by": ["anna"]},
        )
        done = await harness.channel.edit(
            message(DeliveryKind.QUESTION_CLOSED, edits=first.ref, question=closed)
        )
        assert isinstance(done, Receipt)
        assert done.ref == first.ref, "the copy keeps its reference for the next edit"
        assert "was answered by anna: Red" in (await harness.seen())[-1][1]

    async def test_hostile_text_is_sent(self, harness: ChannelHarness) -> None:
        text = "\u202e turned, 🙂, <!channel>, ```, \x1b[31m " + "x" * 20_000
        assert isinstance(
            await harness.channel.send(message(DeliveryKind.NOTICE, payload={"text": text})),
            Receipt,
        )

    async def test_a_lost_reply_is_unconfirmed_and_reconciled(
        self, harness: ChannelHarness
    ) -> None:
        if not harness.cuts:
            return
        await harness.drop_next_response()
        sent = message()
        assert isinstance(await harness.channel.send(sent), Unconfirmed)
        assert [marker for marker, _ in await harness.seen()] == [sent.marker]
        found_ref = await harness.channel.find(sent)
        assert isinstance(found_ref, Receipt) if harness.finds else found_ref is None

    async def test_a_refusal_has_the_time_of_the_next_attempt(
        self, harness: ChannelHarness
    ) -> None:
        if not harness.cuts:
            return
        await harness.reject_next(429, "7")
        outcome = await harness.channel.send(message())
        assert isinstance(outcome, Failure)
        assert (outcome.http_status, outcome.retry_after) == (429, 7)

    async def test_a_permanent_refusal_is_a_permanent_failure(
        self, harness: ChannelHarness
    ) -> None:
        if not harness.cuts:
            return
        await harness.reject_next(400)
        outcome = await harness.channel.send(message())
        assert isinstance(outcome, Failure)
        assert classify(outcome) is ErrorClass.PERMANENT

    async def test_a_refused_connection_is_a_failure_without_a_delivery(
        self, harness: ChannelHarness
    ) -> None:
        await harness.stop_listening()
        for call in (harness.channel.send(message()), harness.channel.edit(message(edits="ref"))):
            outcome = await call
            assert isinstance(outcome, Failure), outcome

    async def test_channel_names_its_rate_limit_buckets(self, harness: ChannelHarness) -> None:
        sent = message()
        closed = harness.channel.bucket(sent, Failure("later", http_status=429, retry_after=1))
        assert closed.startswith(str(harness.channel.name))
        for limit in harness.channel.limits(sent):
            assert limit.every > 0
            assert limit.burst >= 1
