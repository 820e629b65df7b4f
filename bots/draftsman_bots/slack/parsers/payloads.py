"""Parsers of Slack's payloads. Pure, and no payload raises.

Any field may be missing, null or of another type: an unreadable payload is None, a field "".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from draftsman_bots.slack import ids
from draftsman_bots.slack.mrkdwn import unescape
from draftsman_bots.slack.parsers.users import SlackUser as SlackUser

_URL: Final = re.compile(r"<((?:https?|ssh|git|mailto):[^<>|\s]*)(?:\|([^<>]*))?>")
_MENTION: Final = re.compile(r"<([@#])[A-Z0-9]+\|([^<>|]+)>")
HUMAN: Final = frozenset({"", "file_share", "thread_broadcast", "me_message"})
"""Subtypes of messages that people write."""


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """A slash command and its author."""

    user: SlackUser
    workspace: str
    """The workspace, or the organization if there is no workspace."""
    channel: str
    text: str
    key: str
    trigger_id: str
    response_url: str = ""


class MessageChange(StrEnum):
    """The change that a message event reports."""

    POSTED = "posted"
    EDITED = "edited"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class MessageEvent:
    """A message that a person posted, edited or deleted. `thread` is "" outside of threads."""

    change: MessageChange
    user: SlackUser
    workspace: str
    channel: str
    ts: str
    thread: str
    text: str
    mentioned: bool
    private: bool
    """Whether it is in a direct conversation with the bot."""
    files: bool = False
    parent: str = ""
    """Author of the thread's first message; "" if unknown."""

    @property
    def key(self) -> str:
        """The idempotency key, the same for all copies, edits and the deletion."""
        return ids.message_key(self.workspace, self.channel, self.ts)


@dataclass(frozen=True, slots=True)
class BlockAction:
    """A button or a select, in a message or in a view."""

    user: SlackUser
    channel: str
    ts: str
    """The ts of the message; "" in a view."""
    thread: str
    action: str
    value: str
    key: str
    trigger_id: str
    response_url: str
    message: dict[str, Any] | None = None
    """The message at that time; None for an ephemeral message."""


@dataclass(frozen=True, slots=True)
class ViewSubmission:
    """A submitted modal; `values` are the texts and choices of its inputs, by block."""

    user: SlackUser
    workspace: str
    callback: str
    metadata: str
    values: dict[str, str]
    key: str


@dataclass(frozen=True, slots=True)
class Shortcut:
    """A global shortcut, or a shortcut of a message."""

    user: SlackUser
    workspace: str
    callback: str
    trigger_id: str
    channel: str = ""
    ts: str = ""
    thread: str = ""
    text: str = ""
    response_url: str = ""


@dataclass(frozen=True, slots=True)
class OptionsRequest:
    """The text query into an external select; `block` is its block id."""

    user: SlackUser
    block: str
    query: str


def parse_slash_command(body: object) -> SlashCommand | None:
    """Parse a slash command."""
    data = mapping(body)
    user = _who(data, text(data, "user_id"), text(data, "user_name"), team=text(data, "team_id"))
    user = replace(user, channel=text(data, "channel_id"))
    if not user.id or not user.channel:
        return None
    details = "\n".join(f"{name}={data[name]}" for name in sorted(data, key=str))
    key = ids.trigger_key(text(data, "trigger_id"), details)
    command_text = text(data, "text")
    channel, trigger = text(data, "channel_id"), text(data, "trigger_id")
    respond = text(data, "response_url")
    return SlashCommand(user, _home(data), channel, command_text, key, trigger, respond)


def parse_message(body: object, bot: str) -> MessageEvent | None:
    """Parse a message or a mention; None if a bot or Slack wrote it.

    `bot` is the bot's own user id, "" if only the event names it. Only edits of the text count as
    edits, not unfurled links or the bot's own updates.
    """
    data = mapping(body)
    event = mapping(data.get("event"))
    authorization = _authorized(data)
    bot = bot or (text(authorization, "user_id") if authorization.get("is_bot") is True else "")
    kind = text(event, "subtype")
    if kind == "message_changed":
        new, old = mapping(event.get("message")), mapping(event.get("previous_message"))
        edited = bool(mapping(new.get("edited"))) and text(new, "text") != text(old, "text")
        return _message(data, event, new, MessageChange.EDITED, bot) if edited else None
    if kind == "message_deleted":
        old = {"ts": event.get("deleted_ts")} | mapping(event.get("previous_message"))
        return _message(data, event, old, MessageChange.DELETED, bot)
    # an edited mention is delivered as a mention again (bolt-js issue 960)
    edited_mention = text(event, "type") == "app_mention" and mapping(event.get("edited"))
    return _message(
        data, event, event, MessageChange.EDITED if edited_mention else MessageChange.POSTED, bot
    )


