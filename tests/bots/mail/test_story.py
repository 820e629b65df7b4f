"""The story of a job by mail: requested, asked, answered, denied, approved, and its result."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import pytest

from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman.schedules.template import define
from draftsman_bots.mail.service import MailService
from draftsman_testing.channel.conversation_contract import Talk
from draftsman_testing.factories import QUESTION
from tests.bots.mail.mail_side import CONFIRMED, MailSide, reply, text_of
from tests.bots.mail.test_contract import MailPlace
from tests.bots.story import ToldConversation

READERS = ("ben", "carol", "dave")
TARGETS = tuple(f"mail:{name}@example.org" for name in READERS)
TEMPLATE = {
    "type": "noop",
    "title": "{subject}",
    "notify": TARGETS,
    "parameters": {"type": "object", "properties": {"subject": {"type": "string"}}},
}


class MailTalk(MailPlace):
    """The mailboxes of people, who reply to their newest mail with an address for replies."""

    accounts: Mapping[str, str] = {
        name: f"{name}@example.org" for name in ("anna", "mallory", *READERS)
    }
    targets = TARGETS
    takes_requests = True
    anyone_requests = True  # of the known people: a stranger gets no reply
    reports_changes = False
    invites = "to answer, reply"

    def __init__(self, side: MailSide, bot: MailService) -> None:
        super().__init__(side, bot)
        self._bot = bot
        self._side = side
        self._raw: dict[str, bytes] = {}

    @asynccontextmanager
    async def running(self, rt: Runtime) -> AsyncIterator[None]:
        """Run the bot."""
        running = asyncio.create_task(self._bot.run())
        yield
        self._bot.stop.set()
        await running

    async def request(self, person: str, text: str) -> None:
        """Write to the address of the template."""
        fields = (CONFIRMED, f"From: {self.accounts[person]}", "To: draftsman+bug@example.org")
        head = "\r\n".join((*fields, f"Subject: {text}", "Message-ID: <request@example.org>"))
        self._side.imap.deliver(f"{head}\r\n\r\n".encode())

    async def say(self, person: str, text: str) -> str:
        """Reply to the newest mail."""
        reader = self.accounts["ben" if person == "mallory" else person]
        mails = [mail for mail in self._side.sent if mail["To"] == reader]
        asked = [mail for mail in mails if "Reply-To" in mail][-1]
        key = f"<{len(self._raw)}@mail.example.org>"
        at = f"Date: Mon, 30 Nov 2026 09:00:{len(self._raw):02} +0000"
        self._raw[key] = reply(asked, text, at, sender=self.accounts[person], id=key)
        self._side.imap.deliver(self._raw[key])
        return key

    async def edit(self, key: str, text: str) -> None:
        """Change nothing: a mail cannot be edited."""

    async def delete(self, key: str) -> None:
        """Change nothing: a mail cannot be taken back."""

    async def repeat(self, key: str) -> None:
        """Deliver a mail again."""
        self._side.imap.deliver(self._raw[key])

    def told(self) -> Sequence[str]:
        """Return the texts of all mails."""
        return [text_of(mail) for mail in self._side.sent]


class TestMail(ToldConversation):
    @pytest.fixture
    async def place(self, rt: Runtime, owner: Actor, side: MailSide, bot: MailService) -> MailTalk:
        await rt.templates.add("bug", define(TEMPLATE), owner)
        return MailTalk(side, bot)

    async def test_an_account_of_nobody_answers_nothing(self, talk: Talk) -> None:
        """A stranger gets no reply, not even with the address of a person."""
        question = await talk.asked()
        await talk.place.say("mallory", "red")
        await talk.place.say("ben", "blue")
        assert await talk.closed(question) == ("blue", ["ben"])
        assert not [text for text in talk.place.told() if "mallory" in text]

    async def test_a_text_that_may_answer_two_questions_answers_none(self, talk: Talk) -> None:
        """A reply is for the question of its mail."""
        other = QUESTION.model_copy(update={"key": "other", "text": "Which other?"})
        work = await talk.make.asked_at_once(QUESTION, other, notify=talk.place.targets)
        await talk.delivered(work.number)
        await talk.place.say("ben", "red")
        await talk.hears(f"{work.name}/2 was answered by ben: red")
        questions, _ = await talk.rt.questions.of_job(work.number)
        assert [question.status for question in questions] == ["open", "answered"]
