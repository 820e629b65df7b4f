"""The contract of all channels, and what a mail has."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from draftsman.deliveries.delivery import (
    TARGET_GONE,
    DeliveryKind,
    File,
    Message,
    Receipt,
    SendResult,
)
from draftsman.errors import Failure
from draftsman.jobs.retries import ErrorClass, classify
from draftsman_bots.mail.reply_address import topic_of
from draftsman_bots.mail.service import MailService
from draftsman_testing.channel.channel_contract import ChannelContract
from draftsman_testing.channel.place import Fault, Post
from draftsman_testing.channel.samples import message, question
from tests.bots.mail.mail_side import ADDRESS, KEY, MailSide, html_of, posts_of, text_of


class MailPlace:
    """The mailbox of a person."""

    target = "mail:carol@example.org"
    missing = "<gone@example.org>"
    finds = False
    faults = frozenset({Fault.LOST_REPLY, Fault.REFUSED, Fault.UNREACHABLE})

    def __init__(self, side: MailSide, bot: MailService) -> None:
        self.channel = bot.channel
        self._side = side

    def posts(self) -> Sequence[Post]:
        """Return the mails."""
        return posts_of(self._side.sent)

    async def fail(self, fault: Fault) -> None:
        """Have a fault."""
        if fault is Fault.UNREACHABLE:
            self._side.smtp.close()
            await self._side.smtp.wait_closed()
        else:
            self._side.sink.faults.append(fault)


class TestMail(ChannelContract):
    @pytest.fixture
    def place(self, side: MailSide, bot: MailService) -> MailPlace:
        return MailPlace(side, bot)


async def _sent(bot: MailService, sent: Message) -> SendResult:
    return await bot.channel.send(sent)


def _message(kind: DeliveryKind = DeliveryKind.QUESTION, **fields: object) -> Message:
    return message(kind, target="carol@example.org", **fields)


async def test_mails_of_a_job_are_a_thread_that_programs_do_not_answer(
    side: MailSide, bot: MailService
) -> None:
    messages = [_message(), _message(DeliveryKind.RESULT)]
    for item in messages:
        assert await _sent(bot, item) == Receipt(f"<{item.marker}@example.org>")
    asked, result = side.sent
    assert asked["References"] == result["References"] == f"<{messages[0].subject.id}@example.org>"
    assert asked["Subject"] == result["Subject"]
    for mail in side.sent:
        assert mail["From"] == f"draftsman <{ADDRESS}>"
        assert mail["Auto-Submitted"] == "auto-generated"
        assert mail["X-Auto-Response-Suppress"] == "All"
        assert mail["List-Unsubscribe"] is None


async def test_reply_address_is_that_of_the_person_and_question(
    side: MailSide, bot: MailService
) -> None:
    sent = _message()
    await _sent(bot, sent)
    topic = topic_of(side.sent[0]["Reply-To"], ADDRESS, KEY, "carol")
    assert topic is not None
    assert topic[:2] == (7, 2)
    assert topic.expires == int((sent.created_at + timedelta(days=30)).timestamp())
    await _sent(bot, _message(DeliveryKind.NOTICE, payload={"text": "x"}, question=None))
    topic = topic_of(side.sent[1]["Reply-To"], ADDRESS, KEY, "carol")
    assert topic is not None
    assert topic[:2] == (7, 0)


async def test_a_stranger_gets_commands_and_no_reply_address(
    side: MailSide, bot: MailService
) -> None:
    await bot.channel.send(message(DeliveryKind.QUESTION, target="team@example.net"))
    (mail,) = side.sent
    assert mail["Reply-To"] is None
    assert "draftsman answer D-7/2 NUMBER" in text_of(mail)
    assert "draftsman answer D-7/2 NUMBER" in html_of(mail)


async def test_text_and_html_say_the_same_and_load_nothing(
    side: MailSide, bot: MailService
) -> None:
    hostile = '<img src="https://evil.test/x.png"><script>1</script>\u202e\0'
    await _sent(bot, _message(question=question(text=hostile)))
    (mail,) = side.sent
    for text in (text_of(mail), html_of(mail)):
        assert "Which" not in text
        assert "1" in text
        assert "reply with the number of a choice or your own text" in text
        assert "\u202e" not in text
    html = html_of(mail)
    for active in ("<img", "<script", "<link", "<style", 'src="', "url(", "@import"):
        assert active not in html
    assert [part.get_content_type() for part in mail.walk()] == [
        "multipart/alternative", "text/plain", "text/html",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "title",
    ["a\r\nBcc: eve@evil.test", "a\nb", "\x00\x1b[31m", "x" * 2000, "Größe 🙂 \u202e", "", "="],
)
async def test_a_title_adds_no_header(side: MailSide, bot: MailService, title: str) -> None:
    sent = _message(DeliveryKind.RESULT)
    hostile = _message(DeliveryKind.RESULT, subject=_titled(sent, title))
    assert isinstance(await _sent(bot, hostile), Receipt)
    (mail,) = side.sent
    assert mail["Bcc"] is None
    assert mail["Subject"].startswith("D-7:")
    assert mail.is_multipart()


def _titled(sent: Message, title: str) -> object:
    from dataclasses import replace

    return replace(sent.subject, title=title)


async def test_a_file_is_attached(side: MailSide, bot: MailService) -> None:
    data = bytes(range(256)) * 10
    sent = _message(DeliveryKind.FILE, payload={"name": "../a\r\nb.patch"})
    await bot.channel.upload(sent, File("../a\r\nb.patch", data))
    (attachment,) = side.sent[0].iter_attachments()
    assert attachment.get_content() == data
    assert "\n" not in (attachment.get_filename() or "\n")


async def test_statuses_and_edits_of_questions_are_not_mailed(
    side: MailSide, bot: MailService
) -> None:
    status = _message(DeliveryKind.STATUS)
    receipt = await _sent(bot, status)
    assert receipt == Receipt(f"<{status.subject.id}@example.org>")
    for kind in (DeliveryKind.STATUS, DeliveryKind.QUESTION, DeliveryKind.REMINDER):
        assert await bot.channel.edit(_message(kind, edits="<x@y>")) == Receipt("<x@y>")
    assert side.sent == []


async def test_a_recipient_that_is_gone_is_a_permanent_failure(
    side: MailSide, bot: MailService
) -> None:
    side.sink.faults.append(Fault.TARGET_GONE)
    outcome = await _sent(bot, _message())
    assert isinstance(outcome, Failure)
    assert (outcome.code, classify(outcome)) == (TARGET_GONE, ErrorClass.PERMANENT)


async def test_a_server_that_is_busy_gets_a_pause(side: MailSide, bot: MailService) -> None:
    side.sink.faults.append(Fault.RATE_LIMIT)
    outcome = await _sent(bot, _message())
    assert isinstance(outcome, Failure)
    assert (outcome.retry_after, classify(outcome)) == (60, ErrorClass.TRANSIENT_INFRA)
