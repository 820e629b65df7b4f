"""Fixtures: the bot with its real listeners and database in a fake Slack."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from draftsman.deliveries.dispatcher import DeliveryDispatcher
from draftsman.deliveries.service.delivery_sender import DeliverySender
from draftsman.jobs.job import Source
from draftsman.people.actor import Actor
from draftsman.questions.question import Question, QuestionStatus
from draftsman.questions.question_spec import QuestionSpec
from draftsman.runtime import Runtime
from draftsman.settings import Settings
from draftsman_bots.slack.context import BotContext
from draftsman_bots.slack.deliveries.channel import SlackChannel
from draftsman_bots.slack.deliveries.render import controls
from draftsman_bots.slack.ephemeral import notify_actor
from draftsman_bots.slack.health import BotHealth
from draftsman_bots.slack.identity import Identity
from draftsman_bots.slack.listeners import events, register
from draftsman_bots.slack.people import access
from draftsman_bots.slack.schedules import schedules
from draftsman_bots.slack.settings import SlackSettings
from draftsman_bots.slack.transport.dispatcher import SlackDispatcher, build
from draftsman_testing.factories import QUESTION, Factory
from draftsman_testing.outbox import FAST, running
from draftsman_testing.slack import Ack, FakeSlack
from draftsman_testing.slack.event_delivery import Delivery, EventDelivery
from draftsman_testing.waits import until

ANNA = "UANNA"
BEN = "UBEN"
CAROL = "UCAROL"
DAVE = "UDAVE"
OLGA = "UOLGA"
MALLORY = "UMALLORY"
"""Asks; answers; approve, both; operates, with no Slack id in the configuration; nobody."""
MENTIONS = {"app_home_opened", "app_mention", "app_uninstalled", "message.im", "tokens_revoked"}
"""The events of the minimal manifest."""


Seen = Callable[[str, str | None, str], Awaitable[dict[str, Any]]]
"""Waits for a message with a text in a channel or thread, and returns it."""


class InProcessDelivery(EventDelivery):
    """Passes payloads to the bot as its sockets would, without sockets."""

    bot: SlackDispatcher

    async def _by_socket(self, delivery: Delivery) -> Ack:
        arrived = asyncio.get_running_loop().time()
        reply = await self.bot.answer(delivery.payload, arrived=arrived, retry=delivery.attempt)
        return Ack(reply.status, reply.body or None) if reply.final else Ack()


@dataclass
class SlackBotHarness:
    """A workspace with the bot, and helpers for its tests."""

    slack: FakeSlack
    rt: Runtime
    ctx: BotContext
    make: Factory
    general: str

    def limit(self, **changes: Any) -> None:
        """Change the Slack settings."""
        settings = self.ctx.settings.model_copy(update=changes)
        object.__setattr__(self.ctx, "settings", settings)

    def stranger(self, id: str) -> str:
        """Add a member of another workspace to the channel; return the id."""
        self.slack.user(id.removeprefix("U").lower(), id=id, team="T0ELSEWHERE")
        self.slack.world.channels[self.general].members.add(id)
        return id

    async def linked(self, name: str) -> str:
        """Add a member whose account is linked with a code; return the id."""
        user = self.slack.user(name)
        self.slack.world.channels[self.general].members.add(user)
        ack = await self.slack.command(user, self.general, "link")
        code = ack.body["text"].split("people link ")[1].split("`")[0]
        await self.rt.people.link(code, Actor(Source.CLI, name, name.title()))
        return user

    async def jobs(self) -> list[str]:
        """Return the text of each job, oldest first."""
        result = await self.rt.read_model.jobs()
        full = [await self.rt.read_model.job(item.number) for item in reversed(result)]
        return [(job.request and job.request.text) or "" for job in full]

    async def ephemeral_texts(self, user: str, channel: str | None = None) -> list[str]:
        """Return a user's ephemeral messages in a channel, once the bot is idle."""
        await self.ctx.background.idle()
        return [
            ephemeral["text"] for ephemeral in self.slack.ephemerals(channel or self.general, user)
        ]

    async def asked(self, spec: QuestionSpec = QUESTION, **fields: Any) -> tuple[Question, str]:
        """Ask a question in a job's thread; return it, and the ts of the thread."""
        root = fields.pop("root", None) or (await self.post("a request"))["ts"]
        target = f"slack:{self.general}/{root}"
        work = await self.make.asked(spec, **{"notify": (target,)} | fields)
        return await self.rt.questions.get(work.number, 1), root

    async def shown(
        self, spec: QuestionSpec = QUESTION, **fields: Any
    ) -> tuple[Question, str, str]:
        """Ask a question and show it; return it, its thread and its message's ts."""
        question, root = await self.asked(spec, **fields)
        blocks = controls(question)
        message = await self.post(question.text, thread_ts=root, blocks=blocks)
        return question, root, message["ts"]

    async def post(self, text: str, **more: Any) -> dict[str, Any]:
        """Post in the general channel as the bot."""
        message = await self.ctx.client.chat_postMessage(channel=self.general, text=text, **more)
        return {"ts": message["ts"]}

    async def question(self, question: Question) -> Question:
        """Return the current state of the question."""
        return await self.rt.questions.get(question.job, question.ordinal)

    async def is_open(self, question: Question) -> bool:
        return (await self.question(question)).status is QuestionStatus.OPEN

    async def answer(self, question: Question) -> tuple[str | None, tuple[str, ...]]:
        """Return the answer and its author."""
        ended = (await self.question(question)).resolution or {}
        return ended.get("value") or ended.get("text") or ended["outcome"], tuple(ended["by"])

    async def job_events(self, question: Question, kind: str) -> list[dict[str, Any]]:
        """Return the job's events of one kind."""
        return [
            e.payload for e in await self.rt.read_model.job_events(question.job) if e.kind == kind
        ]


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Give the people of the tests Slack ids."""
    people = {
        name: person.model_copy(
            update={channel: id.replace("-", "") for channel, (id,) in person.accounts.items()}
        )
        for name, person in settings.people.items()
    }
    return settings.model_copy(update={"people": people})


@pytest.fixture
async def bench(
    rt: Runtime, make: Factory, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[SlackBotHarness]:
    """Provide the bot in its workspace, with linked users and an unknown user.

    It waits for the fake on a busy machine, where it would do without a call after a second.
    """
    monkeypatch.setattr(access, "TIMEOUT", 60)
    monkeypatch.setattr(schedules, "ZONE_TIMEOUT", 60)
    async with FakeSlack() as slack:
        courier = InProcessDelivery(slack.world, slack.sockets)
        slack.event_delivery = courier
        everybody = [ANNA, BEN, CAROL, DAVE, OLGA, MALLORY]
        for id in everybody:
            slack.user(id.removeprefix("U").lower(), id=id)
        client = AsyncWebClient(slack.bot_token, base_url=slack.api_url, retry_handlers=[])
        values = {"bot_token": {"env": "BOT_TOKEN"}, "app_token": {"env": "APP_TOKEN"}}
        settings = SlackSettings.model_validate(values)
        identity = Identity()
        ctx = BotContext(rt, settings, client, identity)
        result = {"team_id": slack.team, "user_id": slack.bot_user, "bot_id": slack.world.bot}
        identity.update(result)
        app = build(client, identity, partial(register, ctx=ctx))
        courier.bot = SlackDispatcher(app, events(ctx), BotHealth())
        courier.bot.send_text = partial(notify_actor, ctx)
        yield SlackBotHarness(slack, rt, ctx, make, slack.channel("general", everybody))
        await ctx.background.idle()
        await courier.bot.close()
        assert slack.complaints == []


@pytest.fixture
async def seen(bench: SlackBotHarness) -> AsyncIterator[Seen]:
    """Run the outbox; provide a function that waits for a message with a text and returns it."""
    deliver = DeliverySender(db=bench.rt.db, policy=bench.rt.policy, settings=FAST, fallback=None)
    channel = SlackChannel(bench.ctx.client, timeout=5)

    async def find(channel: str, thread: str | None, text: str) -> dict[str, Any]:
        def there() -> list[dict[str, Any]]:
            return [
                message for message in bench.slack.messages(channel, thread) if text in str(message)
            ]

        async def look() -> bool:
            if not there():
                return False
            refs = [item.external_ref or "" for item in await bench.rt.outbox.all()]
            return any(ref.startswith(f"{channel}/{there()[-1]['ts']}") for ref in refs)

        await until(look, f"{text!r} in {channel}, and known to be there")
        return there()[-1]

    async with running(DeliveryDispatcher(deliver, [channel], FAST)):
        yield find
