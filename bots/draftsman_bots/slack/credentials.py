"""The tokens and the signing secret of the Slack app."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from draftsman.errors import ConfigError
from draftsman.settings.secret import SecretSettings
from draftsman_bots.process.credentials import read_credential
from draftsman_bots.slack.settings import SlackSettings

KINDS: Final = {"bot_token": "xoxb-", "app_token": "xapp-"}
"""Prefix of each kind of token."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """The secrets of the app; a secret is empty if the mode does not need it."""

    bot: str = field(repr=False)
    app: str = field(repr=False, default="")
    signing: str = field(repr=False, default="")


def read(slack: SlackSettings) -> Credentials:
    """Return the secrets; raises ConfigError, also if both modes are configured."""
    if slack.app_token is not None and slack.signing_secret is not None:
        unused = "signing_secret" if slack.mode == "socket" else "app_token"
        raise ConfigError(
            "[slack] sets both app_token (Socket Mode) and signing_secret (HTTP);"
            f" with mode {slack.mode!r}, remove {unused}"
        )
    bot = _token("bot_token", slack.bot_token)
    if slack.mode == "socket":
        return Credentials(bot, app=_token("app_token", slack.app_token))
    return Credentials(bot, signing=_read("signing_secret", slack.signing_secret))


def _token(key: str, source: SecretSettings | None) -> str:
    value = _read(key, source)
    if not value.startswith(KINDS[key]):
        other = next((name for name, prefix in KINDS.items() if value.startswith(prefix)), None)
        kind = other or "another kind of secret"
        raise ConfigError(f"[slack] {key} must begin with {KINDS[key]}; this value is {kind}")
    return value


def _read(key: str, source: SecretSettings | None) -> str:
    return read_credential("slack", key, source, forbidden=" ")
