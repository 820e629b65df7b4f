"""The Slack app."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import field_validator, model_validator

from draftsman.field_errors import matching
from draftsman.settings.addresses import Listen, address_of, web_address
from draftsman.settings.secret import SecretSettings
from draftsman.settings.section import Section

HTTP_LISTEN: Final = "127.0.0.1:3000"
"""Default of `listen` in mode `http`, with the port of Slack's examples."""
_Channel = Annotated[
    str, matching(r"[CGD][A-Z0-9]{1,30}", "must be a channel id such as C012ABCDEF, not a name")
]
_Team = Annotated[
    str, matching(r"[TE][A-Z0-9]{1,30}", "must be a workspace id such as T012ABCDEF, not a name")
]
_Command = Annotated[
    str,
    matching(
        r"/[a-z0-9_-]{1,31}",
        "must be a command such as /draftsman: a-z, digits, - and _",
    ),
]


class SlackSettings(Section):
    """A Slack app in a workspace; without this table Slack is off."""

    mode: Literal["socket", "http"] = "socket"
    """Transport of the app's events: Socket Mode needs no public address."""
    bot_token: SecretSettings
    """`xoxb-…`"""
    app_token: SecretSettings | None = None
    """`xapp-…` with `connections:write`, for mode `socket`."""
    signing_secret: SecretSettings | None = None
    """For mode `http`."""
    listen: Listen | None = None
    """`host:port` of the HTTP server: Slack's requests in mode `http`, and health checks."""
    health_listen: Listen | None = None
    """`host:port` of `/healthz`, `/readyz` and `/metrics`; `listen` then has only `/healthz`."""
    team: _Team | None = None
    """Workspace of the requests; default: the bot token's workspace."""
    channels: tuple[_Channel, ...] = ()
    """Channels in which requests are accepted; default: all channels of the bot."""
    external_users: bool = False
    """Whether members of other workspaces in shared channels may submit jobs."""
    progress: Literal["stream", "card"] = "stream"
    """Where the steps of a running agent are shown: in a stream in the job's thread, or only in
    its status message."""
    reaction_approvals: bool = False
    """Whether a reaction (`+1`, `-1` and others) decides an approval."""
    command: _Command = "/draftsman"
    """The slash command, as in the app's manifest."""
    api_url: str = "https://slack.com/api/"
    """Base URL of the Web API."""

    @field_validator("api_url")
    @classmethod
    def _check_api_url(cls, value: str) -> str:
        return web_address(value).removesuffix("/") + "/"

    @model_validator(mode="after")
    def _check_mode(self) -> Self:
        if self.mode == "socket" and self.app_token is None:
            raise ValueError('mode "socket" needs app_token; for signing_secret set mode = "http"')
        if self.mode == "http" and self.signing_secret is None:
            raise ValueError('mode "http" needs signing_secret')
        return self

    @property
    def address(self) -> tuple[str, int] | None:
        """Host and port of the HTTP server, or None."""
        return address_of(self.listen or (HTTP_LISTEN if self.mode == "http" else None))

    @property
    def health_address(self) -> tuple[str, int] | None:
        """Host and port of the health server, or None."""
        return address_of(self.health_listen)
