"""Messages and events of people in Slack, as methods of the fake."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Unpack

from tests.support.slack import ack_bodies, payloads
from tests.support.slack.event_delivery import Ack, DeliveryOptions, EventDelivery
from tests.support.slack.message_store import put, remove
from tests.support.slack.world import Channel, Json, World


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
        }  # fmt: skip
        """The events of the manifest."""
        self.complaints: list[str] = []
        """Errors in the bodies of the app's acks, as a person would see them."""

    async def command(
        self,
        user: str,
        channel: str,
        text: str,
        name: str = "/draftsman",
        **how: Unpack[DeliveryOptions],
    ) -> Ack:
        """Send a slash command."""
        place = self.world.channels[channel]
        payload = payloads.command(self.world, user, place, name, text)
        ack = await self.event_delivery.deliver("slash_commands", payload, how=how)
        for item in ack.copies:
            if item.acked and item.body:
                self.complaints += ack_bodies.to_command(self.world, user, place, item.body)
        return ack

    async def say(
        self,
        user: str,
        channel: str,
        text: str,
        thread: str | None = None,
        more: Json | None = None,
        **how: Unpack[DeliveryOptions],
    ) -> Ack:
        """Post a message with the fields of `more`: subtype, files, bot_id …

        A message that mentions the bot is delivered twice, as `message` and as `app_mention`.
        """
        place = self.world.channels[channel]
        person = self.world.users[user]
        content: Json = {"user": user, "text": text, "client_msg_id": self.world.id("cm")}
        content |= {"team": person["team_id"], **(more or {})}
        message = put(self.world, place, content, thread)
        events = [
            payloads.event(
                self.world, payloads.spoken(self.world, place, message, kind), place.shared
            )
            for kind in self._events(place, text)
        ]
        ack = await self.event_delivery.deliver("events_api", *events, how=how)
        return replace(ack, ts=message["ts"])

    async def mention(
        self,
        user: str,
        channel: str,
        text: str,
        thread: str | None = None,
        **how: Unpack[DeliveryOptions],
    ) -> Ack:
        """Post a message that begins with a mention of the bot."""
        return await self.say(user, channel, f"<@{self.world.bot_user}> {text}", thread, **how)

    def _events(self, place: Channel, text: str) -> Iterator[str]:
        if self.world.bot_user not in place.members:
            return
        if f"message.{place.scope}" in self.subscribed:
            yield "message"
        mentioned = f"<@{self.world.bot_user}" in text and place.kind != "im"
        if mentioned and "app_mention" in self.subscribed:
            yield "app_mention"

    async def edit(self, channel: str, ts: str, text: str, **how: Unpack[DeliveryOptions]) -> Ack:
        """Edit a person's message.

        An edited mention fires `app_mention` again, with `edited` (bolt-js issue 960, slack-go pull
        request 1256).
        """
        message = self.world.channels[channel].messages[ts]
        marks = {"user": message.get("user"), "ts": self.world.ts()}
        return await self._change(channel, ts, {"text": text, "edited": marks}, how)

    async def unfurl(self, channel: str, ts: str, **how: Unpack[DeliveryOptions]) -> Ack:
        """Add the preview of a link to a message."""
        preview = {"attachments": [{"from_url": "https://example.com", "title": "Example"}]}
        return await self._change(channel, ts, preview, how)

    async def echo(self, channel: str, ts: str, **how: Unpack[DeliveryOptions]) -> Ack:
        """Deliver a message's event, of any author: as new, or as changed if it was edited."""
        place = self.world.channels[channel]
        message = place.messages[ts]
        if "edited" in message:
            return await self._change(channel, ts, {}, how)
        return await self._tell_message(
            place, payloads.spoken(self.world, place, message, "message"), how
        )

    async def _change(self, channel: str, ts: str, new: Json, how: DeliveryOptions) -> Ack:
        place = self.world.channels[channel]
        before = copy.deepcopy(place.messages[ts])
        place.messages[ts].update(new)
        inner = payloads.changed(self.world, place, before, place.messages[ts])
        inner_events = [inner] if "message" in self._events(place, "") else []
        if "edited" in new and "app_mention" in self._events(place, new["text"]):
            inner_events.append(
                payloads.spoken(self.world, place, place.messages[ts], "app_mention")
            )
        return await self._tell(place, inner_events, how)

    async def delete(self, channel: str, ts: str, **how: Unpack[DeliveryOptions]) -> Ack:
        """Delete a message of any author."""
        place = self.world.channels[channel]
        before = place.messages[ts]
        remove(place, ts)
        return await self._tell_message(place, payloads.deleted(self.world, place, before), how)

    async def _tell_message(self, place: Channel, inner: Json, how: DeliveryOptions) -> Ack:
        inner_events = [inner] if "message" in self._events(place, "") else []
        return await self._tell(place, inner_events, how)

    async def _tell(self, place: Channel, inner_events: list[Json], how: DeliveryOptions) -> Ack:
        events = [payloads.event(self.world, inner, place.shared) for inner in inner_events]
        return await self.event_delivery.deliver("events_api", *events, how=how)

    async def open_home(self, user: str, **how: Unpack[DeliveryOptions]) -> Ack:
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
        return await self.event(inner, **how)

    async def event(self, inner: Json, **how: Unpack[DeliveryOptions]) -> Ack:
        """Deliver any event; an outer event is sent unchanged."""
        outer = inner if "event" in inner or "api_app_id" in inner else None
        whole = payloads.event(self.world, inner) if outer is None else outer
        return await self.event_delivery.deliver("events_api", whole, how=how)

    async def again(self, ack: Ack, **how: Unpack[DeliveryOptions]) -> Ack:
        """Deliver a payload again in a new envelope."""
        return await self.event_delivery.deliver(ack.kind, ack.sent, how=how)
