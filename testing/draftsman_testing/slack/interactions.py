"""Interactions of people with controls, modals and shortcuts, as methods of the fake."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Unpack

from draftsman_testing.slack import ack_bodies, payloads
from draftsman_testing.slack.event_delivery import Ack, DeliveryOptions
from draftsman_testing.slack.message_store import controls
from draftsman_testing.slack.messages import Messages
from draftsman_testing.slack.world import Channel, Hook, Json, View


class Interactions(Messages):
    """Interactions of a person.

    Only visible controls can be used: a missing control is a LookupError of the test.
    """

    async def interactive(self, payload: Json, **options: Unpack[DeliveryOptions]) -> Ack:
        """Send any interaction payload."""
        return await self.event_delivery.deliver("interactive", payload, options=options)

    async def press(
        self, user: str, channel: str, ts: str, action_id: str, **options: Unpack[DeliveryOptions]
    ) -> Ack:
        """Press the button with this action_id, value or label."""
        return await self.choose(user, channel, ts, action_id, None, **options)

    async def choose(
        self,
        user: str,
        channel: str,
        ts: str,
        action_id: str,
        value: Any,
        **options: Unpack[DeliveryOptions],
    ) -> Ack:
        """Choose an option of a message's control by its value or label."""
        payload = self.chosen(user, channel, ts, action_id, value)
        return await self.event_delivery.deliver("interactive", payload, options=options)

    def chosen(self, user: str, channel: str, ts: str, action_id: str, value: Any = None) -> Json:
        """Return the payload of a press on the message in its current state."""
        room = self.world.channels[channel]
        message, ephemeral = self.visible(user, room, ts)
        block, element = control(message.get("blocks", []), action_id)
        payload = payloads.interaction(self.world, "block_actions", user)
        payload |= payloads.in_message(self.world, user, room, message, ephemeral=ephemeral)
        payload["actions"] = [payloads.action(self.world, block, element, value)]
        return payload

    def visible(self, user: str, room: Channel, ts: str) -> tuple[Json, bool]:
        """Return a message that a person sees, and whether it is ephemeral."""
        for ephemeral in self.world.ephemerals[room.id, user]:
            if ephemeral["ts"] == ts:
                return ephemeral, True
        if ts not in room.messages:
            raise LookupError(f"{user} sees no message {ts} in {room.name}")
        return room.messages[ts], False

    async def press_in_view(
        self,
        user: str,
        view_id: str,
        action_id: str,
        value: Any = None,
        **options: Unpack[DeliveryOptions],
    ) -> Ack:
        """Press a button or choose an option in a modal or on the home tab."""
        view = self._view(user, view_id)
        block, element = control(view.content["blocks"], action_id)
        payload = payloads.interaction(self.world, "block_actions", user, view_id)
        payload["container"] = {"type": "view", "view_id": view_id}
        payload["view"] = payloads.in_view(view, {action_id: value})
        payload["actions"] = [payloads.action(self.world, block, element, value)]
        return await self.event_delivery.deliver("interactive", payload, options=options)

    async def suggest(
        self,
        user: str,
        channel: str,
        ts: str,
        action_id: str,
        query: str,
        **options: Unpack[DeliveryOptions],
    ) -> list[Json]:
        """Type into an external select of a message; return the app's options."""
        room = self.world.channels[channel]
        message, ephemeral = self.visible(user, room, ts)
        where = payloads.in_message(self.world, user, room, message, ephemeral=ephemeral)
        for name in ("response_url", "state"):
            where.pop(name)
        return await self._offered(
            user, message.get("blocks", []), action_id, query, where, options
        )

    async def _offered(
        self,
        user: str,
        blocks: list[Json],
        action_id: str,
        query: str,
        where: Json,
        options: DeliveryOptions,
    ) -> list[Json]:
        block, element = control(blocks, action_id)
        payload = payloads.interaction(self.world, "block_suggestion", user) | where
        payload.pop("trigger_id")
        payload |= {"action_id": element["action_id"], "block_id": block["block_id"]}
        ack = await self.interactive(payload | {"value": query}, **options)
        suggested, problems = ack_bodies.to_suggestion(ack.body)
        self.complaints += problems
        return suggested

    async def submit(
        self,
        user: str,
        view_id: str,
        values: dict[str, Any] | None = None,
        **options: Unpack[DeliveryOptions],
    ) -> Ack:
        """Submit a modal with values by block_id or action_id."""
        view = self._view(user, view_id)
        for name in values or {}:
            if not any(name in (b["block_id"], e["action_id"]) for b, e in _all(view)):
                raise LookupError(f"the modal has no field {name!r}")
        payload = payloads.interaction(self.world, "view_submission", user, view_id)
        payload |= {"view": payloads.in_view(view, values or {}), "response_urls": []}
        ack = await self.event_delivery.deliver("interactive", payload, options=options)
        for copy_ack in ack.copies:
            if copy_ack.acked and view_id in self.world.views:
                self.complaints += ack_bodies.to_submission(self.world, view, copy_ack.body)
        return ack

    async def close_view(self, user: str, view_id: str, **options: Unpack[DeliveryOptions]) -> Ack:
        """Close a modal; the app is notified if it asked for that."""
        view = self._view(user, view_id)
        payload = payloads.interaction(self.world, "view_closed", user)
        payload |= {"view": payloads.in_view(view, {}), "is_cleared": False}
        payload.pop("trigger_id")
        ack_bodies.close(self.world, view)
        deliveries = [payload] if view.content["notify_on_close"] else []
        return await self.event_delivery.deliver("interactive", *deliveries, options=options)

    def _view(self, user: str, view_id: str) -> View:
        view = self.world.views.get(view_id)
        home = self.world.homes.get(user)
        if view is None and home is not None and home.content["id"] == view_id:
            view = home
        if view is None or view.user != user:
            raise LookupError(f"{user} has no view {view_id}")
        return view

    async def shortcut(
        self, user: str, callback_id: str, **options: Unpack[DeliveryOptions]
    ) -> Ack:
        """Use a global shortcut."""
        payload = payloads.interaction(self.world, "shortcut", user)
        payload |= {"callback_id": callback_id, "action_ts": self.world.ts()}
        return await self.event_delivery.deliver("interactive", payload, options=options)

    async def message_shortcut(
        self, user: str, channel: str, ts: str, callback_id: str, **options: Unpack[DeliveryOptions]
    ) -> Ack:
        """Use a shortcut of a message."""
        room = self.world.channels[channel]
        message, _ = self.visible(user, room, ts)
        payload = payloads.interaction(self.world, "message_action", user)
        payload |= {
            "callback_id": callback_id,
            "action_ts": self.world.ts(),
            "message_ts": ts,
            "channel": payloads.place(room),
            "message": copy.deepcopy(message),
            "response_url": self.world.hook(Hook(user, channel, self.world.now(), ts)),
        }
        return await self.event_delivery.deliver("interactive", payload, options=options)


def _all(view: View) -> Iterator[tuple[Json, Json]]:
    for block in view.content["blocks"]:
        for element in controls(block):
            yield block, element


def control(blocks: list[Json], name: str) -> tuple[Json, Json]:
    """Return the control with this action_id, value or label, and its block."""
    pairs = [(block, element) for block in blocks for element in controls(block)]
    for of in (_action_id, _value, _label):
        for block, element in pairs:
            if of(element) == name:
                return block, element
    raise LookupError(f"no control {name!r} among {[_action_id(e) for _, e in pairs]}")


def _action_id(element: Json) -> Any:
    return element.get("action_id")


def _value(element: Json) -> Any:
    return element.get("value")


def _label(element: Json) -> Any:
    return (element.get("text") or {}).get("text")
