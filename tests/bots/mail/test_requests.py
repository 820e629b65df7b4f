"""Jobs that a mail to the address of a template starts."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman.schedules.template import define
from draftsman.settings import Settings
from draftsman_bots.mail.service import MailService
from draftsman_bots.mail.settings import MailSettings
from tests.bots.mail.conftest import with_mail
from tests.bots.mail.mail_side import CONFIRMED, MailSide, text_of

BUG: dict[str, Any] = {
    "type": "noop",
    "title": "{subject}",
    "text": "{text}",
    "parameters": {
        "type": "object",
        "properties": {"subject": {"type": "string", "minLength": 3}, "text": {"type": "string"}},
        "required": ["subject"],
    },
}


def _mail(
    *headers: str, sender: str = "anna", subject: str = "The till is wrong", id: str = "1"
) -> bytes:
    lines = [
        *headers,
        f"From: {sender}@example.org",
        "To: draftsman+bug@example.org",
        f"Subject: {subject}",
        f"Message-ID: <{id}@mail.example.org>",
    ]
    return ("\r\n".join(lines) + "\r\n\r\nSince Monday.\r\n-- \r\nAnna").encode()


@pytest.fixture(autouse=True)
async def _template(rt: Runtime, owner: Actor) -> None:
    await rt.templates.add("bug", define(BUG), owner)


async def test_a_mail_starts_the_job_once(rt: Runtime, side: MailSide, bot: MailService) -> None:
    replayed = _mail(CONFIRMED, subject="Another title", id="2")
    mails = (_mail(CONFIRMED), _mail(CONFIRMED), replayed)
    outcomes = [await bot.handler.on_mail(raw) for raw in mails]
    (summary,) = await rt.read_model.jobs()
    job = await rt.read_model.job(summary.number)
    assert outcomes == [*[f"submitted {job.name}"] * 2, "submitted before"]
    assert (job.title, job.invoker_id) == ("The till is wrong", "anna")
    assert job.agent_request.text == "Since Monday."
    targets = await rt.outbox.targets(job.number)
    assert [(row.channel, row.target) for row in targets] == [("mail", "anna@example.org")]
    assert text_of(side.sent[0]).strip() == f"{job.name} was started."


async def test_an_encoded_subject_is_decoded(rt: Runtime, bot: MailService) -> None:
    await bot.handler.on_mail(_mail(CONFIRMED, subject="=?utf-8?q?Gr=C3=B6=C3=9Fe?="))
    (summary,) = await rt.read_model.jobs()
    assert (await rt.read_model.job(summary.number)).title == "Größe"


@pytest.mark.parametrize(
    ("raw", "outcome", "replies"),
    [
        (_mail(), "refused: the receiving server did not confirm", 1),
        (_mail(CONFIRMED, sender="eve"), "ignored: of no known person", 0),
        (_mail(CONFIRMED, sender="carol"), "refused: ", 1),
        (_mail(CONFIRMED, subject="x"), "refused: ", 1),
        (_mail(CONFIRMED, "Auto-Submitted: auto-generated"), "ignored: auto-submitted", 0),
        (_mail(CONFIRMED, "List-Id: <x>"), "ignored: list-id", 0),
        (_mail(CONFIRMED, "Return-Path: <>"), "ignored: return-path", 0),
        (_mail(CONFIRMED, "Cc: eve@evil.test, draftsman+bug@example.org"), "submitted", 1),
    ],
)
async def test_only_known_people_start_jobs(
    rt: Runtime, side: MailSide, bot: MailService, raw: bytes, outcome: str, replies: int
) -> None:
    assert (await bot.handler.on_mail(raw)).startswith(outcome)
    assert len(side.sent) == replies
    assert len(await rt.read_model.jobs()) == (outcome == "submitted")


async def test_refusals_of_forged_mails_are_told_once_an_hour(
    side: MailSide, bot: MailService
) -> None:
    for number in range(5):
        await bot.handler.on_mail(_mail(id=str(number)))
    assert len(side.sent) == 1
    assert "the receiving server did not confirm its sender" in text_of(side.sent[0])


@pytest.mark.parametrize("field", ["", "Authentication-Results: ; dkim=pass header.d=example.org"])
async def test_without_a_receiving_server_no_sender_is_confirmed(
    rt: Runtime, settings: Settings, side: MailSide, field: str
) -> None:
    """A field without the name of a server, which anyone can write, is that of no server."""
    bot = MailService(rt, MailSettings.required(with_mail(settings, side.settings(authserv_id=""))))
    outcome = await bot.handler.on_mail(_mail(*filter(None, [field])))
    assert outcome.startswith("refused: the receiving server did not confirm")
    assert "authserv_id is not set" in outcome
    assert await rt.read_model.jobs() == []
