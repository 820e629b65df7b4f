"""Fixtures of the Trello bot with a real database and a fake Trello."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from draftsman.domain.job import Job, Source
from draftsman.domain.messages.delivery import ChannelName, DeliveryStatus
from draftsman.domain.messages.target import parse
from draftsman.domain.people.actor import Actor
from draftsman.domain.question import Question, QuestionSpec, QuestionStatus
from draftsman.domain.trello.board import BoardConfig, LabelRule
from draftsman.loops.delivery_dispatcher import DeliveryDispatcher
from draftsman.runtime import Runtime
from draftsman.services.deliveries.delivery_sender import DeliverySender
from draftsman.settings import SecretSettings, Settings, TrelloSettings
from draftsman_bots.http import Server, bind
from draftsman_bots.trello.context import BotContext
from draftsman_bots.trello.credentials import Credentials
from draftsman_bots.trello.listeners.http_app import application
from draftsman_bots.trello.listeners.poller import Poller
from draftsman_bots.trello.outbound.channel import TrelloChannel
from draftsman_bots.trello.transport.client import connect
from tests.core.outbox.chat_harness import FAST, running
from tests.factories import QUESTION, Factory
from tests.support.people import People
from tests.support.trello import FakeTrello
from tests.support.waits import until

UNSET_SECRET = SecretSettings(env="NOWHERE")
LIVE = (DeliveryStatus.PENDING, DeliveryStatus.SENDING, DeliveryStatus.UNCONFIRMED)


class TrelloBotHarness:
    """A watched board with helpers for tests."""

    def __init__(self, trello: FakeTrello, rt: Runtime, make: Factory, people: People) -> None:
        self.trello, self.rt, self.make, self.people = trello, rt, make, people
        self.anna, self.ben, self.mallory = (
            trello.member(name) for name in ("Anna Berg", "Ben Ono", "Mallory")
        )
        self.board = trello.board("Work", [self.anna, self.ben, self.mallory])
        self.todo, self.ice = trello.list(self.board, "To do"), trello.list(self.board, "Ice")
        self.label = trello.label(self.board, "draftsman")
        self.queued = trello.label(self.board, "draftsman: queued", "blue")
        settings = TrelloSettings(key=UNSET_SECRET, token=UNSET_SECRET, api_url=trello.api_url)
        tokens = Credentials(trello.key, trello.token, trello.secret)
        self.desk = BotContext(rt, settings, connect(settings, tokens, timeout=10))
        self.poller = Poller(self.desk, 15.0)
        self._server: tuple[Server, asyncio.Task[None]] | None = None

    def configure(self, **changes: Any) -> None:
        """Change what is configured of Trello."""
        settings = self.desk.settings.model_copy(update=changes)
        object.__setattr__(self.desk, "settings", settings)

    async def watch(self, **changes: Any) -> BoardConfig:
        """Watch the board, or change how."""
        fields = {
            "board_id": self.board,
            "name": "Work",
            "labels": {self.label: LabelRule(name="draftsman")},
            "queued_label_id": self.queued,
            "ignored_list_ids": (self.ice,),
        }
        config = BoardConfig(**fields | changes)
        await self.rt.boards.save(config, self.people.olga)
        return config

    def card(self, name: str = "Fix the parser", **fields: Any) -> str:
        """Make a card."""
        return self.trello.card(self.board, fields.pop("place", self.todo), name, **fields)

    async def poll(self) -> None:
        """Poll every board once."""
        assert await self.poller.poll_once() == 0
        await self.desk.background.idle()

    async def hear(self, **how: Any) -> list[Any]:
        """Deliver what happened to the webhook, and let what begins with it end."""
        acks = await self.trello.deliver(**how)
        await self.desk.background.idle()
        return acks

    async def listen(self) -> str:
        """Serve the webhook, registered with Trello; return its address."""
        served = bind(("127.0.0.1", 0), "trello")
        callback = f"http://127.0.0.1:{served.getsockname()[1]}/trello"
        self.configure(callback_url=callback)
        server = Server(application(self.desk, self.trello.secret))
        self._server = server, asyncio.create_task(server.serve([served]))
        for config in await self.rt.boards.all():
            await self.poller.check(config)
        return callback

    async def close(self) -> None:
        """End all."""
        if self._server is not None:
            self._server[0].end()
            await self._server[1]
        await self.desk.background.close(5)
        await self.desk.trello.close()

    async def jobs(self) -> list[Job]:
        """Return every job, the first one first."""
        return [
            await self.rt.read_model.job(one.number)
            for one in reversed(await self.rt.read_model.jobs())
        ]

    async def keys(self) -> list[str]:
        """Return card, label and episode of every job, as its key says."""
        return sorted(
            [job.idempotency_key.removeprefix("trello:lbl:") for job in await self.jobs()]
        )

    def key(self, card: str, episode: int = 1, label: str | None = None) -> str:
        """Return what `keys` has of a card."""
        return f"{card}:{label or self.label}:{episode}"

    def labels(self, card: str) -> list[str]:
        """Return the names of the labels on a card."""
        return sorted(self.trello.labels_of(card))

    async def say(self) -> None:
        """Send all that is to be said on cards."""
        channel = TrelloChannel(self.desk.trello, self.rt.boards)
        deliver = DeliverySender(self.rt.db, FAST, parse("log"), self.rt.policy)
        async with running(DeliveryDispatcher(deliver, [channel], FAST)):
            await until(self._all_said, "what is to be said")

    async def _all_said(self) -> bool:
        query = "SELECT FROM draftsman.deliveries WHERE channel = %s AND status = ANY (%s) LIMIT 1"
        async with self.rt.db.connection() as conn:
            live = await conn.execute(query, (ChannelName.TRELLO, list(LIVE)))
            return live.rowcount == 0

    async def asked(self, card: str, ask: QuestionSpec = QUESTION, **fields: Any) -> Question:
        """Let a job ask on a card, and show it there."""
        work = await self.make.asked(ask, notify=(f"trello:{card}",), **fields)
        await self.say()
        return await self.rt.questions.get(work.number, 1)

    async def now(self, question: Question) -> tuple[QuestionStatus, str | None]:
        """Return whether a question is open, and how it was answered."""
        found = await self.rt.questions.get(question.job, question.ordinal)
        ended = found.resolution or {}
        return found.status, ended.get("value") or ended.get("text") or ended.get("outcome")

    async def told(self, card: str) -> list[str]:
        """Return the notices on a card after all deliveries."""
        await self.say()
        found = [one for one in await self.rt.outbox.all(limit=500) if one.kind == "notice"]
        refs = {one.external_ref for one in found}
        return [one.text for one in self.trello.comments(card) if one.id in refs]

    async def job_events(self, question: Question, kind: str) -> list[dict[str, Any]]:
        """Return what the trail of its job says of one kind."""
        return [
            e.payload for e in await self.rt.read_model.job_events(question.job) if e.kind == kind
        ]


@pytest.fixture
def settings(settings: Settings, trello: FakeTrello) -> Settings:
    """Nobody has a Trello id before the test says so."""
    people = {
        name: person.model_copy(update={"trello": None}) for name, person in settings.people.items()
    }
    return settings.model_copy(update={"people": people})


@pytest.fixture
async def bench(
    trello: FakeTrello, rt: Runtime, make: Factory, people: People
) -> AsyncIterator[TrelloBotHarness]:
    """Give a board that is watched and was looked at, with Anna and Ben, who are known."""
    one = TrelloBotHarness(trello, rt, make, people)
    one.desk.me.id, one.desk.me.username = trello.bot_member, trello.username(trello.bot_member)
    for member, actor in ((one.anna, people.anna), (one.ben, people.ben)):
        await join(rt, member, actor)
    await one.watch()
    await one.poll()
    yield one
    await one.close()


async def join(rt: Runtime, member: str, actor: Any) -> None:
    """Join a member of Trello to a person."""
    await rt.people.link(await rt.people.create_link_code(Actor(Source.TRELLO, member, "x")), actor)
