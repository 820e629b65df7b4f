"""The channel in which the live checks of Slack write, and the calls that they share."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

import aiohttp

from draftsman.deliveries.channels.live_check import (
    AssumptionBroken,
    LiveSession,
    NotTried,
    refused,
)
from draftsman.deliveries.channels.removals import Remove
from draftsman.deliveries.delivery import Unconfirmed
from draftsman.errors import Failure, UsageError
from draftsman_bots.json_fields import nested, objects, string
from draftsman_bots.slack import credentials
from draftsman_bots.slack.identity import Identity
from draftsman_bots.slack.live.calls import METHOD, START, STOP
from draftsman_bots.slack.plugin import page_url
from draftsman_bots.slack.settings import SlackSettings
from draftsman_bots.slack.transport.api_errors import SlackRefusal
from draftsman_bots.slack.transport.web_api import Data, WebApi, client

TIMEOUT: Final = 15.0
"""Seconds for each call."""
READS: Final = frozenset({
    "auth.test", "conversations.history", "conversations.info", "conversations.members",
    "conversations.replies", "files.getUploadURLExternal", "files.info", "reactions.get",
    "users.info",
})  # fmt: skip
"""Methods that take no JSON."""
ATTEMPTS: Final = 4
"""Attempts of a call that exceeds a rate limit."""
HTTP_LIMIT: Final = 429
MAX_PAUSE: Final = 25.0
"""Seconds between them."""
MAX_MEMBERS: Final = 50
"""Members of the channel among whom a reader is looked for."""
NOBODY: Final = "no person is in the channel who could read it: join it"
T = TypeVar("T")
MessageId = tuple[str, str]
"""Channel and ts of a message."""


@dataclass(slots=True)
class ChannelReader:
    """A person in the channel, with their workspace."""

    id: str
    team: str


@dataclass(slots=True)
class ScratchChannel:
    """A channel of a workspace, which the bot is in."""

    session: LiveSession
    web_api: WebApi
    http: aiohttp.ClientSession
    channel: str
    name: str
    url: str
    readers: list[ChannelReader] = field(default_factory=list)
    expired: MessageId | None = None
    """A stream that Slack closed by itself."""
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def identity(self) -> Identity:
        """The bot, and its scopes."""
        return self.web_api.identity

    @property
    def plan(self) -> str:
        """The question before the first write."""
        return (
            f"Upload a file, write about 30 messages to #{self.name} ({self.channel}) of {self.url}"
            " and one to the direct conversation with one of its members, and remove them?"
        )

    @property
    def facts(self) -> Mapping[str, str]:
        """The URL of the API, and whether the workspace is one of an organization."""
        kind = "of an organization" if self.identity.enterprise else "without an organization"
        scopes = " ".join(sorted(self.identity.scopes or ()))
        return {"Slack": str(self.web_api.web.base_url), "workspace": kind, "scopes": scopes}

    async def begin(self) -> None:
        """Find the people who can read a stream."""
        members = await self.call("conversations.members", channel=self.channel)
        for id in members.get("members", ())[:MAX_MEMBERS]:
            user = nested(await self.call("users.info", user=id), "user")
            if not (user.get("is_bot") or user.get("deleted") or id == self.identity.bot_user):
                self.readers.append(ChannelReader(id, string(user, "team_id")))

    async def close(self) -> None:
        """Close the connections."""
        await self.http.close()

    async def call(self, method: str, **args: Any) -> Data:
        """Call a method; raises Failure."""
        for _ in range(ATTEMPTS - 1):
            try:
                return await self._call(method, args)
            except Failure as error:
                if error.http_status != HTTP_LIMIT:
                    raise
                await self.session.wait(min(error.retry_after or 1.0, MAX_PAUSE))
        return await self._call(method, args)

    async def _call(self, method: str, args: Mapping[str, Any]) -> Data:
        web = self.web_api.web
        if method in READS:
            result = await self.web_api.read(
                method, web.api_call(method, http_verb="GET", params=dict(args))
            )
        else:
            reply = await self.web_api.write(method, web.api_call(method, json=dict(args)))
            if isinstance(reply, Unconfirmed):
                raise Failure(reply.reason, origin="slack", code="no_reply")
            result = reply
        if isinstance(result, Failure):
            raise result
        return result

    async def assumed(self, call: Awaitable[T]) -> T:
        """Return the result of the call that an assumption is about, which may not be refused."""
        try:
            return await call
        except SlackRefusal as error:
            if error.error in METHOD:  # also a missing scope: the app's scopes are to be enough
                raise AssumptionBroken(str(error)) from None
            refused(error)

    async def refusal(self, method: str, **args: Any) -> str:
        """Return the error code of a call that Slack refuses; "" if it does not."""
        try:
            await self.call(method, **args)
        except SlackRefusal as error:
            return error.error
        return ""

    async def post(self, check: str, channel: str = "", thread: str = "") -> MessageId:
        """Post a message, to be deleted at the end."""
        text = f"draftsman live check {check}, message {next(self._numbers)}"
        args = {"channel": channel or self.channel, "text": text}
        if thread:
            args["thread_ts"] = thread
        return await self._written(args["channel"], self.call("chat.postMessage", **args))

    async def begin_stream(
        self, root: MessageId, chunks: list[dict[str, str]], reader: ChannelReader | None
    ) -> MessageId:
        """Start a stream in a thread, as the bot does, to be deleted at the end."""
        channel, thread = root
        to = {"recipient_user_id": reader.id, "recipient_team_id": reader.team} if reader else {}
        args = {"channel": channel, "thread_ts": thread, "chunks": chunks}
        call = self.call(START, **args, task_display_mode="plan", **to)
        return await self._written(channel, call, is_stream=True)

    async def _written(
        self, channel: str, call: Awaitable[Data], *, is_stream: bool = False
    ) -> MessageId:
        """Return the message that a call writes."""

        def removal(reply: Data) -> tuple[str, Remove]:
            message = (channel, string(reply, "ts"))
            return f"message {self.link(message)}", partial(self._delete, message, is_stream)

        what = f"a message in {channel}"
        reply = await self.session.removals.created(what, call, removal)
        return channel, string(reply, "ts")

    async def _delete(self, message: MessageId, is_stream: bool) -> None:
        channel, ts = message
        if is_stream:
            await self.refusal(STOP, channel=channel, ts=ts)
        await self.call("chat.delete", channel=channel, ts=ts)

    async def stream(self, check: str, *chunks: dict[str, str]) -> MessageId:
        """Start a stream in a thread of its own."""
        root = await self.post(check)
        return await self.begin_stream(root, [*chunks] or [task("a", "a step")], self.reader)

    @property
    def reader(self) -> ChannelReader:
        """A person of the bot's own workspace; raises NotTried without one."""
        for reader in self.readers:
            if reader.team == self.identity.team:
                return reader
        raise NotTried(NOBODY)

    async def direct(self) -> str:
        """Return the conversation of the bot with a person of the channel."""
        reply = await self.call("conversations.open", users=self.reader.id)
        return string(nested(reply, "channel"), "id")

    async def thread(self, root: MessageId) -> list[dict[str, Any]]:
        """Return the messages of a thread."""
        channel, ts = root
        reply = await self.call(
            "conversations.replies", channel=channel, ts=ts, include_all_metadata="true"
        )
        return objects(reply, "messages")

    def link(self, message: MessageId) -> str:
        """Return the URL at which a person finds a message."""
        channel, ts = message
        return page_url(self.session.settings, channel, f"{channel}/{ts}") or ""


