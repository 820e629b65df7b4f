"""The fake Slack: a real HTTP and WebSocket server on a free port of 127.0.0.1."""

from __future__ import annotations

import itertools
from types import TracebackType
from typing import Any, Final, Self

from aiohttp import web

from draftsman_testing.fake.server import FakeServer
from draftsman_testing.slack.api import Api
from draftsman_testing.slack.event_delivery import EventDelivery
from draftsman_testing.slack.faults import Faults
from draftsman_testing.slack.interactions import Interactions
from draftsman_testing.slack.message_store import in_channel, in_thread, is_streaming
from draftsman_testing.slack.methods.files import share
from draftsman_testing.slack.sockets import Sockets
from draftsman_testing.slack.world import STATUS_LIFE, Call, Json, World

MAX_BODY: Final = 2**26


class FakeSlack(Interactions, FakeServer[Call]):
    """A workspace with an app.

    The app uses `api_url` and the tokens; people's interactions are methods; the rest is for
    inspection. `first_id` is the number of its first id: workspaces that an app serves one after
    the other have different ids. `world` is the state of an earlier server, which goes on with it.
    """

    def __init__(self, first_id: int = 1, world: World | None = None) -> None:
        world = world or World(_ids=itertools.count(first_id))
        self.sockets = Sockets(world)
        Interactions.__init__(self, world, EventDelivery(world, self.sockets))
        FakeServer.__init__(self, world)
        self.faults = Faults()
        self.api = Api(world, self.faults)

    async def __aenter__(self) -> Self:
        await self.start([*self.api.routes(), web.get("/link", self.sockets.serve)], MAX_BODY)
        self.user("slackbot", id="USLACKBOT")
        self.user("draftsman", id=self.bot_user, is_bot=True)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop listening and disconnect."""
        self.sockets.drop()
        await self.event_delivery.close()
        await self.stop()

    @property
    def api_url(self) -> str:
        """The SDK's `base_url`."""
        return f"{self.world.base}/api/"

    @property
    def bot_token(self) -> str:
        """The token of the Web API."""
        return self.world.bot_token

    @property
    def app_token(self) -> str:
        """The token of Socket Mode."""
        return self.world.app_token

    @property
    def signing_secret(self) -> str:
        """The secret that signs HTTP deliveries."""
        return self.world.signing_secret

    @property
    def team(self) -> str:
        """The id of the workspace."""
        return self.world.team

    @property
    def bot_user(self) -> str:
        """The user id of the bot."""
        return self.world.bot_user

    @property
    def request_url(self) -> str | None:
        """The URL of deliveries in HTTP mode; None is Socket Mode."""
        return self.event_delivery.request_url

    @request_url.setter
    def request_url(self, url: str | None) -> None:
        """Deliver in HTTP mode, or in Socket Mode if None."""
        self.event_delivery.request_url = url

    @property
    def files(self) -> list[Json]:
        """The shared files: id, name, title, data, shared (channels)."""
        return [file for file in self.world.files.values() if file.get("shared") is not None]

    def user(
        self,
        name: str,
        *,
        id: str | None = None,
        team: str | None = None,
        enterprise: str | None = None,
        is_bot: bool = False,
        deleted: bool = False,
    ) -> str:
        """Add a person, optionally of another workspace or organization; return the id."""
        created = id or self.world.id("U")
        self.world.users[created] = {
            "id": created,
            "team_id": team or self.team,
            "enterprise_id": enterprise,
            "name": name,
            "real_name": name.title(),
            "deleted": deleted,
            "is_bot": is_bot,
            "is_restricted": False,
            "is_stranger": team is not None and team != self.team,
            "tz": "Europe/Vienna",
            "profile": {"display_name": name, "email": f"{name}@example.com"},
        }
        return created

    def channel(
        self,
        name: str,
        members: list[str] | None = None,
        *,
        private: bool = False,
        bot: bool = True,
        archived: bool = False,
        shared: bool = False,
    ) -> str:
        """Add a channel with these members and the bot; return its id."""
        user = {*(members or []), *([self.bot_user] if bot else [])}
        created = self.world.add_channel(name, "group" if private else "channel", user)
        created.archived = archived
        created.shared = shared
        return created.id

    def file(
        self, user: str, name: str, data: bytes, content_type: str = "text/plain", **about: Any
    ) -> Json:
        """Add the file of a person, with these fields of its object; return it for `say`."""
        return share(self.world, user, name, data, content_type, about)

    def direct(self, user: str) -> str:
        """Return the id of the bot's conversation with a person."""
        return self.world.direct(user).id

    def messages(self, channel: str, thread: str | None = None) -> list[Json]:
        """Return the messages of a channel, or the replies of a thread, oldest first.

        The tombstone of a deleted message is omitted.
        """
        place = self.world.channels[channel]
        result = in_channel(place) if thread is None else in_thread(place, thread)
        return [message for message in result if message.get("subtype") != "tombstone"]

    def ephemerals(self, channel: str, user: str) -> list[Json]:
        """Return a person's ephemeral messages in a channel, oldest first."""
        return self.world.ephemerals[channel, user]

    def views(self, user: str) -> list[Json]:
        """Return a person's open modals, the topmost last; `errors` is by block."""
        views = [self.world.views[stack] for stack in self.world.stacks[user]]
        return [view.content | {"errors": view.errors} for view in views]

    def home(self, user: str) -> Json | None:
        """Return a person's home tab."""
        result = self.world.homes.get(user)
        return result.content if result else None

    def status(self, channel: str, thread: str) -> str:
        """Return the status that a thread shows; "" if it has none, or it expired."""
        status = self.world.statuses.get((channel, thread))
        if status is None or self.world.now() - status.since >= STATUS_LIFE:
            return ""
        return status.text

    def streams(self, channel: str, thread: str | None = None) -> list[Json]:
        """Return the messages of a channel or thread that are or were streams, oldest first.

        `open` tells whether it still is one.
        """
        return [
            message | {"open": is_streaming(self.world, message)}
            for message in self.world.channels[channel].messages.values()
            if "stream" in message and thread in (None, message.get("thread_ts"))
        ]

    def revoke(self, error: str | None = "token_revoked") -> None:
        """Respond to every call of the bot with this error; None restores it."""
        self.world.account = error
