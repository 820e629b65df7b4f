"""The tables of the configuration that say how people are reached in chat."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from draftsman.field_errors import matching
from draftsman.settings.outbound import SecretSettings, web_address
from draftsman.settings.tables import Section

HTTP_LISTEN: Final = "127.0.0.1:3000"
"""Where mode `http` serves when `listen` is unset: the port that Slack's own examples use."""


def _has_a_port(value: str) -> str:
    if not 0 <= int(value.rpartition(":")[2]) <= 65_535:
        raise ValueError("a port is 0 to 65535")
    return value


_Channel = Annotated[
    str, matching(r"[CGD][A-Z0-9]{1,30}", "give a channel's id such as C012ABCDEF, not its name")
]
_Team = Annotated[
    str, matching(r"[TE][A-Z0-9]{1,30}", "give a workspace's id such as T012ABCDEF, not its name")
]
_Command = Annotated[
    str,
    matching(
        r"/[a-z0-9_-]{1,31}", "give a command such as /draftsman: small letters, digits, - and _"
    ),
]
_Listen = Annotated[
    str,
    matching(
        r"(?:[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}",
        "give host:port, such as 127.0.0.1:3000",
    ),
    AfterValidator(_has_a_port),
]


def _address(listen: str | None) -> tuple[str, int] | None:
    """Return host and port of an address that was checked."""
    if listen is None:
        return None
    host, _, port = listen.rpartition(":")
    return host.strip("[]"), int(port)


class SlackSettings(Section):
    """One Slack app in one workspace; without this table there is no Slack."""

    mode: Literal["socket", "http"] = "socket"
    """How Slack reaches us: Socket Mode needs no public address. One app has one of them."""
    bot_token: SecretSettings
    """`xoxb-…`"""
    app_token: SecretSettings | None = None
    """`xapp-…` with `connections:write`, for mode `socket` alone."""
    signing_secret: SecretSettings | None = None
    """For mode `http` alone."""
    listen: _Listen | None = None
    """`host:port` that HTTP is served on: Slack's requests in mode `http`, and health in both."""
    health_listen: _Listen | None = None
    """`host:port` of `/healthz`, `/readyz` and `/metrics`; then `listen` has `/healthz` alone."""
    team: _Team | None = None
    """The workspace whose requests count; unset: the one that the bot token belongs to."""
    channels: tuple[_Channel, ...] = ()
    """Channels where requests count; none: every channel that the bot is in."""
    strangers: bool = False
    """Whether people of other workspaces, in shared channels, may ask for work."""
    command: _Command = "/draftsman"
    """The slash command, as the manifest has it."""
    api_url: str = "https://slack.com/api/"
    """Where the Web API is."""

    @field_validator("api_url")
    @classmethod
    def _is_a_folder(cls, value: str) -> str:
        return web_address(value).removesuffix("/") + "/"

    @model_validator(mode="after")
    def _has_what_its_mode_needs(self) -> Self:
        if self.mode == "socket" and self.app_token is None:
            raise ValueError('mode "socket" needs app_token; for signing_secret set mode = "http"')
        if self.mode == "http" and self.signing_secret is None:
            raise ValueError('mode "http" needs signing_secret')
        return self

    @property
    def address(self) -> tuple[str, int] | None:
        """Return host and port that HTTP is served on; None: nothing is served."""
        return _address(self.listen or (HTTP_LISTEN if self.mode == "http" else None))

    @property
    def health_address(self) -> tuple[str, int] | None:
        """Return host and port of a port for health alone; None: there is none."""
        return _address(self.health_listen)


class TrelloSettings(Section):
    """One Trello account that the bot works as; without this table there is no Trello."""

    key: SecretSettings
    """The API key of the app."""
    token: SecretSettings
    """The token of the bot's own account; never that of somebody who answers questions."""
    secret: SecretSettings | None = None
    """The app's secret, with which Trello signs what it sends to `callback_url`."""
    poll: float = Field(15.0, ge=1, le=3600)
    """Seconds between two looks at a board; two requests each, of 100 in ten seconds."""
    label: str = Field("draftsman", min_length=1, max_length=256)
    """Name of the labels that ask for work, for when a board is added."""
    queued: str = Field("draftsman: queued", min_length=1, max_length=256)
    """Name of the label that takes their place on a card whose job there is."""
    callback_url: str | None = None
    """Where Trello is to send what happens, as Trello sees it; unset: boards are only polled."""
    listen: _Listen | None = None
    """`host:port` that HTTP is served on: what Trello sends, and health."""
    health_listen: _Listen | None = None
    """`host:port` of `/healthz`, `/readyz` and `/metrics`; then `listen` has `/healthz` alone."""
    api_url: str = "https://api.trello.com"
    """Where the API is."""

    @field_validator("api_url")
    @classmethod
    def _is_a_host(cls, value: str) -> str:
        return web_address(value).rstrip("/")

    @field_validator("callback_url")
    @classmethod
    def _is_reached(cls, value: str | None) -> str | None:
        return None if value is None else web_address(value)

    @model_validator(mode="after")
    def _can_be_told(self) -> Self:
        for name in ("secret", "listen") if self.callback_url is not None else ():
            if getattr(self, name) is None:
                raise ValueError(f"callback_url needs {name}; without it boards are only polled")
        if self.label.casefold() == self.queued.casefold():
            raise ValueError("label and queued are one name; the one takes the place of the other")
        return self

    @property
    def address(self) -> tuple[str, int] | None:
        """Return host and port that HTTP is served on; None: nothing is served."""
        return _address(self.listen)

    @property
    def health_address(self) -> tuple[str, int] | None:
        """Return host and port of a port for health alone; None: there is none."""
        return _address(self.health_listen)
