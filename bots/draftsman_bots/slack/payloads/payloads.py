"""Parsers of Slack's payloads. Pure, and no payload raises.

Any field may be missing, null or of another type: an unreadable payload is None, a field "".
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

from draftsman.jobs.requests.invocation import FileRef
from draftsman_bots.json_fields import mapping, nested, objects, string
from draftsman_bots.slack import ids
from draftsman_bots.slack.deliveries.mrkdwn import unescape

# Incoming text as its author sees it.


_URL: Final = re.compile(r"<((?:https?|ssh|git|mailto):[^<>|\s]*)(?:\|([^<>]*))?>")
_MENTION: Final = re.compile(r"<([@#])[A-Z0-9]+\|([^<>|]+)>")


def readable_text(incoming: str) -> str:
    """Return incoming text as its author sees it: links expanded, unescaped once."""
    expanded = _MENTION.sub(r"\1\2", _URL.sub(_link, incoming))
    return unescape(expanded)


def _link(match: re.Match[str]) -> str:
    address = match[1].removeprefix("mailto:")
    label = match[2]
    if not label or label in address:
        return address
    return f"{label} ({address})"


# Slack users, and whether they belong to the company.


class UserOrigin(StrEnum):
    """A user's origin, as far as a payload shows it."""

    HOME = "home"
    UNSURE = "unsure"
    """In a workspace that may belong to the organization."""
    ELSEWHERE = "elsewhere"


@dataclass(frozen=True, slots=True)
class SlackUser:
    """A user of the workspace `team`, in the workspace `app_team`, which has the app.

    Each field is "" if the payload does not contain it.
    """

    id: str
    name: str = ""
    team: str = ""
    app_team: str = ""
    enterprise: str = ""
    """The organization of the workspace that has the app."""
    org: str = ""
    """The organization of the user's own workspace."""
    is_internal_channel: bool | None = None
    """Whether this is a channel that no other organization shares."""
    channel: str = ""

    def origin(self, home: str | None, org: str | None = None) -> UserOrigin:
        """Return the user's origin; `home` is the home workspace, if it is known.

        `org` is its organization, "" if it has none; unknown values come from the payload. All
        workspaces of an organization share user ids.
        """
        home_team = home or self.app_team
        org = self.enterprise if org is None else org
        org = org or (home_team if home_team.startswith("E") else "")
        if not self.team or not home_team or self.team in (home_team, org):
            return UserOrigin.HOME
        if not org:
            return UserOrigin.ELSEWHERE
        if self.org == org or self.is_internal_channel:
            return UserOrigin.HOME
        return UserOrigin.ELSEWHERE if self.org or self.team.startswith("E") else UserOrigin.UNSURE

    def is_stranger(
        self, home: str | None, org: str | None = None, colleagues: Collection[str] = ()
    ) -> bool:
        """Return whether the user belongs to another company.

        `colleagues` are workspaces, and users as `U…@T…`, that are verified. An installation for a
        whole organization is assumed to meet only its own users.
        """
        origin = self.origin(home, org)
        if origin is not UserOrigin.UNSURE:
            return origin is UserOrigin.ELSEWHERE
        is_colleague = self.team in colleagues or f"{self.id}@{self.team}" in colleagues
        return not is_colleague and not (home or self.app_team).startswith("E")

    def account(
        self, home: str | None, org: str | None = None, colleagues: Collection[str] = ()
    ) -> str:
        """Return the account: the id, for an external user followed by `@` and the workspace.

        Ids are unique only within an organization: elsewhere the same id is another person.
        """
        stranger = self.is_stranger(home, org, colleagues)
        return f"{self.id}@{self.team}" if stranger else self.id


# Parsers of Slack's file objects. Pure, and no object raises.


MAX_PARSED: Final = 100
LINK: Final = "it is a link to another service, not a file in Slack"
UNAVAILABLE: Final = {
    "external": LINK,
    "tombstone": "it was deleted",
    "hidden_by_limit": "Slack hides it: the workspace is over the limit of its plan",
    "access_denied": "the app may not see it",
}
"""Modes of files without content for the app, and the reason for each."""


