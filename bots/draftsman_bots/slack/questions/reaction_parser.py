"""Parser of reactions. Pure, and no payload raises."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from draftsman_bots.json_fields import mapping, nested, string
from draftsman_bots.slack import ids
from draftsman_bots.slack.payloads.users import SlackUser

ALIASES: Final = {"thumbsup": "+1", "thumbsdown": "-1"}
"""Names of the same emoji: events have one or the other."""
_SKIN: Final = re.compile(r"::skin-tone-[2-6]$")


@dataclass(frozen=True, slots=True)
class Reaction:
    """A reaction to a message, added or removed."""

    user: SlackUser
    channel: str
    ts: str
    """The ts of the message."""
    emoji: str
    key: str
    is_shared: bool | None
    """Whether another organization shares the channel; None if the event does not say so."""


def parse_reaction(body: object) -> Reaction | None:
    """Parse a reaction to a message; None for a reaction to something else."""
    data = mapping(body)
    event = nested(data, "event")
    item = nested(event, "item")
    user, emoji = string(event, "user"), canonical(string(event, "reaction"))
    channel, ts = string(item, "channel"), string(item, "ts")
    if string(item, "type") != "message" or not (user and emoji and channel and ts):
        return None
    shared = data.get("is_ext_shared_channel")
    return Reaction(
        user=SlackUser(id=user, channel=channel),
        channel=channel,
        ts=ts,
        emoji=emoji,
        key=ids.reaction_key(channel, ts, user, string(event, "event_ts")),
        is_shared=shared if isinstance(shared, bool) else None,
    )


def canonical(emoji: str) -> str:
    """Return the name of an emoji without skin tone, and by its usual alias."""
    name = _SKIN.sub("", emoji.strip(":"))
    return ALIASES.get(name, name)
