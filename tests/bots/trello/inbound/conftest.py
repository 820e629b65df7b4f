"""Fixtures of the Trello bot with a real database and a fake Trello.

Boards are open, as most tests are not about who starts a job; see test_strangers.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from draftsman.deliveries.delivery import DeliveryStatus
from draftsman.deliveries.dispatcher import DeliveryDispatcher
from draftsman.deliveries.service.delivery_sender import DeliverySender
from draftsman.deliveries.target import parse
from draftsman.jobs.job import Job
from draftsman.people.actor import Actor
from draftsman.questions.question import Question, QuestionStatus
from draftsman.questions.question_spec import QuestionSpec
from draftsman.runtime import Runtime
from draftsman.settings import Settings
from draftsman.settings.secret import SecretSettings
from draftsman_bots.process.http import HttpServer, bind
from draftsman_bots.trello.boards.poller import Poller
from draftsman_bots.trello.context import BotContext
from draftsman_bots.trello.credentials import Credentials
from draftsman_bots.trello.deliveries.channel import TrelloChannel
from draftsman_bots.trello.records.board import BoardConfig, LabelRule
from draftsman_bots.trello.records.service import boards_of
from draftsman_bots.trello.settings import BoardMembers, TrelloSettings
from draftsman_bots.trello.transport.client import connect
from draftsman_bots.trello.transport.http_app import application
from draftsman_testing.factories import QUESTION, Factory
from draftsman_testing.outbox import FAST, running
from draftsman_testing.people import People
from draftsman_testing.trello import FakeTrello
from draftsman_testing.waits import until

UNSET_SECRET = SecretSettings(env="NOWHERE")
LIVE = (DeliveryStatus.PENDING, DeliveryStatus.SENDING, DeliveryStatus.UNCONFIRMED)


class TrelloBotHarness:
    """A watched board with helpers for tests."""

    def __init__(self, trello: FakeTrello, rt: Runtime, make: Factory, people: People) -> None:
        self.trello = trello
        self.rt = rt
        self.make = make
        self.people = people
        self.anna, self.ben, self.mallory = (
            trello.member(name) for name in ("Anna Berg", "Ben Ono", "Mallory")
        )
        self.board = trello.board("Work", [self.anna, self.ben, self.mallory])
        self.todo = trello.list(self.board, "To do")
        self.ice = trello.list(self.board, "Ice")
        self.label = trello.label(self.board, "draftsman")
        self.queued = trello.label(self.board, "draftsman: queued", "blue")
        settings = TrelloSettings(
            key=UNSET_SECRET,
            token=UNSET_SECRET,
            api_url=trello.api_url,
            members=BoardMembers.MAY_SUBMIT,
        )
        tokens = Credentials(trello.key, trello.token, trello.secret)
        self.context = BotContext(rt, settings, connect(settings, tokens, timeout=10))
        self.poller = Poller(self.context, 15.0)
        self._server: tuple[HttpServer, asyncio.Task[None]] | None = None

    def configure(self, **changes: Any) -> None:
        """Change the Trello settings."""
        settings = self.context.settings.model_copy(update=changes)
        object.__setattr__(self.context, "settings", settings)

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
        await boards_of(self.rt).save(config, self.people.olga)
        return config

    def card(self, name: str = "Fix the parser", **fields: Any) -> str:
        """Create a card."""
        return self.trello.card(self.board, fields.pop("place", self.todo), name, **fields)

    async def poll(self) -> None:
        """Poll every board once."""
        assert await self.poller.poll_once() == 0
        await self.context.background.idle()

    async def deliver_webhooks(self, **how: Any) -> list[Any]:
        """Deliver the pending webhooks and wait for the background tasks."""
        acks = await self.trello.deliver(**how)
        await self.context.background.idle()
        return acks

    async def serve_webhook(self) -> str:
        """Serve the webhook, registered with Trello; return its address."""
        served = bind(("127.0.0.1", 0), "trello")
        callback = f"http://127.0.0.1:{served.getsockname()[1]}/trello"
        self.configure(callback_url=callback)
        server = HttpServer(application(self.context, self.trello.secret), served)
        self._server = server, asyncio.create_task(server.run())
        for config in await boards_of(self.rt).all():
            await self.poller.check(config)
        return callback

    async def close(self) -> None:
        """Stop the server and the client."""
        if self._server is not None:
            self._server[0].stop.set()
            await self._server[1]
        await self.context.background.close(5)
        await self.context.trello.close()

    async def jobs(self) -> list[Job]:
        """Return all jobs, oldest first."""
        return [
            await self.rt.read_model.job(job.number)
            for job in reversed(await self.rt.read_model.jobs())
        ]

    async def keys(self) -> list[str]:
        """Return card, label and episode of every job, from its key."""
        return sorted(
            [job.idempotency_key.removeprefix("trello:lbl:") for job in await self.jobs()]
        )

    def key(self, card: str, episode: int = 1, label: str | None = None) -> str:
        """Return the entry of a card in `keys`."""
        return f"{card}:{label or self.label}:{episode}"

    def labels(self, card: str) -> list[str]:
        """Return the names of the labels on a card."""
        return sorted(self.trello.labels_of(card))

    async def send_messages(self) -> None:
        """Send all due messages to cards."""
        channel = TrelloChannel(
            self.context.trello, boards_of(self.rt), cards=boards_of(self.rt).cards
        )
        deliver = DeliverySender(
            db=self.rt.db, policy=self.rt.policy, settings=FAST, fallback=parse("log")
        )
        async with running(DeliveryDispatcher(deliver, [channel], FAST)):
            await until(self._all_sent, "the delivery of all messages")

    async def _all_sent(self) -> bool:
        query = "SELECT FROM draftsman.deliveries WHERE channel = %s AND status = ANY (%s) LIMIT 1"
        async with self.rt.db.connection() as conn:
            live = await conn.execute(query, ("trello", list(LIVE)))
            return live.rowcount == 0

    async def ask_question(
        self, card: str, ask: QuestionSpec = QUESTION, **fields: Any
    ) -> Question:
        """Create a job that asks on a card, and send the question."""
        work = await self.make.asked(ask, notify=(f"trello:{card}",), **fields)
        await self.send_messages()
        return await self.rt.questions.get(work.number, 1)

    async def answer_state(self, question: Question) -> tuple[QuestionStatus, str | None]:
        """Return the status of a question and its answer."""
        current = await self.rt.questions.get(question.job, question.ordinal)
        resolution = current.resolution or {}
        answer = resolution.get("value") or resolution.get("text") or resolution.get("outcome")
        return current.status, answer

    async def notices(self, card: str) -> list[str]:
        """Return the notices on a card after all deliveries."""
        await self.send_messages()
        deliveries = await self.rt.outbox.all(limit=500)
        refs = {delivery.external_ref for delivery in deliveries if delivery.kind == "notice"}
        return [comment.text for comment in self.trello.comments(card) if comment.id in refs]

    async def job_events(self, question: Question, kind: str) -> list[dict[str, Any]]:
        """Return the payloads of the job's events of a kind."""
        return [
            e.payload for e in await self.rt.read_model.job_events(question.job) if e.kind == kind
        ]


@pytest.fixture
def settings(settings: Settings, trello: FakeTrello) -> Settings:
    """Settings in which no person has a Trello id."""
    people = {
        name: person.model_copy(update={"trello": None}) for name, person in settings.people.items()
    }
    return settings.model_copy(update={"people": people})


@pytest.fixture
async def bench(
    trello: FakeTrello, rt: Runtime, make: Factory, people: People
) -> AsyncIterator[TrelloBotHarness]:
    """Give a watched board that was polled, with Anna and Ben linked to people."""
    harness = TrelloBotHarness(trello, rt, make, people)
    harness.context.me.id = trello.bot_member
    harness.context.me.username = trello.username(trello.bot_member)
    for member, actor in ((harness.anna, people.anna), (harness.ben, people.ben)):
        await join(rt, member, actor)
    await harness.watch()
    await harness.poll()
    yield harness
    await harness.close()


async def join(rt: Runtime, member: str, actor: Any) -> None:
    """Link a Trello member to a person."""
    await rt.people.link(await rt.people.create_link_code(Actor("trello", member, "x")), actor)
