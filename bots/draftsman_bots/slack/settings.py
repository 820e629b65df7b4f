"""The Slack app."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import Field, field_validator, model_validator

from draftsman.field_errors import matching
from draftsman.settings.addresses import Listen, address_of, web_address
from draftsman.settings.secret import SecretSettings
from draftsman.settings.section import ChannelSection, Section

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


class SlackSettings(ChannelSection):
    """The Slack app of draftsman (docs/slack.md). Without this table Slack is disabled.

    Tokens are given by their environment variable or file, and never written here.
    """

    table = "slack"

    mode: Literal["socket", "http"] = "socket"
    """The connection to Slack: "socket" needs no public address, "http" does. An app uses a single
    mode."""
    bot_token: SecretSettings = Field(examples=[{"env": "SLACK_BOT_TOKEN"}])
    """The bot token (xoxb-...)."""
    app_token: SecretSettings | None = Field(None, examples=[{"env": "SLACK_APP_TOKEN"}])
    """The app-level token (xapp-..., connections:write), for mode "socket". Unset: mode "http"."""
    signing_secret: SecretSettings | None = Field(None, examples=[{"env": "SLACK_SIGNING_SECRET"}])
    """The signing secret, for mode "http", which has no app_token. Unset: mode "socket"."""
    listen: Listen | None = Field(None, examples=["127.0.0.1:3000"])
    """host:port for HTTP: in mode "http" requests from Slack at /slack/events, and in both modes
    /healthz, /readyz and /metrics. Unset: 127.0.0.1:3000 in mode "http", else none."""
    health_listen: Listen | None = Field(None, examples=["127.0.0.1:9400"])
    """Separate host:port for /readyz and /metrics; listen then serves only /healthz. Unset: listen
    serves all."""
    team: _Team | None = Field(None, examples=["T012ABCDEF"])
    """The workspace that may send requests. Unset: the workspace of the bot token."""
    channels: tuple[_Channel, ...] = ()
    """Channels that accept requests, besides direct messages. Empty: every channel that the bot is
    in."""
    external_users: bool = False
    """Whether users of other workspaces may submit jobs in shared channels."""
    progress: Literal["stream", "card"] = "stream"
    """Where the steps of a running agent are shown: "stream" is a message in the job's thread that
    grows, "card" only the status message, which also replaces a stream that Slack refuses."""
    reaction_approvals: bool = False
    """Whether a reaction decides an approval: +1 and white_check_mark approve, -1 and x deny."""
    command: _Command = "/draftsman"
    """The slash command, as in the app's manifest."""
    api_url: str = "https://slack.com/api/"
    """URL of Slack's Web API."""

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


class SlackAccount(Section):
    """The account of a person."""

    slack: str | None = Field(None, examples=["U012ABCDEF"])
    """Slack member id. Unset: not in Slack."""
