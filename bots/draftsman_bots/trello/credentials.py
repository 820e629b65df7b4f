"""Trello API credentials from the configured secret sources."""

from __future__ import annotations

from dataclasses import dataclass, field

from draftsman.errors import ConfigError
from draftsman.settings.secret import SecretSettings
from draftsman_bots.process.credentials import read_credential
from draftsman_bots.trello.settings import TrelloSettings


@dataclass(frozen=True, slots=True)
class Credentials:
    """The secrets of an app and an account; `secret` is empty if webhooks are not used."""

    key: str = field(repr=False)
    token: str = field(repr=False)
    secret: str = field(repr=False, default="")

    @property
    def all(self) -> tuple[str, ...]:
        """All secrets, longest first, for redaction."""
        return tuple(sorted((self.key, self.token, self.secret), key=len, reverse=True))


def read(trello: TrelloSettings) -> Credentials:
    """Return the credentials; raises ConfigError that names the source of a missing secret."""
    credentials = Credentials(
        key=_read("key", trello.key),
        token=_read("token", trello.token),
        secret=_read("secret", trello.secret) if trello.secret is not None else "",
    )
    if credentials.token in (credentials.key, credentials.secret):
        other = "key" if credentials.token == credentials.key else "secret"
        raise ConfigError(
            f"[trello] token and {other} are the same; see: draftsman help --page trello"
        )
    return credentials


def _read(key: str, source: SecretSettings) -> str:
    return read_credential("trello", key, source, forbidden=' "\\')
