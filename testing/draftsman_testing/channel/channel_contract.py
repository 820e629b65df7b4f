"""The contract of every channel: its calls.

class TestMail(ChannelContract):
    @pytest.fixture
    async def place(self): yield MailPlace(…)
"""

from __future__ import annotations

import pytest

from draftsman.deliveries.delivery import (
    DeliveryKind,
    File,
    Message,
    Receipt,
    SendResult,
    Unconfirmed,
)
from draftsman.errors import Failure
from draftsman.jobs.retries import ErrorClass, classify
from draftsman.questions.question import QuestionStatus
from draftsman_testing.channel.examples import examples
from draftsman_testing.channel.place import RETRY_AFTER, Endpoint, Fault, address
from draftsman_testing.channel.samples import message, question


def _require(place: Endpoint, fault: Fault) -> None:
    if fault not in place.faults:
        pytest.skip(f"{place.channel.name} cannot have the fault {fault}")


async def _send(place: Endpoint, sent: Message) -> SendResult:
    if sent.kind is DeliveryKind.FILE:
        return await place.channel.upload(sent, File("report.txt", b"\x00\xff"))
    return await place.channel.send(sent)


class ChannelContract:
    """Tests of the calls of a channel. A class inherits them, and has a fixture `place`."""

    async def test_a_message_is_visible_once_with_its_marker(self, place: Endpoint) -> None:
        sent = message(target=address(place))
        done = await place.channel.send(sent)
        assert isinstance(done, Receipt), done
        assert done.ref
        ((marker, text),) = place.posts()
        assert marker == sent.marker
        assert "D-7" in text

    async def test_a_copy_is_found_by_its_marker_or_may_be_repeated(self, place: Endpoint) -> None:
        sent, before, after, never = (message(target=address(place)) for _ in range(4))
        assert await place.channel.find(sent) is None
        for item in (before, sent, after):
            await place.channel.send(item)
        found = await place.channel.find(sent)
        if place.finds:
            assert isinstance(found, Receipt)
        else:
            assert found is None
            await place.channel.send(sent)
            markers = [post.marker for post in place.posts()]
            assert 1 <= markers.count(sent.marker) <= 2, "a repetition is recognized by the marker"
            assert len(set(markers)) == 3
        assert await place.channel.find(never) is None

    async def test_every_message_is_sent(self, place: Endpoint) -> None:
        """Short, long, hostile and empty, within the limits that the fake of the service checks."""
        for name, example in examples(address(place)).items():
            if "to" in (example.payload or {}):
                continue  # an account of another chat
            done = await _send(place, example)
            assert isinstance(done, Receipt), f"{name}: {done}"

    async def test_a_copy_is_edited(self, place: Endpoint) -> None:
        to = address(place)
        first = await place.channel.send(message(DeliveryKind.QUESTION, target=to))
        assert isinstance(first, Receipt)
        closed = question(
            status=QuestionStatus.ANSWERED,
            resolution={"outcome": "answered", "via": "person", "value": "red", "by": ["anna"]},
        )
        done = await place.channel.edit(
            message(DeliveryKind.QUESTION_CLOSED, target=to, edits=first.ref, question=closed)
        )
        assert isinstance(done, Receipt)
        assert done.ref == first.ref, "the copy keeps its reference for the next edit"
        assert "was answered by anna: Red" in place.posts()[-1].text

    async def test_a_lost_reply_is_unconfirmed_and_reconciled(self, place: Endpoint) -> None:
        _require(place, Fault.LOST_REPLY)
        await place.fail(Fault.LOST_REPLY)
        sent = message(target=address(place))
        assert isinstance(await place.channel.send(sent), Unconfirmed)
        assert [post.marker for post in place.posts()] == [sent.marker]
        found = await place.channel.find(sent)
        assert isinstance(found, Receipt) if place.finds else found is None

    async def test_a_refusal_has_the_time_of_the_next_attempt(self, place: Endpoint) -> None:
        _require(place, Fault.RATE_LIMIT)
        await place.fail(Fault.RATE_LIMIT)
        outcome = await place.channel.send(message(target=address(place)))
        assert isinstance(outcome, Failure)
        assert (outcome.http_status, outcome.retry_after) == (429, RETRY_AFTER)

    async def test_a_permanent_refusal_is_a_permanent_failure(self, place: Endpoint) -> None:
        _require(place, Fault.REFUSED)
        await place.fail(Fault.REFUSED)
        outcome = await place.channel.send(message(target=address(place)))
        assert isinstance(outcome, Failure)
        assert classify(outcome) is ErrorClass.PERMANENT

    async def test_a_refused_connection_is_a_failure_without_a_delivery(
        self, place: Endpoint
    ) -> None:
        await place.fail(Fault.UNREACHABLE)
        sent = message(target=address(place))
        edit = message(target=address(place), edits=place.missing)
        for call in (place.channel.send(sent), place.channel.edit(edit)):
            outcome = await call
            assert isinstance(outcome, Failure), outcome

    async def test_channel_names_its_rate_limit_buckets(self, place: Endpoint) -> None:
        sent = message(target=address(place))
        closed = place.channel.bucket(sent, Failure("later", http_status=429, retry_after=1))
        assert closed.startswith(str(place.channel.name))
        for limit in place.channel.limits(sent):
            assert limit.every > 0
            assert limit.burst >= 1
