"""Secrets: read at the time of use, and redacted from stored text."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

from draftsman.errors import NotOnThisWorker
from draftsman.outbound import webhook_signature

if TYPE_CHECKING:
    from draftsman.settings.secret import SecretSettings
    from draftsman.settings.webhooks import WebhookSettings

MAX_BYTES: Final = 64 * 1024
"""Maximum size of a secret's file."""
MIN_LENGTH: Final = 6
"""Minimum length of a redacted secret; a shorter secret would match ordinary words."""


class MissingSecret(NotOnThisWorker):
    """The source of a secret is empty.

    `problem` is the message without the worker; the code is `no_secret`.
    """

    def __init__(self, message: str, *, problem: str = "") -> None:
        super().__init__(message, code="no_secret")
        self.problem = problem


def read_secret(source: SecretSettings, what: str) -> str:
    """Return a secret; raises MissingSecret, which has its source."""
    if source.env is not None:
        value = os.environ.get(source.env, "")
        origin = f"the variable {source.env}"
    else:
        value = _read_file(str(source.file))
        origin = str(source.file)
    if not value.strip():
        problem = f"{what}: {origin} holds no secret"
        raise MissingSecret(f"{problem} on this worker", problem=problem)
    return value.strip()


def signing_keys(webhook: WebhookSettings, name: str) -> tuple[bytes, ...]:
    """Read the signing keys of a webhook, which may have been rotated.

    Raises MissingSecret, and UsageError for an invalid secret.
    """
    return webhook_signature.keys(read_secret(webhook.secret, f"webhook {name!r}"))


def redact_values(text: str, *secrets: str) -> str:
    """Replace secrets in a text by `***`."""
    for secret in secrets:
        if len(secret) >= MIN_LENGTH:
            text = text.replace(secret, "***")
    return text


def hide_values(value: Any, secrets: Collection[str]) -> Any:
    """Return JSON, or bytes, with secrets replaced at every level."""
    if isinstance(value, str):
        return redact_values(value, *secrets)
    if isinstance(value, bytes):
        for secret in secrets:
            value = value.replace(secret.encode(), b"***")
        return value
    if isinstance(value, dict):
        return {
            hide_values(key, secrets): hide_values(item, secrets) for key, item in value.items()
        }
    if type(value) in (list, tuple):
        return type(value)(hide_values(item, secrets) for item in value)
    return value


def _read_file(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123
            return file.read(MAX_BYTES)
    except (OSError, ValueError):
        return ""