def parse_block_action(body: object) -> BlockAction | None:
    """Parse a block action."""
    data = mapping(body)
    actions = data.get("actions")
    action = mapping(actions[0]) if isinstance(actions, list) and actions else {}
    user = _person(data)
    if not user.id or not text(action, "action_id"):
        return None
    container, message = mapping(data.get("container")), mapping(data.get("message"))
    channel = text(container, "channel_id") or text(mapping(data.get("channel")), "id")
    ts = text(container, "message_ts") or text(message, "ts")
    chosen = text(mapping(action.get("selected_option")), "value")
    container_id = ts or text(container, "view_id") or text(mapping(data.get("view")), "id")
    return BlockAction(
        user,
        channel,
        ts,
        text(container, "thread_ts") or text(message, "thread_ts"),
        text(action, "action_id"),
        chosen or text(action, "value"),
        ids.action_key(channel, container_id, user.id, text(action, "action_ts")),
        text(data, "trigger_id"),
        text(data, "response_url"),
        None if not message or container.get("is_ephemeral") is True else message,
    )


def parse_view_submission(body: object) -> ViewSubmission | None:
    """Parse a submitted modal."""
    data = mapping(body)
    view = mapping(data.get("view"))
    user = _person(data)
    if not user.id or not text(view, "id"):
        return None
    state = mapping(mapping(view.get("state")).get("values"))
    values = {str(block): _entered(mapping(inputs)) for block, inputs in state.items()}
    callback, metadata = text(view, "callback_id"), text(view, "private_metadata")
    return ViewSubmission(
        user, _home(data), callback, metadata, values, ids.view_key(text(view, "id"))
    )


def parse_shortcut(body: object) -> Shortcut | None:
    """Parse a shortcut, global or of a message."""
    data = mapping(body)
    user = _person(data)
    if not user.id or not text(data, "callback_id"):
        return None
    message = mapping(data.get("message"))
    return Shortcut(
        user,
        _home(data),
        text(data, "callback_id"),
        text(data, "trigger_id"),
        text(mapping(data.get("channel")), "id"),
        text(message, "ts"),
        text(message, "thread_ts"),
        readable_text(text(message, "text")),
        text(data, "response_url"),
    )


def parse_options_request(body: object) -> OptionsRequest | None:
    """Parse the options request of an external select."""
    data = mapping(body)
    user = _person(data)
    if not user.id:
        return None
    return OptionsRequest(user, text(data, "block_id"), text(data, "value"))


def parse_home_opened(body: object) -> SlackUser | None:
    """Return the user who opened the Home tab of the app."""
    data = mapping(body)
    event = mapping(data.get("event"))
    if text(event, "tab") not in ("", "home") or not text(event, "user"):
        return None
    return _who(data, text(event, "user"), team=text(mapping(event.get("view")), "team_id"))


def readable_text(incoming: str) -> str:
    """Return incoming text as its author sees it: links expanded, unescaped once."""
    expanded = _MENTION.sub(r"\1\2", _URL.sub(_link, incoming))
    return unescape(expanded)


def mapping(value: object) -> dict[str, Any]:
    """Return the value if it is an object, else an empty object."""
    return value if isinstance(value, dict) else {}


def text(data: dict[str, Any], name: str) -> str:
    """Return a field if it is a string, else ""."""
    value = data.get(name)
    return value if isinstance(value, str) else ""