def parse_files(message: object) -> tuple[FileRef, ...]:
    """Return the files of a message, in order."""
    files = [file for file in objects(message, "files") if string(file, "id")]
    return tuple(_file_ref(file) for file in files[:MAX_PARSED])


def unavailable(file: object) -> str | None:
    """Return why a file has no content for the app; None if it may have some."""
    if isinstance(file, dict) and file.get("is_external") is True:
        return LINK
    return UNAVAILABLE.get(string(file, "mode")) or UNAVAILABLE.get(string(file, "file_access"))


def size_of(file: dict[str, Any]) -> int | None:
    """Return the bytes of a file as Slack says."""
    size = file.get("size")
    return size if isinstance(size, int) and not isinstance(size, bool) and size > 0 else None


def _file_ref(file: dict[str, Any]) -> FileRef:
    name = string(file, "name") or string(file, "title") or string(file, "id")
    return FileRef(
        reference={"file": string(file, "id")[:100]},
        name=name[:1000],
        media_type=string(file, "mimetype")[:200] or None,
        size=size_of(file),
        reason=unavailable(file),
    )


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
    files: tuple[FileRef, ...] = ()
    parent: str = ""
    """Author of the thread's first message; "" if unknown."""
    edited: str = ""
    """The ts of the edit."""

    @property
    def key(self) -> str:
        """The idempotency key, the same for all copies, edits and the deletion."""
        return ids.message_key(self.workspace, self.channel, self.ts)

    @property
    def version(self) -> str:
        """The idempotency key of an edit; "" for a message that was posted."""
        return f"{self.key}:{self.edited}" if self.edited else ""


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
    block: str = ""
    """The id of its block."""


@dataclass(frozen=True, slots=True)
class ViewSubmission:
    """A submitted modal; `values` are the texts and choices of its inputs, by block.

    Several choices are separated by commas.
    """

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
    user = _slack_user(
        data,
        string(data, "user_id"),
        string(data, "user_name"),
        team=string(data, "team_id"),
        channel=string(data, "channel_id"),
    )
    if not user.id or not user.channel:
        return None
    details = "\n".join(f"{name}={data[name]}" for name in sorted(data, key=str))
    key = ids.trigger_key(string(data, "trigger_id"), details)
    return SlashCommand(
        user=user,
        workspace=_home(data),
        channel=user.channel,
        text=string(data, "text"),
        key=key,
        trigger_id=string(data, "trigger_id"),
        response_url=string(data, "response_url"),
    )


def parse_message(body: object, bot: str) -> MessageEvent | None:
    """Parse a message or a mention; None if a bot or Slack wrote it.

    `bot` is the bot's own user id, "" if only the event names it. Only edits of the text count as
    edits, not unfurled links or the bot's own updates.
    """
    data = mapping(body)
    event = nested(data, "event")
    authorization = _authorized(data)
    bot = bot or (string(authorization, "user_id") if authorization.get("is_bot") is True else "")
    kind = string(event, "subtype")
    if kind == "message_changed":
        new = nested(event, "message")
        old = nested(event, "previous_message")
        edited = bool(nested(new, "edited")) and string(new, "text") != string(old, "text")
        return _message(data, event, new, MessageChange.EDITED, bot) if edited else None
    if kind == "message_deleted":
        old = {"ts": event.get("deleted_ts")} | nested(event, "previous_message")
        return _message(data, event, old, MessageChange.DELETED, bot)
    # an edited mention is delivered as a mention again (bolt-js issue 960)
    edited_mention = string(event, "type") == "app_mention" and nested(event, "edited")
    return _message(
        data, event, event, MessageChange.EDITED if edited_mention else MessageChange.POSTED, bot
    )


