"""What Trello knows us by, read where it is kept."""

from __future__ import annotations

from dataclasses import dataclass, field

from draftsman.errors import ConfigError
from draftsman.outbound import secret_values
from draftsman.settings import SecretSettings, TrelloSettings


@dataclass(frozen=True, slots=True)
class Credentials:
    """The secrets of one app and one account; `secret` is empty where no webhook is wanted."""

    key: str = field(repr=False)
    token: str = field(repr=False)
    secret: str = field(repr=False, default="")

    @property
    def all(self) -> tuple[str, ...]:
        """Each of them, longest first, for whoever takes them out of a text."""
        return tuple(sorted((self.key, self.token, self.secret), key=len, reverse=True))


def read(trello: TrelloSettings) -> Credentials:
    """Return the secrets; raises ConfigError that names the place of one that is not there."""
    found = Credentials(
        key=_read("key", trello.key),
        token=_read("token", trello.token),
        secret=_read("secret", trello.secret) if trello.secret is not None else "",
    )
    if found.token in (found.key, found.secret):
        other = "key" if found.token == found.key else "secret"
        raise ConfigError(f"[trello] token and {other} are the same; see docs/trello.md")
    return found


def _read(key: str, source: SecretSettings) -> str:
    try:
        value = secret_values.read_secret(source, f"[trello] {key}")
    except secret_values.MissingSecret as error:
        raise ConfigError(error.problem) from None
    if not value.isascii() or not value.isprintable() or set(value) & set(' "\\'):
        raise ConfigError(f"[trello] {key}: it has characters that none has")
    return value