def task(id: str, title: str, status: str = "in_progress") -> dict[str, str]:
    """Return the chunk of a step."""
    return {"type": "task_update", "id": id, "title": title, "status": status}


async def connect(session: LiveSession) -> ScratchChannel:
    """Return the channel that `--in` names; raises ConfigError, UsageError, Failure."""
    slack = SlackSettings.required(session.settings)
    if session.scratch is None:
        raise UsageError(
            "name a channel for tests that the bot and you are in: --in C012ABCDEF; the app has no"
            " right to create one"
        )
    web = client(credentials.read(slack).bot, slack.api_url, TIMEOUT)
    web.session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT))
    place = ScratchChannel(session, WebApi(web, TIMEOUT), web.session, session.scratch, "", "")
    try:
        await _find_channel(place)
    except BaseException:
        await place.close()
        raise
    return place


async def _find_channel(place: ScratchChannel) -> None:
    account = await place.call("auth.test")
    place.identity.update(account)
    place.url = string(account, "url")
    try:
        reply = await place.call("conversations.info", channel=place.channel)
    except SlackRefusal as error:
        raise UsageError(f"--in {place.channel}: {error}; use the id of a channel") from None
    channel = nested(reply, "channel")
    if not channel.get("is_member"):
        raise UsageError(f"the bot is not in {place.channel}: in it, type /invite @draftsman")
    place.name = string(channel, "name")
