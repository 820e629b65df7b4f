"""The state of a workspace: people, channels, messages, files, views, and its own clock."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from draftsman_testing.fake.server import ServerState

Json = dict[str, Any]
Kind = Literal["channel", "group", "im", "mpim"]

TRIGGER_LIFE: Final = 3.0
"""Seconds for which a trigger_id is valid."""
HOOK_LIFE: Final = 30 * 60.0
"""Seconds for which a response_url is valid."""
HOOK_USES: Final = 5
STATUS_LIFE: Final = 120.0
"""Seconds for which a thread shows a status."""
SCOPES: Final = frozenset({
    "commands", "chat:write", "app_mentions:read", "channels:history", "groups:history",
    "im:history", "mpim:history", "channels:read", "groups:read", "im:read", "mpim:read",
    "im:write", "mpim:write", "files:read", "files:write", "users:read", "users:read.email",
    "reactions:read", "reactions:write", "assistant:write",
})  # fmt: skip


@dataclass
class Channel:
    """A conversation. `members` includes the bot if it is a member."""

    id: str
    name: str
    kind: Kind
    members: set[str] = field(default_factory=set)
    archived: bool = False
    shared: bool = False
    messages: dict[str, Json] = field(default_factory=dict)
    """By ts, in order of creation."""

    @property
    def scope(self) -> str:
        """The prefix of its scopes."""
        return {"channel": "channels", "group": "groups"}.get(self.kind, self.kind)


@dataclass
class View:
    """A person's open modal, or the home tab."""

    user: str
    content: Json
    errors: dict[str, str] = field(default_factory=dict)
    """Errors of the last submission, by block."""


@dataclass
class Trigger:
    """An interaction, which lets the app open a modal once within its lifetime."""

    user: str
    born: float
    used: bool = False
    view: str | None = None
    """The modal of the interaction."""


@dataclass
class Hook:
    """A response_url."""

    user: str
    channel: str
    born: float
    ts: str | None = None
    """The message that it may replace; None for a command."""
    ephemeral: bool = False
    thread: str | None = None
    uses: int = 0


@dataclass(frozen=True)
class ThreadStatus:
    """The status of a thread, which a message of the app removes."""

    text: str
    since: float


@dataclass(frozen=True)
class Call:
    """A call of the Web API, a response_url ("response_url") or an upload ("upload")."""

    method: str
    args: Json
    outcome: str
    """`ok`, the error, or the name of the fault."""


@dataclass
class World(ServerState[Call]):
    """The state of the server. The app changes it only through `methods`."""

    team: str = "T000000001"
    enterprise: str | None = None
    """The organization of the workspace, in an Enterprise Grid."""
    app: str = "A000000001"
    bot_user: str = "U00000BOT1"
    bot: str = "B000000001"
    bot_token: str = "xoxb-fake-bot"
    app_token: str = "xapp-fake-app"
    signing_secret: str = "0123456789abcdef0123456789abcdef"
    scopes: set[str] = field(default_factory=lambda: set(SCOPES))
    account: str | None = None
    """The error of every call of the bot, such as token_revoked."""
    home_enabled: bool = True
    agent_view: bool = True
    """Whether the app has `agent_view`; False: the older `assistant_view`."""
    prompts: dict[tuple[str, str], list[Json]] = field(default_factory=dict)
    """The suggested prompts of a conversation, or of a thread."""
    users: dict[str, Json] = field(default_factory=dict)
    channels: dict[str, Channel] = field(default_factory=dict)
    ephemerals: defaultdict[tuple[str, str], list[Json]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """By channel and person."""
    files: dict[str, Json] = field(default_factory=dict)
    views: dict[str, View] = field(default_factory=dict)
    stacks: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """The open modals of a person, the topmost last."""
    homes: dict[str, View] = field(default_factory=dict)
    triggers: dict[str, Trigger] = field(default_factory=dict)
    hooks: dict[str, Hook] = field(default_factory=dict)
    tickets: set[str] = field(default_factory=set)
    """Unused URLs of sockets."""
    statuses: dict[tuple[str, str], ThreadStatus] = field(default_factory=dict)
    """By channel and thread."""
    sessions: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """The states of the session of each channel and thread, in order."""
    no_status: set[str] = field(default_factory=set)
    """Channels in which threads have no status."""
    no_streams: set[str] = field(default_factory=set)
    """Channels without streams."""

    def ts(self) -> str:
        """Return a new timestamp, later than all before it."""
        self._last = max(self._last + 1, int(self.now() * 1_000_000))
        return f"{self._last // 1_000_000}.{self._last % 1_000_000:06d}"

    def id(self, kind: str) -> str:
        """Return a new id with this prefix."""
        return f"{kind}{next(self._ids):09d}"

    def trigger(self, user: str, view: str | None = None) -> str:
        """Return a trigger_id."""
        created = f"{next(self._ids)}.{self.team}.{self.id('X').lower()}"
        self.triggers[created] = Trigger(user, self.now(), view=view)
        return created

    def hook(self, hook: Hook) -> str:
        """Return a response_url."""
        name = self.id("R")
        self.hooks[name] = hook
        return f"{self.base}/response/{name}"

    def add_channel(self, name: str, kind: Kind, members: set[str]) -> Channel:
        """Create a conversation."""
        letter = {"channel": "C", "group": "G", "im": "D", "mpim": "G"}[kind]
        created = Channel(self.id(letter), name, kind, members)
        self.channels[created.id] = created
        return created

    def direct(self, user: str) -> Channel:
        """Return the bot's conversation with a person."""
        pair = {user, self.bot_user}
        for channel in self.channels.values():
            if channel.kind == "im" and channel.members == pair:
                return channel
        return self.add_channel("directmessage", "im", pair)