def _message(
    data: dict[str, Any],
    event: dict[str, Any],
    message: dict[str, Any],
    change: MessageChange,
    bot: str,
) -> MessageEvent | None:
    person = text(message, "user")
    is_bot = message.get("bot_id") or message.get("bot_profile") or person in ("USLACKBOT", bot)
    if is_bot or not person or text(message, "subtype") not in HUMAN:
        return None
    channel, ts = text(event, "channel"), text(message, "ts")
    if not channel or not ts:
        return None
    thread = text(message, "thread_ts")
    raw_text = text(message, "text")
    mention = re.compile(rf"<@{re.escape(bot)}(?:\|[^<>]*)?>[:,]?[^\S\n]*") if bot else None
    mentioned = text(event, "type") == "app_mention" or bool(mention and mention.search(raw_text))
    team = _team(message) or _team(event)
    shared = data.get("is_ext_shared_channel")
    user = _who(data, person, team=team, channel=channel)
    return MessageEvent(
        change,
        replace(user, is_internal_channel=not shared if isinstance(shared, bool) else None),
        _installed(data) or _home(data),
        channel,
        ts,
        "" if thread == ts else thread,
        readable_text(mention.sub("", raw_text, count=1) if mention else raw_text).strip(),
        mentioned,
        text(event, "channel_type") == "im" or channel.startswith("D"),
        bool(message.get("files")),
        text(message, "parent_user_id"),
    )


def _home(data: dict[str, Any]) -> str:
    """Return the workspace of a payload, or its organization if there is no workspace."""
    team, org = mapping(data.get("team")), mapping(data.get("enterprise"))
    workspace = text(data, "team_id") or text(team, "id") or text(data, "team")
    return (
        workspace or text(data, "enterprise_id") or text(org, "id") or text(team, "enterprise_id")
    )


def _app_team(data: dict[str, Any]) -> str:
    """Return the workspace of the app's installation that this was sent to."""
    view = text(mapping(data.get("view")), "app_installed_team_id")
    return view or _installed(data) or _home(data)


def _installed(data: dict[str, Any]) -> str:
    """Return an event's installation; a message of a shared channel may name others."""
    first = _authorized(data)
    org = text(first, "enterprise_id")
    return org if first.get("is_enterprise_install") is True else text(first, "team_id") or org


def _authorized(data: dict[str, Any]) -> dict[str, Any]:
    """Return the first authorization of an event."""
    authorizations = data.get("authorizations")
    return mapping(authorizations[0]) if isinstance(authorizations, list) and authorizations else {}


def _person(data: dict[str, Any]) -> SlackUser:
    user = mapping(data.get("user"))
    name = text(user, "username") or text(user, "name")
    container = mapping(data.get("container"))
    channel = text(container, "channel_id") or text(mapping(data.get("channel")), "id")
    return _who(data, text(user, "id"), name, team=text(user, "team_id"), channel=channel)


def _who(
    data: dict[str, Any], person: str, name: str = "", *, team: str = "", channel: str = ""
) -> SlackUser:
    enterprise, org = _organizations(data, team)
    return SlackUser(person, name, team, _app_team(data), enterprise, org, channel=channel)


def _organizations(data: dict[str, Any], team: str) -> tuple[str, str]:
    """Return the organizations of the installation, and of the user's workspace.

    `team_id` and `enterprise_id` are a pair, as are the two fields of `team`; the kind of payload
    decides which workspace they name (bolt-python's tests of its request internals have captures).
    """
    first, inner = _authorized(data), mapping(data.get("team"))
    enterprise = text(mapping(data.get("enterprise")), "id")
    pairs = (
        (text(data, "team_id"), text(data, "enterprise_id")),
        (text(inner, "id"), text(inner, "enterprise_id") or enterprise),
    )
    org = (
        next((other for workspace, other in pairs if workspace == team and other), "")
        if team
        else ""
    )
    if first:
        return text(first, "enterprise_id"), org
    return text(data, "enterprise_id") or enterprise or text(inner, "enterprise_id"), org


def _team(message: dict[str, Any]) -> str:
    return text(message, "user_team") or text(message, "source_team") or text(message, "team")


def _entered(inputs: dict[str, Any]) -> str:
    """Return the value of a block's only input."""
    for element in inputs.values():
        value = mapping(element)
        return text(value, "value") or text(mapping(value.get("selected_option")), "value")
    return ""


def _link(match: re.Match[str]) -> str:
    address, label = match[1].removeprefix("mailto:"), match[2]
    if not label or label in address:
        return address
    return f"{label} ({address})"
