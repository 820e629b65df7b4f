"""A job with a Slack thread and a Trello card, answered through five paths.

Buttons and modals that were open before the first answer can still be submitted after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import StrEnum
from typing import Final

from draftsman.events.event import Event
from draftsman.questions.question import QuestionKind
from draftsman.questions.question_spec import QuestionSpec
from draftsman.runtime import Runtime
from draftsman.settings.secret import SecretSettings
from draftsman_bots.slack import ids
from draftsman_bots.slack.home import modal_views
from draftsman_bots.trello.credentials import Credentials
from draftsman_bots.trello.records.board import BoardConfig
from draftsman_bots.trello.records.service import boards_of
from draftsman_bots.trello.service import Service
from draftsman_bots.trello.settings import TrelloSettings
from draftsman_testing.factories import Factory
from draftsman_testing.outbox import LIVE, deliveries_of
from draftsman_testing.slack import FakeSlack
from draftsman_testing.trello import FakeTrello
from draftsman_testing.waits import until
from tests.bots.slack.channel_fixtures import Json, actionable, shown
from tests.bots.slack.transport import service_harness
from tests.tui.cli.cli_runner import Cli

HOUR: Final = 3600.0
NOT_ACCEPTED: Final = "Your answer was not accepted"
DENIAL_REASON: Final = "not on a Friday"


class AnswerPath(StrEnum):
    """Paths of an answer; the value is the person's name."""

    BUTTON = "bea"
    THREAD = "tia"
    MODAL = "mona"
    CARD = "cara"
    SHELL = "cleo"


Reply = str | bool
"""A choice, or the decision of an approval."""


