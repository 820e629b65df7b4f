"""Secrets, read where they are used, and kept out of whatever is stored."""

from __future__ import annotations

import os
from typing import Final

from draftsman.domain.messages import webhook_signature
from draftsman.errors import Failure
from draftsman.settings import SecretSettings, WebhookSettings

MOST: Final = 64 * 1024
"""Bytes of a secret's file at most."""
SHORTEST: Final = 6
"""Characters from which a secret is recognised in a text; a shorter one is in every second word."""


class MissingSecret(Failure):
    """The place of a secret holds none.

    `problem` says so without where it was read; its class of errors is that of `no_secret`.
    """

    def __init__(self, message: str, *, problem: str = "") -> None:
        super().__init__(message, code="no_secret")
        self.problem = problem


def read_secret(source: SecretSettings, what: str) -> str:
    """Return the secret; raises NoSecret, which names its place and never its value."""
    if source.env is not None:
        value, place = os.environ.get(source.env, ""), f"the variable {source.env}"
    else:
        value, place = _read_file(str(source.file)), str(source.file)
    if not value.strip():
        problem = f"{what}: {place} holds no secret"
        raise MissingSecret(f"{problem} on this worker", problem=problem)
    return value.strip()


def signing_keys(webhook: WebhookSettings, name: str) -> tuple[bytes, ...]:
    """Return what signs for a receiver, read anew: it may be rotated.

    Raises Failure `no_secret`, and UsageError for a secret that is none.
    """
    return webhook_signature.keys(read_secret(webhook.secret, f"webhook {name!r}"))


def redact_values(text: str, *secrets: str) -> str:
    """Return the text with the secrets replaced."""
    for secret in secrets:
        if len(secret) >= SHORTEST:
            text = text.replace(secret, "***")
    return text


def _read_file(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123
            return file.read(MOST)
    except (OSError, ValueError):
        return ""
