"""What people do in Slack, as methods of the fake: they write, press, choose, fill in and close."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Unpack

from tests.support.slack import answers, payloads
from tests.support.slack.courier import Ack, Courier, How
from tests.support.slack.post import controls, put, remove
from tests.support.slack.world import Channel, Hook, Json, View, World


class Deeds:
    """What a person can do. Ids are Slack's: U…, C…, V….

    A person can only do what Slack shows: pressing a button that is not there is a LookupError of
    the test. `text` is what Slack puts on the wire, so `&`, `<`, `>` of a person come escaped.
    """

    def __init__(self, world: World, courier: Courier) -> None:
        self.world = world
        self.courier = courier
        self.subscribed = {
            "app_mention", "message.channels", "message.groups", "message.im", "message.mpim",
            "app_home_opened", "app_uninstalled", "tokens_revoked",
        }  # fmt: skip
        """The events of the manifest."""
        self.complaints: list[str] = []
        """What was wrong with the answers in the app's acks, as a person would see it."""

    async def command(
        self, user: str, channel: str, text: str, name: str = "/draftsman", **how: Unpack[How]
    ) -> Ack:
        """Type a slash command."""
        place = self.world.channels[channel]
        payload = payloads.command(self.world, user, place, name, text)
        ack = await self.courier.deliver("slash_commands", payload, how=how)
        for one in ack.copies:
            if one.acked and one.body:
                self.complaints += answers.to_command(self.world, user, place, one.body)
        return ack

    async def say(
        self,
        user: str,
        channel: str,
        text: str,
        thread: str | None = None,
        more: Json | None = None,
        **how: Unpack[How],
    ) -> Ack:
        """Write a message; `more` goes into it: subtype, files, bot_id …

        A message that mentions the bot comes twice, as Slack sends it: message and app_mention.
        """
        place = self.world.channels[channel]
        person = self.world.users[user]
        said: Json = {"user": user, "text": text, "client_msg_id": self.world.id("cm")}
        said |= {"team": person["team_id"], **(more or {})}
        if place.kind != "im" and person["team_id"] != self.world.team:
            said |= {"user_team": person["team_id"], "source_team": person["team_id"]}
        message = put(self.world, place, said, thread)
        events = [
            payloads.event(self.world, payloads.spoken(place, message, kind), place.shared)
            for kind in self._events(place, text)
        ]
        ack = await self.courier.deliver("events_api", *events, how=how)
        return replace(ack, ts=message["ts"])

    async def mention(
        self, user: str, channel: str, text: str, thread: str | None = None, **how: Unpack[How]
    ) -> Ack:
        """Write a message that begins with the bot's name."""
        return await self.say(user, channel, f"<@{self.world.bot_user}> {text}", thread, **how)

    def _events(self, place: Channel, text: str) -> Iterator[str]:
        if self.world.bot_user not in place.members:
            return
        if f"message.{place.scope}" in self.subscribed:
            yield "message"
        mentioned = f"<@{self.world.bot_user}" in text and place.kind != "im"
        if mentioned and "app_mention" in self.subscribed:
            yield "app_mention"

    async def edit(self, channel: str, ts: str, text: str, **how: Unpack[How]) -> Ack:
        """Change a message of a person."""
        message = self.world.channels[channel].messages[ts]
        marks = {"user": message.get("user"), "ts": self.world.ts()}
        return await self._change(channel, ts, {"text": text, "edited": marks}, how)

    async def unfurl(self, channel: str, ts: str, **how: Unpack[How]) -> Ack:
        """Let Slack put the preview of a link under a message."""
        preview = {"attachments": [{"from_url": "https://example.com", "title": "Example"}]}
        return await self._change(channel, ts, preview, how)

    async def echo(self, channel: str, ts: str, **how: Unpack[How]) -> Ack:
        """Tell the app of a message, its own or another's: as new, or as changed if it was."""
        place = self.world.channels[channel]
        message = place.messages[ts]
        if "edited" in message:
            return await self._change(channel, ts, {}, how)
        return await self._tell(place, payloads.spoken(place, message, "message"), how)

    async def _change(self, channel: str, ts: str, new: Json, how: How) -> Ack:
        place = self.world.channels[channel]
        before = copy.deepcopy(place.messages[ts])
        place.messages[ts].update(new)
        inner = payloads.changed(self.world, place, before, place.messages[ts])
        return await self._tell(place, inner, how)

    async def delete(self, channel: str, ts: str, **how: Unpack[How]) -> Ack:
        """Delete a message, whoever wrote it."""
        place = self.world.channels[channel]
        before = place.messages[ts]
        remove(place, ts)
        return await self._tell(place, payloads.deleted(self.world, place, before), how)

    async def _tell(self, place: Channel, inner: Json, how: How) -> Ack:
        outer = payloads.event(self.world, inner, place.shared)
        wanted = [outer] if "message" in self._events(place, "") else []
        return await self.courier.deliver("events_api", *wanted, how=how)

    async def open_home(self, user: str, **how: Unpack[How]) -> Ack:
        """Open the bot's home tab."""
        inner: Json = {
            "type": "app_home_opened",
            "user": user,
            "channel": self.world.direct(user).id,
            "tab": "home",
            "event_ts": self.world.ts(),
        }
        if user in self.world.homes:
            inner["view"] = copy.deepcopy(self.world.homes[user].said)
        return await self.event(inner, **how)

    async def event(self, inner: Json, **how: Unpack[How]) -> Ack:
        """Let any event happen; an outer one is sent as it is."""
        outer = inner if "event" in inner or "api_app_id" in inner else None
        whole = payloads.event(self.world, inner) if outer is None else outer
        return await self.courier.deliver("events_api", whole, how=how)

    async def interactive(self, payload: Json, **how: Unpack[How]) -> Ack:
        """Send any interaction, as it is."""
        return await self.courier.deliver("interactive", payload, how=how)

    async def press(
        self, user: str, channel: str, ts: str, action_id: str, **how: Unpack[How]
    ) -> Ack:
        """Press the button with this action_id, value or label."""
        return await self.choose(user, channel, ts, action_id, None, **how)

    async def choose(
        self, user: str, channel: str, ts: str, action_id: str, value: Any, **how: Unpack[How]
    ) -> Ack:
        """Choose something in a control of a message: the value or the label of an option."""
        place = self.world.channels[channel]
        message, ephemeral = self._message(user, place, ts)
        block, element = control(message.get("blocks", []), action_id)
        payload = payloads.interaction(self.world, "block_actions", user)
        payload |= payloads.in_message(self.world, user, place, message, ephemeral=ephemeral)
        payload["actions"] = [payloads.action(self.world, block, element, value)]
        return await self.courier.deliver("interactive", payload, how=how)

    def _message(self, user: str, place: Channel, ts: str) -> tuple[Json, bool]:
        for one in self.world.ephemerals[place.id, user]:
            if one["ts"] == ts:
                return one, True
        if ts not in place.messages:
            raise LookupError(f"{user} sees no message {ts} in {place.name}")
        return place.messages[ts], False

    async def press_in_view(
        self, user: str, view_id: str, action_id: str, value: Any = None, **how: Unpack[How]
    ) -> Ack:
        """Press a button, or choose something, in a modal or on the home tab."""
        view = self._view(user, view_id)
        block, element = control(view.said["blocks"], action_id)
        payload = payloads.interaction(self.world, "block_actions", user, view_id)
        payload["container"] = {"type": "view", "view_id": view_id}
        payload["view"] = payloads.in_view(view, {action_id: value})
        payload["actions"] = [payloads.action(self.world, block, element, value)]
        return await self.courier.deliver("interactive", payload, how=how)

    async def suggest(
        self, user: str, channel: str, ts: str, action_id: str, query: str, **how: Unpack[How]
    ) -> list[Json]:
        """Type into an external select of a message; return the options that the app offers."""
        place = self.world.channels[channel]
        message, ephemeral = self._message(user, place, ts)
        block, element = control(message.get("blocks", []), action_id)
        payload = payloads.interaction(self.world, "block_suggestion", user)
        payload |= payloads.in_message(self.world, user, place, message, ephemeral=ephemeral)
        for name in ("response_url", "trigger_id", "state"):
            payload.pop(name)
        names = {"action_id": element["action_id"], "block_id": block["block_id"]}
        ack = await self.interactive(payload | names | {"value": query}, **how)
        found, problems = answers.to_suggestion(ack.body)
        self.complaints += problems
        return found

    async def submit(
        self, user: str, view_id: str, values: dict[str, Any] | None = None, **how: Unpack[How]
    ) -> Ack:
        """Fill in a modal and send it: values by block_id or action_id."""
        view = self._view(user, view_id)
        for name in values or {}:
            if not any(name in (b["block_id"], e["action_id"]) for b, e in _all(view)):
                raise LookupError(f"the modal has no field {name!r}")
        payload = payloads.interaction(self.world, "view_submission", user, view_id)
        payload |= {"view": payloads.in_view(view, values or {}), "response_urls": []}
        ack = await self.courier.deliver("interactive", payload, how=how)
        for one in ack.copies:
            if one.acked and view_id in self.world.views:
                self.complaints += answers.to_submission(self.world, view, one.body)
        return ack

    async def close_view(self, user: str, view_id: str, **how: Unpack[How]) -> Ack:
        """Close a modal; the app hears of it if it asked to."""
        view = self._view(user, view_id)
        payload = payloads.interaction(self.world, "view_closed", user)
        payload |= {"view": payloads.in_view(view, {}), "is_cleared": False}
        payload.pop("trigger_id")
        answers.close(self.world, view)
        wanted = [payload] if view.said["notify_on_close"] else []
        return await self.courier.deliver("interactive", *wanted, how=how)

    def _view(self, user: str, view_id: str) -> View:
        found = self.world.views.get(view_id)
        home = self.world.homes.get(user)
        if found is None and home is not None and home.said["id"] == view_id:
            found = home
        if found is None or found.user != user:
            raise LookupError(f"{user} has no view {view_id}")
        return found

    async def shortcut(self, user: str, callback_id: str, **how: Unpack[How]) -> Ack:
        """Use a global shortcut."""
        payload = payloads.interaction(self.world, "shortcut", user)
        payload |= {"callback_id": callback_id, "action_ts": self.world.ts()}
        return await self.courier.deliver("interactive", payload, how=how)

    async def message_shortcut(
        self, user: str, channel: str, ts: str, callback_id: str, **how: Unpack[How]
    ) -> Ack:
        """Use a shortcut of a message."""
        place = self.world.channels[channel]
        message, _ = self._message(user, place, ts)
        payload = payloads.interaction(self.world, "message_action", user)
        payload |= {
            "callback_id": callback_id,
            "action_ts": self.world.ts(),
            "message_ts": ts,
            "channel": payloads.place(place),
            "message": copy.deepcopy(message),
            "response_url": self.world.hook(Hook(user, channel, self.world.now(), ts)),
        }
        return await self.courier.deliver("interactive", payload, how=how)


def _all(view: View) -> Iterator[tuple[Json, Json]]:
    for block in view.said["blocks"]:
        for element in controls(block):
            yield block, element


def control(blocks: list[Json], name: str) -> tuple[Json, Json]:
    """Return the control with this action_id, value or label, and its block."""
    found = [(block, element) for block in blocks for element in controls(block)]
    for of in (_action_id, _value, _label):
        for block, element in found:
            if of(element) == name:
                return block, element
    raise LookupError(f"no control {name!r} among {[_action_id(e) for _, e in found]}")


def _action_id(element: Json) -> Any:
    return element.get("action_id")


def _value(element: Json) -> Any:
    return element.get("value")


def _label(element: Json) -> Any:
    return (element.get("text") or {}).get("text")
