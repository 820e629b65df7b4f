"""Verification of Slack's request signatures, version v0, over the raw bytes.

The signature is checked before the age, because only a signed request is evidence of clock skew. A
request that is replayed within five minutes passes: its idempotency key prevents a second job.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from typing import Final

MAX_AGE: Final = 300
"""Seconds that a timestamp may differ from the clock."""
_TIMESTAMP: Final = re.compile(r"[0-9]{1,12}", re.ASCII)
_SIGNATURE: Final = re.compile(r"v0=[0-9a-f]{64}", re.ASCII)


class InvalidSignature(Exception):
    """The request is not verified; `reason` is the label of a counter."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


def check(secret: str, headers: Mapping[str, str], body: bytes, now: float) -> None:
    """Raise InvalidSignature unless the secret signed these bytes within five minutes."""
    timestamp = headers.get("x-slack-request-timestamp", "")
    signature = headers.get("x-slack-signature", "")
    if not timestamp or not signature:
        raise InvalidSignature("unsigned", "the request is not signed")
    if not _TIMESTAMP.fullmatch(timestamp) or not _SIGNATURE.fullmatch(signature):
        raise InvalidSignature("unsigned", "the timestamp or the signature is malformed")
    if not hmac.compare_digest(sign(secret, timestamp, body), signature):
        raise InvalidSignature(
            "signature", "the signature does not match; check that signing_secret is this app's"
        )
    ahead = int(timestamp) - now
    if abs(ahead) > MAX_AGE:
        direction = "ahead of" if ahead > 0 else "behind"
        raise InvalidSignature(
            "clock",
            f"clock skew: a signed request is {abs(ahead):.0f} s {direction} this machine's clock",
        )


def sign(secret: str, timestamp: str, body: bytes) -> str:
    """Return the signature of these bytes at this Unix time."""
    base = b"v0:" + timestamp.encode() + b":" + body
    return "v0=" + hmac.new(secret.encode(), base, hashlib.sha256).hexdigest()
