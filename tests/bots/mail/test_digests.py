"""Digests by mail, and their end."""

from __future__ import annotations

from dataclasses import replace

from draftsman.deliveries.delivery import DeliveryKind
from draftsman.runtime import Runtime
from draftsman_bots.mail.service import MailService
from draftsman_testing.channel.examples import examples
from draftsman_testing.people import People
from tests.bots.mail.mail_side import MailSide, reply, text_of


async def test_a_digest_can_be_ended_by_its_header(
    rt: Runtime, people: People, side: MailSide, bot: MailService
) -> None:
    await rt.digests.choose("09:00", people.ben)
    digests = [
        message
        for message in examples("ben@example.org").values()
        if message.kind is DeliveryKind.DIGEST
    ]
    now = await rt.checkpoints.now()
    await bot.channel.send(replace(digests[0], created_at=now))
    (digest,) = side.sent
    assert digest["Subject"] == text_of(digest).splitlines()[0]
    assert digest["Reply-To"] is None
    assert digest["References"] is None
    scheme, _, address = digest["List-Unsubscribe"].strip(" <>").partition(":")
    assert scheme == "mailto"
    forged = reply(digest, "", to=address, confirmed="", id="<1@mail.example.org>")
    await bot.handler.on_mail(forged)
    assert await rt.digests.hours("ben") is not None
    ended = reply(digest, "", to=address, id="<2@mail.example.org>")
    assert await bot.handler.on_mail(ended) == "unsubscribed"
    assert await rt.digests.hours("ben") is None
    assert "no more digests" in text_of(side.sent[-1])