class CrossChannelJob:
    """Both chats with their bots, and a command line."""

    def __init__(
        self, rt: Runtime, make: Factory, cli: Cli, slack: FakeSlack, trello: FakeTrello
    ) -> None:
        self.rt = rt
        self.make = make
        self.cli = cli
        self.slack = slack
        self.trello = trello
        self.room = slack.channel("ops", [account(path) for path in AnswerPath])
        self.board = trello.board("Work", [member_of(trello, path) for path in AnswerPath])
        self.card = trello.card(self.board, trello.list(self.board, "To do"), "Fix the parser")
        self.bots: Service

    async def ask(self, spec: QuestionSpec) -> None:
        """Ask in both channels, and open the controls for everyone."""
        notify = (f"slack:{self.room}", f"trello:{self.card}")
        self.work = await self.make.asked(spec, notify=notify)
        self.gate = spec.kind is QuestionKind.APPROVAL
        await self.quiet()
        (status,) = self.slack.messages(self.room)
        (message,) = self.slack.messages(self.room, status["ts"])
        self._thread = status["ts"]
        self._ts = message["ts"]
        bea = account(AnswerPath.BUTTON)
        mona = account(AnswerPath.MODAL)
        action = ids.APPROVE if self.gate else ids.answer_action(2)
        self._pressed = self.slack.chosen(bea, self.room, self._ts, action)
        await self.slack.press(mona, self.room, self._ts, ids.DENY if self.gate else ids.FREE)
        await self.slack.until(lambda: self.slack.views(mona), "the window")

    async def say(self, path: AnswerPath, reply: Reply) -> str:
        """Answer through a path; return the error output of the command line."""
        user = account(path)
        name = f"{self.work.name}/1"
        if path is AnswerPath.BUTTON:
            assert reply in (True, "blue"), "the button that was on the screen"
            await self.slack.interactive(self._pressed)
        elif path is AnswerPath.THREAD:
            await self.slack.say(user, self.room, reply_text(reply), self._thread)
        elif path is AnswerPath.MODAL:
            (view,) = self.slack.views(user)
            values = {modal_views.REASON: DENIAL_REASON} if self.gate else {modal_views.TEXT: reply}
            await self.slack.submit(user, view["id"], values)
        elif path is AnswerPath.CARD:
            self.trello.comment(self.card, member_of(self.trello, path), reply_text(reply))
            await self.look()
        elif reply is False:
            return (await self.cli("deny", name, "--reason", DENIAL_REASON)).err
        else:
            verb = ["approve", name] if reply is True else ["answer", name, reply]
            return (await self.cli(*verb)).err
        return ""

    async def late(self, path: AnswerPath) -> str:
        """Answer after the question is closed; return the reason of the rejection."""
        reply: Reply = (path is not AnswerPath.MODAL) if self.gate else "blue"
        ack = await self.say(path, reply)
        if path in (AnswerPath.BUTTON, AnswerPath.THREAD):
            refusals = await self.slack.until(
                lambda: self.slack.ephemerals(self.room, account(path)), f"a word for {path}"
            )
            (result,) = refusals
            return str(result["text"])
        if path is AnswerPath.MODAL:
            (view,) = self.slack.views(account(path))
            return str(view["errors"])
        if path is AnswerPath.CARD:
            await self.quiet()
            [ack] = [text for text in self.comments if NOT_ACCEPTED in text]
        return ack

    async def look(self) -> None:
        """Poll the board once."""
        assert await self.bots.poller.poll_once() == 0

    async def quiet(self) -> None:
        """Wait for all deliveries to both channels."""

        async def look() -> bool:
            result = await deliveries_of(self.rt, self.work.number)
            return not any(item.status in LIVE for item in result)

        await until(look, "what is to be said")

    @property
    def comments(self) -> list[str]:
        """The bot's comments on the card."""
        bot = self.trello.bot_member
        return [
            comment.text for comment in self.trello.comments(self.card) if comment.member == bot
        ]

    @property
    def question(self) -> Json:
        """The question's message in Slack."""
        return self.slack.world.channels[self.room].messages[self._ts]

    async def copies(self) -> list[str]:
        """Return the texts of the question's copies, which have no controls any more."""
        await self.quiet()
        assert actionable(self.question) == []
        comment = self.comments[1]
        assert "To answer, comment" not in comment
        return [shown(self.question), comment]

    async def shell(self) -> str:
        """Return the question as the command line shows it."""
        result = (await self.cli("show", self.work.name)).out
        return result[result.index("Questions") : result.index("Deliveries")]

    async def job_events(self) -> list[Event]:
        """Return the events of the job."""
        return list(await self.rt.read_model.job_events(self.work.number))


def account(path: AnswerPath) -> str:
    """Return a person's Slack id."""
    return f"U{path.upper()}"


def member_of(trello: FakeTrello, path: AnswerPath) -> str:
    """Return a person's Trello id."""
    return next(id for id, member in trello.world.members.items() if member.username == path)


def reply_text(reply: Reply) -> str:
    """Return a reply as text."""
    return reply if isinstance(reply, str) else ("approve" if reply else f"deny {DENIAL_REASON}")


@asynccontextmanager
async def street(
    rt: Runtime, make: Factory, cli: Cli, slack: FakeSlack, trello: FakeTrello
) -> AsyncIterator[CrossChannelJob]:
    """Serve both chats; the board is polled on request."""
    job = CrossChannelJob(rt, make, cli, slack, trello)
    await boards_of(rt).save(BoardConfig(board_id=job.board, name="Work"), make.owner)
    unused_secret = SecretSettings(env="NOWHERE")
    values = TrelloSettings(
        key=unused_secret, token=unused_secret, api_url=trello.api_url, poll=HOUR
    )
    job.bots = bots = Service(rt, values, Credentials(trello.key, trello.token, trello.secret))
    running = asyncio.create_task(bots.run())

    async def begun() -> bool:
        return await boards_of(rt).cursor(job.board) is not None

    try:
        async with service_harness.serving(rt, slack):
            await until(begun, "the first look at the board")
            yield job
    finally:
        bots.stop.set()
        await running
