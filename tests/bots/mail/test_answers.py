"""Replies to mails about jobs."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta, timezone

from draftsman.questions.question import QuestionKind
from draftsman.questions.question_spec import QuestionSpec
from draftsman.runtime import Runtime
from draftsman_bots.mail.service import MailService
from draftsman_testing.factories import Factory
from draftsman_testing.outbox import run_dispatcher, wait_until_delivered
from tests.bots.mail.mail_side import MailSide, html_of, text_of

GATE = QuestionSpec(key="gate", kind=QuestionKind.APPROVAL, text="Deploy?", approvers=("carol",))


async def test_times_of_a_mail_are_in_the_zone_of_its_reader(
    rt: Runtime, side: MailSide, bot: MailService, make: Factory
) -> None:
    rt.policy.zone = timezone(timedelta(hours=9), "JST")
    ben = replace(rt.policy.people["ben"], zone=timezone(timedelta(hours=1), "CET"))
    rt.policy.people = {**rt.policy.people, "ben": ben}
    async with run_dispatcher(rt, bot.channel):
        for address, zone in {"ben@example.org": "CET", "team@example.org": "JST"}.items():
            work = await make.asked(notify=(f"mail:{address}",))
            await wait_until_delivered(rt, work.number, bot.channel)
            for text in (text_of(side.sent[-1]), html_of(side.sent[-1])):
                assert re.search(rf"(?i)expires at .* {zone}\b", text)


async def test_an_approval_is_mailed_and_given_by_a_reply(
    rt: Runtime, make: Factory, side: MailSide, bot: MailService
) -> None:
    async with run_dispatcher(rt, bot.channel):
        work = await make.asked(GATE, notify=("mail:carol@example.org",), title="Shop")
        await wait_until_delivered(rt, work.number, bot.channel)
        (asked,) = side.sent
        assert asked["Subject"] == f"{work.name}: Shop"
        assert "to answer, reply `approve`, or `deny` and a reason" in text_of(asked)
        assert "Deploy?" in html_of(asked)
        await side.answer(bot, "Approve\r\n\r\n-- \r\nCarol")
        (question,), _ = await rt.questions.of_job(work.number)
        assert question.status == "answered"
        await wait_until_delivered(rt, work.number, bot.channel)
        closed = side.sent[-1]
        assert "was approved by carol" in text_of(closed)
        assert closed["References"] == asked["References"]
    assert side.imap.unseen() == []