def parse_block_action(body: object) -> BlockAction | None:
    """Parse a block action."""
    data = mapping(body)
    action = _first(data, "actions")
    user = _interacting_user(data)
    if not user.id or not string(action, "action_id"):
        return None
    container = nested(data, "container")
    message = nested(data, "message")
    channel = string(container, "channel_id") or string(nested(data, "channel"), "id")
    ts = string(container, "message_ts") or string(message, "ts")
    selected = string(nested(action, "selected_option"), "value")
    container_id = ts or string(container, "view_id") or string(nested(data, "view"), "id")
    return BlockAction(
        user=user,
        channel=channel,
        ts=ts,
        thread=string(container, "thread_ts") or string(message, "thread_ts"),
        action=string(action, "action_id"),
        value=selected or string(action, "value") or string(action, "selected_user"),
        key=ids.action_key(channel, container_id, user.id, string(action, "action_ts")),
        trigger_id=string(data, "trigger_id"),
        response_url=string(data, "response_url"),
        message=None if not message or container.get("is_ephemeral") is True else message,
        block=string(action, "block_id"),
    )


def parse_view_submission(body: object) -> ViewSubmission | None:
    """Parse a submitted modal."""
    data = mapping(body)
    view = nested(data, "view")
    user = _interacting_user(data)
    if not user.id or not string(view, "id"):
        return None
    state = nested(view, "state", "values")
    values = {str(block): _entered(mapping(inputs)) for block, inputs in state.items()}
    return ViewSubmission(
        user=user,
        workspace=_home(data),
        callback=string(view, "callback_id"),
        metadata=string(view, "private_metadata"),
        values=values,
        key=ids.view_key(string(view, "id")),
    )


def parse_shortcut(body: object) -> Shortcut | None:
    """Parse a shortcut, global or of a message."""
    data = mapping(body)
    user = _interacting_user(data)
    if not user.id or not string(data, "callback_id"):
        return None
    message = nested(data, "message")
    return Shortcut(
        user=user,
        workspace=_home(data),
        callback=string(data, "callback_id"),
        trigger_id=string(data, "trigger_id"),
        channel=string(nested(data, "channel"), "id"),
        ts=string(message, "ts"),
        thread=string(message, "thread_ts"),
        text=readable_text(string(message, "text")),
        response_url=string(data, "response_url"),
    )


def parse_options_request(body: object) -> OptionsRequest | None:
    """Parse the options request of an external select."""
    data = mapping(body)
    user = _interacting_user(data)
    if not user.id:
        return None
    return OptionsRequest(user, string(data, "block_id"), string(data, "value"))


def parse_home_opened(body: object) -> SlackUser | None:
    """Return the user who opened the Home tab of the app."""
    data = mapping(body)
    event = nested(data, "event")
    if string(event, "tab") not in ("", "home") or not string(event, "user"):
        return None
    return _slack_user(data, string(event, "user"), team=string(nested(event, "view"), "team_id"))


def _message(
    data: dict[str, Any],
    event: dict[str, Any],
    message: dict[str, Any],
    change: MessageChange,
    bot: str,
) -> MessageEvent | None:
    user_id = string(message, "user")
    is_bot = message.get("bot_id") or message.get("bot_profile") or user_id in ("USLACKBOT", bot)
    if is_bot or not user_id or string(message, "subtype") not in HUMAN:
        return None
    channel = string(event, "channel")
    ts = string(message, "ts")
    if not channel or not ts:
        return None
    thread = string(message, "thread_ts")
    raw_text = string(message, "text")
    mention = _mention_of(bot) if bot else None
    mentioned = string(event, "type") == "app_mention" or bool(mention and mention.search(raw_text))
    team = _team(message) or _team(event)
    shared = data.get("is_ext_shared_channel")
    user = _slack_user(data, user_id, team=team, channel=channel)
    return MessageEvent(
        change=change,
        user=replace(user, is_internal_channel=not shared if isinstance(shared, bool) else None),
        workspace=_installed(data) or _home(data),
        channel=channel,
        ts=ts,
        thread="" if thread == ts else thread,
        text=readable_text(mention.sub("", raw_text, count=1) if mention else raw_text).strip(),
        mentioned=mentioned,
        private=string(event, "channel_type") == "im" or channel.startswith("D"),
        files=parse_files(message),
        parent=string(message, "parent_user_id"),
        edited=string(nested(message, "edited"), "ts"),
    )


