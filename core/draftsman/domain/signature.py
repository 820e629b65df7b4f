"""Signatures of webhooks, as Standard Webhooks has them. Pure.

https://github.com/standard-webhooks/standard-webhooks: `webhook-id` names the message, the same
with each repetition; `webhook-timestamp` is the Unix time of this try in seconds; the signature is
`v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Final

from draftsman.errors import ConfigError

PREFIX: Final = "whsec_"
"""What a secret that is base64 begins with; any other counts as it is written."""


def key_of(secret: str) -> bytes:
    """Return the key that a secret stands for; raises ConfigError, which does not show it."""
    if not secret.startswith(PREFIX):
        key = secret.encode()
    else:
        try:
            key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
        except (binascii.Error, ValueError):
            raise ConfigError(f"a webhook's secret begins with {PREFIX}; base64 follows") from None
    if not key:
        raise ConfigError("a webhook's secret is empty")
    return key


def sign(secret: str, id: str, timestamp: int, body: bytes) -> str:
    """Return the value of the header `webhook-signature`; raises ConfigError."""
    signed = b".".join((id.encode(), str(timestamp).encode(), body))
    digest = hmac.new(key_of(secret), signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"
