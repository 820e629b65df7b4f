"""Slack's payloads, a model for each kind. Pure.

A field of another type, null or missing is empty, as is an object around it: Slack adds fields and
kinds of channels, and none of that may drop a payload. Only the fields of type `Required` have to
be there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import Annotated, Any, Final

from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    InstanceOf,
    StringConstraints,
    ValidationError,
)
from pydantic_core import CoreSchema, core_schema

from draftsman.jobs.requests.invocation import FileRef
from draftsman_bots.slack import ids
from draftsman_bots.slack.deliveries.mrkdwn import unescape
from draftsman_bots.slack.people.user import SlackUser
from draftsman_bots.slack.transport.payload_kind import PayloadKind

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


# Types of fields.


@dataclass(frozen=True, slots=True)
class _Else:
    """Replaces an invalid value by that of `make`; without it, drops the item of a list."""

    make: Callable[[], Any] | None = None

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        if self.make is None:
            return core_schema.with_default_schema(handler(source), on_error="omit")
        return core_schema.with_default_schema(
            handler(source), default_factory=self.make, on_error="default"
        )


def _none() -> None:
    return None


Required = Annotated[str, StringConstraints(strict=True, min_length=1)]
Text = Annotated[InstanceOf[str], _Else(str)]
Flag = Annotated[InstanceOf[bool] | None, _Else(_none)]
Objects = Annotated[list[Annotated[InstanceOf[dict[str, Any]], _Else()]], _Else(list)]


def at(*paths: str, default: Any = "") -> Any:
    """Return the field at the first of these paths that the payload has."""
    aliases = [AliasPath(*_names(path)) for path in paths]  # type: ignore[arg-type]
    return Field(default, validation_alias=AliasChoices(*aliases))


def _names(path: str) -> list[str | int]:
    return [int(name) if name.isdigit() else name for name in path.split(".")]


class Model(BaseModel):
    """An object of Slack."""

    model_config = ConfigDict(frozen=True)


# Files.


MAX_FILES: Final = 100
LINK: Final = "it is a link to another service, not a file in Slack"
UNAVAILABLE: Final = {
    "external": LINK,
    "tombstone": "it was deleted",
    "hidden_by_limit": "Slack hides it: the workspace is over the limit of its plan",
    "access_denied": "the app may not see it",
}
"""Modes of files without content for the app, and the reason for each."""


class SlackFile(Model):
    """A file, as a message or `files.info` describes it."""

    id: Text = ""
    name: Text = ""
    title: Text = ""
    mimetype: Text = ""
    size: Annotated[Annotated[int, Field(strict=True, gt=0)] | None, _Else(_none)] = None
    """Bytes, as Slack says."""
    mode: Text = ""
    file_access: Text = ""
    is_external: Flag = None
    url: Text = at("url_private_download", "url_private")

    @property
    def unavailable(self) -> str | None:
        """Why it has no content for the app; None if it may have some."""
        if self.is_external:
            return LINK
        return UNAVAILABLE.get(self.mode) or UNAVAILABLE.get(self.file_access)

    @property
    def ref(self) -> FileRef:
        """The file of a request."""
        return FileRef(
            reference={"file": self.id[:100]},
            name=(self.name or self.title or self.id)[:1000],
            media_type=self.mimetype[:200] or None,
            size=self.size,
            reason=self.unavailable,
        )


# Messages.


HUMAN: Final = frozenset({"", "file_share", "thread_broadcast", "me_message"})
"""Subtypes of messages that people write."""


class SlackMessage(Model):
    """A message, as an event or `conversations.replies` has it."""

    user: Text = ""
    username: Text = ""
    subtype: Text = ""
    ts: Text = ""
    thread: Text = at("thread_ts")
    text: Text = ""
    user_team: Text = ""
    source_team: Text = ""
    own_team: Text = at("team")
    parent: Text = at("parent_user_id")
    edited: Text = at("edited.ts")
    bot: Any = at("bot_id", "bot_profile", default=None)
    slack_files: Annotated[list[Annotated[SlackFile, _Else()]], _Else(list)] = at(
        "files", default=()
    )

    @property
    def team(self) -> str:
        """The workspace of the author."""
        return self.user_team or self.source_team or self.own_team

    @property
    def files(self) -> tuple[FileRef, ...]:
        """Its files, in order."""
        return tuple(file.ref for file in self.slack_files if file.id)[:MAX_FILES]

    def is_by_person(self, bot: str) -> bool:
        """Return whether neither Slack nor a bot wrote it."""
        is_bot = self.bot or self.user in ("", "USLACKBOT", bot)
        return not is_bot and self.subtype in HUMAN


# Who sent a payload, and to which installation.


class Authorization(Model):
    """An installation of the app that an event was sent to."""

    team_id: Text = ""
    enterprise_id: Text = ""
    user_id: Text = ""
    is_bot: Flag = None
    is_enterprise_install: Flag = None


class Payload(Model):
    """The workspaces and organizations of a payload.

    `team_id` and `enterprise_id` are a pair, as are `team` and `org`; the kind of payload decides
    which workspace they name (bolt-python's tests of its request internals have captures).
    """

    team_id: Text = ""
    enterprise_id: Text = ""
    team: Text = at("team.id", "team")
    team_org: Text = at("team.enterprise_id")
    enterprise: Text = at("enterprise.id")
    view_team: Text = at("view.app_installed_team_id")
    authorization: Annotated[Authorization | None, _Else(_none)] = at(
        "authorizations.0", default=None
    )

    @property
    def workspace(self) -> str:
        """The workspace, or its organization if there is no workspace."""
        return self.team_id or self.team or self.enterprise_id or self.enterprise or self.team_org

    @property
    def installation(self) -> str:
        """The installation of an event; a message of a shared channel may name others."""
        first = self.authorization
        if first is None:
            return ""
        if first.is_enterprise_install:
            return first.enterprise_id
        return first.team_id or first.enterprise_id

    def user_of(self, id: str, name: str = "", *, team: str, **fields: Any) -> SlackUser:
        """Return a user whose workspace is `team`, as the payload shows it."""
        first = self.authorization
        enterprise = self.enterprise_id or self.enterprise or self.team_org
        org = ""
        if team and team == self.team_id:
            org = self.enterprise_id
        if team and team == self.team:
            org = org or self.team_org or self.enterprise
        return SlackUser(
            id=id,
            name=name,
            team=team,
            app_team=self.view_team or self.installation or self.workspace,
            enterprise=enterprise if first is None else first.enterprise_id,
            org=org,
            **fields,
        )


# Commands and interactions.


@dataclass(frozen=True, slots=True)
class ReplyTarget:
    """The user, and where to reply; `channel` is "" in a view."""

    user: str
    channel: str = ""
    thread: str = ""
    response_url: str = ""


class Interaction(Payload):
    """What a user did in Slack, other than writing a message.

    Outside of messages `channel`, `ts` and `thread` are "".
    """

    user_id: Required = at("user.id", default=...)
    user_name: Text = at("user.username", "user.name")
    user_team: Text = at("user.team_id")
    channel: Text = at("container.channel_id", "channel.id")
    ts: Text = at("container.message_ts", "message.ts")
    thread: Text = at("container.thread_ts", "message.thread_ts")
    trigger_id: Text = ""
    response_url: Text = ""

    @cached_property
    def user(self) -> SlackUser:
        """Its user."""
        return self.user_of(self.user_id, self.user_name, team=self.user_team, channel=self.channel)

    @property
    def reply_target(self) -> ReplyTarget:
        """Where to reply to its user."""
        return ReplyTarget(self.user_id, self.channel, self.thread, self.response_url)

    @property
    def key(self) -> str:
        """The idempotency key."""
        return ids.trigger_key(self.trigger_id or repr(self))


class SlashCommand(Interaction):
    """A slash command."""

    command: Required
    user_id: Required
    user_name: Text = ""
    user_team: Text = at("team_id")
    channel: Required = at("channel_id", default=...)
    text: Text = ""


class BlockAction(Interaction):
    """A button or a select, in a message or in a view."""

    action: Required = at("actions.0.action_id", "actions.0.name", default=...)
    value: Text = at(
        "actions.0.selected_option.value", "actions.0.value", "actions.0.selected_user"
    )
    block: Text = at("actions.0.block_id")
    """The id of its block."""
    action_ts: Text = at("actions.0.action_ts")
    view_id: Text = at("container.view_id", "view.id")
    text: Text = at("message.text")
    blocks: Objects = at("message.blocks", default=())
    """The blocks of the message at that time."""
    is_ephemeral: Flag = at("container.is_ephemeral", default=None)

    @property
    def kind(self) -> str:
        """The kind of the control."""
        return self.action.partition(":")[0]

    @property
    def key(self) -> str:
        """The idempotency key."""
        return ids.action_key(self.channel, self.ts or self.view_id, self.user_id, self.action_ts)

    @property
    def is_editable(self) -> bool:
        """Whether its message can be edited: it is none of a view, and not ephemeral."""
        return bool(self.channel and self.ts and self.blocks and not self.is_ephemeral)


class _Option(Model):
    """An option of a select."""

    value: Text = ""


class _Input(Model):
    """An input of a modal."""

    value: Text = at("value", "selected_option.value")
    selected_options: Annotated[list[_Option] | None, _Else(_none)] = None

    @property
    def text(self) -> str:
        """The text or choice; several choices are separated by commas."""
        if self.selected_options is None:
            return self.value
        return ",".join(option.value for option in self.selected_options)


class ViewSubmission(Interaction):
    """A modal that was submitted, or closed."""

    view_id: Required = at("view.id", default=...)
    view_type: Required = at("view.type", default=...)
    callback: Text = at("view.callback_id")
    metadata: Text = at("view.private_metadata")
    state: Annotated[dict[str, Annotated[dict[str, _Input], _Else(dict)]], _Else(dict)] = at(
        "view.state.values", default={}
    )

    @cached_property
    def values(self) -> dict[str, str]:
        """The texts and choices of the inputs, by block; a block has one input."""
        return {
            block: next((entered.text for entered in inputs.values()), "")
            for block, inputs in self.state.items()
        }

    @property
    def key(self) -> str:
        """The idempotency key."""
        return ids.view_key(self.view_id)


class Shortcut(Interaction):
    """A global shortcut, or a shortcut of a message."""

    callback: Required = at("callback_id", default=...)
    message_text: Text = at("message.text")

    @property
    def text(self) -> str:
        """The text of the message, if any."""
        return readable_text(self.message_text)


class OptionsRequest(Interaction):
    """The text query into an external select; `block` is its block id."""

    block: Text = at("block_id")
    query: Text = at("value")


PAYLOAD: Final = "draftsman_payload"
"""Where Bolt's context has the parsed payload."""
_MODELS: Final[dict[PayloadKind, type[Interaction]]] = {
    PayloadKind.COMMAND: SlashCommand,
    PayloadKind.ACTION: BlockAction,
    PayloadKind.OPTIONS: OptionsRequest,
    PayloadKind.VIEW: ViewSubmission,
    PayloadKind.VIEW_CLOSED: ViewSubmission,
    PayloadKind.SHORTCUT: Shortcut,
}


class MissingField(Exception):
    """A payload lacks a required field, or has it in another type."""


def parse_interaction(kind: PayloadKind, body: dict[str, Any]) -> Interaction:
    """Parse a command or an interaction; raises MissingField."""
    try:
        return _MODELS[kind].model_validate(body)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise MissingField(f"without {'.'.join(map(str, first['loc']))}") from None


# Events.


class EventPayload(Payload):
    """An event."""

    type: Text = at("event.type")
    user_id: Text = at("event.user")
    channel: Text = at("event.channel")
    is_shared: Flag = at("is_ext_shared_channel", default=None)
    """Whether another organization shares the channel; None if the event does not say so."""


class OpenedTab(EventPayload):
    """A tab that a user opened: the App Home, or the conversation with the agent."""

    user_id: Text = at("event.assistant_thread.user_id", "event.user")
    channel: Text = at("event.assistant_thread.channel_id", "event.channel")
    thread: Text = at("event.assistant_thread.thread_ts")
    tab: Text = at("event.tab")
    user_team: Text = at("event.view.team_id")

    @property
    def user(self) -> SlackUser:
        """Its user."""
        return self.user_of(self.user_id, team=self.user_team)


class MessageChange(StrEnum):
    """The change that a message event reports."""

    POSTED = "posted"
    EDITED = "edited"
    DELETED = "deleted"


_NO_MESSAGE: Final = SlackMessage()
_SomeMessage = Annotated[SlackMessage, _Else(SlackMessage)]


class _MessagePayload(EventPayload):
    """The event of a message or a mention."""

    channel_type: Text = at("event.channel_type")
    deleted_ts: Text = at("event.deleted_ts")
    event: _SomeMessage = _NO_MESSAGE
    new: _SomeMessage = at("event.message", default=_NO_MESSAGE)
    old: _SomeMessage = at("event.previous_message", default=_NO_MESSAGE)

    def changed(self) -> tuple[SlackMessage, MessageChange] | None:
        """Return the message and its change; None if its text has not changed.

        Slack also reports unfurled links and the bot's own updates as changes.
        """
        if self.event.subtype == "message_changed":
            is_edited = bool(self.new.edited) and self.new.text != self.old.text
            return (self.new, MessageChange.EDITED) if is_edited else None
        if self.event.subtype == "message_deleted":
            ts = self.old.ts or self.deleted_ts
            return self.old.model_copy(update={"ts": ts}), MessageChange.DELETED
        # an edited mention is delivered as a mention again (bolt-js issue 960)
        is_edited = self.type == "app_mention" and bool(self.event.edited)
        return self.event, MessageChange.EDITED if is_edited else MessageChange.POSTED


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

    @property
    def reply_target(self) -> ReplyTarget:
        """Where to reply to its author."""
        return ReplyTarget(self.user.id, self.channel, self.thread)


def parse_message(body: dict[str, Any], bot: str) -> MessageEvent | None:
    """Parse a message or a mention; None if a bot or Slack wrote it.

    `bot` is the bot's own user id, "" if only the event names it.
    """
    payload = _MessagePayload.model_validate(body)
    authorization = payload.authorization
    if not bot and authorization is not None and authorization.is_bot:
        bot = authorization.user_id
    if (changed := payload.changed()) is None:
        return None
    message, change = changed
    if not message.is_by_person(bot) or not payload.channel or not message.ts:
        return None
    mention = _mention_of(bot) if bot else None
    text = message.text
    return MessageEvent(
        change=change,
        user=payload.user_of(
            message.user,
            team=message.team or payload.event.team,
            is_internal_channel=None if payload.is_shared is None else not payload.is_shared,
            channel=payload.channel,
        ),
        workspace=payload.installation or payload.workspace,
        channel=payload.channel,
        ts=message.ts,
        thread="" if message.thread == message.ts else message.thread,
        text=readable_text(mention.sub("", text, count=1) if mention else text).strip(),
        mentioned=payload.type == "app_mention" or bool(mention and mention.search(text)),
        private=payload.channel_type == "im" or payload.channel.startswith("D"),
        files=message.files,
        parent=message.parent,
        edited=message.edited,
    )


@lru_cache(maxsize=16)
def _mention_of(bot: str) -> re.Pattern[str]:
    return re.compile(rf"<@{re.escape(bot)}(?:\|[^<>]*)?>[:,]?[^\S\n]*")