@lru_cache(maxsize=16)
def _mention_of(bot: str) -> re.Pattern[str]:
    return re.compile(rf"<@{re.escape(bot)}(?:\|[^<>]*)?>[:,]?[^\S\n]*")


def _home(data: dict[str, Any]) -> str:
    """Return the workspace of a payload, or its organization if there is no workspace."""
    team = nested(data, "team")
    org = nested(data, "enterprise")
    workspace = string(data, "team_id") or string(team, "id") or string(data, "team")
    org_id = string(data, "enterprise_id") or string(org, "id")
    return workspace or org_id or string(team, "enterprise_id")


def _app_team(data: dict[str, Any]) -> str:
    """Return the workspace of the app's installation that this was sent to."""
    view = string(nested(data, "view"), "app_installed_team_id")
    return view or _installed(data) or _home(data)


def _installed(data: dict[str, Any]) -> str:
    """Return an event's installation; a message of a shared channel may name others."""
    first = _authorized(data)
    org = string(first, "enterprise_id")
    return org if first.get("is_enterprise_install") is True else string(first, "team_id") or org


def _authorized(data: dict[str, Any]) -> dict[str, Any]:
    """Return the first authorization of an event."""
    return _first(data, "authorizations")


def _first(data: dict[str, Any], name: str) -> dict[str, Any]:
    value = data.get(name)
    return mapping(value[0]) if isinstance(value, list) and value else {}


def _interacting_user(data: dict[str, Any]) -> SlackUser:
    user = nested(data, "user")
    name = string(user, "username") or string(user, "name")
    container = nested(data, "container")
    channel = string(container, "channel_id") or string(nested(data, "channel"), "id")
    return _slack_user(
        data, string(user, "id"), name, team=string(user, "team_id"), channel=channel
    )


def _slack_user(
    data: dict[str, Any], user_id: str, name: str = "", *, team: str = "", channel: str = ""
) -> SlackUser:
    enterprise, org = _organizations(data, team)
    return SlackUser(
        id=user_id,
        name=name,
        team=team,
        app_team=_app_team(data),
        enterprise=enterprise,
        org=org,
        channel=channel,
    )


def _organizations(data: dict[str, Any], team: str) -> tuple[str, str]:
    """Return the organizations of the installation, and of the user's workspace.

    `team_id` and `enterprise_id` are a pair, as are the two fields of `team`; the kind of payload
    decides which workspace they name (bolt-python's tests of its request internals have captures).
    """
    first = _authorized(data)
    inner = nested(data, "team")
    enterprise = string(nested(data, "enterprise"), "id")
    pairs = (
        (string(data, "team_id"), string(data, "enterprise_id")),
        (string(inner, "id"), string(inner, "enterprise_id") or enterprise),
    )
    org = (
        next((other for workspace, other in pairs if workspace == team and other), "")
        if team
        else ""
    )
    if first:
        return string(first, "enterprise_id"), org
    return string(data, "enterprise_id") or enterprise or string(inner, "enterprise_id"), org


def _team(message: dict[str, Any]) -> str:
    return string(message, "user_team") or string(message, "source_team") or string(message, "team")


def _entered(inputs: dict[str, Any]) -> str:
    """Return the value of a block's only input."""
    for element in inputs.values():
        value = mapping(element)
        if isinstance(options := value.get("selected_options"), list):
            return ",".join(string(mapping(option), "value") for option in options)
        return string(value, "value") or string(nested(value, "selected_option"), "value")
    return ""
