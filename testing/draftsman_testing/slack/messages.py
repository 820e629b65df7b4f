"""Messages and events of people in Slack, as methods of the fake."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Unpack

from draftsman_testing.slack import ack_bodies, payloads
from draftsman_testing.slack.event_delivery import Ack, DeliveryOptions, EventDelivery
from draftsman_testing.slack.message_store import is_streaming, put, remove
from draftsman_testing.slack.world import Channel, Json, World


class InvalidCommand(Exception):
    """The reply of Slackbot to a command that no app has (nearform/lastlight issue 119)."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} is not a valid command. In Slack, all messages that start with the “/”"
            " character are interpreted as commands. If you are trying to send a message and not"
            " run a command, try preceding the “/” with an empty space."
        )


class Messages:
    """Messages of people. Ids are Slack's: U…, C…, V….

    `text` is in Slack's wire format, in which `&`, `<`, `>` of a person are escaped.
    """

    def __init__(self, world: World, courier: EventDelivery) -> None:
        self.world = world
        self.event_delivery = courier
        self.subscribed = {
            "app_mention", "message.channels", "message.groups", "message.im", "message.mpim",
            "app_home_opened", "app_uninstalled", "tokens_revoked",
            "reaction_added", "reaction_removed", "agent_session_stopped",
        }  # fmt: skip
        """The events of the manifest."""
        self.commands = {"/draftsman"}
        """The commands of the manifest."""
        self.complaints: list[str] = []
        """Errors in the bodies of the app's acks, as a person would see them."""

    async def command(
        self,
        user: str,
        channel: str,
        text: str,
        name: str = "/draftsman",
        **options: Unpack[DeliveryOptions],
    ) -> Ack:
        """Send a slash command; raises InvalidCommand for one that no app has."""
        if name not in self.commands:
            raise InvalidCommand(name)
        room = self.world.channels[channel]
        payload = payloads.command(self.world, user, room, name, text)
        ack = await self.event_delivery.deliver("slash_commands", payload, options=options)
        for item in ack.copies:
            if item.acked and item.body:
                self.complaints += ack_bodies.to_command(self.world, user, room, item.body)
        return ack

    async def say(
        self,
        user: str,
        channel: str,
        text: str,
        thread: str | None = None,
        more: Json | None = None,
        **options: Unpack[DeliveryOptions],
    ) -> Ack:
        """Post a message with the fields of `more`: subtype, files, bot_id and others.

        A message that mentions the bot is delivered twice, as `message` and as `app_mention`.
        """
        room = self.world.channels[channel]
        person = self.world.users[user]
        content: Json = {"user": user, "text": text, "client_msg_id": self.world.id("cm")}
        content |= {"team": person["team_id"], **(more or {})}
        message = put(self.world, room, content, thread)
        events = [
            payloads.event(
                self.world, payloads.spoken(self.world, room, message, kind), room.shared
            )
            for kind in self._events(room, text)
        ]
        ack = await self.event_delivery.deliver("events_api", *events, options=options)
        return replace(ack, ts=message["ts"])

    async def mention(
        self,
        user: str,
        channel: str,
        text: str,
        thread: str | None = None,
        **options: Unpack[DeliveryOptions],
    ) -> Ack:
        """Post a message that begins with a mention of the bot."""
        return await self.say(user, channel, f"<@{self.world.bot_user}> {text}", thread, **options)

    def _events(self, room: Channel, text: str) -> Iterator[str]:
        if self.world.bot_user not in room.members:
            return
        if f"message.{room.scope}" in self.subscribed:
            yield "message"
        mentioned = f"<@{self.world.bot_user}" in text and room.kind != "im"
        if mentioned and "app_mention" in self.subscribed:
            yield "app_mention"

    async def edit(
        self, channel: str, ts: str, text: str, **options: Unpack[DeliveryOptions]
    ) -> Ack:
        """Edit a person's message.

        An edited mention fires `app_mention` again, with `edited` (bolt-js issue 960, slack-go pull
        request 1256).
        """
        message = self.world.channels[channel].messages[ts]
        marks = {"user": message.get("user"), "ts": self.world.ts()}
        return await self._change(channel, ts, {"text": text, "edited": marks}, options)

    async def unfurl(self, channel: str, ts: str, **options: Unpack[DeliveryOptions]) -> Ack:
        """Add the preview of a link to a message."""
        preview = {"attachments": [{"from_url": "https://example.com", "title": "Example"}]}
        return await self._change(channel, ts, preview, options)

    async def echo(self, channel: str, ts: str, **options: Unpack[DeliveryOptions]) -> Ack:
        """Deliver a message's event, of any author: as new, or as changed if it was edited."""
        room = self.world.channels[channel]
        message = room.messages[ts]
        if "edited" in message:
            return await self._change(channel, ts, {}, options)
        return await self._tell_message(
            room, payloads.spoken(self.world, room, message, "message"), options
        )

    async def _change(self, channel: str, ts: str, new: Json, options: DeliveryOptions) -> Ack:
        room = self.world.channels[channel]
        before = copy.deepcopy(room.messages[ts])
        room.messages[ts].update(new)
        inner = payloads.changed(self.world, room, before, room.messages[ts])
        inner_events = [inner] if "message" in self._events(room, "") else []
        if "edited" in new and "app_mention" in self._events(room, new["text"]):
            inner_events.append(payloads.spoken(self.world, room, room.messages[ts], "app_mention"))
        return await self._tell(room, inner_events, options)

    async def delete(self, channel: str, ts: str, **options: Unpack[DeliveryOptions]) -> Ack:
        """Delete a message of any author."""
        room = self.world.channels[channel]
        before = room.messages[ts]
        remove(room, ts)
        return await self._tell_message(room, payloads.deleted(self.world, room, before), options)

    async def _tell_message(self, room: Channel, inner: Json, options: DeliveryOptions) -> Ack:
        inner_events = [inner] if "message" in self._events(room, "") else []
        return await self._tell(room, inner_events, options)

    async def _tell(self, room: Channel, inner_events: list[Json], options: DeliveryOptions) -> Ack:
        events = [payloads.event(self.world, inner, room.shared) for inner in inner_events]
        return await self.event_delivery.deliver("events_api", *events, options=options)

    async def react(
        self,
        user: str,
        channel: str,
        ts: str,
        emoji: str,
        *,
        removed: bool = False,
        **options: Unpack[DeliveryOptions],
    ) -> Ack:
        """Add or remove a reaction (docs.slack.dev, events reaction_added and reaction_removed).

        The event names neither the thread nor the workspace of the user.
        """
        room = self.world.channels[channel]
        kind = "reaction_removed" if removed else "reaction_added"
        item = {"type": "message", "channel": channel, "ts": ts}
        inner: Json = {
            "type": kind,
            "user": user,
            "reaction": emoji,
            "item": item,
            "item_user": room.messages[ts].get("user", self.world.bot_user),
            "event_ts": self.world.ts(),
        }
        if kind not in self.subscribed or self.world.bot_user not in room.members:
            return Ack()
        outer = payloads.event(self.world, inner, room.shared)
        return await self.event_delivery.deliver("events_api", outer, options=options)

    async def stop_session(
        self, user: str, channel: str, thread: str, **options: Unpack[DeliveryOptions]
    ) -> Ack:
        """Press the stop button of a session (docs.slack.dev, event agent_session_stopped).

        It ends the app's streams in the thread, and leaves the state of the session to the app.
        """
        room = self.world.channels[channel]
        session = self.world.sessions.get((channel, thread), [""])
        if "agent_session_stopped" not in self.subscribed or session[-1] != "processing":
            return Ack()
        streams = [
            message
            for message in room.messages.values()
            if message.get("thread_ts") == thread and is_streaming(self.world, message)
        ]
        for message in streams:
            message["stream"] |= {"open": False, "stopped": True}
        inner: Json = {
            "type": "agent_session_stopped",
            "user": user,
            "channel": channel,
            "thread_ts": thread,
            "streaming_message_ts": [message["ts"] for message in streams],
            "event_ts": self.world.ts(),
        }
        outer = payloads.event(self.world, inner, room.shared)
        return await self.event_delivery.deliver("events_api", outer, options=options)

    async def open_home(self, user: str, **options: Unpack[DeliveryOptions]) -> Ack:
        """Open the bot's home tab."""
        inner: Json = {
            "type": "app_home_opened",
            "user": user,
            "channel": self.world.direct(user).id,
            "tab": "home",
            "event_ts": self.world.ts(),
        }
        if user in self.world.homes:
            inner["view"] = copy.deepcopy(self.world.homes[user].content)
        return await self.event(inner, **options)

    async def open_messages(self, user: str, **options: Unpack[DeliveryOptions]) -> Ack:
        """Open the Messages tab of the app, the conversation with an agent."""
        channel = self.world.direct(user).id
        inner: Json = {"type": "app_home_opened", "user": user, "channel": channel}
        inner |= {"tab": "messages", "event_ts": self.world.ts()}
        return await self.event(inner, **options)

    async def start_assistant_thread(
        self, user: str, kind: str = "assistant_thread_started", **options: Unpack[DeliveryOptions]
    ) -> Ack:
        """Open the container of an app with `assistant_view`, whose thread has a first message."""
        channel = self.world.direct(user)
        content: Json = {"user": self.world.bot_user, "text": "New chat"}
        root = put(self.world, channel, content | {"subtype": "assistant_app_thread"})
        thread = {"user_id": user, "channel_id": channel.id, "thread_ts": root["ts"]}
        thread["context"] = {"channel_id": "C000000001", "team_id": self.world.team}
        inner: Json = {"type": kind, "assistant_thread": thread, "event_ts": self.world.ts()}
        return replace(await self.event(inner, **options), ts=root["ts"])

    async def event(self, inner: Json, **options: Unpack[DeliveryOptions]) -> Ack:
        """Deliver any event; an outer event is sent unchanged."""
        outer = inner if "event" in inner or "api_app_id" in inner else None
        outer_payload = payloads.event(self.world, inner) if outer is None else outer
        return await self.event_delivery.deliver("events_api", outer_payload, options=options)

    async def again(self, ack: Ack, **options: Unpack[DeliveryOptions]) -> Ack:
        """Deliver a payload again in a new envelope."""
        return await self.event_delivery.deliver(ack.kind, ack.sent, options=options)
