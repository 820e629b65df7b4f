"""Registry of the Web API's methods: name, alternative scopes and function."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from draftsman_testing.slack.api_errors import ApiError, invalid_arguments
from draftsman_testing.slack.world import Channel, Json, World

Token = Literal["bot", "app"]


class Args(dict[str, Any]):
    """The arguments of a call, from its query, form or JSON; none of them is None."""

    def need(self, name: str) -> str:
        """Return a required string."""
        value = self.get(name)
        if value is None or value == "":
            raise invalid_arguments("invalid_arguments", [f"missing required field: {name}"])
        return str(value)

    def maybe(self, name: str) -> str | None:
        """Return a string, or None."""
        value = self.get(name)
        return None if value is None or value == "" else str(value)

    def flag(self, name: str) -> bool:
        """Return a boolean."""
        return str(self.get(name, "")).lower() in {"1", "true"}

    def count(self, name: str, default: int, most: int) -> int:
        """Return a number."""
        try:
            return max(1, min(int(self.get(name, default)), most))
        except ValueError:
            raise ApiError("invalid_limit") from None

    def json(self, name: str, error: str) -> Any:
        """Return a value that a form has as JSON text; None if it is absent."""
        value = self.get(name)
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value)
        except ValueError:
            raise ApiError(error) from None


Work = Callable[[World, Args], Json]


@dataclass(frozen=True, slots=True)
class Method:
    """A method of the Web API."""

    name: str
    scopes: tuple[str, ...]
    work: Work
    token: Token


METHODS: Final[dict[str, Method]] = {}


def method(name: str, *scopes: str, token: Token = "bot") -> Callable[[Work], Work]:
    """Register a method."""

    def register(work: Work) -> Work:
        METHODS[name] = Method(name, scopes, work, token)
        return work

    return register


def need_scope(world: World, *scopes: str) -> None:
    """Raise ApiError unless the token has one of these scopes."""
    if scopes and not world.scopes & set(scopes):
        provided = ",".join(sorted(world.scopes))
        raise ApiError("missing_scope", needed=",".join(scopes), provided=provided)


def visible_channel(world: World, channel_id: str) -> Channel:
    """Return a conversation that is public or has the bot as a member."""
    channel = world.channels.get(channel_id)
    if channel is None or (channel.kind != "channel" and world.bot_user not in channel.members):
        raise ApiError("channel_not_found")
    return channel


def writable_channel(world: World, content: str) -> Channel:
    """Return the conversation of a new message, by its id, its name, or a person's id."""
    if content in world.users:
        return world.direct(content)
    by_name = [c.id for c in world.channels.values() if c.name == content.removeprefix("#")]
    channel = visible_channel(
        world, by_name[0] if by_name and content not in world.channels else content
    )
    if channel.archived:
        raise ApiError("is_archived")
    if world.bot_user not in channel.members and "chat:write.public" not in world.scopes:
        raise ApiError("not_in_channel")
    return channel
