"""Reading of the mailbox: each mail once, whatever fails."""

from __future__ import annotations

import pytest

from draftsman.errors import Failure
from draftsman.runtime import Runtime
from draftsman_bots.mail.mailbox import BATCH
from draftsman_bots.mail.service import MailService
from draftsman_testing.channel.place import Fault
from draftsman_testing.factories import Factory
from tests.bots.mail.hostile import Mail
from tests.bots.mail.mail_side import MailSide
from tests.bots.mail.test_answers import GATE
from tests.bots.mail.test_hostile import raw_mail


async def test_a_mail_that_fails_does_not_stop_the_others(
    side: MailSide, bot: MailService, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[bytes] = []

    async def on_mail(raw: bytes) -> str:
        read.append(raw)
        if raw == b"bad":
            raise ValueError("bad")
        return "read"

    monkeypatch.setattr(bot.handler, "on_mail", on_mail)
    for raw in (b"one", b"bad", b"two"):
        side.imap.deliver(raw)
    await bot.read()
    await bot.read()
    assert read == [b"one", b"bad", b"two"]
    assert side.imap.unseen() == []
    assert side.imap.violations == []


async def test_many_mails_are_read_in_batches_from_the_oldest(
    side: MailSide, bot: MailService, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[bytes] = []

    async def on_mail(raw: bytes) -> str:
        read.append(raw)
        return "read"

    monkeypatch.setattr(bot.handler, "on_mail", on_mail)
    mails = [b"%d" % number for number in range(BATCH + 5)]
    for raw in mails:
        side.imap.deliver(raw)
    await bot.read()
    assert read == mails[:BATCH]
    await bot.read()
    assert read == mails


async def test_a_mail_is_read_again_until_its_reply_is_sent(
    rt: Runtime, make: Factory, side: MailSide, bot: MailService
) -> None:
    work = await make.asked(GATE)
    side.imap.deliver(raw_mail(Mail("", "I am not sure"), "unsure", work.number))
    side.sink.faults.append(Fault.RATE_LIMIT)
    await bot.read()
    assert len(side.imap.unseen()) == 1
    await bot.read()
    assert side.imap.unseen() == []
    assert len(side.sent) == 1


async def test_uids_of_another_validity_are_not_marked(
    side: MailSide, bot: MailService, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def on_mail(raw: bytes) -> str:
        if side.imap.validity == 7:
            side.imap.renumber()
        return "read"

    monkeypatch.setattr(bot.handler, "on_mail", on_mail)
    side.imap.deliver(b"one")
    side.imap.deliver(b"two")
    await bot.read()
    assert side.imap.unseen() == [2, 3]
    await bot.read()
    assert side.imap.unseen() == []


async def test_a_mail_that_is_delivered_twice_counts_once(
    rt: Runtime, make: Factory, side: MailSide, bot: MailService
) -> None:
    work = await make.asked(GATE)
    raw = raw_mail(Mail(""), "twice", work.number)
    side.imap.deliver(raw)
    side.imap.deliver(b"X-Other-Path: yes\r\n" + raw)
    await bot.read()
    _, answers = await rt.questions.of_job(work.number)
    assert [answer.accepted for answer in answers] == [True]
    assert side.sent == []


async def test_a_replay_after_the_decision_changes_nothing(
    rt: Runtime, make: Factory, side: MailSide, bot: MailService
) -> None:
    work = await make.asked(GATE)
    await bot.handler.on_mail(raw_mail(Mail(""), "first", work.number))
    outcome = await bot.handler.on_mail(raw_mail(Mail("", "deny"), "second", work.number))
    assert outcome in ("rejected", "already_recorded")
    (question,), _ = await rt.questions.of_job(work.number)
    assert question.resolution is not None
    assert question.resolution["outcome"] == "approved"


async def test_a_wrong_password_is_a_problem_of_the_bot(side: MailSide, bot: MailService) -> None:
    side.imap.login = (b"x", b"y")
    with pytest.raises(Failure):
        await bot.read()


async def test_huge_mail_is_read_in_part(side: MailSide, bot: MailService) -> None:
    side.imap.deliver(b"Subject: x\r\n\r\n" + b"x" * 3_000_000)
    assert bot.mailbox is not None
    _, mails = bot.mailbox.unseen()
    assert [len(raw) for raw in mails.values()] == [1024 * 1024]
