"""The bot's transport in this process, with listeners of the tests, against the fake Slack."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from slack_sdk.web.async_client import AsyncWebClient

from draftsman.database.database import Database
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.people.actor import Actor
from draftsman.runtime import ENUMS, Runtime, wire
from draftsman.settings import Settings
from draftsman_bots.process.http import HttpServer, bind
from draftsman_bots.process.runner import with_statement_timeout
from draftsman_bots.slack import ids
from draftsman_bots.slack.credentials import Credentials
from draftsman_bots.slack.health import BotHealth
from draftsman_bots.slack.identity import Identity
from draftsman_bots.slack.plugin import SLACK
from draftsman_bots.slack.service import Service
from draftsman_bots.slack.settings import SlackSettings
from draftsman_bots.slack.transport.dispatcher import EventListener, SlackDispatcher, build
from draftsman_bots.slack.transport.http_app import EVENTS_PATH, application
from draftsman_bots.slack.transport.socket_mode import SocketModeClient
from draftsman_testing.slack import FakeSlack
from draftsman_testing.waits import until

if TYPE_CHECKING:
    from slack_bolt.async_app import AsyncApp

ANNA = "U-ANNA"


@dataclass
class RecordingListeners:
    """Listeners that submit jobs, and fail on request."""

    rt: Runtime
    stuck: asyncio.Event = field(default_factory=asyncio.Event)
    """Releases a listener that ignores its cancellation."""
    began: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once such a listener waits."""

    def register(self, app: AsyncApp) -> None:
        app.command(re.compile("/stuck"))(self.hang)
        app.command(re.compile("/waits"))(self.wait)
        app.command(re.compile("/fails"))(self.fail)
        app.command(re.compile(".*"))(self.command)
        app.view(re.compile(".*"))(self.view)

    @property
    def events(self) -> dict[str, EventListener]:
        """The listeners of events, by type."""
        return {
            "message": self.message,
            "app_mention": self.message,
            "reaction_added": lambda _: self.fail(),
        }

    async def message(self, body: dict[str, Any]) -> None:
        event = body["event"]
        if not event.get("bot_id"):
            key = ids.message_key("T1", event["channel"], event["ts"])
            await self.submit(key, event["text"], event["user"])

    async def command(self, body: dict[str, Any], ack: Any) -> None:
        submitted = await self.submit(
            ids.trigger_key(body["trigger_id"]), body["text"], body["user_id"]
        )
        await ack(response_type="ephemeral", text=submitted)

    async def view(self, body: dict[str, Any], ack: Any) -> None:
        await self.submit(f"slack:view:{body['view']['id']}", "view", body["user"]["id"])
        await ack()

    async def fail(self) -> None:
        raise RuntimeError("the xoxb-123456789012-secret of a test")

    async def wait(self) -> None:
        await self.stuck.wait()

    async def hang(self, ack: Any) -> None:
        self.began.set()
        while not self.stuck.is_set():
            try:
                await self.stuck.wait()
            except asyncio.CancelledError:
                continue
        await ack()

    async def submit(self, key: str, text: str, user: str) -> str:
        actor = Actor("slack", user, user)
        submission = invocation(type="echo", key=key, text=text, notify=("slack:C1",))
        return (await self.rt.submissions.submit(submission, actor)).name


@dataclass
class ServiceHarness:
    """The running bot and its fake Slack."""

    slack: FakeSlack
    bot: SlackDispatcher
    health: BotHealth
    listeners: RecordingListeners
    general: str
    url: str = ""
    sockets: SocketModeClient | None = None

    def outcomes(self) -> dict[str, float]:
        """Return the number of requests of each outcome."""
        result: dict[str, float] = {}
        for metric in self.health.registry.collect():
            for sample in metric.samples:
                if sample.name == "draftsman_slack_requests_total":
                    outcome = sample.labels["outcome"]
                    result[outcome] = result.get(outcome, 0) + sample.value
        return result

    async def problem(self, part: str) -> None:
        """Wait until health has a problem with this text."""

        async def look() -> bool:
            return part in "\n".join(self.health.as_json()["problems"].values())

        await until(look, f"the problem {part!r}")

    async def wait_until_ready(self) -> None:
        """Wait until health has no problem."""

        async def look() -> bool:
            return self.health.ready

        await until(look, "health")


@asynccontextmanager
async def patient_runtime(settings: Settings, url: str) -> AsyncIterator[Runtime]:
    """Provide the runtime with the timeouts of the bot process."""
    settings = with_statement_timeout(settings, [SLACK])
    db = Database(url, settings.database, enums=ENUMS)
    await db.open()
    yield wire(settings, db, False)
    await db.close()


@asynccontextmanager
async def made(rt: Runtime) -> AsyncIterator[ServiceHarness]:
    """Provide a bot without a transport."""
    async with FakeSlack() as slack:
        slack.commands |= {"/stuck", "/waits", "/fails"}
        slack.user("anna", id=ANNA)
        slack.subscribed.add("reaction_added")
        general = slack.channel("general", [ANNA])
        client = AsyncWebClient(slack.bot_token, base_url=slack.api_url, retry_handlers=[])
        identity = Identity()
        health = BotHealth()
        listeners = RecordingListeners(rt)
        identity.update({"team_id": slack.team, "user_id": slack.bot_user, "bot_id": "B1"})
        app = build(client, identity, listeners.register)
        bot = SlackDispatcher(app, listeners.events, health)
        yield ServiceHarness(slack, bot, health, listeners, general)
        listeners.stuck.set()
        await bot.close()


@asynccontextmanager
async def over_http(rt: Runtime) -> AsyncIterator[ServiceHarness]:
    """Provide a bot over HTTP."""
    async with made(rt) as rig:
        served = bind(("127.0.0.1", 0), "slack")
        server = HttpServer(application(rig.bot, rig.slack.signing_secret, rig.health), served)
        serving = asyncio.create_task(server.run())
        rig.url = f"http://127.0.0.1:{served.getsockname()[1]}"
        rig.slack.request_url = rig.url + EVENTS_PATH
        yield rig
        await rig.slack.event_delivery.close()
        server.stop.set()
        await serving


@asynccontextmanager
async def over_sockets(rt: Runtime, **times: float) -> AsyncIterator[ServiceHarness]:
    """Provide a bot with its two connections."""
    async with made(rt) as rig:
        client = AsyncWebClient(base_url=rig.slack.api_url, retry_handlers=[])
        rig.sockets = SocketModeClient(rig.bot, client, rig.slack.app_token, rig.health, **times)
        running = asyncio.create_task(rig.sockets.run())
        await rig.wait_until_ready()
        await rig.slack.sockets.wait(2)
        yield rig
        rig.sockets.stop.set()
        await running


@asynccontextmanager
async def serving(rt: Runtime, slack: FakeSlack) -> AsyncIterator[Service]:
    """Run the whole bot process, over Socket Mode."""
    values = {"bot_token": {"env": "BOT"}, "app_token": {"env": "APP"}, "api_url": slack.api_url}
    credentials = Credentials(slack.bot_token, slack.app_token)
    service = Service(rt, SlackSettings.model_validate(values), credentials)
    running = asyncio.create_task(service.run())
    try:
        await slack.sockets.wait(2)

        async def ready() -> bool:
            return service.health.ready

        await until(ready, "readiness")
        yield service
    finally:
        service.stop.set()
        await running
    await slack.sockets.wait(0)
