"""Is this request Trello's? HMAC-SHA1, over the bytes as they came and the callback URL.

It has no time in it: what is repeated passes for ever, and makes nothing twice by its keys alone.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Final

HEADER: Final = "x-trello-webhook"


def check(secret: str, callback: str, body: bytes, given: str) -> bool:
    """Return whether these bytes were signed for this address with the app's secret."""
    if not given.isascii() or len(given) > 100:
        return False
    return hmac.compare_digest(sign(secret, callback, body), given)


def sign(secret: str, callback: str, body: bytes) -> str:
    """Return the signature of these bytes for this address, exactly as it was registered."""
    made = hmac.new(secret.encode(), body + callback.encode(), hashlib.sha1)
    return base64.b64encode(made.digest()).decode()
