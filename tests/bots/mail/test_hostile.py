"""Hostile and broken mails: what each does, and that only the right ones decide."""

from __future__ import annotations

import time
from email.message import EmailMessage

import pytest

from draftsman.runtime import Runtime
from draftsman_bots.mail.reply_address import ReplyTopic, reply_address
from draftsman_bots.mail.service import MailService, create
from draftsman_testing.factories import Factory
from tests.bots.mail.hostile import ACCEPTED, REFUSED, Mail
from tests.bots.mail.mail_side import ADDRESS, KEY, MailSide, reply
from tests.bots.mail.test_answers import GATE

ASKED = EmailMessage()
ASKED["Subject"] = "D-1: Shop"
ASKED["Message-ID"] = "<asked@example.org>"


def test_there_are_enough_cases() -> None:
    assert len(REFUSED) >= 40


async def test_nothing_else_decides(rt: Runtime, make: Factory, side: MailSide) -> None:
    work = await make.asked(GATE)
    outcomes = {}
    for name, mail in REFUSED.items():
        before = len(side.sent)
        outcome = await create(rt).handler.on_mail(raw_mail(mail, name, work.number))
        outcomes[name] = (outcome[: len(mail.outcome)], len(side.sent) - before)
        (question,), _ = await rt.questions.of_job(work.number)
        assert question.status == "open", name
    assert outcomes == {name: (mail.outcome, mail.replies) for name, mail in REFUSED.items()}
    assert {sent["To"] for sent in side.sent} == {"carol@example.org"}
    assert {sent["Auto-Submitted"] for sent in side.sent} == {"auto-generated"}


@pytest.mark.parametrize("name", ACCEPTED)
async def test_a_mail_of_the_person_decides(
    rt: Runtime, make: Factory, bot: MailService, name: str
) -> None:
    work = await make.asked(GATE)
    assert await bot.handler.on_mail(raw_mail(ACCEPTED[name], name, work.number)) == "answered"
    (question,), _ = await rt.questions.of_job(work.number)
    assert question.resolution is not None
    assert (question.resolution["outcome"], question.resolution["by"]) == ("approved", ["carol"])


def raw_mail(mail: Mail, name: str, job: int) -> bytes:
    """Return the mail of a case about the question of a job."""
    topic = ReplyTopic(job, 1, int(time.time()) + 1000)
    signed = reply_address(ADDRESS, KEY, "carol", topic)
    local, _, domain = signed.partition("@")
    fields, _, mac = local.rpartition("-")
    start, expiry = fields.rsplit("-", 1)
    addresses = {
        "signed": signed,
        "upper": signed.upper(),
        "other": reply_address(ADDRESS, KEY, "dave", topic),
        "expired": reply_address(ADDRESS, KEY, "carol", topic._replace(expires=1)),
        "question": f"{start[:-1]}2-{expiry}-{mac}@{domain}",
        "later": f"{start}-{int(expiry, 16) + 1:x}-{mac}@{domain}",
        "altered": f"{fields}-{mac[:-1]}{'b' if mac[-1] == 'a' else 'a'}@{domain}",
        "elsewhere": f"{local}@evil.test",
    }
    return reply(
        ASKED,
        mail.text,
        *mail.headers,
        sender=mail.sender,
        to=mail.to.format(**addresses),
        confirmed=mail.confirmed,
        kind=mail.kind,
        id=f"<{abs(hash(name))}@mail.example.org>",
    )
