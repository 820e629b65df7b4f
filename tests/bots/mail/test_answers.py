"""Replies to mails about jobs."""

from __future__ import annotations

from draftsman.questions.question import QuestionKind
from draftsman.questions.question_spec import QuestionSpec
from draftsman.runtime import Runtime
from draftsman_bots.mail.service import MailService
from draftsman_testing.factories import Factory
from draftsman_testing.outbox import run_dispatcher, wait_until_delivered
from tests.bots.mail.mail_side import MailSide, html_of, text_of

GATE = QuestionSpec(key="gate", kind=QuestionKind.APPROVAL, text="Deploy?", approvers=("carol",))


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
