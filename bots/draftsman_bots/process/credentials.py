"""Reading of the secrets that a bot needs from their configured sources."""

from __future__ import annotations

from draftsman.errors import ConfigError
from draftsman.outbound import secret_values
from draftsman.settings.secret import SecretSettings


def read_optional(section: str, key: str, source: SecretSettings | None) -> str | None:
    """Return the secret of `[section] key` as `read_credential`; None where it is not set."""
    return None if source is None else read_credential(section, key, source)


def read_credential(
    section: str, key: str, source: SecretSettings | None, forbidden: str = ""
) -> str:
    """Return the secret of `[section] key`, printable ASCII without the `forbidden` characters.

    Raises ConfigError, which names the source if the secret is missing.
    """
    if source is None:
        raise ConfigError(f"[{section}] {key} is not set; see: draftsman help --page {section}")
    try:
        value = secret_values.read_secret(source, f"[{section}] {key}")
    except secret_values.MissingSecret as error:
        raise ConfigError(error.problem) from None
    if not value.isascii() or not value.isprintable() or set(value) & set(forbidden):
        raise ConfigError(f"[{section}] {key} contains characters that are not allowed in a token")
    return value
