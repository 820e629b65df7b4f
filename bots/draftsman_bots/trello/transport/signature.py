"""Webhook signatures: HMAC-SHA1 of the raw body and the callback URL.

A signature contains no time, so a replayed request is valid; idempotency keys make it harmless.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Final

HEADER: Final = "x-trello-webhook"


def check(secret: str, callback: str, body: bytes, signature: str) -> bool:
    """Return whether a body was signed for a callback URL with the app's secret."""
    if not signature.isascii() or len(signature) > 100:
        return False
    return hmac.compare_digest(sign(secret, callback, body), signature)


def sign(secret: str, callback: str, body: bytes) -> str:
    """Return the signature of a body for a callback URL, exactly as registered."""
    digest = hmac.new(secret.encode(), body + callback.encode(), hashlib.sha1)
    return base64.b64encode(digest.digest()).decode()
